//! One serial connection: what it is doing, and which request is its next.

use std::io;

use crate::agenda::Agenda;
use crate::alternation::Server;
use crate::due::{Due, DueRequests, SharedQueue};
use crate::http::AnswerReader;
use crate::http::request::Batch;
use crate::lateness::OwnLateness;
use crate::socket::{Received, Socket};
use crate::tls::{Agreed, Tls};
use crate::uniform::NEVER;

#[derive(Debug)]
pub enum State {
    Closed,
    Connecting(Socket),
    /// Connected, and agreeing on how to encrypt.
    Handshaking(Socket),
    /// Open, and nothing under way.
    Idle(Socket),
    /// Waiting for answers.
    Busy(Socket),
}

#[derive(Debug)]
pub struct Connection<'a> {
    /// Its number k among all connections of the run.
    pub number: usize,
    /// 1 for those to the second of two servers in turn.
    pub server: Server,
    /// Counts on with each failure to connect: modulo the endpoints of its server, the one that is tried.
    pub endpoint: usize,
    /// Of these the one where it was open last; none before it was open.
    pub open_at: Option<usize>,
    pub state: State,
    /// None without https.
    tls: Option<Box<Tls>>,
    /// When it began to connect, or to shake hands (monotonic).
    pub opening_ns: u64,
    /// Counts sockets, so that a late event of an old one is known for what it is.
    pub generation: u32,
    due: DueRequests<'a>,
    /// When the next request is due, after the start of the run; [`NEVER`] if none is left before its end.
    pub due_ns: u64,
    /// Stands on the agenda.
    listed: bool,
    /// Under way: due time (after the start) and send time (monotonic) of the batch, and how many of its
    /// answers have come.
    pub batch: Batch,
    pub batch_due_ns: u64,
    pub sent_ns: u64,
    pub answered: u32,
    /// How much of the last send's lateness was the generator's own.
    pub own_late: OwnLateness,
    pub reader: AnswerReader,
    /// What the kernel had no room for yet.
    unwritten: Vec<u8>,
    /// Attempts since the last answer; each makes the pause before the next longer.
    pub failures: u32,
    /// How long the latest attempt to open it again was put off.
    pub pause_ns: u64,
    /// Since when it has been without a socket that is open, if it once had one or was tried (monotonic).
    pub closed_ns: Option<u64>,
}

impl<'a> Connection<'a> {
    pub fn new(number: usize, server: Server, due: Due<'a>, capture: bool, tls: Option<Tls>) -> Self {
        let mut connection = Self {
            number,
            server,
            endpoint: number,
            open_at: None,
            state: State::Closed,
            tls: tls.map(Box::new),
            opening_ns: 0,
            generation: 0,
            due: DueRequests::new(number, due),
            due_ns: 0,
            listed: false,
            batch: Batch::default(),
            batch_due_ns: 0,
            sent_ns: 0,
            answered: 0,
            own_late: OwnLateness::default(),
            reader: AnswerReader::new(capture),
            unwritten: Vec::new(),
            failures: 0,
            pause_ns: 0,
            closed_ns: None,
        };
        connection.due_ns = connection.due.next_ns();
        connection
    }

    /// Stands on the agenda from now on, at `place`, until [`Connection::turn_has_come`].
    pub fn await_turn(&mut self, agenda: &mut Agenda, place: usize) {
        if !self.listed && self.due_ns != NEVER {
            agenda.push(self.due_ns, place);
            self.listed = true;
        }
    }

    /// In a closed loop, where a script may have the next request wait; it has not been asked yet.
    pub fn may_be_delayed(&self) -> bool {
        self.due.is_closed_loop() && self.due_ns == 0
    }

    /// The next request is due this long after now, or never if the run is over then.
    pub fn delay(&mut self, now_ns: u64, delay_ns: u64, end_ns: u64) {
        let due_ns = now_ns.saturating_add(delay_ns);
        self.due_ns = if due_ns < end_ns { due_ns } else { NEVER };
    }

    /// In a closed loop with two servers in turn: not before the next slice of its server.
    #[inline]
    pub fn await_slice(&mut self, now_ns: u64) {
        if self.due.takes_turns() && self.due_ns != NEVER {
            self.due_ns = self.due.in_turn_ns(self.due_ns.max(now_ns));
        }
    }

    /// See [`DueRequests::closed_due_ns`]; both after the start of the run.
    #[inline]
    pub fn closed_due_ns(&self, sent_ns: u64) -> u64 {
        self.due.closed_due_ns(self.due_ns, sent_ns)
    }

    #[inline]
    pub fn takes_turns(&self) -> bool {
        self.due.takes_turns()
    }

    /// Stands in its thread's queue from now on, until [`Connection::turn_has_come`].
    pub fn await_any(&mut self, queue: &mut SharedQueue<'_>, place: usize) {
        if !self.listed {
            queue.is_free(place);
            self.listed = true;
        }
    }

    pub fn turn_has_come(&mut self) {
        self.listed = false;
    }

    /// A batch has left: all its requests were due when the first was, and the next one is due after as many
    /// periods.
    pub fn sent(&mut self, batch: Batch, batch_due_ns: u64, sent_ns: u64) {
        self.due.advance(batch.requests);
        self.due_ns = self.due.next_ns();
        (self.batch, self.batch_due_ns, self.sent_ns, self.answered) = (batch, batch_due_ns, sent_ns, 0);
    }

    /// See [`DueRequests::request_number`].
    #[inline]
    pub fn request_number(&self) -> Option<u64> {
        self.due.request_number()
    }

    /// See [`DueRequests::unsent`].
    pub fn unsent(&mut self, end_ns: u64, each: impl FnMut(u64, u64)) -> u64 {
        self.due.unsent(end_ns, each)
    }

    pub fn socket(&self) -> Option<&Socket> {
        socket_of(&self.state)
    }

    /// Not open yet.
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting(_) | State::Handshaking(_))
    }

    pub fn is_handshaking(&self) -> bool {
        matches!(self.state, State::Handshaking(_))
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_))
    }

    pub fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(_))
    }

    /// Answers still to come.
    pub fn outstanding(&self) -> u32 {
        if self.is_busy() { self.batch.requests - self.answered } else { 0 }
    }

    pub fn become_idle(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => State::Closed,
            State::Connecting(socket)
            | State::Handshaking(socket)
            | State::Idle(socket)
            | State::Busy(socket) => State::Idle(socket),
        };
    }

    pub fn become_busy(&mut self) {
        if let State::Idle(socket) = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Busy(socket);
        }
    }

    /// The socket has connected. True if a handshake comes first.
    pub fn begin_tls(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        tls.begin()?;
        if let State::Connecting(socket) = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Handshaking(socket);
        }
        Ok(true)
    }

    /// Goes on with the handshake; what it has agreed on once it is done.
    pub fn shake(&mut self, cipher: &mut [u8]) -> io::Result<Option<Agreed>> {
        match (&self.state, &mut self.tls) {
            (State::Handshaking(socket), Some(tls)) => tls.shake(socket, cipher),
            _ => Ok(None),
        }
    }

    /// Sends a request on an idle connection; true if the kernel had room for all of it, else the rest waits.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let State::Idle(socket) = &self.state else { return Ok(true) };
        if let Some(tls) = &mut self.tls {
            return tls.send(socket, bytes);
        }
        let count = socket.send(bytes)?;
        if count < bytes.len() {
            self.unwritten.extend_from_slice(&bytes[count..]);
        }
        Ok(count == bytes.len())
    }

    /// Sends what the kernel had no room for; true if nothing of it is left.
    pub fn send_rest(&mut self) -> io::Result<bool> {
        let Some(socket) = socket_of(&self.state) else { return Ok(true) };
        if let Some(tls) = &mut self.tls {
            return tls.flush(socket);
        }
        let count = socket.send(&self.unwritten)?;
        self.unwritten.drain(..count);
        Ok(self.unwritten.is_empty())
    }

    /// Not all of the last request has gone to the kernel.
    #[inline]
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.has_unwritten())
    }

    /// `cipher`: room for what comes encrypted; [`crate::tls::Tls::receive`] says how much.
    #[inline]
    pub fn receive(&mut self, cipher: &mut [u8], room: &mut [u8]) -> io::Result<Received> {
        let Some(socket) = socket_of(&self.state) else { return Ok(Received::Nothing) };
        if let Some(tls) = &mut self.tls {
            return tls.receive(socket, cipher, room);
        }
        Ok(match socket.receive(room)? {
            None => Received::Nothing,
            Some(0) => Received::End,
            Some(count) => Received::Bytes { count, more: count == room.len() },
        })
    }

    /// The other side closed in a way that anybody between could have done.
    pub fn is_truncated(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_truncated())
    }

    /// Closes the socket and forgets what was under way.
    pub fn close(&mut self) {
        if let (Some(socket), Some(tls)) = (socket_of(&self.state), &mut self.tls) {
            tls.close(socket);
        }
        self.state = State::Closed;
        self.generation += 1;
        self.reader.reset();
        self.unwritten.clear();
    }
}

fn socket_of(state: &State) -> Option<&Socket> {
    match state {
        State::Closed => None,
        State::Connecting(socket)
        | State::Handshaking(socket)
        | State::Idle(socket)
        | State::Busy(socket) => Some(socket),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::uniform::Uniform;

    /// A worker that comes by at `looks`, the last at or behind the end, and sends what is due on connections
    /// that are free; an answer is there after `service_ns`. Returns the due times of what it sent, and how
    /// many requests were never sent.
    fn walk(
        rate_rps: f64,
        connections: usize,
        end_ns: u64,
        service_ns: u64,
        looks: &[u64],
    ) -> (Vec<u64>, u64) {
        let due = || Due::Uniform(Uniform::new(rate_rps, connections, end_ns));
        let mut all: Vec<Connection> =
            (0..connections).map(|number| Connection::new(number, 0, due(), false, None)).collect();
        let one = Batch::parse(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let (mut agenda, mut busy_until, mut sent) = (Agenda::default(), vec![None; connections], Vec::new());
        all.iter_mut().enumerate().for_each(|(place, connection)| connection.await_turn(&mut agenda, place));
        for &now in looks {
            for place in 0..connections {
                if busy_until[place].is_some_and(|until| until <= now) && now < end_ns {
                    busy_until[place] = None;
                    all[place].await_turn(&mut agenda, place);
                }
            }
            while let Some(place) = agenda.pop(now) {
                let connection = &mut all[place];
                connection.turn_has_come();
                assert!(connection.due_ns <= now, "sent before its time");
                sent.push(connection.due_ns);
                connection.sent(one.clone(), connection.due_ns, now);
                busy_until[place] = Some(now + service_ns);
            }
        }
        (sent, all.iter_mut().map(|connection| connection.unsent(end_ns, |_, _| {})).sum())
    }

    proptest! {
        #[test]
        fn what_was_sent_and_what_was_not_is_what_was_due_however_late_the_worker_comes(
            rate_rps in 0.5f64..5000.0,
            connections in 1usize..20,
            end_ns in 1u64..2_000_000_000,
            service_ns in 0u64..300_000_000,
            mut looks in prop::collection::vec(0u64..3_000_000_000, 1..50),
        ) {
            looks.push(end_ns);
            looks.sort_unstable();
            let (sent, unsent) = walk(rate_rps, connections, end_ns, service_ns, &looks);
            let is_due = |&place: &u64| (place as f64 * (1e9 / rate_rps)).round() < end_ns as f64;
            let due = (0u64..).take_while(is_due).count() as u64;
            prop_assert_eq!(sent.len() as u64 + unsent, due);
            prop_assert!(sent.iter().all(|&due_ns| due_ns < end_ns));
        }
    }

    #[test]
    fn each_request_that_was_never_sent_is_told_of_or_several_at_the_due_time_of_the_last() {
        let second = 1_000_000_000;
        for (rate_rps, told_max) in [(100.0, 100), (1e9, 10_000)] {
            let mut connection =
                Connection::new(0, 0, Due::Uniform(Uniform::new(rate_rps, 1, second)), false, None);
            let (mut last, mut told, mut count) = (None, 0, 0);
            let unsent = connection.unsent(second, |due_ns, requests| {
                assert!(last < Some(due_ns) && due_ns < second);
                (last, told, count) = (Some(due_ns), told + 1, count + requests);
            });
            assert_eq!((unsent, count), (rate_rps as u64, rate_rps as u64));
            assert!(told <= told_max, "{told}");
        }
    }

    #[test]
    fn a_worker_that_comes_after_the_end_sends_what_one_that_comes_in_time_would_have_sent() {
        let second = 1_000_000_000;
        let in_time: Vec<u64> = (0..=1000).map(|ms| ms * 1_000_000).collect();
        for late in [0, 1, 500_000_000] {
            // Ten connections, each free until its one request in this second.
            let (sent, unsent) = walk(10.0, 10, second, 2 * second, &[second + late]);
            assert_eq!((sent.clone(), unsent), walk(10.0, 10, second, 2 * second, &in_time), "late={late}");
            assert_eq!(
                (sent.len(), unsent),
                (10, 0),
                "the eleventh, due at the end itself, belongs to no run"
            );
        }
    }
}
