//! What is done at certain times: waiting for the next due time, intervals, the end of the warm-up, Req/Sec samples.

use std::cmp::Reverse;

use super::{Report, Worker};
use crate::clock::now_ns;
use crate::error::Error;
use crate::recorder::Phase;
use crate::result::add_counts;
use crate::statistics;

/// The flag that ends a run early is looked at this often at least.
const LOOK_UP_NS: u64 = 100_000_000;

/// Samples this thread's rate, for the Req/Sec line of wrk2's table.
pub struct Sampler {
    pub every_ns: u64,
    pub since_ns: u64,
    pub completed: u64,
}

impl Worker<'_> {
    pub(super) fn wait_and_handle(&mut self, now: u64) {
        let due_ns = self.start_ns.saturating_add(self.agenda.next_due_ns());
        let count = match self.wait(now, due_ns, self.housekeeping_ns.min(self.end_ns())) {
            Ok(count) => count,
            Err(problem) => {
                self.failure = Some(Error::Failed(format!("epoll: {problem}")));
                return;
            }
        };
        for index in 0..count {
            self.on_event(self.epoll.event(index));
            self.send_due(1, now_ns());
        }
    }

    /// What is to be done at certain times, and when the next of them is.
    pub(super) fn keep_house(&mut self, now: u64) {
        let measure_ns = self.start_ns + self.plan.warm_up_ns;
        if self.recorder.phase() == Phase::WarmUp {
            if now >= measure_ns {
                self.close_interval(measure_ns);
                self.recorder.start_measuring();
                self.calibrate(now);
            } else if now >= self.recorder.interval_end_ns() {
                self.close_interval(self.recorder.interval_end_ns());
            }
        }
        while self.recorder.phase() == Phase::Measured && now >= self.recorder.interval_end_ns() && !self.ending {
            self.close_interval(self.recorder.interval_end_ns());
        }
        self.sample(now);
        while let Some(&Reverse((time, place, generation))) = self.timers.peek() {
            if time > now {
                break;
            }
            self.timers.pop();
            self.on_timer(place, generation);
        }
        let mut next = now + LOOK_UP_NS;
        if !self.ending {
            next = next.min(self.recorder.interval_end_ns());
        }
        if self.recorder.phase() == Phase::WarmUp {
            next = next.min(measure_ns);
        }
        if let Some(sampler) = self.sampler.as_ref().filter(|_| !self.ending) {
            next = next.min(sampler.since_ns + sampler.every_ns);
        }
        if let Some(Reverse((time, ..))) = self.timers.peek() {
            next = next.min(*time);
        }
        self.housekeeping_ns = next;
    }

    pub(super) fn close_interval(&mut self, end_ns: u64) {
        let interval = self.recorder.close_interval(end_ns);
        if interval.phase == Phase::WarmUp {
            add_counts(&mut self.warm_up_responses, &interval.counts.response);
        }
        self.intervals.push(interval);
    }

    /// wrk2 samples Req/Sec twice in the 90th percentile of the response times seen so far, and not more often than each 10 ms.
    pub(super) fn calibrate(&mut self, now: u64) {
        let p90_us = statistics::percentile(&self.warm_up_responses, 90.0);
        let sample_every_ms = (p90_us as f64 / 1000.0 * 2.0).max(10.0) as u64;
        let mean_us = statistics::mean(&self.warm_up_responses);
        let _ = self.reports.send((self.thread, Report::Calibrated { mean_us, sample_every_ms }));
        self.sampler = Some(Sampler { every_ns: sample_every_ms * 1_000_000, since_ns: now, completed: self.tally.completed });
    }

    pub(super) fn sample(&mut self, now: u64) {
        let Some(sampler) = &mut self.sampler else { return };
        let elapsed_ns = now.saturating_sub(sampler.since_ns);
        if elapsed_ns >= sampler.every_ns && !self.ending {
            let rate = (self.tally.completed - sampler.completed) as f64 / elapsed_ns as f64 * 1e9;
            *self.rates_rps.entry(rate as u64).or_default() += 1;
            (sampler.since_ns, sampler.completed) = (now, self.tally.completed);
        }
    }
}
