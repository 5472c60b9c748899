//! The line that a terminal shows while a run lasts: rate, p50 and p99 of the last second, and the time left.
//!
//! ```text
//! 20000/s  p50 105.00us  p99 812.00us  7s left
//! ```
//!
//! It costs the threads that measure a copy of what they recorded, put on a board when an interval is over.
//! All else is the main thread's, which looks at the board when a second is over and sleeps meanwhile.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::plan::Plan;
use crate::recorder::{Counts, Interval, Phase, SECOND_NS, add_counts, histogram};
use crate::statistics;
use crate::units::time_us;

/// Threads end their seconds about when the main thread counts them; it looks a little later.
const LOOK_BEHIND: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// What a thread recorded in its latest intervals: as many as make up a second.
#[derive(Clone, Debug, Default)]
struct Latest {
    /// Each with its length.
    intervals: VecDeque<(Counts, u64)>,
}

impl Latest {
    fn length_ns(&self) -> u64 {
        self.intervals.iter().map(|(_, length_ns)| length_ns).sum()
    }

    fn add(&mut self, responses: &Counts, length_ns: u64) {
        let mut room = Counts::new();
        while self
            .intervals
            .front()
            .is_some_and(|(_, first_ns)| self.length_ns() + length_ns >= SECOND_NS + first_ns)
        {
            room = self.intervals.pop_front().map_or(room, |(counts, _)| counts);
        }
        room.clone_from(responses);
        self.intervals.push_back((room, length_ns));
    }
}

/// Where threads put what they recorded. They never wait for it: while it is read they leave there what is
/// there.
#[derive(Debug)]
pub struct Board(Vec<Mutex<Latest>>);

impl Board {
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Mutex::default()).collect())
    }

    pub fn put(&self, thread: usize, interval: &Interval) {
        let responses = match interval.phase {
            Phase::WarmUp => &interval.warm_up,
            Phase::Measured => &interval.counts.response,
        };
        if let Ok(mut latest) = self.0[thread].try_lock() {
            latest.add(responses, interval.end_ns - interval.start_ns);
        }
    }

    /// Answers per second, and their response times, of the latest second of every thread.
    fn read(&self) -> (f64, Histogram<u64>) {
        let (mut rate_rps, mut responses) = (0.0, histogram());
        for latest in &self.0 {
            let Ok(latest) = latest.lock().map(|latest| latest.clone()) else { continue };
            let all = latest.intervals.iter().flat_map(|(counts, _)| counts);
            let answers: u64 = all.map(|&(_, count)| u64::from(count)).sum();
            rate_rps += answers as f64 / (latest.length_ns().max(1) as f64 / 1e9);
            latest.intervals.iter().for_each(|(counts, _)| add_counts(&mut responses, counts));
        }
        (rate_rps, responses)
    }
}

/// Whether there is somebody to look at it.
pub fn is_wanted(plan: &Plan) -> bool {
    !plan.quiet && std::io::stderr().is_terminal()
}

pub struct Line<'a> {
    board: &'a Board,
    begins: Instant,
    /// None if the run ends with a number of requests.
    lasts: Option<Duration>,
    next: Instant,
    drawn: bool,
}

impl<'a> Line<'a> {
    pub fn new(board: &'a Board, starts_in: Duration, lasts: Option<Duration>) -> Self {
        let begins = Instant::now() + starts_in;
        Self { board, begins, lasts, next: begins + SECOND + LOOK_BEHIND, drawn: false }
    }

    /// The next of what is told, with a line drawn each second meanwhile.
    pub fn hear<T>(&mut self, heard: &Receiver<T>) -> Option<T> {
        loop {
            let wait = self.next.saturating_duration_since(Instant::now());
            match heard.recv_timeout(wait) {
                Ok(told) => {
                    self.clear();
                    return Some(told);
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.next += SECOND;
                    self.draw();
                }
            }
        }
    }

    fn draw(&mut self) {
        let (rate_rps, responses) = self.board.read();
        let left = self.lasts.map(|lasts| lasts.saturating_sub(self.begins.elapsed()));
        // A terminal that has gone away is no failure of the run.
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(rate_rps, &responses, left));
        let _ = std::io::stderr().flush();
        self.drawn = true;
    }

    /// What is printed next has the line for itself.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }
}

fn line(rate_rps: f64, responses: &Histogram<u64>, left: Option<Duration>) -> String {
    let percentile = |percentile| match responses.is_empty() {
        true => "-".to_owned(),
        false => time_us(statistics::percentile(responses, percentile) as f64).trim().to_owned(),
    };
    let left = left.map_or(String::new(), |left| format!("  {}s left", left.as_secs_f64().round()));
    format!("{rate_rps:.0}/s  p50 {}  p99 {}{left}", percentile(50.0), percentile(99.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(phase: Phase, responses: Counts, length_ms: u64) -> Interval {
        let mut interval = Interval {
            phase,
            index: 0,
            start_ns: 0,
            end_ns: length_ms * 1_000_000,
            warm_up: Counts::new(),
            counts: Default::default(),
        };
        match phase {
            Phase::WarmUp => interval.warm_up = responses,
            Phase::Measured => interval.counts.response = responses,
        }
        interval
    }

    #[test]
    fn the_line_is_of_the_latest_second_of_all_threads() {
        let board = Board::new(2);
        board.put(0, &interval(Phase::WarmUp, vec![(9000, 77)], 1000));
        board.put(0, &interval(Phase::Measured, vec![(100, 990), (5000, 10)], 1000));
        board.put(1, &interval(Phase::WarmUp, vec![(100, 500)], 500));
        let (rate_rps, responses) = board.read();
        assert_eq!(
            line(rate_rps, &responses, Some(Duration::from_millis(6900))),
            "2000/s  p50 100.00us  p99 100.00us  7s left"
        );
        assert_eq!(line(0.0, &histogram(), None), "0/s  p50 -  p99 -");
    }

    #[test]
    fn of_shorter_intervals_the_line_is_of_as_many_as_make_a_second() {
        let board = Board::new(1);
        for answers in [7000, 100, 200, 300, 400] {
            board.put(0, &interval(Phase::Measured, vec![(100, answers)], 250));
        }
        let (rate_rps, responses) = board.read();
        assert_eq!((rate_rps, responses.len()), (1000.0, 1000));
    }

    #[test]
    fn a_thread_that_measures_does_not_wait_for_who_reads_the_board() {
        let board = std::sync::Arc::new(Board::new(1));
        board.put(0, &interval(Phase::Measured, vec![(100, 7)], 1000));
        let held = board.0[0].lock().unwrap();
        let (done, heard) = std::sync::mpsc::channel();
        let other = board.clone();
        std::thread::spawn(move || {
            other.put(0, &interval(Phase::Measured, vec![(100, 9)], 1000));
            let _ = done.send(());
        });
        assert!(heard.recv_timeout(Duration::from_secs(5)).is_ok());
        drop(held);
        assert_eq!(board.read().1.len(), 7);
    }
}
