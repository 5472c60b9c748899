//! Two servers in turn: whose slice of the run it is, and from when to when. Pure; nanoseconds after the
//! start.
//!
//! ```text
//! |  A  | gap |  B  | gap |  B  | gap |  A  | gap |     slices of one length; only the server whose slice
//!                                                       it is has requests due
//! |<------ a pair ------>|<------ a pair ------>|
//! ```
//!
//! Every two slices are a pair, one of each server, so that both have as much of the run, wherever it is cut
//! behind a pair. Within slices requests are due as in a run without gaps: the clock of the schedule stands
//! still in a gap ([`due`]). What is due in the first part of a slice, while its server settles, is sent and
//! not counted. In a closed loop nothing is due at a certain time: a free connection sends as long as a slice
//! of its server lasts.
//!
//! Slices at even distances may be in step with something of the machine that comes back in time, which then
//! befalls one server and spares the other for as long as the run lasts. Gaps of drawn lengths and a drawn
//! order cannot be in step with anything.

mod due;
#[cfg(test)]
mod in_step;

use crate::schedule::mix;
pub use due::{AlternatingDue, Turns};

/// What is drawn from the seed beside the numbers of connections, each from a stream of its own.
const TURNS_STREAM: u64 = u64::MAX - 1;
const GAPS_STREAM: u64 = u64::MAX - 2;

/// Who goes first in each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnOrder {
    /// A first, then B, in turn: ABBAABBA …, so that what drifts evenly befalls both alike.
    Abba,
    /// Drawn for each pair from the seed. (Blocks of ABBA or BAAB, drawn, were tried: where a block is in
    /// step
    /// with what comes back in time, four slices count for one, and servers differ more; see `in_step`.)
    Random,
}

impl TurnOrder {
    pub const ALL: [Self; 2] = [Self::Abba, Self::Random];

    pub fn name(self) -> &'static str {
        match self {
            Self::Abba => "abba",
            Self::Random => "random",
        }
    }
}

/// How long the pause behind a slice is: drawn between these two from the seed, or always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    pub least_ns: u64,
    pub most_ns: u64,
}

impl Gaps {
    pub fn mean_ns(self) -> f64 {
        (self.least_ns + self.most_ns) as f64 / 2.0
    }

    /// So many, an even number, of which each length between least and most is as likely as any other.
    ///
    /// One is drawn from each of as many equal parts of the range, and they come in a drawn order. So the
    /// sum is always that of as many means: how long a run lasts does not depend on the seed.
    fn drawn(self, count: usize, seed: u64) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(mix(seed, GAPS_STREAM));
        let part_ns = (self.most_ns - self.least_ns) as f64 / count as f64;
        let mut gaps = Vec::with_capacity(count);
        for part in 0..count / 2 {
            let above_least_ns = ((part as f64 + random.f64()) * part_ns) as u64;
            gaps.extend([self.least_ns + above_least_ns, self.most_ns - above_least_ns]);
        }
        random.shuffle(&mut gaps);
        gaps
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Slicing {
    pub slice_ns: u64,
    /// The first part of each slice, which is not counted; shorter than a slice.
    pub settle_ns: u64,
    pub gaps: Gaps,
    pub order: TurnOrder,
}

impl Slicing {
    /// How long a pair and its gaps last; where gaps are drawn, in the mean.
    pub fn pair_ns(&self) -> u64 {
        2 * self.slice_ns + self.gaps.least_ns + self.gaps.most_ns
    }
}

/// The first server, A, is 0; the second, B, is 1.
pub type Server = usize;
pub const SERVERS: [&str; 2] = ["A", "B"];

#[derive(Clone, Debug)]
pub struct Alternation {
    slicing: Slicing,
    /// When each slice begins, in this order.
    starts_ns: Vec<u64>,
    /// Whose each slice is.
    turns: Vec<Server>,
    duration_ns: u64,
}

impl Alternation {
    /// As many pairs as a run of this length has room for; none if not even one.
    pub fn new(slicing: Slicing, seed: u64, duration_ns: u64) -> Option<Self> {
        let pairs = duration_ns / slicing.pair_ns();
        let turns = turns(slicing.order, pairs, seed);
        let mut starts_ns = Vec::with_capacity(turns.len());
        let mut end_ns = 0;
        for gap_ns in slicing.gaps.drawn(turns.len(), seed) {
            starts_ns.push(end_ns);
            end_ns += slicing.slice_ns + gap_ns;
        }
        (!turns.is_empty()).then_some(Self { slicing, starts_ns, turns, duration_ns: end_ns })
    }

    pub fn slicing(&self) -> &Slicing {
        &self.slicing
    }

    pub fn slices(&self) -> usize {
        self.turns.len()
    }

    pub fn server(&self, slice: usize) -> Server {
        self.turns[slice]
    }

    pub fn start_ns(&self, slice: usize) -> u64 {
        self.starts_ns[slice]
    }

    /// From here to its end what is due in a slice is counted.
    pub fn counted_from_ns(&self, slice: usize) -> u64 {
        self.start_ns(slice) + self.slicing.settle_ns
    }

    /// How much of each slice is counted.
    pub fn counted_ns(&self) -> u64 {
        self.slicing.slice_ns - self.slicing.settle_ns
    }

    pub fn end_ns(&self, slice: usize) -> u64 {
        self.start_ns(slice) + self.slicing.slice_ns
    }

    /// The middle of the gap behind a slice; none behind the last.
    pub fn gap_middle_ns(&self, slice: usize) -> Option<u64> {
        self.starts_ns.get(slice + 1).map(|next_ns| self.end_ns(slice).midpoint(*next_ns))
    }

    /// The end of the gap behind the last slice: what is late there is sent as behind any other.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// The slice in which this is, or behind which in the gap.
    #[inline]
    pub fn slice_at(&self, time_ns: u64) -> usize {
        // The first begins at 0.
        self.starts_ns.partition_point(|start_ns| *start_ns <= time_ns) - 1
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

    /// Where measuring begins behind a warm-up of this length: with a pair; none if none is left.
    ///
    /// The warm-up is as many pairs as it needs in the mean, so that the seed, which decides how long these
    /// are, does not decide how many are measured.
    pub fn measured_from_ns(&self, warm_up_ns: u64) -> Option<u64> {
        let pairs = warm_up_ns.div_ceil(self.slicing.pair_ns()) as usize;
        self.starts_ns.get(2 * pairs).copied()
    }

    /// Time in all slices.
    pub fn sending_ns(&self) -> u64 {
        self.slices() as u64 * self.slicing.slice_ns
    }

    /// Time in slices between these two.
    pub fn sending_between_ns(&self, from_ns: u64, until_ns: u64) -> u64 {
        (0..self.slices()).map(|slice| self.of_slice_ns(slice, from_ns, until_ns)).sum()
    }

    /// Time in this server's slices between these two.
    pub fn turns_between_ns(&self, server: Server, from_ns: u64, until_ns: u64) -> u64 {
        (self.slice_at(from_ns)..=self.slice_at(until_ns))
            .filter(|&slice| self.server(slice) == server)
            .map(|slice| self.of_slice_ns(slice, from_ns, until_ns))
            .sum()
    }

    fn of_slice_ns(&self, slice: usize, from_ns: u64, until_ns: u64) -> u64 {
        self.end_ns(slice).min(until_ns).saturating_sub(self.start_ns(slice).max(from_ns))
    }
}

fn turns(order: TurnOrder, pairs: u64, seed: u64) -> Vec<Server> {
    let mut random = fastrand::Rng::with_seed(mix(seed, TURNS_STREAM));
    let mut turns = Vec::new();
    for pair in 0..pairs {
        let b_first = match order {
            TurnOrder::Abba => pair % 2 == 1,
            TurnOrder::Random => random.bool(),
        };
        turns.extend(if b_first { [1, 0] } else { [0, 1] });
    }
    turns
}

#[cfg(test)]
const MS: u64 = 1_000_000;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// ABBA, without settling, and with gaps of one length.
    pub(crate) fn slicing(slice_ms: u64, gap_ms: u64) -> Slicing {
        let gaps = Gaps { least_ns: gap_ms * MS, most_ns: gap_ms * MS };
        Slicing { slice_ns: slice_ms * MS, settle_ns: 0, gaps, order: TurnOrder::Abba }
    }

    fn turns(alternation: &Alternation) -> Vec<Server> {
        (0..alternation.slices()).map(|slice| alternation.server(slice)).collect()
    }

    #[test]
    fn slices_are_abba_and_as_many_whole_pairs_as_there_is_time_for() {
        let of = |duration_ms: u64| Alternation::new(slicing(500, 20), 1, duration_ms * MS);
        let alternation = of(5000).unwrap();
        assert_eq!(turns(&alternation), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!((alternation.start_ns(1), alternation.end_ns(1)), (520 * MS, 1020 * MS));
        assert_eq!(alternation.duration_ns(), 8 * 520 * MS);
        assert!(of(1039).is_none());
        assert!(of(1040).is_some());
    }

    #[test]
    fn a_drawn_order_has_both_in_every_pair_and_is_that_of_the_seed() {
        let drawn = |seed| {
            turns(
                &Alternation::new(Slicing { order: TurnOrder::Random, ..slicing(1, 0) }, seed, 200 * MS)
                    .unwrap(),
            )
        };
        assert!(drawn(7).chunks(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let a_first = drawn(7).chunks(2).filter(|pair| pair[0] == 0).count();
        assert!((25..=75).contains(&a_first), "seed=7: {a_first} of 100 pairs");
    }

    #[test]
    fn measuring_begins_with_a_pair() {
        let alternation = Alternation::new(slicing(500, 20), 1, 5000 * MS).unwrap();
        assert_eq!(alternation.measured_from_ns(0), Some(0));
        assert_eq!(alternation.measured_from_ns(1), Some(1040 * MS));
        assert_eq!(alternation.measured_from_ns(1040 * MS), Some(1040 * MS));
        assert_eq!(alternation.measured_from_ns(3 * 1040 * MS + 1), None);
        assert_eq!(alternation.sending_ns(), 8 * 500 * MS);
    }

    #[test]
    fn time_in_slices_ends_where_a_run_is_called_off() {
        let alternation = Alternation::new(slicing(500, 20), 1, 5000 * MS).unwrap();
        let sending =
            |from_ms: u64, until_ms: u64| alternation.sending_between_ns(from_ms * MS, until_ms * MS) / MS;
        assert_eq!(sending(1040, 4160), 6 * 500);
        assert_eq!(sending(1040, 1340), 300);
        assert_eq!([sending(1040, 1550), sending(1040, 1570), sending(510, 520)], [500, 510, 0]);
    }

    #[test]
    fn what_is_due_in_the_first_part_of_a_slice_is_not_counted() {
        let settling = Slicing { settle_ns: 150 * MS, ..slicing(500, 20) };
        let alternation = Alternation::new(settling, 1, 5000 * MS).unwrap();
        let edges = [0, 150 * MS - 1, 150 * MS, 500 * MS - 1, 510 * MS, 520 * MS, 670 * MS - 1, 670 * MS];
        assert_eq!(
            edges.map(|at| alternation.is_counted(at)),
            [false, false, true, true, true, false, false, true]
        );
        assert_eq!((alternation.counted_from_ns(1), alternation.counted_ns()), (670 * MS, 350 * MS));
    }

    #[test]
    fn every_moment_has_a_slice_of_each_server_in_its_pair() {
        let alternation = Alternation::new(slicing(500, 20), 1, 5000 * MS).unwrap();
        let slices = |at_ms: u64| [0, 1].map(|server| alternation.slice_in_pair(at_ms * MS, server));
        assert_eq!(
            [slices(0), slices(519), slices(520), slices(1040), slices(9999)],
            [[0, 1], [0, 1], [0, 1], [3, 2], [7, 6]]
        );
    }

    proptest! {
        #[test]
        fn drawn_gaps_are_within_their_range_and_in_sum_as_long_as_as_many_means(
            slice_ns in 1u64..1_000_000_000,
            (least_ns, more_ns) in (0u64..400_000_000, 0u64..400_000_000),
            pairs in 1u64..60,
            seed: u64,
        ) {
            let gaps = Gaps { least_ns, most_ns: least_ns + more_ns };
            let slicing = Slicing { slice_ns, settle_ns: 0, gaps, order: TurnOrder::Random };
            let alternation = Alternation::new(slicing, seed, pairs * slicing.pair_ns()).unwrap();
            prop_assert_eq!(alternation.slices() as u64, 2 * pairs);
            prop_assert_eq!(alternation.duration_ns(), pairs * slicing.pair_ns());
            for slice in 0..alternation.slices() {
                let is_last = slice + 1 == alternation.slices();
                let next_ns =
                    if is_last { alternation.duration_ns() } else { alternation.start_ns(slice + 1) };
                let gap_ns = next_ns - alternation.end_ns(slice);
                prop_assert!((gaps.least_ns..=gaps.most_ns).contains(&gap_ns), "gap={gap_ns}");
                prop_assert_eq!(alternation.slice_at(alternation.start_ns(slice)), slice);
                prop_assert_eq!(alternation.slice_at(next_ns - 1), slice);
                if let Some(middle_ns) = alternation.gap_middle_ns(slice) {
                    prop_assert_eq!(middle_ns - alternation.end_ns(slice), gap_ns / 2);
                }
            }
        }
    }

    #[test]
    fn drawn_gaps_are_those_of_the_seed_and_fill_their_range_evenly() {
        let gaps = Gaps { least_ns: 20 * MS, most_ns: 350 * MS };
        let (drawn, mean_ms) = (gaps.drawn(4000, 3), gaps.mean_ns() / MS as f64);
        assert_eq!((drawn == gaps.drawn(4000, 3), drawn == gaps.drawn(4000, 4)), (true, false));
        for (below_ms, share) in [(20, 0.0), (103, 0.25), (185, 0.5), (268, 0.75), (351, 1.0)] {
            let below = drawn.iter().filter(|gap_ns| **gap_ns < below_ms * MS).count() as f64 / 4000.0;
            assert!((below - share).abs() < 0.01, "seed=3: {below} of the gaps are below {below_ms} ms");
        }
        // One after the other they have nothing in common.
        let deviations: Vec<f64> = drawn.iter().map(|gap_ns| *gap_ns as f64 / MS as f64 - mean_ms).collect();
        let together: f64 = deviations.windows(2).map(|two| two[0] * two[1]).sum();
        let alone: f64 = deviations.iter().map(|one| one * one).sum();
        assert!((together / alone).abs() < 0.08, "seed=3: correlation={}", together / alone);
    }

    #[test]
    fn a_warm_up_is_as_many_pairs_whatever_the_seed() {
        let slicing = Slicing { gaps: Gaps { least_ns: 0, most_ns: 400 * MS }, ..slicing(100, 0) };
        assert_eq!(slicing.pair_ns(), 600 * MS);
        for seed in 0..50 {
            let alternation = Alternation::new(slicing, seed, 6000 * MS).unwrap();
            let measured_from = |warm_up_ms: u64| {
                alternation.measured_from_ns(warm_up_ms * MS).map(|at| alternation.slice_at(at))
            };
            assert_eq!(
                [0, 1, 600, 601, 5400, 5401].map(measured_from),
                [Some(0), Some(2), Some(2), Some(4), Some(18), None],
                "seed={seed}"
            );
        }
    }
}
