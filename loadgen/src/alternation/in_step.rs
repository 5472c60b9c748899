//! That drawn gaps and a drawn order keep slices from being in step with something that comes back in time:
//! a simulation, of what a periodic disturbance of the machine does to each of two equal servers.

use super::*;

/// What a duet of kvstudy has: 0.65 s a slice, of which the first 0.15 s are not counted.
const SLICE_NS: u64 = 650 * MS;
const SETTLE_NS: u64 = 150 * MS;
const SLICES: u64 = 40;
const SEEDS: u64 = 100;
/// A burst of this length takes the CPU …
const BURST_NS: u64 = 7 * MS;
/// … so often on the machine on which this was seen.
const SEEN_EVERY_NS: u64 = 1030 * MS;

fn alternation(gap_ms: [u64; 2], order: TurnOrder, seed: u64) -> Alternation {
    let gaps = Gaps { least_ns: gap_ms[0] * MS, most_ns: gap_ms[1] * MS };
    let slicing = Slicing { slice_ns: SLICE_NS, settle_ns: SETTLE_NS, gaps, order };
    Alternation::new(slicing, seed, SLICES / 2 * slicing.pair_ns()).unwrap()
}

/// Of the counted time of each server the share that bursts took, the first of which began at `phase_ns`.
fn burst_shares(alternation: &Alternation, every_ns: u64, phase_ns: u64) -> [f64; 2] {
    let mut taken_ns = [0; 2];
    for slice in 0..alternation.slices() {
        let (from_ns, until_ns) = (alternation.counted_from_ns(slice), alternation.end_ns(slice));
        let first = from_ns.saturating_sub(phase_ns + BURST_NS) / every_ns;
        let bursts =
            (first..).map(|burst| phase_ns + burst * every_ns).take_while(|begin_ns| *begin_ns < until_ns);
        taken_ns[alternation.server(slice)] += bursts
            .map(|begin_ns| (begin_ns + BURST_NS).min(until_ns).saturating_sub(begin_ns.max(from_ns)))
            .sum::<u64>();
    }
    let counted_ns = (alternation.slices() / 2) as u64 * alternation.counted_ns();
    taken_ns.map(|taken| taken as f64 / counted_ns as f64)
}

/// By how much more bursts took of B than of A, as a part of what they took of both in the mean: of runs of
/// many seeds, with bursts that begin at many moments. (Mean over seeds for the worst moment, root of the
/// mean square.)
fn unequal(gap_ms: [u64; 2], order: TurnOrder, every_ns: u64, seeds: u64) -> (f64, f64) {
    let drawn: Vec<Alternation> = (0..seeds).map(|seed| alternation(gap_ms, order, seed)).collect();
    let phases = 40;
    let (mut worst, mut squares) = (0.0f64, 0.0);
    for phase in 0..phases {
        let differences = drawn.iter().map(|one| {
            let [a, b] = burst_shares(one, every_ns, phase * every_ns / phases);
            (b - a) / (BURST_NS as f64 / every_ns as f64)
        });
        let (mut sum, mut square) = (0.0, 0.0);
        differences
            .for_each(|difference| (sum, square) = (sum + difference, square + difference * difference));
        worst = worst.max((sum / seeds as f64).abs());
        squares += square / seeds as f64;
    }
    (worst, (squares / phases as f64).sqrt())
}

#[test]
fn slices_at_even_distances_may_be_in_step_with_bursts_that_come_back_in_time() {
    // Three bursts in four slices and gaps, and one: all that one server has the other is spared.
    for every_ms in [893, 2680] {
        let (for_the_worst_moment, spread) = unequal([20, 20], TurnOrder::Abba, every_ms * MS, 1);
        assert!(for_the_worst_moment > 1.5 && spread > 1.0, "{every_ms} ms: {for_the_worst_moment} {spread}");
    }
    // Gaps alone do not mend it: in the mean four slices and gaps may still be three bursts.
    assert!(unequal([20, 220], TurnOrder::Abba, SEEN_EVERY_NS, SEEDS).1 > 1.0);
}

#[test]
fn with_drawn_gaps_and_a_drawn_order_bursts_take_as_much_from_one_server_as_from_the_other() {
    let half_a_second_to_three = (500 * MS..3000 * MS).step_by(70_000_000);
    for every_ns in half_a_second_to_three.chain([SEEN_EVERY_NS, 893 * MS, 1340 * MS, 2680 * MS]) {
        let (for_the_worst_moment, spread) = unequal([20, 350], TurnOrder::Random, every_ns, SEEDS);
        let told = format!("every {every_ns} ns: {for_the_worst_moment} {spread}");
        // In the mean nothing but chance, the largest of forty moments.
        assert!(for_the_worst_moment <= 4.5 * 1.3 * spread / (SEEDS as f64).sqrt(), "{told}");
        // In one run no more than if slices lay at moments that have nothing in common: a burst meets each of
        // the twenty of a server or not, the rarer the more it matters.
        let met = ((SLICE_NS - SETTLE_NS) as f64 / every_ns as f64).min(1.0);
        let by_chance = (2.0 * (1.0 - met) / met / (SLICES / 2) as f64).sqrt();
        assert!(spread < 1.25 * by_chance + 0.1, "{told}, by chance {by_chance}");
    }
    assert!(unequal([20, 350], TurnOrder::Random, SEEN_EVERY_NS, SEEDS).1 < 0.35);
}
