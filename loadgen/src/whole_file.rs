//! Files that are there whole or not at all: written beside their place, and moved there when done.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Whether the file can be written: asked before a run, so that nobody measures for an hour and keeps
/// nothing.
pub fn check(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::file(path, "cannot write: it is a directory"));
    }
    if is_device(path) {
        return Ok(());
    }
    let partial = partial(path);
    File::create(&partial)
        .and_then(|_| fs::remove_file(&partial))
        .map_err(|problem| Error::file(path, format!("cannot write: {problem}")))
}

/// /dev/stdout, /dev/null, a pipe: nothing that another file may take the place of.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

fn partial(path: &Path) -> PathBuf {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}

pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Error> {
    let device = is_device(path);
    let partial = if device { path.to_owned() } else { partial(path) };
    let written =
        OpenOptions::new().write(true).create(true).truncate(!device).open(&partial).and_then(|file| {
            let mut out = BufWriter::new(file);
            fill(&mut out)?;
            out.flush()?;
            if device { Ok(()) } else { fs::rename(&partial, path) }
        });
    written.map_err(|problem| {
        if !device {
            let _ = fs::remove_file(&partial);
        }
        Error::file(path, format!("cannot write: {problem}"))
    })
}
