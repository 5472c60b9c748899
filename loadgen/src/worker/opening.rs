//! Opening connections, and opening them again: at once the first time, then after growing pauses, until an answer has come.

use std::cmp::Reverse;
use std::io::Error as IoError;
use std::sync::atomic::Ordering;

use super::{Worker, token};
use crate::clock::now_ns;
use crate::connection::State;
use crate::epoll::WRITABLE;
use crate::errors::ErrorKind;
use crate::socket::Socket;

/// Connections that all threads together open in a turn, and how far turns are apart, so that listen queues (128 long in many
/// servers) do not overflow: a connection that found one full waits a second for its next try.
const OPENING_AT_ONCE: usize = 64;
const TURN_NS: u64 = 1_000_000;
/// How often the flag that ends a run is looked at meanwhile.
const LOOK_UP_NS: u64 = 100_000_000;
/// Wait before a connection is tried again, doubled with each failure.
const RETRY_NS: u64 = 10_000_000;
const RETRY_DOUBLINGS_MAX: u32 = 7;

impl Worker<'_> {
    /// Opens all connections before the schedule starts; gives up waiting after the timeout.
    pub fn open_all(&mut self) -> Option<String> {
        let deadline_ns = now_ns() + self.plan.timeout_ns;
        let in_a_turn = (OPENING_AT_ONCE / self.plan.threads).max(1);
        let (mut next, mut left, mut turn_ns) = (0, 0, 0);
        loop {
            let now = now_ns();
            if left == 0 && now >= turn_ns {
                (left, turn_ns) = (in_a_turn, now + TURN_NS);
            }
            while next < self.connections.len() && left > 0 && self.connecting < in_a_turn {
                self.open(next);
                next += 1;
                left -= 1;
            }
            let all_open = next == self.connections.len() && self.connecting == 0;
            if all_open || now >= deadline_ns || self.stop.load(Ordering::Relaxed) {
                (next..self.connections.len()).for_each(|place| self.open(place));
                return self.problem.take();
            }
            let turn_is_next = next < self.connections.len() && left == 0;
            let until_ns = if turn_is_next { turn_ns } else { now + LOOK_UP_NS };
            if let Ok(count) = self.epoll.wait_until(until_ns.min(deadline_ns)) {
                (0..count).for_each(|index| self.on_event(self.epoll.event(index)));
            }
        }
    }

    pub(super) fn open(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let token = token(place, connection.generation);
        let opened = Socket::connect(&self.address).and_then(|socket| {
            self.epoll.add(socket.fd(), WRITABLE, token)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                connection.state = State::Connecting(socket);
                self.connecting += 1;
                let generation = connection.generation;
                self.set_timer(self.plan.timeout_ns, place, generation);
            }
            Err(problem) => self.connect_failed(place, &problem),
        }
    }

    pub(super) fn connect_failed(&mut self, place: usize, problem: &IoError) {
        self.measurement.tally.errors.count_system(ErrorKind::Connect, problem);
        self.problem.get_or_insert_with(|| problem.to_string());
        self.reopen_later(place);
    }

    /// At once the first time, then after growing pauses, until an answer has come.
    pub(super) fn reopen_later(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if matches!(connection.state, State::Connecting(_)) {
            self.connecting -= 1;
        }
        connection.close();
        let pause_ns = match connection.failures {
            0 => 0,
            failures => RETRY_NS << (failures - 1).min(RETRY_DOUBLINGS_MAX),
        };
        connection.failures += 1;
        let generation = connection.generation;
        if self.ending {
            return;
        }
        if pause_ns == 0 { self.open(place) } else { self.set_timer(pause_ns, place, generation) }
    }

    fn set_timer(&mut self, after_ns: u64, place: usize, generation: u32) {
        let time_ns = now_ns() + after_ns;
        self.timers.push(Reverse((time_ns, place, generation)));
        self.housekeeping_ns = self.housekeeping_ns.min(time_ns);
    }

    pub(super) fn on_timer(&mut self, place: usize, generation: u32) {
        let connection = &self.connections[place];
        if connection.generation != generation || self.ending {
            return;
        }
        match connection.state {
            State::Closed => self.open(place),
            State::Connecting(_) => self.connect_failed(place, &IoError::other("no connection within the timeout")),
            State::Idle(_) | State::Busy(_) => {}
        }
    }
}
