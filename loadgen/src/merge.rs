//! `loadgen merge A.json B.json …`: the results of all parts of a load as one result.
//!
//! ```text
//! files → parts (read, and belonging together) → total (histograms added, counts summed, the worst verdict)
//! → JSON, text
//!       → logs (added second by second, and belonging to the total) → interval log
//! ```

mod logs;
mod parts;
mod slices;
mod total;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;

use crate::args::named;
use crate::error::Error;
use crate::output::print;
use crate::report::hlog;
use crate::report::text::{self, TableLine};
use crate::{tell, whole_file};
use parts::Part;
use total::Total;

pub const USAGE: &str = "\
Usage: loadgen merge [options] <part.json> ... [<part.hlog> ...]
  One result of all parts of a load (--part), as JSON on stdout.
  Options:
    --json    <F>  Write it to this file
    --hlog    <F>  Write the interval logs of all parts, given beside their
                   results, as one
    --text         Print wrk2's text instead; JSON only with --json
    -L, --latency  Print the text with its latency distribution
    -U, --u_latency  And with the uncorrected one
";

#[derive(Debug, Default)]
struct Wanted {
    files: Vec<PathBuf>,
    json: Option<PathBuf>,
    hlog: Option<PathBuf>,
    text: bool,
    latency: bool,
    uncorrected: bool,
}

/// A file to be merged.
struct Given {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Given {
    fn read(path: &Path) -> Result<Self, Error> {
        let bytes =
            std::fs::read(path).map_err(|problem| Error::file(path, format!("cannot read: {problem}")))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// By how it begins; no JSON does.
    fn is_log(&self) -> bool {
        self.bytes.first() == Some(&b'#')
    }
}

/// `typed`: everything behind the word `merge`.
pub fn run(typed: &[OsString]) -> Result<(), Error> {
    let Some(wanted) = wanted(typed)? else {
        return print(USAGE);
    };
    let outputs = [("--json", wanted.json.as_deref()), ("--hlog", wanted.hlog.as_deref())];
    whole_file::check_differ(&outputs)?;
    whole_file::check_spares(&outputs, wanted.files.iter().map(PathBuf::as_path))?;
    // Each is read once: it may be a pipe.
    let files = wanted.files.iter().map(|path| Given::read(path)).collect::<Result<Vec<_>, _>>()?;
    let (logs, results): (Vec<_>, Vec<_>) = files.into_iter().partition(Given::is_log);
    if wanted.hlog.is_none() && !logs.is_empty() {
        return Err(Error::file(&logs[0].path, "interval logs are merged into a file: --hlog FILE"));
    }
    if results.is_empty() {
        return Err(Error::file(
            &logs[0].path,
            "an interval log alone: the results of the parts are missing",
        ));
    }
    let parts = parts::together(&results)?;
    for note in parts::start_note(&parts).into_iter().chain(parts::nothing_measured(&parts)) {
        tell!("note: {note}");
    }
    let total = Total::of(&parts)?;
    // All is made before anything is written: what fails leaves no file behind.
    let seconds = wanted.hlog.as_ref().map(|_| logs::merged(&logs, parts.len(), &total)).transpose()?;
    let words = typed.iter().map(|word| word.to_string_lossy());
    let arguments: Vec<_> = ["merge".into()].into_iter().chain(words).collect();
    let document = total.document(&parts, &arguments)?;
    let json = serde_json::to_string_pretty(&document).expect("a JSON value can be written") + "\n";
    let text = wanted.text.then(|| printed(&wanted, &parts, &total)).transpose()?;
    // Neither is written where the other cannot be.
    outputs.iter().filter_map(|(_, path)| *path).try_for_each(whole_file::check)?;
    if let (Some(path), Some(seconds)) = (&wanted.hlog, seconds) {
        hlog::write_seconds(path, parts::first_start(&parts), seconds.into_iter())?;
    }
    match (&wanted.json, &text) {
        (Some(path), _) => whole_file::write(path, |out| out.write_all(json.as_bytes()))?,
        (None, None) => print(json)?,
        (None, Some(_)) => {}
    }
    text.map_or(Ok(()), print)
}

fn wanted(typed: &[OsString]) -> Result<Option<Wanted>, Error> {
    let failed =
        |problem: lexopt::Error| Error::Failed(format!("loadgen merge: {problem}; see loadgen merge --help"));
    let mut wanted = Wanted::default();
    let mut parser = lexopt::Parser::from_args(typed);
    while let Some(arg) = parser.next().map_err(failed)? {
        match arg {
            Long("json") => wanted.json = Some(named("--json", parser.value().map_err(failed)?)?),
            Long("hlog") => wanted.hlog = Some(named("--hlog", parser.value().map_err(failed)?)?),
            Long("text") => wanted.text = true,
            Short('L') | Long("latency") => (wanted.text, wanted.latency) = (true, true),
            Short('U') | Long("u_latency") => {
                (wanted.text, wanted.latency, wanted.uncorrected) = (true, true, true)
            }
            Short('h') | Long("help") => return Ok(None),
            Value(file) => wanted.files.push(PathBuf::from(file)),
            other => return Err(failed(other.unexpected())),
        }
    }
    if wanted.files.is_empty() {
        return Err(Error::Failed(
            "loadgen merge: no files; example: loadgen merge part1.json part2.json".to_owned(),
        ));
    }
    Ok(Some(wanted))
}

/// wrk2's text of the whole load. Lines of the calibration are those of single threads, and are left out.
fn printed(wanted: &Wanted, parts: &[Part], total: &Total) -> Result<String, Error> {
    let threads: usize = parts.iter().map(Part::threads).sum();
    let (url, connections) = (&parts[0].urls(), parts[0].whole_connections);
    let mut out = match parts[0].length_in_requests() {
        Some(requests) => text::banner_of_requests(requests, url, threads, connections),
        None => text::banner(total.duration_s, url, threads, connections),
    };
    out += &text::table(&TableLine::of(&total.response), &TableLine::of(total.rates()?));
    if wanted.latency {
        out += &text::recorded(&total.response);
    }
    if wanted.uncorrected {
        out += &text::uncorrected(&total.service);
    }
    Ok(out + &text::summary(&total.tally, total.duration_s * 1e6))
}
