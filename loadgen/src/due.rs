//! Which requests are due and when: those of one connection, or those of a thread that any of its free
//! connections may send.

use std::collections::VecDeque;
use std::ops::Range;

use crate::alternation::{AlternatingDue, Turns};
use crate::schedule::Poisson;
use crate::steps::Steps;
use crate::uniform::{NEVER, Uniform};

/// Of those that were never sent; at a billion requests per second there is more to do than to tell of each.
const UNSENT_TOLD_MAX: u64 = 10_000;
/// So many that come at random, over all connections, are drawn behind the end, to know them exactly: some
/// tenths of a second. Of more the number is the one that is expected.
const UNSENT_DRAWN_MAX: u64 = 1 << 22;

/// When requests are due.
#[derive(Debug)]
pub enum Due<'a> {
    Uniform(Uniform),
    /// Only in the slices of its server, of which this is the connection of that number.
    Alternating(AlternatingDue<'a>, usize),
    /// At a rate that changes, over so many series.
    Stepped(&'a Steps, u64),
    Poisson(Poisson<'a>),
    /// Closed loop: at once.
    Always,
    /// Closed loop, in the slices of its server.
    InTurns(Turns<'a>),
    /// Never by itself: the connection sends what is due in its thread.
    OfThread,
}

/// A series of requests, of which some have been sent.
#[derive(Debug)]
pub struct DueRequests<'a> {
    /// Number of this series among all of the run.
    number: usize,
    due: Due<'a>,
    /// Requests sent so far, with two servers in turn those skipped among them.
    sent: u64,
}

impl<'a> DueRequests<'a> {
    pub fn new(number: usize, due: Due<'a>) -> Self {
        let mut requests = Self { number, due, sent: 0 };
        requests.skip();
        requests
    }

    /// Past the requests that belong to another server's turn.
    fn skip(&mut self) {
        if let Due::Alternating(alternating, place) = &self.due {
            (self.sent, _) = alternating.next(*place, self.sent);
        }
    }

    pub fn is_closed_loop(&self) -> bool {
        matches!(self.due, Due::Always | Due::InTurns(_))
    }

    /// Whether a closed loop stands still while the other server has its turn.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        matches!(self.due, Due::InTurns(_))
    }

    /// When a closed loop may send what is to leave at `from_ns`; [`NEVER`] if no slice of its server is
    /// left.
    #[inline]
    pub fn in_turn_ns(&self, from_ns: u64) -> u64 {
        if let Due::InTurns(turns) = &self.due { turns.next_ns(from_ns) } else { from_ns }
    }

    /// The due time of what a closed loop sends at `sent_ns`: then, but still in the slice in which it was
    /// decided to send it.
    #[inline]
    pub fn closed_due_ns(&self, decided_ns: u64, sent_ns: u64) -> u64 {
        if let Due::InTurns(turns) = &self.due { sent_ns.min(turns.last_ns(decided_ns)) } else { sent_ns }
    }

    /// When the next is due, after the start of the run; [`NEVER`] if not before its end.
    pub fn next_ns(&self) -> u64 {
        match &self.due {
            Due::Uniform(uniform) => uniform.due_ns(self.number, self.sent),
            Due::Stepped(steps, series) => steps.due_ns(self.number as u64 + self.sent * series),
            Due::Alternating(alternating, place) => alternating.next(*place, self.sent).1,
            Due::Poisson(poisson) => poisson.due_ns(),
            Due::Always | Due::InTurns(_) => 0,
            Due::OfThread => NEVER,
        }
    }

    /// The number of the next among the requests of all series, over all parts, in the order in which they
    /// are due: request i of series k of n is number k + i·n. None in a closed loop; of what comes at random,
    /// in each series by itself; and with two servers in turn, of which each has but some of them.
    #[inline]
    pub fn request_number(&self) -> Option<u64> {
        let series = match &self.due {
            Due::Uniform(uniform) => uniform.connections(),
            Due::Stepped(_, series) => *series,
            Due::Poisson(_) | Due::Alternating(..) | Due::Always | Due::InTurns(_) | Due::OfThread => {
                return None;
            }
        };
        Some(self.number as u64 + self.sent * series)
    }

    /// So many have been sent.
    pub fn advance(&mut self, requests: u32) {
        if let Due::Alternating(..) = self.due {
            // One by one: those of the other server, which lie between, are not this one's to send.
            for _ in 0..requests {
                self.sent += 1;
                self.skip();
            }
            return;
        }
        if let Due::Poisson(poisson) = &mut self.due {
            (0..requests).for_each(|_| poisson.advance());
        }
        self.sent += u64::from(requests);
    }

    /// Requests due before `end_ns` that were never sent: how many, and `each` gets (due time, how many of
    /// about then).
    ///
    /// Of very many in a row it gets several at once, at the due time of the last. Of very many that come at
    /// random those behind the first [`UNSENT_DRAWN_MAX`] are as many, and due when, as is expected.
    pub fn unsent(&mut self, end_ns: u64, mut each: impl FnMut(u64, u64)) -> u64 {
        match &mut self.due {
            Due::Uniform(uniform) => {
                let due = uniform.due_before(self.number, end_ns);
                let due_ns = |request| uniform.due_ns(self.number, request);
                unsent_in_row(self.sent..due, UNSENT_TOLD_MAX, due_ns, each)
            }
            Due::Stepped(steps, series) => {
                let (number, series) = (self.number as u64, *series);
                let due = steps.due_before(number, series, end_ns);
                let due_ns = |request| steps.due_ns(number + request * series);
                unsent_in_row(self.sent..due, UNSENT_TOLD_MAX, due_ns, each)
            }
            Due::Alternating(alternating, place) => {
                let rows: Vec<_> = alternating.rows(*place, self.sent, end_ns).collect();
                let told_max = UNSENT_TOLD_MAX / rows.len().max(1) as u64;
                let unsent = |(row, begins_ns): (Range<u64>, u64)| {
                    let due_ns = |request| alternating.due_ns(*place, request, begins_ns);
                    unsent_in_row(row, told_max, due_ns, &mut each)
                };
                rows.into_iter().map(unsent).sum()
            }
            Due::Poisson(poisson) => {
                let drawn_max = UNSENT_DRAWN_MAX / poisson.connections();
                let mut drawn = 0;
                while poisson.due_ns() < end_ns && drawn < drawn_max {
                    each(poisson.due_ns(), 1);
                    poisson.advance();
                    drawn += 1;
                }
                let expected = 0..poisson.expected_before(end_ns);
                let due_ns = |request| poisson.expected_ns(request).min(end_ns - 1);
                drawn + unsent_in_row(expected, UNSENT_TOLD_MAX, due_ns, each)
            }
            Due::Always | Due::InTurns(_) | Due::OfThread => 0,
        }
    }
}

/// These requests were never sent; how many that are.
fn unsent_in_row(
    row: Range<u64>,
    told_max: u64,
    due_ns: impl Fn(u64) -> u64,
    mut each: impl FnMut(u64, u64),
) -> u64 {
    let count = row.end.saturating_sub(row.start);
    let step = count.div_ceil(told_max.max(1)).max(1);
    let mut first = row.start;
    while first < row.end {
        let behind = (first + step).min(row.end);
        each(due_ns(behind - 1), behind - first);
        first = behind;
    }
    count
}

/// What is due in one thread, for whichever connection is free, and those that are: `--dispatch any`.
///
/// Requests wait here in the order of their due times, as callers wait for the next free line; the connection
/// that has been free for longest is the next.
#[derive(Debug)]
pub struct SharedQueue<'a> {
    pub requests: DueRequests<'a>,
    free: VecDeque<usize>,
}

impl<'a> SharedQueue<'a> {
    pub fn new(requests: DueRequests<'a>, connections: usize) -> Self {
        Self { requests, free: VecDeque::with_capacity(connections) }
    }

    /// When the next request can leave, as far as is known now; [`NEVER`] without a free connection.
    pub fn next_ns(&self) -> u64 {
        if self.free.is_empty() { NEVER } else { self.requests.next_ns() }
    }

    /// Stands here at most once.
    pub fn is_free(&mut self, place: usize) {
        self.free.push_back(place);
    }

    /// Whether one has been free for longer than who comes now.
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// A connection, if a request is due by now.
    pub fn pop(&mut self, now_ns: u64) -> Option<usize> {
        if self.requests.next_ns() <= now_ns { self.free.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::alternation::tests::slicing;
    use crate::alternation::{Alternation, Server, TurnOrder};
    use crate::steps::Step;

    const SECOND: u64 = 1_000_000_000;

    /// How many were never sent before `end_ns`, and how often that was told; each time is before the end and
    /// behind the one before.
    fn unsent(due: Due, end_ns: u64) -> (u64, usize) {
        let (mut told, mut last, mut count) = (0, None, 0);
        let unsent = DueRequests::new(0, due).unsent(end_ns, |due_ns, requests| {
            assert!(last <= Some(due_ns) && due_ns < end_ns, "{last:?} {due_ns}");
            (last, told, count) = (Some(due_ns), told + 1, count + requests);
        });
        assert_eq!(count, unsent);
        (unsent, told)
    }

    #[test]
    fn ten_thousand_million_that_were_never_sent_are_counted_without_a_walk_through_them() {
        let began = std::time::Instant::now();
        let (rate_rps, end_ns, all) = (1e9, 10 * SECOND, 1e10);
        let length = Duration::from_secs(10);
        let steps = Steps::new(&[Step { rate_rps, length }], 0);
        let alternation = Alternation::new(slicing(100, 0), 1, end_ns).unwrap();
        let alternating =
            |server: Server| Due::Alternating(AlternatingDue::new(&alternation, server, rate_rps, 1), 0);
        for (due, expected, tolerance) in [
            (Due::Uniform(Uniform::new(rate_rps, 1, end_ns)), all, 0.0),
            (Due::Stepped(&steps, 1), all, 0.0),
            (alternating(0), all / 2.0, 0.0),
            (alternating(1), all / 2.0, 0.0),
            // A standard deviation of the first that are drawn is 2 048.
            (Due::Poisson(Poisson::new(rate_rps, 1, 0, 7, end_ns)), all, 10_000.0),
            (Due::Poisson(Poisson::in_steps(&steps, 1, 0, 7)), all, 10_000.0),
        ] {
            let name = format!("seed=7 {due:?}");
            let (count, told) = unsent(due, end_ns);
            assert!((count as f64 - expected).abs() <= tolerance, "{name}: {count}");
            assert!(told as u64 <= UNSENT_DRAWN_MAX + 2 * UNSENT_TOLD_MAX, "{name}: {told}");
        }
        assert!(began.elapsed() < Duration::from_secs(60), "a walk takes minutes: {:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn in_batches_each_of_two_servers_gets_what_is_due_to_it_and_no_place_of_the_other(
            rate_rps in 1.0f64..5000.0,
            batch in 1u32..70,
            slice_ms in 1u64..500,
            server in 0usize..2,
            seed in 0u64..1000,
        ) {
            let mut slicing = slicing(slice_ms, 5);
            slicing.order = TurnOrder::Random;
            let alternation = Alternation::new(slicing, seed, 4 * SECOND).unwrap();
            let due = AlternatingDue::new(&alternation, server, rate_rps, 1);
            let all = DueRequests::new(0, Due::Alternating(due.clone(), 0)).unsent(4 * SECOND, |_, _| {});
            let mut requests = DueRequests::new(0, Due::Alternating(due, 0));
            let mut sent = 0;
            while requests.next_ns() < 4 * SECOND {
                sent += u64::from(batch);
                requests.advance(batch);
            }
            prop_assert!((all..all + u64::from(batch)).contains(&sent), "{sent} of {all}");
        }
    }

    #[test]
    fn those_that_come_at_random_are_known_exactly_where_they_are_not_too_many() {
        let poisson = || Poisson::new(50_000.0, 2, 1, 7, 2 * SECOND);
        let mut walked = poisson();
        let drawn = std::iter::from_fn(|| {
            let due_ns = walked.due_ns();
            walked.advance();
            (due_ns < SECOND).then_some(due_ns)
        });
        let drawn = drawn.count();
        assert_eq!(unsent(Due::Poisson(poisson()), SECOND), (drawn as u64, drawn), "seed=7");
    }

    proptest! {
        #[test]
        fn of_two_servers_in_turn_what_was_never_sent_is_what_a_walk_from_request_to_request_finds(
            rate_rps in 1.0f64..5000.0,
            connections in 1usize..9,
            slice_ms in 1u64..200,
            gap_ms in 0u64..60,
            sent in 0u32..300,
            end_ns in 1u64..1_500_000_000,
        ) {
            let slicing = slicing(slice_ms, gap_ms);
            let Some(alternation) = Alternation::new(slicing, 1, SECOND) else { return Ok(()) };
            for (server, place) in [(0, 0), (1, connections - 1)] {
                let alternating = || AlternatingDue::new(&alternation, server, rate_rps, connections);
                let mut requests = DueRequests::new(place, Due::Alternating(alternating(), place));
                (0..sent).for_each(|_| requests.advance(1));
                let (mut walked, walk) = (BTreeMap::<u64, u64>::new(), alternating());
                let (mut request, mut due_ns) = walk.next(place, requests.sent);
                while due_ns < end_ns {
                    *walked.entry(due_ns).or_default() += 1;
                    (request, due_ns) = walk.next(place, request + 1);
                }
                let mut told = BTreeMap::<u64, u64>::new();
                let count =
                    requests.unsent(end_ns, |due_ns, count| *told.entry(due_ns).or_default() += count);
                prop_assert_eq!(count, walked.values().sum::<u64>());
                if count < 100 {
                    prop_assert_eq!(told, walked);
                }
            }
        }
    }

    #[test]
    fn what_is_due_goes_to_the_connection_that_has_been_free_for_longest() {
        let uniform = Uniform::new(1e9, 1, 100);
        let mut queue = SharedQueue::new(DueRequests::new(0, Due::Uniform(uniform)), 2);
        assert_eq!((queue.next_ns(), queue.pop(50)), (NEVER, None), "none is free");
        queue.is_free(7);
        queue.is_free(3);
        assert_eq!((queue.next_ns(), queue.pop(0)), (0, Some(7)));
        queue.requests.advance(2);
        assert_eq!((queue.pop(1), queue.pop(2), queue.pop(2)), (None, Some(3), None));
        assert_eq!(queue.requests.unsent(100, |_, _| {}), 98);
    }

    /// Response times of requests due at random to a service of 10 ms over ten connections: (mean with one
    /// queue, with fixed connections).
    #[test]
    fn with_one_queue_fewer_wait_than_behind_fixed_connections() {
        let (seed, connections, end_ns, service_ns) = (11, 10usize, 20_000_000_000, 10_000_000);
        let rate_rps = 500.0;
        let wait = |lanes: usize, servers_of_a_lane: usize| {
            let (mut waited, mut count) = (0, 0u64);
            for lane in 0..lanes {
                let mut due =
                    DueRequests::new(lane, Due::Poisson(Poisson::new(rate_rps, lanes, lane, seed, end_ns)));
                let mut free_at = vec![0; servers_of_a_lane];
                while due.next_ns() != NEVER {
                    let server = free_at.iter_mut().min().unwrap();
                    let sent_ns = (*server).max(due.next_ns());
                    waited += sent_ns - due.next_ns();
                    *server = sent_ns + service_ns;
                    count += 1;
                    due.advance(1);
                }
            }
            waited / count
        };
        let (any, fixed) = (wait(1, connections), wait(connections, 1));
        assert!(any * 5 < fixed, "seed={seed}: any {any} ns, fixed {fixed} ns");
    }
}
