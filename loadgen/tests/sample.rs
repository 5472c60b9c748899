//! `--sample`: answered requests one by one, with the digest of what they sent.

mod common;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Act, OK, Run, Server, assert_follows_schema, loadgen, script};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Puts a body made from the path on every path but those that end in 3, which are read.
const PUTS: &str = "local n = 0\n\
    function setup(thread) id = (id or 0) + 1; thread:set('id', id) end\n\
    function request() n = n + 1\n\
    local path = '/v?id=' .. id .. '-' .. n\n\
    if n % 10 == 3 then return wrk.format('GET', path) end\n\
    return wrk.format('PUT', path, nil, string.rep(path, n % 5 + 1)) end";

/// Runs the script and returns the run, its sample, and status by target as the server sent it.
fn run(source: &str, more: &[&str]) -> (Run, Vec<Value>, HashMap<String, u64>) {
    let (_folder, path) = script(source);
    let sent = Arc::new(Mutex::new(HashMap::new()));
    let seen = sent.clone();
    let server = Server::start(move |number, head| {
        let status = 200 + number % 3;
        seen.lock().unwrap().insert(head.split(' ').nth(1).unwrap().to_owned(), status);
        Act::Answer(format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nok"))
    });
    let url = server.url();
    let args = [&["-R400", "-c5", "-t2", "-d500ms", "-s", path.as_str()], more, &[url.as_str()]].concat();
    let run = loadgen(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_follows_schema(&run);
    let sample = run.json["sample"].as_array().cloned().unwrap_or_default();
    let sent = sent.lock().unwrap().clone();
    (run, sample, sent)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_sample_holds_what_was_sent_and_how_it_was_answered() {
    let (run, sample, statuses) = run(PUTS, &["--sample", "60"]);
    assert_eq!(sample.len(), 60);
    for one in &sample {
        let target = one["target"].as_str().unwrap();
        assert_eq!(one["status"].as_u64(), statuses.get(target).copied(), "{one}");
        let n: usize = target.split('-').nth(1).unwrap().parse().unwrap();
        let (method, body) =
            if n % 10 == 3 { ("GET", String::new()) } else { ("PUT", target.repeat(n % 5 + 1)) };
        assert_eq!(
            (one["method"].as_str(), one["body_bytes"].as_u64()),
            (Some(method), Some(body.len() as u64)),
            "{one}"
        );
        let digest = if body.is_empty() { Value::Null } else { hex(body.as_bytes()).into() };
        assert_eq!(one["body_sha256"], digest, "{one}");
        let (thread, connection) = (one["thread"].as_u64().unwrap(), one["connection"].as_u64().unwrap());
        assert_eq!(
            (connection % 2, format!("/v?id={}", thread + 1)),
            (thread, target.split('-').next().unwrap().to_owned())
        );
    }
    let mut targets: Vec<&str> = sample.iter().map(|one| one["target"].as_str().unwrap()).collect();
    targets.sort_unstable();
    targets.dedup();
    assert_eq!(targets.len(), 60, "a request was drawn twice");
    assert!(run.count("completed") > 60);
}

#[test]
fn all_are_there_if_fewer_were_answered_and_those_of_a_warm_up_and_of_batches_too() {
    let batches = "local n = 0\n\
        function request() n = n + 1; return wrk.format('PUT', '/a' .. n, nil, 'x') .. wrk.format('DELETE', \
        '/b' .. n) end";
    let (run, sample, _) = run(batches, &["--sample", "1k", "--warmup", "300ms"]);
    assert_eq!(sample.len() as u64, run.count("completed"));
    assert!(run.count("completed") > run.count("measured"));
    let of = |method: &str| sample.iter().filter(|one| one["method"] == method).count();
    assert_eq!(of("PUT"), of("DELETE"));
    assert!(sample.iter().filter(|one| one["method"] == "PUT").all(|one| one["body_sha256"] == hex(b"x")));
}

#[test]
fn requests_that_are_not_answered_are_not_in_it_and_without_the_option_there_is_none() {
    let server = Server::start(
        |number, _| if number % 2 == 1 { Act::Close } else { Act::Answer(common::OK.to_owned()) },
    );
    let run = loadgen(&["-R100", "-c2", "-t1", "-d300ms", "--sample", "100", &server.url()]);
    assert_eq!(run.json["sample"].as_array().unwrap().len() as u64, run.count("completed"));
    assert!(run.count("lost") > 0);
    let run = loadgen(&["-R100", "-c2", "-t1", "-d300ms", &server.url()]);
    assert!(run.json.get("sample").is_none());
}

/// Two connections, of which each is asked before it is free again half of the time, and looked at late.
#[test]
fn with_dispatch_any_the_connection_that_has_been_free_for_longest_is_asked_first() {
    for slack in ["0s", "40ms"] {
        let server = Server::start(|_, _| Act::After(Duration::from_millis(149), OK.to_owned()));
        let run = loadgen(&[
            "-R7",
            "-c2",
            "-t1",
            "-d1500ms",
            "--dispatch",
            "any",
            "--slack",
            slack,
            "--sample",
            "20",
            &server.url(),
        ]);
        let sample = run.json["sample"].as_array().unwrap();
        let asked: Vec<u64> = sample.iter().map(|one| one["connection"].as_u64().unwrap()).collect();
        assert!(asked.len() >= 9, "{asked:?}");
        assert!(asked.windows(3).all(|of_three| of_three != [of_three[0]; 3]), "{slack}: {asked:?}");
    }
}
