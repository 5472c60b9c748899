//! What is found in each slice of a run with two servers in turn. Pure; times are monotonic nanoseconds.
//!
//! An answer belongs to the slice in which its request was due, and so to the server that was asked, however
//! late it comes. What is due while a slice settles is sent and not counted; its errors are.
//! Latencies are nanoseconds, in histograms of 1 ns to 24 h with 3 significant digits: 27 us are known to 16
//! ns.

use hdrhistogram::Histogram;

use crate::alternation::{Alternation, Server};
use crate::errors::ErrorKind;
use crate::exchange::Answered;
use crate::recorder::{Counts, taken};

const HIGHEST_NS: u64 = 24 * 3600 * 1_000_000_000;

pub fn histogram_ns<T: hdrhistogram::Counter>() -> Histogram<T> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("the bounds are valid")
}

/// What one thread found in one slice.
#[derive(Clone, Debug, Default)]
pub struct SliceCounts {
    pub sent: u64,
    pub completed: u64,
    /// Of them those that came behind the end of their slice.
    pub late: u64,
    /// Answers that came within the counted part, also to what was due while the slice settled: what its rate
    /// counts.
    pub answered_within: u64,
    /// Answers to what was due in it that came while it settled.
    pub answered_settling: u64,
    /// Of those that were completed: (status, how many), few of them.
    pub answers: Vec<(u16, u64)>,
    /// The same of what was due while it settled.
    pub settling_answers: Vec<(u16, u64)>,
    /// By kind, those of the settling part included.
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Were due and got no answer.
    pub unanswered: u64,
    pub response_ns: Counts,
    pub service_ns: Counts,
}

impl SliceCounts {
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.late += other.late;
        self.answered_within += other.answered_within;
        self.answered_settling += other.answered_settling;
        other.answers.iter().for_each(|&(status, number)| count_status(&mut self.answers, status, number));
        other
            .settling_answers
            .iter()
            .for_each(|&(status, number)| count_status(&mut self.settling_answers, status, number));
        self.errors.iter_mut().zip(other.errors).for_each(|(all, own)| *all += own);
        self.unanswered += other.unanswered;
        self.response_ns.extend(&other.response_ns);
        self.service_ns.extend(&other.service_ns);
    }
}

fn count_status(answers: &mut Vec<(u16, u64)>, status: u16, number: u64) {
    match answers.iter_mut().find(|(known, _)| *known == status) {
        Some((_, counted)) => *counted += number,
        None => answers.push((status, number)),
    }
}

#[derive(Debug)]
struct Recording {
    response_ns: Histogram<u32>,
    service_ns: Histogram<u32>,
}

impl Recording {
    fn new() -> Self {
        let (mut response_ns, mut service_ns) = (histogram_ns(), histogram_ns());
        // Written to once before the run, so that no first use of a page delays a request.
        response_ns.reset();
        service_ns.reset();
        Self { response_ns, service_ns }
    }

    fn empty_into(&mut self, counts: &mut SliceCounts) {
        counts.response_ns.extend(taken(&mut self.response_ns));
        counts.service_ns.extend(taken(&mut self.service_ns));
    }
}

#[derive(Debug)]
pub struct SliceRecorder {
    alternation: Alternation,
    start_ns: u64,
    /// What is due earlier is warm-up and not recorded.
    measure_ns: u64,
    slices: Vec<SliceCounts>,
    /// The slice whose answers go to the first histograms; those of the one before it, which are late, go to
    /// the second, and the few that are later still are kept one by one.
    current: usize,
    recordings: [Recording; 2],
}

impl SliceRecorder {
    pub fn new(alternation: Alternation, start_ns: u64, measure_ns: u64) -> Self {
        let slices = vec![SliceCounts::default(); alternation.slices()];
        Self {
            alternation,
            start_ns,
            measure_ns,
            slices,
            current: 0,
            recordings: [Recording::new(), Recording::new()],
        }
    }

    /// How much of this time, of a run that has begun, was its server's turn.
    pub fn turns_between_ns(&self, server: Server, from_ns: u64, until_ns: u64) -> u64 {
        let after_start_ns = |at_ns: u64| at_ns.saturating_sub(self.start_ns);
        self.alternation.turns_between_ns(server, after_start_ns(from_ns), after_start_ns(until_ns))
    }

    /// The slice of a request behind the warm-up, and whether it is counted in it.
    #[inline]
    fn slice_of(&self, due_ns: u64) -> Option<(usize, bool)> {
        (due_ns >= self.measure_ns).then(|| {
            let slice = self.alternation.slice_at(due_ns - self.start_ns);
            (slice, due_ns - self.start_ns >= self.alternation.counted_from_ns(slice))
        })
    }

    #[inline]
    pub fn sent(&mut self, due_ns: u64, requests: u32) {
        if let Some((slice, true)) = self.slice_of(due_ns) {
            self.slices[slice].sent += u64::from(requests);
        }
    }

    #[inline]
    pub fn answered(&mut self, answer: &Answered) {
        let Answered { due_ns, sent_ns, now_ns, status, recorded, .. } = *answer;
        let Some((slice, counted)) = self.slice_of(due_ns) else { return };
        if slice > self.current {
            self.turn_to(slice);
        }
        let counts = &mut self.slices[slice];
        let (came_ns, end_ns) = (now_ns - self.start_ns, self.alternation.end_ns(slice));
        let counted_from_ns = self.alternation.counted_from_ns(slice);
        counts.answered_within += u64::from((counted_from_ns..end_ns).contains(&came_ns));
        counts.answered_settling += u64::from(came_ns < counted_from_ns);
        if !counted {
            return count_status(&mut counts.settling_answers, status, 1);
        }
        counts.completed += 1;
        counts.late += u64::from(came_ns >= end_ns);
        count_status(&mut counts.answers, status, 1);
        let (response_ns, service_ns) =
            (now_ns.saturating_sub(due_ns).max(1), now_ns.saturating_sub(sent_ns).max(1));
        if !recorded {
        } else if let Some(recording) = self.recordings.get_mut(self.current - slice) {
            recording.response_ns.saturating_record(response_ns);
            recording.service_ns.saturating_record(service_ns);
        } else {
            counts.response_ns.push((response_ns.min(HIGHEST_NS), 1));
            counts.service_ns.push((service_ns.min(HIGHEST_NS), 1));
        }
    }

    pub fn unanswered(&mut self, due_ns: u64, requests: u64) {
        if let Some((slice, true)) = self.slice_of(due_ns) {
            self.slices[slice].unanswered += requests;
        }
    }

    /// Something went wrong with a connection to `server`; `at_ns` is when its request was due, or when it
    /// happened if there was none.
    ///
    /// It belongs to that server's slice in the pair in which that is, so that errors of slices add up to
    /// those of servers.
    pub fn failed(&mut self, kind: ErrorKind, server: Server, at_ns: u64) {
        if at_ns >= self.measure_ns {
            let slice = self.alternation.slice_in_pair(at_ns - self.start_ns, server);
            self.slices[slice].errors[kind as usize] += 1;
        }
    }

    /// Requests that were due then took longer than the timeout, or never got an answer.
    pub fn timed_out(&mut self, due_ns: u64, requests: u64) {
        if let Some((slice, _)) = self.slice_of(due_ns) {
            self.slices[slice].errors[ErrorKind::Timeout as usize] += requests;
        }
    }

    /// In the gap the histograms are emptied for the next slice, so that it does not delay that one's first
    /// requests.
    pub fn keep(&mut self, now_ns: u64) {
        while self.current + 1 < self.slices.len() && now_ns >= self.next_ns() {
            self.turn_to(self.current + 1);
        }
    }

    /// The middle of the gap behind the current slice, when most of its late answers have come; [`u64::MAX`]
    /// behind the last.
    pub fn next_ns(&self) -> u64 {
        self.alternation.gap_middle_ns(self.current).map_or(u64::MAX, |middle_ns| self.start_ns + middle_ns)
    }

    fn turn_to(&mut self, slice: usize) {
        while self.current < slice {
            self.empty_the_earlier();
            self.recordings.swap(0, 1);
            self.current += 1;
        }
    }

    fn empty_the_earlier(&mut self) {
        if let Some(earlier) = self.current.checked_sub(1) {
            self.recordings[1].empty_into(&mut self.slices[earlier]);
        }
    }

    pub fn finish(mut self) -> Vec<SliceCounts> {
        self.empty_the_earlier();
        self.recordings[0].empty_into(&mut self.slices[self.current]);
        self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternation::Slicing;
    use crate::alternation::tests::slicing;

    const MS: u64 = 1_000_000;

    /// Four slices of 100 ms, 20 ms apart, that settle for so long.
    fn settled(settle_ms: u64) -> Alternation {
        let slicing = Slicing { settle_ns: settle_ms * MS, ..slicing(100, 20) };
        Alternation::new(slicing, 1, 480 * MS).unwrap()
    }

    /// From 1 s on.
    fn recorder_of(alternation: Alternation, measure_ms: u64) -> SliceRecorder {
        SliceRecorder::new(alternation, 1000 * MS, (1000 + measure_ms) * MS)
    }

    fn recorder(measure_ms: u64) -> SliceRecorder {
        recorder_of(settled(0), measure_ms)
    }

    fn answer(due_ns: u64, now_ns: u64) -> Answered {
        Answered { due_ns, sent_ns: due_ns, now_ns, connection: 0, status: 200, recorded: true }
    }

    fn values(counts: &Counts) -> Vec<u64> {
        counts.iter().flat_map(|&(value, count)| vec![value; count as usize]).collect()
    }

    #[test]
    fn an_answer_belongs_to_the_slice_in_which_it_was_due_however_late_it_comes() {
        let mut slices = recorder(0);
        for (due_ms, answered_ms) in [(1000, 1001), (1099, 1121), (1120, 1123), (1099, 1300), (1360, 1361)] {
            slices.sent(due_ms * MS, 1);
            slices.keep(answered_ms * MS);
            slices.answered(&answer(due_ms * MS, answered_ms * MS));
        }
        let found = slices.finish();
        assert_eq!(
            found.iter().map(|slice| (slice.sent, slice.completed, slice.late)).collect::<Vec<_>>(),
            [(3, 3, 2), (1, 1, 0), (0, 0, 0), (1, 1, 0)]
        );
        let first = values(&found[0].response_ns);
        assert_eq!(first.len(), 3);
        assert!(
            first.contains(&(201 * MS)),
            "of the slice before the last one it is kept exactly: {first:?}"
        );
        assert!(first.iter().any(|value| value.abs_diff(22 * MS) < MS / 10), "{first:?}");
        assert_eq!((values(&found[1].response_ns).len(), values(&found[3].service_ns).len()), (1, 1));
    }

    #[test]
    fn late_answers_of_the_slice_before_take_no_memory_of_their_own() {
        let mut slices = recorder(0);
        slices.keep(1115 * MS);
        (0..10_000).for_each(|_| slices.answered(&answer(1099 * MS, 1125 * MS)));
        slices.answered(&answer(1120 * MS, 1121 * MS));
        let found = slices.finish();
        assert_eq!(
            (found[0].late, found[0].response_ns.len(), values(&found[0].response_ns).len()),
            (10_000, 1, 10_000)
        );
        assert_eq!(values(&found[1].service_ns).len(), 1);
    }

    #[test]
    fn latencies_below_a_millisecond_are_told_apart_by_nanoseconds() {
        let mut slices = recorder(0);
        for ns in [27_000, 27_016, 27_032, 900] {
            slices.answered(&answer(1000 * MS, 1000 * MS + ns));
        }
        assert_eq!(slices.finish()[0].response_ns.len(), 4);
    }

    #[test]
    fn what_was_due_in_the_warm_up_is_no_slices() {
        let mut slices = recorder(240);
        slices.sent(1000 * MS, 1);
        slices.answered(&answer(1000 * MS, 1300 * MS));
        slices.failed(ErrorKind::Read, 0, 1100 * MS);
        slices.unanswered(1100 * MS, 5);
        slices.unanswered(1240 * MS, 7);
        let found = slices.finish();
        assert_eq!(
            (found[0].sent, found[0].completed, found[0].unanswered, found[2].unanswered),
            (0, 0, 0, 7)
        );
        assert_eq!(found[0].errors, [0; 4]);
    }

    #[test]
    fn what_is_due_while_a_slice_settles_is_not_counted_but_its_answers_behind_that_are_in_the_rate() {
        let mut slices = recorder_of(settled(30), 0);
        for (due_ms, answered_ms) in
            [(1000, 1001), (1029, 1030), (1030, 1099), (1099, 1100), (1120, 1149), (1149, 1221)]
        {
            slices.sent(due_ms * MS, 1);
            slices.answered(&answer(due_ms * MS, answered_ms * MS));
        }
        slices.unanswered(1029 * MS, 3);
        slices.unanswered(1030 * MS, 4);
        let found = slices.finish();
        let settling: Vec<u64> = found.iter().map(|slice| slice.answered_settling).collect();
        let told: Vec<_> = found
            .iter()
            .map(|slice| (slice.sent, slice.completed, slice.late, slice.answered_within, slice.unanswered))
            .collect();
        assert_eq!(told[..2], [(2, 2, 1, 2, 4), (0, 0, 0, 0, 0)]);
        assert_eq!(settling, [1, 1, 0, 0], "one came while each settled");
    }

    #[test]
    fn statuses_and_errors_are_those_of_their_slice_and_an_error_without_a_request_is_its_servers() {
        let mut slices = recorder_of(settled(30), 0);
        for (due_ms, status) in [(1030, 200), (1031, 503), (1032, 200), (1001, 404)] {
            slices.answered(&Answered { status, ..answer(due_ms * MS, (due_ms + 1) * MS) });
        }
        // A's own slices are the first and the last, B's the second and third.
        slices.failed(ErrorKind::Read, 0, 1001 * MS);
        slices.failed(ErrorKind::Connect, 1, 1001 * MS);
        slices.failed(ErrorKind::Connect, 1, 1119 * MS);
        slices.timed_out(1060 * MS, 4);
        slices.failed(ErrorKind::Write, 0, 1300 * MS);
        let found = slices.finish();
        assert_eq!(found[0].answers, [(200, 2), (503, 1)]);
        assert_eq!(found[0].settling_answers, [(404, 1)]);
        assert_eq!(
            found.iter().map(|slice| slice.errors).collect::<Vec<_>>(),
            [[0, 1, 0, 4], [2, 0, 0, 0], [0; 4], [0, 0, 1, 0]]
        );
        let mut both = found[0].clone();
        both.add(&SliceCounts {
            answers: vec![(503, 1), (404, 1)],
            errors: [1; 4],
            ..SliceCounts::default()
        });
        assert_eq!((both.answers, both.errors), (vec![(200, 2), (503, 2), (404, 1)], [1, 2, 1, 5]));
    }

    #[test]
    fn the_histograms_are_emptied_in_the_gaps() {
        let mut slices = recorder(0);
        assert_eq!(slices.next_ns(), 1110 * MS);
        slices.keep(1109 * MS);
        assert_eq!(slices.next_ns(), 1110 * MS);
        slices.keep(1400 * MS);
        assert_eq!(slices.next_ns(), u64::MAX);
    }
}
