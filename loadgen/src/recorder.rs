//! What one thread records while it runs, handed over in intervals of a second.
//!
//! Response time: answer − due time. Service time: answer − send. Send lateness: send − due time. All in microseconds, rounded
//! to the nearest, in HdrHistograms of 1 µs to 24 h with 3 significant digits.

use hdrhistogram::Histogram;

use crate::slowest::{SlowAnswer, Slowest};

pub const HIGHEST_US: u64 = 24 * 3600 * 1_000_000;
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Length of an interval.
pub const INTERVAL_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    WarmUp,
    Measured,
}

/// A histogram of the project's one shape.
pub fn histogram<T: hdrhistogram::Counter>() -> Histogram<T> {
    Histogram::new_with_bounds(1, HIGHEST_US, SIGNIFICANT_DIGITS).expect("the bounds are valid")
}

/// One value for each kind of latency.
#[derive(Clone, Debug, Default)]
pub struct Latencies<T> {
    pub response: T,
    pub service: T,
    pub lateness: T,
}

impl<T> Latencies<T> {
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> Latencies<U> {
        Latencies { response: f(&self.response), service: f(&self.service), lateness: f(&self.lateness) }
    }
}

/// Values and how often each came: a histogram with its zeros left out.
pub type Counts = Vec<(u64, u32)>;

/// What a thread recorded in one interval.
#[derive(Debug)]
pub struct Interval {
    pub phase: Phase,
    /// Number of this interval in its phase.
    pub index: u64,
    /// Monotonic.
    pub start_ns: u64,
    pub end_ns: u64,
    pub counts: Latencies<Counts>,
}

#[derive(Debug)]
pub struct Recorder {
    histograms: Latencies<Histogram<u32>>,
    slowest: Slowest,
    phase: Phase,
    index: u64,
    start_ns: u64,
}

impl Recorder {
    /// `slowest`: how many of the slowest measured answers are kept one by one.
    pub fn new(phase: Phase, start_ns: u64, slowest: usize) -> Self {
        let mut histograms = Latencies { response: histogram(), service: histogram(), lateness: histogram() };
        // Written to once before the run, so that no first use of a page delays a request.
        for histogram in [&mut histograms.response, &mut histograms.service, &mut histograms.lateness] {
            histogram.reset();
        }
        Self { histograms, slowest: Slowest::with_room(slowest), phase, index: 0, start_ns }
    }

    #[inline]
    pub fn answered(&mut self, due_ns: u64, sent_ns: u64, now_ns: u64, connection: usize) {
        self.histograms.response.saturating_record(microseconds(now_ns.saturating_sub(due_ns)));
        self.histograms.service.saturating_record(microseconds(now_ns.saturating_sub(sent_ns)));
        if self.phase == Phase::Measured {
            self.slowest.offer(SlowAnswer { due_ns, sent_ns, answered_ns: now_ns, connection });
        }
    }

    #[inline]
    pub fn sent(&mut self, due_ns: u64, now_ns: u64, requests: u32) {
        let _ = self.histograms.lateness.record_n(microseconds(now_ns.saturating_sub(due_ns)).min(HIGHEST_US), requests);
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn interval_end_ns(&self) -> u64 {
        self.start_ns + INTERVAL_NS
    }

    /// Hands over what was recorded and starts the next interval at `end_ns`.
    pub fn close_interval(&mut self, end_ns: u64) -> Interval {
        let counts = self.histograms.map(counts);
        self.histograms.response.reset();
        self.histograms.service.reset();
        self.histograms.lateness.reset();
        let interval = Interval { phase: self.phase, index: self.index, start_ns: self.start_ns, end_ns, counts };
        self.index += 1;
        self.start_ns = end_ns;
        interval
    }

    /// From here on everything is reported.
    pub fn start_measuring(&mut self) {
        self.phase = Phase::Measured;
        self.index = 0;
    }

    pub fn into_slowest(self) -> Slowest {
        self.slowest
    }
}

#[inline]
pub fn microseconds(ns: u64) -> u64 {
    (ns + 500) / 1000
}

pub fn add_counts(histogram: &mut Histogram<u64>, counts: &Counts) {
    for &(value, count) in counts {
        histogram.record_n(value, u64::from(count)).expect("values were recorded within the same bounds");
    }
}

/// What a histogram of one thread holds.
pub fn counts(histogram: &Histogram<u32>) -> Counts {
    histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_time_counts_from_the_due_time_and_service_time_from_the_send() {
        let mut recorder = Recorder::new(Phase::Measured, 0, 8);
        recorder.sent(1_000_000, 3_000_000, 1);
        recorder.answered(1_000_000, 3_000_000, 10_000_000, 0);
        let interval = recorder.close_interval(1_000_000_000);
        assert_eq!(interval.counts.response, [(9007, 1)]); // 9000 to 9007 count as equal
        assert_eq!(interval.counts.service, [(7003, 1)]);
        assert_eq!(interval.counts.lateness, [(2000, 1)]);
    }

    #[test]
    fn an_interval_holds_only_what_came_in_it() {
        let mut recorder = Recorder::new(Phase::WarmUp, 0, 8);
        recorder.answered(0, 0, 5_000, 0);
        let first = recorder.close_interval(INTERVAL_NS);
        recorder.start_measuring();
        recorder.answered(0, 0, 7_000, 0);
        let second = recorder.close_interval(2 * INTERVAL_NS);
        assert_eq!((first.phase, first.index, first.counts.response), (Phase::WarmUp, 0, vec![(5, 1)]));
        assert_eq!((second.phase, second.index, second.counts.response), (Phase::Measured, 0, vec![(7, 1)]));
        assert_eq!((second.start_ns, second.end_ns), (INTERVAL_NS, 2 * INTERVAL_NS));
    }

    #[test]
    fn the_slowest_are_those_of_the_measured_answers() {
        let mut recorder = Recorder::new(Phase::WarmUp, 0, 8);
        recorder.answered(0, 0, 9_000_000, 3);
        recorder.start_measuring();
        recorder.answered(1, 2, 5, 4);
        let kept: Vec<SlowAnswer> = recorder.into_slowest().into_answers().collect();
        assert_eq!(kept, [SlowAnswer { due_ns: 1, sent_ns: 2, answered_ns: 5, connection: 4 }]);
    }

    #[test]
    fn values_over_a_day_are_kept_as_a_day() {
        let mut recorder = Recorder::new(Phase::Measured, 0, 8);
        recorder.answered(0, 0, u64::MAX / 2, 0);
        recorder.sent(0, u64::MAX / 2, 1);
        let interval = recorder.close_interval(1);
        assert_eq!(interval.counts.response[0].1, 1);
        assert_eq!(interval.counts.lateness[0].1, 1);
    }
}
