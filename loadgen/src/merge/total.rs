//! What all parts found together: the same figures as those of one generator, from histograms added up.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Map, Value, json};

use super::parts::{Part, apart_s};
use super::slices;
use crate::error::Error;
use crate::errors::{ErrorKind, Errors};
use crate::opening_times::Handshakes;
use crate::recorder::histogram;
use crate::report::json::{at_least, error_reasons, latency, rate_samples, tls};
use crate::result::rate_histogram;
use crate::tally::Tally;
use crate::unanswered::AtLeast;
use crate::verdict::LATE_BY_ITSELF;

#[derive(Debug)]
pub struct Total {
    pub tally: Tally,
    pub duration_s: f64,
    pub response: Histogram<u64>,
    pub service: Histogram<u64>,
    pub lateness: Histogram<u64>,
    own_lateness: Histogram<u64>,
    /// Lower bounds of what got no answer.
    unanswered: Histogram<u64>,
    /// Of each part's threads; none if a part does not have them.
    rates: Option<Histogram<u64>>,
}

impl Total {
    pub fn of(parts: &[Part]) -> Result<Self, Error> {
        let mut total = Self {
            tally: Tally::default(),
            duration_s: Part::longest(parts, "duration_s")?,
            response: histogram(),
            service: histogram(),
            lateness: histogram(),
            own_lateness: histogram(),
            unanswered: histogram(),
            rates: Some(rate_histogram(&BTreeMap::new())),
        };
        for part in parts {
            total.add(part)?;
        }
        Ok(total)
    }

    fn add(&mut self, part: &Part) -> Result<(), Error> {
        let (file, result) = (part.file.as_path(), &part.result);
        let response = decoded(file, result, "response_time")?;
        // Those without an answer: what is in one histogram and not in the other.
        let mut unanswered = decoded(file, result, "response_time_at_least")?;
        unanswered
            .subtract(&response)
            .map_err(|_| wrong(file, "response_time_at_least lacks values of response_time"))?;
        for (all, own) in [
            (&mut self.response, response),
            (&mut self.unanswered, unanswered),
            (&mut self.service, decoded(file, result, "service_time")?),
            (&mut self.lateness, decoded(file, result, "send_lateness")?),
            (&mut self.own_lateness, decoded(file, result, "own_lateness")?),
        ] {
            all.add(&own).map_err(|_| wrong(file, "a histogram of other bounds"))?;
        }
        self.rates = match (self.rates.take(), result.get("rate_samples")) {
            (Some(mut rates), Some(_)) => {
                rates
                    .add(decoded(file, result, "rate_samples")?)
                    .map_err(|_| wrong(file, "a histogram of other bounds"))?;
                Some(rates)
            }
            _ => None,
        };
        self.tally.add(&tally(file, result)?);
        Ok(())
    }

    /// Requests per second of single threads.
    pub fn rates(&self) -> Result<&Histogram<u64>, Error> {
        self.rates
            .as_ref()
            .ok_or_else(|| Error::Failed("a part has no rate_samples, which the text needs".to_owned()))
    }

    /// By the schema of a single result.
    pub fn document(&self, parts: &[Part], arguments: &[Cow<str>]) -> Result<Value, Error> {
        let first = &parts[0];
        let sum = |pointer: &str| parts.iter().map(|part| number(part, pointer)).sum::<Result<f64, _>>();
        let count = |pointer: &str| {
            parts.iter().map(|part| whole(&part.file, &part.result, pointer)).sum::<Result<u64, _>>()
        };
        let of_all = |name: &str, pick: fn(&str, &str) -> bool| {
            let times = parts.iter().filter_map(|part| part.result[name].as_str());
            times.reduce(|one, other| if pick(other, one) { other } else { one }).map(str::to_owned)
        };
        let (tally, measured_s) = (&self.tally, Part::longest(parts, "measured_s")?);
        let closed_loop = first.result["offered_rate_rps"].is_null();
        let mut document = json!({
            "schema_version": first.result["schema_version"],
            "tool": first.result["tool"],
            "version": env!("CARGO_PKG_VERSION"),
            "arguments": arguments,
            "url": first.url(),
            "seed": first.result["seed"],
            "start_utc": of_all("start_utc", |one, other| one < other),
            "measure_start_utc": of_all("measure_start_utc", |one, other| one < other),
            "stop_utc": of_all("stop_utc", |one, other| one > other),
            "offered_rate_rps": if closed_loop { None } else { Some(sum("/offered_rate_rps")?) },
            "achieved_rate_rps":
                if measured_s > 0.0 { tally.completed_in_window as f64 / measured_s } else { 0.0 },
            "duration_s": self.duration_s,
            "warm_up_s": Part::longest(parts, "warm_up_s")?,
            "measured_s": measured_s,
            "answers":
                tally.answers.iter().map(|(status, n)| (status.to_string(), json!(n))).collect::<Map<_, _>>(),
            "error_reasons": error_reasons(&tally.errors),
            "connections_open_at_start": count("/connections_open_at_start")?,
            "reconnecting": {
                "reopened": count("/reconnecting/reopened")?,
                "closed_s": sum("/reconnecting/closed_s")?,
                "own_pause_s": sum("/reconnecting/own_pause_s")?,
            },
            "bytes_read": tally.bytes_read,
            "response_time": latency(&self.response)?,
            "response_time_at_least":
                at_least(&AtLeast::of(&self.response, tally.measured, &self.unanswered))?,
            "service_time": latency(&self.service)?,
            "send_lateness": latency(&self.lateness)?,
            "own_lateness": latency(&self.own_lateness)?,
            "threads": joined(parts, "threads").unwrap_or_default(),
            "verdict": verdict(parts),
            "merged": {
                "parts": parts.iter().map(summary).collect::<Vec<_>>(),
                "starts_apart_s": apart_s(parts),
            },
        });
        for (group, names) in [("counts", &COUNTS[..]), ("errors", &ERRORS)] {
            let sums =
                names.iter().map(|name| Ok(((*name).to_owned(), json!(count(&format!("/{group}/{name}"))?))));
            document[group] = sums.collect::<Result<Map<_, _>, Error>>()?.into();
        }
        if let Some(rates) = &self.rates {
            document["rate_samples"] = json!(rate_samples(rates)?);
        }
        if let Some(connect) = added(parts, "", "connect_time")? {
            document["addresses"] = json!(counts_by_name(parts, "/addresses"));
            document["connect_time"] = json!(latency(&connect)?);
        }
        if let Some(lateness) = added(parts, "reconnecting", "lateness")? {
            document["reconnecting"]["lateness"] = json!(latency(&lateness)?);
        }
        if let (Some(full), Some(resumed)) =
            (added(parts, "tls", "handshake_time")?, added(parts, "tls", "resumed_handshake_time")?)
        {
            document["tls"] = json!(tls(&Handshakes {
                full,
                resumed,
                protocols: counts_by_name(parts, "/tls/protocols")
            })?);
        }
        if let Some(slices) = slices::merged(parts)? {
            document["alternate"] = slices;
        }
        if let Some(sample) = joined(parts, "sample") {
            document["sample"] = sample.into();
        }
        Ok(document)
    }
}

const COUNTS: [&str; 8] = [
    "sent",
    "completed",
    "measured",
    "completed_in_window",
    "unsent",
    "in_flight_at_end",
    "lost",
    "unexpected",
];
const ERRORS: [&str; 4] = ["connect", "read", "write", "timeout"];

/// Of the part whose verdict is the worst, which it names: the generator was the limit, was late by itself,
/// nobody can tell, or something else was.
fn verdict(parts: &[Part]) -> Value {
    let badness = |part: &&Part| {
        let verdict = &part.result["verdict"];
        match (verdict["generator_saturated"].as_bool(), verdict["reason"].as_str()) {
            (Some(true), Some(reason)) if reason.starts_with(LATE_BY_ITSELF) => 3,
            (Some(true), _) => 4,
            (None, _) => 2,
            (Some(false), Some(_)) => 1,
            (Some(false), None) => 0,
        }
    };
    // The first of equal ones, as `max_by_key` would take the last.
    let worst = parts.iter().rev().max_by_key(badness).expect("there are parts");
    let found = &worst.result["verdict"];
    let reason = found["reason"].as_str().map(|reason| format!("{reason} (part {})", worst.name()));
    let mut distorted: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.result["verdict"]["distorted_percentiles"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    distorted
        .sort_by(|one, other| one.parse::<f64>().unwrap_or(0.0).total_cmp(&other.parse().unwrap_or(0.0)));
    distorted.dedup();
    json!({
        "generator_saturated": found["generator_saturated"],
        "reason": reason,
        "distorted_percentiles": distorted,
    })
}

fn summary(part: &Part) -> Value {
    let own = |name: &str| part.result[name].clone();
    json!({
        "number": part.number,
        "start_utc": own("start_utc"),
        "offered_rate_rps": own("offered_rate_rps"),
        "achieved_rate_rps": own("achieved_rate_rps"),
        "arguments": own("arguments"),
        "verdict": own("verdict"),
    })
}

/// The lists of all parts behind each other; none if a part lacks its own.
fn joined(parts: &[Part], name: &str) -> Option<Vec<Value>> {
    let lists = parts
        .iter()
        .map(|part| part.result.get(name).and_then(Value::as_array))
        .collect::<Option<Vec<_>>>()?;
    Some(lists.into_iter().flatten().cloned().collect())
}

/// Histograms of all parts, if all of them have this one.
fn added(parts: &[Part], group: &str, name: &str) -> Result<Option<Histogram<u64>>, Error> {
    let mut sum = histogram();
    for part in parts {
        let holder = if group.is_empty() { &part.result } else { &part.result[group] };
        if holder.get(name).is_none() {
            return Ok(None);
        }
        sum.add(decoded(&part.file, holder, name)?)
            .map_err(|_| wrong(&part.file, "a histogram of other bounds"))?;
    }
    Ok(Some(sum))
}

fn counts_by_name(parts: &[Part], pointer: &str) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::<String, u64>::new();
    for (name, count) in parts.iter().filter_map(|part| part.result.pointer(pointer)?.as_object()).flatten() {
        *sum.entry(name.clone()).or_default() += count.as_u64().unwrap_or_default();
    }
    sum
}

fn tally(file: &Path, result: &Value) -> Result<Tally, Error> {
    let count = |pointer: &str| whole(file, result, pointer);
    let mut errors = Errors::default();
    for reason in result["error_reasons"].as_array().into_iter().flatten() {
        let kind = reason["kind"]
            .as_str()
            .and_then(ErrorKind::named)
            .ok_or_else(|| wrong(file, "an unknown kind of error"))?;
        let text = |name: &str| reason[name].as_str().unwrap_or_default();
        errors.count(kind, text("reason"), text("first_seen"), whole(file, reason, "/count")?);
    }
    let answers = result["answers"].as_object().into_iter().flatten();
    let answers =
        answers.map(|(status, count)| Some((status.parse().ok()?, count.as_u64()?))).collect::<Option<_>>();
    Ok(Tally {
        sent: count("/counts/sent")?,
        completed: count("/counts/completed")?,
        measured: count("/counts/measured")?,
        completed_in_window: count("/counts/completed_in_window")?,
        unsent: count("/counts/unsent")?,
        in_flight_at_end: count("/counts/in_flight_at_end")?,
        lost: count("/counts/lost")?,
        bytes_read: count("/bytes_read")?,
        errors,
        answers: answers.ok_or_else(|| wrong(file, "no numbers: answers"))?,
    })
}

pub(super) fn decoded(file: &Path, result: &Value, name: &str) -> Result<Histogram<u64>, Error> {
    let no_histogram = || wrong(file, &format!("no histogram: {name}"));
    let text = result[name]["histogram_v2_base64"].as_str().ok_or_else(no_histogram)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| no_histogram())?;
    Deserializer::new().deserialize(&mut Cursor::new(bytes)).map_err(|_| no_histogram())
}

fn whole(file: &Path, value: &Value, pointer: &str) -> Result<u64, Error> {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .ok_or_else(|| wrong(file, &format!("no number: {}", &pointer[1..])))
}

fn number(part: &Part, pointer: &str) -> Result<f64, Error> {
    let found = part.result.pointer(pointer).and_then(Value::as_f64);
    found.ok_or_else(|| wrong(&part.file, &format!("no number: {}", &pointer[1..])))
}

pub(super) fn wrong(file: &Path, what: &str) -> Error {
    Error::file(file, what)
}
