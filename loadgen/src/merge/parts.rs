//! The files of a merge, and whether they are all the parts of one load.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use super::{Given, slices};
use crate::args::{self, Args, Parsed};
use crate::error::Error;
use crate::part::Part as OfLoad;
use crate::report::json::SCHEMA_VERSION;

/// Starts further apart than this are reported.
const APART_TOLD_S: f64 = 0.01;

#[derive(Debug)]
pub struct Part {
    pub file: PathBuf,
    pub result: Value,
    pub number: u64,
    of: u64,
    pub whole_connections: usize,
    start: Timestamp,
    /// None of another version's that this one does not understand.
    typed: Option<Box<Args>>,
}

impl Part {
    fn of(Given { path: file, bytes }: &Given) -> Result<Self, Error> {
        let wrong = |what: &str| Error::file(file, what);
        let result: Value = serde_json::from_slice(bytes)
            .map_err(|problem| Error::file(file, format!("no JSON: {problem}")))?;
        if result["tool"] != "loadgen" || result["schema_version"] != SCHEMA_VERSION {
            return Err(wrong(&format!("no result of loadgen by schema {SCHEMA_VERSION}")));
        }
        if result.get("merged").is_some() {
            return Err(wrong("a merged result cannot be merged again: give the results of all parts"));
        }
        if result.get("steps").is_some() {
            return Err(wrong("results of a rate in steps cannot be merged"));
        }
        let part = result
            .get("part")
            .ok_or_else(|| wrong("not one part of a load: it was measured without --part"))?;
        let number =
            |name: &str| part[name].as_u64().ok_or_else(|| wrong(&format!("no number: part.{name}")));
        let (own, of) = (number("number")?, number("of")?);
        if !(1..=of).contains(&own) || of > OfLoad::MOST as u64 {
            return Err(wrong(&format!("no part of a load: {own}/{of}")));
        }
        let start = result["start_utc"].as_str().and_then(|utc| utc.parse().ok());
        Ok(Self {
            number: own,
            of,
            whole_connections: number("whole_connections")? as usize,
            start: start.ok_or_else(|| wrong("no time: start_utc"))?,
            typed: typed(&result),
            file: file.to_owned(),
            result,
        })
    }

    /// `2/3`
    pub fn name(&self) -> String {
        format!("{}/{}", self.number, self.of)
    }

    pub fn url(&self) -> &str {
        self.result["url"].as_str().unwrap_or_default()
    }

    /// Of both servers, where two were asked in turn.
    pub fn urls(&self) -> String {
        let servers = self.result["alternate"]["servers"].as_array();
        let urls = servers.into_iter().flatten().filter_map(|server| server["url"].as_str());
        let both = urls.collect::<Vec<_>>().join(",");
        if both.is_empty() { self.url().to_owned() } else { both }
    }

    /// How many requests end it, where nobody knows when: it lasts until the last answer, in each part for
    /// its own time.
    fn ends_after(&self) -> Option<u64> {
        self.typed.as_ref().filter(|args| args.closed)?.requests
    }

    /// Of a load that only a number of requests ends.
    pub fn length_in_requests(&self) -> Option<u64> {
        self.ends_after().filter(|_| self.typed.as_ref().is_some_and(|args| !args.duration_typed))
    }

    fn typed_warm_up(&self) -> Option<String> {
        self.typed.as_ref()?.warm_up.map(|warm_up| format!("{warm_up:?}"))
    }

    /// What is shorter of two that were to last for the same time was ended before that.
    fn ended_before(&self, other: &Self) -> bool {
        let typed = |part: &Self| part.typed.as_ref().map(|args| args.duration);
        let ends = |part: &Self| part.result["duration_s"].as_f64();
        typed(self).is_some() && typed(self) == typed(other) && ends(self) < ends(other)
    }

    pub fn threads(&self) -> usize {
        self.result["threads"].as_array().map_or(0, Vec::len)
    }

    /// The longest of the parts' times.
    pub fn longest(parts: &[Self], name: &str) -> Result<f64, Error> {
        parts.iter().try_fold(0.0, |longest: f64, part| Ok(longest.max(part.seconds(name)?)))
    }

    pub fn seconds(&self, name: &str) -> Result<f64, Error> {
        self.result[name].as_f64().ok_or_else(|| Error::file(&self.file, format!("no number: {name}")))
    }
}

fn typed(result: &Value) -> Option<Box<Args>> {
    let typed = result["arguments"].as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    match args::parse(typed) {
        Ok(Parsed::Run(args)) => Some(args),
        _ => None,
    }
}

/// All parts of one load, in order.
pub fn together(files: &[Given]) -> Result<Vec<Part>, Error> {
    let mut parts = files.iter().map(Part::of).collect::<Result<Vec<_>, _>>()?;
    parts.iter().try_for_each(|part| belongs(&parts[0], part))?;
    let mut by_number = BTreeMap::<u64, &Part>::new();
    for part in &parts {
        if let Some(other) = by_number.insert(part.number, part) {
            let (name, one, two) = (part.name(), other.file.display(), part.file.display());
            return Err(Error::Failed(format!("part {name} is there twice: {one}, {two}")));
        }
    }
    let of = parts[0].of;
    let missing: Vec<String> =
        (1..=of).filter(|n| !by_number.contains_key(n)).map(|n| format!("{n}/{of}")).collect();
    if !missing.is_empty() {
        return Err(Error::Failed(format!("parts are missing: {}", missing.join(", "))));
    }
    parts.sort_by_key(|part| part.number);
    let (apart_s, measured_s) = (apart_s(&parts), Part::longest(&parts, "duration_s")?);
    if apart_s >= measured_s {
        return Err(Error::Failed(format!(
            "the parts did not run at the same time: starts are {apart_s:.3} s apart"
        )));
    }
    Ok(parts)
}

/// What must be the same in all parts of a load.
fn belongs(first: &Part, other: &Part) -> Result<(), Error> {
    const SAME: [(&str, &str); 6] = [
        ("number of parts", "/part/of"),
        ("rate", "/part/whole_rate_rps"),
        ("connections", "/part/whole_connections"),
        ("target", "/url"),
        ("seed", "/seed"),
        ("version", "/version"),
    ];
    const LASTS: [(&str, &str); 2] = [("duration", "/duration_s"), ("warm-up", "/warm_up_s")];
    let found = |(what, pointer): (&str, &str)| {
        same(what, first, other, |part| part.result.pointer(pointer).map(Value::to_string))
    };
    same("--requests", first, other, |part| part.ends_after().map(|requests| requests.to_string()))?;
    SAME.into_iter().try_for_each(found)?;
    if first.ends_after().is_some() {
        // As typed: that of a part whose last answer came within it is shorter.
        same("warm-up", first, other, Part::typed_warm_up)?;
    } else {
        ended_together(first, other)?;
        LASTS.into_iter().try_for_each(found)?;
    }
    slices::belongs(first, other)
}

fn same(
    what: &str,
    first: &Part,
    other: &Part,
    value: impl Fn(&Part) -> Option<String>,
) -> Result<(), Error> {
    if value(first) == value(other) {
        return Ok(());
    }
    let [one, two] = [first, other]
        .map(|part| format!("{} in {}", value(part).as_deref().unwrap_or("none"), part.file.display()));
    Err(Error::Failed(format!("not parts of one load: another {what}: {one}, {two}")))
}

/// A load of which a part ended before the others has no one rate, and no one duration.
fn ended_together(first: &Part, other: &Part) -> Result<(), Error> {
    let early = [(first, other), (other, first)].into_iter().find(|(one, two)| one.ended_before(two));
    early.map_or(Ok(()), |(early, longer)| {
        let (name, file) = (early.name(), early.file.display());
        let [ended_s, went_on_s] = [early, longer].map(|part| part.seconds("duration_s"));
        Err(Error::Failed(format!(
            "part {name} ended before the others, in {file}: after {:.3} s, another after {:.3} s; what it \
                measured stands there alone, all parts are to be measured again",
            ended_s?, went_on_s?
        )))
    })
}

pub fn first_start(parts: &[Part]) -> Timestamp {
    parts.iter().map(|part| part.start).min().expect("there are parts")
}

/// From the first start to the last.
pub fn apart_s(parts: &[Part]) -> f64 {
    let last = parts.iter().map(|part| part.start).max().expect("there are parts");
    last.duration_since(first_start(parts)).as_secs_f64()
}

/// Of each part that has no measured time: its requests were all answered within its warm-up, or it was
/// interrupted then.
pub fn nothing_measured(parts: &[Part]) -> impl Iterator<Item = String> {
    let idle = parts.iter().filter(|part| part.result["measured_s"] == 0.0);
    idle.map(|part| {
        let (name, file, ended_s) = (part.name(), part.file.display(), &part.result["duration_s"]);
        format!("part {name} measured nothing, in {file}: it ended within its warm-up, after {ended_s} s")
    })
}

/// Where the parts did not start together.
pub fn start_note(parts: &[Part]) -> Option<String> {
    let apart_s = apart_s(parts);
    (apart_s > APART_TOLD_S).then(|| {
        format!(
            "the parts started {apart_s:.3} s apart: the load was not at its full rate all the time; \
            see --start-at"
        )
    })
}
