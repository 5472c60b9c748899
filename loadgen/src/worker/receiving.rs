//! Receiving: events, answers, and connections that close or break.

use super::{Worker, token};
use crate::clock::now_ns;
use crate::connection::State;
use crate::epoll::{Event, ONCE, READABLE};
use crate::http::Answer;
use crate::measurement::Answered;

impl Worker<'_> {
    pub(super) fn on_event(&mut self, event: Event) {
        let place = (event.token & u64::from(u32::MAX)) as usize;
        let connection = &mut self.connections[place];
        let generation = connection.generation;
        if event.token != token(place, generation) {
            return;
        }
        if let State::Connecting(socket) = &connection.state {
            let fd = socket.fd();
            let opened = socket.connected().and_then(|()| self.epoll.modify(fd, READABLE | ONCE, event.token));
            match opened {
                Ok(()) => {
                    connection.become_idle();
                    self.connecting -= 1;
                    self.next_request(place, now_ns());
                }
                Err(problem) => self.connect_failed(place, &problem),
            }
            return;
        }
        if event.writable && !self.write_on(place) {
            return;
        }
        if event.readable {
            let mut room = std::mem::take(&mut self.room);
            while self.receive(place, &mut room, event.ended) && self.connections[place].generation == generation {}
            self.room = room;
        }
    }

    /// True if there may be more to read.
    fn receive(&mut self, place: usize, room: &mut [u8], ended: bool) -> bool {
        let Some(socket) = self.connections[place].socket() else { return false };
        let received = socket.receive(room);
        let now = now_ns();
        match received {
            Ok(None) => return false,
            Ok(Some(0)) => self.end_of_stream(place, now),
            Ok(Some(count)) => {
                self.measurement.tally.bytes_read += count as u64;
                self.take(place, &room[..count], now);
                return count == room.len() || ended;
            }
            Err(_) => self.broken(place),
        }
        false
    }

    pub(super) fn take(&mut self, place: usize, bytes: &[u8], now: u64) {
        let mut used = 0;
        let mut keep_alive = true;
        while used < bytes.len() {
            let connection = &mut self.connections[place];
            if connection.outstanding() == 0 || !keep_alive {
                return self.broken(place); // more than was asked for
            }
            let head_only = connection.batch.head_only(connection.answered);
            match connection.reader.feed(&bytes[used..], head_only) {
                Ok((count, answer)) => {
                    used += count;
                    if let Some(answer) = answer {
                        keep_alive = answer.keep_alive;
                        self.answered(place, answer, now);
                    }
                }
                Err(problem) => {
                    self.problem.get_or_insert(problem.to_string());
                    return self.broken(place);
                }
            }
        }
        if self.connections[place].is_busy() && self.connections[place].outstanding() == 0 {
            self.batch_done(place, keep_alive, now);
        } else if !keep_alive {
            self.broken(place);
        }
    }

    pub(super) fn answered(&mut self, place: usize, answer: Answer, now: u64) {
        let connection = &mut self.connections[place];
        if let Some(sample) = &mut self.sample {
            sample.answered(place, connection.answered, connection.number, answer.status);
        }
        connection.answered += 1;
        connection.failures = 0;
        let last = connection.answered == connection.batch.requests;
        let recorded = last || !self.plan.batch_latency;
        let (due_ns, sent_ns) = (connection.batch_due_ns, connection.sent_ns);
        let sender = connection.number;
        self.measurement.answered(&Answered {
            due_ns,
            sent_ns,
            now_ns: now,
            connection: sender,
            status: answer.status,
            recorded,
        });
        let captured = self.connections[place].reader.captured();
        if let (Some(script), Some(captured)) = (&self.script, captured)
            && self.failure.is_none()
            && let Err(problem) = script.response(answer.status, captured)
        {
            self.failure = Some(problem);
        }
    }

    pub(super) fn batch_done(&mut self, place: usize, keep_alive: bool, now: u64) {
        self.busy -= 1;
        let connection = &mut self.connections[place];
        self.measurement.connection_was_busy(connection.sent_ns, now);
        connection.become_idle();
        if keep_alive && connection.unwritten.is_empty() {
            self.next_request(place, now);
        } else {
            self.reopen_later(place);
        }
    }

    pub(super) fn end_of_stream(&mut self, place: usize, now: u64) {
        match self.connections[place].reader.end_of_stream() {
            Some(answer) => {
                self.answered(place, answer, now);
                if self.connections[place].outstanding() == 0 { self.batch_done(place, false, now) } else { self.broken(place) }
            }
            None => self.broken(place),
        }
    }

    /// The connection closed or spoke no HTTP where an answer, or nothing, was to come.
    pub(super) fn broken(&mut self, place: usize) {
        self.measurement.tally.errors.read += 1;
        self.lose(place);
    }

    pub(super) fn lose(&mut self, place: usize) {
        let connection = &self.connections[place];
        if connection.is_busy() {
            let outstanding = u64::from(connection.outstanding());
            self.measurement.tally.lost += outstanding;
            self.measurement.unanswered(connection.batch_due_ns, outstanding);
            self.measurement.connection_was_busy(connection.sent_ns, now_ns());
            self.busy -= 1;
        }
        self.reopen_later(place);
    }
}
