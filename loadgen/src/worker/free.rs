//! Which free connection sends next, and when.

use super::due;
use crate::agenda::Agenda;
use crate::args::Dispatch;
use crate::connection::Connection;
use crate::due::{DueRequests, SharedQueue};
use crate::plan::Plan;

/// The free connections of a thread. Times are nanoseconds after the start of the run.
pub(super) enum FreeConnections<'a> {
    /// Each sends its own requests, the earliest that is due first. In a closed loop none waits here.
    Fixed(Agenda),
    /// Any of them sends what is due in the thread, the one that has been free for longest first.
    Any(SharedQueue<'a>),
}

impl<'a> FreeConnections<'a> {
    /// Of a thread with room for so many.
    pub(super) fn new(plan: &'a Plan, thread: usize, connections: usize) -> Self {
        match plan.dispatch {
            Dispatch::Fixed => Self::Fixed(Agenda::with_room(connections)),
            Dispatch::Any => {
                let number = plan.part.place(thread);
                let requests = DueRequests::new(number, due(plan, number));
                Self::Any(SharedQueue::new(requests, plan.connections / plan.threads + 1))
            }
        }
    }

    /// When the next request can leave, as far as is known now; [`crate::uniform::NEVER`] if none can.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        match self {
            Self::Fixed(agenda) => agenda.next_due_ns(),
            Self::Any(queue) => queue.next_ns(),
        }
    }

    /// When the next request of the thread is due, where any connection sends it.
    #[inline]
    pub(super) fn due_of_any_ns(&self) -> Option<u64> {
        match self {
            Self::Fixed(_) => None,
            Self::Any(queue) => Some(queue.requests.next_ns()),
        }
    }

    /// See [`DueRequests::request_number`]: of what this connection sends next.
    #[inline]
    pub(super) fn request_number(&self, connection: &Connection<'_>) -> Option<u64> {
        match self {
            Self::Fixed(_) => connection.request_number(),
            Self::Any(queue) => queue.requests.request_number(),
        }
    }

    /// Whether another connection has been free for longer, and so is to send first.
    #[inline]
    pub(super) fn others_are_first(&self) -> bool {
        matches!(self, Self::Any(queue) if queue.has_free())
    }

    /// The place of a connection, if a request is due by now.
    #[inline]
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<usize> {
        match self {
            Self::Fixed(agenda) => agenda.pop(now_ns),
            Self::Any(queue) => queue.pop(now_ns),
        }
    }

    /// A connection is free, and waits here for its turn.
    #[inline]
    pub(super) fn push(&mut self, connection: &mut Connection<'_>, place: usize) {
        match self {
            Self::Fixed(agenda) => connection.await_turn(agenda, place),
            Self::Any(queue) => connection.await_any(queue, place),
        }
    }

    /// So many have left.
    #[inline]
    pub(super) fn sent(&mut self, requests: u32) {
        if let Self::Any(queue) = self {
            queue.requests.advance(requests);
        }
    }

    /// Of the requests that no connection has as its own; see [`DueRequests::unsent`].
    pub(super) fn unsent(&mut self, end_ns: u64, each: impl FnMut(u64, u64)) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::Any(queue) => queue.requests.unsent(end_ns, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connections;
    use super::*;
    use crate::http::request::Batch;
    use crate::plan::tests::plan;
    use crate::uniform::NEVER;

    const SECOND: u64 = 1_000_000_000;

    /// A thread whose connections are free from the start and answered at once; the places of those that sent
    /// in a second, looked at every 50 ms, and how many requests were not sent in the second behind it.
    fn sent_by(typed: &str) -> (Vec<usize>, u64) {
        let plan = plan(typed);
        let mut connections = connections(&plan, 0, false);
        let mut free = FreeConnections::new(&plan, 0, connections.len());
        connections.iter_mut().enumerate().for_each(|(place, connection)| free.push(connection, place));
        let one = Batch::parse(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut sent = Vec::new();
        for now_ns in (0..SECOND).step_by(SECOND as usize / 20) {
            while let Some(place) = free.pop(now_ns) {
                let connection = &mut connections[place];
                connection.turn_has_come();
                connection.due_ns = free.due_of_any_ns().unwrap_or(connection.due_ns);
                assert!(connection.due_ns <= now_ns, "sent before its time");
                free.sent(1);
                connection.sent(one.clone(), connection.due_ns, now_ns);
                free.push(connection, place);
                sent.push(place);
            }
        }
        let mut unsent = free.unsent(2 * SECOND, |_, _| {});
        unsent += connections.iter_mut().map(|one| one.unsent(2 * SECOND, |_, _| {})).sum::<u64>();
        (sent, unsent)
    }

    #[test]
    fn each_connection_sends_its_own_or_any_sends_what_is_due_and_all_are_told_of_in_the_end() {
        let in_turn: Vec<usize> = (0..10).map(|request| request % 4).collect();
        assert_eq!(sent_by("-c4 -t1 -R10 -d2s http://h/"), (in_turn.clone(), 10));
        assert_eq!(sent_by("-c4 -t1 -R10 -d2s --dispatch any http://h/"), (in_turn, 10));
    }

    #[test]
    fn with_any_only_free_connections_wait_and_with_fixed_only_those_that_have_a_request_left() {
        for (dispatch, next_ns) in [("fixed", SECOND / 10), ("any", 0)] {
            let plan = plan(&format!("-c2 -t1 -R10 -d150ms --dispatch {dispatch} http://h/"));
            let (mut all, mut free) = (connections(&plan, 0, false), FreeConnections::new(&plan, 0, 2));
            assert_eq!((free.next_ns(), free.pop(SECOND)), (NEVER, None), "none is free: {dispatch}");
            free.push(&mut all[1], 1);
            free.push(&mut all[1], 1);
            assert_eq!((free.next_ns(), free.pop(next_ns)), (next_ns, Some(1)), "{dispatch}");
            assert_eq!(free.pop(SECOND), None, "each stands here once: {dispatch}");
        }
    }
}
