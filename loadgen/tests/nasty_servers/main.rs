//! Servers that answer oddly, wrongly, half or never: each is counted for what it is, and none makes loadgen
//! hang.
//!
//! Each kind in `table.rs` is met twice: once among well answered requests, and in every request.
//! `special.rs` has those that are no matter of single answers.
//!
//! Runs are short, so that on a busy machine one may end before it has come to what it is to show. Such a
//! run is made again with ten times the time for as many requests ([`at_ease`]); what holds of every run is
//! checked of both.

#[path = "../common/mod.rs"]
mod common;
mod server;
mod special;
mod table;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::{Run, loadgen};
use server::{Nasty, Server};
use table::{Case, Counted};

/// Requests due in each run: 20 a second for half a second.
const DUE: u64 = 10;
const DURATION_S: f64 = 0.5;
/// Number of the request that is met by the nasty answer, where one is.
const NASTY: u64 = 2;
/// Where something hangs each run takes this much longer; elsewhere it must be longer than a busy machine may
/// stall.
const TIMEOUT_HANGING_S: f64 = 0.5;
const TIMEOUT_S: f64 = 4.0;
/// Every run ends within its duration, the timeout and this, for a machine that others use: what takes longer
/// waits for something that does not come.
const GRACE_S: f64 = 20.0;
/// Of a first request; later, its connection waits for less than nine tenths of the run.
const LATE_US_MAX: u64 = 40_000;
/// Runs at a time: nearly all of them sleep.
const AT_A_TIME: usize = 32;

#[test]
fn every_kind_of_nasty_server_is_counted_for_what_it_is_and_in_time() {
    let cases = table::cases();
    assert!(cases.len() + special::all().len() >= 40);
    let mut runs: Vec<(String, Box<dyn FnOnce() + Send>)> = Vec::new();
    for case in cases {
        let (name, case) = (case.name, std::sync::Arc::new(case));
        for nasty in [Nasty::Once(NASTY), Nasty::Always] {
            let case = case.clone();
            let which = if matches!(nasty, Nasty::Always) { "always" } else { "once" };
            runs.push((format!("{name}, {which}"), Box::new(move || meet(&case, nasty))));
        }
    }
    runs.extend(
        special::all()
            .into_iter()
            .map(|(name, run)| (name.to_owned(), Box::new(run) as Box<dyn FnOnce() + Send>)),
    );
    let (total, queue, failures) = (runs.len(), Mutex::new(runs.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some((name, run)) = queue.lock().unwrap().next() else { break };
                    if let Err(problem) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                        let told = problem.downcast_ref::<String>().cloned();
                        let told = told.or(problem.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                        failures.lock().unwrap().push(format!("{name}: {}", told.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {total} runs:\n{}", failures.len(), failures.join("\n"));
}

/// A run that shows what it is to show, or one of ten times the time. `run` is told how many times the usual
/// one.
pub fn at_ease(run: impl Fn(u64) -> Run, shows: impl Fn(&Run) -> bool) -> Run {
    let short = run(1);
    if shows(&short) { short } else { run(10) }
}

fn meet(case: &Case, nasty: Nasty) {
    let run = |times: u64| {
        let server = Server::start(nasty, case.steps.clone(), Vec::new());
        let hangs = matches!(case.counted, Counted::Hangs);
        let timeout_s = if hangs { TIMEOUT_HANGING_S * times as f64 } else { TIMEOUT_S };
        let duration_s = DURATION_S * times as f64;
        let rate = format!("-R{}", DUE as f64 / duration_s);
        let [duration, timeout] = [duration_s, timeout_s].map(|seconds| format!("{seconds}s"));
        let url = format!("http://127.0.0.1:{}/", server.port);
        let args = [&rate, "-c1", "-t1", "-d", &duration, "-T", &timeout, &url];
        let run = timed(&args, duration_s + timeout_s);
        check_counts(&run, DUE);
        // Who reads a flood has no time to spare, and says so.
        if !case.steps.iter().any(|step| matches!(step, server::Step::Flood(_))) {
            check_verdict(&run);
        }
        run
    };
    match nasty {
        Nasty::Once(_) => check_once(&at_ease(run, |run| shows_once(run, case.counted)), case.counted),
        Nasty::Always => check_always(&at_ease(run, |run| shows_always(run, case.counted)), case.counted),
    }
}

/// The nasty answer was met, and others behind it; where it hangs, no other took too long.
fn shows_once(run: &Run, counted: Counted) -> bool {
    match counted {
        Counted::Hangs => run.count("sent") > NASTY && run.error("timeout") <= 1,
        _ => run.count("unsent") <= DUE / 2,
    }
}

/// It was met again, or, where a server closes, before the next request had to leave.
fn shows_always(run: &Run, counted: Counted) -> bool {
    match counted {
        Counted::Lost(_) => run.count("sent") >= 2,
        Counted::AnsweredThen(_, why) => reasons_of(run).keys().any(|(_, reason)| reason == why),
        Counted::Answered(_) | Counted::AnsweredBut(..) | Counted::Hangs => true,
    }
}

/// One request met it. What stands here is counted by hand; requests that a machine in trouble could not send
/// any more are few.
fn check_once(run: &Run, counted: Counted) {
    let facts = facts(run);
    assert_eq!(run.code, 0, "{facts}");
    let unsent = run.count("unsent");
    let mut answers = BTreeMap::from([(200u16, DUE - 1 - unsent)]);
    let mut reasons = BTreeMap::new();
    match counted {
        Counted::Answered(status) => *answers.entry(status).or_default() += 1,
        Counted::AnsweredBut(status, why) | Counted::AnsweredThen(status, why) => {
            *answers.entry(status).or_default() += 1;
            reasons.insert(("read".to_owned(), why.to_owned()), 1);
        }
        Counted::Lost(why) => drop(reasons.insert(("read".to_owned(), why.to_owned()), 1)),
        Counted::Hangs => {
            answers.insert(200, NASTY);
            reasons.insert(("timeout".to_owned(), "no answer".to_owned()), 1);
        }
    }
    let (mut lost, hanging) =
        (u64::from(matches!(counted, Counted::Lost(_))), matches!(counted, Counted::Hangs));
    if matches!(counted, Counted::AnsweredThen(..)) && run.count("lost") == 1 {
        // A request left before the client saw that the server had closed: it is lost, and one error tells of
        // both.
        lost = 1;
        answers.entry(200).and_modify(|count| *count -= 1);
        assert_eq!(reasons_of(run).values().sum::<u64>(), 1, "{facts}");
    } else {
        assert_eq!(reasons_of(run), reasons, "{facts}");
    }
    assert_eq!(answers_of(run), answers, "{facts}");
    assert_eq!((run.count("lost"), run.count("in_flight_at_end")), (lost, u64::from(hanging)), "{facts}");
    if hanging {
        assert_eq!(unsent, DUE - NASTY - 1, "{facts}");
    } else {
        assert!(unsent <= DUE / 2, "too many were not sent: {facts}");
    }
}

/// Every request met it.
fn check_always(run: &Run, counted: Counted) {
    let facts = facts(run);
    let (sent, reasons) = (run.count("sent"), reasons_of(run));
    let only =
        |kind: &str, why: &str| reasons.keys().all(|reason| *reason == (kind.to_owned(), why.to_owned()));
    match counted {
        Counted::Answered(status) => {
            assert_eq!(
                (run.code, answers_of(run), reasons.len()),
                (0, BTreeMap::from([(status, sent)]), 0),
                "{facts}"
            );
        }
        Counted::AnsweredBut(status, why) => {
            assert_eq!((run.code, answers_of(run)), (0, BTreeMap::from([(status, sent)])), "{facts}");
            assert!(only("read", why) && run.error("read") == sent, "{facts}");
        }
        Counted::AnsweredThen(status, why) => {
            // A request may leave before the client sees that the server has closed: both are one
            // error.
            assert_eq!(
                (run.code, answers_of(run)),
                (0, BTreeMap::from([(status, run.count("completed"))])),
                "{facts}"
            );
            assert!(reasons.contains_key(&("read".to_owned(), why.to_owned())), "{facts}");
            let told = run.error("read") + run.error("write") + run.count("lost");
            assert!((sent - 1..=sent).contains(&told), "{facts}");
        }
        Counted::Lost(why) => {
            assert_eq!((run.code, run.count("completed"), run.count("lost")), (1, 0, sent), "{facts}");
            assert!(only("read", why) && run.error("read") == sent, "{facts}");
            assert!(sent >= 2, "it is tried again: {facts}");
            assert!(run.stderr.contains("no request was answered") && run.stderr.contains(why), "{facts}");
        }
        Counted::Hangs => {
            let counts =
                ["sent", "completed", "lost", "in_flight_at_end", "unsent"].map(|name| run.count(name));
            assert_eq!((run.code, counts), (1, [1, 0, 0, 1, DUE - 1]), "{facts}");
            assert!(only("timeout", "no answer") && run.error("timeout") == 1, "{facts}");
            // The one connection waits from the first request on, if that left in time. Who reads a flood may
            // be the limit itself.
            let verdict = &run.json["verdict"];
            let is_judged = verdict["generator_saturated"] == false
                && run.percentile("send_lateness", "100") < LATE_US_MAX;
            if is_judged {
                let reason = verdict["reason"].as_str().unwrap_or_default();
                assert!(reason.starts_with("connections: "), "{facts}");
            }
        }
    }
}

/// A run that must be over within `limit_s` and [`GRACE_S`].
pub fn timed(args: &[&str], limit_s: f64) -> Run {
    let start = Instant::now();
    let run = loadgen(args);
    let took = start.elapsed();
    assert!(
        took < Duration::from_secs_f64(limit_s + GRACE_S),
        "took {took:?}, {limit_s} s were due: {}",
        run.stderr
    );
    run
}

pub fn check_invariants(run: &Run, due: u64) {
    check_counts(run, due);
    check_verdict(run);
}

/// What holds whatever the server does.
fn check_counts(run: &Run, due: u64) {
    let facts = facts(run);
    let [sent, completed, unsent, lost, under_way] =
        ["sent", "completed", "unsent", "lost", "in_flight_at_end"].map(|name| run.count(name));
    assert_eq!(sent + unsent, due, "what was due was sent, or counted as not sent: {facts}");
    assert_eq!(sent, completed + lost + under_way, "what was sent has an end: {facts}");
    assert_eq!(answers_of(run).values().sum::<u64>(), completed, "{facts}");
    assert_eq!(run.json["response_time"]["count"], completed, "{facts}");
    for kind in ["connect", "read", "write", "timeout"] {
        let by_reason: u64 =
            reasons_of(run).iter().filter(|((of, _), _)| of == kind).map(|(_, count)| count).sum();
        assert_eq!(by_reason, run.error(kind), "{kind} errors by reason: {facts}");
        assert_eq!(run.error(kind) > 0, run.stderr.contains(&format!("note: {kind} errors: ")), "{facts}");
    }
}

/// At 20 requests a second the generator is never the limit, unless the machine takes its CPU away, and then
/// it proves it.
fn check_verdict(run: &Run) {
    let verdict = &run.json["verdict"];
    if verdict["generator_saturated"].as_bool() == Some(true) {
        let waited = run.json["threads"][0]["waited_for_cpu_s"].as_f64().unwrap_or(0.0);
        let starved = verdict["reason"].as_str().unwrap().starts_with("starved: ");
        assert!(starved && waited > 0.001, "the server's fault, not the generator's: {}", facts(run));
    }
}

pub fn facts(run: &Run) -> String {
    let json = &run.json;
    format!(
        "code {} counts {} answers {} reasons {} verdict {} threads {} stderr {:?}",
        run.code,
        json["counts"],
        json["answers"],
        json["error_reasons"],
        json["verdict"],
        json["threads"],
        run.stderr
    )
}

fn answers_of(run: &Run) -> BTreeMap<u16, u64> {
    let answers = run.json["answers"].as_object().unwrap();
    answers.iter().map(|(status, count)| (status.parse().unwrap(), count.as_u64().unwrap())).collect()
}

pub fn reasons_of(run: &Run) -> BTreeMap<(String, String), u64> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let reasons = run.json["error_reasons"].as_array().unwrap();
    reasons.iter().map(|r| ((text(&r["kind"]), text(&r["reason"])), r["count"].as_u64().unwrap())).collect()
}
