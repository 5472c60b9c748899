//! How much of a late send is the generator's own fault.
//!
//! A serial connection that was made to send late by the generator frees itself late, so that the requests
//! behind it leave late too, though the service was quick. Had the generator been in time, the connection
//! would have been free earlier by as much as it is behind. So its own lateness is carried along a connection
//! until that has caught up; only what remains of the wait is the service's.
//!
//! Between an answer and the next request any client reads, thinks and writes. That belongs to a serial
//! connection, and is nobody's fault: hundreds of requests that queued up behind a pause of the service would
//! add it up to milliseconds. Only a turn that takes longer is late.

/// What a turn, from an answer that came to the next request, may take without being late: read, script and
/// write, and a few connections that have theirs before.
pub const ORDINARY_TURN_NS: u64 = 50_000;

/// `free_ns`: when the connection became free, if that was behind the due time; none if it was free before.
/// `carried_ns`: the generator's own part in how late its last request left.
#[inline]
pub fn own_late_ns(due_ns: u64, sent_ns: u64, free_ns: Option<u64>, carried_ns: u64) -> u64 {
    let Some(free_ns) = free_ns.filter(|&free| free > due_ns) else {
        return sent_ns.saturating_sub(due_ns);
    };
    let turn_ns = sent_ns.saturating_sub(free_ns);
    carried_ns.min(free_ns - due_ns) + turn_ns.saturating_sub(ORDINARY_TURN_NS)
}

#[cfg(test)]
mod tests {
    use super::{ORDINARY_TURN_NS, own_late_ns};

    /// Requests due every `period`, each answered after `service`; the generator is away until `back` and
    /// sends then. Returns (how late, how much of it its own) for each.
    fn walk(requests: u64, period: u64, service: u64, back: u64) -> Vec<(u64, u64)> {
        let (mut free, mut carried, mut late) = (0, 0, Vec::new());
        for due in (0..requests).map(|request| request * period) {
            let sent = due.max(free).max(back);
            carried = own_late_ns(due, sent, (free > due).then_some(free), carried);
            late.push((sent - due, carried));
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
        assert_eq!(own_late_ns(10, 25 + ORDINARY_TURN_NS + 5, Some(25), 0), 5);
        assert_eq!(own_late_ns(10, 30, None, 0), 20);
        assert_eq!(own_late_ns(10, 30, Some(5), 0), 20);
    }

    #[test]
    fn what_any_client_needs_from_an_answer_to_the_next_request_does_not_add_up_behind_a_pause() {
        let (period, service, turn, pause) = (200_000, 50_000, 30_000, 50_000_000);
        let (mut free, mut carried, mut late) = (pause, 0, 0);
        for due in (0..400).map(|request| request * period) {
            let sent = due.max(free + turn);
            carried = own_late_ns(due, sent, (free > due).then_some(free), carried);
            (free, late) = (sent + service, late.max(carried));
        }
        assert_eq!(late, 0);
    }
}
