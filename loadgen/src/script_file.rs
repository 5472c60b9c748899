//! A script's file as it was read: once, for it may be a pipe. Each Lua state runs the same bytes.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;

#[derive(Debug)]
pub struct ScriptFile {
    pub path: PathBuf,
    pub source: Vec<u8>,
}

impl ScriptFile {
    pub fn read(path: PathBuf) -> Result<Self, Error> {
        match std::fs::read(&path) {
            Ok(source) => Ok(Self { path, source }),
            Err(problem) => Err(Error::file(&path, format!("cannot read the script: {problem}"))),
        }
    }

    /// What is wrong with it, in one line that begins with its path.
    pub fn wrong(&self, what: impl fmt::Display) -> Error {
        Error::file(&self.path, what)
    }
}
