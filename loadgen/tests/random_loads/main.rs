//! Random loads on servers that count for themselves: both counted the same, over TCP, TLS 1.2, TLS 1.3 and a
//! Unix socket.

#[path = "../common/mod.rs"]
mod common;
#[path = "../https/server.rs"]
#[allow(dead_code, reason = "most of it is for https alone")]
mod server;

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Act, Run, Server, assert_follows_schema, counts_of, loadgen, serve};
use fastrand::Rng;
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};
use server::{Authority, Manner, TlsServer};

const LOADS: u64 = 6;

/// What a server has done.
#[derive(Debug, Default, PartialEq)]
struct Record {
    answers: BTreeMap<String, u64>,
    bytes: u64,
    lost: u64,
}

/// One of the forms that an answer may have, or none; what it does stands in the record.
fn answer(rng: &mut Rng, head: &str, record: &mut Record) -> Act {
    let body = "x".repeat(rng.usize(..3000));
    let length = body.len();
    let chunk = if length == 0 { String::new() } else { format!("{length:x}\r\n{body}\r\n") };
    let (status, text, closes) = match rng.u8(..10) {
        0 => {
            record.lost += 1;
            return Act::Close;
        }
        1 => ("204", "HTTP/1.1 204 No Content\r\n\r\n".to_owned(), false),
        2 => ("304", format!("HTTP/1.1 304 Not Modified\r\nContent-Length: {length}\r\n\r\n"), false),
        3 => ("200", format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"), true),
        4 => ("503", "HTTP/1.0 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned(), true),
        5 => (
            "200",
            format!(
                "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
                \r\n{chunk}0\r\nTrailer: t\r\n\r\n"
            ),
            false,
        ),
        6 => ("404", format!("HTTP/1.1 404 No\r\nContent-Length: {length}\r\n\r\n{body}"), false),
        _ => ("200", format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"), false),
    };
    let text = match head.starts_with("HEAD") {
        // No body, whatever its head says of it.
        true => text[..head_bytes(&text)].to_owned(),
        false => text,
    };
    *record.answers.entry(status.to_owned()).or_default() += 1;
    record.bytes += text.len() as u64;
    if closes { Act::AnswerAndClose(text) } else { Act::Answer(text) }
}

/// With the interim head before it.
fn head_bytes(text: &str) -> usize {
    let end = |from: usize| from + text[from..].find("\r\n\r\n").unwrap() + 4;
    if text.starts_with("HTTP/1.1 103") { end(end(0)) } else { end(0) }
}

/// Options but for where the server is, and how many requests are due where that is known.
fn options(rng: &mut Rng) -> (Vec<String>, Option<u64>) {
    let (threads, rate, ms) = (rng.usize(1..4), rng.u64(20..400), rng.u64(200..900));
    let connections = threads + rng.usize(..10);
    let mut options = vec![format!("-t{threads}"), format!("-c{connections}"), "-T20s".to_owned()];
    let mut typed = |words: &[&str]| options.extend(words.iter().map(|word| (*word).to_owned()));
    let due = match rng.u8(..4) {
        0 => {
            let requests = rng.u64(1..200);
            typed(&["--closed", "--requests", &requests.to_string()]);
            None
        }
        1 => {
            typed(&["--arrivals", "poisson", &format!("-R{rate}"), &format!("-d{ms}ms")]);
            None
        }
        _ => {
            typed(&[&format!("-R{rate}"), &format!("-d{ms}ms")]);
            Some((rate * ms).div_ceil(1000))
        }
    };
    if rng.bool() && !options.iter().any(|word| word == "--closed") {
        options.extend(["--dispatch", "any"].map(str::to_owned));
    }
    match rng.u8(..4) {
        0 => options.push("-mHEAD".to_owned()),
        1 => options.extend(["--body".to_owned(), "b".repeat(rng.usize(1..100_000))]),
        _ => {}
    }
    (options, due)
}

fn check(run: &Run, record: &Record, due: Option<u64>, told: &str) {
    let told = format!("{told}: {record:?}\n{}", run.stderr);
    let answers: u64 = record.answers.values().sum();
    assert_eq!(run.json["answers"], json!(record.answers), "{told}");
    assert_eq!([run.count("completed"), run.count("lost")], [answers, record.lost], "{told}");
    assert_eq!([run.count("sent"), run.count("in_flight_at_end")], [answers + record.lost, 0], "{told}");
    assert_eq!([run.error("read"), run.error("connect"), run.error("write")], [record.lost, 0, 0], "{told}");
    assert_eq!(run.json["bytes_read"], record.bytes, "{told}");
    assert_eq!(run.json["response_time"]["count"], answers, "{told}");
    assert_eq!(counts_of(&run.hlog, "response").iter().sum::<u64>(), answers, "{told}");
    assert!(due.is_none_or(|due| run.count("sent") + run.count("unsent") == due), "due {due:?} {told}");
    assert_follows_schema(run);
}

/// What a server does, and where that is counted.
fn counting(seed: u64) -> (Arc<Mutex<Record>>, impl Fn(u64, &str) -> Act + Send + Sync + 'static) {
    let record = Arc::new(Mutex::new(Record::default()));
    let (counted, rng) = (record.clone(), Mutex::new(Rng::with_seed(seed)));
    let act = move |_, head: &str| answer(&mut rng.lock().unwrap(), head, &mut counted.lock().unwrap());
    (record, act)
}

fn over_unix(path: &Path, act: impl Fn(u64, &str) -> Act + Send + Sync + 'static) {
    let (listener, act) = (UnixListener::bind(path).unwrap(), Arc::new(act));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let act = act.clone();
            thread::spawn(move || serve(stream, &*act, &AtomicU64::new(0)));
        }
    });
}

/// Where loadgen finds the server: options, and a folder that lasts as long as it.
fn start(
    transport: &str,
    act: impl Fn(u64, &str) -> Act + Send + Sync + 'static,
) -> (Vec<String>, Box<dyn std::any::Any>) {
    let tls = |version: &'static SupportedProtocolVersion, act| {
        let authority = Authority::new();
        let identity = authority.identity(&["localhost"], |_| {});
        let server = TlsServer::with(identity, Manner::Well, &[version], &["http/1.1"], act);
        (vec!["--ca-file".to_owned(), authority.file(), server.url()], Box::new(authority) as Box<_>)
    };
    match transport {
        "TLS 1.2" => tls(&TLS12, act),
        "TLS 1.3" => tls(&TLS13, act),
        "Unix" => {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("s");
            over_unix(&path, act);
            let found = ["--unix-socket", path.to_str().unwrap(), "http://localhost/"].map(str::to_owned);
            (found.into(), Box::new(folder))
        }
        _ => (vec![Server::start(act).url()], Box::new(())),
    }
}

#[test]
fn what_was_sent_answered_lost_and_read_is_what_the_server_counted() {
    thread::scope(|scope| {
        for transport in ["TCP", "TLS 1.2", "TLS 1.3", "Unix"] {
            scope.spawn(move || {
                for seed in 0..LOADS {
                    let (options, due) = options(&mut Rng::with_seed(seed));
                    let (record, act) = counting(seed);
                    let (found, _lasts) = start(transport, act);
                    let typed: Vec<&str> = options.iter().chain(&found).map(String::as_str).collect();
                    let run = loadgen(&typed);
                    let shown = options.iter().filter(|word| word.len() < 20).cloned().collect::<Vec<_>>();
                    let told = format!("{transport}, seed {seed}: {}", shown.join(" "));
                    assert_ne!(run.json, Value::Null, "{told}: {}", run.stderr);
                    check(&run, &record.lock().unwrap(), due, &told);
                }
            });
        }
    });
}
