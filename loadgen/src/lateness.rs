//! How much of a late send is not the service's: the generator's own fault, or its pauses before it tries to
//! open a lost connection again.
//!
//! A serial connection that was made to send late by the generator frees itself late, so that the requests
//! behind it leave late too, though the service was quick. Had the generator been in time, the connection
//! would have been free earlier by as much as it is behind. So its own lateness is carried along a connection
//! until that has caught up; only what remains of the wait is the service's.
//!
//! Between an answer and the next request any client reads, thinks and writes. That belongs to a serial
//! connection, and is nobody's fault: hundreds of requests that queued up behind a pause of the service would
//! add it up to milliseconds. Only a turn that takes longer is late.
//!
//! A pause between two attempts is the generator's doing too, but no fault: the service was away, and who
//! asks it all the time does it no good. So what such a pause may have added is known apart.

/// What a turn, from an answer that came to the next request, may take without being late: read, script and
/// write, and a few connections that have theirs before.
pub const ORDINARY_TURN_NS: u64 = 50_000;

/// What a connection's last send was late by, but for its waiting for the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLateness {
    /// By the generator's own fault.
    pub fault_ns: u64,
    /// Up to so much because a lost connection was tried again only behind a pause.
    pub pause_ns: u64,
}

impl OwnLateness {
    /// Of the next send. `free_ns`: when the connection became free, if that was behind the due time; none if
    /// it was free before.
    #[inline]
    pub fn next(self, due_ns: u64, sent_ns: u64, free_ns: Option<u64>) -> Self {
        let Some(free_ns) = free_ns.filter(|&free| free > due_ns) else {
            return Self { fault_ns: sent_ns.saturating_sub(due_ns), pause_ns: 0 };
        };
        let (waited_ns, turn_ns) = (free_ns - due_ns, sent_ns.saturating_sub(free_ns));
        let carried_ns = self.fault_ns.min(waited_ns);
        Self {
            fault_ns: carried_ns + turn_ns.saturating_sub(ORDINARY_TURN_NS),
            pause_ns: self.pause_ns.min(waited_ns - carried_ns),
        }
    }

    /// The connection is open again, by an attempt that was put off for so long. `was_away`: attempts before
    /// it were in vain, so that it is open when the server is back, whatever it was late by before.
    pub fn reopened(self, pause_ns: u64, was_away: bool) -> Self {
        Self { fault_ns: if was_away { 0 } else { self.fault_ns }, pause_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::{ORDINARY_TURN_NS, OwnLateness};

    /// Requests due every `period`, each answered after `service`; the generator is away until `back` and
    /// sends then. Returns (how late, how much of it its own) for each.
    fn walk(requests: u64, period: u64, service: u64, back: u64) -> Vec<(u64, u64)> {
        let (mut free, mut carried, mut late) = (0, OwnLateness::default(), Vec::new());
        for due in (0..requests).map(|request| request * period) {
            let sent = due.max(free).max(back);
            carried = carried.next(due, sent, (free > due).then_some(free));
            late.push((sent - due, carried.fault_ns));
            free = sent + service;
        }
        late
    }

    #[test]
    fn requests_behind_a_late_send_are_late_by_the_same_fault_until_the_connection_has_caught_up() {
        let late = walk(12, 10, 2, 50);
        assert_eq!(late[..7], [(50, 50), (42, 42), (34, 34), (26, 26), (18, 18), (10, 10), (2, 2)]);
        assert_eq!(late[7..], [(0, 0); 5]);
    }

    #[test]
    fn waiting_for_a_slow_service_is_not_the_generators() {
        assert_eq!(walk(4, 10, 25, 0), [(0, 0), (15, 0), (30, 0), (45, 0)]);
    }

    #[test]
    fn of_both_together_each_has_its_part() {
        // 40 late by itself; then each request waits 15 more for the service.
        assert_eq!(walk(4, 10, 25, 40), [(40, 40), (55, 40), (70, 40), (85, 40)]);
    }

    #[test]
    fn time_lost_between_an_answer_and_the_next_send_is_the_generators() {
        let late = |sent_ns, free_ns| OwnLateness::default().next(10, sent_ns, free_ns).fault_ns;
        assert_eq!(late(25 + ORDINARY_TURN_NS + 5, Some(25)), 5);
        assert_eq!((late(30, None), late(30, Some(5))), (20, 20));
    }

    #[test]
    fn a_pause_before_a_lost_connection_was_tried_again_is_no_fault_and_is_carried_along_as_one() {
        // Open again at 100, behind a pause of 30, with a request due every 10 that is answered after 2.
        let mut late = OwnLateness { fault_ns: 7, pause_ns: 0 }.reopened(30, true);
        let (mut free, mut pauses) = (100, Vec::new());
        for due in (60..).step_by(10).take(8) {
            late = late.next(due, free.max(due), (free > due).then_some(free));
            assert_eq!(late.fault_ns, 0, "due={due}");
            pauses.push(late.pause_ns);
            free = free.max(due) + 2;
        }
        assert_eq!(pauses, [30, 30, 24, 16, 8, 0, 0, 0]);
    }

    #[test]
    fn what_a_connection_was_late_by_stays_its_lateness_where_the_server_was_there_all_the_time() {
        // A server that closes after each answer: the connection is opened again at the first attempt.
        let late = OwnLateness { fault_ns: 40, pause_ns: 0 }.reopened(0, false).next(10, 45, Some(45));
        assert_eq!(late, OwnLateness { fault_ns: 35, pause_ns: 0 });
    }

    #[test]
    fn what_any_client_needs_from_an_answer_to_the_next_request_does_not_add_up_behind_a_pause() {
        let (period, service, turn, pause) = (200_000, 50_000, 30_000, 50_000_000);
        let (mut free, mut carried, mut late) = (pause, OwnLateness::default(), 0);
        for due in (0..400).map(|request| request * period) {
            let sent = due.max(free + turn);
            carried = carried.next(due, sent, (free > due).then_some(free));
            (free, late) = (sent + service, late.max(carried.fault_ns));
        }
        assert_eq!(late, 0);
    }
}
