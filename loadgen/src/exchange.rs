//! What a worker tells of requests that have left and of answers that have come. Times are monotonic
//! nanoseconds.

use crate::lateness::OwnLateness;

/// Requests that have left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub due_ns: u64,
    pub sent_ns: u64,
    pub requests: u32,
    /// How much of its lateness is the generator's own; none in a closed loop, where nothing is late.
    pub own_late: Option<OwnLateness>,
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    pub due_ns: u64,
    pub sent_ns: u64,
    pub now_ns: u64,
    /// Its number among all of the run.
    pub connection: usize,
    pub status: u16,
    /// Its latency is; all but the last of a batch may be counted only.
    pub recorded: bool,
}
