//! Two servers in turn: whose slice of the run it is, and when the requests to each are due. Pure;
//! nanoseconds after the start.
//!
//! ```text
//! |  A  | gap |  B  | gap |  B  | gap |  A  | gap |     slices of one length; only the server whose slice it is has requests due
//! |<------ a pair ------>|<------ a pair ------>|
//! ```
//!
//! Every two slices are a pair, one of each server, so that both have as much of the run, wherever it is cut
//! behind a pair. Within slices requests are due as in a run without gaps: the clock of the schedule stands
//! still in a gap. What is due in the first part of a slice, while its server settles, is sent and not
//! counted. In a closed loop nothing is due at a certain time: a free connection sends as long as a slice of
//! its server lasts.

use crate::schedule::{NEVER, Uniform, mix};

/// Who goes first in each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrder {
    /// A first, then B, in turn: ABBAABBA …, so that what drifts evenly befalls both alike.
    Abba,
    /// Drawn for each pair from the seed.
    Random,
}

/// The first server, A, is 0; the second, B, is 1.
pub type Server = usize;
pub const SERVERS: [&str; 2] = ["A", "B"];

#[derive(Clone, Debug)]
pub struct Alternation {
    pub slice_ns: u64,
    /// The first part of each slice, which is not counted.
    pub settle_ns: u64,
    pub gap_ns: u64,
    pub order: TurnOrder,
    /// Whose each slice is.
    turns: Vec<Server>,
}

impl Alternation {
    /// As many pairs as a run of this length has room for; none if not even one.
    pub fn new(slice_ns: u64, gap_ns: u64, order: TurnOrder, seed: u64, duration_ns: u64) -> Option<Self> {
        let pairs = duration_ns / (slice_ns + gap_ns) / 2;
        let mut random = fastrand::Rng::with_seed(mix(seed, u64::MAX - 1));
        let turns: Vec<Server> = (0..pairs)
            .flat_map(|pair| {
                let b_first = match order {
                    TurnOrder::Abba => pair % 2 == 1,
                    TurnOrder::Random => random.bool(),
                };
                if b_first { [1, 0] } else { [0, 1] }
            })
            .collect();
        (!turns.is_empty()).then_some(Self { slice_ns, settle_ns: 0, gap_ns, order, turns })
    }

    /// The same with this first part of each slice not counted; it must be shorter than a slice.
    pub fn settling(self, settle_ns: u64) -> Self {
        Self { settle_ns, ..self }
    }

    pub fn slices(&self) -> usize {
        self.turns.len()
    }

    pub fn server(&self, slice: usize) -> Server {
        self.turns[slice]
    }

    fn period_ns(&self) -> u64 {
        self.slice_ns + self.gap_ns
    }

    pub fn start_ns(&self, slice: usize) -> u64 {
        slice as u64 * self.period_ns()
    }

    /// From here to its end what is due in a slice is counted.
    pub fn counted_from_ns(&self, slice: usize) -> u64 {
        self.start_ns(slice) + self.settle_ns
    }

    /// How much of each slice is counted.
    pub fn counted_ns(&self) -> u64 {
        self.slice_ns - self.settle_ns
    }

    pub fn end_ns(&self, slice: usize) -> u64 {
        self.start_ns(slice) + self.slice_ns
    }

    /// The end of the gap behind the last slice: what is late there is sent as behind any other.
    pub fn duration_ns(&self) -> u64 {
        self.start_ns(self.slices())
    }

    /// The slice in which this is, or behind which in the gap.
    #[inline]
    pub fn slice_at(&self, time_ns: u64) -> usize {
        ((time_ns / self.period_ns()) as usize).min(self.slices() - 1)
    }

    /// Whether what is due then is counted.
    #[inline]
    pub fn is_counted(&self, time_ns: u64) -> bool {
        time_ns >= self.counted_from_ns(self.slice_at(time_ns))
    }

    /// This server's slice in the pair to which that time belongs.
    pub fn slice_in_pair(&self, time_ns: u64, server: Server) -> usize {
        let first = self.slice_at(time_ns) & !1;
        if self.server(first) == server { first } else { first + 1 }
    }

    /// The start of the first pair that begins at or after this; none if no pair does.
    pub fn next_pair_ns(&self, time_ns: u64) -> Option<u64> {
        let slice = time_ns.div_ceil(self.period_ns()).next_multiple_of(2);
        (slice < self.slices() as u64).then(|| slice * self.period_ns())
    }

    /// Time in slices between a slice's start and the end.
    pub fn sending_ns(&self, from_ns: u64) -> u64 {
        (self.slices() - self.slice_at(from_ns)) as u64 * self.slice_ns
    }
}

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
        let sending_ns = alternation.sending_ns(0);
        Self { alternation, server, uniform: Uniform::new(rate_rps, connections, sending_ns) }
    }

    /// The first request of `connection` that is this server's, `request` or a later one, and its due time;
    /// [`NEVER`] if there is none before the end.
    pub fn next(&self, connection: usize, mut request: u64) -> (u64, u64) {
        loop {
            let sending_ns = self.uniform.due_ns(connection, request);
            if sending_ns == NEVER {
                return (request, NEVER);
            }
            let slice = (sending_ns / self.alternation.slice_ns) as usize;
            if self.alternation.server(slice) == self.server {
                return (request, sending_ns + slice as u64 * self.alternation.gap_ns);
            }
            // On to the first request that is not due in this slice of the other server.
            let next_slice_ns = (slice as u64 + 1) * self.alternation.slice_ns;
            request = self.uniform.due_before(connection, next_slice_ns).max(request + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn turns(alternation: &Alternation) -> Vec<Server> {
        (0..alternation.slices()).map(|slice| alternation.server(slice)).collect()
    }

    #[test]
    fn slices_are_abba_and_as_many_whole_pairs_as_there_is_time_for() {
        let alternation = Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 5000 * MS).unwrap();
        assert_eq!(turns(&alternation), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!((alternation.start_ns(1), alternation.end_ns(1)), (520 * MS, 1020 * MS));
        assert_eq!(alternation.duration_ns(), 8 * 520 * MS);
        assert!(Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 1039 * MS).is_none());
        assert!(Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 1040 * MS).is_some());
    }

    #[test]
    fn a_drawn_order_has_both_in_every_pair_and_is_that_of_the_seed() {
        let drawn = |seed| turns(&Alternation::new(MS, 0, TurnOrder::Random, seed, 200 * MS).unwrap());
        assert!(drawn(7).chunks(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let a_first = drawn(7).chunks(2).filter(|pair| pair[0] == 0).count();
        assert!((25..=75).contains(&a_first), "seed=7: {a_first} of 100 pairs");
    }

    #[test]
    fn measuring_begins_with_a_pair() {
        let alternation = Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 5000 * MS).unwrap();
        assert_eq!(alternation.next_pair_ns(0), Some(0));
        assert_eq!(alternation.next_pair_ns(1), Some(1040 * MS));
        assert_eq!(alternation.next_pair_ns(1040 * MS), Some(1040 * MS));
        assert_eq!(alternation.next_pair_ns(3 * 1040 * MS + 1), None);
        assert_eq!(alternation.sending_ns(1040 * MS), 6 * 500 * MS);
    }

    #[test]
    fn what_is_due_in_the_first_part_of_a_slice_is_not_counted() {
        let alternation =
            Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 5000 * MS).unwrap().settling(150 * MS);
        let edges = [0, 150 * MS - 1, 150 * MS, 500 * MS - 1, 510 * MS, 520 * MS, 670 * MS - 1, 670 * MS];
        assert_eq!(
            edges.map(|at| alternation.is_counted(at)),
            [false, false, true, true, true, false, false, true]
        );
        assert_eq!((alternation.counted_from_ns(1), alternation.counted_ns()), (670 * MS, 350 * MS));
    }

    #[test]
    fn every_moment_has_a_slice_of_each_server_in_its_pair() {
        let alternation = Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 5000 * MS).unwrap();
        let slices = |at_ms: u64| [0, 1].map(|server| alternation.slice_in_pair(at_ms * MS, server));
        assert_eq!(
            [slices(0), slices(519), slices(520), slices(1040), slices(9999)],
            [[0, 1], [0, 1], [0, 1], [3, 2], [7, 6]]
        );
    }

    #[test]
    fn in_a_closed_loop_a_connection_sends_at_once_in_a_slice_of_its_server_and_else_when_the_next_begins() {
        let alternation = Alternation::new(500 * MS, 20 * MS, TurnOrder::Abba, 1, 2080 * MS).unwrap();
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
        let alternation = Alternation::new(100 * MS, 30 * MS, TurnOrder::Abba, 1, 1000 * MS).unwrap();
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
            gap_ns in 0u64..50_000_000,
            seed in 0u64..1000,
        ) {
            let alternation = Alternation::new(slice_ns, gap_ns, TurnOrder::Random, seed, 2_000_000_000).unwrap();
            let both = [0, 1].map(|server| due(&alternation, server, rate_rps, connections));
            for (server, due) in both.iter().enumerate() {
                for &due_ns in due {
                    let slice = alternation.slice_at(due_ns);
                    prop_assert_eq!(alternation.server(slice), server);
                    prop_assert!(due_ns < alternation.end_ns(slice));
                }
            }
            let whole = Uniform::new(rate_rps, connections, alternation.sending_ns(0));
            let all: u64 = (0..connections).map(|connection| whole.due_before(connection, NEVER)).sum();
            prop_assert_eq!((both[0].len() + both[1].len()) as u64, all);
        }
    }
}
