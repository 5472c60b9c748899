//! Requests that may leave late, runs that end with a number of requests, and the line on a terminal.

mod common;

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Act, NullServer, OK, Server, assert_follows_schema, loadgen};

#[test]
fn with_slack_requests_leave_together_and_late_and_that_is_not_the_generators_fault() {
    let server = NullServer::start();
    // Due every 25 ms, four in the time that each may be late.
    let options = ["-R40", "-c8", "-t1", "-d5s", "--slack", "100ms", "--warmup", "0s"];
    let run = loadgen(&[&options[..], &[&server.url]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_follows_schema(&run);
    assert_eq!(run.count("sent") + run.count("unsent"), 200);
    let (late_us, own_us) = (run.percentile("send_lateness", "50"), run.percentile("own_lateness", "50"));
    assert!(late_us >= 20_000, "the second of four is 75 ms late, the third 50: {late_us}");
    assert!(own_us + 20_000 <= late_us, "of {late_us} us only what is beyond the slack is its own: {own_us}");
    // What was late is in the response time, and not in the service time.
    assert!(run.percentile("response_time", "50") >= late_us);
    assert!(run.percentile("service_time", "50") + 15_000 < run.percentile("response_time", "50"));
    let punctual = loadgen(&["-R200", "-c8", "-t1", "-d1s", "--spin", "off", "--warmup", "0s", &server.url]);
    assert!(punctual.percentile("send_lateness", "50") < late_us);
}

#[test]
fn a_last_wait_that_slack_asked_for_is_no_absence() {
    // One of a hundred is lost, so that the rate is not kept, and somebody is looked for.
    let lossy = |number: u64| if number % 100 == 50 { Act::Close } else { Act::Answer(OK.to_owned()) };
    let server = Server::start(move |number, _| lossy(number));
    let options = ["-R1000", "-c16", "-t1", "-d2500ms", "--slack", "100ms", "--warmup", "0s"];
    let run = loadgen(&[&options[..], &[&server.url()]].concat());
    let told = format!("{} {}", run.json["verdict"], run.json["threads"]);
    // Where others had its CPU it was absent, and is blamed, in truth.
    let [away_s, waited_s] =
        ["away_s", "waited_for_cpu_s"].map(|name| run.json["threads"][0][name].as_f64().unwrap_or(0.0));
    assert!(away_s < 0.05 + waited_s, "{told}");
    if waited_s < 0.05 {
        assert_eq!(run.json["verdict"]["generator_saturated"], false, "{told}");
    }
}

#[test]
fn a_closed_loop_ends_when_so_many_requests_are_answered() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["--closed", "--requests", "57", "-c5", "-t3", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_follows_schema(&run);
    assert_eq!((run.count("sent"), run.count("completed"), server.requests()), (57, 57, 57));
    assert!(run.stdout.starts_with("Running 57-request test @ "), "{}", run.stdout);
    let shared: Vec<u64> = run.json["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["sent"].as_u64().unwrap())
        .collect();
    assert_eq!(shared, [19, 19, 19]);
    // A time that was typed ends it too.
    let slow = Server::start(|_, _| Act::After(Duration::from_millis(20), OK.to_owned()));
    let run = loadgen(&["--closed", "--requests", "1M", "-d300ms", "-c1", "-t1", &slow.url()]);
    assert!((1..=15).contains(&run.count("sent")), "{}", run.stdout);
}

#[test]
fn a_closed_loop_of_fewer_requests_than_connections_sends_those_and_no_more() {
    // With a delay all connections wait for their turns when the last request leaves.
    let (_folder, delayed) = common::script("function delay() return 100 end");
    for more in [&["-s", delayed.as_str()][..], &[]] {
        let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
        let options = ["--closed", "--requests", "3", "-c8", "-t1"];
        let run = loadgen(&[&options[..], more, &[&server.url()]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!((run.count("sent"), run.count("completed"), server.requests()), (3, 3, 3), "{more:?}");
    }
}

#[test]
fn a_closed_loop_of_few_requests_lasts_until_the_last_answer() {
    let slow = Server::start(|_, _| Act::After(Duration::from_millis(200), OK.to_owned()));
    let run = loadgen(&["--closed", "--requests", "4", "-c4", "-t2", &slow.url()]);
    assert_eq!((run.code, run.count("completed")), (0, 4), "{}", run.stderr);
    assert!(run.json["duration_s"].as_f64().unwrap() >= 0.2, "{}", run.json["duration_s"]);
    let rate = run.json["achieved_rate_rps"].as_f64().unwrap();
    assert!((0.5..=20.0).contains(&rate), "{rate}");
}

#[test]
fn a_closed_loop_of_so_many_requests_ends_when_no_answers_come_any_more() {
    for silent in [true, false] {
        let server = Server::start(move |number, _| match number {
            0..10 => Act::Answer(OK.to_owned()),
            _ if silent => Act::Silence,
            _ => Act::Close,
        });
        let options = ["--closed", "--requests", "50", "-c2", "-t1", "-T", "500ms", "--max-unanswered", "1%"];
        let run = loadgen(&[&options[..], &[&server.url()]].concat());
        assert_eq!((run.code, run.count("completed")), (5, 10), "{}", run.stderr);
        assert_eq!(run.count("sent") + run.count("unsent"), 50, "{}", run.stderr);
        assert_follows_schema(&run);
    }
}

#[test]
fn a_closed_loop_that_is_over_before_its_warm_up_says_that_nothing_was_measured() {
    let server = NullServer::start();
    let options = ["--closed", "--requests", "10", "-c2", "-t1", "-d5s", "--warmup", "1s", &server.url];
    let run = loadgen(&options);
    assert_eq!((run.code, run.count("completed"), run.count("measured")), (0, 10, 0), "{}", run.stderr);
    let told = "note: nothing was measured: all 10 answers are to requests of the warm-up";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert!(run.stdout.contains("-nan"), "{}", run.stdout);
}

#[test]
fn a_connection_that_a_script_has_wait_for_longer_than_the_timeout_waits_for_no_answer() {
    let (_folder, path) = common::script("function delay() return 700 end");
    let server = Server::start(|_, _| Act::After(Duration::from_millis(200), OK.to_owned()));
    let options = ["--closed", "--requests", "3", "-c1", "-t1", "-T", "500ms", "-s", &path];
    let run = loadgen(&[&options[..], &[&server.url()]].concat());
    assert_eq!((run.code, run.count("completed"), run.count("unsent")), (0, 3, 0), "{}", run.stderr);
}

#[test]
fn at_a_rate_exactly_so_many_requests_are_due() {
    let server = NullServer::start();
    for more in [&["--arrivals", "uniform"][..], &["--dispatch", "any"], &["--arrivals", "poisson"]] {
        let options = [&["-R500", "--requests", "130", "-c7", "-t2"], more, &[&server.url]].concat();
        let run = loadgen(&options);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.count("sent") + run.count("unsent"), 130, "{more:?}");
        if more[1] != "poisson" {
            assert_eq!(run.json["duration_s"], 0.26, "{more:?}");
        }
    }
}

/// Both ends of a terminal.
fn terminal() -> (std::fs::File, OwnedFd) {
    let (mut own, mut other) = (0, 0);
    let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: the kernel writes two descriptors; the others may be null.
    let opened = unsafe { libc::openpty(&mut own, &mut other, name, settings, size) };
    assert_eq!(opened, 0, "no terminal: {}", std::io::Error::last_os_error());
    // SAFETY: both were just made and belong to nobody else.
    unsafe { (std::fs::File::from_raw_fd(own), OwnedFd::from_raw_fd(other)) }
}

/// What a run prints on stdout, and what a terminal on stderr shows.
fn run_on_terminal(options: &[&str]) -> (String, String) {
    let (mut shown, stderr) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    let child = command.args(options).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    drop(command); // its end of the terminal, or reading never ends
    let mut seen = Vec::new();
    let mut room = [0; 4096];
    // The terminal breaks when nobody writes to it any more.
    while let Ok(count @ 1..) = shown.read(&mut room) {
        seen.extend_from_slice(&room[..count]);
    }
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(seen).unwrap())
}

#[test]
fn a_terminal_shows_rate_percentiles_and_the_time_left_while_the_run_lasts_and_nothing_of_it_behind() {
    let server = NullServer::start();
    let options = ["-R300", "-c2", "-t2", "-d3s", "--warmup", "500ms", &server.url];
    let (stdout, shown) = run_on_terminal(&options);
    let lines: Vec<&str> = shown.split("\r\x1b[K").filter(|line| line.contains("/s  p50 ")).collect();
    assert!((1..=3).contains(&lines.len()), "{shown:?}");
    assert!(lines[0].contains("p99 ") && lines[0].ends_with("s left"), "{lines:?}");
    let rate: f64 = lines[lines.len() - 1].split("/s").next().unwrap().parse().unwrap();
    assert!((100.0..600.0).contains(&rate), "{lines:?}");
    assert!(shown.matches("\r\x1b[K").count() > lines.len(), "it is taken away: {shown:?}");
    assert!(!stdout.contains("p50") && stdout.contains("Thread Stats"), "{stdout}");
    let (_, shown) = run_on_terminal(&[&options[..], &["--quiet"]].concat());
    assert!(!shown.contains("p50"), "{shown:?}");
    assert!(!loadgen(&options).stderr.contains("p50"), "no terminal, no line");
}
