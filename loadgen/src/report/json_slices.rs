//! Two servers in turn, as JSON: what was found of each server, and in each slice.

use std::collections::BTreeMap;
use std::ops::Range;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::json::{Percentiles, encoded, number, percentiles, seconds};
use crate::alternation::{Alternation, SERVERS, Server};
use crate::error::Error;
use crate::errors::ErrorKind;
use crate::plan::{Alternate, Plan};
use crate::recorder::{Counts, add_counts};
use crate::result::RunResult;
use crate::slices::{SliceCounts, histogram_ns};
use crate::statistics;

#[derive(Serialize)]
pub struct Alternating<'a> {
    slice_s: f64,
    settle_s: f64,
    gap_s: f64,
    gap_least_s: f64,
    gap_most_s: f64,
    order: &'static str,
    servers: Vec<OfServer<'a>>,
    slices: Vec<OfSlice>,
}

#[derive(Serialize)]
struct OfServer<'a> {
    server: &'static str,
    url: &'a str,
    slices: usize,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
struct OfSlice {
    slice: usize,
    server: &'static str,
    start_s: f64,
    end_s: f64,
    /// Of the clock that counts nanoseconds since 1970-01-01, UTC.
    counted_from_unix_ns: u64,
    counted_until_unix_ns: u64,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
struct Found {
    sent: u64,
    completed: u64,
    late: u64,
    unanswered: u64,
    answered_within: u64,
    answered_settling: u64,
    answers: BTreeMap<String, u64>,
    unexpected: u64,
    errors: BTreeMap<&'static str, u64>,
    achieved_rate_rps: f64,
    response_time_ns: LatencyNs,
    service_time_ns: LatencyNs,
}

#[derive(Serialize)]
pub(crate) struct LatencyNs {
    count: u64,
    mean: Option<f64>,
    stdev: Option<f64>,
    min: u64,
    max: u64,
    percentiles: Percentiles,
    histogram_v2_base64: String,
}

/// The slices that were measured: those from the end of the warm-up to where sending ended.
pub fn measured_slices(alternation: &Alternation, result: &RunResult) -> Range<usize> {
    let slices = 0..alternation.slices();
    let first =
        slices.clone().find(|&slice| alternation.start_ns(slice) >= result.warm_up_ns).unwrap_or(slices.end);
    let last = slices
        .rev()
        .find(|&slice| alternation.end_ns(slice) <= result.duration_ns)
        .map_or(0, |slice| slice + 1);
    first..last.max(first)
}

pub fn alternating<'a>(plan: &'a Plan, result: &RunResult) -> Result<Option<Alternating<'a>>, Error> {
    let Some(Alternate { target, alternation, .. }) = &plan.alternate else { return Ok(None) };
    let measured = measured_slices(alternation, result);
    let urls: [&str; 2] = [&plan.target.url, &target.url];
    let of_server = |server: Server| {
        let own: Vec<usize> = measured.clone().filter(|&slice| alternation.server(slice) == server).collect();
        let mut all = SliceCounts::default();
        own.iter().for_each(|&slice| all.add(&result.slices[slice]));
        let found = found(plan, &all, own.len() as u64 * alternation.counted_ns())?;
        Ok(OfServer { server: SERVERS[server], url: urls[server], slices: own.len(), found })
    };
    let start_unix_ns = u64::try_from(result.start_utc.as_nanosecond()).unwrap_or(0);
    let unix_ns = |after_start_ns: u64| start_unix_ns + after_start_ns;
    let of_slice = |slice: usize| {
        Ok(OfSlice {
            slice,
            server: SERVERS[alternation.server(slice)],
            start_s: seconds(alternation.start_ns(slice)),
            end_s: seconds(alternation.end_ns(slice)),
            counted_from_unix_ns: unix_ns(alternation.counted_from_ns(slice)),
            counted_until_unix_ns: unix_ns(alternation.end_ns(slice)),
            found: found(plan, &result.slices[slice], alternation.counted_ns())?,
        })
    };
    let slicing = alternation.slicing();
    Ok(Some(Alternating {
        slice_s: seconds(slicing.slice_ns),
        settle_s: seconds(slicing.settle_ns),
        gap_s: slicing.gaps.mean_ns() / 1e9,
        gap_least_s: seconds(slicing.gaps.least_ns),
        gap_most_s: seconds(slicing.gaps.most_ns),
        order: slicing.order.name(),
        servers: [0, 1].into_iter().map(of_server).collect::<Result<_, Error>>()?,
        slices: measured.clone().map(of_slice).collect::<Result<_, Error>>()?,
    }))
}

fn found(plan: &Plan, counts: &SliceCounts, counted_ns: u64) -> Result<Found, Error> {
    let is_unexpected = |status: &u16| !plan.expect.is_empty() && !plan.expect.contains(status);
    Ok(Found {
        sent: counts.sent,
        completed: counts.completed,
        late: counts.late,
        unanswered: counts.unanswered,
        answered_within: counts.answered_within,
        answered_settling: counts.answered_settling,
        answers: counts.answers.iter().map(|&(status, count)| (status.to_string(), count)).collect(),
        unexpected: counts
            .answers
            .iter()
            .chain(&counts.settling_answers)
            .filter(|(status, _)| is_unexpected(status))
            .map(|(_, count)| count)
            .sum(),
        errors: ErrorKind::ALL.into_iter().map(|kind| (kind.name(), counts.errors[kind as usize])).collect(),
        achieved_rate_rps: counts.answered_within as f64 / seconds(counted_ns.max(1)),
        response_time_ns: latency(&counts.response_ns)?,
        service_time_ns: latency(&counts.service_ns)?,
    })
}

fn latency(counts: &Counts) -> Result<LatencyNs, Error> {
    let mut histogram: Histogram<u64> = histogram_ns();
    add_counts(&mut histogram, counts);
    latency_ns(&histogram)
}

pub(crate) fn latency_ns(histogram: &Histogram<u64>) -> Result<LatencyNs, Error> {
    Ok(LatencyNs {
        count: histogram.len(),
        mean: number(statistics::mean(histogram)),
        stdev: number(statistics::stdev(histogram)),
        min: statistics::min(histogram),
        max: statistics::max(histogram),
        percentiles: percentiles(histogram),
        histogram_v2_base64: encoded(histogram)?,
    })
}
