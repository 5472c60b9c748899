//! Several generators that make one load together.

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use common::{Act, OK, Run, Server, assert_follows_schema, loadgen};

/// A server that notes the target of each request.
fn noting_server() -> (Server, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let server = Server::start(move |_, head| {
        noted.lock().unwrap().push(head.split(' ').nth(1).unwrap().to_owned());
        Act::Answer(OK.to_owned())
    });
    (server, seen)
}

/// Due times of the answered requests in microseconds, with the connections that had them. The last 400 ms
/// are left out: a busy machine may leave some of these unsent.
fn due(args: &[&str], parts: usize) -> (Vec<Run>, BTreeSet<(String, String)>) {
    let (server, _) = noting_server();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("slowest.csv");
    let mut due = BTreeSet::new();
    let mut part = |number: usize| {
        let part = format!("{number}/{parts}");
        let url = server.url();
        let own = ["--part", &part, "--warmup", "0s", "--slowest", csv.to_str().unwrap(), &url];
        let run = loadgen(&[args, &own].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        for line in std::fs::read_to_string(&csv).unwrap().lines().skip(1) {
            let columns: Vec<&str> = line.split(',').collect();
            if columns[0].parse::<u64>().unwrap() >= 400_000 {
                continue;
            }
            assert!(due.insert((columns[0].to_owned(), columns[3].to_owned())), "twice: {line}");
        }
        run
    };
    let runs = (1..=parts).map(&mut part).collect();
    (runs, due)
}

#[test]
fn parts_together_have_the_schedule_and_the_connections_of_one_generator_alone() {
    for more in [&["--arrivals", "uniform"][..], &["--arrivals", "poisson", "--seed", "7"]] {
        let args = [&["-R400", "-c10", "-t2", "-d800ms"], more].concat();
        let ((_, whole), (runs, parts)) = (due(&args, 1), due(&args, 3));
        assert!(whole.len() > 100);
        assert_eq!(whole, parts, "{more:?}");
        let opened: Vec<u64> =
            runs.iter().map(|run| run.json["connections_open_at_start"].as_u64().unwrap()).collect();
        assert_eq!(opened, [4, 3, 3]);
        let offered: f64 = runs.iter().map(|run| run.json["offered_rate_rps"].as_f64().unwrap()).sum();
        assert!((offered - 400.0).abs() < 1e-9, "{offered}");
        assert_eq!(
            runs[2].json["part"],
            serde_json::json!({"number": 3, "of": 3, "whole_rate_rps": 400.0, "whole_connections": 10})
        );
        runs.iter().for_each(assert_follows_schema);
    }
}

#[test]
fn whichever_connection_sends_parts_together_have_the_due_times_of_as_many_threads() {
    let times =
        |args: &[&str], parts| due(args, parts).1.into_iter().map(|(time, _)| time).collect::<BTreeSet<_>>();
    let (common, alone) = (["-R300", "-c8", "-d800ms", "--dispatch", "any"], ["-t4"]);
    let whole = times(&[&common[..], &alone].concat(), 1);
    assert!(whole.len() > 100);
    assert_eq!(whole, times(&[&common[..], &["-t2"]].concat(), 2));
}

#[test]
fn keys_that_are_written_once_are_written_once_by_all_parts_together() {
    let (server, seen) = noting_server();
    let script = format!("{}/../experiments/workloads/unique_put.lua", env!("CARGO_MANIFEST_DIR"));
    for part in ["1/2", "2/2"] {
        let url = server.url();
        let args = [
            "-R1k",
            "-c4",
            "-t2",
            "-d500ms",
            "--part",
            part,
            "-s",
            &script,
            &url,
            "--",
            "threads=2",
            "key_count=500",
        ];
        let run = loadgen(&args);
        assert_eq!((run.code, run.count("sent") + run.count("unsent")), (0, 250), "{}", run.stderr);
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 250, "{}", seen.len());
    assert_eq!(seen.len(), seen.iter().collect::<BTreeSet<_>>().len());
}

#[test]
fn lines_of_a_list_are_shared_out_over_all_parts() {
    let (server, seen) = noting_server();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("targets.txt");
    std::fs::write(&list, (0..60).map(|line| format!("GET /{line}\n")).collect::<String>()).unwrap();
    for part in ["1/3", "2/3", "3/3"] {
        let args = [
            "-R120",
            "-c3",
            "-t1",
            "-d500ms",
            "--part",
            part,
            "--targets",
            list.to_str().unwrap(),
            &server.url(),
        ];
        assert_eq!(loadgen(&args).code, 0);
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 30, "{}", seen.len());
    assert_eq!(seen.len(), seen.iter().collect::<BTreeSet<_>>().len());
}

#[test]
fn random_numbers_differ_between_parts_and_a_script_knows_its_own() {
    let (server, seen) = noting_server();
    let (_folder, script) = common::script(
        "function request() return wrk.format('GET', '/' .. wrk.part .. '/' .. wrk.parts .. '/' .. \
            math.random(2^40)) end",
    );
    for part in ["1/2", "2/2"] {
        assert_eq!(
            loadgen(&["-R100", "-c2", "-t1", "-d200ms", "--part", part, "-s", &script, &server.url()]).code,
            0
        );
    }
    let seen = seen.lock().unwrap();
    let numbers =
        |prefix: &str| seen.iter().filter_map(|target| target.strip_prefix(prefix)).collect::<BTreeSet<_>>();
    let (first, second) = (numbers("/1/2/"), numbers("/2/2/"));
    assert!(!first.is_empty() && first.len() + second.len() == seen.len(), "{seen:?}");
    assert!(first.is_disjoint(&second), "{seen:?}");
}

#[test]
fn a_number_of_requests_whose_end_no_part_can_know_is_refused() {
    let load = ["-R200", "-c4", "-t1", "--requests", "60", "--dispatch", "any", "--arrivals", "poisson"];
    let run = loadgen(&[&load[..], &["--part", "1/2", "http://127.0.0.1:1/"]].concat());
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("--requests with --part, --dispatch any and --arrivals poisson: "),
        "{}",
        run.stderr
    );
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}
