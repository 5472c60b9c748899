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

mod messages;
mod opening;
mod reached;
mod receiving;
mod sending;
mod timing;

pub use messages::{Links, Outcome, Report};
pub use opening::Opened;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use crate::agenda::Agenda;
use crate::alternation::{AlternatingDue, Server, Turns};
use crate::args::{Arrivals, Dispatch};
use crate::clock::now_ns;
use crate::connection::Connection;
use crate::due::{Due, DueRequests, SharedQueue};
use crate::endpoint::Endpoints;
use crate::epoll::Epoll;
use crate::error::Error;
use crate::errors::ErrorKind;
use crate::http::request::Batch;
use crate::live::Board;
use crate::machine::Busily;
use crate::measurement::{Measurement, Window};
use crate::order::Order;
use crate::plan::{Alternate, Pacing, Plan};
use crate::requests::{Request, Rotation};
use crate::sample::Sample;
use crate::schedule::Poisson;
use crate::script::WorkerState;
use crate::thread_use::UsedBy;
use crate::tls::{CIPHER_BYTES, Tls};
use crate::uniform::Uniform;
use crate::verdict::IN_TIME_NS;
use crate::waiting::{Ahead, Crowding, Habits, Soon};
use opening::Opening;
use timing::used_by;

/// Sends in a row before answers get their turn.
const SENDS_IN_A_ROW: usize = 32;
/// How often it is looked at meanwhile whether a run that has not started yet is called off.
const LOOK_UP_NS: u64 = 100_000_000;
/// A run that was called off awaits answers for this long at most, whatever the timeout: as long as by
/// default. Who asks for an end has no minute to spare, and asking twice loses the result.
const CALLED_OFF_NS: u64 = 2_000_000_000;
const RECEIVE_BYTES: usize = 128 * 1024;

/// Where requests come from.
struct Source<'a> {
    script: Option<WorkerState>,
    /// The requests that are sent in turn to each server, unless the script makes each.
    fixed: Option<[Rotation<'a>; 2]>,
    /// The latest string of several requests that the script made; empty if there was none.
    latest_batch: (Vec<u8>, Batch),
}

impl<'a> Source<'a> {
    /// Of the thread at this place among those of all parts.
    fn new(plan: &'a Plan, place: usize, script: Option<WorkerState>) -> Result<Self, Error> {
        let fixed = match &script {
            Some(script) if script.makes_requests() => None,
            Some(script) => {
                let request = vec![Request::new(script.default_request()?)?];
                Some([(); 2].map(|()| Rotation::new(request.clone(), 0, 1)))
            }
            None => Some(
                [0, 1]
                    .map(|server| Rotation::new(&plan.requests[server], place, plan.threads * plan.part.of)),
            ),
        };
        Ok(Self { script, fixed, latest_batch: (Vec::new(), Batch::default()) })
    }
}

pub struct Worker<'a> {
    plan: &'a Plan,
    thread: usize,
    reports: &'a Sender<(usize, Report)>,
    stop: &'a AtomicBool,
    /// Where the line on a terminal is made from; none without one.
    board: Option<&'a Board>,
    habits: Habits,
    soon: Soon,
    ahead: Ahead,
    /// How the thread meant to wait when the run began.
    spin_at_first_ns: u64,
    crowding: Crowding,
    epoll: Epoll,
    connections: Vec<Connection<'a>>,
    /// Free connections whose next request is to come; in a closed loop there are none.
    agenda: Agenda,
    /// What is due, if any free connection may send it; the agenda is empty then.
    queue: Option<SharedQueue<'a>>,
    source: Source<'a>,
    room: Vec<u8>,
    /// For what comes encrypted; empty without https.
    cipher: Vec<u8>,
    opening: Opening,
    /// What this thread found of requests and answers; of connections [`Opening`] knows it.
    measurement: Measurement,
    /// None unless asked for.
    sample: Option<Sample>,
    /// When something of `timing` is to be done next.
    housekeeping_ns: u64,
    start_ns: u64,
    /// Connections that wait for answers.
    busy: usize,
    last_sent_ns: u64,
    /// When events were last asked for and came: an answer among them had come by then.
    looked_ns: u64,
    /// Nothing new is sent, and nothing opened again.
    ending: bool,
    spun_ns: u64,
    /// In a closed loop that ends with a number of requests: those left of this thread's.
    requests_left: Option<u64>,
    /// Since when an answer is awaited: the latest came, the run began, or a connection was still free.
    awaited_ns: u64,
    /// What it had used when the schedule started; none before that.
    used_from: Option<UsedBy>,
    /// See [`Outcome::used`].
    used: Vec<UsedBy>,
    failure: Option<Error>,
}

impl<'a> Worker<'a> {
    pub fn new(
        plan: &'a Plan,
        thread: usize,
        endpoints: [Endpoints; 2],
        links: Links<'a>,
        busily: Busily,
        script: Option<WorkerState>,
    ) -> Result<Self, Error> {
        let place = plan.part.place(thread);
        let source = Source::new(plan, place, script)?;
        let capture = source.script.as_ref().is_some_and(WorkerState::wants_responses);
        let connections = connections(plan, thread, capture);
        let epoll_failed = |problem: std::io::Error| Error::Failed(format!("epoll: {problem}"));
        let mut epoll = Epoll::new().map_err(epoll_failed)?;
        let habits = Habits::measured(&mut epoll, plan, busily).map_err(epoll_failed)?;
        Ok(Self {
            plan,
            thread,
            reports: links.reports,
            stop: links.stop,
            board: links.board,
            habits,
            soon: Soon::default(),
            ahead: Ahead::default(),
            spin_at_first_ns: habits.spin_ns,
            crowding: Crowding::default(),
            epoll,
            agenda: Agenda::with_room(connections.len()),
            sample: (plan.sample > 0).then(|| Sample::new(place, plan.sample, plan.seed, connections.len())),
            queue: queue(plan, thread),
            connections,
            source,
            room: vec![0; RECEIVE_BYTES],
            cipher: vec![0; if plan.has_tls() { CIPHER_BYTES } else { 0 }],
            opening: Opening::new(plan, place, endpoints, plan.connections_total() / plan.threads + 1),
            measurement: Measurement::of_steps(plan.steps.as_ref()),
            housekeeping_ns: 0,
            start_ns: u64::MAX / 2,
            busy: 0,
            last_sent_ns: 0,
            looked_ns: u64::MAX,
            ending: false,
            spun_ns: 0,
            requests_left: plan.requests_of(thread),
            awaited_ns: 0,
            used_from: None,
            used: Vec::new(),
            failure: None,
        })
    }

    /// The run: from `start_ns` until its end, and on until the answers under way have come or timed out.
    pub fn run(mut self, start_ns: u64, orders: &Receiver<Order>) -> (Outcome, Option<WorkerState>) {
        (self.start_ns, self.awaited_ns) = (start_ns, start_ns);
        let Plan { warm_up_ns, duration_ns, timeout_ns, slowest_count, slack_ns, .. } = *self.plan;
        let in_time_ns = IN_TIME_NS + slack_ns;
        let window = Window { start_ns, warm_up_ns, duration_ns, timeout_ns, in_time_ns };
        self.measurement.start(window, slowest_count);
        if let Some(Alternate { alternation, .. }) = &self.plan.alternate {
            self.measurement.tell_slices(alternation);
        }
        self.start();

        let sending_ended_ns = loop {
            let mut now = now_ns();
            let mut called_off = self.failure.is_some()
                || self.all_answered()
                || self.source.script.as_ref().is_some_and(WorkerState::stopped);
            if now >= self.housekeeping_ns {
                if self.is_given_up(now) {
                    self.give_up(now);
                    break now;
                }
                // What is due leaves before: housekeeping is to make no request late, nor to count as part of
                // its service time.
                if now < self.end_ns() && !called_off {
                    now = self.send_due(SENDS_IN_A_ROW, now);
                }
                self.keep_house(now);
                called_off |=
                    self.stop.load(Ordering::Relaxed) || matches!(orders.try_recv(), Ok(Order::Stop));
                now = now_ns();
            }
            if now >= self.end_ns() || called_off {
                break now.min(self.end_ns());
            }
            now = self.send_due(SENDS_IN_A_ROW, now);
            self.note_first_use(now);
            self.wait_and_handle(now);
        };
        let used_until = used_by(now_ns(), self.spun_ns);
        let used_from = self.used_from.unwrap_or(used_until);
        let waited_for_cpu = used_until.waited_for_cpu_ns.zip(used_from.waited_for_cpu_ns);
        self.note_last_use();
        let given_up_ns = self.finish(sending_ended_ns);

        let (reconnecting, opening_times, endpoints) = self.opening.finish();
        let outcome = Outcome {
            thread: self.thread,
            connections: self.connections.len(),
            measured: self.measurement.finish(given_up_ns),
            reconnecting,
            opening_times,
            endpoints,
            sample: self.sample,
            used: self.used,
            sent_for_ns: sending_ended_ns - start_ns.min(sending_ended_ns),
            wall_ns: used_until.at_ns.saturating_sub(start_ns),
            cpu_ns: used_until.cpu_ns - used_from.cpu_ns,
            spun_ns: used_until.spun_ns - used_from.spun_ns,
            habits: self.habits,
            spin_given_up: self.habits.spin_ns < self.spin_at_first_ns,
            waited_for_cpu_ns: waited_for_cpu.map(|(until_ns, from_ns)| until_ns - from_ns),
            failure: self.failure,
        };
        (outcome, self.source.script)
    }

    /// A closed loop lasts until the last answer to its number of requests.
    fn all_answered(&self) -> bool {
        self.requests_left == Some(0) && self.busy == 0
    }

    /// No answer has come for the timeout, and no connection has been free to ask: a run that only answers
    /// can end would last for ever.
    fn is_given_up(&mut self, now: u64) -> bool {
        if !self.plan.ends_by_answers() {
            return false;
        }
        // A script may have it wait for longer than the timeout; nobody owes an answer meanwhile.
        if self.requests_left != Some(0) && self.connections.iter().any(Connection::is_idle) {
            self.awaited_ns = self.awaited_ns.max(now);
        }
        now.saturating_sub(self.awaited_ns) >= self.plan.timeout_ns
    }

    /// Requests that are left were due, and will not be sent.
    fn give_up(&mut self, now: u64) {
        let left = self.requests_left.take().unwrap_or(0);
        self.requests_left = Some(0);
        self.measurement.tally.unsent += left;
        self.measurement.unanswered(now, left);
    }

    /// Puts every open connection on the agenda; in a closed loop, which has none, the first requests leave
    /// at the start.
    fn start(&mut self) {
        let mut now = self.start_ns.saturating_sub(1);
        if self.plan.pacing == Pacing::ClosedLoop {
            while now_ns() < self.start_ns {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let left_ns = self.start_ns.saturating_sub(now_ns());
                std::thread::sleep(std::time::Duration::from_nanos(left_ns.min(LOOK_UP_NS)));
            }
            now = now_ns().max(self.start_ns);
            self.note_first_use(now);
        }
        self.looked_ns = now;
        (0..self.connections.len()).for_each(|place| self.next_request(place, now));
    }

    /// Sends what is due on connections that were free at the end, then awaits answers up to the timeout, or
    /// less long if the run was called off.
    ///
    /// So whether a request is sent depends on the service and on the end, not on how late this thread came
    /// to it. Returns until when.
    fn finish(&mut self, sending_ended_ns: u64) -> u64 {
        if sending_ended_ns == self.end_ns() {
            self.send_due(usize::MAX, now_ns());
        }
        self.ending = true;
        let sent_for_ns = sending_ended_ns.saturating_sub(self.start_ns);
        self.measurement.sending_ended(sending_ended_ns);
        self.opening.sending_ended(&self.connections, self.start_ns, sending_ended_ns);

        let mut deadline_ns = now_ns() + self.plan.timeout_ns;
        let mut called_off = false;
        while self.busy > 0 {
            let now = now_ns();
            if !called_off && self.stop.load(Ordering::Relaxed) {
                (called_off, deadline_ns) = (true, deadline_ns.min(now + CALLED_OFF_NS));
            }
            if now >= deadline_ns {
                break;
            }
            if now >= self.housekeeping_ns {
                self.keep_house(now);
            }
            if let Ok(count) = self.epoll.wait_until(deadline_ns.min(self.housekeeping_ns)) {
                (0..count).for_each(|index| self.on_event(self.epoll.event(index)));
            }
        }
        let now = now_ns();
        for connection in self.connections.iter().filter(|connection| connection.is_busy()) {
            let outstanding = u64::from(connection.outstanding());
            self.measurement.tally.in_flight_at_end += outstanding;
            self.measurement.unanswered(connection.batch_due_ns, outstanding);
            self.measurement.connection_was_busy(connection.sent_ns, now);
            if now.saturating_sub(connection.sent_ns) > self.plan.timeout_ns {
                self.measurement.timed_out("no answer", connection.batch_due_ns, outstanding);
            }
        }
        if let Some(queue) = &mut self.queue {
            let told = |due_ns, requests| self.measurement.unanswered(self.start_ns + due_ns, requests);
            self.measurement.tally.unsent += queue.requests.unsent(sent_for_ns, told);
        }
        for connection in &mut self.connections {
            let told = |due_ns, requests| self.measurement.unanswered(self.start_ns + due_ns, requests);
            let unsent = connection.unsent(sent_for_ns, told);
            self.measurement.tally.unsent += unsent;
        }
        self.connections.iter_mut().for_each(Connection::close);
        now
    }

    /// Something went wrong with this connection: it is its server's too, and that of its request if there is
    /// one.
    fn note_error(&mut self, place: usize, kind: ErrorKind) {
        let connection = &self.connections[place];
        let at_ns = if connection.is_busy() { connection.batch_due_ns } else { now_ns() };
        self.measurement.failed(kind, connection.server, at_ns);
    }

    /// From here on no answer is followed by another request.
    fn end_ns(&self) -> u64 {
        self.start_ns + self.plan.duration_ns
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
        (Dispatch::Fixed, None) => due(plan, place, plan.whole_connections),
    };
    let connection = |number: usize| {
        let (server, place) = (number / plan.connections, plan.part.place(number % plan.connections));
        Connection::new(
            place + server * plan.whole_connections,
            server,
            due(place, server),
            capture,
            plan.tls[server].as_ref().map(Tls::new),
        )
    };
    plan.connections_of(thread).map(connection).collect()
}

fn queue(plan: &Plan, thread: usize) -> Option<SharedQueue<'_>> {
    let of_thread = || {
        DueRequests::new(
            plan.part.place(thread),
            due(plan, plan.part.place(thread), plan.threads * plan.part.of),
        )
    };
    (plan.dispatch == Dispatch::Any)
        .then(|| SharedQueue::new(of_thread(), plan.connections / plan.threads + 1))
}

/// What is due in series `number` of `series`, over all parts, that share the rate.
fn due(plan: &Plan, number: usize, series: usize) -> Due<'_> {
    let Pacing::ConstantThroughput { rate_rps, arrivals } = plan.pacing else { return Due::Always };
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
