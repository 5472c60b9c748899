//! What one thread records while it runs, handed over in intervals: of a second, or shorter ones once
//! measuring has begun.
//!
//! Response time: answer − due time. Service time: answer − send. Send lateness: send − due time. All in
//! microseconds, rounded to the nearest, in HdrHistograms of 1 µs to 24 h with 3 significant digits.
//!
//! What is measured is told by when a request was due: one that was due in the warm-up is the warm-up's,
//! however late its answer.

use hdrhistogram::Histogram;

use crate::alternation::Alternation;
use crate::slowest::{SlowAnswer, Slowest};

pub const HIGHEST_US: u64 = 24 * 3600 * 1_000_000;
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Length of an interval of the warm-up, and of the others unless another is asked for.
pub const SECOND_NS: u64 = 1_000_000_000;

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
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Latencies<U> {
        Latencies { response: f(self.response), service: f(self.service), lateness: f(self.lateness) }
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
    /// Response times of requests that were due in the warm-up; some of their answers come after it.
    pub warm_up: Counts,
    /// Of requests that were due later.
    pub counts: Latencies<Counts>,
}

#[derive(Debug)]
pub struct Recorder {
    warm_up: Histogram<u32>,
    histograms: Latencies<Histogram<u32>>,
    slowest: Slowest,
    /// What is due from here on is measured.
    measure_ns: u64,
    /// But for what is due while a slice settles, if servers take turns; and the start of the run, from which
    /// they are counted.
    settling: Option<(Alternation, u64)>,
    phase: Phase,
    index: u64,
    start_ns: u64,
    /// Length of an interval once measuring has begun.
    interval_ns: u64,
}

impl Recorder {
    /// `slowest`: how many of the slowest measured answers are kept one by one.
    pub fn new(start_ns: u64, measure_ns: u64, slowest: usize) -> Self {
        let mut histograms = Latencies { response: histogram(), service: histogram(), lateness: histogram() };
        // Written to once before the run, so that no first use of a page delays a request.
        for histogram in [&mut histograms.response, &mut histograms.service, &mut histograms.lateness] {
            histogram.reset();
        }
        let phase = if measure_ns > start_ns { Phase::WarmUp } else { Phase::Measured };
        let (warm_up, slowest) = (histogram(), Slowest::with_room(slowest));
        Self {
            warm_up,
            histograms,
            slowest,
            measure_ns,
            settling: None,
            phase,
            index: 0,
            start_ns,
            interval_ns: SECOND_NS,
        }
    }

    /// What is measured is handed over this often; the warm-up by the second, since nobody looks closer.
    pub fn with_interval(self, interval_ns: u64) -> Self {
        Self { interval_ns, ..self }
    }

    /// What is due while a slice settles is recorded as the warm-up is.
    pub fn leave_out_settling(&mut self, alternation: &Alternation) {
        self.settling = (alternation.slicing().settle_ns > 0).then(|| (alternation.clone(), self.start_ns));
    }

    #[inline]
    pub fn is_measured(&self, due_ns: u64) -> bool {
        let settled =
            |(alternation, start_ns): &(Alternation, u64)| alternation.is_counted(due_ns - start_ns);
        due_ns >= self.measure_ns && self.settling.as_ref().is_none_or(settled)
    }

    #[inline]
    pub fn answered(&mut self, due_ns: u64, sent_ns: u64, now_ns: u64, connection: usize) {
        let response_us = microseconds(now_ns.saturating_sub(due_ns));
        if !self.is_measured(due_ns) {
            self.warm_up.saturating_record(response_us);
            return;
        }
        self.histograms.response.saturating_record(response_us);
        self.histograms.service.saturating_record(microseconds(now_ns.saturating_sub(sent_ns)));
        self.slowest.offer(SlowAnswer { due_ns, sent_ns, answered_ns: now_ns, connection });
    }

    #[inline]
    pub fn sent(&mut self, due_ns: u64, now_ns: u64, requests: u32) {
        if self.is_measured(due_ns) {
            let late_us = microseconds(now_ns.saturating_sub(due_ns)).min(HIGHEST_US);
            let _ = self.histograms.lateness.record_n(late_us, requests);
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn interval_end_ns(&self) -> u64 {
        self.start_ns
            + match self.phase {
                Phase::WarmUp => SECOND_NS,
                Phase::Measured => self.interval_ns,
            }
    }

    /// Hands over what was recorded and starts the next interval at `end_ns`.
    ///
    /// What is due after the warm-up may be answered before its last interval is closed; it is handed over
    /// with the next.
    pub fn close_interval(&mut self, end_ns: u64) -> Interval {
        let warm_up = taken(&mut self.warm_up);
        let counts = match self.phase {
            Phase::WarmUp => Latencies::default(),
            Phase::Measured => Latencies {
                response: taken(&mut self.histograms.response),
                service: taken(&mut self.histograms.service),
                lateness: taken(&mut self.histograms.lateness),
            },
        };
        let interval = Interval {
            phase: self.phase,
            index: self.index,
            start_ns: self.start_ns,
            end_ns,
            warm_up,
            counts,
        };
        self.index += 1;
        self.start_ns = end_ns;
        interval
    }

    /// The intervals of the warm-up are over.
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

/// A histogram for longer than a second, of which one count alone could go past 32 bits: at 150 000 requests
/// a second, nearly all of them late by 0, in eight hours.
///
/// Counts of 64 bits would do, but a hundred steps, the most there may be, have 44 MiB of histograms in each
/// thread as it is. So what is in it is put aside before a count is full, when there is time for that.
#[derive(Debug)]
pub struct LongHistogram {
    histogram: Histogram<u32>,
    aside: Counts,
}

/// Of so many values one more look, a second later, finds no count full.
const MAKES_ROOM_AT: u64 = 1 << 31;

impl Default for LongHistogram {
    fn default() -> Self {
        let mut histogram = histogram();
        // Written to once before the run, so that no first use of a page delays a request.
        histogram.reset();
        Self { histogram, aside: Vec::new() }
    }
}

impl LongHistogram {
    /// A time that is longer than a day is a day.
    #[inline]
    pub fn record(&mut self, ns: u64, times: u32) {
        let _ = self.histogram.record_n(microseconds(ns).min(HIGHEST_US), times);
    }

    /// Called at least once in some seconds.
    pub fn make_room(&mut self) {
        if self.histogram.len() >= MAKES_ROOM_AT {
            self.aside.append(&mut taken(&mut self.histogram));
        }
    }

    /// What was put aside and what is left, so that a value may stand there several times.
    pub fn into_counts(mut self) -> Counts {
        self.aside.append(&mut counts(&self.histogram));
        self.aside
    }
}

/// What a histogram held, and nothing in it any more.
pub fn taken(histogram: &mut Histogram<u32>) -> Counts {
    let counts = counts(histogram);
    if !counts.is_empty() {
        histogram.reset();
    }
    counts
}

/// What a histogram of one thread holds.
pub fn counts(histogram: &Histogram<u32>) -> Counts {
    histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn response_time_counts_from_the_due_time_and_service_time_from_the_send() {
        let mut recorder = Recorder::new(0, 0, 8);
        recorder.sent(MS, 3 * MS, 1);
        recorder.answered(MS, 3 * MS, 10 * MS, 0);
        let interval = recorder.close_interval(SECOND_NS);
        assert_eq!(interval.counts.response, [(9007, 1)]); // 9000 to 9007 count as equal
        assert_eq!(interval.counts.service, [(7003, 1)]);
        assert_eq!(interval.counts.lateness, [(2000, 1)]);
    }

    #[test]
    fn an_interval_holds_only_what_came_in_it() {
        let mut recorder = Recorder::new(0, SECOND_NS, 8);
        recorder.answered(0, 0, 5_000, 0);
        let first = recorder.close_interval(SECOND_NS);
        recorder.start_measuring();
        recorder.answered(SECOND_NS, SECOND_NS, SECOND_NS + 7_000, 0);
        let second = recorder.close_interval(2 * SECOND_NS);
        assert_eq!((first.phase, first.index, first.warm_up), (Phase::WarmUp, 0, vec![(5, 1)]));
        assert_eq!((second.phase, second.index, second.counts.response), (Phase::Measured, 0, vec![(7, 1)]));
        assert_eq!((second.start_ns, second.end_ns), (SECOND_NS, 2 * SECOND_NS));
        assert!(second.warm_up.is_empty());
    }

    #[test]
    fn what_is_measured_is_cut_finer_and_the_warm_up_by_the_second() {
        let mut recorder = Recorder::new(0, SECOND_NS, 8).with_interval(250 * MS);
        assert_eq!(recorder.interval_end_ns(), SECOND_NS);
        recorder.close_interval(SECOND_NS);
        recorder.start_measuring();
        assert_eq!(recorder.interval_end_ns(), SECOND_NS + 250 * MS);
    }

    #[test]
    fn what_was_due_in_the_warm_up_is_the_warm_ups_however_late_it_was_sent_and_answered() {
        let mut recorder = Recorder::new(0, 100 * MS, 8);
        recorder.close_interval(100 * MS);
        recorder.start_measuring();
        recorder.sent(99 * MS, 150 * MS, 1);
        recorder.answered(99 * MS, 150 * MS, 199 * MS, 0);
        let interval = recorder.close_interval(SECOND_NS);
        assert_eq!(interval.warm_up.len(), 1);
        assert!(interval.counts.response.is_empty() && interval.counts.service.is_empty());
        assert!(interval.counts.lateness.is_empty());
    }

    #[test]
    fn what_was_due_after_the_warm_up_is_measured_even_if_nobody_has_ended_the_warm_up_yet() {
        let mut recorder = Recorder::new(0, 100 * MS, 8);
        recorder.answered(100 * MS, 100 * MS, 101 * MS, 0);
        assert!(recorder.close_interval(100 * MS).counts.response.is_empty());
        recorder.start_measuring();
        assert_eq!(recorder.close_interval(SECOND_NS).counts.response, [(1000, 1)]);
    }

    #[test]
    fn the_slowest_are_those_of_the_measured_answers() {
        let mut recorder = Recorder::new(0, 1, 8);
        recorder.answered(0, 0, 9 * MS, 3);
        recorder.answered(1, 2, 5, 4);
        let kept: Vec<SlowAnswer> = recorder.into_slowest().into_answers().collect();
        assert_eq!(kept, [SlowAnswer { due_ns: 1, sent_ns: 2, answered_ns: 5, connection: 4 }]);
    }

    #[test]
    fn a_run_of_many_hours_has_more_values_than_a_count_of_32_bits_holds() {
        let (mut long, mut expected) = (LongHistogram::default(), 0);
        for _ in 0..10 {
            long.record(0, 1 << 31);
            long.record(400, u32::MAX >> 2);
            expected += (1 << 31) + u64::from(u32::MAX >> 2);
            long.make_room();
        }
        long.record(5_000, 1);
        let mut all = histogram();
        add_counts(&mut all, &long.into_counts());
        assert_eq!((all.len(), all.count_at(5), expected > u64::from(u32::MAX)), (expected + 1, 1, true));
    }

    #[test]
    fn values_over_a_day_are_kept_as_a_day() {
        let mut recorder = Recorder::new(0, 0, 8);
        recorder.answered(0, 0, u64::MAX / 2, 0);
        recorder.sent(0, u64::MAX / 2, 1);
        let interval = recorder.close_interval(1);
        assert_eq!(interval.counts.response[0].1, 1);
        assert_eq!(interval.counts.lateness[0].1, 1);
    }
}
