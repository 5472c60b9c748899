//! The text is wrk2's byte for byte: real outputs of wrk2 (tests/golden) are taken apart into numbers and printed again.
//!
//! The spectrum of a real output gives back a histogram with the same ticks: each line says how many values there are up to
//! its own. What lies between two ticks (the 99th percentile, say) is put back from the distribution's lines.

use hdrhistogram::Histogram;
use loadgen::recorder::histogram;
use loadgen::report::text::{self, TableLine};
use loadgen::statistics;
use loadgen::tally::{Errors, Tally};
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
        let block = |at: usize| Block { lines: output[at..].lines().take_while(|line| !line.starts_with("-----")).collect() };
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

    /// A histogram that has the same ticks, and the same values at the percentiles of the distribution.
    fn histogram(&self) -> Histogram<u64> {
        let mut points = self.ticks();
        points.dedup();
        let total = points.last().unwrap().1;
        for line in &self.lines[1..9] {
            let (percentile, printed) = line.split_once('%').unwrap();
            let rank = (percentile.trim().parse::<f64>().unwrap() / 100.0 * total as f64 + 0.5) as u64;
            let printed = printed.trim();
            let next = points.iter().position(|&(_, count)| count >= rank);
            let Some(next) = next.filter(|&next| time_us(points[next].0 as f64) != printed) else { continue };
            let value = (points[next - 1].0 + 1..points[next].0).find(|&value| time_us(value as f64) == printed);
            points.insert(next, (value.unwrap_or_else(|| panic!("no value prints as {printed}")), rank));
        }
        let mut histogram = histogram();
        let mut before = 0;
        for (value, count) in points {
            histogram.record_n(value, count - before).unwrap();
            before = count;
        }
        histogram
    }

    /// Mean and deviation depend on all values, of which the output tells only some: they are compared by layout.
    fn with_printed_moments(&self, text: &str) -> String {
        let moments = self.lines.iter().find(|line| line.starts_with("#[Mean")).unwrap();
        text.lines().map(|line| if line.starts_with("#[Mean") { moments } else { line }.to_owned() + "\n").collect()
    }
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
        let text = if index == 0 { text::recorded(&histogram) } else { text::uncorrected(&histogram) };
        printed += &block.with_printed_moments(&text);
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
    let errors = Errors { timeout: 8, ..Errors::default() };
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
    let own = output.lines().take_while(|line| !line.starts_with("thread 1 made")).map(|line| line.to_owned() + "\n");
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
fn the_footers_moments_have_wrk2s_layout() {
    for name in ["g01-t1-c1-R500-L.txt", "g05-saturated.txt"] {
        let output = golden(name);
        let block = &Block::all(&output)[0];
        // A two-valued distribution with the printed mean and deviation: half of the values on each side.
        let (mean_us, stdev_us) = (block.footer("Mean") * 1000.0, block.footer("StdDeviation") * 1000.0);
        let mut two = histogram();
        two.record_n((mean_us - stdev_us) as u64, 1000).unwrap();
        two.record_n((mean_us + stdev_us) as u64, 1000).unwrap();
        let printed = text::recorded(&two);
        let moments = printed.lines().find(|line| line.starts_with("#[Mean")).unwrap();
        let wrk2s = block.lines.iter().find(|line| line.starts_with("#[Mean")).unwrap();
        let layout = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(layout(moments), layout(wrk2s));
        assert!((statistics::mean(&two) / mean_us - 1.0).abs() < 0.002, "{moments}");
    }
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
