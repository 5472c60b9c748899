//! The HdrHistogram interval log (V2): a line per second and kind of latency, values in microseconds.
//!
//! Tags are `response`, `service` and `lateness`, whose histograms add up to those of the JSON result; and,
//! for what came before measuring began, `warmup_response` alone: a server that still warms up is slow in
//! every way, and three such histograms a second made half of a short run's log. An answer stands in the
//! second in which it came. With two servers in turn there is a line for each slice and kind besides, of what
//! was due in it; with a rate in steps one for each step (`step_1_response`, `step_1_service`).

use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::json_slices::measured_slices;
use super::whole_file;
use crate::error::Error;
use crate::plan::{Alternate, Plan};
use crate::recorder::{Counts, HIGHEST_US, Phase, histogram, microseconds};
use crate::result::{RunResult, Second};

/// Of a slice of two servers in turn: its tag begins with this and ends in `_response` or `_service`.
const SLICE_TAGS: [[&str; 2]; 2] =
    [["slice_A_response", "slice_A_service"], ["slice_B_response", "slice_B_service"]];

pub fn write(
    path: &Path,
    plan: &Plan,
    result: &RunResult,
    seconds: impl Iterator<Item = Second>,
) -> Result<(), Error> {
    whole_file::write(path, |out| {
        let start = SystemTime::from(result.start_utc);
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.add_comment("values in microseconds, 1 to 86400000000, 3 significant digits");
        let mut log =
            builder.with_start_time(start).with_base_time(start).begin_log_with(out, &mut serializer)?;
        for second in seconds {
            let all = &second.latencies;
            let warm_up = ("warmup_response", &second.warm_up);
            let measured =
                [("response", &all.response), ("service", &all.service), ("lateness", &all.lateness)];
            let tagged: Vec<_> = match second.phase {
                Phase::WarmUp => vec![warm_up],
                Phase::Measured if second.warm_up.is_empty() => measured.into(),
                Phase::Measured => [&[warm_up][..], &measured].concat(),
            };
            let (start, length) = (
                Duration::from_nanos(second.start_ns),
                Duration::from_nanos(second.end_ns - second.start_ns),
            );
            for (tag, histogram) in tagged {
                let written = log.write_histogram(histogram, start, length, Tag::new(tag));
                written.map_err(|problem| std::io::Error::other(format!("{problem:?}")))?;
            }
        }
        for step in &result.steps {
            let (start, length) =
                (Duration::from_nanos(step.start_ns), Duration::from_nanos(step.end_ns - step.start_ns));
            for (kind, histogram) in
                [("response", &step.latencies.response), ("service", &step.latencies.service)]
            {
                let tag = format!("step_{}_{kind}", step.number);
                let written = log.write_histogram(histogram, start, length, Tag::new(&tag));
                written.map_err(|problem| std::io::Error::other(format!("{problem:?}")))?;
            }
        }
        let Some(Alternate { alternation, .. }) = &plan.alternate else { return Ok(()) };
        for slice in measured_slices(alternation, result) {
            let counts = &result.slices[slice];
            let tags = SLICE_TAGS[alternation.server(slice)];
            for (tag, counts) in tags.into_iter().zip([&counts.response_ns, &counts.service_ns]) {
                let start = Duration::from_nanos(alternation.counted_from_ns(slice));
                let length = Duration::from_nanos(alternation.counted_ns());
                let written = log.write_histogram(&in_microseconds(counts), start, length, Tag::new(tag));
                written.map_err(|problem| std::io::Error::other(format!("{problem:?}")))?;
            }
        }
        Ok(())
    })
}

fn in_microseconds(counts_ns: &Counts) -> Histogram<u64> {
    let mut all = histogram();
    for &(ns, count) in counts_ns {
        all.record_n(microseconds(ns).min(HIGHEST_US), u64::from(count)).expect("it is at most the highest");
    }
    all
}
