//! Figures of a histogram, by the rules of wrk2's text (those of the C HdrHistogram library, which Python's
//! follows).

use hdrhistogram::Histogram;

/// Percentiles that the text prints.
pub const TEXT_PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// All that are printed, in the text or in JSON, but for those of the text's spectrum.
pub const PRINTED_PERCENTILES: [f64; 14] =
    [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999, 100.0];

/// The value at a percentile: that of the sample whose rank is `percentile × count / 100`, rounded to the
/// nearest, from 1.
///
/// Values stand for all that are equal to them at the histogram's resolution; the highest of those is
/// returned. Java's library rounds the rank up instead of to the nearest, which on few samples can name the
/// next larger one. 0 if empty.
pub fn percentile(histogram: &Histogram<u64>, percentile: f64) -> u64 {
    let rank = ((percentile.clamp(0.0, 100.0) / 100.0 * histogram.len() as f64) + 0.5) as u64;
    let rank = rank.max(1);
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_at_value();
        if seen >= rank {
            return histogram.highest_equivalent(step.value_iterated_to());
        }
    }
    0
}

/// The lowest value equal to the smallest recorded; 0 if empty.
pub fn min(histogram: &Histogram<u64>) -> u64 {
    let first = histogram.iter_recorded().next();
    first.map_or(0, |step| histogram.lowest_equivalent(step.value_iterated_to()))
}

/// The lowest value equal to the largest recorded, as wrk2 prints it; 0 if empty.
pub fn max(histogram: &Histogram<u64>) -> u64 {
    if histogram.is_empty() { 0 } else { histogram.lowest_equivalent(histogram.max()) }
}

/// Not a number if empty, which wrk2 prints as `-nan`.
pub fn mean(histogram: &Histogram<u64>) -> f64 {
    if histogram.is_empty() { f64::NAN } else { histogram.mean() }
}

/// Of the population; not a number if empty.
pub fn stdev(histogram: &Histogram<u64>) -> f64 {
    if histogram.is_empty() { f64::NAN } else { histogram.stdev() }
}

/// The share of values, in percent, not further than `times` standard deviations from the mean; 0 if empty.
pub fn within_stdev(histogram: &Histogram<u64>, times: f64) -> f64 {
    let (mean, reach) = (mean(histogram), stdev(histogram) * times);
    let near = |value: u64| (value as f64 - mean).abs() <= reach;
    let steps = histogram.iter_recorded();
    let inside: u64 = steps
        .filter(|step| near(histogram.median_equivalent(step.value_iterated_to())))
        .map(|step| step.count_at_value())
        .sum();
    if histogram.is_empty() { 0.0 } else { inside as f64 / histogram.len() as f64 * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::histogram;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let mut few: Histogram<u64> = histogram();
        (1..=10).for_each(|value| few.record(value).unwrap());
        // 0.94 × 10 rounds to rank 9, 0.95 × 10 to rank 10.
        assert_eq!(percentile(&few, 94.0), 9);
        assert_eq!(percentile(&few, 95.0), 10);
        assert_eq!(percentile(&few, 0.0), 1);
        assert_eq!(percentile(&few, 100.0), 10);
    }

    #[test]
    fn an_empty_histogram_has_no_mean_and_is_0_elsewhere() {
        let empty = histogram();
        assert!(mean(&empty).is_nan() && stdev(&empty).is_nan());
        assert_eq!((min(&empty), max(&empty), percentile(&empty, 50.0)), (0, 0, 0));
        assert_eq!(within_stdev(&empty, 1.0), 0.0);
    }

    #[test]
    fn the_maximum_is_the_lowest_equal_value_and_the_last_percentile_the_highest() {
        let mut one: Histogram<u64> = histogram();
        one.record(6_350_000).unwrap();
        assert_eq!(max(&one), 6_348_800);
        assert_eq!(percentile(&one, 100.0), 6_352_895);
    }
}
