//! The verdict `generator_saturated`: a starved generator says so, a slow service is not taken for one.

mod common;

use std::net::{Shutdown, TcpListener};
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use common::{Act, NullServer, OK, Run, Server, loadgen, run_command, serve};
use rustix::process::{Pid, Signal, kill_process};

/// Programs that keep one CPU busy, until dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    fn on(cpu: usize, count: usize) -> Self {
        let hog = |_| {
            Command::new("taskset")
                .args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"])
                .spawn()
                .unwrap()
        };
        Self((0..count).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

fn saturated(run: &Run) -> bool {
    run.json["verdict"]["generator_saturated"]
        .as_bool()
        .unwrap_or_else(|| panic!("no verdict: {}", run.stderr))
}

#[test]
fn a_generator_whose_cpu_others_take_says_that_it_was_starved() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let cpu = loadgen::machine::allowed_cpus()[0];
    let _hogs = Hogs::on(cpu, 3);
    let pinned = cpu.to_string();
    let nice = ["-n", "10", "taskset", "-c", &pinned, env!("CARGO_BIN_EXE_loadgen")];
    let run = run_command_behind(&nice, &["-R2000", "-c16", "-t1", "-d2s", "--spin", "off", &server.url()]);
    assert!(saturated(&run), "{:?} {}", run.json["verdict"], run.json["threads"]);
    let reason = run.json["verdict"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("starved: "), "{reason}");
    assert!(run.stderr.contains("the generator was the limit, not the service"), "{}", run.stderr);
}

#[test]
fn a_thread_that_spins_beside_others_on_its_cpu_gives_it_up() {
    // Pinned, it takes the CPU for its own; every wait at this rate is a busy one.
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let cpu = loadgen::machine::allowed_cpus()[0];
    let _hogs = Hogs::on(cpu, 2);
    let pinned = cpu.to_string();
    let options = ["-R5000", "-c16", "-t1", "-d3s", "--spin", "auto", "--pin", &pinned];
    let run = loadgen(&[&options[..], &[&server.url()]].concat());
    let thread = &run.json["threads"][0];
    assert_eq!((run.code, &thread["spin_given_up"]), (0, &true.into()), "{} {thread}", run.stderr);
    assert_eq!(thread["spin_us"], 0.0, "{thread}");
}

/// `nice … loadgen`, with the options of the result files behind the program.
fn run_command_behind(before: &[&str], options: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("starved");
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec nice {} \"$@\"\n", before.join(" "))).unwrap();
    std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    run_command(Command::new(&wrapper).args(options))
}

#[test]
fn a_slow_service_is_not_taken_for_a_slow_generator() {
    // 4 answers in 250 ms: 16 a second are possible, 400 are offered. What is late is late by seconds, so
    // that a loaded machine, which may delay the generator by milliseconds, cannot change the verdict.
    let server = Server::start(|_, _| Act::After(Duration::from_millis(250), OK.to_owned()));
    let run = loadgen(&["-R400", "-c4", "-t2", "-d3s", &server.url()]);
    assert_slow_service(&run);
    assert!(run.count("unsent") > 1000);
}

#[test]
fn a_service_a_thousand_times_too_slow_leaves_the_generator_asleep() {
    // A request falls due every 5 us, and none of them can be sent: nothing may wake the generator for that.
    let server = Server::start(|_, _| Act::After(Duration::from_millis(250), OK.to_owned()));
    for spin in ["off", "50us"] {
        let run = loadgen(&["-R200k", "-c40", "-t1", "-d1s", "--spin", spin, &server.url()]);
        assert_slow_service(&run);
    }
}

fn assert_slow_service(run: &Run) {
    assert!(!saturated(run), "{:?} {}", run.json["verdict"], run.json["threads"]);
    let reason = run.json["verdict"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("connections: ") && reason.contains("unless it is the service that is overloaded"),
        "{reason}"
    );
    assert!(!run.stderr.contains("the generator was the limit"), "{}", run.stderr);
    assert!(
        run.json["achieved_rate_rps"].as_f64().unwrap()
            < run.json["offered_rate_rps"].as_f64().unwrap() / 10.0
    );
}

#[test]
fn a_script_that_takes_all_the_time_is_the_generators_limit_spinning_or_not() {
    // Many connections are always free when the thread comes to them, so only the thread can be what is slow.
    let server = NullServer::start();
    let (_folder, path) = common::script(
        "function request() local x = 0; for i = 1, 200000 do x = x + math.sin(i) end; return \
            wrk.format(nil, '/' .. x) end",
    );
    for spin in ["off", "50us"] {
        let run = loadgen(&["-R20000", "-c64", "-t1", "-d1s", "--spin", spin, "-s", &path, &server.url]);
        assert!(saturated(&run), "spin {spin}: {:?} {}", run.json["verdict"], run.json["threads"]);
    }
}

#[test]
fn too_few_connections_are_named_and_enough_are_not() {
    // 5 ms each: one connection carries 200 a second at most, 16 of them 3200.
    let server = Server::start(|_, _| Act::After(Duration::from_millis(5), OK.to_owned()));
    let few = loadgen(&["-R400", "-c1", "-t1", "-d1s", &server.url()]);
    let reason = few.json["verdict"]["reason"].as_str().unwrap_or_else(|| panic!("{}", few.json["verdict"]));
    assert!(reason.starts_with("connections: ") && reason.contains("1 of them were busy"), "{reason}");
    assert!(few.stderr.contains(&format!("note: {reason}")), "{}", few.stderr);
    let enough = loadgen(&["-R400", "-c16", "-t1", "-d1s", &server.url()]);
    let reason = enough.json["verdict"]["reason"].as_str().unwrap_or("");
    assert!(!reason.starts_with("connections: "), "{reason}");
}

#[test]
fn a_request_that_left_in_time_and_is_under_way_at_the_end_has_not_missed_the_rate() {
    // One request is due, at the start. Its connection is busy all the time, and no other waits for it. A
    // busy machine may have it leave late, which is another matter: then once more.
    let server = Server::start(|_, _| Act::After(Duration::from_millis(1300), OK.to_owned()));
    let run = |rate: &str| loadgen(&[rate, "-c1", "-t1", "-d1s", "-T", "10s", &server.url()]);
    let one = std::iter::repeat_with(|| run("-R1"))
        .take(10)
        .find(|one| one.percentile("send_lateness", "100") <= 1000)
        .expect("one of ten sends is in time");
    assert_eq!((one.count("completed"), one.count("completed_in_window")), (1, 0), "{}", one.stderr);
    assert!(one.json["verdict"]["reason"].is_null(), "{}", one.json["verdict"]);
    let two = run("-R2");
    let reason = two.json["verdict"]["reason"].as_str().unwrap_or_else(|| panic!("{}", two.json["verdict"]));
    assert!(reason.starts_with("connections: "), "the second waited: {reason}");
}

#[test]
fn a_closed_loop_that_takes_a_whole_core_or_gets_none_is_the_generators_limit() {
    let server = NullServer::start();
    let (_folder, path) = common::script(
        "function request() local x = 0; for i = 1, 200000 do x = x + math.sin(i) end; return \
            wrk.format(nil, '/' .. x) end",
    );
    let busy = loadgen(&["--closed", "-c4", "-t1", "-d1s", "-s", &path, &server.url]);
    assert!(saturated(&busy), "{:?} {}", busy.json["verdict"], busy.json["threads"]);
    let cpu = loadgen::machine::allowed_cpus()[0];
    let _hogs = Hogs::on(cpu, 3);
    let pinned = cpu.to_string();
    let nice = ["-n", "10", "taskset", "-c", &pinned, env!("CARGO_BIN_EXE_loadgen")];
    let starved = run_command_behind(&nice, &["--closed", "-c64", "-t1", "-d1s", &server.url]);
    assert!(saturated(&starved), "{:?} {}", starved.json["verdict"], starved.json["threads"]);
}

#[test]
fn a_closed_loop_that_waits_for_the_service_is_not_saturated() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(50), OK.to_owned()));
    let run = loadgen(&["--closed", "-c2", "-t1", "-d1s", &server.url()]);
    assert!(!saturated(&run), "{:?} {}", run.json["verdict"], run.json["threads"]);
}

/// 1 000 requests a second for 2 s, while the generator is stopped for 60 ms four times.
fn stopped_now_and_then(connections: &str) -> Run {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R1000", "-c", connections, "-t1", "-d2s", "--json", json.to_str().unwrap(), &server.url()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while server.requests() < 50 {
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..4 {
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(child.wait().unwrap().success());
    let json = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    Run { code: 0, stdout: String::new(), stderr: String::new(), json, hlog: String::new() }
}

#[test]
fn a_generator_that_was_stopped_takes_the_blame_however_few_its_connections() {
    for connections in ["1", "4", "64"] {
        let run = stopped_now_and_then(connections);
        // A tenth of the requests fell due while it was stopped, half of those over 30 ms before it went on.
        let (own, response) = (run.percentile("own_lateness", "99"), run.percentile("response_time", "99"));
        assert!(own >= 20_000, "connections={connections} own={own} response={response}");
        assert!(saturated(&run), "connections={connections}: {}", run.json["verdict"]);
        assert!(run.json["verdict"]["reason"].as_str().unwrap().starts_with("starved: "));
        assert_eq!(run.json["own_lateness"]["count"], run.json["send_lateness"]["count"]);
    }
}

/// 2 s of 1 000 requests a second, or of a closed loop, by a generator that is stopped from this long after
/// its start until behind its end.
fn stopped_to_the_end(options: &[&str], stopped_after: Duration, until: Duration) -> Run {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let start = jiff::Timestamp::now() + Duration::from_secs(1);
    let child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(options)
        .args(["-t1", "-d2s", "--start-at", &start.to_string()])
        .args(["--json", json.to_str().unwrap(), &server.url()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let since_start = |after: Duration| (start + after).duration_since(jiff::Timestamp::now()).unsigned_abs();
    let before_start = Duration::from_millis(if stopped_after.is_zero() { 300 } else { 0 });
    thread::sleep(since_start(stopped_after) - before_start);
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    thread::sleep(since_start(until));
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&std::fs::read(json).expect(&stderr)).unwrap();
    Run { code: 0, stdout: String::new(), stderr, json, hlog: String::new() }
}

#[test]
fn a_generator_that_was_stopped_to_the_end_takes_the_blame_for_what_it_never_sent() {
    for (pacing, stopped_after) in
        [("-R1000", 0), ("-R1000", 1000), ("-R1000", 1250), ("--closed", 0), ("--closed", 1250)]
    {
        let [after, until] = [stopped_after, 2500].map(Duration::from_millis);
        let run = stopped_to_the_end(&[pacing, "-c16"], after, until);
        let told = format!("{pacing} {stopped_after}: {} {}", run.json["verdict"], run.json["threads"]);
        assert!(saturated(&run), "{told}");
        assert!(run.json["threads"][0]["away_s"].as_f64().unwrap() > 0.5, "{told}");
        assert!(run.stderr.contains("the generator was the limit, not the service"), "{}", run.stderr);
    }
}

#[test]
fn a_generator_that_comes_back_long_after_the_end_was_away_for_the_same_share_of_the_run() {
    // Few of its sends are late, so that nothing but its absence tells of the second that was never sent.
    let [after, until] = [1000, 6000].map(Duration::from_millis);
    let run = stopped_to_the_end(&["-R1000", "-c4"], after, until);
    let told = format!("{} {}", run.json["verdict"], run.json["threads"]);
    assert!(saturated(&run) && told.contains("was stopped"), "{told}");
    assert!(run.stderr.contains("the generator was the limit, not the service"), "{}", run.stderr);
}

#[test]
fn waiting_for_a_service_that_stalls_is_not_the_generators_lateness() {
    // Every hundredth answer takes 100 ms: most requests wait behind one of them, on the one connection there
    // is.
    let server = Server::start(|number, _| {
        if number % 100 == 99 {
            Act::After(Duration::from_millis(100), OK.to_owned())
        } else {
            Act::Answer(OK.to_owned())
        }
    });
    let run = loadgen(&["-R500", "-c1", "-t1", "-d2s", &server.url()]);
    let (own, late) = (run.percentile("own_lateness", "90"), run.percentile("send_lateness", "90"));
    assert!(late >= 50_000, "late={late}");
    assert!(own < late / 2, "own={own} late={late}");
}

/// Answers for a second; then nobody listens, and nobody is connected, for half a one; then it answers.
/// Returns where. A pause before a retry is at most 75 ms: beside waits of a second, as a busy machine
/// makes them, it would be less than a tenth, which distorts nothing.
fn away_for_half_a_second() -> String {
    // Where nobody else is given a port: this one is wanted again.
    let listener = TcpListener::bind("127.0.0.78:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |stream| {
        thread::spawn(|| serve(stream, &|_: u64, _: &str| Act::Answer(OK.to_owned()), &AtomicU64::new(0)))
    };
    thread::spawn(move || {
        let mut streams = Vec::new();
        // The first connection only looks whether somebody is there.
        drop(listener.accept().unwrap());
        for _ in 0..CONNECTIONS {
            let (stream, _) = listener.accept().unwrap();
            streams.push(stream.try_clone().unwrap());
            answer(stream);
        }
        thread::sleep(Duration::from_secs(1));
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        drop(listener);
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        thread::sleep(Duration::from_millis(500));
        TcpListener::bind(address).unwrap().incoming().flatten().for_each(|stream| drop(answer(stream)));
    });
    format!("http://{address}/")
}

const CONNECTIONS: usize = 20;

#[test]
fn a_service_that_was_away_is_not_taken_for_a_slow_generator() {
    let (connections, began) = (format!("-c{CONNECTIONS}"), Instant::now());
    let away = || loadgen(&["-R400", &connections, "-t1", "-d2500ms", &away_for_half_a_second()]);
    // On a busy machine the generator may be late by itself too, or the server be away for much longer: then
    // once more.
    let is_late = |run: &Run| run.percentile("own_lateness", "99") >= 1000;
    let closed_s = |run: &Run| run.json["reconnecting"]["closed_s"].as_f64().unwrap();
    let at_ease = |run: &Run| !is_late(run) && closed_s(run) < 0.7 * CONNECTIONS as f64;
    let run =
        std::iter::repeat_with(away).find(|run| at_ease(run) || began.elapsed().as_secs() > 30).unwrap();
    if !at_ease(&run) {
        // So busy for half a minute: what is said of the generator then is true, and of the server nothing.
        return assert!(!saturated(&run) || is_late(&run), "{:?} {}", run.json["verdict"], run.stderr);
    }
    assert!(!saturated(&run), "{:?} {}", run.json["verdict"], run.json["reconnecting"]);
    let reason = run.json["verdict"]["reason"].as_str().unwrap_or_else(|| panic!("{}", run.json["verdict"]));
    assert!(reason.starts_with("reconnecting: "), "{reason}");
    assert!(run.stderr.contains(&format!("note: {reason}")), "{}", run.stderr);
    assert!(!run.stderr.contains("the generator was the limit"), "{}", run.stderr);
    let late = &run.json["reconnecting"]["lateness"];
    assert!((10_000..90_000).contains(&late["max_us"].as_u64().unwrap()), "{late}");
    assert!(!run.json["verdict"]["distorted_percentiles"].as_array().unwrap().is_empty());
    common::assert_follows_schema(&run);
}
