//! What a worker needs to be heard, and what it tells; what it is told is an [`crate::order::Order`].

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use crate::error::Error;
use crate::live::Board;
use crate::measurement::{Calibration, Measured};
use crate::opening_times::OpeningTimes;
use crate::reconnecting::Reconnecting;
use crate::sample::Sample;
use crate::thread_use::UsedBy;
use crate::waiting::Habits;
use crate::worker::Opened;

/// Where a worker is heard, and what ends it early.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    pub reports: &'a Sender<(usize, Report)>,
    pub stop: &'a AtomicBool,
    /// Where the line on a terminal is made from; none without one.
    pub board: Option<&'a Board>,
}

/// What a worker tells.
pub enum Report {
    Initialized,
    /// All connections are open, or cannot be.
    Ready(Opened),
    /// The warm-up is over: mean response time in it, and how often Req/Sec is sampled.
    Calibrated(Calibration),
    Finished(Box<Outcome>),
    /// The script failed before the run.
    Failed(Error),
}

/// What a thread has to say at the end.
pub struct Outcome {
    pub thread: usize,
    pub connections: usize,
    pub measured: Measured,
    pub reconnecting: Reconnecting,
    pub opening_times: OpeningTimes,
    /// How many connections have been open at each endpoint.
    pub endpoints: BTreeMap<String, u64>,
    pub sample: Option<Sample>,
    /// What it had used when each step began, and when sending ended; empty at one rate.
    pub used: Vec<UsedBy>,
    /// How long requests were sent.
    pub sent_for_ns: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// Of the CPU time: waiting busily for the next due time.
    pub spun_ns: u64,
    pub habits: Habits,
    /// Others needed the CPU.
    pub spin_given_up: bool,
    /// Ready to run, but another had the CPU; none if the kernel does not tell.
    pub waited_for_cpu_ns: Option<u64>,
    /// A script's error, or the machine's.
    pub failure: Option<Error>,
}
