//! What a worker needs to be heard, and what it tells; what it is told is an [`crate::order::Order`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use crate::error::Error;
use crate::live::Board;
use crate::measurement::{Calibration, Measured};
use crate::opening_times::OpeningTimes;
use crate::reconnecting::Reconnecting;
use crate::thread_use::{ThreadUse, UsedBy};
use crate::worker::Opened;

/// Where the worker of one thread is heard, and what ends it early.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    pub thread: usize,
    pub reports: &'a Sender<(usize, Report)>,
    pub stop: &'a AtomicBool,
    /// Where the line on a terminal is made from; none without one.
    pub board: Option<&'a Board>,
}

impl Links<'_> {
    /// Nobody may listen any more; then there is nobody to tell.
    pub fn report(&self, report: Report) {
        let _ = self.reports.send((self.thread, report));
    }

    /// The run ends early, for all threads.
    pub fn call_off(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_called_off(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
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
    pub measured: Measured,
    pub reconnecting: Reconnecting,
    pub opening_times: OpeningTimes,
    /// How many connections have been open at each endpoint.
    pub endpoints: BTreeMap<String, u64>,
    pub thread_use: ThreadUse,
    /// Of that what it used behind the warm-up, which is what is judged.
    pub used_measured: ThreadUse,
    /// What it had used when each step began, and when sending ended; empty at one rate.
    pub used_by_steps: Vec<UsedBy>,
    /// How long requests were sent.
    pub sent_for_ns: u64,
    /// A script's error, or the machine's.
    pub failure: Option<Error>,
}
