//! The HdrHistogram interval log (V2): a line per second and kind of latency, values in microseconds.
//!
//! Tags are `response`, `service` and `lateness`, whose histograms add up to those of the JSON result; and, for what came before
//! measuring began, `warmup_response` alone: a server that still warms up is slow in every way, and three such histograms a second
//! made half of a short run's log. An answer stands in the second in which it came.

use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::whole_file;
use crate::error::Error;
use crate::recorder::Phase;
use crate::result::Second;

pub fn write(path: &Path, start_utc: jiff::Timestamp, seconds: impl Iterator<Item = Second>) -> Result<(), Error> {
    whole_file::write(path, |out| {
        let start = SystemTime::from(start_utc);
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.add_comment("values in microseconds, 1 to 86400000000, 3 significant digits");
        let mut log = builder.with_start_time(start).with_base_time(start).begin_log_with(out, &mut serializer)?;
        for second in seconds {
            let all = &second.latencies;
            let warm_up = ("warmup_response", &second.warm_up);
            let measured = [("response", &all.response), ("service", &all.service), ("lateness", &all.lateness)];
            let tagged: Vec<_> = match second.phase {
                Phase::WarmUp => vec![warm_up],
                Phase::Measured if second.warm_up.is_empty() => measured.into(),
                Phase::Measured => [&[warm_up][..], &measured].concat(),
            };
            let (start, length) = (Duration::from_nanos(second.start_ns), Duration::from_nanos(second.end_ns - second.start_ns));
            for (tag, histogram) in tagged {
                let written = log.write_histogram(histogram, start, length, Tag::new(tag));
                written.map_err(|problem| std::io::Error::other(format!("{problem:?}")))?;
            }
        }
        Ok(())
    })
}
