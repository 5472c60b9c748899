//! Results of all parts of a load, made into one.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine;
use common::{Act, OK, Run, Server, assert_follows_schema, lines};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

const PARTS: usize = 3;
const PERCENTILES: [&str; 6] = ["0", "50", "90", "99", "99.9", "100"];

/// Files of three parts that ran at once against one server, which answers some requests slowly, some with
/// 404, and some never.
fn measured() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(|number, _| match number {
            100 => Act::Silence,
            n if n % 10 == 7 => Act::After(Duration::from_millis(n % 40), OK.to_owned()),
            n if n % 10 == 3 => Act::Answer(OK.replace("200 OK", "404 Not Found")),
            _ => Act::Answer(OK.to_owned()),
        });
        let start = format!("{:.9}", jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2));
        let runs: Vec<_> = (1..=PARTS)
            .map(|number| {
                let part = format!("{number}/{PARTS}");
                let [json, csv, hlog] = ["json", "csv", "hlog"].map(|kind| file(folder.path(), number, kind));
                Command::new(env!("CARGO_BIN_EXE_loadgen"))
                    .args([
                        "-R600",
                        "-c12",
                        "-t2",
                        "-d2300ms",
                        "-T1s",
                        "--warmup",
                        "100ms",
                        "--part",
                        &part,
                        "--start-at",
                        &start,
                    ])
                    .args(["--slowest-count", "10000", "--slowest"])
                    .arg(csv)
                    .arg("--json")
                    .arg(json)
                    .arg("--hlog")
                    .arg(hlog)
                    .arg(server.url())
                    .spawn()
                    .unwrap()
            })
            .collect();
        runs.into_iter().for_each(|mut run| assert!(run.wait().unwrap().success()));
        folder
    });
    folder.path()
}

fn file(folder: &Path, number: usize, kind: &str) -> PathBuf {
    folder.join(format!("part{number}.{kind}"))
}

fn parts() -> Vec<Value> {
    (1..=PARTS)
        .map(|number| {
            serde_json::from_slice(&std::fs::read(file(measured(), number, "json")).unwrap()).unwrap()
        })
        .collect()
}

/// Merges these results, from files of their own.
fn merge(parts: &[Value], options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (1..=parts.len()).map(|number| file(folder.path(), number, "json")).collect();
    files.iter().zip(parts).for_each(|(file, part)| std::fs::write(file, part.to_string()).unwrap());
    Command::new(env!("CARGO_BIN_EXE_loadgen")).arg("merge").args(options).args(files).output().unwrap()
}

fn merged(parts: &[Value]) -> Value {
    let output = merge(parts, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(parts: &[Value]) -> String {
    let output = merge(parts, &[]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), told.lines().count()), (Some(1), 0, 1), "{told}");
    told
}

#[test]
fn merged_percentiles_are_those_of_one_histogram_of_all_values_bit_by_bit() {
    let (all, folder) = (merged(&parts()), measured());
    // All measured answers one by one, as the parts themselves wrote them.
    let rows: Vec<Vec<u64>> = (1..=PARTS)
        .flat_map(|number| {
            let text = std::fs::read_to_string(file(folder, number, "csv")).unwrap();
            text.lines()
                .skip(1)
                .map(|line| line.split(',').map(|n| n.parse().unwrap()).collect())
                .collect::<Vec<_>>()
        })
        .collect();
    for (kind, column) in [("response_time", 1), ("service_time", 2)] {
        let mut one: Histogram<u64> = Histogram::new_with_bounds(1, 86_400_000_000, 3).unwrap();
        rows.iter().for_each(|row| one.record(row[column]).unwrap());
        assert!(one.len() > 300);
        assert_eq!(all[kind]["count"], one.len());
        for name in PERCENTILES {
            let expected = loadgen::statistics::percentile(&one, name.parse().unwrap());
            assert_eq!(all[kind]["percentiles"][name], expected, "{kind} p{name}");
        }
        for (name, expected) in
            [("mean_us", loadgen::statistics::mean(&one)), ("stdev_us", loadgen::statistics::stdev(&one))]
        {
            // JSON's reader may be off in the last of a number's bits.
            let told = all[kind][name].as_f64().unwrap();
            assert!((told - expected).abs() <= expected * 1e-12, "{kind} {name}: {told} {expected}");
        }
    }
}

#[test]
fn counts_and_rates_are_summed_and_the_result_follows_the_schema_of_a_single_one() {
    let (parts, all) = (parts(), merged(&parts()));
    let sum = |pointer: &str| {
        parts.iter().map(|part| part.pointer(pointer).unwrap().as_u64().unwrap()).sum::<u64>()
    };
    for pointer in [
        "/counts/sent",
        "/counts/completed",
        "/counts/in_flight_at_end",
        "/answers/200",
        "/answers/404",
        "/bytes_read",
        "/errors/timeout",
    ] {
        assert_eq!(all.pointer(pointer).unwrap(), sum(pointer), "{pointer}");
    }
    assert_eq!(sum("/counts/sent") + sum("/counts/unsent"), 1380);
    assert_eq!(all["response_time_at_least"]["unanswered"], sum("/response_time_at_least/unanswered"));
    assert!(sum("/response_time_at_least/unanswered") >= 1);
    assert!((all["offered_rate_rps"].as_f64().unwrap() - 600.0).abs() < 1e-9);
    assert_eq!(all["threads"].as_array().unwrap().len(), 6);
    assert_eq!(all["merged"]["starts_apart_s"], 0.0);
    assert!(all.get("part").is_none());
    assert_follows_schema(&Run {
        code: 0,
        stdout: String::new(),
        stderr: String::new(),
        json: all,
        hlog: String::new(),
    });
}

#[test]
fn files_may_come_in_any_order() {
    let mut turned = parts();
    turned.reverse();
    let mut both = [merged(&parts()), merged(&turned)];
    both.iter_mut().for_each(|one| one["arguments"] = Value::Null);
    assert_eq!(both[0], both[1]);
}

#[test]
fn the_verdict_is_that_of_the_worst_part_which_it_names() {
    let judged = |verdicts: [(Value, Value, Value); PARTS]| {
        let mut parts = parts();
        for (part, (saturated, reason, distorted)) in parts.iter_mut().zip(verdicts) {
            part["verdict"] = json!({
                "generator_saturated": saturated, "reason": reason, "distorted_percentiles": distorted
            });
        }
        merged(&parts)["verdict"].clone()
    };
    let fine = || (json!(false), Value::Null, json!([]));
    let few = || (json!(false), json!("connections: few"), json!(["99.9"]));
    assert_eq!(
        judged([fine(), fine(), fine()]),
        json!({"generator_saturated": false, "reason": null, "distorted_percentiles": []})
    );
    let reason = "connections: few (part 2/3)";
    let expected = json!({"generator_saturated": false, "reason": reason, "distorted_percentiles": ["99.9"]});
    assert_eq!(judged([fine(), few(), few()]), expected);
    let busy = (json!(true), json!("busy: thread 0"), json!(["99", "99.9"]));
    let reason = "busy: thread 0 (part 3/3)";
    let expected =
        json!({"generator_saturated": true, "reason": reason, "distorted_percentiles": ["99", "99.9"]});
    assert_eq!(judged([few(), (Value::Null, Value::Null, json!([])), busy.clone()]), expected);
    let late = "starved: requests left late by the generator's own fault: own lateness p99 = 5 us";
    assert_eq!(judged([(json!(true), json!(late), json!(["99.9"])), fine(), busy])["reason"], reason);
}

#[test]
fn what_does_not_belong_together_is_told_in_one_line() {
    for (pointer, value, told) in [
        ("/part/whole_rate_rps", json!(700.0), "another rate: 600.0 in "),
        ("/part/whole_connections", json!(24), "another connections: 12 in "),
        ("/duration_s", json!(1.0), "part 2/3 ended before the others, in "),
        ("/duration_s", json!(3.0), "part 1/3 ended before the others, in "),
        ("/warm_up_s", json!(0.2), "another warm-up: 0.1 in "),
        ("/url", json!("http://elsewhere/"), "another target: "),
        ("/seed", json!(2), "another seed: 1 in "),
        ("/part/of", json!(4), "another number of parts: 3 in "),
        ("/part/number", json!(1), "part 1/3 is there twice: "),
        ("/part/number", json!(7), "part2.json: no part of a load: 7/3"),
        ("/part/of", json!(1_000_000_000_000_u64), "part2.json: no part of a load: 2/1000000000000"),
        ("/start_utc", json!("2020-01-01T00:00:00.000000000Z"), "did not run at the same time"),
        ("/schema_version", json!(1), "part2.json: no result of loadgen by schema 2"),
        ("/response_time", json!({}), "part2.json: no histogram: response_time"),
        ("/counts/sent", json!(-1), "part2.json: no number: counts/sent"),
    ] {
        let mut parts = parts();
        *parts[1].pointer_mut(pointer).unwrap() = value;
        let error = error(&parts);
        assert!(error.contains(told), "{pointer}: {error}");
    }
    let mut other = parts();
    other[1]["duration_s"] = json!(3.0);
    let typed = other[1]["arguments"].as_array_mut().unwrap();
    typed.iter_mut().filter(|word| **word == "-d2300ms").for_each(|word| *word = json!("-d3s"));
    assert!(error(&other).contains("another duration: 2.3 in "), "{}", error(&other));
    assert!(error(&parts()[1..2]).contains("parts are missing: 1/3, 3/3"));
    let mut alone = parts();
    alone[0].as_object_mut().unwrap().remove("part");
    assert!(error(&alone).contains("part1.json: not one part of a load"), "{}", error(&alone));
    assert!(error(&[]).contains("no files"));
}

#[test]
fn the_text_has_the_layout_of_a_single_runs() {
    let skeleton = |text: &str| -> Vec<String> {
        let letters = |line: &str| {
            line.split_whitespace()
                .filter(|word| *word != "-nan" && !word.contains(|c: char| c.is_ascii_digit()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        // A short run has no rates. Of the spectrum, whose length is that of the data, no line has a word.
        text.lines()
            .map(letters)
            .filter(|line| !line.is_empty() && line != "inf" && !line.starts_with("#["))
            .collect()
    };
    let server = Server::start(|number, _| {
        Act::Answer(if number == 5 { OK.replace("200 OK", "404 Not Found") } else { OK.to_owned() })
    });
    let alone = common::loadgen(&["-R50", "-c2", "-t1", "-d300ms", "-U", &server.url()]);
    let mut answered = parts();
    answered.iter_mut().for_each(|part| part["error_reasons"] = json!([]));
    let output = merge(&answered, &["-U"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(skeleton(&text), skeleton(&alone.stdout), "{text}");
    assert!(text.contains("\n  6 threads and 12 connections\n"), "{text}");
    let completed: u64 = parts().iter().map(|part| part["counts"]["completed"].as_u64().unwrap()).sum();
    assert!(text.contains(&format!("  {completed} requests in 2.30s, ")), "{text}");
}

#[test]
fn starts_that_are_apart_are_told() {
    let mut parts = parts();
    let start: jiff::Timestamp = parts[2]["start_utc"].as_str().unwrap().parse().unwrap();
    parts[2]["start_utc"] = json!(format!("{:.9}", start + jiff::SignedDuration::from_millis(250)));
    let output = merge(&parts, &[]);
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("note: the parts started 0.250 s apart"),
        "{output:?}"
    );
}

#[test]
fn times_of_opening_connections_are_added_and_left_out_where_a_part_has_none() {
    let mut parts = parts();
    for (number, part) in (1..).zip(&mut parts) {
        let times = part["connect_time"].clone();
        part["tls"] = json!({
            "handshake_time": times, "resumed_handshake_time": times, "protocols": { "TLSv1_3": number }
        });
    }
    let all = merged(&parts);
    let sum: u64 = parts.iter().map(|part| part["connect_time"]["count"].as_u64().unwrap()).sum();
    assert!(sum >= 12, "{sum}");
    for time in [&all["connect_time"], &all["tls"]["handshake_time"], &all["tls"]["resumed_handshake_time"]] {
        assert_eq!(time["count"], sum);
    }
    assert_eq!(all["tls"]["protocols"], json!({ "TLSv1_3": 6 }));
    parts[1].as_object_mut().unwrap().remove("tls");
    parts[2].as_object_mut().unwrap().remove("connect_time");
    let all = merged(&parts);
    assert!(all.get("tls").is_none() && all.get("connect_time").is_none());
}

#[test]
fn parts_of_a_closed_loop_that_so_many_requests_end_may_last_for_different_times() {
    let part = |number: usize, pause_ms: u64, requests: &str| {
        let server = Server::start(move |_, _| Act::After(Duration::from_millis(pause_ms), OK.to_owned()));
        let part = format!("{number}/2");
        let run = common::loadgen(&[
            "--closed",
            "--requests",
            requests,
            "-c2",
            "-t1",
            "--part",
            &part,
            &server.url(),
        ]);
        let mut result = run.json;
        result["url"] = json!("http://h/");
        result["start_utc"] = json!("2026-01-01T00:00:00.000000000Z");
        result
    };
    let (quick, slow) = (part(1, 1, "20"), part(2, 20, "20"));
    assert!(quick["duration_s"].as_f64() < slow["duration_s"].as_f64());
    let all = merged(&[quick.clone(), slow.clone()]);
    assert_eq!((&all["counts"]["completed"], &all["duration_s"]), (&json!(20), &slow["duration_s"]));
    let line = error(&[quick.clone(), part(2, 1, "30")]);
    assert!(line.contains("another --requests: 20 in "), "{line}");
    let text = String::from_utf8(merge(&[quick, slow], &["--text"]).stdout).unwrap();
    assert!(
        text.starts_with("Running 20-request test @ http://h/\n  2 threads and 2 connections\n"),
        "{text}"
    );
}

#[test]
fn a_part_whose_requests_were_all_answered_within_its_warm_up_is_named_and_counted() {
    let part = |number: usize, warm_up: &str, pause_ms: u64| {
        let server = Server::start(move |_, _| Act::After(Duration::from_millis(pause_ms), OK.to_owned()));
        let part = format!("{number}/2");
        let options = ["--closed", "--requests", "40", "-c2", "-t1", "--part", &part, "--warmup", warm_up];
        let mut result = common::loadgen(&[&options[..], &[&server.url()]].concat()).json;
        result["url"] = json!("http://h/");
        result["start_utc"] = json!("2026-01-01T00:00:00.000000000Z");
        result
    };
    let (idle, slow) = (part(1, "800ms", 0), part(2, "800ms", 100));
    assert_eq!((&idle["measured_s"], &slow["warm_up_s"]), (&json!(0.0), &json!(0.8)));
    let output = merge(&[idle.clone(), slow.clone()], &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("note: part 1/2 measured nothing, in "), "{told}");
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!([&all["counts"]["completed"], &all["warm_up_s"]], [&json!(40), &json!(0.8)]);
    for name in ["measured_s", "duration_s"] {
        assert_eq!(all[name], slow[name], "{name}");
    }
    assert_eq!(all["counts"]["measured"], slow["counts"]["measured"]);
    let line = error(&[idle, part(2, "700ms", 1)]);
    assert!(line.contains("another warm-up: 800ms in "), "{line}");
}

#[test]
fn parts_that_were_told_when_to_start_are_merged_when_that_time_is_past() {
    let server = Server::start(|number, _| Act::After(Duration::from_millis(number % 7), OK.to_owned()));
    let start = format!("{:.9}", jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2));
    let part = |number: &str| {
        let options = ["--closed", "--requests", "40", "-c2", "-t1", "--part", number, "--start-at", &start];
        common::loadgen(&[&options[..], &[&server.url()]].concat()).json
    };
    let parts = std::thread::scope(|scope| {
        let other = scope.spawn(|| part("2/2"));
        [part("1/2"), other.join().unwrap()]
    });
    assert_ne!(parts[0]["duration_s"], parts[1]["duration_s"]);
    assert_eq!(merged(&parts)["counts"]["completed"], 40);
}

#[test]
fn one_part_of_one_is_a_load_too() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = common::loadgen(&["-R50", "-c2", "-t1", "-d200ms", "--part", "1/1", &server.url()]);
    assert_follows_schema(&run);
    let all = merged(&[run.json]);
    assert_eq!(all["counts"]["sent"].as_u64().unwrap() + all["counts"]["unsent"].as_u64().unwrap(), 10);
}

#[test]
fn results_and_logs_may_come_through_pipes() {
    let [jsons, logs] = ["json", "hlog"].map(|kind| {
        (1..=PARTS)
            .map(|number| format!("<(cat {})", file(measured(), number, kind).display()))
            .collect::<Vec<_>>()
    });
    let line = format!("\"$0\" merge --hlog /dev/null {} {}", jsons.join(" "), logs.join(" "));
    let output = Command::new("bash").args(["-c", &line, env!("CARGO_BIN_EXE_loadgen")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut through: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut from_files = merged(&parts());
    (through["arguments"], from_files["arguments"]) = (Value::Null, Value::Null);
    assert_eq!(through, from_files);
}

/// Merges the results of all parts and these logs; what it printed, and the merged log if there is one.
fn merge_logs(logs: &[PathBuf]) -> (Output, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let merged = folder.path().join("all.hlog");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["merge", "--hlog"])
        .arg(&merged)
        .args(logs)
        .args((1..=PARTS).map(|number| file(measured(), number, "json")))
        .output()
        .unwrap();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), usize::from(output.status.success()), "half a file: {left:?}");
    (output, std::fs::read_to_string(merged).ok())
}

fn logs() -> Vec<PathBuf> {
    (1..=PARTS).map(|number| file(measured(), number, "hlog")).collect()
}

#[test]
fn interval_logs_are_added_second_by_second_and_have_the_layout_of_one() {
    let (output, merged) = merge_logs(&logs());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (merged, result): (String, Value) =
        (merged.unwrap(), serde_json::from_slice(&output.stdout).unwrap());
    let parts: Vec<String> = logs().iter().map(|log| std::fs::read_to_string(log).unwrap()).collect();
    let header = |log: &str| {
        log.lines().take_while(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(header(&merged), header(&parts[0]), "they started together");
    for tag in ["response", "service", "lateness"] {
        let of = |log: &str| lines(log).into_iter().filter(|line| line.0 == tag).collect::<Vec<_>>();
        let all = of(&merged);
        assert!(all.len() >= 3, "{tag}: {}", all.len());
        for (second, line) in all.iter().enumerate() {
            let mut sum: Histogram<u64> = Histogram::new_with_bounds(1, 86_400_000_000, 3).unwrap();
            let of_parts: Vec<_> = parts.iter().filter_map(|part| of(part).into_iter().nth(second)).collect();
            of_parts.iter().for_each(|part| sum.add(&part.3).unwrap());
            assert!(second + 1 == all.len() || sum.len() > 100, "{tag}: {}", sum.len());
            assert_eq!(line.3, sum, "{tag}: second {second}");
            let end_s = of_parts.iter().map(|part| part.1 + part.2).fold(0.0, f64::max);
            assert!((line.1 + line.2 - end_s).abs() < 0.002, "{tag}: second {second}: {line:?}");
        }
    }
    let logged: u64 =
        lines(&merged).iter().filter(|line| line.0 == "response").map(|line| line.3.len()).sum();
    assert_eq!(result["response_time"]["count"], logged);
    let warm_up = |log: &str| {
        lines(log).iter().filter(|line| line.0 == "warmup_response").map(|line| line.3.len()).sum::<u64>()
    };
    assert_eq!(warm_up(&merged), parts.iter().map(|part| warm_up(part)).sum::<u64>());
    assert!(warm_up(&merged) > 40);
    // As in one generator's, the tags of a second stand in one order.
    let tags: Vec<String> = lines(&merged).into_iter().map(|line| line.0).collect();
    assert_eq!(tags[0], "warmup_response");
    let measured: Vec<&String> = tags.iter().filter(|tag| *tag != "warmup_response").collect();
    assert!(measured.chunks(3).all(|second| second == ["response", "service", "lateness"]), "{tags:?}");
}

#[test]
fn interval_logs_that_cannot_be_merged_are_told_in_one_line_and_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let changed = |name: &str, change: &dyn Fn(String) -> String| {
        let path = folder.path().join(name);
        std::fs::write(&path, change(std::fs::read_to_string(&logs()[1]).unwrap())).unwrap();
        path
    };
    let with_second = |second: PathBuf| vec![logs()[0].clone(), second, logs()[2].clone()];
    for (given, told) in [
        (logs()[..2].to_vec(), "asks for the interval log of each part beside its result: parts=3, logs=2"),
        (vec![], "parts=3, logs=0"),
        (with_second(logs()[0].clone()), "the interval logs are not those of these results: response: "),
        (
            with_second(changed("cut", &|log| log[..log.len() - 40].to_owned())),
            "cut: no interval log: offset=",
        ),
        (
            with_second(changed("slices", &|log| log.replace("Tag=service", "Tag=slice_A_service"))),
            "slices: lines with this tag cannot be merged: \"slice_A_service\"",
        ),
        (
            with_second(changed("odd", &|log| log.replace("HISTF", "HISTG"))),
            "odd: no histogram of loadgen's: at ",
        ),
        (
            with_second(changed("short", &|log| log.replace(",1.100,", ",0.350,"))),
            "short: intervals of another length: 250 ms, 1000 ms in ",
        ),
    ] {
        let (output, merged) = merge_logs(&given);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.len(), error.lines().count()),
            (Some(1), 0, 1),
            "{error}"
        );
        assert!(error.contains(told) && merged.is_none(), "{error}");
    }
    for (given, told) in [
        (vec![logs()[0].clone()], "the results of the parts are missing"),
        (vec![file(measured(), 1, "json"), logs()[0].clone()], "are merged into a file: --hlog FILE"),
    ] {
        let options: &[&str] = if given.len() == 1 { &["--hlog", "/nowhere/x"] } else { &[] };
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .arg("merge")
            .args(options)
            .args(given)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.contains(told), "{error}");
    }
}

/// Merges these files into a result and a log; the error, and whether the log was written.
fn refused(results: &[PathBuf], json: &Path, log: &Path) -> (String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args([Path::new("merge"), Path::new("--json"), json, Path::new("--hlog"), log])
        .args(logs())
        .args(results)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    (error, log.exists())
}

#[test]
fn one_file_for_result_and_log_is_refused_and_none_is_written_where_the_other_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let [json, log, second] = ["all.json", "all.hlog", "second"].map(|name| folder.path().join(name));
    let results: Vec<PathBuf> = (1..=PARTS).map(|number| file(measured(), number, "json")).collect();
    let (error, written) = refused(&results, &log, &log);
    assert!(error.ends_with("all.hlog: a file holds one result: --json and --hlog name it\n"), "{error}");
    assert!(!written);
    let mut part = parts().swap_remove(1);
    part.as_object_mut().unwrap().remove("reconnecting");
    std::fs::write(&second, part.to_string()).unwrap();
    let (error, written) = refused(&[results[0].clone(), second, results[2].clone()], &json, &log);
    assert!(error.ends_with("second: no number: reconnecting/reopened\n"), "{error}");
    assert!(!written && !json.exists());
}

fn merge_into(options: &[&str], files: &[PathBuf]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    let output = command.arg("merge").args(options).args(files).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn no_part_is_replaced_by_the_whole_and_no_result_has_an_empty_name() {
    let folder = tempfile::tempdir().unwrap();
    let copies: Vec<PathBuf> = (1..=PARTS)
        .map(|number| {
            let copy = file(folder.path(), number, "json");
            std::fs::copy(file(measured(), number, "json"), &copy).unwrap();
            copy
        })
        .collect();
    let before = std::fs::read(&copies[1]).unwrap();
    let (code, told) = merge_into(&["--json", copies[1].to_str().unwrap()], &copies);
    assert_eq!(code, Some(1));
    assert!(told.ends_with("part2.json: --json would replace a file that is read\n"), "{told}");
    assert_eq!(std::fs::read(&copies[1]).unwrap(), before);
    let (code, told) = merge_into(&["--json", ""], &copies);
    assert_eq!((code, told.as_str()), (Some(1), "the name of a file is empty: --json \"\"\n"));
    let whole = folder.path().join("whole.json");
    assert_eq!(merge_into(&["--json", whole.to_str().unwrap()], &copies).0, Some(0));
    let (code, told) = merge_into(&[], &[whole]);
    assert_eq!(code, Some(1));
    assert!(told.contains("a merged result cannot be merged again"), "{told}");
}

/// Results of three parts that sent to two servers in turn, one of which is slow.
fn parts_in_turn() -> Vec<Value> {
    let (quick, slow) = (
        Server::start(|_, _| Act::Answer(OK.to_owned())),
        Server::start(|number, _| {
            let status = if number % 10 == 3 { "404 Not Found" } else { "200 OK" };
            Act::After(Duration::from_millis(2), OK.replace("200 OK", status))
        }),
    );
    let folder = tempfile::tempdir().unwrap();
    let start = format!("{:.9}", jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2));
    let runs: Vec<_> = (1..=PARTS)
        .map(|number| {
            Command::new(env!("CARGO_BIN_EXE_loadgen"))
                .args(["-R600", "-c12", "-t1", "-d1500ms", "-T1s", "--warmup", "200ms", "--slice", "150ms"])
                .args(["--settle", "30ms", "--gap", "5ms..20ms", "--order", "random", "--seed", "7"])
                .args(["--expect", "200", "--sample", "10", "--start-at", &start])
                .args(["--part", &format!("{number}/{PARTS}"), "--json"])
                .arg(file(folder.path(), number, "json"))
                .args(["--alternate", &slow.url(), &quick.url()])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut run in runs {
        assert_eq!(run.wait().unwrap().code(), Some(3), "answers of 404 are not expected");
    }
    let read = |number| serde_json::from_slice(&std::fs::read(file(folder.path(), number, "json")).unwrap());
    (1..=PARTS).map(|number| read(number).unwrap()).collect()
}

fn decoded(latency: &Value) -> Histogram<u64> {
    let text = latency["histogram_v2_base64"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
}

#[test]
fn slices_of_two_servers_in_turn_are_those_of_all_parts() {
    let parts = parts_in_turn();
    let all = merged(&parts);
    assert_follows_schema(&Run {
        code: 0,
        stdout: String::new(),
        stderr: String::new(),
        json: all.clone(),
        hlog: String::new(),
    });
    for list in ["slices", "servers"] {
        let entries = all["alternate"][list].as_array().unwrap();
        assert_eq!(entries.len(), if list == "servers" { 2 } else { 6 });
        for (place, entry) in entries.iter().enumerate() {
            let of_parts: Vec<_> = parts.iter().map(|part| &part["alternate"][list][place]).collect();
            let sum =
                |name: &str| of_parts.iter().map(|one| one.pointer(name).unwrap().as_u64().unwrap()).sum();
            for name in ["/sent", "/completed", "/unexpected", "/answers/200", "/response_time_ns/count"] {
                assert_eq!(entry.pointer(name).unwrap().as_u64(), Some(sum(name)), "{list} {place} {name}");
            }
            let mut values = decoded(&of_parts[0]["response_time_ns"]);
            for one in &of_parts[1..] {
                values.add(decoded(&one["response_time_ns"])).unwrap();
            }
            assert!(!values.is_empty() && entry["server"] == of_parts[0]["server"]);
            let merged = decoded(&entry["response_time_ns"]);
            assert!(merged == values, "{list} {place}");
            let p90 = &entry["response_time_ns"]["percentiles"]["90"];
            assert_eq!(p90.as_u64(), Some(loadgen::statistics::percentile(&values, 90.0)), "{list} {place}");
        }
    }
    let rate = |value: &Value| value["alternate"]["servers"][0]["achieved_rate_rps"].as_f64().unwrap();
    assert!((rate(&all) - parts.iter().map(rate).sum::<f64>()).abs() < 1e-6);
    assert_eq!(all["sample"].as_array().unwrap().len(), 10 * PARTS);
    let text = String::from_utf8(merge(&parts, &["--text"]).stdout).unwrap();
    let servers = all["alternate"]["servers"].as_array().unwrap();
    let urls = [0, 1].map(|server| servers[server]["url"].as_str().unwrap()).join(",");
    assert!(text.lines().next().unwrap().ends_with(&format!(" @ {urls}")), "{text}");

    let changed = |change: &dyn Fn(&mut Value)| {
        let mut parts = parts.clone();
        change(&mut parts[1]);
        error(&parts)
    };
    for (change, told) in [
        (
            &(|part: &mut Value| part["alternate"]["order"] = "ab".into()) as &dyn Fn(&mut Value),
            "not parts of one load: another order: ",
        ),
        (
            &|part| part["alternate"]["slices"][3]["server"] = "C".into(),
            "not parts of one load: other slices: ",
        ),
        (&|part| part["alternate"]["servers"][1]["url"] = "http://h/".into(), "other servers: "),
        (&|part| part["alternate"]["slices"][3]["late"] = "few".into(), "no number: late of a slice"),
        (
            &|part| _ = part.as_object_mut().unwrap().remove("alternate"),
            "not parts of one load: one has two servers in turn: ",
        ),
    ] {
        assert!(changed(change).contains(told), "{told}: {}", changed(change));
    }
}
