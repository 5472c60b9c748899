//! JSON and interval log: as the schema says, and bit by bit the same numbers as the text.

mod common;

use base64::Engine;
use common::{Act, OK, Server, assert_follows_schema, loadgen};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use loadgen::recorder::histogram;
use loadgen::report::text;

fn decode(base64: &str) -> Histogram<u64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
}

/// The histograms of one tag, added up.
fn add_up(hlog: &str, wanted: &str) -> Histogram<u64> {
    let mut total: Histogram<u64> = histogram();
    for entry in IntervalLogIterator::new(hlog.as_bytes()) {
        let Ok(LogEntry::Interval(interval)) = entry else { continue };
        if interval.tag().is_some_and(|tag| tag.as_str() == wanted) {
            total.add(decode(interval.encoded_histogram())).unwrap();
        }
    }
    total
}

#[test]
fn the_result_follows_its_schema_whatever_happened() {
    let server =
        Server::start(|number, _| if number % 7 == 6 { Act::Close } else { Act::Answer(OK.to_owned()) });
    let url = server.url();
    for args in [
        &["-R100", "-c2", "-t2", "-d1s", "--warmup", "300ms"][..],
        &["--closed", "-c2", "-t1", "-d300ms"],
        &["-R0.5", "-c1", "-t1", "-d200ms", "--expect", "404"],
    ] {
        let run = loadgen(&[args, &[url.as_str()]].concat());
        assert_follows_schema(&run);
    }
    let silent = Server::start(|_, _| Act::Silence);
    let run = loadgen(&["-R10", "-c1", "-t1", "-d200ms", "-T", "200ms", &silent.url()]);
    assert_eq!(run.code, 1);
    assert_follows_schema(&run);
    assert!(run.json["response_time"]["mean_us"].is_null());
}

#[test]
fn text_json_and_interval_log_hold_the_same_histograms() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["-R400", "-c4", "-t2", "-d3s", "--warmup", "700ms", "-U", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for (tag, key) in
        [("response", "response_time"), ("service", "service_time"), ("lateness", "send_lateness")]
    {
        let from_json = decode(run.json[key]["histogram_v2_base64"].as_str().unwrap());
        assert_eq!(from_json, add_up(&run.hlog, tag), "{tag}");
        assert_eq!(from_json.len(), run.json[key]["count"].as_u64().unwrap());
        for (percentile, value) in run.json[key]["percentiles"].as_object().unwrap() {
            let ours = loadgen::statistics::percentile(&from_json, percentile.parse().unwrap());
            assert_eq!(value.as_u64().unwrap(), ours, "{key} {percentile}");
        }
    }
    let response = decode(run.json["response_time"]["histogram_v2_base64"].as_str().unwrap());
    assert!(run.stdout.contains(&text::recorded(&response)), "the text is printed from another histogram");
    let service = decode(run.json["service_time"]["histogram_v2_base64"].as_str().unwrap());
    assert!(run.stdout.contains(&text::uncorrected(&service)));
}

#[test]
fn shorter_intervals_are_four_lines_a_second_of_each_kind_and_hold_the_same_values() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let interval = ["--warmup", "1s", "--interval", "250ms"];
    let run = loadgen(&[&["-R40", "-c2", "-t2", "-d3s"][..], &interval, &[&server.url()]].concat());
    let starts = |tag: &str| -> Vec<String> {
        let lines = run.hlog.lines().filter_map(|line| line.strip_prefix(&format!("Tag={tag},")));
        lines.map(|rest| rest[..11].to_owned()).collect()
    };
    assert_eq!(starts("warmup_response")[0], "0.000,1.000");
    let expected: Vec<String> = (0..8).map(|n| format!("{:.3},0.250", 1.0 + 0.25 * f64::from(n))).collect();
    for (tag, key) in
        [("response", "response_time"), ("service", "service_time"), ("lateness", "send_lateness")]
    {
        assert_eq!(starts(tag)[..8], expected, "{tag}");
        let from_json = decode(run.json[key]["histogram_v2_base64"].as_str().unwrap());
        assert_eq!(from_json, add_up(&run.hlog, tag), "{tag}");
        assert!(from_json.len() > 70, "{}", from_json.len());
    }
}

#[test]
fn the_interval_log_has_a_line_for_each_second_and_kind() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["-R20", "-c2", "-t2", "-d3s", "--warmup", "1s", &server.url()]);
    let warm_up: Vec<&str> = run.hlog.lines().filter(|line| line.starts_with("Tag=warmup_")).collect();
    // A second one where an answer of the warm-up came behind its end.
    assert!((1..=2).contains(&warm_up.len()), "{}", run.hlog);
    assert!(warm_up[0].starts_with("Tag=warmup_response,0.000,1.000,"), "{}", warm_up[0]);
    for tag in ["response", "service", "lateness"] {
        let starts: Vec<&str> = run
            .hlog
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("Tag={tag},")))
            .map(|rest| &rest[..5])
            .collect();
        assert!(starts.starts_with(&["1.000", "2.000"]), "{starts:?}");
    }
}
