//! What is done at certain times: waiting for the next due time, intervals and samples, timers of
//! connections.

use super::{Report, Worker};
use crate::args::Spin;
use crate::clock::{self, now_ns};
use crate::due::SharedQueue;
use crate::error::Error;
use crate::thread_use::UsedBy;
use crate::waiting::{Wait, busily};

/// The flag that ends a run early is looked at this often at least.
const LOOK_UP_NS: u64 = 100_000_000;

impl Worker<'_> {
    pub(super) fn wait_and_handle(&mut self, now: u64) {
        let next_ns = self.queue.as_ref().map_or_else(|| self.agenda.next_due_ns(), SharedQueue::next_ns);
        let due_ns = self.start_ns.saturating_add(next_ns);
        let count = match self.wait(now, due_ns, self.housekeeping_ns.min(self.end_ns())) {
            Ok(count) => count,
            Err(problem) => {
                self.failure = Some(Error::Failed(format!("epoll: {problem}")));
                return;
            }
        };
        if count > 0 {
            self.looked_ns = now_ns();
        }
        for index in 0..count {
            self.on_event(self.epoll.event(index));
            self.send_due(1, now_ns());
        }
    }

    /// Waits for events until the next request is due or something else is to be done, or less long; returns
    /// how many there are.
    fn wait(&mut self, now: u64, due_ns: u64, housekeeping_ns: u64) -> std::io::Result<usize> {
        let answer_sent_ns = (self.busy > 0).then_some(self.last_sent_ns);
        let elapsed_ns = now.saturating_sub(self.start_ns);
        let wait =
            self.habits.wait_after(self.spun_ns, elapsed_ns, now, due_ns, housekeeping_ns, answer_sent_ns);
        let until_ns = match wait {
            Wait::NotAtAll => return self.epoll.look(),
            Wait::Asleep(until_ns) => return self.epoll.wait_until(until_ns),
            Wait::Within { answer_by_ns, earliest_ns, wanted_ns, latest_ns } => {
                return self.wait_within(now, answer_by_ns, (earliest_ns, wanted_ns, latest_ns));
            }
            Wait::Busily(until_ns) => until_ns,
        };
        // Where nothing is under way no look delays what is due; that a free connection was closed is seen
        // behind that.
        let (epoll, events_may_come) = (&mut self.epoll, self.busy + self.opening.connecting > 0);
        let (count, spare_ns) =
            busily(until_ns, now_ns, || if events_may_come { epoll.look() } else { Ok(0) })?;
        self.spun_ns += spare_ns;
        Ok(count)
    }

    /// See [`Wait::Within`].
    fn wait_within(
        &mut self,
        now: u64,
        answer_by_ns: u64,
        (earliest_ns, wanted_ns, latest_ns): (u64, u64, u64),
    ) -> std::io::Result<usize> {
        // A try that a due request ends early says nothing.
        let cut_short = answer_by_ns >= earliest_ns;
        if self.busy > 0 && answer_by_ns > now && self.soon.may_be_tried(cut_short) {
            let epoll = &mut self.epoll;
            let (count, spare_ns) = busily(answer_by_ns, now_ns, || epoll.look())?;
            self.spun_ns += spare_ns;
            if count > 0 || !cut_short {
                self.soon.tried(count > 0);
            }
            if count > 0 || cut_short {
                return Ok(count);
            }
        }
        let ahead_ns = self.ahead.begins(earliest_ns, wanted_ns, latest_ns);
        let waited = self.epoll.wait_within(earliest_ns, wanted_ns, latest_ns, ahead_ns)?;
        if let Some(until_ns) = waited.until_ns {
            self.habits.woke_late(now_ns().saturating_sub(until_ns));
            self.ahead.ended(until_ns);
        }
        Ok(waited.count)
    }

    /// What this thread had used when each step began, as soon as it comes by; returns when the next begins.
    fn note_use(&mut self, now: u64) -> u64 {
        let Some(steps) = &self.plan.steps else { return u64::MAX };
        while self.used.len() < steps.count() {
            let begins_ns = self.start_ns + steps.start_ns(self.used.len());
            if now < begins_ns {
                return begins_ns;
            }
            self.used.push(used_by(now, self.spun_ns));
        }
        u64::MAX
    }

    /// What this thread had used when the schedule started; seen behind the first requests, so that it makes
    /// none of them late. What it used before is no part of the run: it may have waited for an hour.
    pub(super) fn note_first_use(&mut self, now: u64) {
        if self.used_from.is_none() && now >= self.start_ns {
            self.used_from = Some(used_by(now, self.spun_ns));
        }
    }

    /// Sending has ended; steps that were not begun used nothing.
    pub(super) fn note_last_use(&mut self) {
        if let Some(steps) = &self.plan.steps {
            self.used.resize(steps.count() + 1, used_by(now_ns(), self.spun_ns));
        }
    }

    /// What is to be done at certain times, and when the next of them is.
    pub(super) fn keep_house(&mut self, now: u64) {
        if let Some(calibration) = self.measurement.keep(now, self.ending) {
            let _ = self.reports.send((self.thread, Report::Calibrated(calibration)));
        }
        if let (Some(board), Some(interval)) = (self.board, self.measurement.newly_closed()) {
            board.put(self.thread, interval);
        }
        if self.plan.spin == Spin::Auto && self.habits.spin_ns > 0 {
            let waited_ns = clock::thread_waited_for_cpu_ns();
            if waited_ns.is_some_and(|waited_ns| self.crowding.look(now, waited_ns)) {
                self.habits.stop_spinning();
            }
        }
        let next_ns = self.keep_opening(now).min(if self.ending { u64::MAX } else { self.note_use(now) });
        self.housekeeping_ns = (now + LOOK_UP_NS).min(self.measurement.next_ns(self.ending)).min(next_ns);
    }
}

pub(super) fn used_by(now: u64, spun_ns: u64) -> UsedBy {
    UsedBy {
        at_ns: now,
        cpu_ns: clock::thread_cpu_ns(),
        spun_ns,
        waited_for_cpu_ns: clock::thread_waited_for_cpu_ns(),
    }
}
