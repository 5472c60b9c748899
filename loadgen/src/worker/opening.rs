//! Opening connections, and opening them again when [`crate::reconnecting::Retries`] says.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Error as IoError, ErrorKind as IoErrorKind};

use super::reached::Reached;
use super::{Worker, token};
use crate::clock::now_ns;
use crate::connection::{Connection, State};
use crate::endpoint::Endpoints;
use crate::epoll::{Events, WRITABLE};
use crate::errors::ErrorKind;
use crate::opening_times::OpeningTimes;
use crate::plan::Plan;
use crate::reconnecting::{FIRST_PER_TURN, Reconnecting, Retries, TURN_NS};
use crate::socket::Socket;

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

/// Where a thread opens its connections, those that it is opening or is to open again, and what it finds by
/// that. Touches no socket.
pub(super) struct Opening {
    /// Of the servers in turn; of one alone twice the same.
    endpoints: [Endpoints; 2],
    /// (time, place, generation): when to give up opening a connection, in the order of time; those that are
    /// open stay until they are the first.
    deadlines: VecDeque<(u64, usize, u32)>,
    retries: Retries,
    /// How many are being opened.
    pub(super) connecting: usize,
    /// The first reason why one could not be opened.
    problem: Option<String>,
    reached: Reached,
    reconnecting: Reconnecting,
    times: OpeningTimes,
}

impl Opening {
    /// Of thread number `thread` over all parts, with so many connections of its own.
    pub(super) fn new(plan: &Plan, thread: usize, endpoints: [Endpoints; 2], connections: usize) -> Self {
        Self {
            reached: Reached::new(&endpoints),
            endpoints,
            deadlines: VecDeque::with_capacity(connections),
            retries: Retries::new(plan.threads, plan.seed, thread),
            connecting: 0,
            problem: None,
            reconnecting: Reconnecting::default(),
            times: OpeningTimes::new(plan.has_tls()),
        }
    }

    /// A connection that is open now. `sending_since_ns`: when the run started, if it sends now: else nothing
    /// had to wait for this one, or its time until the end is counted already.
    fn has_opened(&mut self, connection: &mut Connection, sending_since_ns: Option<u64>, now: u64) {
        self.connecting -= 1;
        let endpoint = connection.endpoint % self.endpoints[connection.server].len();
        if connection.open_at.replace(endpoint) != Some(endpoint) {
            self.reached.count(connection.server, endpoint);
        }
        if let Some((closed_ns, start_ns)) = connection.closed_ns.take().zip(sending_since_ns) {
            self.reconnecting.reopened(closed_ns.max(start_ns), now, connection.pause_ns);
            // Had it been tried earlier, it might have been open earlier by as much.
            let was_away = connection.failures > 1;
            connection.own_late = connection.own_late.reopened(connection.pause_ns, was_away);
        }
    }

    /// The place of one that has been opening for longer than it may, each once.
    fn overdue(&mut self, connections: &[Connection], now: u64) -> Option<usize> {
        while let Some(&(give_up_ns, place, generation)) = self.deadlines.front() {
            let connection = &connections[place];
            let waits = connection.generation == generation && connection.is_opening();
            if waits && give_up_ns > now {
                return None;
            }
            self.deadlines.pop_front();
            if waits {
                return Some(place);
            }
        }
        None
    }

    /// Sending ended then, in a run that started then: those that are closed stay so.
    pub(super) fn sending_ended(&mut self, connections: &[Connection], start_ns: u64, at_ns: u64) {
        for closed_ns in connections.iter().filter_map(|connection| connection.closed_ns) {
            self.reconnecting.still_closed(closed_ns.max(start_ns), at_ns);
        }
    }

    /// What was found, and how many connections have been open at each endpoint.
    pub(super) fn finish(self) -> (Reconnecting, OpeningTimes, BTreeMap<String, u64>) {
        (self.reconnecting, self.times, self.reached.by_name(&self.endpoints))
    }
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
        let in_a_turn = (FIRST_PER_TURN / self.plan.threads).max(1);
        let (mut next, mut left, mut turn_ns) = (0, 0, 0);
        loop {
            let now = now_ns();
            if left == 0 && now >= turn_ns {
                (left, turn_ns) = (in_a_turn, now + TURN_NS);
            }
            while next < self.connections.len()
                && left > 0
                && self.opening.connecting < at_once(next - self.opening.connecting.min(next), in_a_turn)
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
            // What failed is tried again once before the run, perhaps at another address.
            let retry_ns = if self.opening.retries.has_first() { self.retry(now) } else { u64::MAX };
            let all_open = next == self.connections.len()
                && self.opening.connecting == 0
                && !self.opening.retries.has_first();
            if all_open || now >= deadline_ns || self.links.is_called_off() {
                let missing = self.connections.iter().filter(|connection| !connection.is_idle()).count();
                (next..self.connections.len()).for_each(|place| self.open(place));
                return Opened { missing, problem: self.opening.problem.take() };
            }
            let turn_is_next = next < self.connections.len() && left == 0;
            let until_ns = if turn_is_next { turn_ns } else { now + LOOK_UP_NS };
            if let Ok(count) = self.epoll.wait_until(until_ns.min(retry_ns).min(deadline_ns)) {
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
        let endpoints = &self.opening.endpoints[connection.server];
        let began_ns = now_ns();
        let socket = Socket::connect(&endpoints[connection.endpoint % endpoints.len()])?;
        self.epoll.add(&socket, WRITABLE, token(place, connection.generation))?;
        connection.state = State::Connecting(socket);
        connection.opening_ns = began_ns;
        self.opening.connecting += 1;
        let give_up_ns = began_ns + self.plan.timeout_ns;
        self.opening.deadlines.push_back((give_up_ns, place, connection.generation));
        self.waiting.keep_house_by(give_up_ns);
        Ok(())
    }

    /// The socket has connected; a TLS handshake follows, or the connection is open.
    pub(super) fn has_connected(&mut self, place: usize) {
        let now = now_ns();
        let connection = &mut self.connections[place];
        self.opening.times.connected(now - connection.opening_ns);
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
        match connection.shake(&mut self.room.cipher) {
            Ok(None) => self.look_again(place),
            Ok(Some(agreed)) => {
                self.opening.times.shook(now_ns() - connection.opening_ns, agreed.resumed, agreed.protocol);
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
        let now = now_ns();
        let connection = &mut self.connections[place];
        connection.become_idle();
        let start_ns = self.course.start_ns();
        let sending_since_ns = (start_ns <= now && !self.course.is_ending()).then_some(start_ns);
        self.opening.has_opened(connection, sending_since_ns, now);
        self.next_request(place, now);
    }

    pub(super) fn connect_failed(&mut self, place: usize, problem: &IoError) {
        self.measurement.tally.errors.count_system(ErrorKind::Connect, problem);
        self.note_error(place, ErrorKind::Connect);
        self.opening.problem.get_or_insert_with(|| problem.to_string());
        // Another of the server's addresses may be better.
        self.connections[place].endpoint += 1;
        self.reopen_later(place);
    }

    pub(super) fn reopen_later(&mut self, place: usize) {
        let now = now_ns();
        let connection = &mut self.connections[place];
        if connection.is_opening() {
            self.opening.connecting -= 1;
        }
        connection.close();
        connection.closed_ns.get_or_insert(now);
        let failures = connection.failures;
        connection.failures = failures.saturating_add(1);
        if self.course.is_ending() {
            return;
        }
        match self.opening.retries.put_off(place, failures, now) {
            Ok(()) => {
                connection.pause_ns = 0;
                self.open(place);
            }
            Err(retry_ns) => self.waiting.keep_house_by(retry_ns),
        }
    }

    /// Gives up what is being opened for too long, and opens again what has paused; returns when something of
    /// it is due next.
    pub(super) fn keep_opening(&mut self, now: u64) -> u64 {
        while let Some(place) = self.opening.overdue(&self.connections, now) {
            if !self.course.is_ending() {
                let is_handshaking = self.connections[place].is_handshaking();
                let what = if is_handshaking { "TLS handshake" } else { "connection" };
                self.connect_failed(place, &IoError::other(format!("no {what} within the timeout")));
            }
        }
        let retry_ns = self.retry(now);
        self.opening.deadlines.front().map_or(u64::MAX, |&(give_up_ns, ..)| give_up_ns).min(retry_ns)
    }

    /// Opens again what may be; returns when there is more to do.
    fn retry(&mut self, now: u64) -> u64 {
        loop {
            match self.opening.retries.next(now) {
                Ok(_) if self.course.is_ending() => {}
                Ok((place, pause_ns)) => {
                    self.connections[place].pause_ns = pause_ns;
                    self.open(place);
                }
                Err(later_ns) => return later_ns,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::due::Due;
    use crate::endpoint::Endpoint;
    use crate::lateness::OwnLateness;
    use crate::plan::tests::plan;

    #[test]
    fn as_long_as_an_attempt_was_put_off_its_connection_is_late_by_that_pause() {
        let plan = plan("-c1 -t1 -R1 http://h/");
        let endpoints: Endpoints = vec![Endpoint::Tcp(([127, 0, 0, 1], 80).into())].into();
        let mut opening = Opening::new(&plan, 0, [endpoints.clone(), endpoints], 1);
        let mut connection = Connection::new(0, 0, Due::Always, false, None);
        (opening.connecting, connection.closed_ns, connection.pause_ns) = (1, Some(100), 30);
        opening.has_opened(&mut connection, Some(0), 190);
        assert_eq!((connection.own_late, opening.connecting), (OwnLateness { fault_ns: 0, pause_ns: 30 }, 0));
        let (reconnecting, _, endpoints) = opening.finish();
        assert_eq!((reconnecting.closed_ns, reconnecting.own_pause_ns), (90, 30));
        assert_eq!(endpoints, [("127.0.0.1:80".to_owned(), 1)].into());
    }

    #[test]
    fn what_opens_before_the_start_or_behind_the_end_is_not_counted_as_opened_again() {
        let endpoints: Endpoints = vec![Endpoint::Tcp(([127, 0, 0, 1], 80).into())].into();
        let mut opening = Opening::new(&plan("-c1 -t1 -R1 http://h/"), 0, [endpoints.clone(), endpoints], 1);
        let mut connection = Connection::new(0, 0, Due::Always, false, None);
        (opening.connecting, connection.closed_ns) = (2, Some(100));
        opening.has_opened(&mut connection, None, 150);
        assert_eq!(connection.closed_ns, None);
        connection.closed_ns = Some(200);
        opening.sending_ended(std::slice::from_ref(&connection), 0, 300);
        opening.has_opened(&mut connection, None, 900);
        let (reconnecting, ..) = opening.finish();
        assert_eq!((reconnecting.closed_ns, reconnecting.reopened), (100, 0));
    }

    #[test]
    fn deadlines_of_what_is_open_or_is_opened_anew_are_dropped_and_each_other_is_told_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let endpoints: Endpoints = vec![endpoint.clone()].into();
        let mut opening = Opening::new(&plan("-c1 -t1 -R1 http://h/"), 0, [endpoints.clone(), endpoints], 4);
        let begin = |connection: &mut Connection| {
            connection.state = State::Connecting(Socket::connect(&endpoint).unwrap());
        };
        let mut connections: Vec<Connection> =
            (0..4).map(|place| Connection::new(place, 0, Due::Always, false, None)).collect();
        connections.iter_mut().for_each(begin);
        opening.deadlines = (0..4).map(|place| (10 + place as u64, place, 0)).collect();
        connections[0].become_idle();
        connections[1].close();
        begin(&mut connections[1]);
        // 0 is open, and 1 has a later deadline of its own.
        assert_eq!((opening.overdue(&connections, 11), opening.deadlines.len()), (None, 2));
        assert_eq!((opening.overdue(&connections, 12), opening.overdue(&connections, 12)), (Some(2), None));
        connections[3].close();
        assert_eq!((opening.overdue(&connections, 12), opening.deadlines.len()), (None, 0));
    }

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
            for _ in 0..FIRST_PER_TURN {
                if begun < connections && under_way.len() < at_once(opened, FIRST_PER_TURN) {
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
