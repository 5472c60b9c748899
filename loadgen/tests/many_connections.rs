//! As many connections as the machine has files for, and what is said when there are too few.

mod common;

use std::process::Command;

use common::{NullServer, loadgen};

#[test]
fn ten_thousand_connections_are_opened_used_and_counted() {
    let server = NullServer::start();
    let run = loadgen(&["-R10k", "-c10000", "-t2", "-d1s", "-T", "10s", &server.url]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let connections: Vec<u64> = run.json["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["connections"].as_u64().unwrap())
        .collect();
    assert_eq!(connections, [5000, 5000]);
    // Each connection has exactly one request in this second.
    assert_eq!(
        (run.count("sent"), run.count("unsent"), run.count("completed")),
        (10_000, 0, 10_000),
        "{}",
        run.stderr
    );
    assert_eq!((run.error("connect"), run.error("read"), run.count("lost")), (0, 0, 0));
}

#[test]
fn too_few_files_allowed_is_one_clear_line_before_anything_is_opened() {
    // Each thread needs four of its own.
    for (connections, threads, needed) in [(1000, 2, 1072), (100, 50, 364)] {
        let limited = format!(
            "ulimit -n 200; exec {} -R10 -c{connections} -t{threads} -d1s http://127.0.0.1:1/",
            env!("CARGO_BIN_EXE_loadgen")
        );
        let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        let few = format!("connections={connections}, threads={threads}, limit=200");
        let told = format!("too few open files allowed: {few}; raise it with ulimit -n {needed}\n");
        assert_eq!(error, told);
    }
}

#[test]
fn a_soft_limit_below_what_is_needed_is_raised() {
    let server = NullServer::start();
    for asked in ["-R100 -c300 -t2", "--closed --requests 5 -c150 -t150"] {
        let limited =
            format!("ulimit -Sn 200; exec {} {asked} -d1s {}", env!("CARGO_BIN_EXE_loadgen"), server.url);
        let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.contains("Too many open files")), (Some(0), false), "{said}");
    }
}
