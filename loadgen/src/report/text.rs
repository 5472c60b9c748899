//! wrk2's text, byte for byte. Nothing else is printed on stdout, so that what reads wrk2's text reads ours.

use std::fmt::Write;

use hdrhistogram::Histogram;

use crate::statistics::{self, TEXT_PERCENTILES};
use crate::tally::Tally;
use crate::units::{aligned, banner_duration, binary, metric, time_us};

pub fn banner(duration_s: f64, url: &str, threads: usize, connections: usize) -> String {
    banner_of(&banner_duration(duration_s), url, threads, connections)
}

/// Of a run that ends with a number of requests, which wrk2 does not have.
pub fn banner_of_requests(requests: u64, url: &str, threads: usize, connections: usize) -> String {
    banner_of(&format!("{requests}-request"), url, threads, connections)
}

fn banner_of(length: &str, url: &str, threads: usize, connections: usize) -> String {
    format!("Running {length} test @ {url}\n  {threads} threads and {connections} connections\n")
}

/// wrk2 keeps the mean as whole microseconds; one that is no number becomes the largest there is.
pub fn calibration(mean_us: f64, sample_every_ms: u64) -> String {
    let mean_ms = if mean_us.is_nan() { 9_223_372_036_854_775.808 } else { mean_us.trunc() / 1000.0 };
    format!("  Thread calibration: mean lat.: {mean_ms:.3}ms, rate sampling interval: {sample_every_ms}ms\n")
}

/// A line of the table `Thread Stats`; not a number where nothing was recorded.
#[derive(Clone, Copy, Debug)]
pub struct TableLine {
    pub mean: f64,
    pub stdev: f64,
    pub max: f64,
    /// Percent of values within one standard deviation of the mean.
    pub within_stdev: f64,
}

impl TableLine {
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            mean: statistics::mean(histogram),
            stdev: statistics::stdev(histogram),
            max: statistics::max(histogram) as f64,
            within_stdev: statistics::within_stdev(histogram, 1.0),
        }
    }

    fn print(&self, name: &str, unit: fn(f64) -> String) -> String {
        let (mean, stdev, max) =
            (aligned(&unit(self.mean), 8), aligned(&unit(self.stdev), 10), aligned(&unit(self.max), 9));
        format!("    {name:<10}{mean}{stdev}{max}{:8.2}%\n", self.within_stdev)
    }
}

pub fn table(latency: &TableLine, rates: &TableLine) -> String {
    let head = format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    head + &latency.print("Latency", time_us) + &rates.print("Req/Sec", metric)
}

/// What `-L` adds: the distribution, and the spectrum with its footer.
pub fn recorded(histogram: &Histogram<u64>) -> String {
    format!(
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n{}",
        distribution_and_spectrum(histogram)
    )
}

/// What `-U` adds to that.
pub fn uncorrected(histogram: &Histogram<u64>) -> String {
    let title = "Uncorrected Latency (measured without taking delayed starts into account)";
    format!("\n  Latency Distribution (HdrHistogram - {title})\n{}", distribution_and_spectrum(histogram))
}

fn distribution_and_spectrum(histogram: &Histogram<u64>) -> String {
    let mut text = String::new();
    for percentile in TEXT_PERCENTILES {
        let value = time_us(statistics::percentile(histogram, percentile) as f64);
        let _ = writeln!(text, "{percentile:7.3}%{}", aligned(&value, 10));
    }
    text += "\n  Detailed Percentile spectrum:\n";
    text += &spectrum(histogram);
    text += &footer(
        statistics::mean(histogram),
        statistics::stdev(histogram),
        statistics::max(histogram),
        histogram.len(),
    );
    text + "----------------------------------------------------------\n"
}

/// Ticks per half distance to 100 %.
const TICKS: f64 = 5.0;

/// A line at each tick that a recorded value reaches; ticks lie closer the nearer they are to 100 %.
fn spectrum(histogram: &Histogram<u64>) -> String {
    let mut text =
        format!("{:>12} {:>12} {:>12} {:>12}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut line = |value: u64, percentile: f64, count: u64| {
        let quantile = percentile / 100.0;
        let _ =
            writeln!(text, "{} {quantile:12.6} {count:12} {}", milliseconds(value as f64), inverse(quantile));
    };
    let (total, mut count, mut tick, mut value) = (histogram.len(), 0, 0.0, 0);
    for step in histogram.iter_recorded() {
        count += step.count_at_value();
        value = histogram.highest_equivalent(step.value_iterated_to());
        while tick <= 100.0 * count as f64 / total as f64 {
            line(value, tick, count);
            let halvings = ((100.0f64 / (100.0 - tick)).ln() / 2.0f64.ln()).trunc();
            tick += 100.0 / (TICKS * (halvings + 1.0).exp2());
            if count == total {
                break;
            }
        }
    }
    line(value, 100.0, total);
    text
}

fn inverse(quantile: f64) -> String {
    if quantile < 1.0 { format!("{:12.2}", 1.0 / (1.0 - quantile)) } else { format!("{:>12}", "inf") }
}

fn milliseconds(us: f64) -> String {
    if us.is_nan() { format!("{:>12}", "-nan") } else { format!("{:12.3}", us / 1000.0) }
}

fn footer(mean_us: f64, stdev_us: f64, max_us: u64, count: u64) -> String {
    // Buckets of the histogram's one shape: 1 µs to 24 h with 3 digits.
    let (buckets, sub_buckets) = (27, 2048);
    format!(
        "#[Mean    = {}, StdDeviation   = {}]\n#[Max     = {}, Total count    = {count:12}]\n\
            #[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]\n",
        milliseconds(mean_us),
        milliseconds(stdev_us),
        milliseconds(max_us as f64),
    )
}

pub fn summary(tally: &Tally, duration_us: f64) -> String {
    let seconds = duration_us / 1e6;
    let mut text = format!(
        "  {} requests in {}, {}B read\n",
        tally.completed,
        time_us(duration_us),
        binary(tally.bytes_read as f64)
    );
    let errors = &tally.errors;
    if errors.connect + errors.read + errors.write + errors.timeout > 0 {
        let _ = writeln!(
            text,
            "  Socket errors: connect {}, read {}, write {}, timeout {}",
            errors.connect, errors.read, errors.write, errors.timeout
        );
    }
    if tally.error_statuses() > 0 {
        let _ = writeln!(text, "  Non-2xx or 3xx responses: {}", tally.error_statuses());
    }
    let rate = tally.completed as f64 / seconds;
    // As C prints what is 0 by 0.
    let rate = if rate.is_nan() { "-nan".to_owned() } else { format!("{rate:.2}") };
    let _ = writeln!(text, "Requests/sec: {rate:>9}");
    let _ = writeln!(text, "Transfer/sec: {:>10}B", binary(tally.bytes_read as f64 / seconds));
    text
}
