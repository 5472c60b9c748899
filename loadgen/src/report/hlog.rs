//! The HdrHistogram interval log (V2): a line per interval and kind of latency, values in microseconds.
//!
//! Tags are `response`, `service` and `lateness`, whose histograms add up to those of the JSON result; and,
//! for what came before measuring began, `warmup_response` alone: a server that still warms up is slow in
//! every way, and three such histograms a second made half of a short run's log. An answer stands in the
//! interval in which it came: of a second, or as `--interval` says once measuring has begun. With two servers
//! in turn there is a line for each slice and kind besides, of what was due in it; with a rate in steps one
//! for each step (`step_1_response`, `step_1_service`).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use jiff::Timestamp;

use super::json_slices::measured_slices;
use crate::error::Error;
use crate::plan::{Alternate, Plan};
use crate::recorder::{Counts, HIGHEST_US, Phase, histogram, microseconds};
use crate::result::{RunResult, Second};
use crate::whole_file;

/// What may stand in a log of one load, in the order in which it stands in an interval.
pub const WARM_UP_TAG: &str = "warmup_response";
pub const MEASURED_TAGS: [&str; 3] = ["response", "service", "lateness"];

/// Of a slice of two servers in turn: its tag begins with this and ends in `_response` or `_service`.
const SLICE_TAGS: [[&str; 2]; 2] =
    [["slice_A_response", "slice_A_service"], ["slice_B_response", "slice_B_service"]];

pub fn write(
    path: &Path,
    plan: &Plan,
    result: &RunResult,
    seconds: impl Iterator<Item = Second>,
) -> Result<(), Error> {
    written(path, result.start_utc, |log| {
        log.seconds(seconds)?;
        for step in &result.steps {
            let from_until = (step.start_ns, step.end_ns);
            for (kind, histogram) in
                [("response", &step.latencies.response), ("service", &step.latencies.service)]
            {
                log.line(&format!("step_{}_{kind}", step.number), from_until, histogram)?;
            }
        }
        let Some(Alternate { alternation, .. }) = &plan.alternate else { return Ok(()) };
        for slice in measured_slices(alternation, result) {
            let counts = &result.slices[slice];
            let tags = SLICE_TAGS[alternation.server(slice)];
            let from_until = (alternation.counted_from_ns(slice), alternation.end_ns(slice));
            for (tag, counts) in tags.into_iter().zip([&counts.response_ns, &counts.service_ns]) {
                log.line(tag, from_until, &in_microseconds(counts))?;
            }
        }
        Ok(())
    })
}

/// A log of intervals alone.
pub fn write_seconds(
    path: &Path,
    start_utc: Timestamp,
    seconds: impl Iterator<Item = Second>,
) -> Result<(), Error> {
    written(path, start_utc, |log| log.seconds(seconds))
}

struct Log<'a, 'b>(IntervalLogWriter<'a, 'b, BufWriter<File>, V2DeflateSerializer>);

impl Log<'_, '_> {
    fn seconds(&mut self, seconds: impl Iterator<Item = Second>) -> io::Result<()> {
        for second in seconds {
            let from_until = (second.start_ns, second.end_ns);
            if second.phase == Phase::WarmUp || !second.warm_up.is_empty() {
                self.line(WARM_UP_TAG, from_until, &second.warm_up)?;
            }
            if second.phase == Phase::Measured {
                let all = &second.latencies;
                for (tag, histogram) in
                    MEASURED_TAGS.into_iter().zip([&all.response, &all.service, &all.lateness])
                {
                    self.line(tag, from_until, histogram)?;
                }
            }
        }
        Ok(())
    }

    /// Both times after the start.
    fn line(
        &mut self,
        tag: &str,
        (from_ns, until_ns): (u64, u64),
        histogram: &Histogram<u64>,
    ) -> io::Result<()> {
        let (start, length) = (Duration::from_nanos(from_ns), Duration::from_nanos(until_ns - from_ns));
        let written = self.0.write_histogram(histogram, start, length, Tag::new(tag));
        written.map_err(|problem| match problem {
            IntervalLogWriterError::IoError(problem) => problem,
            IntervalLogWriterError::SerializeError(problem) => io::Error::other(problem),
        })
    }
}

fn written(
    path: &Path,
    start_utc: Timestamp,
    fill: impl FnOnce(&mut Log) -> io::Result<()>,
) -> Result<(), Error> {
    whole_file::write(path, |out| {
        let start = SystemTime::from(start_utc);
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.add_comment("values in microseconds, 1 to 86400000000, 3 significant digits");
        let builder = builder.with_start_time(start).with_base_time(start);
        fill(&mut Log(builder.begin_log_with(out, &mut serializer)?))
    })
}

fn in_microseconds(counts_ns: &Counts) -> Histogram<u64> {
    let mut all = histogram();
    for &(ns, count) in counts_ns {
        all.record_n(microseconds(ns).min(HIGHEST_US), u64::from(count)).expect("it is at most the highest");
    }
    all
}
