//! The slowest answers one by one, so that each can be set beside what happened while it waited.
//!
//! A histogram of a second says how many answers were slow, not when in that second. Of each thread the
//! slowest `room` are kept; an answer that is not among them costs one comparison.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// One answer. Times in nanoseconds, monotonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowAnswer {
    pub due_ns: u64,
    pub sent_ns: u64,
    pub answered_ns: u64,
    /// Number of the connection, of all of the run.
    pub connection: usize,
}

impl SlowAnswer {
    fn response_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.due_ns)
    }
}

/// By response time; of equal ones the earlier is the slower.
impl Ord for SlowAnswer {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |one: &Self| (one.response_ns(), Reverse(one.due_ns), Reverse(one.connection));
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for SlowAnswer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Default)]
pub struct Slowest {
    room: usize,
    kept: BinaryHeap<Reverse<SlowAnswer>>,
}

impl Slowest {
    pub fn with_room(room: usize) -> Self {
        // Written to once before the run, so that no first use of a page delays a request.
        let mut kept =
            vec![Reverse(SlowAnswer { due_ns: 1, sent_ns: 1, answered_ns: 1, connection: 1 }); room];
        kept.clear();
        Self { room, kept: BinaryHeap::from(kept) }
    }

    #[inline]
    pub fn offer(&mut self, answer: SlowAnswer) {
        if self.kept.len() < self.room {
            self.kept.push(Reverse(answer));
        } else if let Some(mut least) = self.kept.peek_mut()
            && answer > least.0
        {
            *least = Reverse(answer);
        }
    }

    pub fn into_answers(self) -> impl Iterator<Item = SlowAnswer> {
        self.kept.into_iter().map(|Reverse(answer)| answer)
    }
}

/// The slowest `room` of what the threads kept, in the order in which they were due.
pub fn merged(threads: impl IntoIterator<Item = Slowest>, room: usize) -> Vec<SlowAnswer> {
    let mut answers: Vec<SlowAnswer> = threads.into_iter().flat_map(Slowest::into_answers).collect();
    answers.sort_unstable_by(|one, other| other.cmp(one));
    answers.truncate(room);
    answers.sort_unstable_by_key(|answer| (answer.due_ns, answer.connection));
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(due_ns: u64, response_ns: u64) -> SlowAnswer {
        SlowAnswer { due_ns, sent_ns: due_ns + 1, answered_ns: due_ns + response_ns, connection: 0 }
    }

    fn kept(room: usize, offered: impl IntoIterator<Item = SlowAnswer>) -> Slowest {
        let mut slowest = Slowest::with_room(room);
        offered.into_iter().for_each(|answer| slowest.offer(answer));
        slowest
    }

    #[test]
    fn the_slowest_stay_and_come_in_the_order_in_which_they_were_due() {
        // 7 and 100 have no common divisor: each of 0 to 99 ms comes once, in no order.
        let slowest = kept(3, (0..100).map(|due| answer(due, due * 7 % 100 * 1_000_000)));
        // 7 · 14 = 98, 7 · 57 = 399, 7 · 71 = 497.
        assert_eq!(
            merged([slowest], 3),
            [answer(14, 98_000_000), answer(57, 99_000_000), answer(71, 97_000_000)]
        );
    }

    #[test]
    fn fewer_answers_than_room_are_all_kept() {
        assert_eq!(merged([kept(10, [answer(5, 2), answer(3, 1)])], 10), [answer(3, 1), answer(5, 2)]);
    }

    #[test]
    fn of_several_threads_the_slowest_of_all_stay() {
        let threads = [kept(2, [answer(1, 50), answer(2, 40)]), kept(2, [answer(3, 45), answer(4, 1)])];
        assert_eq!(merged(threads, 2), [answer(1, 50), answer(3, 45)]);
    }

    #[test]
    fn of_equally_slow_ones_the_earlier_stay() {
        assert_eq!(
            merged([kept(2, [answer(3, 9), answer(1, 9), answer(2, 9)])], 2),
            [answer(1, 9), answer(2, 9)]
        );
    }

    #[test]
    fn without_room_nothing_is_kept() {
        assert_eq!(merged([kept(0, [answer(1, 9)])], 0), []);
    }
}
