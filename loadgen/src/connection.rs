//! One serial connection: what it is doing, and which request is its next.

use crate::http::AnswerReader;
use crate::http::request::Batch;
use crate::schedule::{Poisson, Uniform};
use crate::socket::Socket;

#[derive(Debug)]
pub enum State {
    Closed,
    Connecting(Socket),
    /// Open, and nothing under way.
    Idle(Socket),
    /// Waiting for answers.
    Busy(Socket),
}

/// When the requests of one connection are due.
#[derive(Debug)]
pub enum Due {
    Uniform(Uniform),
    Poisson(Poisson),
    /// Closed loop: at once.
    Always,
}

#[derive(Debug)]
pub struct Connection {
    /// Its number k among all connections of the run.
    pub number: usize,
    pub state: State,
    /// Counts sockets, so that a late event of an old one is known for what it is.
    pub generation: u32,
    due: Due,
    /// When the next request is due, after the start of the run.
    pub due_ns: u64,
    /// Requests sent so far.
    requests: u64,
    /// Under way: due time (after the start) and send time (monotonic) of the batch, and how many of its answers have come.
    pub batch: Batch,
    pub batch_due_ns: u64,
    pub sent_ns: u64,
    pub answered: u32,
    pub reader: AnswerReader,
    /// What the kernel had no room for yet.
    pub unwritten: Vec<u8>,
    /// Attempts since the last answer; each doubles the wait for the next.
    pub failures: u32,
}

impl Connection {
    pub fn new(number: usize, due: Due, capture: bool) -> Self {
        let mut connection = Self {
            number,
            state: State::Closed,
            generation: 0,
            due,
            due_ns: 0,
            requests: 0,
            batch: Batch::default(),
            batch_due_ns: 0,
            sent_ns: 0,
            answered: 0,
            reader: AnswerReader::new(capture),
            unwritten: Vec::new(),
            failures: 0,
        };
        connection.due_ns = connection.next_due_ns();
        connection
    }

    fn next_due_ns(&self) -> u64 {
        match &self.due {
            Due::Uniform(uniform) => uniform.due_ns(self.number, self.requests),
            Due::Poisson(poisson) => poisson.due_ns(),
            Due::Always => 0,
        }
    }

    /// A batch has left: all its requests were due when the first was, and the next one is due after as many periods.
    pub fn sent(&mut self, batch: Batch, batch_due_ns: u64, sent_ns: u64) {
        self.requests += u64::from(batch.requests);
        if let Due::Poisson(poisson) = &mut self.due {
            (0..batch.requests).for_each(|_| poisson.advance());
        }
        self.due_ns = self.next_due_ns();
        (self.batch, self.batch_due_ns, self.sent_ns, self.answered) = (batch, batch_due_ns, sent_ns, 0);
    }

    /// Requests due before `end_ns` that were never sent.
    pub fn unsent(&mut self, end_ns: u64) -> u64 {
        match &mut self.due {
            Due::Uniform(uniform) => uniform.due_before(self.number, end_ns).saturating_sub(self.requests),
            Due::Poisson(poisson) => {
                let mut count = 0;
                while poisson.due_ns() < end_ns {
                    poisson.advance();
                    count += 1;
                }
                count
            }
            Due::Always => 0,
        }
    }

    pub fn socket(&self) -> Option<&Socket> {
        match &self.state {
            State::Closed => None,
            State::Connecting(socket) | State::Idle(socket) | State::Busy(socket) => Some(socket),
        }
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
            State::Connecting(socket) | State::Idle(socket) | State::Busy(socket) => State::Idle(socket),
        };
    }

    pub fn become_busy(&mut self) {
        if let State::Idle(socket) = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Busy(socket);
        }
    }

    /// Closes the socket and forgets what was under way.
    pub fn close(&mut self) {
        self.state = State::Closed;
        self.generation += 1;
        self.reader.reset();
        self.unwritten.clear();
    }
}
