//! What is found in each slice of a run with two servers in turn. Pure; times are monotonic nanoseconds.
//!
//! An answer belongs to the slice in which its request was due, and so to the server that was asked, however late it comes.
//! Latencies are nanoseconds, in histograms of 1 ns to 24 h with 3 significant digits: 27 us are known to 16 ns.

use hdrhistogram::Histogram;

use crate::alternation::Alternation;
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
        self.unanswered += other.unanswered;
        self.response_ns.extend(&other.response_ns);
        self.service_ns.extend(&other.service_ns);
    }
}

#[derive(Debug)]
pub struct SliceRecorder {
    alternation: Alternation,
    start_ns: u64,
    /// What is due earlier is warm-up and not recorded.
    measure_ns: u64,
    slices: Vec<SliceCounts>,
    /// The slice whose answers go to the histograms; those of the others are kept one by one.
    current: usize,
    response_ns: Histogram<u32>,
    service_ns: Histogram<u32>,
}

impl SliceRecorder {
    pub fn new(alternation: Alternation, start_ns: u64, measure_ns: u64) -> Self {
        let slices = vec![SliceCounts::default(); alternation.slices()];
        let (mut response_ns, mut service_ns) = (histogram_ns(), histogram_ns());
        // Written to once before the run, so that no first use of a page delays a request.
        response_ns.reset();
        service_ns.reset();
        Self { alternation, start_ns, measure_ns, slices, current: 0, response_ns, service_ns }
    }

    /// The slice of a request that is measured.
    #[inline]
    fn slice_of(&self, due_ns: u64) -> Option<usize> {
        (due_ns >= self.measure_ns).then(|| self.alternation.slice_at(due_ns - self.start_ns))
    }

    #[inline]
    pub fn sent(&mut self, due_ns: u64, requests: u32) {
        if let Some(slice) = self.slice_of(due_ns) {
            self.slices[slice].sent += u64::from(requests);
        }
    }

    #[inline]
    pub fn answered(&mut self, due_ns: u64, sent_ns: u64, now_ns: u64, recorded: bool) {
        let Some(slice) = self.slice_of(due_ns) else { return };
        if slice > self.current {
            self.turn_to(slice);
        }
        let counts = &mut self.slices[slice];
        counts.completed += 1;
        counts.late += u64::from(now_ns >= self.start_ns + self.alternation.end_ns(slice));
        let (response_ns, service_ns) = (now_ns.saturating_sub(due_ns).max(1), now_ns.saturating_sub(sent_ns).max(1));
        if !recorded {
        } else if slice == self.current {
            self.response_ns.saturating_record(response_ns);
            self.service_ns.saturating_record(service_ns);
        } else {
            counts.response_ns.push((response_ns.min(HIGHEST_NS), 1));
            counts.service_ns.push((service_ns.min(HIGHEST_NS), 1));
        }
    }

    pub fn unanswered(&mut self, due_ns: u64, requests: u64) {
        if let Some(slice) = self.slice_of(due_ns) {
            self.slices[slice].unanswered += requests;
        }
    }

    /// In the gap the histograms are emptied for the next slice, so that it does not delay that one's first requests.
    pub fn keep(&mut self, now_ns: u64) {
        while self.current + 1 < self.slices.len() && now_ns >= self.next_ns() {
            self.turn_to(self.current + 1);
        }
    }

    /// The middle of the gap behind the current slice, when most of its late answers have come; [`u64::MAX`] behind the last.
    pub fn next_ns(&self) -> u64 {
        if self.current + 1 == self.slices.len() {
            return u64::MAX;
        }
        self.start_ns + self.alternation.end_ns(self.current) + self.alternation.gap_ns / 2
    }

    fn turn_to(&mut self, slice: usize) {
        let counts = &mut self.slices[self.current];
        counts.response_ns.extend(taken(&mut self.response_ns));
        counts.service_ns.extend(taken(&mut self.service_ns));
        self.current = slice;
    }

    pub fn finish(mut self) -> Vec<SliceCounts> {
        self.turn_to(self.current);
        self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternation::TurnOrder;

    const MS: u64 = 1_000_000;

    /// Four slices of 100 ms, 20 ms apart, from 1 s on.
    fn recorder(measure_ms: u64) -> SliceRecorder {
        let alternation = Alternation::new(100 * MS, 20 * MS, TurnOrder::Abba, 1, 480 * MS).unwrap();
        SliceRecorder::new(alternation, 1000 * MS, (1000 + measure_ms) * MS)
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
            slices.answered(due_ms * MS, due_ms * MS, answered_ms * MS, true);
        }
        let found = slices.finish();
        assert_eq!(
            found.iter().map(|slice| (slice.sent, slice.completed, slice.late)).collect::<Vec<_>>(),
            [(3, 3, 2), (1, 1, 0), (0, 0, 0), (1, 1, 0)]
        );
        let first = values(&found[0].response_ns);
        assert_eq!(first.len(), 3);
        assert!(first.contains(&(22 * MS)) && first.contains(&(201 * MS)), "kept exactly: {first:?}");
        assert_eq!((values(&found[1].response_ns).len(), values(&found[3].service_ns).len()), (1, 1));
    }

    #[test]
    fn latencies_below_a_millisecond_are_told_apart_by_nanoseconds() {
        let mut slices = recorder(0);
        for ns in [27_000, 27_016, 27_032, 900] {
            slices.answered(1000 * MS, 1000 * MS, 1000 * MS + ns, true);
        }
        assert_eq!(slices.finish()[0].response_ns.len(), 4);
    }

    #[test]
    fn what_was_due_in_the_warm_up_is_no_slices() {
        let mut slices = recorder(240);
        slices.sent(1000 * MS, 1);
        slices.answered(1000 * MS, 1000 * MS, 1300 * MS, true);
        slices.unanswered(1100 * MS, 5);
        slices.unanswered(1240 * MS, 7);
        let found = slices.finish();
        assert_eq!((found[0].sent, found[0].completed, found[0].unanswered, found[2].unanswered), (0, 0, 0, 7));
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
