//! What one thread finds out: counts, latencies in intervals of time, samples of its rate. Pure: it is
//! told what happened and when, and touches no clock and no socket.
//!
//! Times are monotonic nanoseconds.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::alternation::{Alternation, Server};
use crate::errors::ErrorKind;
use crate::exchange::{Answered, Sent};
use crate::own_lateness::{OwnCounts, OwnLatenesses};
use crate::recorder::{Interval, Phase, Recorder, SECOND_NS, add_counts, histogram};
use crate::sample::Sample;
use crate::slices::{SliceCounts, SliceRecorder};
use crate::slowest::Slowest;
use crate::statistics;
use crate::step_recorder::{StepCounts, StepRecorder};
use crate::steps::Steps;
use crate::tally::Tally;
use crate::unanswered::Unanswered;

/// Who looks so long behind the end of an interval was away, and what it finds is no part of that one. For
/// less no request is to wait until an interval is closed.
const AWAY_NS: u64 = 1_000_000;

/// Highest status that is counted by itself, and one more.
const STATUSES: usize = 1000;

/// When is measured, and what is too slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub start_ns: u64,
    /// What is due earlier than this after the start is the warm-up's.
    pub warm_up_ns: u64,
    /// How long requests are sent.
    pub duration_ns: u64,
    pub timeout_ns: u64,
    /// How late a request may leave and still be in time.
    pub in_time_ns: u64,
}

impl Window {
    fn measure_ns(&self) -> u64 {
        self.start_ns + self.warm_up_ns
    }

    fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }
}

/// What the end of the warm-up tells: the mean response time in it, and how often the rate is sampled from
/// now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    pub mean_us: f64,
    pub sample_every_ms: u64,
}

/// Samples this thread's rate, for the Req/Sec line of wrk2's table.
#[derive(Debug)]
struct Sampler {
    every_ns: u64,
    since_ns: u64,
    completed: u64,
}

#[derive(Debug)]
pub struct Measurement {
    window: Window,
    sending_has_ended: bool,
    pub tally: Tally,
    /// None unless asked for.
    pub sample: Option<Sample>,
    statuses: Box<[u64; STATUSES]>,
    recorder: Recorder,
    /// How long an interval of what is measured lasts.
    interval_ns: u64,
    /// What was recorded in those that are over, kept until the end: telling anybody would wake them.
    intervals: Vec<Interval>,
    /// How many of them [`Measurement::newly_closed`] has told of.
    told: usize,
    /// None without two servers in turn.
    slices: Option<SliceRecorder>,
    /// None at one rate.
    steps: Option<StepRecorder>,
    own_lateness: OwnLatenesses,
    unanswered: Unanswered,
    /// See [`Measured::kept`].
    kept: u64,
    /// See [`Measured::busy_ns`].
    busy_ns: u64,
    warm_up_responses: Histogram<u64>,
    rates_rps: BTreeMap<u64, u64>,
    sampler: Option<Sampler>,
}

/// What a thread found in all.
#[derive(Debug)]
pub struct Measured {
    pub tally: Tally,
    /// None unless asked for.
    pub sample: Option<Sample>,
    pub intervals: Vec<Interval>,
    /// Empty without two servers in turn.
    pub slices: Vec<SliceCounts>,
    /// Empty at one rate.
    pub steps: Vec<StepCounts>,
    pub slowest: Slowest,
    /// Sampled rates in requests per second, and how often each was seen.
    pub rates_rps: BTreeMap<u64, u64>,
    /// What this thread itself made sends late by.
    pub own_lateness: OwnCounts,
    /// Lower bounds of the response times of measured requests that got no answer.
    pub unanswered: Histogram<u64>,
    /// Of the measured requests those answered before the end of sending, or behind it if they had left in
    /// time.
    pub kept: u64,
    /// Time that all connections together waited for answers in the measured window; with two servers in turn
    /// each in its own server's slices.
    pub busy_ns: u64,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            window: Window::default(),
            sending_has_ended: false,
            tally: Tally::default(),
            sample: None,
            statuses: Box::new([0; STATUSES]),
            recorder: Recorder::new(0, 1, 0),
            interval_ns: SECOND_NS,
            intervals: Vec::new(),
            told: 0,
            slices: None,
            steps: None,
            own_lateness: OwnLatenesses::default(),
            unanswered: Unanswered::default(),
            kept: 0,
            busy_ns: 0,
            warm_up_responses: histogram(),
            rates_rps: BTreeMap::new(),
            sampler: None,
        }
    }
}

impl Measurement {
    /// The schedule starts; what was counted before (connections that could not be opened) stays counted.
    pub fn start(&mut self, window: Window, slowest: usize) {
        self.window = window;
        self.recorder =
            Recorder::new(window.start_ns, window.measure_ns(), slowest).with_interval(self.interval_ns);
        if let Some(steps) = &mut self.steps {
            steps.start(window.start_ns, window.in_time_ns);
        }
    }

    /// What is found in each slice is told apart from here on.
    pub fn tell_slices(&mut self, alternation: &Alternation) {
        let Window { start_ns, .. } = self.window;
        self.recorder.leave_out_settling(alternation);
        self.slices = Some(SliceRecorder::new(alternation.clone(), start_ns, self.window.measure_ns()));
    }

    /// What is found in each step will be told apart, and so is each interval; said before the start.
    pub fn planned(steps: Option<&Steps>, interval_ns: u64) -> Self {
        Self { steps: steps.cloned().map(StepRecorder::new), interval_ns, ..Self::default() }
    }

    #[inline]
    pub fn sent(&mut self, sent: &Sent) {
        self.close_what_is_long_over(sent.sent_ns);
        self.tally.sent += u64::from(sent.requests);
        self.recorder.sent(sent.due_ns, sent.sent_ns, sent.requests);
        if let Some(slices) = &mut self.slices {
            slices.sent(sent.due_ns, sent.requests);
        }
        if let Some(steps) = &mut self.steps {
            steps.sent(sent);
        }
        if let Some(own) = sent.own_late.filter(|_| self.recorder.is_measured(sent.due_ns)) {
            self.own_lateness.record(own, sent.requests);
        }
    }

    #[inline]
    pub fn answered(&mut self, answer: &Answered) {
        let Answered { due_ns, sent_ns, now_ns, connection, status, recorded } = *answer;
        self.close_what_is_long_over(now_ns);
        self.tally.completed += 1;
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
        if recorded {
            self.recorder.answered(due_ns, sent_ns, now_ns, connection);
        }
        if let Some(slices) = &mut self.slices {
            slices.answered(answer);
        }
        if let Some(steps) = &mut self.steps {
            steps.answered(answer);
        }
        if self.recorder.is_measured(due_ns) {
            self.tally.measured += 1;
            let in_time = || sent_ns.saturating_sub(due_ns) <= self.window.in_time_ns;
            self.kept += u64::from(now_ns < self.window.end_ns() || in_time());
        }
        if (self.window.measure_ns()..self.window.end_ns()).contains(&now_ns) {
            self.tally.completed_in_window += 1;
        }
        if now_ns.saturating_sub(sent_ns) > self.window.timeout_ns {
            self.timed_out("answered after the timeout", due_ns, 1);
        }
    }

    /// What went wrong is also its server's, and its slice's: that of its request, or of when it happened if
    /// there was none.
    pub fn failed(&mut self, kind: ErrorKind, server: Server, at_ns: u64) {
        if let Some(slices) = &mut self.slices {
            slices.failed(kind, server, at_ns);
        }
    }

    /// Requests that were due then took longer than the timeout.
    pub fn timed_out(&mut self, why: &str, due_ns: u64, requests: u64) {
        self.tally.errors.count(ErrorKind::Timeout, why, "", requests);
        if let Some(slices) = &mut self.slices {
            slices.timed_out(due_ns, requests);
        }
    }

    /// A connection to this server waited for answers from then to then.
    #[inline]
    pub fn connection_was_busy(&mut self, server: Server, from_ns: u64, until_ns: u64) {
        if let Some(steps) = &mut self.steps {
            steps.connection_was_busy(from_ns, until_ns);
        }
        let (from_ns, until_ns) = (from_ns.max(self.window.measure_ns()), until_ns.min(self.window.end_ns()));
        self.busy_ns += match &self.slices {
            Some(slices) if from_ns < until_ns => slices.turns_between_ns(server, from_ns, until_ns),
            _ => until_ns.saturating_sub(from_ns),
        };
    }

    /// Requests that were due then will get no answer.
    pub fn unanswered(&mut self, due_ns: u64, requests: u64) {
        if self.recorder.is_measured(due_ns) {
            self.unanswered.add(due_ns, requests);
        }
        if let Some(slices) = &mut self.slices {
            slices.unanswered(due_ns, requests);
        }
        if let Some(steps) = &mut self.steps {
            steps.unanswered(due_ns, requests);
        }
    }

    /// Sending ended then: at its time, or earlier if the run was called off.
    pub fn sending_ended(&mut self, at_ns: u64) {
        self.window.duration_ns = at_ns.saturating_sub(self.window.start_ns);
        self.sending_has_ended = true;
        if let Some(steps) = &mut self.steps {
            steps.sending_ended(at_ns);
        }
    }

    /// Ends intervals and the warm-up when their time has come, and samples the rate. `ending`: nothing more
    /// is sent.
    pub fn keep(&mut self, now: u64, ending: bool) -> Option<Calibration> {
        let mut calibration = None;
        if self.recorder.phase() == Phase::WarmUp {
            if now >= self.window.measure_ns() {
                self.close_interval(self.window.measure_ns());
                self.recorder.start_measuring();
                calibration = Some(self.calibrate(now));
            } else if now >= self.recorder.interval_end_ns() {
                self.close_interval(self.recorder.interval_end_ns());
            }
        }
        if !ending {
            self.close_what_is_over(now);
            self.sample(now);
        }
        if let Some(slices) = &mut self.slices {
            slices.keep(now);
        }
        if let Some(steps) = &mut self.steps {
            steps.keep(now);
        }
        self.own_lateness.make_room();
        calibration
    }

    fn close_what_is_over(&mut self, now: u64) {
        while self.recorder.phase() == Phase::Measured && now >= self.recorder.interval_end_ns() {
            self.close_interval(self.recorder.interval_end_ns());
        }
    }

    /// Before what came then is recorded.
    #[inline]
    fn close_what_is_long_over(&mut self, now: u64) {
        if now >= self.recorder.interval_end_ns() + AWAY_NS && !self.sending_has_ended {
            self.close_what_is_over(now);
        }
    }

    /// When [`Measurement::keep`] has something to do next.
    pub fn next_ns(&self, ending: bool) -> u64 {
        let mut next = self.slices.as_ref().filter(|_| !ending).map_or(u64::MAX, SliceRecorder::next_ns);
        if !ending {
            next = next.min(self.recorder.interval_end_ns());
        }
        if self.recorder.phase() == Phase::WarmUp {
            next = next.min(self.window.measure_ns());
        }
        if let Some(sampler) = self.sampler.as_ref().filter(|_| !ending) {
            next = next.min(sampler.since_ns + sampler.every_ns);
        }
        next
    }

    pub fn close_interval(&mut self, end_ns: u64) {
        let interval = self.recorder.close_interval(end_ns);
        if interval.phase == Phase::WarmUp {
            add_counts(&mut self.warm_up_responses, &interval.warm_up);
        }
        self.intervals.push(interval);
    }

    /// The intervals that are over, each once.
    pub fn newly_closed(&mut self) -> &[Interval] {
        let before = std::mem::replace(&mut self.told, self.intervals.len());
        &self.intervals[before..]
    }

    /// wrk2 samples Req/Sec twice in the 90th percentile of the response times seen so far, and not more
    /// often than each 10 ms.
    fn calibrate(&mut self, now: u64) -> Calibration {
        let p90_us = statistics::percentile(&self.warm_up_responses, 90.0);
        let sample_every_ms = (p90_us as f64 / 1000.0 * 2.0).max(10.0) as u64;
        self.sampler = Some(Sampler {
            every_ns: sample_every_ms * 1_000_000,
            since_ns: now,
            completed: self.tally.completed,
        });
        Calibration { mean_us: statistics::mean(&self.warm_up_responses), sample_every_ms }
    }

    fn sample(&mut self, now: u64) {
        let Some(sampler) = &mut self.sampler else { return };
        let elapsed_ns = now.saturating_sub(sampler.since_ns);
        if elapsed_ns >= sampler.every_ns {
            let rate = (self.tally.completed - sampler.completed) as f64 / elapsed_ns as f64 * 1e9;
            *self.rates_rps.entry(rate as u64).or_default() += 1;
            (sampler.since_ns, sampler.completed) = (now, self.tally.completed);
        }
    }

    /// `given_up_ns`: until when answers were awaited.
    pub fn finish(mut self, given_up_ns: u64) -> Measured {
        self.close_interval(given_up_ns);
        let seen = (0u16..).zip(self.statuses.iter()).filter(|&(_, &count)| count > 0);
        self.tally.answers = seen.map(|(status, &count)| (status, count)).collect();
        Measured {
            tally: self.tally,
            sample: self.sample,
            intervals: self.intervals,
            slices: self.slices.map_or_else(Vec::new, SliceRecorder::finish),
            steps: self.steps.map_or_else(Vec::new, |steps| steps.finish(given_up_ns)),
            slowest: self.recorder.into_slowest(),
            rates_rps: self.rates_rps,
            own_lateness: self.own_lateness.into_counts(),
            unanswered: self.unanswered.at_least(given_up_ns),
            kept: self.kept,
            busy_ns: self.busy_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternation::tests::slicing;

    const MS: u64 = 1_000_000;

    fn started(warm_up_ns: u64) -> Measurement {
        let mut measurement = Measurement::default();
        measurement.start(
            Window { start_ns: 0, warm_up_ns, duration_ns: 2000 * MS, timeout_ns: 100 * MS, in_time_ns: MS },
            8,
        );
        measurement
    }

    fn answer(due_ns: u64, now_ns: u64) -> Answered {
        Answered { due_ns, sent_ns: due_ns, now_ns, connection: 0, status: 200, recorded: true }
    }

    #[test]
    fn what_was_counted_before_the_start_stays_counted() {
        let mut measurement = Measurement::default();
        measurement.tally.errors.count(ErrorKind::Connect, "refused", "", 2);
        measurement.start(Window::default(), 0);
        assert_eq!(measurement.finish(0).tally.errors.connect, 2);
    }

    #[test]
    fn an_answer_over_the_timeout_is_counted_once_and_recorded() {
        let mut measurement = started(0);
        measurement.answered(&answer(0, 100 * MS));
        measurement.answered(&answer(0, 101 * MS));
        let measured = measurement.finish(1000 * MS);
        assert_eq!((measured.tally.errors.timeout, measured.tally.completed), (1, 2));
        assert_eq!(measured.intervals[0].counts.response.len(), 2);
    }

    #[test]
    fn statuses_are_counted_one_by_one_and_those_of_no_standard_as_999() {
        let mut measurement = started(0);
        for status in [200, 404, 200, 5000] {
            measurement.answered(&Answered { status, ..answer(0, MS) });
        }
        assert_eq!(measurement.finish(0).tally.answers, BTreeMap::from([(200, 2), (404, 1), (999, 1)]));
    }

    #[test]
    fn an_answer_of_a_batch_may_be_counted_and_not_recorded() {
        let mut measurement = started(0);
        measurement.answered(&Answered { recorded: false, ..answer(0, MS) });
        let measured = measurement.finish(1000 * MS);
        assert_eq!((measured.tally.completed, measured.tally.measured), (1, 1));
        assert!(measured.intervals[0].counts.response.is_empty());
    }

    #[test]
    fn a_late_look_closes_every_second_that_is_over() {
        let mut measurement = started(0);
        assert_eq!(measurement.next_ns(false), 1000 * MS);
        measurement.keep(3500 * MS, false);
        assert_eq!(measurement.next_ns(false), 4000 * MS);
        let closed: Vec<u64> = measurement.newly_closed().iter().map(|interval| interval.index).collect();
        assert_eq!(closed, [0, 1, 2]);
        assert!(measurement.newly_closed().is_empty());
        assert_eq!(measurement.finish(3600 * MS).intervals.len(), 4);
    }

    #[test]
    fn what_is_found_after_an_absence_is_in_the_interval_in_which_it_came() {
        let mut measurement = started(0);
        measurement.answered(&answer(500 * MS, 1000 * MS));
        let (due_ns, sent_ns) = (800 * MS, 2300 * MS);
        measurement.sent(&Sent { due_ns, sent_ns, requests: 1, own_late: None });
        measurement.answered(&answer(900 * MS, 2300 * MS));
        measurement.sending_ended(2400 * MS);
        measurement.answered(&answer(900 * MS, 5000 * MS));
        let found = measurement.finish(5000 * MS).intervals.into_iter();
        let found = found.map(|one| (one.end_ns / MS, one.counts.response.len(), one.counts.lateness.len()));
        assert_eq!(found.collect::<Vec<_>>(), [(1000, 1, 0), (2000, 0, 0), (5000, 2, 1)]);
    }

    #[test]
    fn shorter_intervals_begin_where_measuring_does() {
        let mut measurement = Measurement::planned(None, 250 * MS);
        let window = Window { warm_up_ns: 500 * MS, duration_ns: 2000 * MS, ..Window::default() };
        measurement.start(window, 8);
        measurement.keep(500 * MS, false);
        assert_eq!(measurement.next_ns(false), 510 * MS); // a sample of the rate
        measurement.keep(1000 * MS, false);
        let intervals = measurement.finish(1100 * MS).intervals;
        let starts: Vec<u64> = intervals.iter().map(|one| one.start_ns).collect();
        assert_eq!(starts, [0, 500 * MS, 750 * MS, 1000 * MS]);
    }

    #[test]
    fn the_end_of_the_warm_up_tells_its_mean_and_starts_the_samples_of_the_rate() {
        let mut measurement = started(500 * MS);
        measurement.answered(&answer(0, 20 * MS));
        let calibration = measurement.keep(500 * MS, false).expect("the warm-up is over");
        assert_eq!(calibration.sample_every_ms, 40);
        assert!((calibration.mean_us - 20_000.0).abs() < 20.0, "{calibration:?}");
        (0..30).for_each(|_| measurement.answered(&answer(510 * MS, 511 * MS)));
        measurement.keep(560 * MS, false);
        assert_eq!(measurement.finish(0).rates_rps, BTreeMap::from([(500, 1)]));
    }

    #[test]
    fn nothing_is_sampled_and_no_second_closed_once_nothing_more_is_sent() {
        let mut measurement = started(0);
        assert_eq!(measurement.keep(5000 * MS, true), None);
        assert_eq!(measurement.next_ns(true), u64::MAX);
        assert_eq!(measurement.finish(5000 * MS).intervals.len(), 1);
    }

    #[test]
    fn the_rate_counts_what_was_answered_within_the_window_whenever_it_was_due() {
        let mut measurement = started(500 * MS);
        for (due_ms, answered_ms) in [(10, 499), (10, 500), (1000, 1999), (1000, 2000)] {
            measurement.answered(&answer(due_ms * MS, answered_ms * MS));
        }
        let tally = measurement.finish(3000 * MS).tally;
        assert_eq!((tally.completed, tally.completed_in_window, tally.measured), (4, 2, 2));
    }

    #[test]
    fn an_answer_behind_the_end_is_kept_if_its_request_had_left_in_time() {
        let mut measurement = started(500 * MS);
        for (due_ms, sent_ms, answered_ms) in [
            (499, 499, 501),    // of the warm-up
            (500, 700, 1999),   // late, and answered before the end
            (1998, 1999, 2500), // in time
            (1997, 1999, 2001), // late
        ] {
            let sent_ns = sent_ms * MS;
            measurement.answered(&Answered { sent_ns, ..answer(due_ms * MS, answered_ms * MS) });
        }
        let measured = measurement.finish(3000 * MS);
        assert_eq!((measured.tally.measured, measured.kept), (3, 2));
    }

    #[test]
    fn connections_are_busy_within_the_window_only() {
        let mut measurement = started(500 * MS);
        measurement.connection_was_busy(0, 0, 400 * MS);
        measurement.connection_was_busy(0, 400 * MS, 600 * MS);
        measurement.connection_was_busy(0, 1900 * MS, 2600 * MS);
        assert_eq!(measurement.finish(3000 * MS).busy_ns, 200 * MS);
    }

    #[test]
    fn of_two_servers_in_turn_connections_are_busy_in_the_slices_of_their_own_and_at_most_all_of_that_time() {
        let alternation = Alternation::new(slicing(400, 100), 1, 2000 * MS).unwrap();
        let busy = |server: Server, from_ms: u64, until_ms: u64| {
            let mut measurement = started(500 * MS);
            measurement.tell_slices(&alternation);
            measurement.connection_was_busy(server, from_ms * MS, until_ms * MS);
            measurement.finish(9000 * MS).busy_ns / MS
        };
        // A from 0 and from 1500 on, B from 500 and 1000 on, for 400 ms each.
        assert_eq!([busy(0, 0, 400), busy(0, 450, 1490), busy(0, 1400, 1600)], [0, 0, 100]);
        assert_eq!([busy(1, 600, 700), busy(1, 850, 1050), busy(1, 1950, 1990)], [100, 100, 0]);
        assert_eq!([busy(0, 0, 9000), busy(1, 0, 9000)], [400, 800]);
        let sending_ns = alternation.sending_between_ns(500 * MS, 2000 * MS);
        assert_eq!(sending_ns, (400 + 800) * MS, "as much as both can be busy, each by one connection");
    }

    #[test]
    fn what_was_due_in_the_warm_up_and_not_answered_is_no_part_of_what_is_measured() {
        let mut measurement = started(500 * MS);
        measurement.unanswered(400 * MS, 5);
        measurement.unanswered(600 * MS, 7);
        assert_eq!(measurement.finish(3000 * MS).unanswered.len(), 7);
    }
}
