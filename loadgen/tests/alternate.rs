//! Two servers in turn, over real sockets.

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Act, NullServer, OK, Run, Server, assert_follows_schema, counts_of, loadgen};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn answer() -> Act {
    Act::Answer(OK.to_owned())
}

fn alternate(options: &[&str], first: &str, second: &str) -> Run {
    let run = loadgen(&[options, &["--alternate", first, second]].concat());
    if !run.json.is_null() {
        assert_follows_schema(&run);
    }
    run
}

fn slices(run: &Run) -> &Vec<Value> {
    run.json["alternate"]["slices"].as_array().unwrap_or_else(|| panic!("no slices: {}", run.stderr))
}

fn of_server<'a>(run: &'a Run, name: &str) -> &'a Value {
    let servers = run.json["alternate"]["servers"].as_array().unwrap();
    servers.iter().find(|server| server["server"] == name).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn order(run: &Run) -> String {
    slices(run).iter().map(|slice| slice["server"].as_str().unwrap()).collect()
}

#[test]
fn a_server_that_answers_nothing_fails_the_run_though_the_other_answers() {
    let deaf = Server::start(|_, _| Act::Silence);
    let other = Server::start(|_, _| answer());
    let options = ["-R200", "-c2", "-t1", "-d1s", "--slice", "100ms", "--timeout", "200ms"];
    for (first, second) in [(&deaf, &other), (&other, &deaf)] {
        let run = alternate(&options, &first.url(), &second.url());
        assert_eq!(run.code, 1, "{}", run.stderr);
        let told = format!("no measured request was answered by {}: 80 were due", deaf.url());
        assert_eq!(run.stderr.lines().last(), Some(told.as_str()));
        assert!(run.count("completed") > 0, "what was found of the other is written: {}", run.stderr);
    }
}

#[test]
fn each_slice_sends_its_requests_to_its_own_server_and_the_turns_are_abba() {
    let arrivals = Arc::new(Mutex::new(String::new()));
    let (to_a, to_b) = (arrivals.clone(), arrivals.clone());
    let first = Server::start(move |_, _| {
        to_a.lock().unwrap().push('A');
        answer()
    });
    let second = Server::start(move |_, head| {
        assert!(head.starts_with("GET /b?x HTTP/1.1\r\n"), "{head}");
        to_b.lock().unwrap().push('B');
        answer()
    });
    // 8 slices of 100 ms with 20 requests each, 500 ms apart, so that a late thread does not reach into the
    // next.
    let options = ["-R200", "-c3", "-t2", "-d4800ms", "--slice", "100ms", "--gap", "500ms"];
    let second_url = format!("{}b?x", second.url());
    let run = alternate(&options, &first.url(), &second_url);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(order(&run), "ABBAABBA");
    let mut turns: Vec<char> = arrivals.lock().unwrap().chars().collect();
    assert_eq!(turns.len(), 160);
    turns.dedup();
    assert_eq!(turns.iter().collect::<String>(), "ABABA", "ABBAABBA, with neighbours taken together");
    for slice in slices(&run) {
        assert_eq!((number(&slice["sent"]), number(&slice["completed"])), (20, 20), "{slice}");
        assert_eq!(number(&slice["response_time_ns"]["count"]), 20);
    }
    assert_eq!((first.requests(), second.requests()), (80, 80));
    assert_eq!(of_server(&run, "B")["url"], second_url.as_str());
    // 20 in each of 8 slices, of which 100 of every 600 ms are slices.
    assert_eq!((run.count("sent"), run.count("unsent")), (160, 0));
    let offered = run.json["offered_rate_rps"].as_f64().unwrap();
    assert!((offered - 160.0 / 4.8).abs() < 1e-6, "offered={offered}");
    assert!(run.stdout.contains(&format!("@ {},{second_url}\n", first.url())), "{}", run.stdout);
}

#[test]
fn latencies_are_those_of_the_server_that_was_asked() {
    let quick = Server::start(|_, _| answer());
    let slow = Server::start(|_, _| Act::After(Duration::from_millis(15), OK.to_owned()));
    let options = ["-R200", "-c8", "-t1", "-d2s", "--slice", "200ms", "--gap", "50ms", "--warmup", "400ms"];
    let run = alternate(&options, &quick.url(), &slow.url());
    let p50 = |name: &str| number(&of_server(&run, name)["response_time_ns"]["percentiles"]["50"]);
    assert!(p50("B") >= 15_000_000, "{}", p50("B"));
    assert!(p50("A") < p50("B"), "A={} B={}", p50("A"), p50("B"));
    // Two slices are warm-up, since measuring begins with a pair; what is measured is the same in all places.
    assert_eq!(run.json["measure_start_utc"].as_str().unwrap().len(), 30);
    assert_eq!(run.json["warm_up_s"], 0.5);
    assert_eq!(
        slices(&run).iter().map(|slice| number(&slice["slice"])).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6, 7]
    );
    let by_slice: u64 = slices(&run).iter().map(|slice| number(&slice["completed"])).sum();
    let by_server = number(&of_server(&run, "A")["completed"]) + number(&of_server(&run, "B")["completed"]);
    assert_eq!((by_slice, by_server), (run.count("measured"), run.count("measured")));
}

#[test]
fn late_answers_belong_to_the_slice_in_which_they_were_due_and_are_counted() {
    let quick = Server::start(|_, _| answer());
    let slow = Server::start(|_, _| Act::After(Duration::from_millis(150), OK.to_owned()));
    // Each request to B is answered 150 ms later, so that those of a slice's last half come behind it, in
    // A's.
    let options = ["-R100", "-c40", "-t2", "-d1860ms", "--slice", "300ms", "--gap", "10ms"];
    let run = alternate(&options, &quick.url(), &slow.url());
    for slice in slices(&run) {
        assert_eq!(number(&slice["completed"]) + number(&slice["unanswered"]), 30, "{slice}");
        assert_eq!(slice["response_time_ns"]["count"], slice["completed"]);
        if slice["server"] == "B" {
            assert!(number(&slice["late"]) >= 14, "{slice}");
            assert!(number(&slice["response_time_ns"]["min"]) >= 149_000_000, "{slice}");
            assert!(slice["achieved_rate_rps"].as_f64().unwrap() <= 16.0 / 0.3 + 1e-6, "{slice}");
        } else {
            assert!(number(&slice["response_time_ns"]["percentiles"]["50"]) < 149_000_000, "{slice}");
        }
    }
}

#[test]
fn requests_without_an_answer_are_their_own_servers() {
    let good = Server::start(|_, _| answer());
    let silent = Server::start(|_, _| Act::Silence);
    let options = ["-R20", "-c2", "-t1", "-d5s", "-T", "1500ms", "--slice", "1s", "--gap", "20ms"];
    let run = alternate(&options, &good.url(), &silent.url());
    assert!(number(&of_server(&run, "A")["unanswered"]) <= 1, "one may be left at the end");
    assert_eq!(
        (number(&of_server(&run, "B")["unanswered"]), number(&of_server(&run, "B")["completed"])),
        (40, 0)
    );
    assert_eq!(run.json["response_time_at_least"]["unanswered"], 40);
    assert!(of_server(&run, "B")["response_time_ns"]["mean"].is_null());
}

#[test]
fn connections_to_both_are_open_before_the_first_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second_url = format!("http://{}/", listener.local_addr().unwrap());
    let opened = Arc::new(AtomicU64::new(0));
    let counter = opened.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(OK.as_bytes());
                }
            });
        }
    });
    let (seen, at_first_request) = (opened.clone(), Arc::new(AtomicU64::new(0)));
    let noted = at_first_request.clone();
    let first = Server::start(move |number, _| {
        if number == 0 {
            // The server may accept later than they were opened; B's own turn is a second away.
            for _ in 0..80 {
                if seen.load(Ordering::SeqCst) < 7 {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            noted.store(seen.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        answer()
    });
    let run = alternate(&["-R50", "-c6", "-t2", "-d2100ms", "--slice", "1s"], &first.url(), &second_url);
    assert_eq!(run.code, 0, "{}", run.stderr);
    // Six, and the look whether anybody listens.
    assert_eq!(at_first_request.load(Ordering::SeqCst), 7);
    assert_eq!(opened.load(Ordering::SeqCst), 7, "none was opened anew for its slice");
}

#[test]
fn a_drawn_order_is_that_of_the_seed() {
    let (first, second) = (NullServer::start(), NullServer::start());
    let options =
        ["-R100", "-c1", "-t1", "-d640ms", "--slice", "20ms", "--gap", "0s", "--order", "random", "--seed"];
    let drawn = |seed: &str| order(&alternate(&[&options[..], &[seed]].concat(), &first.url, &second.url));
    let seven = drawn("7");
    assert_eq!(seven.len(), 32);
    assert_eq!(seven, drawn("7"));
    assert_ne!(seven, drawn("8"));
}

#[test]
fn the_interval_log_has_each_slice_with_what_the_json_has() {
    let (first, second) = (NullServer::start(), NullServer::start());
    let run = alternate(
        &["-R500", "-c4", "-t2", "-d1s", "--slice", "100ms", "--gap", "20ms"],
        &first.url,
        &second.url,
    );
    for (name, tag) in [("A", "slice_A_response"), ("B", "slice_B_response"), ("B", "slice_B_service")] {
        let counts = counts_of(&run.hlog, tag);
        assert_eq!(counts.len() as u64, number(&of_server(&run, name)["slices"]), "{tag}");
        let answers = number(&of_server(&run, name)["response_time_ns"]["count"]);
        assert_eq!(counts.iter().sum::<u64>(), answers, "{tag}");
    }
}

/// A server that answers after 10 ms and notes when each request came, in nanoseconds since 1970.
fn noting_server() -> (Server, Arc<Mutex<Vec<u64>>>) {
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let noted = arrivals.clone();
    let server = Server::start(move |_, _| {
        noted.lock().unwrap().push(Timestamp::now().as_nanosecond() as u64);
        Act::After(Duration::from_millis(10), OK.to_owned())
    });
    (server, arrivals)
}

#[test]
fn in_a_closed_loop_connections_of_a_slices_server_send_once_answered_and_none_send_in_gaps() {
    // Slices, settling parts and gaps are so long that on a busy machine, too, every thread runs in each.
    let ((first, to_a), (second, to_b)) = (noting_server(), noting_server());
    let options =
        ["--closed", "-c3", "-t2", "-d4s", "--slice", "600ms", "--gap", "400ms", "--settle", "250ms"];
    let run = alternate(&options, &first.url(), &second.url());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(order(&run), "ABBA");
    assert!(run.json["offered_rate_rps"].is_null());
    let mut seen = 0;
    for slice in slices(&run) {
        let (from, until) = (number(&slice["counted_from_unix_ns"]), number(&slice["counted_until_unix_ns"]));
        assert_eq!(until - from, 350_000_000);
        let arrivals = if slice["server"] == "A" { &to_a } else { &to_b };
        // A request leaves within its slice; a busy machine may hand it over a little later.
        let in_slice = from - 250_000_000..until + 380_000_000;
        let came = arrivals.lock().unwrap().iter().filter(|at| in_slice.contains(at)).count() as u64;
        seen += came;
        assert!(came > 3, "one after the other: {slice}");
        assert!(number(&slice["sent"]) <= came, "{slice}");
        assert_eq!(slice["sent"], slice["completed"]);
        assert_eq!(slice["response_time_ns"]["count"], slice["completed"]);
        let (within, in_time) =
            (number(&slice["answered_within"]), number(&slice["completed"]) - number(&slice["late"]));
        assert!(
            (in_time..=in_time + 3).contains(&within),
            "three were under way when it had settled: {slice}"
        );
        let rate = slice["achieved_rate_rps"].as_f64().unwrap();
        assert!((rate - within as f64 / 0.35).abs() < 1e-6, "{slice}");
    }
    assert_eq!(seen, first.requests() + second.requests(), "all came within slices");
    assert_eq!(seen, run.count("sent"));
    let counted: u64 = slices(&run).iter().map(|slice| number(&slice["completed"])).sum();
    assert!(counted < seen, "what was sent while slices settled is not counted: {counted} {seen}");
    assert_eq!(
        (counted, run.json["response_time"]["count"].as_u64()),
        (run.count("measured"), Some(counted))
    );
}

#[test]
fn the_counted_parts_of_slices_are_known_before_the_run_to_the_nanosecond() {
    let (first, second) = (NullServer::start(), NullServer::start());
    for (pacing, odd_ns) in [("-R500", 123_456_789), ("--closed", 0)] {
        let start = Timestamp::now() + SignedDuration::from_millis(1500) + SignedDuration::from_nanos(odd_ns);
        let utc = format!("{start:.9}");
        let options = [
            pacing, "-c4", "-t2", "-d", "1s", "--warmup", "100ms", "--slice", "70ms", "--gap", "3ms",
            "--settle", "11ms",
        ];
        let run = alternate(&[&options[..], &["--start-at", &utc]].concat(), &first.url, &second.url);
        assert_eq!(run.code, 0, "{}", run.stderr);
        // As docs/two-servers.md says: 12 slices fit, and the first pair is warm-up, since 100 ms end in its
        // second slice.
        let expected: Vec<(u64, String, u64, u64)> = (2u64..12)
            .map(|slice| {
                let begins = start.as_nanosecond() as u64 + slice * 73_000_000;
                let server = if [0, 3].contains(&(slice % 4)) { "A" } else { "B" };
                (slice, server.to_owned(), begins + 11_000_000, begins + 70_000_000)
            })
            .collect();
        assert_eq!(measured(&run), expected, "{pacing}");
        assert_eq!(printed(&options, start.as_nanosecond() as u64), expected, "{pacing}");
    }
}

/// `--print-slices`, of what a run with these options and this start would measure: as `measured` below.
fn printed(options: &[&str], start_ns: u64) -> Vec<(u64, String, u64, u64)> {
    let typed =
        [options, &["--print-slices", "--alternate", "http://127.0.0.1:1/", "http://127.0.0.1:1/"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen")).args(typed).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = printed["slices"].as_array().unwrap();
    assert_eq!(
        all.iter().find(|slice| slice["measured"] == true).unwrap()["start_ns"],
        printed["warm_up_ns"]
    );
    let ns = |slice: &Value, name: &str| start_ns + number(&slice[name]);
    all.iter()
        .filter(|slice| slice["measured"] == true)
        .map(|slice| {
            let server = slice["server"].as_str().unwrap().to_owned();
            (number(&slice["slice"]), server, ns(slice, "counted_from_ns"), ns(slice, "end_ns"))
        })
        .collect()
}

/// Number, server, and from when to when each slice of the result was counted, UTC in nanoseconds.
fn measured(run: &Run) -> Vec<(u64, String, u64, u64)> {
    let slice = |slice: &Value| {
        let ns = |name: &str| number(&slice[name]);
        let server = slice["server"].as_str().unwrap().to_owned();
        (ns("slice"), server, ns("counted_from_unix_ns"), ns("counted_until_unix_ns"))
    };
    slices(run).iter().map(slice).collect()
}

#[test]
fn slices_with_drawn_gaps_are_printed_beforehand_to_the_nanosecond() {
    let (first, second) = (NullServer::start(), NullServer::start());
    for (pacing, seed) in [("-R500", "5"), ("--closed", "6")] {
        let start = Timestamp::now() + SignedDuration::from_millis(1500);
        let options = [
            pacing,
            "-c4",
            "-t2",
            "--seed",
            seed,
            "--order",
            "random",
            "-d",
            "1s",
            "--warmup",
            "100ms",
            "--slice",
            "30ms",
            "--settle",
            "11ms",
            "--gap",
            "1ms..41ms",
        ];
        let utc = format!("{start:.9}");
        let run = alternate(&[&options[..], &["--start-at", &utc]].concat(), &first.url, &second.url);
        assert_eq!(run.code, 0, "{}", run.stderr);
        // Of 102 ms in the mean 9 pairs fit, of which the first is warm-up.
        let expected = printed(&options, start.as_nanosecond() as u64);
        assert_eq!((expected.len(), measured(&run)), (16, expected), "{pacing}");
        let starts: Vec<u64> = measured(&run).iter().map(|slice| slice.2).collect();
        let gaps: BTreeSet<u64> = starts.windows(2).map(|two| two[1] - two[0] - 30_000_000).collect();
        assert!(gaps.len() > 10 && gaps.iter().all(|gap| (1_000_000..=41_000_000).contains(gap)), "{gaps:?}");
        let told = ["gap_s", "gap_least_s", "gap_most_s", "order"].map(|name| &run.json["alternate"][name]);
        assert_eq!(told, [&json!(0.021), &json!(0.001), &json!(0.041), &json!("random")]);
        // In a closed loop a thread that is kept from running for a slice sends nothing in it.
        if pacing == "-R500" {
            assert!(
                // At the end of the last one a request may still wait for its connection.
                slices(&run).iter().all(|slice| number(&slice["sent"]) + number(&slice["unanswered"]) >= 9),
                "{}",
                run.json["alternate"]
            );
        }
    }
}

#[test]
fn errors_and_statuses_are_told_by_server_and_by_slice() {
    let good = Server::start(|_, _| answer());
    let bad = Server::start(|number, _| match number % 5 {
        1 => Act::Answer("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()),
        3 => Act::Close,
        _ => answer(),
    });
    for pacing in ["-R200", "--closed"] {
        let options =
            [pacing, "-c2", "-t1", "-d800ms", "--slice", "150ms", "--gap", "50ms", "--expect", "200"];
        let run = alternate(&options, &good.url(), &bad.url());
        assert_eq!(run.code, 3, "{}", run.stderr);
        let (a, b) = (of_server(&run, "A"), of_server(&run, "B"));
        assert_eq!(
            (&a["errors"], number(&a["unexpected"])),
            (&json!({"connect":0,"read":0,"write":0,"timeout":0}), 0)
        );
        assert_eq!(a["answers"], json!({"200": number(&a["completed"])}));
        assert!(number(&b["errors"]["read"]) >= 5 && number(&b["unexpected"]) >= 5, "{pacing}: {b}");
        assert_eq!(b["answers"]["503"], b["unexpected"]);
        for kind in ["connect", "read", "write", "timeout"] {
            let by_slice: u64 = slices(&run).iter().map(|slice| number(&slice["errors"][kind])).sum();
            assert_eq!(
                (by_slice, by_slice),
                (number(&b["errors"][kind]), run.error(kind)),
                "{pacing}: {kind}"
            );
        }
        assert_eq!(run.count("unexpected"), number(&b["unexpected"]));
    }
}

#[test]
fn a_run_that_is_called_off_has_offered_what_was_due_until_then() {
    let server = Server::start(|_, _| answer());
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R100", "-c4", "-t1", "-d60s", "--warmup", "0s", "--slice", "300ms", "--gap", "300ms"])
        .args(["--json", json.to_str().unwrap(), "--alternate", &server.url(), &server.url()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while server.requests() < 70 {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    // In the third slice of 300 ms in 600: 100/s where one lasts, and half of it in the mean.
    let offered = result["offered_rate_rps"].as_f64().unwrap();
    assert!((40.0..=75.0).contains(&offered), "{offered}");
}

#[test]
fn a_generator_without_time_to_spare_in_slices_is_the_limit_however_long_the_gaps() {
    let server = NullServer::start();
    let (_folder, path) = common::script(
        "function request() local x = 0; for i = 1, 200000 do x = x + math.sin(i) end; return \
            wrk.format(nil, '/' .. x) end",
    );
    let options = ["--closed", "-c4", "-t1", "-d3s", "--slice", "500ms", "--gap", "500ms", "-s", &path];
    let run = alternate(&options, &server.url, &server.url);
    let verdict = &run.json["verdict"];
    assert_eq!(verdict["generator_saturated"], true, "{verdict} {}", run.json["threads"]);
}

#[test]
fn a_run_without_room_for_a_slice_of_each_is_refused() {
    let server = NullServer::start();
    for options in
        [&["-R10", "-c1", "-t1", "-d1039ms"][..], &["-R10", "-c1", "-t1", "-d1100ms", "--warmup", "1ms"]]
    {
        let run = alternate(options, &server.url, &server.url);
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains("no room for a slice of each server"), "{}", run.stderr);
    }
}

#[test]
fn a_script_makes_the_requests_of_both() {
    let (first, second) = (Server::start(|_, _| answer()), Server::start(|_, _| answer()));
    let (_folder, path) = common::script("function request() return wrk.format('GET', '/made') end");
    let options = ["-R100", "-c2", "-t1", "-d1s", "--slice", "200ms", "--gap", "20ms", "-s", &path];
    let run = alternate(&options, &first.url(), &second.url());
    assert_eq!(run.code, 0, "{}", run.stderr);
    for (name, server) in [("A", &first), ("B", &second)] {
        assert_eq!(server.requests(), number(&of_server(&run, name)["sent"]));
        assert_eq!(number(&of_server(&run, name)["sent"]) + number(&of_server(&run, name)["unanswered"]), 40);
    }
}
