//! The result as JSON: `schema/loadgen-result-2.schema.json`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use super::json_slices::{Alternating, alternating};
use super::json_steps::{OfStep, steps};
use crate::error::Error;
use crate::opening_times::Handshakes;
use crate::plan::Plan;
use crate::result::RunResult;
use crate::sample::SampledRequest;
use crate::statistics::{self, PRINTED_PERCENTILES};
use crate::unanswered;
use crate::whole_file;

pub const SCHEMA_VERSION: u32 = 2;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    tool: &'static str,
    version: &'static str,
    arguments: &'a [String],
    url: &'a str,
    seed: u64,
    start_utc: String,
    measure_start_utc: String,
    stop_utc: String,
    /// None in a closed loop.
    offered_rate_rps: Option<f64>,
    achieved_rate_rps: f64,
    duration_s: f64,
    warm_up_s: f64,
    measured_s: f64,
    counts: Counts,
    answers: BTreeMap<String, u64>,
    errors: Errors,
    error_reasons: Vec<Reason<'a>>,
    connections_open_at_start: usize,
    reconnecting: Reconnecting,
    addresses: &'a BTreeMap<String, u64>,
    connect_time: Latency,
    /// Only with https.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<Tls>,
    bytes_read: u64,
    response_time: Latency,
    response_time_at_least: AtLeast,
    service_time: Latency,
    send_lateness: Latency,
    /// What of it is the generator's own fault.
    own_lateness: Latency,
    threads: Vec<Thread>,
    rate_samples: RateSamples,
    verdict: Verdict<'a>,
    /// Only of one of several generators.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<PartOfWhole>,
    /// Only with two servers in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    alternate: Option<Alternating<'a>>,
    /// Only of a rate that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<OfStep<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<Vec<Sampled<'a>>>,
}

#[derive(Serialize)]
struct Counts {
    sent: u64,
    completed: u64,
    measured: u64,
    completed_in_window: u64,
    unsent: u64,
    in_flight_at_end: u64,
    lost: u64,
    unexpected: u64,
}

#[derive(Serialize)]
struct Errors {
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
}

#[derive(Serialize)]
struct Reconnecting {
    reopened: u64,
    closed_s: f64,
    own_pause_s: f64,
    lateness: Latency,
}

#[derive(Serialize)]
pub(crate) struct Reason<'a> {
    kind: &'static str,
    reason: &'a str,
    count: u64,
    first_seen: Option<&'a str>,
}

pub(super) type Percentiles = serde_json::Map<String, serde_json::Value>;

#[derive(Serialize)]
pub(crate) struct Latency {
    count: u64,
    /// None if nothing was recorded, as the next.
    mean_us: Option<f64>,
    stdev_us: Option<f64>,
    min_us: u64,
    max_us: u64,
    percentiles: Percentiles,
    histogram_v2_base64: String,
}

#[derive(Serialize)]
pub(crate) struct AtLeast {
    #[serde(flatten)]
    latency: Latency,
    unanswered: u64,
    unanswered_share: f64,
    /// Names of the percentiles that are lower bounds.
    lower_bounds: Vec<String>,
}

/// What the text's line `Req/Sec` is made of.
#[derive(Serialize)]
pub(crate) struct RateSamples {
    count: u64,
    histogram_v2_base64: String,
}

#[derive(Serialize)]
struct Thread {
    cpu_s: f64,
    cpu_share: f64,
    connections: usize,
    sent: u64,
    spun_s: f64,
    spin_us: f64,
    spin_given_up: bool,
    wakes_late_us: f64,
    sleep_cost_us: f64,
    waited_for_cpu_s: Option<f64>,
    away_s: f64,
}

#[derive(Serialize)]
pub(crate) struct Tls {
    handshake_time: Latency,
    resumed_handshake_time: Latency,
    /// Version, cipher suite and protocol above TLS, and how many handshakes agreed on them.
    protocols: BTreeMap<String, u64>,
}

#[derive(Serialize)]
pub(crate) struct Verdict<'a> {
    /// None if nobody can tell.
    generator_saturated: Option<bool>,
    reason: Option<&'a str>,
    distorted_percentiles: Vec<String>,
}

#[derive(Serialize)]
struct PartOfWhole {
    number: usize,
    of: usize,
    /// None in a closed loop.
    whole_rate_rps: Option<f64>,
    whole_connections: usize,
}

#[derive(Serialize)]
struct Sampled<'a> {
    thread: usize,
    connection: usize,
    method: &'a str,
    target: &'a str,
    status: u16,
    body_bytes: usize,
    /// In hexadecimal digits; none without a body.
    body_sha256: Option<String>,
}

pub fn write(path: &Path, plan: &Plan, result: &RunResult) -> Result<(), Error> {
    let document = document(plan, result)?;
    whole_file::write(path, |out| {
        serde_json::to_writer_pretty(&mut *out, &document)?;
        out.write_all(b"\n")
    })
}

fn document<'a>(plan: &'a Plan, result: &'a RunResult) -> Result<Document<'a>, Error> {
    let (tally, errors) = (&result.tally, &result.tally.errors);
    Ok(Document {
        schema_version: SCHEMA_VERSION,
        tool: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        arguments: &plan.typed,
        url: &plan.target.url,
        seed: plan.seed,
        start_utc: utc(result.start_utc),
        measure_start_utc: utc(result.measure_start_utc),
        stop_utc: utc(result.stop_utc),
        offered_rate_rps: result.offered_rate_rps,
        achieved_rate_rps: result.achieved_rate_rps(),
        duration_s: seconds(result.duration_ns),
        warm_up_s: seconds(result.warm_up_ns),
        measured_s: seconds(result.measured_ns()),
        counts: Counts {
            sent: tally.sent,
            completed: tally.completed,
            measured: tally.measured,
            completed_in_window: tally.completed_in_window,
            unsent: tally.unsent,
            in_flight_at_end: tally.in_flight_at_end,
            lost: tally.lost,
            unexpected: result.unexpected,
        },
        answers: tally.answers.iter().map(|(status, &count)| (status.to_string(), count)).collect(),
        errors: Errors {
            connect: errors.connect,
            read: errors.read,
            write: errors.write,
            timeout: errors.timeout,
        },
        error_reasons: error_reasons(errors),
        connections_open_at_start: result.open_at_start,
        reconnecting: Reconnecting {
            reopened: result.reconnecting.reopened,
            closed_s: seconds(result.reconnecting.closed_ns),
            own_pause_s: seconds(result.reconnecting.own_pause_ns),
            lateness: latency(&result.own_lateness.pauses)?,
        },
        addresses: &result.endpoints,
        connect_time: latency(&result.opening_times.connect)?,
        tls: result.opening_times.tls.as_ref().map(tls).transpose()?,
        bytes_read: tally.bytes_read,
        response_time: latency(&result.latencies.response)?,
        response_time_at_least: at_least(&result.at_least)?,
        service_time: latency(&result.latencies.service)?,
        send_lateness: latency(&result.latencies.lateness)?,
        own_lateness: latency(&result.own_lateness.faults)?,
        rate_samples: rate_samples(&result.rates_rps)?,
        threads: result
            .threads
            .iter()
            .map(|thread| Thread {
                cpu_s: seconds(thread.cpu_ns),
                cpu_share: thread.cpu_share(),
                connections: thread.connections,
                sent: thread.sent,
                spun_s: seconds(thread.spun_ns),
                spin_us: thread.habits.spin_ns as f64 / 1e3,
                spin_given_up: thread.spin_given_up,
                wakes_late_us: thread.habits.wakes_late_ns as f64 / 1e3,
                sleep_cost_us: thread.habits.sleep_cost_ns as f64 / 1e3,
                waited_for_cpu_s: thread.waited_for_cpu_ns.map(seconds),
                away_s: seconds(thread.away_ns),
            })
            .collect(),
        verdict: verdict(&result.verdict),
        part: plan.is_part.then(|| PartOfWhole {
            number: plan.part.number,
            of: plan.part.of,
            whole_rate_rps: plan.pacing.offered_rate_rps(),
            whole_connections: plan.whole_connections,
        }),
        alternate: alternating(plan, result)?,
        steps: steps(result)?,
        sample: result.sample.as_deref().map(|sample| sample.iter().map(sampled).collect()),
    })
}

pub(crate) fn verdict(verdict: &crate::verdict::Verdict) -> Verdict<'_> {
    Verdict {
        generator_saturated: verdict.generator_saturated,
        reason: verdict.reason.as_deref(),
        distorted_percentiles: verdict.distorted_percentiles.iter().map(f64::to_string).collect(),
    }
}

pub(crate) fn tls(handshakes: &Handshakes) -> Result<Tls, Error> {
    Ok(Tls {
        handshake_time: latency(&handshakes.full)?,
        resumed_handshake_time: latency(&handshakes.resumed)?,
        protocols: handshakes.protocols.clone(),
    })
}

pub(crate) fn at_least(found: &unanswered::AtLeast) -> Result<AtLeast, Error> {
    let bounds = PRINTED_PERCENTILES.into_iter().filter(|&percentile| found.percentile(percentile).1);
    Ok(AtLeast {
        latency: latency(&found.all)?,
        unanswered: found.unanswered,
        unanswered_share: found.unanswered_share(),
        lower_bounds: bounds.map(|percentile| percentile.to_string()).collect(),
    })
}

fn sampled(request: &SampledRequest) -> Sampled<'_> {
    Sampled {
        thread: request.thread,
        connection: request.connection,
        method: &request.method,
        target: &request.target,
        status: request.status,
        body_bytes: request.body_bytes,
        body_sha256: request
            .body_sha256
            .map(|digest| digest.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

pub(crate) fn error_reasons(errors: &crate::errors::Errors) -> Vec<Reason<'_>> {
    errors.reasons().into_iter().map(reason).collect()
}

fn reason(reason: &crate::errors::Reason) -> Reason<'_> {
    let first_seen = Some(reason.first_seen.as_str()).filter(|seen| !seen.is_empty());
    Reason { kind: reason.kind.name(), reason: &reason.why, count: reason.count, first_seen }
}

pub(super) fn encoded(histogram: &Histogram<u64>) -> Result<String, Error> {
    let mut encoded = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut encoded);
    written.map_err(|problem| Error::Failed(format!("cannot encode a histogram: {problem:?}")))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(encoded))
}

pub(crate) fn latency(histogram: &Histogram<u64>) -> Result<Latency, Error> {
    Ok(Latency {
        count: histogram.len(),
        mean_us: number(statistics::mean(histogram)),
        stdev_us: number(statistics::stdev(histogram)),
        min_us: statistics::min(histogram),
        max_us: statistics::max(histogram),
        percentiles: percentiles(histogram),
        histogram_v2_base64: encoded(histogram)?,
    })
}

/// JSON has no number for one that is none.
pub(super) fn number(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// By their names, in the histogram's unit.
pub(super) fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let value_at = |percentile| statistics::percentile(histogram, percentile).into();
    PRINTED_PERCENTILES.into_iter().map(|percentile| (percentile.to_string(), value_at(percentile))).collect()
}

pub(crate) fn rate_samples(histogram: &Histogram<u64>) -> Result<RateSamples, Error> {
    Ok(RateSamples { count: histogram.len(), histogram_v2_base64: encoded(histogram)? })
}

pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Always nine digits of the second, so that times sort as text.
fn utc(time: jiff::Timestamp) -> String {
    format!("{time:.9}")
}
