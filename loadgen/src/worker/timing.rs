//! What is done at certain times: waiting for the next due time, intervals and samples, timers of
//! connections.

use super::{Report, Worker};
use crate::clock::{self, now_ns};
use crate::error::Error;
use crate::thread_use::UsedBy;
use crate::waiting::Awaited;

/// The flag that ends a run early is looked at this often at least.
const LOOK_UP_NS: u64 = 100_000_000;

impl Worker<'_> {
    pub(super) fn wait_and_handle(&mut self, now: u64) {
        let awaited = Awaited {
            elapsed_ns: self.course.since_start_ns(now),
            due_ns: self.course.at_ns(self.free.next_ns()),
            end_ns: self.course.end_ns(),
            answer_sent_ns: self.course.answer_sent_ns(),
            opening: self.opening.connecting > 0,
        };
        let count = match self.waiting.wait(&mut self.epoll, now, &awaited) {
            Ok(count) => count,
            Err(problem) => return self.fail(Error::Failed(format!("epoll: {problem}"))),
        };
        for index in 0..count {
            self.on_event(self.epoll.event(index));
            self.send_due(1, now_ns());
        }
    }

    /// Whether it comes later than it was to, or has not worked since then.
    pub(super) fn mind_absence(&mut self, now: u64, planned_ns: u64) {
        self.absence.look(planned_ns, now, self.course.end_ns(), clock::thread_cpu_ns);
    }

    /// Whether it was away since it came to keep house.
    pub(super) fn has_kept_house(&mut self, came_ns: u64) {
        let now = now_ns();
        self.mind_absence(now, came_ns);
        self.absence.has_looked(now, clock::thread_cpu_ns());
    }

    /// What is due and could leave is something that it was to come for.
    pub(super) fn note_absence_and_use_at_the_end(&mut self) {
        let now = now_ns();
        let leaves_ns = self.course.at_ns(self.free.next_ns().saturating_add(self.plan.slack_ns));
        self.mind_absence(now, self.waiting.housekeeping_ns().min(leaves_ns));
        let used = self.used_by(now);
        self.used.end(self.course.start_ns(), self.course.end_ns(), self.plan.steps.as_ref(), used);
    }

    /// Behind the first requests, so that it makes none of them late.
    pub(super) fn note_first_use(&mut self, now: u64) {
        if self.used.awaits_start() && now >= self.course.start_ns() {
            self.note_use(now);
        }
    }

    /// Returns when the next moment of the log comes.
    pub(super) fn note_use(&mut self, now: u64) -> u64 {
        let used = self.used_by(now);
        self.used.look(self.course.start_ns(), self.plan.steps.as_ref(), used)
    }

    fn used_by(&self, now: u64) -> UsedBy {
        UsedBy { away_ns: self.absence.total_ns(), ..used_by(now, self.waiting.spun_ns()) }
    }

    /// What is to be done at certain times, and when the next of them is.
    pub(super) fn keep_house(&mut self, now: u64) {
        let is_ending = self.course.is_ending();
        if let Some(calibration) = self.measurement.keep(now, is_ending) {
            self.links.report(Report::Calibrated(calibration));
        }
        if let Some(board) = self.links.board {
            self.measurement
                .newly_closed()
                .iter()
                .for_each(|interval| board.put(self.links.thread, interval));
        }
        self.waiting.mind_others(now, clock::thread_waited_for_cpu_ns);
        let mut next_ns = self.keep_opening(now).min(self.measurement.next_ns(is_ending));
        if !is_ending && (self.plan.steps.is_some() || self.used.awaits_measure()) {
            next_ns = next_ns.min(self.note_use(now));
        }
        self.waiting.keep_house_at(next_ns.min(now + LOOK_UP_NS));
    }
}

pub(super) fn used_by(now: u64, spun_ns: u64) -> UsedBy {
    UsedBy {
        at_ns: now,
        cpu_ns: clock::thread_cpu_ns(),
        spun_ns,
        waited_for_cpu_ns: clock::thread_waited_for_cpu_ns(),
        away_ns: 0,
    }
}
