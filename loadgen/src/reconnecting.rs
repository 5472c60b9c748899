//! How long a lost connection waits before it is tried again, and how much of the time without it was that
//! wait. Pure.
//!
//! A pause is the generator's own doing: a server that is back after a millisecond is not found before the
//! pause is over. So pauses are short, and what they may have added is counted: of each time without a
//! connection its last pause, since the attempt before it found the server still away. With jitter, so that
//! connections lost together do not return together.

/// The pause behind the second attempt, doubled with each further one.
const PAUSE_NS: u64 = 10_000_000;
const PAUSE_NS_MAX: u64 = 50_000_000;
const DOUBLINGS_MAX: u32 = 3;

/// `failures`: attempts since the last answer. The first comes at once; `random`: 0 to 1, which makes the
/// pause 0.5 to 1.5 times as long.
pub fn pause_ns(failures: u32, random: f64) -> u64 {
    let Some(doublings) = failures.checked_sub(1) else { return 0 };
    let pause_ns = (PAUSE_NS << doublings.min(DOUBLINGS_MAX)).min(PAUSE_NS_MAX);
    (pause_ns as f64 * (0.5 + random)) as u64
}

/// Attempts are allowed so often over all threads that ten thousand connections without a server take no
/// core, and all are back within a second of it.
pub const ATTEMPTS_PER_TURN: u32 = 10;
pub const TURN_NS: u64 = 1_000_000;

/// Lets so many attempts through in each turn.
#[derive(Debug, Default)]
pub struct Turn {
    ends_ns: u64,
    left: u32,
}

impl Turn {
    /// When the next attempt may be made, if not now.
    pub fn take(&mut self, now_ns: u64, per_turn: u32) -> Result<(), u64> {
        if now_ns >= self.ends_ns {
            (self.ends_ns, self.left) = (now_ns + TURN_NS, per_turn.max(1));
        }
        if self.left == 0 {
            return Err(self.ends_ns);
        }
        self.left -= 1;
        Ok(())
    }
}

/// Times without a connection, of all connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconnecting {
    /// Connections that were lost and are open again.
    pub reopened: u64,
    pub closed_ns: u64,
    /// Of it: up to so much because the generator had not tried yet.
    pub own_pause_ns: u64,
}

impl Reconnecting {
    /// Lost then, open now, found by an attempt behind this pause.
    pub fn reopened(&mut self, closed_ns: u64, now_ns: u64, pause_ns: u64) {
        let away_ns = now_ns.saturating_sub(closed_ns);
        self.reopened += 1;
        self.closed_ns += away_ns;
        self.own_pause_ns += pause_ns.min(away_ns);
    }

    /// Lost then, and away until the end.
    pub fn still_closed(&mut self, closed_ns: u64, end_ns: u64) {
        self.closed_ns += end_ns.saturating_sub(closed_ns);
    }

    pub fn add(&mut self, other: &Self) {
        self.reopened += other.reopened;
        self.closed_ns += other.closed_ns;
        self.own_pause_ns += other.own_pause_ns;
    }

    /// None if no pause was made before a connection was open again.
    pub fn note(&self) -> Option<String> {
        (self.own_pause_ns > 0).then(|| {
            format!(
                "connections were closed for {:.3} s in all; up to {:.3} s of it ({:.0} %) the \
                    generator waited before it tried again",
                self.closed_ns as f64 / 1e9,
                self.own_pause_ns as f64 / 1e9,
                self.own_pause_ns as f64 / self.closed_ns.max(1) as f64 * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_attempt_comes_at_once_and_no_pause_is_much_longer_than_50_ms() {
        let usual: Vec<u64> = (0..8).map(|failures| pause_ns(failures, 0.5) / MS).collect();
        assert_eq!(usual, [0, 10, 20, 40, 50, 50, 50, 50]);
        assert_eq!((pause_ns(99, 0.0) / MS, pause_ns(u32::MAX, 1.0) / MS), (25, 75));
    }

    /// Lost together at 0, the server back at `back_ns`: when each of `connections` is open again, attempts
    /// taking no time.
    fn return_after(back_ns: u64, connections: u32) -> Vec<u64> {
        let (mut random, mut turn, mut heap) =
            (fastrand::Rng::with_seed(7), Turn::default(), std::collections::BinaryHeap::new());
        (0..connections).for_each(|place| heap.push(std::cmp::Reverse((0, place, 0))));
        let (mut now, mut open) = (0, Vec::new());
        while let Some(std::cmp::Reverse((time, place, failures))) = heap.pop() {
            now = time.max(now);
            if let Err(later) = turn.take(now, ATTEMPTS_PER_TURN) {
                now = later;
                turn.take(now, ATTEMPTS_PER_TURN).unwrap();
            }
            if now >= back_ns {
                open.push(now);
            } else {
                heap.push(std::cmp::Reverse((now + pause_ns(failures, random.f64()), place, failures + 1)));
            }
        }
        open
    }

    #[test]
    fn after_an_outage_all_return_soon_and_not_all_at_once() {
        let back_ns = 1500 * MS;
        let open = return_after(back_ns, 64);
        assert_eq!(open.len(), 64);
        let late_ms: Vec<u64> = open.iter().map(|time| (time - back_ns) / MS).collect();
        assert!(late_ms.iter().all(|&late| late <= 75), "seed=7 {late_ms:?}");
        for at in 0..=75 {
            let together = late_ms.iter().filter(|&&late| late == at).count();
            assert!(together <= 12, "seed=7: {together} in one millisecond: {late_ms:?}");
        }
    }

    #[test]
    fn ten_thousand_return_within_a_second_or_so() {
        let back_ns = 1500 * MS;
        let open = return_after(back_ns, 10_000);
        assert!(open.iter().all(|time| time - back_ns <= 1_100 * MS), "seed=7 {:?}", open.iter().max());
    }

    #[test]
    fn the_generators_part_of_an_outage_is_its_last_pause_and_no_more_than_the_outage() {
        let mut all = Reconnecting::default();
        all.reopened(0, 1500 * MS, 50 * MS);
        all.reopened(0, 3 * MS, 10 * MS);
        all.still_closed(100 * MS, 300 * MS);
        assert_eq!(all, Reconnecting { reopened: 2, closed_ns: 1703 * MS, own_pause_ns: 53 * MS });
        assert_eq!(
            all.note().unwrap(),
            "connections were closed for 1.703 s in all; up to 0.053 s of it (3 %) the generator \
                waited before it tried again"
        );
        assert_eq!(Reconnecting::default().note(), None);
    }
}
