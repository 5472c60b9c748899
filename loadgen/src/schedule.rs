//! Requests that come at random, at an even rate or in steps, and the seeds of what is drawn. Pure, as
//! [`crate::uniform`].

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::steps::Steps;
use crate::uniform::NEVER;

/// How the rate of a Poisson process goes.
#[derive(Clone, Copy, Debug)]
enum Pace<'a> {
    Even { ns_per_request: f64 },
    Steps(&'a Steps),
}

/// Due times of one connection with exponentially distributed gaps; over all connections a Poisson process of
/// the whole rate.
///
/// Each connection has its own stream of random numbers, so that a seed gives the same times for every number
/// of threads.
///
/// A gap is drawn in requests that are due meanwhile over all connections, and becomes a time by the rate.
#[derive(Debug)]
pub struct Poisson<'a> {
    random: fastrand::Rng,
    pace: Pace<'a>,
    connections: f64,
    due: f64,
    end_ns: u64,
}

impl<'a> Poisson<'a> {
    pub fn new(rate_rps: f64, connections: usize, connection: usize, seed: u64, end_ns: u64) -> Self {
        Self::paced(Pace::Even { ns_per_request: 1e9 / rate_rps }, connections, connection, seed, end_ns)
    }

    pub fn in_steps(steps: &'a Steps, connections: usize, connection: usize, seed: u64) -> Self {
        Self::paced(Pace::Steps(steps), connections, connection, seed, steps.duration_ns())
    }

    fn paced(pace: Pace<'a>, connections: usize, connection: usize, seed: u64, end_ns: u64) -> Self {
        let random = fastrand::Rng::with_seed(mix(seed, connection as u64));
        let mut poisson = Self { random, pace, connections: connections as f64, due: 0.0, end_ns };
        poisson.advance();
        poisson
    }

    /// Due time of the next request; [`NEVER`] if not before the end.
    pub fn due_ns(&self) -> u64 {
        let due_ns = match self.pace {
            Pace::Even { ns_per_request } => (self.due * ns_per_request) as u64,
            Pace::Steps(steps) => steps.expected_ns(self.due),
        };
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// Connections that share the rate.
    pub fn connections(&self) -> u64 {
        self.connections as u64
    }

    /// How many from the next on are due before `by_ns`, if all come as is expected of them.
    pub fn expected_before(&self, by_ns: u64) -> u64 {
        let by_ns = by_ns.min(self.end_ns);
        let due = match self.pace {
            Pace::Even { ns_per_request } => by_ns as f64 / ns_per_request,
            Pace::Steps(steps) => steps.expected_by(by_ns),
        };
        ((due - self.due) / self.connections).max(0.0).ceil() as u64
    }

    /// When the next but so many is due, if all come as is expected of them.
    pub fn expected_ns(&self, requests: u64) -> u64 {
        let due = self.due + requests as f64 * self.connections;
        match self.pace {
            Pace::Even { ns_per_request } => (due * ns_per_request) as u64,
            Pace::Steps(steps) => steps.expected_ns(due),
        }
    }

    /// On to the next request.
    pub fn advance(&mut self) {
        let uniform = 1.0 - self.random.f64(); // in (0, 1], so that the logarithm is finite
        self.due += -uniform.ln() * self.connections;
    }
}

/// Just behind the due time of the last of so many random requests, the first over all connections.
pub fn poisson_end_ns(rate_rps: f64, connections: usize, seed: u64, requests: u64) -> u64 {
    let series =
        (0..connections).map(|connection| Poisson::new(rate_rps, connections, connection, seed, NEVER));
    let mut next: BinaryHeap<_> = series.map(|poisson| Earliest(poisson.due_ns(), poisson)).collect();
    for _ in 1..requests {
        let mut first = next.peek_mut().expect("there is a connection");
        first.1.advance();
        first.0 = first.1.due_ns();
    }
    next.peek().map_or(NEVER, |last| last.0.saturating_add(1))
}

/// The largest in a heap is the one that is due first.
struct Earliest<'a>(u64, Poisson<'a>);

impl Ord for Earliest<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for Earliest<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Earliest<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Earliest<'_> {}

/// One seed out of a seed and a number, such that neighbours have nothing in common (the finalizer of
/// SplitMix64).
pub fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_requests_end_with_the_run_too() {
        let (seed, end_ns) = (9, 100_000_000);
        let mut poisson = Poisson::new(1000.0, 1, 0, seed, end_ns);
        let mut last = 0;
        while poisson.due_ns() != NEVER {
            last = poisson.due_ns();
            poisson.advance();
        }
        assert!(last < end_ns);
        let unlimited = Poisson { end_ns: NEVER, ..poisson };
        assert!(unlimited.due_ns() >= end_ns, "seed={seed}");
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let seed = 42;
        let mut poisson = Poisson::new(1000.0, 1, 0, seed, NEVER);
        let mut gaps = Vec::new();
        let mut last = 0;
        for _ in 0..100_000 {
            gaps.push((poisson.due_ns() - last) as f64 / 1e6);
            last = poisson.due_ns();
            poisson.advance();
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "seed={seed} mean={mean}");
        assert!((variance - 1.0).abs() < 0.05, "seed={seed} variance={variance}");
    }

    #[test]
    fn exactly_so_many_random_requests_are_due_before_their_end() {
        for (connections, requests) in [(1, 1), (7, 1000), (64, 63)] {
            let end_ns = poisson_end_ns(1000.0, connections, 5, requests);
            let due = (0..connections).map(|connection| {
                let mut poisson = Poisson::new(1000.0, connections, connection, 5, end_ns);
                std::iter::from_fn(|| (poisson.due_ns() != NEVER).then(|| poisson.advance())).count() as u64
            });
            assert_eq!(due.sum::<u64>(), requests, "seed=5 connections={connections}");
        }
    }

    #[test]
    fn poisson_times_depend_on_seed_and_connection_only() {
        let first = |connection, seed| Poisson::new(1000.0, 8, connection, seed, NEVER).due_ns();
        assert_eq!(first(3, 1), first(3, 1));
        assert_ne!(first(3, 1), first(3, 2));
        assert_ne!(first(3, 1), first(4, 1));
    }
}
