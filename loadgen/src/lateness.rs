//! How much of a late send is the generator's own fault.
//!
//! A serial connection that was made to send late by the generator frees itself late, so that the requests
//! behind it leave late too, though the service was quick. Had the generator been in time, the connection
//! would have been free earlier by as much as it is behind. So its own lateness is carried along a connection
//! until that has caught up; only what remains of the wait is the service's.

/// `free_ns`: when the connection became free, if that was behind the due time; none if it was free before.
/// `carried_ns`: the generator's own part in how late its last request left.
#[inline]
pub fn own_late_ns(due_ns: u64, sent_ns: u64, free_ns: Option<u64>, carried_ns: u64) -> u64 {
    let kept_by_the_service =
        free_ns.map_or(0, |free| free.saturating_sub(due_ns).saturating_sub(carried_ns));
    sent_ns.saturating_sub(due_ns).saturating_sub(kept_by_the_service)
}

#[cfg(test)]
mod tests {
    use super::own_late_ns;

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
        assert_eq!(own_late_ns(10, 30, Some(25), 0), 5);
        assert_eq!(own_late_ns(10, 30, None, 0), 20);
    }
}
