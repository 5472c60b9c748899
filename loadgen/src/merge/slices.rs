//! Slices of two servers in turn, of all parts: the same slices at the same times, their histograms added and
//! their counts summed.

use std::path::Path;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::parts::Part;
use super::total::{decoded, wrong};
use crate::error::Error;
use crate::report::json_slices::latency_ns;
use crate::slices::histogram_ns;

const COUNTS: [&str; 7] =
    ["sent", "completed", "late", "unanswered", "answered_within", "answered_settling", "unexpected"];
const COUNTS_BY_NAME: [&str; 2] = ["answers", "errors"];
const HISTOGRAMS: [&str; 2] = ["response_time_ns", "service_time_ns"];
/// What tells slices apart; when they were by each host's own clock does not.
const SAME_OF_A_SLICE: [&str; 4] = ["slice", "server", "start_s", "end_s"];
const SAME_OF_ALL: [&str; 5] = ["slice_s", "settle_s", "gap_least_s", "gap_most_s", "order"];

/// By the schema of a single result, with the times of the first part's clock; none where no part has slices.
pub fn merged(parts: &[Part]) -> Result<Option<Value>, Error> {
    let Some(first) = parts[0].result.get("alternate") else { return Ok(None) };
    let mut all = first.clone();
    for list in ["servers", "slices"] {
        let of_parts = parts.iter().map(|part| entries(part, list)).collect::<Result<Vec<_>, _>>()?;
        let merged: Vec<Value> = (0..of_parts[0].len())
            .map(|place| {
                let same = of_parts.iter().map(|entries| &entries[place]).collect::<Vec<_>>();
                one(&parts[0].file, &same)
            })
            .collect::<Result<_, _>>()?;
        all[list] = merged.into();
    }
    Ok(Some(all))
}

/// What must be the same in all parts, beside what is asked of every result.
pub fn belongs(first: &Part, other: &Part) -> Result<(), Error> {
    let differ = |what: &str| {
        let (one, two) = (first.file.display(), other.file.display());
        Err(Error::Failed(format!("not parts of one load: {what}: {one}, {two}")))
    };
    let (ours, theirs) = match (first.result.get("alternate"), other.result.get("alternate")) {
        (None, None) => return Ok(()),
        (Some(ours), Some(theirs)) => (ours, theirs),
        _ => return differ("one has two servers in turn"),
    };
    if let Some(name) = SAME_OF_ALL.iter().find(|name| ours[**name] != theirs[**name]) {
        return differ(&format!("another {name}"));
    }
    for (list, names) in [("servers", &["server", "url", "slices"][..]), ("slices", &SAME_OF_A_SLICE)] {
        let (ours, theirs) = (entries(first, list)?, entries(other, list)?);
        let same = |(one, two): (&Value, &Value)| names.iter().all(|name| one[*name] == two[*name]);
        if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(same) {
            return differ(&format!("other {list}"));
        }
    }
    Ok(())
}

fn entries<'a>(part: &'a Part, list: &str) -> Result<&'a Vec<Value>, Error> {
    let found = part.result["alternate"][list].as_array();
    found.ok_or_else(|| wrong(&part.file, &format!("no list: alternate.{list}")))
}

/// One slice, or one server, of all parts. `file`: of the first.
fn one(file: &Path, of_parts: &[&Value]) -> Result<Value, Error> {
    let mut all = of_parts[0].clone();
    for name in COUNTS {
        let counts = of_parts.iter().map(|one| one[name].as_u64());
        let sum = counts.sum::<Option<u64>>().ok_or_else(|| no_number(file, name))?;
        all[name] = sum.into();
    }
    for name in COUNTS_BY_NAME {
        let mut sums = Map::new();
        for (key, count) in of_parts.iter().filter_map(|one| one[name].as_object()).flatten() {
            let before = sums.get(key).and_then(Value::as_u64).unwrap_or_default();
            let count = count.as_u64().ok_or_else(|| no_number(file, name))?;
            sums.insert(key.clone(), (before + count).into());
        }
        all[name] = sums.into();
    }
    let rates = of_parts.iter().map(|one| one["achieved_rate_rps"].as_f64());
    all["achieved_rate_rps"] =
        json!(rates.sum::<Option<f64>>().ok_or_else(|| no_number(file, "achieved_rate_rps"))?);
    for name in HISTOGRAMS {
        let mut sum: Histogram<u64> = histogram_ns();
        for one in of_parts {
            sum.add(decoded(file, one, name)?).map_err(|_| wrong(file, "a histogram of other bounds"))?;
        }
        all[name] = json!(latency_ns(&sum)?);
    }
    Ok(all)
}

fn no_number(file: &Path, name: &str) -> Error {
    wrong(file, &format!("no number: {name} of a slice"))
}
