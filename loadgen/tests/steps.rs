//! A rate that changes in steps, over real sockets.

mod common;

use std::time::Duration;

use common::{Act, NullServer, OK, Run, Server, assert_follows_schema, counts_of, loadgen};
use serde_json::Value;

fn steps(run: &Run) -> &Vec<Value> {
    run.json["steps"].as_array().unwrap_or_else(|| panic!("no steps: {}", run.stderr))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Requests due in a step that were sent or got no answer, those sent and unanswered once.
fn due(step: &Value) -> u64 {
    number(&step["response_time_at_least"]["count"])
}

#[test]
fn each_step_has_the_requests_of_its_rate_and_together_they_are_the_run() {
    let server = NullServer::start();
    for arrivals in ["uniform", "poisson"] {
        let options = [
            "-R",
            "200:500ms,1k:300ms,50:400ms",
            "--warmup",
            "300ms",
            "-c4",
            "-t2",
            "-L",
            "--arrivals",
            arrivals,
        ];
        let run = loadgen(&[&options[..], &[&server.url]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_follows_schema(&run);
        let borders: Vec<(f64, f64)> = steps(&run)
            .iter()
            .map(|step| (step["start_s"].as_f64().unwrap(), step["end_s"].as_f64().unwrap()))
            .collect();
        assert_eq!(borders, [(0.3, 0.8), (0.8, 1.1), (1.1, 1.5)]);
        if arrivals == "uniform" {
            assert_eq!(steps(&run).iter().map(due).collect::<Vec<_>>(), [100, 300, 20]);
            assert_eq!(run.count("sent") + run.count("unsent"), 60 + 420);
        }
        assert_eq!(run.json["duration_s"], 1.5);
        let offered = run.json["offered_rate_rps"].as_f64().unwrap();
        assert!((offered - 420.0 / 1.2).abs() < 1e-6, "{offered}");
        let completed: u64 = steps(&run).iter().map(|step| number(&step["completed"])).sum();
        assert_eq!(completed, run.count("measured"));
        let start = number(&steps(&run)[0]["from_unix_ns"]);
        assert_eq!(number(&steps(&run)[2]["until_unix_ns"]) - start, 1_200_000_000);
        for (line, rate) in
            ["step 1: 200/s for 0.5s: ", "step 2: 1000/s for 0.3s: ", "step 3: 50/s for 0.4s: "]
                .iter()
                .zip(0..)
        {
            assert!(run.stderr.lines().any(|told| told.starts_with(line)), "{rate}: {}", run.stderr);
        }
        assert!(
            run.stdout.starts_with("Running 2s test @ ") || run.stdout.starts_with("Running 1s test @ "),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn an_answer_that_comes_in_the_next_step_belongs_to_the_one_it_was_due_in_and_so_does_the_verdict() {
    // The first fifty requests take 20 ms each over one connection, at 100/s: a backlog that the second step
    // has to work off.
    let server = Server::start(|number, _| match number {
        0..50 => Act::After(Duration::from_millis(20), OK.to_owned()),
        _ => Act::Answer(OK.to_owned()),
    });
    let run = loadgen(&["-R", "100:500ms,20:3s", "-c1", "-t1", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let [first, second] = &steps(&run)[..] else { panic!("{}", run.json) };
    assert_eq!((due(first), number(&first["completed"])), (50, 50));
    assert!((20..=45).contains(&number(&first["late"])), "{first}");
    assert!(first["achieved_rate_rps"].as_f64().unwrap() <= 60.0, "{first}");
    let reason = first["verdict"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("connections: "), "{reason}");
    // The answers to the backlog are in the rate of the second, over which they came.
    assert!(second["achieved_rate_rps"].as_f64().unwrap() > 20.5, "{second}");
    // Of the second step's sixty requests the last fifty are quick again.
    assert_eq!(number(&second["response_time"]["count"]), 60);
    assert!(number(&second["response_time"]["percentiles"]["50"]) < 20_000, "{second}");
    assert!(number(&first["response_time"]["percentiles"]["50"]) > 200_000, "{first}");
}

#[test]
fn the_interval_log_has_each_step_with_what_the_json_has() {
    let server = NullServer::start();
    let run = loadgen(&["-R", "300:400ms,600:400ms", "-c4", "-t2", &server.url]);
    for step in steps(&run) {
        for (kind, key) in [("response", "response_time"), ("service", "service_time")] {
            let tag = format!("step_{}_{kind}", step["step"]);
            assert_eq!(counts_of(&run.hlog, &tag), [number(&step[key]["count"])], "{tag}");
        }
    }
}

#[test]
fn parts_share_each_steps_rate() {
    let server = NullServer::start();
    let part = |part: &str| {
        let run = loadgen(&["-R", "100:500ms,300:500ms", "-c5", "-t1", "--part", part, &server.url]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        steps(&run).iter().map(due).collect::<Vec<_>>()
    };
    assert_eq!((part("1/2"), part("2/2")), (vec![30, 90], vec![20, 60]));
}

#[test]
fn with_one_queue_each_step_has_the_requests_of_its_rate_over_all_threads_and_parts() {
    let server = NullServer::start();
    let run = |options: &[&str]| {
        let run =
            loadgen(&[&["-R", "200:500ms,1k:300ms,50:400ms", "--dispatch", "any", "-c4"], options].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_follows_schema(&run);
        run
    };
    let all = run(&["-t2", "--warmup", "300ms", &server.url]);
    assert_eq!(steps(&all).iter().map(due).collect::<Vec<_>>(), [100, 300, 20]);
    // The queue of the second thread is one of two in either part.
    let parts = ["1/2", "2/2"].map(|part| run(&["-t1", "--part", part, &server.url]));
    for part in &parts {
        assert_eq!(steps(part).iter().map(due).collect::<Vec<_>>(), [50, 150, 10]);
    }
    let drawn = run(&["-t2", "--arrivals", "poisson", &server.url]);
    let completed: u64 = steps(&drawn).iter().map(|step| number(&step["completed"])).sum();
    assert_eq!(completed, drawn.count("measured"));
    assert!(drawn.count("unsent") <= 2, "the last ones may be left at the end: {}", drawn.stderr);
    assert!(steps(&drawn)[1]["sent"].as_u64() > steps(&drawn)[0]["sent"].as_u64(), "{}", drawn.json["steps"]);
}

#[test]
fn with_one_queue_a_slow_answer_holds_up_no_other_request_of_its_step() {
    // The first request is answered in the second step. Half of the others were its connection's if each had
    // its own.
    let slow = |number, _: &str| match number {
        0 => Act::After(Duration::from_millis(900), OK.to_owned()),
        _ => Act::Answer(OK.to_owned()),
    };
    let step_of = |dispatch: &str| {
        let server = Server::start(slow);
        let run = loadgen(&["-R", "100:500ms,50:800ms", "-c2", "-t1", "--dispatch", dispatch, &server.url()]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        (steps(&run)[0].clone(), number(&steps(&run)[1]["response_time"]["count"]))
    };
    let ((any, second), (fixed, _)) = (step_of("any"), step_of("fixed"));
    assert_eq!((due(&any), second, number(&any["completed"])), (50, 40, 50));
    let quick = |step: &Value| number(&step["response_time"]["percentiles"]["50"]);
    assert!(number(&any["response_time"]["max_us"]) >= 900_000, "{any}");
    assert!(number(&any["late"]) < 20 && quick(&any) < 200_000, "{any}");
    assert!(
        number(&fixed["late"]) >= 25 && number(&fixed["response_time"]["percentiles"]["75"]) > 400_000,
        "{fixed}"
    );
}
