//! The interval logs of all parts as one: interval by interval, histograms added. They are as long in each
//! part: a second, or what `--interval` said, and so each is called a second here.
//!
//! The n-th second of the warm-up is that of every part, and so is the n-th measured one: as in one generator
//! the seconds of its threads. Where parts began apart, a second of the sum is that long after each one's own
//! start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry, LogIteratorError,
};

use super::Given;
use super::total::Total;
use crate::error::Error;
use crate::recorder::{Latencies, Phase, histogram};
use crate::report::hlog::{MEASURED_TAGS, WARM_UP_TAG};
use crate::result::Second;

/// The seconds of all parts, in order. They must be those of what the parts found in all.
pub fn merged(logs: &[Given], parts: usize, total: &Total) -> Result<Vec<Second>, Error> {
    if logs.len() != parts {
        return Err(Error::Failed(format!(
            "--hlog asks for the interval log of each part beside its result: parts={parts}, logs={}",
            logs.len()
        )));
    }
    let mut seconds = BTreeMap::<(Phase, u64), Second>::new();
    let mut known: Option<(&PathBuf, u64)> = None;
    for Given { path, bytes } in logs {
        let Some(length_ms) = add(path, bytes, &mut seconds)? else { continue };
        let (other, others_ms) = *known.get_or_insert((path, length_ms));
        if others_ms != length_ms {
            let other = other.display();
            let told = format!("intervals of another length: {length_ms} ms, {others_ms} ms in {other}");
            return Err(Error::file(path, told));
        }
    }
    let seconds: Vec<Second> = seconds.into_values().collect();
    belong_to(&seconds, total)?;
    Ok(seconds)
}

/// One line of a log. `rank`: of its tag, in the order in which they stand in a second.
struct Line<'a> {
    rank: usize,
    start_ns: u64,
    end_ns: u64,
    encoded: &'a str,
}

/// Adds the log of one part to the sums of the others. Returns how many milliseconds its measured intervals
/// have; none if there is only the last, which ends with the run.
fn add(
    file: &Path,
    bytes: &[u8],
    seconds: &mut BTreeMap<(Phase, u64), Second>,
) -> Result<Option<u64>, Error> {
    let milliseconds = |ns: u64| (ns + 500_000) / 1_000_000;
    let (mut numbers, mut first_ns, mut length_ms) = ([0, 0], None, None);
    for lines in seconds_of(file, bytes)? {
        // A second of the warm-up has a line of its own kind alone.
        let phase = if lines.iter().all(|line| line.rank == 0) { Phase::WarmUp } else { Phase::Measured };
        if phase == Phase::Measured {
            length_ms = length_ms.or(first_ns.map(|first_ns| milliseconds(lines[0].start_ns - first_ns)));
            first_ns = first_ns.or(Some(lines[0].start_ns));
        }
        let number = &mut numbers[usize::from(phase == Phase::Measured)];
        let second = seconds.entry((phase, *number)).or_insert_with(|| empty(phase, &lines[0]));
        *number += 1;
        for line in lines {
            second.start_ns = second.start_ns.min(line.start_ns);
            second.end_ns = second.end_ns.max(line.end_ns);
            let all = &mut second.latencies;
            let sums = [&mut second.warm_up, &mut all.response, &mut all.service, &mut all.lateness];
            let sum = sums.into_iter().nth(line.rank).expect("there are as many as tags");
            let wrong = || {
                Error::file(file, format!("no histogram of loadgen's: at {} s", line.start_ns as f64 / 1e9))
            };
            sum.add(decoded(line.encoded).ok_or_else(wrong)?).map_err(|_| wrong())?;
        }
    }
    Ok(length_ms)
}

/// The lines of a log, those of a second together.
fn seconds_of<'a>(file: &Path, bytes: &'a [u8]) -> Result<Vec<Vec<Line<'a>>>, Error> {
    let mut seconds = Vec::<Vec<Line>>::new();
    for entry in IntervalLogIterator::new(bytes) {
        match entry {
            Ok(LogEntry::Interval(found)) => {
                let line = line(file, &found)?;
                match seconds.last_mut().filter(|second| {
                    second.last().is_some_and(|last| last.start_ns == line.start_ns && last.rank < line.rank)
                }) {
                    Some(second) => second.push(line),
                    None => seconds.push(vec![line]),
                }
            }
            Ok(_) => {}
            Err(LogIteratorError::ParseError { offset }) => {
                return Err(Error::file(file, format!("no interval log: offset={offset}")));
            }
        }
    }
    Ok(seconds)
}

fn line<'a>(file: &Path, found: &IntervalLogHistogram<'a>) -> Result<Line<'a>, Error> {
    let tag = found.tag().map_or("", |tag| tag.as_str());
    let rank = [WARM_UP_TAG].iter().chain(&MEASURED_TAGS).position(|known| *known == tag);
    let rank =
        rank.ok_or_else(|| Error::file(file, format!("lines with this tag cannot be merged: {tag:?}")))?;
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let start_ns = nanoseconds(found.start_timestamp());
    let end_ns = start_ns.saturating_add(nanoseconds(found.duration()));
    Ok(Line { rank, start_ns, end_ns, encoded: found.encoded_histogram() })
}

fn empty(phase: Phase, first: &Line) -> Second {
    Second {
        phase,
        start_ns: first.start_ns,
        end_ns: first.end_ns,
        warm_up: histogram(),
        latencies: Latencies { response: histogram(), service: histogram(), lateness: histogram() },
    }
}

fn decoded(encoded: &str) -> Option<Histogram<u64>> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

/// In a log stands what stands in the result beside it, value for value.
fn belong_to(seconds: &[Second], total: &Total) -> Result<(), Error> {
    type Kind<'a> = (&'a str, fn(&Second) -> &Histogram<u64>, &'a Histogram<u64>);
    let kinds: [Kind; 3] = [
        (MEASURED_TAGS[0], |second| &second.latencies.response, &total.response),
        (MEASURED_TAGS[1], |second| &second.latencies.service, &total.service),
        (MEASURED_TAGS[2], |second| &second.latencies.lateness, &total.lateness),
    ];
    for (tag, of_second, result) in kinds {
        let mut logged = histogram();
        for second in seconds {
            logged.add(of_second(second)).expect("both have the project's one shape");
        }
        if logged != *result {
            return Err(Error::Failed(format!(
                "the interval logs are not those of these results: {tag}: {} values in the logs, \
                    {} in the results",
                logged.len(),
                result.len()
            )));
        }
    }
    Ok(())
}
