//! Files that are there whole or not at all: written beside their place, and moved there when done.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::error::Error;

pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Error> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let written = File::create(partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()?;
        fs::rename(partial, path)
    });
    written.map_err(|problem| {
        let _ = fs::remove_file(partial);
        Error::file(path, format!("cannot write: {problem}"))
    })
}
