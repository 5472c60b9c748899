//! Runs that start at a given time in UTC.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use common::{Act, OK, Server, loadgen};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};

/// A server that notes when its first request came, in nanoseconds since the epoch, and that time.
fn noting_server() -> (Server, Arc<AtomicI64>) {
    let first = Arc::new(AtomicI64::new(i64::MAX));
    let noted = first.clone();
    let server = Server::start(move |_, _| {
        noted.fetch_min(Timestamp::now().as_nanosecond() as i64, Ordering::SeqCst);
        Act::Answer(OK.to_owned())
    });
    (server, first)
}

#[test]
fn nothing_is_sent_before_the_time_and_the_schedule_starts_at_it_to_the_nanosecond() {
    for pacing in ["-R200", "--closed"] {
        let (server, first) = noting_server();
        let start = Timestamp::now() + SignedDuration::from_millis(1500) + SignedDuration::from_nanos(7);
        let utc = format!("{start:.9}");
        let run = loadgen(&[pacing, "-c4", "-t2", "-d300ms", "--start-at", &utc, &server.url()]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.json["start_utc"], utc.as_str());
        assert!(first.load(Ordering::SeqCst) >= start.as_nanosecond() as i64, "{pacing}: sent before {utc}");
        for thread in run.json["threads"].as_array().unwrap() {
            let away_s = thread["away_s"].as_f64().unwrap();
            assert!(away_s <= 0.3, "{pacing}: it was not away while it waited for its time: {thread}");
        }
        if pacing == "-R200" {
            assert_eq!(run.count("sent") + run.count("unsent"), 60);
        }
    }
}

/// A server that says this and closes each of its first three connections when it was not asked over it for
/// 300 ms.
fn impatient_server(says: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, mut stream) in listener.incoming().map(Result::unwrap).enumerate() {
            stream.set_read_timeout((number < 3).then_some(Duration::from_millis(300))).unwrap();
            std::thread::spawn(move || {
                let mut asked = [0; 4096];
                while stream.read(&mut asked).is_ok_and(|count| count > 0) {
                    stream.write_all(OK.as_bytes()).unwrap();
                }
                let _ = stream.write_all(says.as_bytes());
            });
        }
    });
    url
}

#[test]
fn connections_that_the_server_closes_before_the_time_are_opened_again_and_no_request_is_lost() {
    let timed_out = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for (pacing, says) in
        [(["-R20", "-d300ms"], ""), (["--closed", "-d60s"], ""), (["-R20", "-d300ms"], timed_out)]
    {
        let url = impatient_server(says);
        let utc = format!("{:.9}", Timestamp::now() + SignedDuration::from_millis(2500));
        let closed = ["--requests", "6"];
        let ends: &[&str] = if pacing[0] == "--closed" { &closed } else { &[] };
        let run = loadgen(&[&pacing[..], ends, &["-c3", "-t1", "--start-at", &utc, &url]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let (sent, completed) = (run.count("sent"), run.count("completed"));
        assert_eq!((sent, completed, run.error("read")), (6, 6, 0), "{pacing:?}: {}", run.stderr);
        assert_eq!(run.json["bytes_read"], 6 * OK.len(), "{pacing:?}");
    }
}

#[test]
fn two_runs_with_one_time_start_together() {
    let (server, _) = noting_server();
    let utc = format!("{:.9}", Timestamp::now() + SignedDuration::from_secs(2));
    let run = || loadgen(&["-R50", "-c1", "-t1", "-d200ms", "--start-at", &utc, &server.url()]);
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(run);
        (run(), other.join().unwrap())
    });
    assert_eq!((one.code, other.code), (0, 0), "{} {}", one.stderr, other.stderr);
    assert_eq!(
        (&one.json["start_utc"], &other.json["start_utc"]),
        (&utc.as_str().into(), &utc.as_str().into())
    );
}

#[test]
fn a_time_that_passes_while_connections_are_opened_is_refused() {
    // A script that takes longer to set up than there is time.
    let (_folder, path) = common::script("local t = os.time() + 3; while os.time() < t do end");
    let (server, first) = noting_server();
    let utc = format!("{:.9}", Timestamp::now() + SignedDuration::from_millis(1500));
    let run = loadgen(&["-R50", "-c1", "-t1", "-d200ms", "-s", &path, "--start-at", &utc, &server.url()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("too late to start: --start-at"), "{}", run.stderr);
    assert_eq!(first.load(Ordering::SeqCst), i64::MAX, "nothing was sent");
}

#[test]
fn a_run_that_waits_for_its_time_can_be_called_off() {
    for pacing in ["-R50", "--closed"] {
        let (server, first) = noting_server();
        let utc = format!("{:.9}", Timestamp::now() + SignedDuration::from_secs(3600));
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args([pacing, "-c1", "-t1", "-d1s", "--start-at", &utc, &server.url()])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut banner = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut banner).unwrap();
        assert!(banner.starts_with("Running "), "{banner}");
        std::thread::sleep(Duration::from_millis(300));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
        assert_eq!(first.load(Ordering::SeqCst), i64::MAX, "nothing was sent");
    }
}

#[test]
fn what_a_thread_uses_while_it_waits_for_the_start_is_no_part_of_the_run() {
    let (server, _) = noting_server();
    let utc = format!("{:.9}", Timestamp::now() + SignedDuration::from_millis(3500));
    // From when it is told the time it waits busily, for about three seconds.
    let options = ["-R10", "-c1", "-t1", "-d500ms", "--spin", "10s", "--start-at", &utc];
    let run = loadgen(&[&options[..], &[&server.url()]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let thread = &run.json["threads"][0];
    let [cpu_s, spun_s] = ["cpu_s", "spun_s"].map(|name| thread[name].as_f64().unwrap());
    assert!(cpu_s <= 1.0 && spun_s <= 1.0, "{thread}");
}
