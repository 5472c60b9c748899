//! Opening connections, and opening them again: at once the first time, then after pauses, until an answer
//! has come.

use std::cmp::Reverse;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::sync::atomic::Ordering;

use super::{Worker, token};
use crate::clock::now_ns;
use crate::connection::State;
use crate::epoll::WRITABLE;
use crate::errors::ErrorKind;
use crate::reconnecting::{ATTEMPTS_PER_TURN, pause_ns};
use crate::socket::Socket;

/// Connections that all threads together open in a turn, and how far turns are apart, so that listen queues
/// (128 long in many servers) do not overflow: a connection that found one full waits a second for its next
/// try.
const OPENING_AT_ONCE: usize = 64;
const TURN_NS: u64 = 1_000_000;
/// How often the flag that ends a run is looked at meanwhile.
const LOOK_UP_NS: u64 = 100_000_000;

/// What became of opening all connections of a thread.
#[derive(Debug, Default)]
pub struct Opened {
    /// Connections that are not open.
    pub missing: usize,
    /// The first reason why one could not be opened.
    pub problem: Option<String>,
}

/// Connections that may be under way at once: as many as are open already, so that they double with each
/// round trip and a server far away is no reason to give up, while one whose queue is full is not flooded.
fn at_once(opened: usize, in_a_turn: usize) -> usize {
    opened.max(in_a_turn)
}

impl Worker<'_> {
    /// Opens all connections before the schedule starts; gives up waiting after the timeout.
    pub fn open_all(&mut self) -> Opened {
        let deadline_ns = now_ns() + self.plan.timeout_ns;
        let in_a_turn = (OPENING_AT_ONCE / self.plan.threads).max(1);
        let (mut next, mut left, mut turn_ns) = (0, 0, 0);
        loop {
            let now = now_ns();
            if left == 0 && now >= turn_ns {
                (left, turn_ns) = (in_a_turn, now + TURN_NS);
            }
            while next < self.connections.len()
                && left > 0
                && self.connecting < at_once(next - self.connecting.min(next), in_a_turn)
            {
                match self.begin_to_open(next) {
                    // A Unix socket whose queue is full; it is looked at again in the next turn.
                    Err(problem) if problem.kind() == IoErrorKind::WouldBlock => {
                        left = 0;
                        break;
                    }
                    Err(problem) => self.connect_failed(next, &problem),
                    Ok(()) => {}
                }
                next += 1;
                left -= 1;
            }
            let all_open = next == self.connections.len() && self.connecting == 0;
            if all_open || now >= deadline_ns || self.stop.load(Ordering::Relaxed) {
                let missing = self.connections.iter().filter(|connection| !connection.is_idle()).count();
                (next..self.connections.len()).for_each(|place| self.open(place));
                return Opened { missing, problem: self.problem.take() };
            }
            let turn_is_next = next < self.connections.len() && left == 0;
            let until_ns = if turn_is_next { turn_ns } else { now + LOOK_UP_NS };
            if let Ok(count) = self.epoll.wait_until(until_ns.min(deadline_ns)) {
                (0..count).for_each(|index| self.on_event(self.epoll.event(index)));
            }
        }
    }

    pub(super) fn open(&mut self, place: usize) {
        if let Err(problem) = self.begin_to_open(place) {
            self.connect_failed(place, &problem);
        }
    }

    fn begin_to_open(&mut self, place: usize) -> Result<(), IoError> {
        let connection = &mut self.connections[place];
        let endpoints = &self.endpoints[connection.server];
        let began_ns = now_ns();
        let socket = Socket::connect(&endpoints[connection.endpoint % endpoints.len()])?;
        self.epoll.add(&socket, WRITABLE, token(place, connection.generation))?;
        connection.state = State::Connecting(socket);
        connection.opening_ns = began_ns;
        self.connecting += 1;
        let give_up_ns = began_ns + self.plan.timeout_ns;
        self.opening.push_back((give_up_ns, place, connection.generation));
        self.housekeeping_ns = self.housekeeping_ns.min(give_up_ns);
        Ok(())
    }

    /// The socket has connected; a TLS handshake follows, or the connection is open.
    pub(super) fn has_connected(&mut self, place: usize) {
        let now = now_ns();
        let connection = &mut self.connections[place];
        self.opening_times.connected(now - connection.opening_ns);
        connection.opening_ns = now;
        match connection.begin_tls() {
            Ok(true) => self.shake(place),
            Ok(false) => {
                self.look_again(place);
                self.has_opened(place);
            }
            Err(problem) => self.connect_failed(place, &problem),
        }
    }

    /// Goes on with a handshake; when it is done the connection is open.
    pub(super) fn shake(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        match connection.shake(&mut self.cipher) {
            Ok(None) => self.look_again(place),
            Ok(Some(agreed)) => {
                self.opening_times.shook(now_ns() - connection.opening_ns, agreed.resumed, agreed.protocol);
                self.look_again(place);
                self.has_opened(place);
                // A server that spoke first has been read already, so that the kernel will not tell of it.
                self.receive_all(place, false);
            }
            Err(problem) => self.connect_failed(place, &problem),
        }
    }

    /// The connection is open; its next request may leave.
    pub(super) fn has_opened(&mut self, place: usize) {
        self.connecting -= 1;
        let now = now_ns();
        let connection = &mut self.connections[place];
        connection.become_idle();
        let endpoint = connection.endpoint % self.endpoints[connection.server].len();
        if connection.open_at.replace(endpoint) != Some(endpoint) {
            self.reached.count(connection.server, endpoint);
        }
        if let Some(closed_ns) = connection.closed_ns.take() {
            self.reconnecting.reopened(closed_ns.max(self.start_ns), now, connection.pause_ns);
            // Had it been tried earlier, it might have been open earlier by as much.
            connection.own_late_ns = connection.own_late_ns.max(connection.pause_ns);
        }
        self.next_request(place, now);
    }

    pub(super) fn connect_failed(&mut self, place: usize, problem: &IoError) {
        self.measurement.tally.errors.count_system(ErrorKind::Connect, problem);
        self.note_error(place, ErrorKind::Connect);
        self.problem.get_or_insert_with(|| problem.to_string());
        // Another of the server's addresses may be better.
        self.connections[place].endpoint += 1;
        self.reopen_later(place);
    }

    /// At once the first time, then after pauses, until an answer has come.
    pub(super) fn reopen_later(&mut self, place: usize) {
        let now = now_ns();
        let connection = &mut self.connections[place];
        if connection.is_opening() {
            self.connecting -= 1;
        }
        connection.close();
        connection.closed_ns.get_or_insert(now);
        connection.pause_ns = pause_ns(connection.failures, self.random.f64());
        connection.failures = connection.failures.saturating_add(1);
        if self.ending {
            return;
        }
        if connection.pause_ns == 0 {
            return self.open(place);
        }
        let retry_ns = now + connection.pause_ns;
        self.retries.push(Reverse((retry_ns, place)));
        self.housekeeping_ns = self.housekeeping_ns.min(retry_ns);
    }

    /// Gives up what is being opened for too long, and opens again what has paused; returns when something of
    /// it is due next.
    pub(super) fn keep_opening(&mut self, now: u64) -> u64 {
        while let Some(&(give_up_ns, place, generation)) = self.opening.front() {
            let connection = &self.connections[place];
            let waits = connection.generation == generation && connection.is_opening();
            if waits && give_up_ns > now {
                break;
            }
            self.opening.pop_front();
            if waits && !self.ending {
                let what = if connection.is_handshaking() { "TLS handshake" } else { "connection" };
                self.connect_failed(place, &IoError::other(format!("no {what} within the timeout")));
            }
        }
        let mut next_ns = self.opening.front().map_or(u64::MAX, |&(give_up_ns, ..)| give_up_ns);
        while let Some(&Reverse((retry_ns, place))) = self.retries.peek() {
            if retry_ns > now {
                next_ns = next_ns.min(retry_ns);
                break;
            }
            if let Err(later_ns) = self.retry_turn.take(now, ATTEMPTS_PER_TURN / self.plan.threads as u32) {
                next_ns = next_ns.min(later_ns);
                break;
            }
            self.retries.pop();
            if !self.ending {
                self.open(place);
            }
        }
        next_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When all are open, where each takes a round trip and turns are not what limits.
    fn opened_after(connections: usize, round_trip_ms: u64) -> u64 {
        let (mut under_way, mut begun, mut opened) = (std::collections::VecDeque::new(), 0, 0);
        for now_ms in 0.. {
            while under_way.front().is_some_and(|&done_ms| done_ms <= now_ms) {
                under_way.pop_front();
                opened += 1;
            }
            if opened == connections {
                return now_ms;
            }
            for _ in 0..OPENING_AT_ONCE {
                if begun < connections && under_way.len() < at_once(opened, OPENING_AT_ONCE) {
                    under_way.push_back(now_ms + round_trip_ms);
                    begun += 1;
                }
            }
        }
        unreachable!("the loop ends when all are open")
    }

    #[test]
    fn ten_thousand_connections_over_a_tenth_of_a_second_are_open_within_the_usual_timeout() {
        let ms = opened_after(10_000, 100);
        assert!((900..2000).contains(&ms), "{ms} ms");
        assert!(opened_after(10_000, 1) < 400);
    }
}
