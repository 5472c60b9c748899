//! When each request is due. Pure: no clock, no sockets; times are nanoseconds after the start of the run.
//!
//! Constant throughput over n serial connections at R requests per second: request i of connection k is due
//! at `(k + i × n) / R` seconds. All requests of all connections together are thus R per second, evenly
//! spread; a connection that waits for an answer is late with its next request, which is sent as soon as that
//! answer has come.
//!
//! Requests due before the end belong to the run; one due at the end or later does not, however late anyone
//! looks at it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::steps::Steps;

/// The due time of what does not belong to the run.
pub const NEVER: u64 = u64::MAX;

/// Due times of all connections of a run.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    ns_per_request: f64,
    connections: u64,
    end_ns: u64,
}

impl Uniform {
    pub fn new(rate_rps: f64, connections: usize, end_ns: u64) -> Self {
        Self { ns_per_request: 1e9 / rate_rps, connections: connections as u64, end_ns }
    }

    /// Due time of request `request` of connection `connection`, both counted from 0; [`NEVER`] if not before
    /// the end.
    ///
    /// Computed from the start each time, so that rounding does not add up: exact to a nanosecond for 2^53 ns
    /// (104 days).
    #[inline]
    pub fn due_ns(&self, connection: usize, request: u64) -> u64 {
        let place = connection as u64 + request * self.connections;
        let due_ns = (place as f64 * self.ns_per_request).round() as u64;
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// How many requests of `connection` are due before `by_ns`, and before the end.
    pub fn due_before(&self, connection: usize, by_ns: u64) -> u64 {
        let by_ns = by_ns.min(self.end_ns);
        let estimate = by_ns as f64 / self.ns_per_request / self.connections as f64;
        let mut count = (estimate as u64).saturating_sub(2);
        while self.due_ns(connection, count) < by_ns {
            count += 1;
        }
        count
    }
}

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
    fn request_i_of_connection_k_is_due_at_its_place_in_the_period() {
        let uniform = Uniform::new(2000.0, 64, NEVER);
        for (connection, request) in [(0, 0), (1, 0), (63, 0), (0, 1), (17, 12345)] {
            let seconds = (connection as f64 / 64.0 + request as f64) * 64.0 / 2000.0;
            assert_eq!(
                uniform.due_ns(connection, request),
                (seconds * 1e9).round() as u64,
                "k={connection} i={request}"
            );
        }
    }

    #[test]
    fn all_connections_together_are_evenly_spread() {
        let uniform = Uniform::new(1e6, 10_000, NEVER);
        let mut due: Vec<u64> = (0..10_000).flat_map(|k| (0..3).map(move |i| uniform.due_ns(k, i))).collect();
        due.sort_unstable();
        assert!(due.windows(2).all(|pair| pair[1] - pair[0] == 1000));
    }

    #[test]
    fn rounding_does_not_add_up_over_a_day() {
        let uniform = Uniform::new(3.0, 1, NEVER);
        assert_eq!(uniform.due_ns(0, 3 * 86_400), 86_400_000_000_000);
    }

    #[test]
    fn half_a_request_per_second_is_one_every_two_seconds() {
        let uniform = Uniform::new(0.5, 1, NEVER);
        assert_eq!([0, 1, 2].map(|i| uniform.due_ns(0, i)), [0, 2_000_000_000, 4_000_000_000]);
    }

    #[test]
    fn requests_due_before_an_end_are_those_whose_time_is_before_it() {
        for (rate, connections, end) in
            [(0.5, 1, 4_000_000_000), (20_000.0, 64, 1_000_000_000), (999.9, 7, 123_456_789), (1e9, 3, 1000)]
        {
            let uniform = Uniform::new(rate, connections, NEVER);
            for k in 0..connections {
                let counted = (0..).take_while(|&i| uniform.due_ns(k, i) < end).count() as u64;
                assert_eq!(uniform.due_before(k, end), counted, "rate={rate} k={k}");
            }
        }
    }

    #[test]
    fn what_is_due_at_the_end_does_not_belong_to_the_run_and_what_is_due_just_before_it_does() {
        let second = 1_000_000_000;
        assert_eq!(Uniform::new(10.0, 10, second).due_ns(0, 1), NEVER);
        assert_eq!(Uniform::new(10.0, 10, second + 1).due_ns(0, 1), second);
        for rate in [0.5, 1.0, 3.0, 999.9, 20_000.0, 1e6] {
            let due: u64 = (0..64).map(|k| Uniform::new(rate, 64, second).due_before(k, u64::MAX)).sum();
            assert_eq!(due, rate.ceil() as u64, "rate={rate}");
        }
    }

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
