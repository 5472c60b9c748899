//! Where servers are reached: Unix sockets, and the addresses of a host.

mod common;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::{Act, OK, assert_follows_schema, loadgen, script, serve};

/// A server on a Unix socket that takes its time before each accept, and the heads that it was sent.
fn unix_server(path: &Path, queue: i32, accept_every: Duration) -> Arc<AtomicU64> {
    let listener = UnixListener::bind(path).unwrap();
    rustix::net::listen(&listener, queue).unwrap();
    let requests = Arc::new(AtomicU64::new(0));
    let counter = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counter = counter.clone();
            thread::spawn(move || {
                let act = |_, head: &str| {
                    let status =
                        if head.contains("\r\nHost: api.example\r\n") { "200 OK" } else { "400 Bad Request" };
                    Act::Answer(OK.replace("200 OK", status))
                };
                serve(stream, &act, &counter);
            });
            thread::sleep(accept_every);
        }
    });
    requests
}

#[test]
fn a_unix_socket_is_loaded_and_the_url_says_host_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let requests = unix_server(&path, 128, Duration::ZERO);
    let socket = path.to_str().unwrap();
    for options in [
        &["-R200"][..],
        &["--closed"],
        &["-R200", "-s", &script_file(&folder, "function request() return wrk.format('PUT') end")],
    ] {
        let run = loadgen(
            &[
                options,
                &[
                    "-c4",
                    "-t2",
                    "-d300ms",
                    "--expect",
                    "200",
                    "--unix-socket",
                    socket,
                    "http://api.example/x",
                ],
            ]
            .concat(),
        );
        assert_eq!((run.code, run.count("completed")), (0, run.count("sent")), "{}", run.stderr);
        assert_eq!(run.json["addresses"], serde_json::json!({ format!("unix:{socket}"): 4 }));
        assert_follows_schema(&run);
    }
    assert!(requests.load(SeqCst) > 60);
}

fn script_file(folder: &tempfile::TempDir, source: &str) -> String {
    let path = folder.path().join("script.lua");
    std::fs::write(&path, source).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_unix_socket_whose_queue_is_short_is_opened_as_fast_as_it_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    unix_server(&path, 1, Duration::from_millis(1));
    let run = loadgen(&[
        "-R100",
        "-c50",
        "-t1",
        "-d300ms",
        "-T10s",
        "--unix-socket",
        path.to_str().unwrap(),
        "http://api.example/",
    ]);
    assert_eq!((run.code, run.error("connect")), (0, 0), "{}", run.stderr);
    assert_eq!(run.json["connections_open_at_start"], 50);
}

#[test]
fn what_is_wrong_with_a_unix_socket_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let long = format!("/tmp/{}", "x".repeat(200));
    for (path, part) in [
        ("/nowhere/s", "unable to connect to /nowhere/s: No such file or directory"),
        (file.to_str().unwrap(), "Connection refused"),
        (long.as_str(), "File name too long"),
    ] {
        let run = loadgen(&["-R10", "--unix-socket", path, "http://h/"]);
        assert_eq!((run.code, run.stderr.lines().count()), (1, 1), "{}", run.stderr);
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
}

#[test]
fn a_unix_socket_where_nobody_accepts_ends_within_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let start = Instant::now();
    let run = loadgen(&[
        "-R20",
        "-c4",
        "-t1",
        "-d500ms",
        "-T500ms",
        "--unix-socket",
        path.to_str().unwrap(),
        "http://h/",
    ]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(run.stderr.contains("the listen queue is full"), "{}", run.stderr);
}

/// Two servers with the same port at two addresses.
fn two_addresses() -> (u16, [common::Server; 2]) {
    let one = common::Server::start(|_, _| Act::Answer(OK.to_owned()));
    let two = common::Server::start_at(&format!("127.0.0.2:{}", one.port), |_, _| Act::Answer(OK.to_owned()));
    (one.port, [one, two])
}

fn resolve(addresses: &[&str], port: u16) -> String {
    let found: Vec<String> =
        addresses.iter().map(|address| format!("wrk.lookup('{address}', '{port}')[1]")).collect();
    format!("function wrk.resolve() wrk.addrs = {{ {} }} end", found.join(", "))
}

#[test]
fn all_addresses_of_a_host_have_as_many_connections_and_the_first_alone_has_them_by_default() {
    let (port, servers) = two_addresses();
    let (_folder, path) = script(&resolve(&["127.0.0.1", "127.0.0.2"], port));
    let options = ["-R100", "-c6", "-t2", "-d300ms", "-s", &path, "http://h/"];
    let run = loadgen(&options);
    assert_eq!((run.code, servers[1].requests()), (0, 0), "{}", run.stderr);
    assert_eq!(run.json["addresses"], serde_json::json!({ format!("127.0.0.1:{port}"): 6 }));
    let before = servers[0].requests();
    let run = loadgen(&[&["--addresses", "all"], &options[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.json["addresses"],
        serde_json::json!({ format!("127.0.0.1:{port}"): 3, format!("127.0.0.2:{port}"): 3 })
    );
    let (one, two) = (servers[0].requests() - before, servers[1].requests());
    assert!(one.abs_diff(two) <= 2 && one + two == run.count("sent"), "{one} {two}");
}

/// Two parts whose hosts have the addresses in another order.
#[test]
fn each_part_of_a_load_reaches_all_addresses_in_whatever_order_it_has_them() {
    let (port, _servers) = two_addresses();
    for (part, order) in [("1/2", ["127.0.0.1", "127.0.0.2"]), ("2/2", ["127.0.0.2", "127.0.0.1"])] {
        let (_folder, path) = script(&resolve(&order, port));
        let load = ["-R80", "-c8", "-t1", "-d300ms", "--addresses", "all", "--part", part];
        let run = loadgen(&[&load[..], &["-s", &path, "http://h/"]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(
            run.json["addresses"],
            serde_json::json!({ format!("127.0.0.1:{port}"): 2, format!("127.0.0.2:{port}"): 2 }),
            "part {part}"
        );
    }
}

#[test]
fn a_connection_that_an_address_refuses_tries_the_next() {
    let server = common::Server::start(|_, _| Act::Answer(OK.to_owned()));
    let (_folder, path) = script(&resolve(&["127.0.0.1", "127.0.0.3"], server.port));
    let run = loadgen(&["-R100", "-c2", "-t1", "-d500ms", "--addresses", "all", "-s", &path, "http://h/"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json["errors"]["connect"], 1, "{}", run.stderr);
    assert!(run.count("completed") >= 25 && run.count("lost") == 0, "{}", run.stderr);
    let loaded = serde_json::json!({ format!("127.0.0.1:{}", server.port): 2 });
    assert_eq!(run.json["addresses"], loaded, "what was loaded, not what was to be");
}

#[test]
fn an_address_that_a_script_leaves_out_because_it_does_not_answer_is_named_where_all_are_to_be_loaded() {
    let (port, _servers) = two_addresses();
    let looked_up = ["127.0.0.1", "127.0.0.3", "127.0.0.2"]
        .map(|address| format!("lookup('{address}', '{port}')[1]"))
        .join(", ");
    let source = format!("local lookup = wrk.lookup; function wrk.lookup() return {{ {looked_up} }} end");
    let (_folder, path) = script(&source);
    let options = ["-R100", "-c4", "-t1", "-d200ms", "-s", &path, "http://h/"];
    let run = loadgen(&[&["--addresses", "all"], &options[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let note = format!("note: 127.0.0.3:{port}, one of 3 addresses of h, is left out: Connection refused");
    assert_eq!(run.stderr.lines().filter(|line| line.starts_with(&note)).count(), 1, "{}", run.stderr);
    let both = serde_json::json!({ format!("127.0.0.1:{port}"): 2, format!("127.0.0.2:{port}"): 2 });
    assert_eq!(run.json["addresses"], both);
    assert!(!loadgen(&options).stderr.contains("left out"), "the first alone is loaded: that is no news");
}

#[test]
fn more_addresses_than_connections_are_refused_where_all_are_to_be_loaded() {
    let (port, servers) = two_addresses();
    let (_folder, path) = script(&resolve(&["127.0.0.1", "127.0.0.2"], port));
    let run = loadgen(&["-R100", "-c1", "-t1", "-d200ms", "--addresses", "all", "-s", &path, "http://h/"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (1, "--addresses all needs a connection for each of them: addresses=2, connections=1\n")
    );
    assert_eq!(servers[0].requests() + servers[1].requests(), 0);
}

#[test]
fn an_address_that_does_not_answer_is_left_out_and_named() {
    // What "localhost" is differs from machine to machine; it has at least one address that answers.
    let server = common::Server::start(|_, _| Act::Answer(OK.to_owned()));
    let url = format!("http://localhost:{}/", server.port);
    let run = loadgen(&["-R100", "-c2", "-t1", "-d200ms", "--addresses", "all", &url]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.json["addresses"][format!("127.0.0.1:{}", server.port)], 2, "{}", run.json["addresses"]);
    let others = run
        .stderr
        .lines()
        .filter(|line| line.contains("addresses of localhost, is left out: Connection refused"))
        .count();
    assert_eq!(
        run.stderr.lines().filter(|line| line.contains("localhost")).count(),
        others,
        "{}",
        run.stderr
    );
}
