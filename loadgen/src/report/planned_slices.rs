//! When the slices of two servers in turn will be, as JSON on stdout, for whoever samples the servers at
//! their borders. Nanoseconds after the start of the run, which `--start-at` says.

use serde::Serialize;

use crate::alternation::{Alternation, SERVERS};
use crate::plan::Plan;

#[derive(Serialize)]
struct Planned {
    /// Where the first slice that is measured begins.
    warm_up_ns: u64,
    duration_ns: u64,
    slices: Vec<Slice>,
}

#[derive(Serialize)]
struct Slice {
    slice: usize,
    server: &'static str,
    start_ns: u64,
    counted_from_ns: u64,
    end_ns: u64,
    measured: bool,
}

pub fn json(plan: &Plan, alternation: &Alternation) -> String {
    let slice = |slice: usize| Slice {
        slice,
        server: SERVERS[alternation.server(slice)],
        start_ns: alternation.start_ns(slice),
        counted_from_ns: alternation.counted_from_ns(slice),
        end_ns: alternation.end_ns(slice),
        measured: alternation.start_ns(slice) >= plan.warm_up_ns,
    };
    let planned = Planned {
        warm_up_ns: plan.warm_up_ns,
        duration_ns: plan.duration_ns,
        slices: (0..alternation.slices()).map(slice).collect(),
    };
    serde_json::to_string_pretty(&planned).expect("numbers and names can be written") + "\n"
}
