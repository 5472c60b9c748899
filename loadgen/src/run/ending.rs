//! The end of a run: text, `done`, files, notes, exit code.

use std::rc::Rc;

use super::interruption::Interruption;
use crate::error::{Error, exit};
use crate::output::print;
use crate::plan::{Alternate, Pacing, Plan};
use crate::report::text::TableLine;
use crate::report::{hlog, json, slowest, text};
use crate::result::{Intervals, RunResult, StepResult};
use crate::script::{self, MainState, Statistics, Summary};
use crate::statistics;
use crate::tell;
use crate::unanswered::AtLeast;
use crate::units::{rate, time_us};

/// Percentiles that the note on requests without an answer tells.
const NOTED_PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

pub(super) fn report(
    plan: &Plan,
    result: &RunResult,
    intervals: &Intervals,
    main_state: Option<&MainState>,
    failure: Option<Error>,
    connect_problem: Option<String>,
    interruption: &Interruption,
) -> Result<i32, Error> {
    script::flush_prints();
    let has_failed = failure.is_some();
    let mut failures = Vec::from_iter(failure);
    let latencies = &result.latencies;
    let mut printed = text::table(&TableLine::of(&latencies.response), &TableLine::of(&result.rates_rps));
    if plan.latency {
        printed += &text::recorded(&latencies.response);
    }
    if plan.uncorrected {
        printed += &text::uncorrected(&latencies.service);
    }
    printed += &text::summary(&result.tally, result.duration_ns as f64 / 1e3);
    failures.extend(print(printed).err());
    // Before the script has its word: where that does not return, or ends the program, they are kept.
    let written = [
        plan.json.as_deref().map(|path| json::write(path, plan, result)),
        plan.hlog.as_deref().map(|path| hlog::write(path, plan, result, intervals.seconds(result.start_ns))),
        plan.slowest
            .as_deref()
            .map(|path| slowest::write(path, result.start_ns + result.warm_up_ns, &result.slowest)),
    ];
    failures.extend(written.into_iter().flatten().filter_map(Result::err));
    if let Some(state) = main_state.filter(|state| state.wants_done()) {
        let summary = Summary { duration_us: result.duration_ns / 1000, tally: &result.tally };
        let latency = Statistics(Rc::new(latencies.response.clone()));
        let done = state.done(&summary, latency, Statistics(Rc::new(result.rates_rps.clone())));
        failures.extend(done.err());
        script::flush_prints();
    }
    // Who failed before the start has stopped opening connections.
    let not_open = if has_failed { 0 } else { plan.connections_total() - result.open_at_start };
    notes(result, interruption.signal(), plan.connections_total(), not_open, connect_problem.as_deref());
    Ok(exit_code(plan, result, &failures, connect_problem.as_deref(), interruption.signal()))
}

pub(super) fn banner(plan: &Plan) -> String {
    let (url, threads, connections) = (&plan.urls(), plan.threads, plan.connections);
    match (plan.duration(), plan.requests_max) {
        (None, Some(requests)) => text::banner_of_requests(requests, url, threads, connections),
        _ => text::banner(plan.duration_ns as f64 / 1e9, url, threads, connections),
    }
}

/// What stdout has no place for.
fn notes(
    result: &RunResult,
    signal: Option<i32>,
    connections: usize,
    not_open: usize,
    connect_problem: Option<&str>,
) {
    if signal.is_some() {
        tell!(
            "note: interrupted after {:.2} s; the figures are those of this time",
            result.duration_ns as f64 / 1e9
        );
    }
    match (&result.verdict.reason, result.verdict.generator_saturated) {
        (Some(reason), Some(true)) => tell!("note: the generator was the limit, not the service: {reason}"),
        (Some(reason), _) => tell!("note: {reason}"),
        (None, _) => {}
    }
    let distorted: Vec<String> =
        result.verdict.distorted_percentiles.iter().map(|percentile| format!("p{percentile}")).collect();
    if !distorted.is_empty() {
        tell!(
            "note: over a tenth of the response time is the generator's own lateness, or its pauses \
                before it tried to connect again, at {}",
            distorted.join(", ")
        );
    }
    if not_open > 0 {
        tell!(
            "note: {not_open} of {connections} connections were not open when the run began; what is tried \
                first is tried for --timeout{}",
            connect_problem.map_or(String::new(), |problem| format!(": {problem}"))
        );
    }
    for step in &result.steps {
        tell!("{}", step_line(step));
    }
    if let Some(note) = result.reconnecting.note() {
        tell!("note: {note}");
    }
    let tally = &result.tally;
    if tally.completed > 0 && tally.measured == 0 && result.at_least.unanswered == 0 {
        tell!(
            "note: nothing was measured: all {} answers are to requests of the warm-up, and none was due \
                behind it",
            tally.completed
        );
    }
    tally.errors.lines().iter().for_each(|line| tell!("note: {line}"));
    if tally.unsent + tally.in_flight_at_end + tally.lost > 0 {
        tell!(
            "note: requests without an answer, of which no latency is known: never sent {}, lost \
                with their connection {}, still under way {}",
            tally.unsent,
            tally.lost,
            tally.in_flight_at_end
        );
        let percentiles: Vec<String> =
            NOTED_PERCENTILES.iter().map(|&noted| of_percentile(&result.at_least, noted)).collect();
        tell!("note: response time with those that were due and not answered: {}", percentiles.join(", "));
    }
}

/// `step 2: 2000/s for 10s: 1999.8/s, p50 = 105us, p90 = …, p99 = …, p99.9 = …`, and what was wrong.
fn step_line(step: &StepResult) -> String {
    let percentiles: Vec<String> =
        NOTED_PERCENTILES.iter().map(|&noted| of_percentile(&step.at_least, noted)).collect();
    let reason = match (&step.verdict.reason, step.verdict.generator_saturated) {
        (Some(reason), Some(true)) => format!("; the generator was the limit, not the service: {reason}"),
        (Some(reason), _) => format!("; {reason}"),
        (None, _) => String::new(),
    };
    format!(
        "step {}: {}/s for {}s: {:.1}/s, {}{reason}",
        step.number,
        rate(step.offered_rate_rps),
        (step.end_ns - step.start_ns) as f64 / 1e9,
        step.achieved_rate_rps,
        percentiles.join(", ")
    )
}

/// `p99 ≥ 1.20s`, or `p99 = 812us` where no request without an answer can change it.
fn of_percentile(at_least: &AtLeast, percentile: f64) -> String {
    let (value_us, may_be_larger) = at_least.percentile(percentile);
    format!("p{percentile} {} {}", if may_be_larger { '≥' } else { '=' }, time_us(value_us as f64).trim())
}

/// Of two servers in turn, one that answered none of the requests that were due in its measured slices, and
/// how many that are: the run tells nothing of it.
fn server_without_answers<'a>(plan: &'a Plan, result: &RunResult) -> Option<(&'a str, u64)> {
    let Alternate { target, alternation, .. } = plan.alternate.as_ref()?;
    [&plan.target.url, &target.url].into_iter().enumerate().find_map(|(server, url)| {
        let own = || {
            let slices = result.slices.iter().enumerate();
            slices.filter(|&(slice, _)| alternation.server(slice) == server).map(|(_, counts)| counts)
        };
        let unanswered: u64 = own().map(|one| one.unanswered).sum();
        let is_deaf = unanswered > 0 && own().all(|one| one.completed == 0 && one.answered_settling == 0);
        is_deaf.then_some((url.as_str(), unanswered))
    })
}

/// Everything that went wrong is told; the first of it decides.
fn exit_code(
    plan: &Plan,
    result: &RunResult,
    failures: &[Error],
    connect_problem: Option<&str>,
    signal: Option<i32>,
) -> i32 {
    failures.iter().for_each(|problem| tell!("{problem}"));
    if let Some(signal) = signal {
        return exit::SIGNAL_BASE + signal;
    }
    if !failures.is_empty() {
        return exit::FAILED;
    }
    if let Some(why) = nothing_answered(plan, result, connect_problem) {
        tell!("{why}");
        return exit::FAILED;
    }
    let exceeded = exceeded_limits(plan, result);
    exceeded.iter().for_each(|(_, what)| tell!("{what}"));
    exceeded.first().map_or(0, |&(code, _)| code)
}

/// Why a run tells nothing of the service, if it does not.
fn nothing_answered(plan: &Plan, result: &RunResult, connect_problem: Option<&str>) -> Option<String> {
    let (tally, errors) = (&result.tally, &result.tally.errors);
    // In a closed loop nothing is due, and a script may have ended its thread.
    let has_schedule = plan.pacing != Pacing::ClosedLoop && plan.script.is_none();
    if has_schedule && tally.sent + tally.unsent == 0 {
        return Some("no request was due before the end: take a longer duration or a higher rate".to_owned());
    }
    if tally.completed == 0 {
        let why = connect_problem.map_or(String::new(), |problem| format!(": {problem}"));
        return Some(format!(
            "no request was answered{why}: sent {}, connect errors {}, read errors {}, write \
                errors {}, timeouts {}",
            tally.sent, errors.connect, errors.read, errors.write, errors.timeout
        ));
    }
    server_without_answers(plan, result)
        .map(|(url, due)| format!("no measured request was answered by {url}: {due} were due"))
}

/// The limits that are exceeded, those that were typed, and that something was measured: exit code, and what
/// was found.
fn exceeded_limits(plan: &Plan, result: &RunResult) -> Vec<(i32, String)> {
    let mut exceeded = Vec::new();
    if result.unexpected > 0 {
        let expected: Vec<String> = plan.expect.iter().map(u16::to_string).collect();
        let (count, expected) = (result.unexpected, expected.join(", "));
        let told = format!("unexpected answers: {count} with a status other than {expected}");
        exceeded.push((exit::UNEXPECTED_ANSWER, told));
    }
    let lateness_us = statistics::percentile(&result.latencies.lateness, 99.0);
    if let (Some(most), Pacing::ConstantThroughput { .. }) = (plan.max_lateness, plan.pacing)
        && u128::from(lateness_us) > most.as_micros()
    {
        let most_us = most.as_micros();
        let told =
            format!("sent too late: send lateness p99 = {lateness_us} us, --max-lateness {most_us} us");
        exceeded.push((exit::TOO_LATE, told));
    }
    let share = result.at_least.unanswered_share();
    if let Some(most) = plan.max_unanswered.filter(|&most| share > most) {
        let told = format!(
            "too many requests without an answer: {} = {share:.4} of those due, --max-unanswered {most}",
            result.at_least.unanswered
        );
        exceeded.push((exit::UNANSWERED, told));
    }
    if plan.max_unanswered.is_none() && result.tally.measured == 0 && result.at_least.unanswered > 0 {
        let told = format!(
            "no answer was measured: all {} are to requests of the warm-up, none to the {} due behind it",
            result.tally.completed, result.at_least.unanswered
        );
        exceeded.push((exit::UNANSWERED, told));
    }
    exceeded
}
