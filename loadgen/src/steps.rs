//! A rate that changes in steps: which step a time belongs to, and when the requests of all steps are due.
//! Pure; nanoseconds after the start.
//!
//! ```text
//! | warm-up, at the rate of the first | step 1 | step 2 | …
//! ```
//!
//! Requests are numbered through all stretches, and the connections take them in turn. Each stretch has a
//! request due at its very beginning, and the others at even distances from there.

use std::time::Duration;

use crate::uniform::{NEVER, Uniform};

/// Each step has histograms of its own in every thread, made before the run.
pub const STEPS_MAX: usize = 100;

/// A step as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub rate_rps: f64,
    pub length: Duration,
}

/// A time of one rate: the warm-up or a step.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    rate_rps: f64,
    start_ns: u64,
    end_ns: u64,
    /// Requests due before it.
    before: u64,
    /// As many as are due before it by chance, if they come at random.
    expected_before: f64,
}

#[derive(Clone, Debug)]
pub struct Steps {
    /// The steps, the warm-up before them if there is one.
    stretches: Vec<Stretch>,
    warm_up: usize,
}

impl Steps {
    /// At least one step, each with a rate and a length over 0.
    pub fn new(steps: &[Step], warm_up_ns: u64) -> Self {
        let lead = (warm_up_ns > 0).then(|| (steps[0].rate_rps, warm_up_ns));
        let typed = steps.iter().map(|step| (step.rate_rps, step.length.as_nanos() as u64));
        let (mut start_ns, mut before, mut expected_before) = (0, 0, 0.0);
        let stretches = lead
            .into_iter()
            .chain(typed)
            .map(|(rate_rps, length_ns)| {
                let stretch =
                    Stretch { rate_rps, start_ns, end_ns: start_ns + length_ns, before, expected_before };
                before += stretch.due_before(stretch.end_ns);
                expected_before += rate_rps * length_ns as f64 / 1e9;
                start_ns = stretch.end_ns;
                stretch
            })
            .collect();
        Self { stretches, warm_up: usize::from(lead.is_some()) }
    }

    pub fn count(&self) -> usize {
        self.stretches.len() - self.warm_up
    }

    pub fn rate_rps(&self, step: usize) -> f64 {
        self.stretches[step + self.warm_up].rate_rps
    }

    pub fn start_ns(&self, step: usize) -> u64 {
        self.stretches[step + self.warm_up].start_ns
    }

    pub fn end_ns(&self, step: usize) -> u64 {
        self.stretches[step + self.warm_up].end_ns
    }

    pub fn duration_ns(&self) -> u64 {
        self.end_ns(self.count() - 1)
    }

    /// None in the warm-up; what is behind the end belongs to the last.
    #[inline]
    pub fn step_at(&self, time_ns: u64) -> Option<usize> {
        self.stretch_at(time_ns).checked_sub(self.warm_up)
    }

    /// Requests per second that are due between two times, the second behind the first.
    pub fn mean_rate_rps(&self, from_ns: u64, until_ns: u64) -> f64 {
        (self.expected_by(until_ns) - self.expected_by(from_ns)) / (until_ns - from_ns) as f64 * 1e9
    }

    fn stretch_at(&self, time_ns: u64) -> usize {
        self.stretches[1..].partition_point(|stretch| stretch.start_ns <= time_ns)
    }

    /// How many requests are due before a time by chance, if they come at random.
    pub fn expected_by(&self, time_ns: u64) -> f64 {
        let stretch = &self.stretches[self.stretch_at(time_ns)];
        let in_it_ns = time_ns.min(stretch.end_ns) - stretch.start_ns;
        stretch.expected_before + in_it_ns as f64 / 1e9 * stretch.rate_rps
    }

    /// When request `place` of the whole run is due, counted from 0; [`NEVER`] behind the last.
    #[inline]
    pub fn due_ns(&self, place: u64) -> u64 {
        let stretch = self.stretches[1..].partition_point(|stretch| stretch.before <= place);
        self.stretches[stretch].due_ns(place)
    }

    /// When so many requests have come by chance, if they come as often as the rate says; [`NEVER`] behind
    /// the end.
    pub fn expected_ns(&self, requests: f64) -> u64 {
        let stretch = &self.stretches
            [self.stretches[1..].partition_point(|stretch| stretch.expected_before <= requests)];
        let due_ns =
            stretch.start_ns + ((requests - stretch.expected_before) / stretch.rate_rps * 1e9) as u64;
        if due_ns < self.duration_ns() { due_ns } else { NEVER }
    }

    /// How many requests of connection `connection` of so many are due before `by_ns`.
    pub fn due_before(&self, connection: u64, connections: u64, by_ns: u64) -> u64 {
        let stretch = &self.stretches[self.stretch_at(by_ns)];
        let places = stretch.before + stretch.due_before(by_ns);
        places.saturating_sub(connection).div_ceil(connections)
    }
}

impl Stretch {
    fn uniform(&self) -> Uniform {
        Uniform::new(self.rate_rps, 1, self.end_ns - self.start_ns)
    }

    fn due_ns(&self, place: u64) -> u64 {
        match self.uniform().due_ns(0, place - self.before) {
            NEVER => NEVER,
            in_it_ns => self.start_ns + in_it_ns,
        }
    }

    fn due_before(&self, by_ns: u64) -> u64 {
        self.uniform().due_before(0, by_ns - self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn steps(typed: &[(f64, u64)], warm_up_ms: u64) -> Steps {
        let typed: Vec<Step> = typed
            .iter()
            .map(|&(rate_rps, ms)| Step { rate_rps, length: Duration::from_millis(ms) })
            .collect();
        Steps::new(&typed, warm_up_ms * MS)
    }

    fn all_due(steps: &Steps) -> Vec<u64> {
        (0..).map(|place| steps.due_ns(place)).take_while(|&due_ns| due_ns != NEVER).collect()
    }

    #[test]
    fn each_step_begins_with_a_request_and_has_the_others_at_even_distances() {
        let steps = steps(&[(1000.0, 3), (500.0, 4), (2000.0, 1)], 0);
        let expected_us = [0, 1000, 2000, 3000, 5000, 7000, 7500];
        assert_eq!(all_due(&steps), expected_us.map(|us| us * 1000));
        assert_eq!(steps.duration_ns(), 8 * MS);
    }

    #[test]
    fn the_warm_up_has_the_rate_of_the_first_step_and_belongs_to_none() {
        let steps = steps(&[(1000.0, 2), (100.0, 10)], 2);
        assert_eq!(all_due(&steps), [0, MS, 2 * MS, 3 * MS, 4 * MS]);
        let at = [0, 2 * MS - 1, 2 * MS, 4 * MS - 1, 4 * MS, 14 * MS, 99 * MS];
        assert_eq!(at.map(|ns| steps.step_at(ns)), [None, None, Some(0), Some(0), Some(1), Some(1), Some(1)]);
        assert_eq!((steps.count(), steps.start_ns(0), steps.end_ns(1)), (2, 2 * MS, 14 * MS));
        assert!((steps.mean_rate_rps(2 * MS, 14 * MS) - 3.0 / 0.012).abs() < 1e-6);
        assert!((steps.mean_rate_rps(3 * MS, 4 * MS) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn one_step_is_a_run_of_one_rate() {
        let (steps, uniform) = (steps(&[(999.9, 700)], 0), Uniform::new(999.9, 7, 700 * MS));
        for connection in 0..7 {
            for request in 0..120 {
                assert_eq!(
                    steps.due_ns(connection + request * 7),
                    uniform.due_ns(connection as usize, request)
                );
            }
        }
    }

    #[test]
    fn requests_at_random_come_as_often_as_each_steps_rate_says() {
        let steps = steps(&[(1000.0, 500), (4000.0, 500)], 0);
        assert_eq!(
            [0.0, 250.0, 500.0, 1500.0].map(|n| steps.expected_ns(n)),
            [0, 250 * MS, 500 * MS, 750 * MS]
        );
        assert_eq!([2499.9, 2500.0, 9999.0].map(|n| steps.expected_ns(n) == NEVER), [false, true, true]);
    }

    proptest! {
        #[test]
        fn what_is_due_before_a_time_is_what_has_an_earlier_due_time_over_all_connections(
            typed in prop::collection::vec((1.0f64..3000.0, 1u64..200), 1..6),
            warm_up_ms in 0u64..50,
            connections in 1u64..9,
            by_ns in 0u64..1_500_000_000,
        ) {
            let steps = steps(&typed, warm_up_ms);
            let due = all_due(&steps);
            prop_assert!(due.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(due.iter().all(|&due_ns| due_ns < steps.duration_ns()));
            for connection in 0..connections {
                let own = due.iter().skip(connection as usize).step_by(connections as usize);
                let expected = own.filter(|&&due_ns| due_ns < by_ns).count() as u64;
                prop_assert_eq!(steps.due_before(connection, connections, by_ns), expected);
            }
        }
    }
}
