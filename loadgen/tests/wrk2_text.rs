//! The text is wrk2's byte for byte: real outputs of wrk2 (tests/golden) are taken apart into numbers and
//! printed again.
//!
//! The spectrum of a real output gives back a histogram with the same ticks: each line says how many values
//! there are up to its own. What lies between two ticks (the 99th percentile, say) is put back from the
//! distribution's lines, and the rest is laid so that mean and standard deviation are those of the footer.

use hdrhistogram::Histogram;
use loadgen::errors::Errors;
use loadgen::recorder::histogram;
use loadgen::report::text::{self, TableLine};
use loadgen::statistics;
use loadgen::tally::Tally;
use loadgen::units::{banner_duration, time_us};

fn golden(name: &str) -> String {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"))
}

/// The number that a printed time or rate stands for, in its smallest unit; NaN for `-nan`.
fn number(printed: &str) -> f64 {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("k", 1e3), ("M", 1e6), ("", 1.0)];
    if printed.starts_with("-nan") {
        return f64::NAN;
    }
    let digits = printed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (_, factor) = units.iter().find(|(unit, _)| *unit == &printed[digits.len()..]).unwrap();
    digits.parse::<f64>().unwrap() * factor
}

/// Splits a line of `Thread Stats` into mean, stdev, max and the percentage.
fn table_line(output: &str, name: &str) -> TableLine {
    let line = output.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    TableLine {
        mean: number(words[0]),
        stdev: number(words[1]),
        max: number(words[2]),
        within_stdev: words[3].trim_end_matches('%').parse().unwrap(),
    }
}

/// One block of distribution, spectrum and footer.
struct Block<'a> {
    lines: Vec<&'a str>,
}

impl Block<'_> {
    fn all(output: &str) -> Vec<Block<'_>> {
        let starts = output.match_indices("  Latency Distribution").map(|(at, _)| at);
        let block = |at: usize| Block {
            lines: output[at..].lines().take_while(|line| !line.starts_with("-----")).collect(),
        };
        starts.map(block).collect()
    }

    fn footer(&self, name: &str) -> f64 {
        let line = self.lines.iter().find(|line| line.contains(name)).unwrap();
        let rest = line[line.find(name).unwrap()..].split('=').nth(1).unwrap();
        let word = rest.trim().trim_end_matches(']').split(',').next().unwrap();
        word.parse().unwrap_or(f64::NAN)
    }

    /// (value in µs, how many values are not above it), ascending.
    fn ticks(&self) -> Vec<(u64, u64)> {
        let from = self.lines.iter().position(|line| line.contains("1/(1-Percentile)")).unwrap() + 2;
        let rows = self.lines[from..].iter().take_while(|line| !line.starts_with('#'));
        let row = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            ((words[0].parse::<f64>().unwrap() * 1000.0).round() as u64, words[2].parse().unwrap())
        };
        rows.map(row).collect()
    }

    /// Where counts are known: (value in µs, how many values are not above it) of each tick and of each
    /// percentile of the distribution.
    fn points(&self) -> Vec<(u64, u64)> {
        let mut points = self.ticks();
        points.dedup();
        let total = points.last().unwrap().1;
        for line in &self.lines[1..9] {
            let (percentile, printed) = line.split_once('%').unwrap();
            let rank = (percentile.trim().parse::<f64>().unwrap() / 100.0 * total as f64 + 0.5) as u64;
            let printed = printed.trim();
            let next = points.iter().position(|&(_, count)| count >= rank).unwrap();
            if points[next].1 == rank {
                continue;
            }
            let from = if time_us(points[next].0 as f64) == printed {
                points[next].0
            } else {
                points[next - 1].0 + 1
            };
            let value = (from..=points[next].0).find(|&value| time_us(value as f64) == printed);
            points.insert(next, (value.unwrap_or_else(|| panic!("no value prints as {printed}")), rank));
        }
        points
    }

    /// A histogram with these points whose mean and standard deviation are the printed ones too.
    ///
    /// Between two points values may lie anywhere. They are put at `level` of the way from the lower to the
    /// upper, more in slow segments and less in fast ones by `tilt`; the level is chosen for the mean, the
    /// tilt for the deviation.
    fn histogram(&self) -> Histogram<u64> {
        let (mean_us, stdev_us) = (self.footer("Mean") * 1000.0, self.footer("StdDeviation") * 1000.0);
        let segments = segments(&self.points(), &self.ticks());
        let with_mean =
            |tilt: f64| bisect(-50.0, 50.0, |level| moments(&spread(&segments, level, tilt)).0 - mean_us);
        let tilt =
            bisect(-50.0, 50.0, |tilt| moments(&spread(&segments, with_mean(tilt), tilt)).1 - stdev_us);
        let mut histogram = histogram();
        for (value, count) in spread(&segments, with_mean(tilt), tilt) {
            histogram.record_n(value, count).unwrap();
        }
        histogram
    }
}

/// Values between two points: `fixed` of them are the upper, `free` of them lie somewhere in `from..upper`.
struct Segment {
    from: u64,
    upper: u64,
    fixed: u64,
    free: u64,
}

fn segments(points: &[(u64, u64)], ticks: &[(u64, u64)]) -> Vec<Segment> {
    let total = points.last().unwrap().1;
    let mut before = (0, 0);
    let segment = |&(upper, count): &(u64, u64)| {
        let from = highest_equal(before.0) + 1;
        // The first tick of this value was not reached by lower ones; where no tick is, a percentile was not.
        let tick = ticks.iter().position(|&(value, _)| value == upper);
        let reached = tick.map_or(count, |at| (tick_percentile(at) / 100.0 * total as f64).ceil() as u64);
        let free = if from < lowest_equal(upper) {
            reached.saturating_sub(1 + before.1).min(count - before.1 - 1)
        } else {
            0
        };
        let fixed = count - before.1 - free;
        before = (upper, count);
        Segment { from, upper, fixed, free }
    };
    points.iter().map(segment).collect()
}

/// The percentile of tick number `at`: five to each halving of the distance to 100.
fn tick_percentile(at: usize) -> f64 {
    (0..at).fold(0.0, |tick: f64, _| {
        tick + 100.0 / (5.0 * ((100.0 / (100.0 - tick)).log2().trunc() + 1.0).exp2())
    })
}

/// (value, count): free values as near to their place as values of the histogram are, in two neighbouring
/// ones.
fn spread(segments: &[Segment], level: f64, tilt: f64) -> Vec<(u64, u64)> {
    let middle = segments.len() as f64 / 2.0;
    let mut values = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let (lowest, highest) = (centre(segment.from), centre(lowest_equal(segment.upper).saturating_sub(1)));
        let share = (level + tilt * (number as f64 - middle) / middle).clamp(0.0, 1.0);
        let place = lowest + share * (highest - lowest).max(0.0);
        let width = width(place as u64) as f64;
        let lower = centre((place - width / 2.0).max(segment.from as f64) as u64);
        let above = (((place - lower) / width).clamp(0.0, 1.0) * segment.free as f64).round() as u64;
        let next = ((lower + width) as u64).min(lowest_equal(segment.upper).saturating_sub(1));
        values.extend([(lower as u64, segment.free - above), (next, above), (segment.upper, segment.fixed)]);
    }
    values.retain(|&(_, count)| count > 0);
    values
}

/// Values that a histogram of 3 digits takes for equal: 1 apart below 2048, 2 below 4096, and so on.
fn width(value: u64) -> u64 {
    1 << (value.max(1).ilog2().saturating_sub(10))
}

fn lowest_equal(value: u64) -> u64 {
    value / width(value) * width(value)
}

fn highest_equal(value: u64) -> u64 {
    if value == 0 { 0 } else { lowest_equal(value) + width(value) - 1 }
}

/// What a value counts as in means: the middle of those equal to it.
fn centre(value: u64) -> f64 {
    (lowest_equal(value) + width(value) / 2) as f64
}

/// Mean and standard deviation, by their definition.
fn moments(values: &[(u64, u64)]) -> (f64, f64) {
    let total: f64 = values.iter().map(|&(_, count)| count as f64).sum();
    let mean = values.iter().map(|&(value, count)| centre(value) * count as f64).sum::<f64>() / total;
    let variance =
        values.iter().map(|&(value, count)| (centre(value) - mean).powi(2) * count as f64).sum::<f64>()
            / total;
    (mean, variance.sqrt())
}

/// Where a rising function is 0.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

fn assert_same(ours: &str, wrk2s: &str) {
    for (index, (ours, wrk2s)) in ours.lines().zip(wrk2s.lines()).enumerate() {
        assert_eq!(ours, wrk2s, "line {}", index + 1);
    }
    assert_eq!(ours, wrk2s);
}

/// Prints everything again from the numbers of one output, whose URL and counts are in it too.
fn print_again(output: &str, options: &Numbers) -> String {
    let blocks = Block::all(output);
    let mut printed = text::banner(options.duration_s, options.url, options.threads, options.connections);
    for &(mean_us, every_ms) in options.calibrations {
        printed += &text::calibration(mean_us, every_ms);
    }
    printed += &text::table(&table_line(output, "Latency  "), &table_line(output, "Req/Sec"));
    for (index, block) in blocks.iter().enumerate() {
        let histogram = block.histogram();
        printed += &if index == 0 { text::recorded(&histogram) } else { text::uncorrected(&histogram) };
    }
    printed + &text::summary(&options.tally, options.runtime_us)
}

/// What an output's numbers were made of.
struct Numbers<'a> {
    url: &'a str,
    duration_s: f64,
    threads: usize,
    connections: usize,
    calibrations: &'a [(f64, u64)],
    tally: Tally,
    runtime_us: f64,
}

fn counted(completed: u64, bytes_read: u64) -> Tally {
    Tally { completed, bytes_read, ..Tally::default() }
}

#[test]
fn one_connection_with_latency() {
    let output = golden("g01-t1-c1-R500-L.txt");
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/",
        duration_s: 14.0,
        threads: 1,
        connections: 1,
        calibrations: &[(628.0, 10)],
        tally: counted(7001, 1_064_152),
        runtime_us: 14_001_084.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn two_threads_with_uncorrected_latency() {
    let output = golden("g02-t2-c10-R3000-U.txt");
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/v0/entity?id=a",
        duration_s: 14.0,
        threads: 2,
        connections: 10,
        calibrations: &[(839.0, 10), (829.0, 10)],
        tally: counted(41974, 6_380_048),
        runtime_us: 14_000_378.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn a_run_too_short_for_a_warm_up() {
    let output = golden("g03-short5s-L.txt");
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/",
        duration_s: 5.0,
        threads: 1,
        connections: 4,
        calibrations: &[],
        tally: counted(4994, 759_088),
        runtime_us: 5_000_100.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn without_latency_there_is_only_the_table() {
    let output = golden("g04-nolatency-k-suffix.txt");
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/",
        duration_s: 14.0,
        threads: 2,
        connections: 5,
        calibrations: &[(671.0, 10), (726.0, 10)],
        tally: counted(14000, 2_128_000),
        runtime_us: 14_000_700.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn a_saturated_service_with_seconds_of_latency() {
    let output = golden("g05-saturated.txt");
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/",
        duration_s: 14.0,
        threads: 1,
        connections: 64,
        calibrations: &[(2_239_686.0, 8114)],
        tally: counted(1_920_002, 291_840_304),
        runtime_us: 14_001_901.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn errors_and_empty_histograms() {
    let output = golden("g11-errors.txt");
    let mut errors = Errors::default();
    errors.timeout = 8;
    let tally = Tally { errors, answers: [(200, 3080), (503, 908)].into(), ..counted(3988, 170_630) };
    let numbers = Numbers {
        url: "http://127.0.0.1:8097/",
        duration_s: 14.0,
        threads: 1,
        connections: 4,
        calibrations: &[(971.0, 10)],
        tally,
        runtime_us: 14_019_500.0,
    };
    assert_same(&print_again(&output, &numbers), &output);
}

#[test]
fn a_run_whose_script_prints_behind_it() {
    let output = golden("g13-lua-done.txt");
    let own = output
        .lines()
        .take_while(|line| !line.starts_with("thread 1 made"))
        .map(|line| line.to_owned() + "\n");
    let own: String = own.collect();
    let numbers = Numbers {
        url: "http://127.0.0.1:8099/",
        duration_s: 14.0,
        threads: 2,
        connections: 4,
        calibrations: &[(682.0, 10), (663.0, 10)],
        tally: counted(27997, 4_255_544),
        runtime_us: 14_000_325.0,
    };
    assert_same(&print_again(&own, &numbers), &own);
}

#[test]
fn an_empty_histogram_prints_what_wrk2_prints() {
    let output = golden("g11-errors.txt");
    let block = &output[output.find("  Latency Distribution").unwrap()..output.find("  3988").unwrap()];
    assert_same(&text::recorded(&histogram()), block);
    let nothing = TableLine::of(&histogram());
    let printed = text::table(&nothing, &nothing);
    let line = output.lines().find(|line| line.starts_with("    Latency")).unwrap();
    assert_eq!(printed.lines().nth(1).unwrap(), line);
    let output = golden("g03-short5s-L.txt");
    let line = output.lines().find(|line| line.starts_with("    Req/Sec")).unwrap();
    assert_eq!(printed.lines().nth(2).unwrap(), line);
}

#[test]
fn nothing_in_no_time_is_printed_as_c_prints_it() {
    // A run that was interrupted before --start-at: 0 by 0, in the widths of wrk2's formats.
    let printed = "  0 requests in 0.00us, 0.00B read\nRequests/sec:      -nan\nTransfer/sec:       -nanB\n";
    assert_eq!(text::summary(&Tally::default(), 0.0), printed);
}

#[test]
fn banners_lose_digits_between_51_and_89_seconds() {
    assert_eq!(banner_duration(60.0), "1m");
}

/// `g13`: the values that Lua's `done` printed, from the histogram that the text was printed from.
#[test]
fn percentiles_for_lua_are_those_of_the_text() {
    let output = golden("g13-lua-done.txt");
    let histogram = Block::all(&output)[0].histogram();
    assert_eq!((statistics::min(&histogram), statistics::max(&histogram)), (109, 2400));
    assert_eq!(statistics::percentile(&histogram, 50.0), 681);
    assert_eq!(time_us(statistics::percentile(&histogram, 99.0) as f64), "1.26ms");
}

#[test]
fn every_fact_of_the_footer_is_read() {
    let output = golden("g05-saturated.txt");
    assert_eq!(Block::all(&output)[0].footer("Total count"), 507_479.0);
}
