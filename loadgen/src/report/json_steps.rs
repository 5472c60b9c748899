//! A rate that changes in steps, as JSON: what was found in each.

use serde::Serialize;

use super::json::{AtLeast, Latency, Verdict, at_least, latency, seconds, verdict};
use crate::error::Error;
use crate::result::{RunResult, StepResult};

#[derive(Serialize)]
pub struct OfStep<'a> {
    /// From 1.
    step: usize,
    start_s: f64,
    end_s: f64,
    from_unix_ns: u64,
    until_unix_ns: u64,
    offered_rate_rps: f64,
    achieved_rate_rps: f64,
    sent: u64,
    completed: u64,
    late: u64,
    response_time: Latency,
    response_time_at_least: AtLeast,
    service_time: Latency,
    send_lateness: Latency,
    own_lateness: Latency,
    verdict: Verdict<'a>,
}

/// None at one rate.
pub fn steps(result: &RunResult) -> Result<Option<Vec<OfStep<'_>>>, Error> {
    let start_unix_ns = u64::try_from(result.start_utc.as_nanosecond()).unwrap_or(0);
    let told = || result.steps.iter().map(|found| of_step(found, start_unix_ns)).collect();
    (!result.steps.is_empty()).then(told).transpose()
}

fn of_step(found: &StepResult, start_unix_ns: u64) -> Result<OfStep<'_>, Error> {
    Ok(OfStep {
        step: found.number,
        start_s: seconds(found.start_ns),
        end_s: seconds(found.end_ns),
        from_unix_ns: start_unix_ns + found.start_ns,
        until_unix_ns: start_unix_ns + found.end_ns,
        offered_rate_rps: found.offered_rate_rps,
        achieved_rate_rps: found.achieved_rate_rps,
        sent: found.sent,
        completed: found.completed,
        late: found.late,
        response_time: latency(&found.latencies.response)?,
        response_time_at_least: at_least(&found.at_least)?,
        service_time: latency(&found.latencies.service)?,
        send_lateness: latency(&found.latencies.lateness)?,
        own_lateness: latency(&found.own_lateness)?,
        verdict: verdict(&found.verdict),
    })
}
