//! Receiving: events, answers, and connections that close or break.

use super::{Worker, token};
use crate::clock::now_ns;
use crate::connection::State;
use crate::epoll::{Event, ONCE, READABLE, WRITABLE};
use crate::errors::ErrorKind;
use crate::exchange::Answered;
use crate::http::{Answer, blank_bytes, shown};
use crate::socket::Received;
use crate::tls::is_alert;

/// Of a server that sends faster than it is read, so many rooms full are taken at a time.
const RECEIVES_IN_A_ROW: usize = 8;

impl Worker<'_> {
    pub(super) fn on_event(&mut self, event: Event) {
        let place = (event.token & u64::from(u32::MAX)) as usize;
        let connection = &mut self.connections[place];
        let generation = connection.generation;
        if event.token != token(place, generation) {
            return;
        }
        match &connection.state {
            State::Connecting(socket) => {
                return match socket.connected() {
                    Ok(()) => self.has_connected(place),
                    Err(problem) => self.connect_failed(place, &problem),
                };
            }
            State::Handshaking(_) => return self.shake(place),
            _ => {}
        }
        // First what has come: a server may answer, and close, before all of a request has been written.
        if event.readable {
            self.receive_all(place, event.ended);
        }
        if event.writable && self.connections[place].generation == generation {
            self.write_on(place);
        }
    }

    /// What has come, or as much of it as one connection may take of the thread's time before others get
    /// their turn.
    pub(super) fn receive_all(&mut self, place: usize, ended: bool) {
        let generation = self.connections[place].generation;
        let mut room = std::mem::take(&mut self.room.plain);
        let mut more = true;
        for _ in 0..RECEIVES_IN_A_ROW {
            more = self.receive(place, &mut room, ended) && self.connections[place].generation == generation;
            if !more {
                break;
            }
        }
        self.room.plain = room;
        if more {
            self.look_again(place);
        }
    }

    /// Arrivals are told once: asked for anew, what is still there is told again.
    pub(super) fn look_again(&self, place: usize) {
        let connection = &self.connections[place];
        let interest = if connection.has_unwritten() { READABLE | WRITABLE } else { READABLE };
        if let Some(socket) = connection.socket() {
            let _ = self.epoll.modify(socket, interest | ONCE, token(place, connection.generation));
        }
    }

    /// True if there may be more to read.
    fn receive(&mut self, place: usize, room: &mut [u8], ended: bool) -> bool {
        let received = self.connections[place].receive(&mut self.room.cipher, room);
        let now = now_ns();
        match received {
            Ok(Received::Nothing) => return false,
            // Some say why before they close: 408 Request Timeout.
            Ok(Received::Bytes { .. }) | Err(_) if self.waits_for_the_start(place, now) => {
                self.reopen_later(place);
            }
            Ok(Received::End) => self.end_of_stream(place, now),
            Ok(Received::Bytes { count, more }) => {
                self.measurement.tally.bytes_read += count as u64;
                self.take(place, &room[..count], now);
                return more || ended;
            }
            Err(problem) => {
                self.measurement.tally.errors.count_system(ErrorKind::Read, &problem);
                self.note_error(place, ErrorKind::Read);
                self.lose(place);
            }
        }
        false
    }

    /// Whoever closes a connection then takes nothing from the run, if it can be opened again: it was not
    /// asked yet.
    fn waits_for_the_start(&self, place: usize, now: u64) -> bool {
        self.connections[place].is_idle() && now < self.course.start_ns()
    }

    pub(super) fn take(&mut self, place: usize, bytes: &[u8], now: u64) {
        let mut used = 0;
        let mut keep_alive = true;
        while used < bytes.len() {
            let connection = &mut self.connections[place];
            if connection.outstanding() == 0 || !keep_alive {
                let rest = &bytes[used..];
                if blank_bytes(rest) == rest.len() {
                    break; // some servers end a body with a blank line
                }
                return self.broken(place, "more than was asked for", &shown(rest));
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
                Err(_) if is_alert(&bytes[used..]) => {
                    return self.broken(place, "the server speaks TLS on this port: use https://", "");
                }
                Err(problem) => {
                    return self.broken(place, problem.rule, &problem.seen);
                }
            }
        }
        if self.connections[place].is_busy() && self.connections[place].outstanding() == 0 {
            self.batch_done(place, keep_alive, now);
        } else if !keep_alive {
            self.broken(place, "answer that closes before the last of a batch", "");
        }
    }

    pub(super) fn answered(&mut self, place: usize, answer: Answer, now: u64) {
        let connection = &mut self.connections[place];
        if let Some(sample) = &mut self.measurement.sample {
            sample.answered(place, connection.answered, connection.number, answer.status);
        }
        connection.answered += 1;
        connection.failures = 0;
        self.course.answered(now);
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
        if let (Some(script), Some(captured)) = (self.source.script(), captured)
            && !self.course.has_failed()
            && let Err(problem) = script.response(answer.status, captured)
        {
            self.fail(problem);
        }
    }

    pub(super) fn batch_done(&mut self, place: usize, keep_alive: bool, now: u64) {
        self.course.is_free();
        let connection = &mut self.connections[place];
        self.measurement.connection_was_busy(connection.server, connection.sent_ns, now);
        connection.become_idle();
        if keep_alive && !connection.has_unwritten() {
            self.next_request(place, now);
        } else {
            self.reopen_later(place);
        }
    }

    fn end_of_stream(&mut self, place: usize, now: u64) {
        let truncated = self.connections[place].is_truncated();
        if !truncated && self.waits_for_the_start(place, now) {
            return self.reopen_later(place);
        }
        let connection = &mut self.connections[place];
        let Some(answer) = (if truncated { None } else { connection.reader.end_of_stream() }) else {
            let why = match (connection.is_busy(), connection.reader.in_answer()) {
                (_, true) => "closed in the middle of an answer",
                (true, false) => "closed before an answer",
                (false, false) => "closed while nothing was asked for",
            };
            let how = if truncated { ", without TLS's close_notify" } else { "" };
            return self.broken(place, &format!("{why}{how}"), "");
        };
        self.answered(place, answer, now);
        if self.connections[place].outstanding() == 0 {
            self.batch_done(place, false, now);
        } else {
            self.broken(place, "closed before an answer", "");
        }
    }

    /// The connection closed or spoke no HTTP where an answer, or nothing, was to come.
    fn broken(&mut self, place: usize, why: &str, seen: &str) {
        self.measurement.tally.errors.count(ErrorKind::Read, why, seen, 1);
        self.note_error(place, ErrorKind::Read);
        self.lose(place);
    }

    pub(super) fn lose(&mut self, place: usize) {
        let connection = &self.connections[place];
        if connection.is_busy() {
            let (now, outstanding) = (now_ns(), u64::from(connection.outstanding()));
            let (due_ns, sent_ns, server) = (connection.batch_due_ns, connection.sent_ns, connection.server);
            self.measurement.tally.lost += outstanding;
            self.measurement.unanswered(due_ns, outstanding);
            self.measurement.connection_was_busy(server, sent_ns, now);
            if now.saturating_sub(sent_ns) > self.plan.timeout_ns {
                self.measurement.timed_out("lost after the timeout", due_ns, outstanding);
            }
            self.course.is_free();
        }
        self.reopen_later(place);
    }
}
