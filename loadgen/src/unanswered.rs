//! Requests that were due and got no answer: what is known of each is that its response time is at least how
//! long it was waited for.
//!
//! A request whose connection was lost, one that was never sent, and one still under way when the run is
//! given up: all of them are waited for until then. Pure; times are monotonic nanoseconds.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::recorder::{HIGHEST_US, histogram, microseconds};
use crate::statistics;

/// Due times are kept to this, rounded up, so that a bound is never too large and an outage of an hour takes
/// no memory.
const GRAIN_NS: u64 = 1_000_000;

/// When the unanswered requests were due.
#[derive(Debug, Default)]
pub struct Unanswered {
    due: BTreeMap<u64, u64>,
}

impl Unanswered {
    pub fn add(&mut self, due_ns: u64, requests: u64) {
        if requests > 0 {
            *self.due.entry(due_ns.div_ceil(GRAIN_NS)).or_default() += requests;
        }
    }

    /// Lower bounds of their response times in microseconds, if they were waited for until `given_up_ns`.
    pub fn at_least(&self, given_up_ns: u64) -> Histogram<u64> {
        let mut bounds = histogram();
        for (&grain, &count) in &self.due {
            let bound_us = microseconds(given_up_ns.saturating_sub(grain * GRAIN_NS)).clamp(1, HIGHEST_US);
            bounds.record_n(bound_us, count).expect("the bound lies within the histogram's");
        }
        bounds
    }
}

/// Response times of all requests that were due, those without an answer at their lower bound.
#[derive(Debug)]
pub struct AtLeast {
    pub all: Histogram<u64>,
    pub unanswered: u64,
    /// Requests, also those of which no response time was recorded.
    answered: u64,
    /// The smallest bound of one without an answer; none if there is none.
    smallest_bound_us: Option<u64>,
}

impl AtLeast {
    /// `answered`: how many requests were; with `--batch_latency` `responses` has one of each batch.
    pub fn of(responses: &Histogram<u64>, answered: u64, bounds: &Histogram<u64>) -> Self {
        let mut all = responses.clone();
        all.add(bounds).expect("both have the project's one shape");
        let smallest_bound_us = (!bounds.is_empty()).then(|| statistics::min(bounds));
        Self { all, unanswered: bounds.len(), answered, smallest_bound_us }
    }

    /// Share of all that were due, 0 to 1.
    pub fn unanswered_share(&self) -> f64 {
        self.unanswered as f64 / (self.answered + self.unanswered).max(1) as f64
    }

    /// The value at a percentile, and whether the true one may be larger: a request without an answer may
    /// belong behind it.
    pub fn percentile(&self, percentile: f64) -> (u64, bool) {
        let value_us = statistics::percentile(&self.all, percentile);
        (value_us, self.smallest_bound_us.is_some_and(|bound_us| bound_us <= value_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn answered(us: u64, count: u64) -> Histogram<u64> {
        let mut histogram = histogram();
        histogram.record_n(us, count).unwrap();
        histogram
    }

    #[test]
    fn a_bound_is_how_long_it_was_waited_for_and_never_more() {
        let mut unanswered = Unanswered::default();
        unanswered.add(10 * MS + 1, 3);
        let bounds = unanswered.at_least(1010 * MS);
        // 998 912 to 999 423 count as equal
        assert_eq!((bounds.len(), statistics::min(&bounds)), (3, 998_912));
        assert!(statistics::max(&bounds) < 1_000_000);
    }

    #[test]
    fn percentiles_below_every_bound_are_exact_and_those_behind_one_are_not() {
        let mut unanswered = Unanswered::default();
        unanswered.add(0, 50);
        let at_least = AtLeast::of(&answered(1000, 950), 950, &unanswered.at_least(2000 * MS));
        assert_eq!(at_least.percentile(50.0), (1000, false));
        assert_eq!(at_least.percentile(95.0), (1000, false));
        let (p99, may_be_larger) = at_least.percentile(99.0);
        assert!(may_be_larger && p99 >= 2_000_000, "{p99}");
        assert!((at_least.unanswered_share() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn the_share_without_an_answer_is_of_requests_also_where_only_batches_have_a_response_time() {
        let mut unanswered = Unanswered::default();
        unanswered.add(0, 200);
        let at_least = AtLeast::of(&answered(1000, 50), 800, &unanswered.at_least(2000 * MS));
        assert!((at_least.unanswered_share() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_small_bound_makes_every_larger_value_one_too() {
        let mut unanswered = Unanswered::default();
        unanswered.add(1999 * MS, 1);
        let at_least = AtLeast::of(&answered(5000, 99), 99, &unanswered.at_least(2000 * MS));
        assert_eq!(at_least.percentile(50.0), (5003, true));
    }

    #[test]
    fn where_everything_was_answered_nothing_is_a_bound() {
        let at_least = AtLeast::of(&answered(1000, 10), 10, &histogram());
        assert_eq!((at_least.unanswered, at_least.percentile(100.0)), (0, (1000, false)));
    }
}
