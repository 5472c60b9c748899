//! Which requests are due and when: those of one connection, or those of a thread that any of its free
//! connections may send.

use std::collections::VecDeque;

use crate::alternation::{AlternatingDue, Turns};
use crate::schedule::{NEVER, Poisson, Uniform};
use crate::steps::Steps;

/// Of those that were never sent; at a billion requests per second there is more to do than to tell of each.
const UNSENT_TOLD_MAX: u64 = 10_000;

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

    /// So many have been sent.
    pub fn advance(&mut self, requests: u32) {
        self.sent += u64::from(requests);
        if let Due::Poisson(poisson) = &mut self.due {
            (0..requests).for_each(|_| poisson.advance());
        }
        self.skip();
    }

    /// Requests due before `end_ns` that were never sent: how many, and `each` is told of (due time, how many
    /// of about then).
    ///
    /// Of very many in a row several are told of at once, at the due time of the last.
    pub fn unsent(&mut self, end_ns: u64, mut each: impl FnMut(u64, u64)) -> u64 {
        match &mut self.due {
            Due::Uniform(uniform) => {
                let due = uniform.due_before(self.number, end_ns);
                unsent_in_row(self.sent, due, |request| uniform.due_ns(self.number, request), each)
            }
            Due::Stepped(steps, series) => {
                let (number, series) = (self.number as u64, *series);
                let due = steps.due_before(number, series, end_ns);
                unsent_in_row(self.sent, due, |request| steps.due_ns(number + request * series), each)
            }
            Due::Alternating(alternating, place) => {
                let mut count = 0;
                let (mut request, mut due_ns) = alternating.next(*place, self.sent);
                while due_ns < end_ns {
                    each(due_ns, 1);
                    count += 1;
                    (request, due_ns) = alternating.next(*place, request + 1);
                }
                count
            }
            Due::Poisson(poisson) => {
                let mut count = 0;
                while poisson.due_ns() < end_ns {
                    each(poisson.due_ns(), 1);
                    poisson.advance();
                    count += 1;
                }
                count
            }
            Due::Always | Due::InTurns(_) | Due::OfThread => 0,
        }
    }
}

/// Requests from `sent` to `due` were never sent; how many that are.
fn unsent_in_row(sent: u64, due: u64, due_ns: impl Fn(u64) -> u64, mut each: impl FnMut(u64, u64)) -> u64 {
    let step = due.saturating_sub(sent).div_ceil(UNSENT_TOLD_MAX).max(1);
    let mut first = sent;
    while first < due {
        let behind = (first + step).min(due);
        each(due_ns(behind - 1), behind - first);
        first = behind;
    }
    due.saturating_sub(sent)
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

    /// A connection, if a request is due by now.
    pub fn pop(&mut self, now_ns: u64) -> Option<usize> {
        if self.requests.next_ns() <= now_ns { self.free.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
