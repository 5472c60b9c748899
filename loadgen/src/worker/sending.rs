//! Sending: what is due, what became due while its connection was busy, and what the kernel had no room for.

use super::{Worker, token};
use crate::clock::now_ns;
use crate::epoll::{ONCE, READABLE, WRITABLE};
use crate::error::Error;
use crate::errors::ErrorKind;
use crate::exchange::Sent;
use crate::http::HttpError;
use crate::http::request::Batch;
use crate::lateness::own_late_ns;
use crate::plan::Pacing;
use crate::script::WorkerState;

impl Worker<'_> {
    /// Sends what is due by `now`, and what becomes due meanwhile; returns what time it is then.
    pub(super) fn send_due(&mut self, at_most: usize, mut now: u64) -> u64 {
        for _ in 0..at_most {
            let Some(since_start) = now.checked_sub(self.start_ns) else { break };
            let next = match &mut self.queue {
                Some(queue) => queue.pop(since_start),
                None => self.agenda.pop(since_start),
            };
            let Some(place) = next else { break };
            let connection = &mut self.connections[place];
            connection.turn_has_come();
            connection.await_slice(since_start);
            if let Some(queue) = self.queue.as_ref().filter(|_| connection.is_idle()) {
                connection.due_ns = queue.requests.next_ns();
            }
            // A connection that was lost meanwhile sends when it is open again, and may have done so already.
            // Once nothing more may be sent none waits for its turn any longer.
            let may_send = self.failure.is_none() && self.requests_left != Some(0);
            if may_send && connection.is_idle() {
                if connection.due_ns <= since_start {
                    self.send(place, None, now);
                } else {
                    connection.await_turn(&mut self.agenda, place);
                }
            }
            now = now_ns();
        }
        now
    }

    /// A free connection sends its next request if it is due, and awaits its time otherwise.
    pub(super) fn next_request(&mut self, place: usize, now: u64) {
        let over = self.ending || now >= self.end_ns() || self.requests_left == Some(0);
        let connection = &mut self.connections[place];
        if over || !connection.is_idle() || self.failure.is_some() {
            return;
        }
        if let (Some(script), true) = (&self.source.script, connection.may_be_delayed()) {
            match script.delay_ns() {
                Ok(Some(delay_ns)) => {
                    connection.delay(now.saturating_sub(self.start_ns), delay_ns, self.plan.duration_ns)
                }
                Ok(None) => {}
                Err(problem) => {
                    self.failure = Some(problem);
                    return;
                }
            }
        }
        if let Some(queue) = &mut self.queue {
            connection.due_ns = queue.requests.next_ns();
            if self.start_ns.saturating_add(connection.due_ns) > now {
                return connection.await_any(queue, place);
            }
        }
        // Its slice may have ended since the answer came.
        let now_or_later = if connection.takes_turns() { now_ns() } else { now };
        connection.await_slice(now_or_later.saturating_sub(self.start_ns));
        if self.start_ns.saturating_add(connection.due_ns) <= now_or_later {
            let sent_ns = if connection.takes_turns() { now_or_later } else { now_ns() };
            self.send(place, Some(now.min(self.looked_ns)), sent_ns);
        } else {
            connection.await_turn(&mut self.agenda, place);
        }
    }

    /// `free_ns`: when the connection became free, if that was behind the due time.
    pub(super) fn send(&mut self, place: usize, free_ns: Option<u64>, now: u64) {
        let made;
        let (bytes, batch, sent_ns): (&[u8], Batch, u64) = match (&mut self.source.fixed, &self.source.script)
        {
            (Some(rotations), _) => {
                let request = rotations[self.connections[place].server].next();
                (&request.bytes, request.batch.clone(), now)
            }
            (None, Some(script)) => match request_of(script, &mut self.source.latest_batch) {
                Ok(None) => return,
                Ok(Some((string, batch))) => {
                    made = string;
                    (&made, batch, now_ns())
                }
                Err(problem) => {
                    self.failure = Some(problem);
                    return;
                }
            },
            (None, None) => unreachable!("without a script the request is fixed"),
        };
        let connection = &mut self.connections[place];
        if !connection.is_idle() {
            return;
        }
        let result = connection.send(bytes);
        let closed_loop = matches!(self.plan.pacing, Pacing::ClosedLoop);
        let due_ns = match closed_loop {
            true => self.start_ns + connection.closed_due_ns(sent_ns - self.start_ns),
            false => self.start_ns + connection.due_ns,
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
                self.measurement.tally.errors.count_system(ErrorKind::Write, &problem);
                self.note_error(place, ErrorKind::Write);
                self.reopen_later(place);
                return;
            }
        }
        self.last_sent_ns = sent_ns;
        if let Some(left) = &mut self.requests_left {
            *left = left.saturating_sub(u64::from(batch.requests));
        }
        let leave_by_ns = due_ns + self.plan.slack_ns;
        connection.own_late_ns = own_late_ns(leave_by_ns, sent_ns, free_ns, connection.own_late_ns);
        let own_late_ns = (!closed_loop).then_some(connection.own_late_ns);
        self.measurement.sent(&Sent { due_ns, sent_ns, requests: batch.requests, own_late_ns });
        if let Some(sample) = &mut self.sample {
            sample.sent(place, bytes);
        }
        if let Some(queue) = &mut self.queue {
            queue.requests.advance(batch.requests);
        }
        connection.become_busy();
        connection.sent(batch, due_ns, sent_ns);
        self.busy += 1;
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

/// `latest`: the latest string of several requests and what it holds; scripts that pipeline return the same
/// again and again.
fn request_of(
    script: &WorkerState,
    latest: &mut (Vec<u8>, Batch),
) -> Result<Option<(mlua::BorrowedBytes, Batch)>, Error> {
    let Some(string) = script.request()? else { return Ok(None) };
    let bytes = string.as_bytes();
    if *bytes == *latest.0 && !bytes.is_empty() {
        return Ok(Some((bytes, latest.1.clone())));
    }
    let batch = Batch::parse(&bytes)
        .map_err(|HttpError(why)| Error::Failed(format!("request() returned no request: {why}")))?;
    if batch.requests > 1 {
        latest.0.clear();
        latest.0.extend_from_slice(&bytes);
        latest.1 = batch.clone();
    }
    Ok(Some((bytes, batch)))
}
