//! What a run found, merged over its threads: all that the reports print.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use jiff::Timestamp;

use crate::opening_times::OpeningTimes;
use crate::own_lateness::OwnHistograms;
use crate::reconnecting::Reconnecting;
use crate::recorder::{Interval, Latencies, Phase, add_counts, histogram};
use crate::sample::SampledRequest;
use crate::slices::SliceCounts;
use crate::slowest::SlowAnswer;
use crate::tally::Tally;
use crate::thread_use::ThreadUse;
use crate::unanswered::AtLeast;
use crate::verdict::Verdict;

/// One interval of a phase, over all threads: a second, or what `--interval` says.
#[derive(Debug)]
pub struct Second {
    pub phase: Phase,
    /// Nanoseconds after the start of the run.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Response times of requests that were due in the warm-up.
    pub warm_up: Histogram<u64>,
    pub latencies: Latencies<Histogram<u64>>,
}

#[derive(Debug)]
pub struct RunResult {
    pub tally: Tally,
    pub latencies: Latencies<Histogram<u64>>,
    /// Sampled requests per second of single threads.
    pub rates_rps: Histogram<u64>,
    pub own_lateness: OwnHistograms,
    /// Connections that were open when the schedule began.
    pub open_at_start: usize,
    pub reconnecting: Reconnecting,
    pub opening_times: OpeningTimes,
    /// How many connections have been open at each endpoint.
    pub endpoints: BTreeMap<String, u64>,
    /// Response times, those without an answer among them.
    pub at_least: AtLeast,
    /// In the order in which they were due.
    pub slowest: Vec<SlowAnswer>,
    /// None unless asked for.
    pub sample: Option<Vec<SampledRequest>>,
    /// Empty without two servers in turn.
    pub slices: Vec<SliceCounts>,
    /// Empty at one rate.
    pub steps: Vec<StepResult>,
    pub threads: Vec<ThreadUse>,
    pub unexpected: u64,
    /// How long requests were sent.
    pub duration_ns: u64,
    pub warm_up_ns: u64,
    /// Monotonic.
    pub start_ns: u64,
    pub offered_rate_rps: Option<f64>,
    pub start_utc: Timestamp,
    pub measure_start_utc: Timestamp,
    pub stop_utc: Timestamp,
    pub verdict: Verdict,
}

/// What was found in one step of a rate that changes.
#[derive(Debug)]
pub struct StepResult {
    /// From 1.
    pub number: usize,
    /// After the start of the run, as the end, which is earlier than planned if the run was called off.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Of this part of the load.
    pub offered_rate_rps: f64,
    /// Answers within the step, whatever step their requests are of.
    pub achieved_rate_rps: f64,
    pub sent: u64,
    pub completed: u64,
    /// Of them those that came behind its end.
    pub late: u64,
    pub latencies: Latencies<Histogram<u64>>,
    pub own_lateness: Histogram<u64>,
    pub at_least: AtLeast,
    pub verdict: Verdict,
}

impl RunResult {
    /// Answers per second of the measured window, whenever they were due; 0 if there was none.
    pub fn achieved_rate_rps(&self) -> f64 {
        achieved_rate_rps(&self.tally, self.measured_ns())
    }

    pub fn measured_ns(&self) -> u64 {
        self.duration_ns.saturating_sub(self.warm_up_ns)
    }
}

pub fn achieved_rate_rps(tally: &Tally, measured_ns: u64) -> f64 {
    if measured_ns == 0 { 0.0 } else { tally.completed_in_window as f64 / (measured_ns as f64 / 1e9) }
}

/// A histogram of requests per second: 4 digits, so that what is printed is exact.
pub fn rate_histogram(samples: &BTreeMap<u64, u64>) -> Histogram<u64> {
    let mut rates = Histogram::new_with_bounds(1, 1_000_000_000, 4).expect("the bounds are valid");
    for (&rate, &count) in samples {
        let _ = rates.record_n(rate.min(1_000_000_000), count);
    }
    rates
}

/// Intervals of all threads, those of the same time merged.
///
/// They are kept as counts until the run is over, so that merging takes no time from a thread that is
/// measuring.
#[derive(Debug, Default)]
pub struct Intervals {
    kept: BTreeMap<(Phase, u64), Vec<Interval>>,
}

impl Intervals {
    pub fn add(&mut self, interval: Interval) {
        self.kept.entry((interval.phase, interval.index)).or_default().push(interval);
    }

    /// All of them in order, the warm-up's first.
    pub fn seconds(&self, start_ns: u64) -> impl Iterator<Item = Second> {
        self.kept.iter().map(move |(&(phase, _), parts)| {
            let mut latencies =
                Latencies { response: histogram(), service: histogram(), lateness: histogram() };
            let mut warm_up = histogram();
            for part in parts {
                add_counts(&mut warm_up, &part.warm_up);
                add_counts(&mut latencies.response, &part.counts.response);
                add_counts(&mut latencies.service, &part.counts.service);
                add_counts(&mut latencies.lateness, &part.counts.lateness);
            }
            let start = parts.iter().map(|part| part.start_ns).min().unwrap_or(start_ns);
            let end = parts.iter().map(|part| part.end_ns).max().unwrap_or(start_ns);
            Second {
                phase,
                start_ns: start.saturating_sub(start_ns),
                end_ns: end.saturating_sub(start_ns),
                warm_up,
                latencies,
            }
        })
    }

    /// All that was measured, the warm-up left out.
    pub fn measured(&self) -> Latencies<Histogram<u64>> {
        let mut total = Latencies { response: histogram(), service: histogram(), lateness: histogram() };
        for part in
            self.kept.iter().filter(|((phase, _), _)| *phase == Phase::Measured).flat_map(|(_, parts)| parts)
        {
            add_counts(&mut total.response, &part.counts.response);
            add_counts(&mut total.service, &part.counts.service);
            add_counts(&mut total.lateness, &part.counts.lateness);
        }
        total
    }
}
