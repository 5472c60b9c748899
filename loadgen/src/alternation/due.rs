//! When the requests to one of two servers in turn are due, and in a closed loop when they may be sent.

use std::ops::Range;

use super::{Alternation, Server};
use crate::uniform::{NEVER, Uniform};

/// A closed loop that stands still while the other server has its turn.
#[derive(Clone, Copy, Debug)]
pub struct Turns<'a> {
    alternation: &'a Alternation,
    server: Server,
}

impl<'a> Turns<'a> {
    pub fn new(alternation: &'a Alternation, server: Server) -> Self {
        Self { alternation, server }
    }

    /// When a connection of this server that is free at `from_ns` may send; [`NEVER`] if no slice of its
    /// server is left.
    pub fn next_ns(&self, from_ns: u64) -> u64 {
        let first = self.alternation.slice_at(from_ns);
        let own = |slice: &usize| {
            self.alternation.server(*slice) == self.server && from_ns < self.alternation.end_ns(*slice)
        };
        let next = (first..self.alternation.slices()).find(own);
        next.map_or(NEVER, |slice| from_ns.max(self.alternation.start_ns(slice)))
    }

    /// The last moment of the slice in which that is.
    pub fn last_ns(&self, in_slice_ns: u64) -> u64 {
        self.alternation.end_ns(self.alternation.slice_at(in_slice_ns)) - 1
    }
}

/// Due times of one server's connections.
#[derive(Clone, Debug)]
pub struct AlternatingDue<'a> {
    alternation: &'a Alternation,
    server: Server,
    /// On the clock that stands still in gaps.
    uniform: Uniform,
}

impl<'a> AlternatingDue<'a> {
    /// `connections`: to this server.
    pub fn new(alternation: &'a Alternation, server: Server, rate_rps: f64, connections: usize) -> Self {
        let sending_ns = alternation.sending_ns();
        Self { alternation, server, uniform: Uniform::new(rate_rps, connections, sending_ns) }
    }

    /// Requests of `connection` from `request` on that are due before `end_ns`, a row for each slice of this
    /// server that has some; with each row the beginning of its slice on the clock that stands still in gaps.
    pub fn rows(
        &self,
        connection: usize,
        request: u64,
        end_ns: u64,
    ) -> impl Iterator<Item = (Range<u64>, u64)> {
        let slice_ns = self.alternation.slicing().slice_ns;
        let first = match self.uniform.due_ns(connection, request) {
            NEVER => self.alternation.slices(),
            sending_ns => (sending_ns / slice_ns) as usize,
        };
        (first..self.alternation.slices())
            .take_while(move |&slice| self.alternation.start_ns(slice) < end_ns)
            .filter(|&slice| self.alternation.server(slice) == self.server)
            .map(move |slice| {
                let begins_ns = slice as u64 * slice_ns;
                let lasts_ns = slice_ns.min(end_ns - self.alternation.start_ns(slice));
                let due_before = |sending_ns| self.uniform.due_before(connection, sending_ns);
                (due_before(begins_ns).max(request)..due_before(begins_ns + lasts_ns), begins_ns)
            })
            .filter(|(row, _)| !row.is_empty())
    }

    /// The due time of one of a row, whose slice begins there.
    pub fn due_ns(&self, connection: usize, request: u64, begins_ns: u64) -> u64 {
        let slice = (begins_ns / self.alternation.slicing().slice_ns) as usize;
        self.alternation.start_ns(slice) + self.uniform.due_ns(connection, request) - begins_ns
    }

    /// The first request of `connection` that is this server's, `request` or a later one, and its due time;
    /// [`NEVER`] if there is none before the end.
    pub fn next(&self, connection: usize, mut request: u64) -> (u64, u64) {
        loop {
            let sending_ns = self.uniform.due_ns(connection, request);
            if sending_ns == NEVER {
                return (request, NEVER);
            }
            let slice_ns = self.alternation.slicing().slice_ns;
            let slice = (sending_ns / slice_ns) as usize;
            if self.alternation.server(slice) == self.server {
                return (request, self.alternation.start_ns(slice) + sending_ns % slice_ns);
            }
            // On to the first request that is not due in this slice of the other server.
            let next_slice_ns = (slice as u64 + 1) * slice_ns;
            request = self.uniform.due_before(connection, next_slice_ns).max(request + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::slicing;
    use super::super::{Gaps, MS, Slicing, TurnOrder};
    use super::*;

    #[test]
    fn in_a_closed_loop_a_connection_sends_at_once_in_a_slice_of_its_server_and_else_when_the_next_begins() {
        let alternation = Alternation::new(slicing(500, 20), 1, 2080 * MS).unwrap();
        let next = |server: Server, at: u64| Turns::new(&alternation, server).next_ns(at);
        assert_eq!([0, 499 * MS, 500 * MS - 1].map(|at| next(0, at)), [0, 499 * MS, 500 * MS - 1]);
        assert_eq!([500 * MS, 519 * MS, 520 * MS, 1000 * MS].map(|at| next(0, at)), [1560 * MS; 4]);
        let of_b = [0, 510, 1020, 1039, 1040].map(|at| next(1, at * MS));
        assert_eq!(of_b, [520, 520, 1040, 1040, 1040].map(|at| at * MS));
        assert_eq!([next(1, 1540 * MS), next(0, 2060 * MS), next(0, NEVER)], [NEVER; 3]);
        assert_eq!(Turns::new(&alternation, 1).last_ns(700 * MS), 1020 * MS - 1);
    }

    /// Due times of all connections of one server, in order.
    fn due(alternation: &Alternation, server: Server, rate_rps: f64, connections: usize) -> Vec<u64> {
        let due = AlternatingDue::new(alternation, server, rate_rps, connections);
        let mut all = Vec::new();
        for connection in 0..connections {
            let mut request = 0;
            loop {
                let (found, due_ns) = due.next(connection, request);
                if due_ns == NEVER {
                    break;
                }
                all.push(due_ns);
                request = found + 1;
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn each_slice_has_the_requests_of_its_rate_at_even_distances_from_its_start_on() {
        let alternation = Alternation::new(slicing(100, 30), 1, 1000 * MS).unwrap();
        for server in [0, 1] {
            let expected: Vec<u64> = (0..alternation.slices())
                .filter(|&slice| alternation.server(slice) == server)
                .flat_map(|slice| (0..50).map(move |place| slice as u64 * 130 * MS + place * 2 * MS))
                .collect();
            assert_eq!(due(&alternation, server, 500.0, 7), expected);
        }
    }

    proptest! {
        #[test]
        fn within_a_slice_only_its_own_server_has_requests_due_and_none_is_left_out(
            rate_rps in 1.0f64..5000.0,
            connections in 1usize..20,
            slice_ns in 1_000_000u64..100_000_000,
            (least_ns, more_ns) in (0u64..50_000_000, 0u64..50_000_000),
            seed in 0u64..1000,
        ) {
            let gaps = Gaps { least_ns, most_ns: least_ns + more_ns };
            let slicing = Slicing { slice_ns, settle_ns: 0, gaps, order: TurnOrder::Random };
            let alternation = Alternation::new(slicing, seed, 2_000_000_000).unwrap();
            let both = [0, 1].map(|server| due(&alternation, server, rate_rps, connections));
            for (server, due) in both.iter().enumerate() {
                for &due_ns in due {
                    let slice = alternation.slice_at(due_ns);
                    prop_assert_eq!(alternation.server(slice), server);
                    prop_assert!(due_ns < alternation.end_ns(slice));
                }
            }
            let whole = Uniform::new(rate_rps, connections, alternation.sending_ns());
            let all: u64 = (0..connections).map(|connection| whole.due_before(connection, NEVER)).sum();
            prop_assert_eq!((both[0].len() + both[1].len()) as u64, all);
        }
    }
}
