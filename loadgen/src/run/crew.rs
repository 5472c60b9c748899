//! The workers, as the main thread sees them: told what to do, and listened to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use crate::clock::{Epoch, now_ns};
use crate::error::Error;
use crate::live::{self, Board};
use crate::order::Order;
use crate::output::print;
use crate::plan::Plan;
use crate::report::text;
use crate::result::Intervals;
use crate::worker::{Opened, Outcome, Report};

/// From "go" to the start of the schedule, so that every thread has heard it.
const LEAD_NS: u64 = 5_000_000;

/// Their orders, and what they report. The main thread sleeps while they run: it must not take a CPU from
/// them.
pub(super) struct Crew<'a> {
    pub(super) orders: Vec<Sender<Order>>,
    pub(super) heard: Receiver<(usize, Report)>,
    pub(super) stop: &'a AtomicBool,
    /// What is put on it is shown while the run lasts.
    pub(super) board: Option<&'a Board>,
}

fn past(utc: jiff::Timestamp) -> Error {
    Error::Failed(format!(
        "too late to start: --start-at {utc} had passed when all connections were open; leave more time"
    ))
}

/// What all workers reported.
pub(super) struct Gathered {
    pub(super) start_ns: u64,
    pub(super) epoch: Epoch,
    pub(super) intervals: Intervals,
    pub(super) outcomes: Vec<Outcome>,
}

impl Drop for Crew<'_> {
    /// A run that is given up early ends for all its threads.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Crew<'_> {
    pub(super) fn tell(&self, number: usize, order: Order) {
        // A worker that is gone has reported why.
        let _ = self.orders[number].send(order);
    }

    fn hear(&self) -> (usize, Report) {
        self.heard.recv().expect("the run itself keeps a sender")
    }

    /// Why a worker has ended, if one has said so.
    pub(super) fn failure(&self) -> Option<Error> {
        self.heard.try_iter().find_map(|(_, report)| match report {
            Report::Failed(problem) => Some(problem),
            _ => None,
        })
    }

    pub(super) fn await_initialized(&self, number: usize) -> Result<(), Error> {
        match self.hear() {
            (_, Report::Failed(problem)) => Err(problem),
            (from, Report::Initialized) if from == number => Ok(()),
            _ => unreachable!("workers are silent until they are told to connect"),
        }
    }

    /// Opens all connections.
    pub(super) fn connect(&self, threads: usize) -> Result<Opened, Error> {
        (0..threads).for_each(|number| self.tell(number, Order::Connect));
        let mut all = Opened::default();
        for _ in 0..threads {
            match self.hear() {
                (_, Report::Ready(opened)) => {
                    all = Opened {
                        missing: all.missing + opened.missing,
                        problem: all.problem.or(opened.problem),
                    };
                }
                (_, Report::Failed(problem)) => return Err(problem),
                _ => unreachable!("workers wait for the start"),
            }
        }
        Ok(all)
    }

    pub(super) fn go(&self, plan: &Plan) -> Result<Gathered, Error> {
        let epoch = Epoch::now();
        let soon_ns = now_ns() + LEAD_NS;
        let start_ns = match plan.start_at {
            None => soon_ns,
            Some(utc) => match epoch.monotonic_ns(utc).filter(|&start_ns| start_ns >= soon_ns) {
                Some(start_ns) => start_ns,
                None => return Err(past(utc)),
            },
        };
        (0..plan.threads).for_each(|number| self.tell(number, Order::Go(start_ns)));
        let mut gathered =
            Gathered { start_ns, epoch, intervals: Intervals::default(), outcomes: Vec::new() };
        let starts_in = Duration::from_nanos(start_ns.saturating_sub(now_ns()));
        let mut line = self.board.map(|board| live::Line::new(board, starts_in, plan.duration()));
        while gathered.outcomes.len() < plan.threads {
            let told = match &mut line {
                Some(line) => line.hear(&self.heard).expect("the run itself keeps a sender"),
                None => self.hear(),
            };
            match told.1 {
                // Where it cannot be written the end of the run says so: what is measured is not given up
                // for it.
                Report::Calibrated(found) => {
                    let _ = print(text::calibration(found.mean_us, found.sample_every_ms));
                }
                Report::Finished(mut outcome) => {
                    outcome
                        .measured
                        .intervals
                        .drain(..)
                        .for_each(|interval| gathered.intervals.add(interval));
                    gathered.outcomes.push(*outcome);
                }
                Report::Failed(problem) => return Err(problem),
                Report::Initialized | Report::Ready(_) => unreachable!("these come before the start"),
            }
        }
        gathered.outcomes.sort_by_key(|outcome| outcome.thread);
        Ok(gathered)
    }
}
