//! `--slowest`: the slowest answers one by one.

mod common;

use std::time::Duration;

use common::{Act, OK, Run, Server, loadgen};

/// due, response, service (us), connection
fn slowest(args: &[&str]) -> (Run, Vec<[i64; 4]>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slowest.csv");
    let run = loadgen(&[&["--slowest", path.to_str().unwrap()], args].concat());
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("due_us,response_us,service_us,connection"));
    let numbers = |line: &str| -> Vec<i64> { line.split(',').map(|cell| cell.parse().unwrap()).collect() };
    let rows = lines.map(|line| numbers(line).try_into().unwrap()).collect();
    (run, rows)
}

#[test]
fn a_held_answer_and_those_that_queued_behind_it_are_told_one_by_one() {
    let server = Server::start(|number, _| match number {
        60 => Act::After(Duration::from_millis(300), OK.to_owned()),
        _ => Act::Answer(OK.to_owned()),
    });
    let (run, rows) =
        slowest(&["--slowest-count", "3", "-R50", "-c1", "-t1", "-d2s", "--warmup", "500ms", &server.url()]);
    let due: Vec<i64> = rows.iter().map(|row| row[0]).collect();
    // Number 60 was due 1.2 s after the start, 0.7 s after measuring began, and one every 20 ms after it.
    assert_eq!(due, [700_000, 720_000, 740_000], "{rows:?}");
    assert!(rows[0][2] >= 300_000, "held by the server: {rows:?}");
    assert!(
        rows[1..].iter().all(|row| row[2] < row[1] && row[1] > 200_000),
        "waited for the connection: {rows:?}"
    );
    let max = run.json["response_time"]["max_us"].as_f64().unwrap();
    assert!((rows[0][1] as f64 / max - 1.0).abs() < 0.001, "{max} {rows:?}");
}

#[test]
fn all_answers_are_told_when_there_are_fewer_than_asked_for() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let (run, rows) = slowest(&["-R100", "-c4", "-t2", "-d1s", &server.url()]);
    assert_eq!(rows.len() as u64, run.count("measured"));
    assert!(rows.is_sorted_by_key(|row| row[0]));
    for connection in 0..4 {
        let count = rows.iter().filter(|row| row[3] == connection).count();
        assert!((20..=25).contains(&count), "25 are due, of which the last may be left at the end: {count}");
    }
}

#[test]
fn in_a_closed_loop_each_is_due_when_it_is_sent() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(1), OK.to_owned()));
    let (_, rows) = slowest(&["--closed", "-c2", "-t1", "-d300ms", "--slowest-count", "10", &server.url()]);
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row[1] == row[2]), "{rows:?}");
}
