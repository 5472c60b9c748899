//! What is found in each step of a rate that changes. Pure; times are monotonic nanoseconds, latencies
//! microseconds.
//!
//! An answer belongs to the step in which its request was due, however late it comes.

use hdrhistogram::Histogram;

use crate::exchange::{Answered, Sent};
use crate::own_lateness::{OwnCounts, OwnLatenesses};
use crate::recorder::{Counts, Latencies, LongHistogram};
use crate::steps::Steps;
use crate::unanswered::Unanswered;

/// What one thread found in one step.
#[derive(Debug)]
pub struct StepCounts {
    pub sent: u64,
    pub completed: u64,
    /// Of them those that came behind the end of their step.
    pub late: u64,
    /// Of the latecomers those whose requests had left late, too; the others were merely under way.
    pub late_sent: u64,
    /// Answers that came within it, whatever step their requests are of: what its rate counts.
    pub answered_within: u64,
    pub latencies: Latencies<Counts>,
    pub own_lateness: OwnCounts,
    /// Lower bounds of the response times of what was due and got no answer.
    pub unanswered: Histogram<u64>,
    /// Time that all connections together waited for answers in it, whatever step their requests are of.
    pub busy_ns: u64,
}

#[derive(Debug, Default)]
struct Recording {
    sent: u64,
    completed: u64,
    late: u64,
    late_sent: u64,
    answered_within: u64,
    latencies: Latencies<LongHistogram>,
    own_lateness: OwnLatenesses,
    unanswered: Unanswered,
    busy_ns: u64,
}

impl Recording {
    fn make_room(&mut self) {
        let Latencies { response, service, lateness } = &mut self.latencies;
        [response, service, lateness].into_iter().for_each(LongHistogram::make_room);
        self.own_lateness.make_room();
    }
}

#[derive(Debug)]
pub struct StepRecorder {
    steps: Steps,
    start_ns: u64,
    in_time_ns: u64,
    /// When the run was called off, after its start; [`u64::MAX`] before that.
    called_off_ns: u64,
    recordings: Vec<Recording>,
}

impl StepRecorder {
    /// Made before the run: there may be many histograms, and the start is near once its time is known.
    pub fn new(steps: Steps) -> Self {
        let recordings = (0..steps.count()).map(|_| Recording::default()).collect();
        Self { steps, start_ns: 0, in_time_ns: 0, called_off_ns: u64::MAX, recordings }
    }

    /// `in_time_ns`: how late a request may leave and still be in time.
    pub fn start(&mut self, start_ns: u64, in_time_ns: u64) {
        (self.start_ns, self.in_time_ns) = (start_ns, in_time_ns);
    }

    /// Sending has ended then, perhaps in the middle of a step.
    pub fn sending_ended(&mut self, at_ns: u64) {
        self.called_off_ns = at_ns.saturating_sub(self.start_ns);
    }

    fn end_ns(&self, step: usize) -> u64 {
        self.steps.end_ns(step).min(self.called_off_ns)
    }

    #[inline]
    fn of(&mut self, due_ns: u64) -> Option<&mut Recording> {
        self.steps.step_at(due_ns - self.start_ns).map(|step| &mut self.recordings[step])
    }

    #[inline]
    pub fn sent(&mut self, sent: &Sent) {
        let Some(recording) = self.of(sent.due_ns) else { return };
        recording.sent += u64::from(sent.requests);
        recording.latencies.lateness.record(sent.sent_ns.saturating_sub(sent.due_ns), sent.requests);
        recording.own_lateness.record(sent.own_late.unwrap_or_default(), sent.requests);
    }

    /// Called at least once in some seconds.
    pub fn keep(&mut self, now_ns: u64) {
        if let Some(step) = self.steps.step_at(now_ns.saturating_sub(self.start_ns)) {
            self.recordings[step].make_room();
        }
    }

    #[inline]
    pub fn answered(&mut self, answer: &Answered) {
        let Answered { due_ns, sent_ns, now_ns, recorded, .. } = *answer;
        let came_ns = now_ns - self.start_ns;
        if let Some(step) = self.steps.step_at(came_ns).filter(|&step| came_ns < self.end_ns(step)) {
            self.recordings[step].answered_within += 1;
        }
        let Some(step) = self.steps.step_at(due_ns - self.start_ns) else { return };
        let is_over = came_ns >= self.end_ns(step);
        let recording = &mut self.recordings[step];
        recording.completed += 1;
        recording.late += u64::from(came_ns >= self.steps.end_ns(step));
        recording.late_sent += u64::from(is_over && sent_ns.saturating_sub(due_ns) > self.in_time_ns);
        if recorded {
            recording.latencies.response.record(now_ns.saturating_sub(due_ns), 1);
            recording.latencies.service.record(now_ns.saturating_sub(sent_ns), 1);
        }
    }

    pub fn unanswered(&mut self, due_ns: u64, requests: u64) {
        if let Some(recording) = self.of(due_ns) {
            recording.unanswered.add(due_ns, requests);
        }
    }

    /// A connection waited for answers from then to then.
    #[inline]
    pub fn connection_was_busy(&mut self, from_ns: u64, until_ns: u64) {
        let (from_ns, until_ns) =
            (from_ns.saturating_sub(self.start_ns), until_ns.saturating_sub(self.start_ns));
        let (Some(last), first) = (self.steps.step_at(until_ns), self.steps.step_at(from_ns).unwrap_or(0))
        else {
            return;
        };
        for step in first..=last {
            let (from_ns, until_ns) =
                (from_ns.max(self.steps.start_ns(step)), until_ns.min(self.end_ns(step)));
            self.recordings[step].busy_ns += until_ns.saturating_sub(from_ns);
        }
    }

    /// `given_up_ns`: until when answers were awaited.
    pub fn finish(self, given_up_ns: u64) -> Vec<StepCounts> {
        let finished = |recording: Recording| StepCounts {
            sent: recording.sent,
            completed: recording.completed,
            late: recording.late,
            late_sent: recording.late_sent,
            answered_within: recording.answered_within,
            latencies: recording.latencies.map(LongHistogram::into_counts),
            own_lateness: recording.own_lateness.into_counts(),
            unanswered: recording.unanswered.at_least(given_up_ns),
            busy_ns: recording.busy_ns,
        };
        self.recordings.into_iter().map(finished).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lateness::OwnLateness;
    use crate::steps::Step;

    const MS: u64 = 1_000_000;

    /// Two steps of 100 ms behind a warm-up of 50 ms, from 1 s on.
    fn recorder() -> StepRecorder {
        let step = |rate_rps| Step { rate_rps, length: Duration::from_millis(100) };
        let mut recorder = StepRecorder::new(Steps::new(&[step(100.0), step(200.0)], 50 * MS));
        recorder.start(1000 * MS, MS);
        recorder
    }

    fn answer(due_ms: u64, now_ms: u64) -> Answered {
        let (due_ns, now_ns) = (due_ms * MS, now_ms * MS);
        Answered { due_ns, sent_ns: due_ns, now_ns, connection: 0, status: 200, recorded: true }
    }

    #[test]
    fn an_answer_belongs_to_the_step_in_which_it_was_due_however_late_it_comes() {
        let mut steps = recorder();
        for (due_ms, answered_ms) in
            [(1049, 1060), (1050, 1051), (1149, 1150), (1149, 2000), (1150, 1249), (1249, 1300)]
        {
            let (due_ns, sent_ns) = (due_ms * MS, due_ms * MS);
            steps.sent(&Sent { due_ns, sent_ns, requests: 1, own_late: Some(OwnLateness::default()) });
            steps.answered(&answer(due_ms, answered_ms));
        }
        steps.unanswered(1048 * MS, 9);
        steps.unanswered(1150 * MS, 5);
        let found = steps.finish(3000 * MS);
        let told: Vec<_> =
            found.iter().map(|step| (step.sent, step.completed, step.late, step.unanswered.len())).collect();
        assert_eq!(told, [(3, 3, 2, 0), (2, 2, 1, 5)]);
        let within: Vec<u64> = found.iter().map(|step| step.answered_within).collect();
        assert_eq!(within, [2, 2], "that of the warm-up is in the first, that of the first in the second");
        assert_eq!(found[0].latencies.response.iter().map(|&(_, count)| count).sum::<u32>(), 3);
        assert!(
            found[0].latencies.response.last().unwrap().0 >= 851_000,
            "the latecomer is not in the second step"
        );
    }

    #[test]
    fn a_latecomer_counts_as_sent_late_only_if_its_request_left_late() {
        let mut steps = recorder();
        for (due_ms, sent_ms, answered_ms) in
            [(1100, 1140, 1149), (1149, 1150, 1300), (1148, 1150, 1151), (1249, 1251, 1300)]
        {
            steps.answered(&Answered { sent_ns: sent_ms * MS, ..answer(due_ms, answered_ms) });
        }
        let found: Vec<_> = steps.finish(3000 * MS).iter().map(|step| (step.late, step.late_sent)).collect();
        assert_eq!(found, [(2, 1), (1, 1)]);
    }

    #[test]
    fn time_that_connections_wait_is_that_of_the_steps_in_which_they_wait() {
        let mut steps = recorder();
        steps.connection_was_busy(1000 * MS, 1010 * MS);
        steps.connection_was_busy(1040 * MS, 1060 * MS);
        steps.connection_was_busy(1140 * MS, 1400 * MS);
        let busy: Vec<u64> = steps.finish(0).iter().map(|step| step.busy_ns / MS).collect();
        assert_eq!(busy, [20, 100]);
    }

    #[test]
    fn what_comes_behind_the_end_of_a_run_that_was_called_off_is_in_no_steps_rate() {
        let mut steps = recorder();
        steps.answered(&answer(1060, 1070));
        steps.sending_ended(1100 * MS);
        steps.answered(&answer(1090, 1110));
        steps.connection_was_busy(1090 * MS, 1110 * MS);
        let found = steps.finish(1110 * MS);
        assert_eq!((found[0].completed, found[0].answered_within, found[0].busy_ns / MS), (2, 1, 10));
    }
}
