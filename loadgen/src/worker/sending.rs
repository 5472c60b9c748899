//! Sending: what is due, what became due while its connection was busy, and what the kernel had no room for.

use super::{Worker, token};
use crate::clock::now_ns;
use crate::epoll::{ONCE, READABLE, WRITABLE};
use crate::errors::ErrorKind;
use crate::exchange::Sent;
use crate::plan::Pacing;

impl Worker<'_> {
    /// Sends what is due by `now`, and what becomes due meanwhile; returns what time it is then.
    pub(super) fn send_due(&mut self, at_most: usize, mut now: u64) -> u64 {
        for _ in 0..at_most {
            if self.is_stopped() {
                break;
            }
            let Some(since_start) = now.checked_sub(self.course.start_ns()) else { break };
            let Some(place) = self.free.pop(since_start) else { break };
            let connection = &mut self.connections[place];
            connection.turn_has_come();
            connection.await_slice(since_start);
            // A connection that was lost meanwhile sends when it is open again, and may have done so already.
            // Once nothing more may be sent none waits for its turn any longer.
            if connection.is_idle() && self.course.may_send() {
                connection.due_ns = self.free.due_of_any_ns().unwrap_or(connection.due_ns);
                if connection.due_ns <= since_start {
                    self.send(place, None, now);
                } else {
                    self.free.push(connection, place);
                }
            }
            now = now_ns();
        }
        now
    }

    /// A free connection sends its next request if it is due, and awaits its time otherwise.
    pub(super) fn next_request(&mut self, place: usize, now: u64) {
        if !self.connections[place].is_idle() || !self.course.goes_on(now) || self.is_stopped() {
            return;
        }
        let connection = &mut self.connections[place];
        if let (Some(script), true) = (self.source.script(), connection.may_be_delayed()) {
            match script.delay_ns() {
                Ok(Some(delay_ns)) => {
                    connection.delay(self.course.since_start_ns(now), delay_ns, self.plan.duration_ns)
                }
                Ok(None) => {}
                Err(problem) => return self.fail(problem),
            }
        }
        connection.due_ns = self.free.due_of_any_ns().unwrap_or(connection.due_ns);
        // Its slice may have ended since the answer came.
        let now_or_later = if connection.takes_turns() { now_ns() } else { now };
        connection.await_slice(self.course.since_start_ns(now_or_later));
        if self.course.at_ns(connection.due_ns) <= now_or_later && !self.free.others_are_first() {
            let sent_ns = if connection.takes_turns() { now_or_later } else { now_ns() };
            self.send(place, Some(now.min(self.waiting.looked_ns())), sent_ns);
        } else {
            self.free.push(connection, place);
        }
    }

    /// `free_ns`: when the connection became free, if that was behind the due time.
    pub(super) fn send(&mut self, place: usize, free_ns: Option<u64>, now: u64) {
        let connection = &mut self.connections[place];
        let (bytes, batch) = match self.source.next(connection.server, self.free.request_number(connection)) {
            Ok(Some(next)) => next,
            Ok(None) => return,
            Err(problem) => return self.fail(problem),
        };
        let sent_ns = if bytes.were_made() { now_ns() } else { now };
        if !connection.is_idle() {
            return;
        }
        let result = connection.send(&bytes);
        let closed_loop = matches!(self.plan.pacing, Pacing::ClosedLoop);
        let start_ns = self.course.start_ns();
        let due_ns = match closed_loop {
            true => start_ns + connection.closed_due_ns(sent_ns - start_ns),
            false => start_ns + connection.due_ns,
        };
        match result {
            Ok(true) => {}
            Ok(false) => {
                if let Some(socket) = connection.socket() {
                    let _ = self.epoll.modify(
                        socket,
                        READABLE | WRITABLE | ONCE,
                        token(place, connection.generation),
                    );
                }
            }
            Err(problem) => {
                drop(bytes);
                self.measurement.tally.errors.count_system(ErrorKind::Write, &problem);
                self.note_error(place, ErrorKind::Write);
                self.reopen_later(place);
                return;
            }
        }
        let leave_by_ns = due_ns + self.plan.slack_ns;
        connection.own_late = connection.own_late.next(leave_by_ns, sent_ns, free_ns);
        let own_late = (!closed_loop).then_some(connection.own_late);
        self.measurement.sent(&Sent { due_ns, sent_ns, requests: batch.requests, own_late });
        if let Some(sample) = &mut self.measurement.sample {
            sample.sent(place, &bytes);
        }
        self.course.sent(batch.requests, sent_ns);
        self.free.sent(batch.requests);
        connection.become_busy();
        connection.sent(batch, due_ns, sent_ns);
    }

    /// What the kernel had no room for goes on its way.
    pub(super) fn write_on(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let generation = connection.generation;
        match connection.send_rest() {
            Ok(true) => self.look_again(place),
            Ok(false) => {}
            Err(problem) => {
                // The server has gone, but may have answered before.
                self.receive_all(place, true);
                if self.connections[place].generation == generation {
                    self.measurement.tally.errors.count_system(ErrorKind::Write, &problem);
                    self.note_error(place, ErrorKind::Write);
                    self.lose(place);
                }
            }
        }
    }
}
