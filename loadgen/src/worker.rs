//! One thread of the run: its connections, its script, its event loop.
//!
//! ```text
//! orders: Set* Get* Init → (reports: Initialized) → Connect → (Ready) → Go → event loop → (Finished) → Get*
//! → end
//! ```
//!
//! The loop sends what is due, waits for events until the next thing is due, and handles them; between two
//! events it looks whether something has become due meanwhile. A connection whose request became due while it
//! was busy sends it as soon as its answer has come.
//!
//! The worker joins what it holds (sockets, their events, buffers) to what knows what is to be done with
//! them, which is tested without sockets: the course of the run, the free connections, the waiting, the
//! measurement.

mod free;
mod messages;
mod opening;
mod reached;
mod receiving;
mod sending;
mod source;
mod timing;

pub use messages::{Links, Outcome, Report};
pub use opening::Opened;

use std::sync::mpsc::Receiver;

use crate::alternation::{AlternatingDue, Server, Turns};
use crate::args::{Arrivals, Dispatch, Spin};
use crate::clock::{self, now_ns};
use crate::connection::Connection;
use crate::course::Course;
use crate::due::Due;
use crate::endpoint::Endpoints;
use crate::epoll::{Epoll, Events};
use crate::error::Error;
use crate::errors::ErrorKind;
use crate::machine::Busily;
use crate::measurement::{Measurement, Window};
use crate::order::Order;
use crate::plan::{Alternate, Pacing, Plan};
use crate::sample::Sample;
use crate::schedule::Poisson;
use crate::script::WorkerState;
use crate::thread_use::{Absence, ThreadUse, UseLog};
use crate::tls::{CIPHER_BYTES, Tls};
use crate::uniform::Uniform;
use crate::verdict::IN_TIME_NS;
use crate::waiting::{Habits, Waiting};
use free::FreeConnections;
use opening::Opening;
use source::Source;

/// Sends in a row before answers get their turn.
const SENDS_IN_A_ROW: usize = 32;
/// A run that was called off, or failed, awaits answers for this long at most, whatever the timeout: as long
/// as by default. Who asks for an end has no minute to spare, and asking twice loses the result.
const CALLED_OFF_NS: u64 = 2_000_000_000;
const RECEIVE_BYTES: usize = 128 * 1024;

/// What is received is read into these, and taken before more is read.
struct Room {
    plain: Vec<u8>,
    /// For what comes encrypted; empty without https.
    cipher: Vec<u8>,
}

impl Room {
    fn new(has_tls: bool) -> Self {
        Self { plain: vec![0; RECEIVE_BYTES], cipher: vec![0; if has_tls { CIPHER_BYTES } else { 0 }] }
    }
}

pub struct Worker<'a> {
    plan: &'a Plan,
    links: Links<'a>,
    course: Course,
    epoll: Epoll,
    waiting: Waiting,
    connections: Vec<Connection<'a>>,
    opening: Opening,
    free: FreeConnections<'a>,
    source: Source<'a>,
    room: Room,
    /// What this thread found of requests and answers; of connections [`Opening`] knows it.
    measurement: Measurement,
    used: UseLog,
    absence: Absence,
}

impl<'a> Worker<'a> {
    pub fn new(
        plan: &'a Plan,
        endpoints: [Endpoints; 2],
        links: Links<'a>,
        busily: Busily,
        script: Option<WorkerState>,
    ) -> Result<Self, Error> {
        let thread = links.thread;
        let place = plan.part.place(thread);
        let source = Source::new(plan, place, script)?;
        let capture = source.script().is_some_and(WorkerState::wants_responses);
        let connections = connections(plan, thread, capture);
        let epoll_failed = |problem: std::io::Error| Error::Failed(format!("epoll: {problem}"));
        let mut epoll = Epoll::new().map_err(epoll_failed)?;
        let habits = Habits::measured(&mut epoll, plan, busily).map_err(epoll_failed)?;
        let mut measurement = Measurement::planned(plan.steps.as_ref(), plan.interval_ns);
        measurement.sample =
            (plan.sample > 0).then(|| Sample::new(place, plan.sample, plan.seed, connections.len()));
        Ok(Self {
            plan,
            links,
            course: Course::new(plan, thread),
            epoll,
            waiting: Waiting::new(habits, plan.spin == Spin::Auto),
            opening: Opening::new(plan, place, endpoints, plan.connections_total() / plan.threads + 1),
            free: FreeConnections::new(plan, thread, connections.len()),
            connections,
            source,
            room: Room::new(plan.has_tls()),
            measurement,
            used: UseLog::new(timing::used_by(now_ns(), 0), plan.warm_up_ns),
            absence: Absence::default(),
        })
    }

    /// The run: from `start_ns` until its end, and on until the answers under way have come or timed out.
    pub fn run(mut self, start_ns: u64, orders: &Receiver<Order>) -> (Outcome, Option<WorkerState>) {
        self.course.start(start_ns);
        let Plan { warm_up_ns, duration_ns, timeout_ns, slowest_count, slack_ns, .. } = *self.plan;
        let in_time_ns = IN_TIME_NS + slack_ns;
        let window = Window { start_ns, warm_up_ns, duration_ns, timeout_ns, in_time_ns };
        self.measurement.start(window, slowest_count);
        if let Some(Alternate { alternation, .. }) = &self.plan.alternate {
            self.measurement.tell_slices(alternation);
        }
        self.absence.has_looked(now_ns(), clock::thread_cpu_ns());
        self.start();

        let sending_ended_ns = loop {
            let mut now = now_ns();
            let mut called_off = self.course.is_done() || self.is_stopped();
            if now >= self.waiting.housekeeping_ns() {
                let came_ns = now;
                self.mind_absence(came_ns, self.waiting.housekeeping_ns());
                let any_is_free = || self.connections.iter().any(Connection::is_idle);
                if self.course.is_given_up(now, any_is_free) {
                    self.give_up(now);
                    break now;
                }
                // What is due leaves before: housekeeping is to make no request late, nor to count as part of
                // its service time.
                if now < self.course.end_ns() && !called_off {
                    now = self.send_due(SENDS_IN_A_ROW, now);
                }
                self.keep_house(now);
                self.has_kept_house(came_ns);
                called_off |= self.links.is_called_off() || matches!(orders.try_recv(), Ok(Order::Stop));
                now = now_ns();
            }
            if now >= self.course.end_ns() || called_off {
                break now.min(self.course.end_ns());
            }
            now = self.send_due(SENDS_IN_A_ROW, now);
            self.note_first_use(now);
            self.wait_and_handle(now);
        };
        self.note_absence_and_use_at_the_end();
        let used = self.used.since_start();
        let given_up_ns = self.finish(sending_ended_ns);

        let (reconnecting, opening_times, endpoints) = self.opening.finish();
        let measured = self.measurement.finish(given_up_ns);
        let thread_use = ThreadUse {
            connections: self.connections.len(),
            sent: measured.tally.sent,
            wall_ns: used.at_ns,
            cpu_ns: used.cpu_ns,
            spun_ns: used.spun_ns,
            habits: self.waiting.habits(),
            spin_given_up: self.waiting.has_given_up_spin(),
            waited_for_cpu_ns: used.waited_for_cpu_ns,
            away_ns: used.away_ns,
            away_at_end_ns: self.absence.at_end_ns().min(used.away_ns),
        };
        let (measured_from, measured_until) = self.used.measured();
        let outcome = Outcome {
            thread: self.links.thread,
            used_measured: thread_use.between(&measured_from, &measured_until),
            thread_use,
            used_by_steps: self.used.into_steps(self.plan.steps.as_ref()),
            measured,
            reconnecting,
            opening_times,
            endpoints,
            sent_for_ns: sending_ended_ns - start_ns.min(sending_ended_ns),
            failure: self.course.into_failure(),
        };
        (outcome, self.source.into_script())
    }

    /// The run ends for all threads: no other is to load a server for a result that is none.
    fn fail(&mut self, problem: Error) {
        self.course.fail(problem);
        self.links.call_off();
    }

    /// By its script: nothing leaves after the call that said so, not even what is due by then.
    #[inline]
    fn is_stopped(&self) -> bool {
        self.source.script().is_some_and(WorkerState::stopped)
    }

    /// Requests that are left were due, and will not be sent.
    fn give_up(&mut self, now: u64) {
        let left = self.course.give_up();
        self.measurement.tally.unsent += left;
        self.measurement.unanswered(now, left);
    }

    /// Every open connection that is free waits for its turn; in a closed loop none does, and the first
    /// requests leave at the start.
    fn start(&mut self) {
        let start_ns = self.course.start_ns();
        let mut now = start_ns.saturating_sub(1);
        if self.plan.pacing == Pacing::ClosedLoop {
            // A server may close what it was not asked over for long: that is opened again meanwhile.
            while now_ns() < start_ns {
                if self.links.is_called_off() {
                    return;
                }
                self.keep_house(now_ns());
                let until_ns = start_ns.min(self.waiting.housekeeping_ns());
                if let Ok(count) = self.epoll.wait_until(until_ns) {
                    (0..count).for_each(|index| self.on_event(self.epoll.event(index)));
                }
            }
            now = now_ns().max(start_ns);
            self.note_first_use(now);
            // It slept until then as it was to; what it comes later it was away.
            self.absence.has_looked(start_ns, clock::thread_cpu_ns());
        }
        self.waiting.has_looked(now);
        (0..self.connections.len()).for_each(|place| self.next_request(place, now));
    }

    /// Sends what is due on connections that were free at the end, then awaits answers up to the timeout, or
    /// less long if the run was called off.
    ///
    /// So whether a request is sent depends on the service and on the end, not on how late this thread came
    /// to it. Returns until when.
    fn finish(&mut self, sending_ended_ns: u64) -> u64 {
        if sending_ended_ns == self.course.end_ns() {
            self.send_due(usize::MAX, now_ns());
        }
        self.course.end();
        self.measurement.sending_ended(sending_ended_ns);
        self.opening.sending_ended(&self.connections, self.course.start_ns(), sending_ended_ns);
        self.await_answers();
        let now = now_ns();
        for connection in self.connections.iter().filter(|connection| connection.is_busy()) {
            let outstanding = u64::from(connection.outstanding());
            self.measurement.tally.in_flight_at_end += outstanding;
            self.measurement.unanswered(connection.batch_due_ns, outstanding);
            self.measurement.connection_was_busy(connection.server, connection.sent_ns, now);
            if now.saturating_sub(connection.sent_ns) > self.plan.timeout_ns {
                self.measurement.timed_out("no answer", connection.batch_due_ns, outstanding);
            }
        }
        let sent_for_ns = self.course.since_start_ns(sending_ended_ns);
        let start_ns = self.course.start_ns();
        let told = |due_ns, requests| self.measurement.unanswered(start_ns + due_ns, requests);
        let unsent = self.free.unsent(sent_for_ns, told);
        self.measurement.tally.unsent += unsent;
        for connection in &mut self.connections {
            let told = |due_ns, requests| self.measurement.unanswered(start_ns + due_ns, requests);
            let unsent = connection.unsent(sent_for_ns, told);
            self.measurement.tally.unsent += unsent;
        }
        self.connections.iter_mut().for_each(Connection::close);
        now
    }

    fn await_answers(&mut self) {
        let mut deadline_ns = now_ns() + self.plan.timeout_ns;
        let mut called_off = false;
        while self.course.awaits_answers() {
            let now = now_ns();
            if !called_off && self.links.is_called_off() {
                (called_off, deadline_ns) = (true, deadline_ns.min(now + CALLED_OFF_NS));
            }
            if now >= deadline_ns {
                break;
            }
            if now >= self.waiting.housekeeping_ns() {
                self.keep_house(now);
            }
            if let Ok(count) = self.epoll.wait_until(deadline_ns.min(self.waiting.housekeeping_ns())) {
                (0..count).for_each(|index| self.on_event(self.epoll.event(index)));
            }
        }
    }

    /// Something went wrong with this connection: it is its server's too, and that of its request if there is
    /// one.
    fn note_error(&mut self, place: usize, kind: ErrorKind) {
        let connection = &self.connections[place];
        let at_ns = if connection.is_busy() { connection.batch_due_ns } else { now_ns() };
        self.measurement.failed(kind, connection.server, at_ns);
    }
}

fn connections(plan: &Plan, thread: usize, capture: bool) -> Vec<Connection<'_>> {
    let due = |place: usize, server: Server| match (plan.dispatch, &plan.alternate) {
        (Dispatch::Any, _) => Due::OfThread,
        (Dispatch::Fixed, Some(Alternate { alternation, .. })) => {
            let paced = |rate_rps| AlternatingDue::new(alternation, server, rate_rps, plan.whole_connections);
            match plan.pacing.offered_rate_rps() {
                Some(rate_rps) => Due::Alternating(paced(rate_rps), place),
                None => Due::InTurns(Turns::new(alternation, server)),
            }
        }
        (Dispatch::Fixed, None) => due(plan, place),
    };
    let connection = |number: usize| {
        let (server, place) = (number / plan.connections, plan.part.place(number % plan.connections));
        let mut one = Connection::new(
            place + server * plan.whole_connections,
            server,
            due(place, server),
            capture,
            plan.tls[server].as_ref().map(Tls::new),
        );
        // So each part reaches all addresses, in whatever order it has them.
        one.endpoint = number % plan.connections;
        one
    };
    plan.connections_of(thread).map(connection).collect()
}

/// What is due in the series of this number, of those of all parts that share the rate.
fn due(plan: &Plan, number: usize) -> Due<'_> {
    let Pacing::ConstantThroughput { rate_rps, arrivals } = plan.pacing else { return Due::Always };
    let series = plan.series();
    match (arrivals, &plan.steps) {
        (Arrivals::Uniform, None) => Due::Uniform(Uniform::new(rate_rps, series, plan.duration_ns)),
        (Arrivals::Uniform, Some(steps)) => Due::Stepped(steps, series as u64),
        (Arrivals::Poisson, None) => {
            Due::Poisson(Poisson::new(rate_rps, series, number, plan.seed, plan.duration_ns))
        }
        (Arrivals::Poisson, Some(steps)) => Due::Poisson(Poisson::in_steps(steps, series, number, plan.seed)),
    }
}

fn token(place: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | place as u64
}
