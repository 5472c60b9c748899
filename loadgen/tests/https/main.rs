//! https against a real TLS server in the test's own process, and against servers that do it wrong.

#[path = "../common/mod.rs"]
mod common;
mod server;

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use common::{Act, OK, Run, assert_follows_schema, loadgen, script};
use rustls::version::{TLS12, TLS13};
use server::{Authority, HALF_A_RECORD, Manner, TlsServer, expired, not_valid_yet, raw, self_signed};

fn ok() -> Act {
    Act::Answer(OK.to_owned())
}

fn shook(run: &Run, kind: &str) -> u64 {
    run.json["tls"][kind]["count"].as_u64().unwrap_or_else(|| panic!("no tls.{kind}: {}", run.stderr))
}

/// All that was sent was answered; a machine that others use may have been too busy to send all of it.
fn assert_answered(run: &Run, due: u64) {
    assert_what_was_sent_was_answered(run, due);
    assert!(run.count("unsent") <= due / 2, "{}", run.stderr);
}

/// Of a server that takes long by itself: on a busy machine much may be left at the end.
fn assert_what_was_sent_was_answered(run: &Run, due: u64) {
    let [sent, completed, unsent] = ["sent", "completed", "unsent"].map(|name| run.count(name));
    assert_eq!((run.code, sent + unsent, completed), (0, due, sent), "{}", run.stderr);
    assert_eq!((run.error("connect"), run.error("read"), run.error("write")), (0, 0, 0), "{}", run.stderr);
}

/// The one line of a run that never began.
fn refused(args: &[&str]) -> String {
    let run = loadgen(&[&["-R10", "-c1", "-t1", "-d200ms", "-T", "5s"], args].concat());
    assert_eq!((run.code, run.stdout.as_str(), run.json.is_null()), (1, "", true), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    run.stderr
}

#[test]
fn requests_are_answered_over_tls_and_handshakes_are_recorded_apart() {
    let authority = Authority::new();
    for (versions, name) in [(&[&TLS13], "TLSv1_3"), (&[&TLS12], "TLSv1_2")] {
        let identity = authority.identity(&["localhost"], |_| {});
        let server = TlsServer::with(identity, Manner::Well, versions, &["h2", "http/1.1"], |_, _| ok());
        let ca = authority.file();
        let run =
            loadgen(&["-R200", "-c4", "-t2", "-d1s", "--warmup", "200ms", "--ca-file", &ca, &server.url()]);
        assert_answered(&run, 200);
        assert!(run.count("measured") < run.count("completed"), "the warm-up is apart");
        assert_follows_schema(&run);
        assert_eq!((shook(&run, "handshake_time"), shook(&run, "resumed_handshake_time")), (4, 0));
        assert_eq!(run.json["connect_time"]["count"], 4);
        let protocols = run.json["tls"]["protocols"].as_object().unwrap();
        let told = protocols.keys().next().unwrap();
        assert!(
            protocols.len() == 1 && told.starts_with(name) && told.ends_with(" http/1.1"),
            "{protocols:?}"
        );
        // One more looked whether the server can be reached.
        assert_eq!(server.full.load(SeqCst), 5);
        assert!(run.stdout.contains("Running 1s test @ https://localhost:"), "{}", run.stdout);
    }
}

#[test]
fn a_handshake_is_no_part_of_a_response_time() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    // Some 2000 bytes of the handshake, one by one; and a handshake before each request, since each answer
    // closes.
    let act = |_, _: &str| Act::AnswerAndClose(CLOSES.to_owned());
    let server = TlsServer::with(identity, Manner::ByteByByte, &[&TLS12], &[], act);
    let run =
        loadgen(&["-R2", "-c1", "-t1", "-d3s", "-T", "20s", "--ca-file", &authority.file(), &server.url()]);
    assert_what_was_sent_was_answered(&run, 6);
    assert!(shook(&run, "handshake_time") >= 2, "{}", run.stderr);
    let handshake_us = run.json["tls"]["handshake_time"]["percentiles"]["50"].as_u64().unwrap();
    assert!(run.percentile("response_time", "50") < handshake_us, "{handshake_us}");
    assert!(run.json["tls"]["protocols"].as_object().unwrap().keys().all(|told| told.ends_with("no ALPN")));
}

#[test]
fn a_connection_that_is_opened_again_resumes_its_own_session() {
    let authority = Authority::new();
    for versions in [&[&TLS13], &[&TLS12]] {
        let identity = authority.identity(&["localhost"], |_| {});
        let act = |number, _: &str| if number % 10 == 9 { Act::AnswerAndClose(OK.to_owned()) } else { ok() };
        let server = TlsServer::with(identity, Manner::Well, versions, &["http/1.1"], act);
        let run = loadgen(&["-R100", "-c2", "-t1", "-d1s", "--ca-file", &authority.file(), &server.url()]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let reopened = run.json["reconnecting"]["reopened"].as_u64().unwrap();
        assert!(reopened >= 5, "{}", run.stderr);
        assert_eq!(
            (shook(&run, "handshake_time"), shook(&run, "resumed_handshake_time")),
            (2, reopened),
            "{}",
            run.stderr
        );
        assert!(server.resumed.load(SeqCst) >= reopened);
        assert_eq!(
            run.count("sent"),
            run.count("completed") + run.count("lost") + run.count("in_flight_at_end")
        );
    }
}

#[test]
fn https_works_with_scripts_closed_loops_alternation_parts_and_lists() {
    let authority = Authority::new();
    let start = || TlsServer::start(authority.identity(&["localhost", "127.0.0.1"], |_| {}), |_, _| ok());
    let (one, two) = (start(), start());
    let (ca, url) = (authority.file(), one.url());
    let source = "function request() return wrk.format('PUT', '/x', nil, wrk.scheme) end\n\
                  function response(status, headers, body) assert(status == 200 and body == 'ok') end";
    let (_folder, path) = script(source);
    for options in [
        &["-R100", "-s", &path, &url][..],
        &["--closed", &url],
        &["-R100", "--part", "1/2", &url],
        &["-R100", "--dispatch", "any", "--arrivals", "poisson", &url],
        &["-R100", "--alternate", &url, &format!("https://127.0.0.1:{}/", two.port), "--slice", "100ms"],
    ] {
        // Handshakes and threads of a busy machine take their time.
        let run = loadgen(&[&["-c4", "-t2", "-d1500ms", "-T", "20s", "--ca-file", &ca], options].concat());
        assert_eq!((run.code, run.count("lost")), (0, 0), "{options:?}: {}", run.stderr);
        assert!(run.count("completed") > 10, "{options:?}: {}", run.stderr);
        assert_follows_schema(&run);
    }
    assert!(two.requests.load(SeqCst) > 5);
}

#[test]
fn the_authorities_of_two_servers_in_turn_may_come_through_a_pipe() {
    let authority = Authority::new();
    let start = || TlsServer::start(authority.identity(&["localhost"], |_| {}), |_, _| ok());
    let (one, two) = (start(), start());
    let options = "-R100 -c2 -t1 -d300ms --slice 50ms --alternate";
    let command = format!(
        "{} {options} {} {} --ca-file <(cat {})",
        env!("CARGO_BIN_EXE_loadgen"),
        one.url(),
        two.url(),
        authority.file()
    );
    let output = std::process::Command::new("bash").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn large_bodies_go_through_in_both_directions() {
    let authority = Authority::new();
    let body = "x".repeat(3_000_000);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server =
        TlsServer::start(authority.identity(&["localhost"], |_| {}), move |_, _| Act::Answer(answer.clone()));
    let file = authority.path("body");
    std::fs::write(&file, &body).unwrap();
    let (body, ca) = (format!("@{file}"), authority.file());
    // One request for each connection: none can be kept waiting until the end.
    let run = loadgen(&[
        "-R10",
        "-c5",
        "-t1",
        "-d500ms",
        "-T",
        "20s",
        "--body",
        &body,
        "--ca-file",
        &ca,
        &server.url(),
    ]);
    assert_answered(&run, 5);
    assert!(run.json["bytes_read"].as_u64().unwrap() >= 3_000_000 * run.count("completed"));
}

#[test]
fn the_end_of_a_run_is_told_to_the_server() {
    let authority = Authority::new();
    let server = TlsServer::start(authority.identity(&["localhost"], |_| {}), |_, _| ok());
    let run = loadgen(&["-R50", "-c3", "-t1", "-d200ms", "--ca-file", &authority.file(), &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let end = Instant::now() + Duration::from_secs(60);
    while server.said_goodbye.load(SeqCst) < 4 && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.said_goodbye.load(SeqCst), 4, "3 connections, and the one that looked first");
}

#[test]
fn what_is_wrong_with_a_certificate_is_one_clear_line() {
    let (authority, other) = (Authority::new(), Authority::new());
    let start = |identity| TlsServer::start(identity, |_, _| ok());
    let ca = authority.file();
    let file = ["--ca-file", ca.as_str()];
    let unknown = "has an unknown issuer; --ca-file FILE names its authority, --insecure accepts any";
    for (server, options, part) in [
        (start(other.identity(&["localhost"], |_| {})), &file[..], unknown),
        (start(authority.identity(&["localhost"], |_| {})), &[], unknown),
        (
            start(self_signed(&["localhost"], |_| {})),
            &file,
            "is self-signed, and of no authority that is trusted; --ca-file FILE names that certificate, \
                --insecure accepts any",
        ),
        (start(authority.identity(&["localhost"], expired)), &file, "has expired (on 2021-01-01T00:00:00Z)"),
        (
            start(authority.identity(&["localhost"], not_valid_yet)),
            &file,
            "is not valid yet (it will be on 2100-01-01",
        ),
        (
            start(authority.identity(&["example.org"], |_| {})),
            &file,
            "is for another name (it is for example.org, not for localhost)",
        ),
        (
            start(authority.identity(&[], |_| {})),
            &file,
            "is for another name (it is for no name, not for localhost)",
        ),
    ] {
        let line = refused(&[options, &[&server.url()]].concat());
        assert!(line.starts_with("unable to connect to localhost:") && line.contains(part), "{line}");
    }
}

#[test]
fn insecure_accepts_any_certificate() {
    let authority = Authority::new();
    for identity in [
        authority.identity(&["example.org"], |_| {}),
        authority.identity(&["localhost"], expired),
        self_signed(&["localhost"], |_| {}),
    ] {
        let server = TlsServer::start(identity, |_, _| ok());
        let run = loadgen(&["-R20", "-c1", "-t1", "-d1s", "--insecure", &server.url()]);
        assert_answered(&run, 20);
    }
}

#[test]
fn a_servers_own_certificate_may_be_the_ca_file_and_is_checked_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.pem");
    let file = path.to_str().unwrap();
    for (names, change, part) in [
        (&["localhost"], (|_| {}) as fn(&mut rcgen::CertificateParams), None),
        (&["localhost"], expired, Some("has expired")),
        (&["example.org"], |_| {}, Some("is for another name")),
    ] {
        let identity = self_signed(names, change);
        std::fs::write(file, &identity.pem).unwrap();
        let server = TlsServer::start(identity, |_, _| ok());
        match part {
            None => {
                let run = loadgen(&["-R20", "-c1", "-t1", "-d200ms", "--ca-file", file, &server.url()]);
                assert_answered(&run, 4);
            }
            Some(part) => {
                let line = refused(&["--ca-file", file, &server.url()]);
                assert!(line.contains(part), "{line}");
            }
        }
    }
}

#[test]
fn servers_that_shake_no_hands_are_told_apart() {
    for (name, port, part) in [
        (
            "hangs",
            raw(|stream| drop((thread::sleep(Duration::from_secs(30)), stream))),
            "no TLS handshake within the timeout",
        ),
        (
            "speaks http",
            raw(|mut stream| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"))),
            "speaks no TLS on this port (\"HTTP/1.1 400",
        ),
        (
            "speaks something else",
            raw(|mut stream| drop(stream.write_all(&[0; 100]))),
            "speaks no TLS on this port",
        ),
        (
            "sends records of garbage",
            raw(|mut stream| drop(stream.write_all(b"\x16\x03\x03\x00\x05garba"))),
            "TLS went wrong",
        ),
        (
            "sends garbage without end",
            raw(|mut stream| while stream.write_all(&[22; 4096]).is_ok() {}),
            "TLS went wrong",
        ),
        ("closes at once", raw(drop), "closed in the middle of the TLS handshake"),
        (
            "closes in the middle",
            raw(|mut stream| drop(stream.write_all(HALF_A_RECORD))),
            "closed in the middle of the TLS handshake",
        ),
        (
            "refuses with an alert",
            raw(|mut stream| drop(stream.write_all(b"\x15\x03\x03\x00\x02\x02\x28"))),
            "TLS alert from the server: HandshakeFailure; it shares no cipher suite, has a key that is none \
                of RSA, P-256, P-384 and Ed25519, or wants",
        ),
    ] {
        let start = Instant::now();
        let line = refused(&["--insecure", &format!("https://127.0.0.1:{port}/")]);
        assert!(line.starts_with("unable to connect to 127.0.0.1:") && line.contains(part), "{name}: {line}");
        assert!(start.elapsed() < Duration::from_secs(20), "{name}");
    }
}

#[test]
fn a_server_without_http_1_1_is_told_of() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    let server = TlsServer::with(identity, Manner::Well, rustls::ALL_VERSIONS, &["h2"], |_, _| ok());
    let line = refused(&["--ca-file", &authority.file(), &server.url()]);
    assert!(line.contains("NoApplicationProtocol; it does not speak HTTP/1.1"), "{line}");
}

#[test]
fn a_handshake_that_goes_wrong_during_the_run_is_a_connect_error_by_its_reason() {
    let (count, hang) = (std::sync::atomic::AtomicU64::new(0), Duration::from_secs(30));
    let authority = Authority::new();
    let good = TlsServer::start(authority.identity(&["localhost"], |_| {}), |_, _| ok());
    let good_port = good.port;
    // Passes on the first two connections, one of which is the look before the run; and does otherwise with
    // what follows.
    for (part, seen) in [
        ("no TLS handshake within the timeout", None),
        ("closed in the middle of the TLS handshake", Some(HALF_A_RECORD)),
    ] {
        count.store(0, SeqCst);
        let port = server::passing(good_port, 2, move |mut stream| match seen {
            Some(bytes) => drop(stream.write_all(bytes)),
            None => drop((thread::sleep(hang), stream)),
        });
        let url = format!("https://localhost:{port}/");
        // The timeout is that of good handshakes too, which take long on a busy machine.
        let run = loadgen(&["-R10", "-c2", "-t1", "-d5s", "-T", "4s", "--ca-file", &authority.file(), &url]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(
            run.stderr.contains(&format!("note: connect errors: {} {part}", run.error("connect"))),
            "{}",
            run.stderr
        );
        assert!(run.error("connect") >= 2, "it is tried again: {}", run.stderr);
        assert_eq!(run.count("completed") + run.count("unsent"), 50, "{}", run.stderr);
        assert!((1..=25).contains(&run.count("completed")), "{}", run.stderr);
        assert_eq!(run.json["connections_open_at_start"], 1);
    }
}

#[test]
fn records_in_single_bytes_are_put_together() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    let server = TlsServer::with(identity, Manner::ByteByByte, rustls::ALL_VERSIONS, &[], |_, _| ok());
    let run = loadgen(&[
        "-R20",
        "-c2",
        "-t1",
        "-d500ms",
        "-T",
        "20s",
        "--ca-file",
        &authority.file(),
        &server.url(),
    ]);
    assert_what_was_sent_was_answered(&run, 10);
}

#[test]
fn a_close_without_close_notify_is_an_error_and_no_end_of_an_answer() {
    let authority = Authority::new();
    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it, or so it seems";
    for (manner, completed, why) in [
        (Manner::Well, true, ""),
        (Manner::NoCloseNotify, false, "closed in the middle of an answer, without TLS's close_notify"),
    ] {
        let identity = authority.identity(&["localhost"], |_| {});
        let act = |_, _: &str| Act::AnswerAndClose(until_close.to_owned());
        let server = TlsServer::with(identity, manner, rustls::ALL_VERSIONS, &["http/1.1"], act);
        let run = loadgen(&["-R10", "-c1", "-t1", "-d500ms", "--ca-file", &authority.file(), &server.url()]);
        if completed {
            assert_answered(&run, 5);
        } else {
            assert_eq!(
                (run.code, run.count("completed"), run.count("lost")),
                (1, 0, run.count("sent")),
                "{}",
                run.stderr
            );
            assert_eq!(run.error("read"), run.count("sent"));
            assert!(run.stderr.contains(why), "{}", run.stderr);
        }
    }
}

const CLOSES: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// One of ten requests is met by it.
fn third_closes(number: u64, _: &str) -> Act {
    if number == 2 { Act::AnswerAndClose(CLOSES.to_owned()) } else { ok() }
}

#[test]
fn an_end_that_comes_with_half_a_record_is_seen_and_the_connection_opened_again() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    let server =
        TlsServer::with(identity, Manner::HalfARecord, rustls::ALL_VERSIONS, &["http/1.1"], third_closes);
    let run = loadgen(&[
        "-R20",
        "-c1",
        "-t1",
        "-d500ms",
        "-T",
        "2s",
        "--ca-file",
        &authority.file(),
        &server.url(),
    ]);
    let counts = ["lost", "in_flight_at_end"].map(|name| run.count(name));
    assert_eq!((run.code, counts), (0, [1, 0]), "{}", run.stderr);
    assert!(run.stderr.contains("closed before an answer, without TLS's close_notify"), "{}", run.stderr);
    assert!(run.count("completed") >= 5, "the others are answered: {}", run.stderr);
}

#[test]
fn an_end_that_comes_with_tickets_is_seen_before_a_request_is_sent() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    let server = TlsServer::with(identity, Manner::TicketsAndEnd, &[&TLS13], &["http/1.1"], |_, _| ok());
    // Its first request is due 250 ms after the start.
    let run =
        loadgen(&["-R4", "-c2", "-t1", "-d1s", "-T", "2s", "--ca-file", &authority.file(), &server.url()]);
    assert_eq!((run.code, run.count("lost"), run.count("completed")), (0, 0, 4), "{}", run.stderr);
    assert!(
        run.stderr.contains("closed while nothing was asked for, without TLS's close_notify"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_answer_counts_though_a_fatal_alert_comes_with_it() {
    let authority = Authority::new();
    let identity = authority.identity(&["localhost"], |_| {});
    let server =
        TlsServer::with(identity, Manner::AlertBehind, rustls::ALL_VERSIONS, &["http/1.1"], |number, _| {
            // It does not say that it closes in its head.
            if number == 2 { Act::Answer(OK_THEN_ALERT.to_owned()) } else { ok() }
        });
    // The next request is due 250 ms later: the alert is read first, even where the machine stands still.
    let run =
        loadgen(&["-R4", "-c1", "-t1", "-d2s", "-T", "2s", "--ca-file", &authority.file(), &server.url()]);
    assert_eq!((run.code, run.error("read"), run.error("write")), (0, 1, 0), "{}", run.stderr);
    assert_eq!((run.count("lost"), run.count("completed"), run.count("sent")), (0, 8, 8), "{}", run.stderr);
}

/// Looks to the client like any answer.
const OK_THEN_ALERT: &str = "HTTP/1.1 200 OK\r\nX-Then: Connection: close\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn http_spoken_to_a_tls_port_is_told_of() {
    let authority = Authority::new();
    let server = TlsServer::start(authority.identity(&["localhost"], |_| {}), |_, _| ok());
    let run = loadgen(&["-R20", "-c1", "-t1", "-d200ms", &server.url().replace("https", "http")]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("the server speaks TLS on this port: use https://"), "{}", run.stderr);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let authority = Authority::new();
    let (ca, empty, key) = (authority.file(), authority.path("empty.pem"), authority.path("key.pem"));
    std::fs::write(&empty, "nothing").unwrap();
    std::fs::write(&key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    for (args, part) in [
        (
            &["--insecure", "http://127.0.0.1:1/"][..],
            "--insecure is for https: http://127.0.0.1:1/ has no certificate to check",
        ),
        (&["--ca-file", &ca, "http://127.0.0.1:1/"], "--ca-file is for https"),
        (
            &["--ca-file", &ca, "--insecure", "https://127.0.0.1:1/"],
            "--insecure accepts any certificate: it excludes --ca-file",
        ),
        (
            &["--ca-file", "/nowhere/ca.pem", "https://127.0.0.1:1/"],
            "/nowhere/ca.pem: --ca-file: cannot read: No such file",
        ),
        (&["--ca-file", "/", "https://127.0.0.1:1/"], "/: --ca-file: cannot read: Is a directory"),
        (&["--ca-file", &empty, "https://127.0.0.1:1/"], "--ca-file: no certificate in it"),
        (&["--ca-file", &key, "https://127.0.0.1:1/"], "--ca-file: no certificate in it"),
        (&["--insecure", "https://127.0.0.1:1/"], "unable to connect to 127.0.0.1:1 Connection refused"),
    ] {
        let line = refused(args);
        assert!(line.contains(part), "{line}");
    }
}
