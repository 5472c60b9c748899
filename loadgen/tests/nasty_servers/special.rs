//! Nasty servers that are no matter of a single answer.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::common::{Run, script};
use super::server::{Nasty, OK, Server, Step, serve};
use super::{at_ease, check_invariants, facts, reasons_of, timed};

type Special = (&'static str, fn());

pub fn all() -> Vec<Special> {
    vec![
        ("refuses", refuses),
        ("refuses, then accepts", refuses_then_accepts),
        ("goes away for good", goes_away_for_good),
        ("accepts, and closes at once", closes_at_once),
        ("accepts, and resets at once", resets_at_once),
        ("accepts none, its queue is full", accepts_none),
        ("accepts, and never reads", never_reads),
        ("speaks first", speaks_first),
        ("answers before it is asked", answers_before_it_is_asked),
        ("sends bodies to HEAD", sends_bodies_to_head),
        ("answers two of three", answers_two_of_three),
        ("closes behind the first of three", closes_behind_the_first_of_three),
        ("answers three at once, in one piece", answers_three_at_once),
        ("refuses a body before it has come", refuses_a_body_before_it_has_come),
        ("floods a script", floods_a_script),
        ("answers after the timeout", answers_after_the_timeout),
        ("closes after five answers", closes_after_five),
    ]
}

fn threads(run: &Run) -> &Vec<serde_json::Value> {
    run.json["threads"].as_array().unwrap()
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

fn refuses() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let run = timed(&["-R20", "-c2", "-t1", "-d500ms", &url(port)], 0.0);
    assert_eq!((run.code, run.json.is_null()), (1, true), "{}", run.stderr);
    assert!(run.stderr.starts_with("unable to connect to 127.0.0.1:"), "{}", run.stderr);
}

/// Goes away, with all its connections, as soon as the run has begun, and comes back half a second later.
fn refuses_then_accepts() {
    let run = at_ease(away_for_a_while, |run| {
        // Attempts enough for pauses as long as they get, and time enough behind them.
        late_by_pauses_us(run) > OWN_PAUSE_US_MIN && run.count("completed") >= 20
    });
    assert_eq!((run.code, &run.json["connections_open_at_start"]), (0, &4.into()), "{}", facts(&run));
    assert!((1..=4).contains(&run.count("lost")), "{}", facts(&run));
    assert!(run.count("completed") >= 20, "all return long before the end: {}", facts(&run));
    let refused = ("connect".to_owned(), "Connection refused".to_owned());
    assert!(reasons_of(&run).contains_key(&refused), "{}", facts(&run));
    let reconnecting = &run.json["reconnecting"];
    assert_eq!(reconnecting["reopened"], 4, "{reconnecting}");
    let (closed_s, own_s) =
        (reconnecting["closed_s"].as_f64().unwrap(), reconnecting["own_pause_s"].as_f64().unwrap());
    // The longest pause is 75 ms, and on a busy machine its end is noticed late.
    let waited_s: f64 =
        threads(&run).iter().map(|thread| thread["waited_for_cpu_s"].as_f64().unwrap_or(0.0)).sum();
    assert!(
        0.0 < own_s && own_s <= closed_s && own_s <= 4.0 * (0.076 + waited_s),
        "each waited one pause too long at most: {reconnecting}"
    );
    // What was due meanwhile left late by it, and by no more: half a second later no pause is under 25 ms.
    let own_us = late_by_pauses_us(&run);
    assert!(OWN_PAUSE_US_MIN < own_us && own_us <= 76_000.0 + waited_s * 1e6, "{own_us} us: {}", facts(&run));
    assert!(run.stderr.contains("the generator waited before it tried again"), "{}", facts(&run));
}

/// Where nobody else is given a port: this one is given up, and another case may have it by the time that it
/// is wanted again, or that connections are to be refused.
const NOBODY_ELSES: &str = "127.0.0.77:0";

fn away_for_a_while(times: u64) -> Run {
    let listener = TcpListener::bind(NOBODY_ELSES).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        drop(listener.accept().unwrap());
        let mut streams: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
        // Shut down, not only dropped: a child that another case has just forked has them all until it
        // becomes a program, so that connections would be accepted for that long and lost with it.
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        drop(listener);
        // The first connection to be opened has the first request of its thread, if not of all.
        let _ = streams[0].read(&mut [0; 4096]);
        streams.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
        drop(streams);
        thread::sleep(Duration::from_millis(500 * times));
        serve(
            &TcpListener::bind(address).unwrap(),
            Nasty::Once(u64::MAX),
            &Arc::new(Vec::new()),
            &Arc::new(Vec::new()),
        );
    });
    let (rate, duration) = (format!("-R{}", 20.0 / times as f64), format!("-d{}ms", 2500 * times));
    let limit_s = 2.5 * times as f64 + 2.0;
    let run = timed(&[&rate, "-c4", "-t2", &duration, "-T", "1s", &format!("http://{address}/")], limit_s);
    check_invariants(&run, 50);
    run
}

/// Half a second after a server has gone no pause is under 25 ms.
const OWN_PAUSE_US_MIN: f64 = 24_000.0;

fn late_by_pauses_us(run: &Run) -> f64 {
    run.json["reconnecting"]["lateness"]["max_us"].as_f64().unwrap()
}

/// Ten answers on one connection, and nobody listens any more.
fn goes_away_for_good() {
    let run = at_ease(ten_answers, |run| run.count("completed") == 10 && run.error("connect") >= 2);
    assert_eq!((run.code, run.count("completed")), (0, 10), "{}", facts(&run));
    assert!(run.error("connect") >= 2, "{}", facts(&run));
}

fn ten_answers(times: u64) -> Run {
    let listener = TcpListener::bind(NOBODY_ELSES).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap(); // as above
        drop(listener);
        for _ in 0..10 {
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(OK).unwrap();
        }
    });
    let run = short(times, 50.0, 500, &["-c1", "-T", "1s", &url]);
    check_invariants(&run, 25);
    run
}

/// On one thread, and so many times slower and longer than told; timeouts are 5 s at most.
fn short(times: u64, rate_rps: f64, duration_ms: u64, args: &[&str]) -> Run {
    let rate = format!("-R{}", rate_rps / times as f64);
    let duration_ms = duration_ms * times;
    let duration = format!("-d{duration_ms}ms");
    timed(&[&[&rate, "-t1", &duration], args].concat(), duration_ms as f64 / 1e3 + 5.0)
}

fn closes_at_once() {
    at_once(Step::Close, "closed ");
}

fn resets_at_once() {
    at_once(Step::Reset, "Connection reset by peer");
}

/// Some requests may leave before it is seen; they are lost, the others were never sent.
fn at_once(step: Step, why: &str) {
    let run = |times: u64| {
        let server = Server::start(Nasty::Always, Vec::new(), vec![step.clone()]);
        let run = short(times, 20.0, 500, &["-c2", "-T", "1s", &url(server.port)]);
        check_invariants(&run, 10);
        assert!(failures(&run) <= 200 * times, "tried again, but with pauses: {}", facts(&run));
        run
    };
    let run = at_ease(run, |run| failures(run) >= 4);
    assert_eq!(
        (run.code, run.count("completed"), run.count("in_flight_at_end")),
        (1, 0, 0),
        "{}",
        facts(&run)
    );
    let reasons = reasons_of(&run);
    assert!(
        reasons.keys().any(|(kind, reason)| kind == "read" && reason.starts_with(why)),
        "{}",
        facts(&run)
    );
    assert!(failures(&run) >= 4, "tried again: {}", facts(&run));
}

fn failures(run: &Run) -> u64 {
    reasons_of(run).values().sum()
}

/// Room for one connection that waits to be accepted, which the first look takes.
fn accepts_none() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let run = timed(
        &["-R20", "-c4", "-t1", "-d500ms", "-T", "600ms", &url(listener.local_addr().unwrap().port())],
        1.7,
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    check_invariants(&run, 10);
    assert_eq!(run.count("completed"), 0, "{}", facts(&run));
    assert!(run.error("connect") >= 3, "{}", facts(&run));
    assert!(run.stderr.contains("no connection within the timeout"), "{}", facts(&run));
    assert!(run.stderr.contains("of 4 connections were not open when the run began"), "{}", facts(&run));
    assert!(run.json["connections_open_at_start"].as_u64().unwrap() < 4, "{}", facts(&run));
    drop(listener);
}

/// Two requests of 20 MB: one for each connection is under way and fills what the kernel keeps.
fn never_reads() {
    let (_folder, path) = script("wrk.method = 'PUT'; wrk.body = string.rep('x', 20000000)");
    let server = Server::start(Nasty::Always, Vec::new(), vec![Step::Deaf]);
    let run = timed(&["-R20", "-c2", "-t1", "-d500ms", "-T", "500ms", "-s", &path, &url(server.port)], 1.0);
    check_invariants(&run, 10);
    assert_eq!((run.code, run.count("sent"), run.count("in_flight_at_end")), (1, 2, 2), "{}", facts(&run));
    assert_eq!((run.error("timeout"), run.error("write"), run.count("unsent")), (2, 0, 8), "{}", facts(&run));
}

/// As mail and file servers do.
fn speaks_first() {
    let server =
        Server::start(Nasty::Always, Vec::new(), vec![Step::Send(b"220 mail.example ESMTP\r\n".to_vec())]);
    let run = timed(&["-R20", "-c2", "-t1", "-d500ms", "-T", "1s", &url(server.port)], 1.5);
    check_invariants(&run, 10);
    assert_eq!((run.code, run.count("completed")), (1, 0), "{}", facts(&run));
    assert!(run.stderr.contains("220 mail.example ESMTP"), "{}", facts(&run));
}

/// An answer to nothing must not be taken for that of the first request.
fn answers_before_it_is_asked() {
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec();
    let run = |times: u64| {
        let greeting = vec![Step::Send(busy.clone()), Step::Pause(Duration::from_millis(5))];
        let server = Server::start(Nasty::Once(u64::MAX), Vec::new(), greeting);
        let run = short(times, 20.0, 500, &["-c2", "-T", "1s", &url(server.port)]);
        check_invariants(&run, 10);
        run
    };
    let run = at_ease(run, |run| run.error("read") >= 2);
    assert!(run.error("read") >= 2, "{}", facts(&run));
}

fn sends_bodies_to_head() {
    let (_folder, path) = script("wrk.method = 'HEAD'");
    let server = Server::start(Nasty::Once(3), vec![Step::Send(OK.to_vec())], Vec::new());
    // All others have a body too: every answer is one, with more than was asked for behind it.
    let run = timed(&["-R20", "-c1", "-t1", "-d500ms", "-T", "4s", "-s", &path, &url(server.port)], 4.5);
    check_invariants(&run, 10);
    assert_eq!((run.code, run.count("lost")), (0, 0), "{}", facts(&run));
    assert_eq!(run.error("read"), run.count("completed"), "{}", facts(&run));
}

const THREE: &str = "function init() r = wrk.format() end function request() return r .. r .. r end";

/// Requests come by threes; every third is not answered, and the connection closed.
fn answers_two_of_three() {
    let run = in_threes(Nasty::Once(5), &[Step::Close]);
    assert_eq!((run.count("completed") + run.count("unsent"), run.count("lost")), (8, 1), "{}", facts(&run));
    assert_eq!(
        reasons_of(&run).into_keys().collect::<Vec<_>>(),
        [("read".to_owned(), "closed before an answer".to_owned())]
    );
}

/// The answer to the first of three says that it is the last on this connection.
fn closes_behind_the_first_of_three() {
    let close = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let run = in_threes(Nasty::Once(3), &[Step::Send(close), Step::Close]);
    assert_eq!((run.count("completed") + run.count("unsent"), run.count("lost")), (7, 2), "{}", facts(&run));
    let why = "answer that closes before the last of a batch";
    assert_eq!(reasons_of(&run).into_keys().collect::<Vec<_>>(), [("read".to_owned(), why.to_owned())]);
}

fn answers_three_at_once() {
    let run = in_threes(Nasty::Once(2), &[Step::Send(OK.to_vec())]);
    assert_eq!((run.count("completed") + run.count("unsent"), run.count("lost")), (9, 0), "{}", facts(&run));
    assert!(reasons_of(&run).is_empty(), "{}", facts(&run));
}

/// Nine requests are due, three batches; what is nasty is met in the first two.
fn in_threes(nasty: Nasty, steps: &[Step]) -> Run {
    let (_folder, path) = script(THREE);
    let run = |times: u64| {
        let server = Server::start(nasty, steps.to_vec(), Vec::new());
        let run = short(times, 20.0, 450, &["-c1", "-T", "4s", "-s", &path, &url(server.port)]);
        check_invariants(&run, 9);
        assert_eq!((run.code, run.count("in_flight_at_end")), (0, 0), "{}", facts(&run));
        run
    };
    at_ease(run, |run| run.count("unsent") <= 3)
}

/// Answers 413 from the head alone and closes with unread bytes, so that the kernel sends a reset behind the
/// answer.
fn refuses_a_body_before_it_has_come() {
    let (_folder, path) = script("wrk.method = 'PUT'; wrk.body = string.rep('x', 20000000)");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                if stream.read(&mut [0; 1000]).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(
                        b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                    );
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    let run = timed(&["-R20", "-c1", "-t1", "-d500ms", "-T", "4s", "-s", &path, &url(port)], 4.5);
    check_invariants(&run, 10);
    assert_eq!(
        (run.code, run.count("lost"), run.error("write")),
        (0, 0, 0),
        "the answer is there to be read: {}",
        facts(&run)
    );
    assert_eq!(run.json["answers"]["413"], run.count("sent"), "{}", facts(&run));
}

/// A script that sees answers would have to be given all of a body without end.
fn floods_a_script() {
    let (_folder, path) = script("function response(status, headers, body) end");
    let head = Step::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
    let server = Server::start(Nasty::Always, vec![head, Step::Flood(vec![b'x'; 1 << 20])], Vec::new());
    // What comes is read until the limit, and given up; a hang would last until the timeout. The second
    // request may be due behind the end of the first, and not be sent.
    let run = timed(
        &["-R20", "-c1", "-t1", "-d9s", "--requests", "2", "-T", "20s", "-s", &path, &url(server.port)],
        9.0,
    );
    let lost = run.count("lost");
    assert_eq!((run.code, run.count("completed"), lost + run.count("unsent")), (1, 0, 2), "{}", facts(&run));
    let why = ("read".to_owned(), "body larger than 64 MiB, kept for the script's response()".to_owned());
    assert!(lost > 0);
    assert_eq!(reasons_of(&run).into_iter().collect::<Vec<_>>(), [(why, lost)], "{}", facts(&run));
}

fn answers_after_the_timeout() {
    let run = |times: u64| {
        let late = vec![Step::Pause(Duration::from_millis(700 * times)), Step::Send(OK.to_vec())];
        let server = Server::start(Nasty::Once(2), late, Vec::new());
        let timeout = format!("{}ms", 500 * times);
        let run = short(times, 10.0, 1000, &["-c10", "-T", &timeout, &url(server.port)]);
        check_invariants(&run, 10);
        run
    };
    let run = at_ease(run, |run| run.count("completed") == 10);
    assert_eq!((run.code, run.count("completed")), (0, 10), "{}", facts(&run));
    assert!(
        reasons_of(&run).contains_key(&("timeout".to_owned(), "answered after the timeout".to_owned())),
        "{}",
        facts(&run)
    );
}

/// As servers with a limit of requests for each connection do, without a word.
fn closes_after_five() {
    // Four connections: three are seen to close for certain, and where a request left meanwhile it is lost.
    let closed = |run: &Run| run.error("read") + run.error("write");
    let run = at_ease(five_answers_each, |run| closed(run) >= 2);
    assert_eq!(run.code, 0, "{}", facts(&run));
    assert!((2..=5).contains(&closed(&run)) && run.count("lost") <= closed(&run), "{}", facts(&run));
}

fn five_answers_each(times: u64) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                for _ in 0..5 {
                    if !stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0)
                        || stream.write_all(OK).is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    let run = short(times, 40.0, 500, &["-c1", "-T", "4s", &url(port)]);
    check_invariants(&run, 20);
    run
}
