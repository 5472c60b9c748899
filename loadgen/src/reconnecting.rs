//! When lost connections are tried again, and how much of the time without them was the wait for that. Pure.
//!
//! A pause is the generator's own doing: a server that is back after a millisecond is not found before the
//! pause is over. So pauses are short, and what they may have added is counted: of each time without a
//! connection its last pause, since the attempt before it found the server still away. With jitter, so that
//! connections lost together do not return together.
//!
//! The first attempt comes at once, unless so many were lost together that their listen queue (128 long in
//! many servers) would overflow: a connection that finds it full waits a second for its next try. So first
//! attempts have turns too, and what one waits for its turn is a pause like any other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::schedule::mix;

/// The pause behind the second attempt, doubled with each further one.
const PAUSE_NS: u64 = 10_000_000;
const PAUSE_NS_MAX: u64 = 50_000_000;
const DOUBLINGS_MAX: u32 = 3;

/// `failures`: attempts since the last answer. The first comes at once; `random`: 0 to 1, which makes the
/// pause 0.5 to 1.5 times as long.
fn pause_ns(failures: u32, random: f64) -> u64 {
    let Some(doublings) = failures.checked_sub(1) else { return 0 };
    let pause_ns = (PAUSE_NS << doublings.min(DOUBLINGS_MAX)).min(PAUSE_NS_MAX);
    (pause_ns as f64 * (0.5 + random)) as u64
}

/// First attempts in a turn, over all threads: as many as are opened in one before the run.
pub const FIRST_PER_TURN: usize = 64;
/// Further attempts are allowed so often that ten thousand connections without a server take no core, and all
/// are back within a second of it.
const FURTHER_PER_TURN: usize = 10;
pub const TURN_NS: u64 = 1_000_000;

/// Lets so many attempts through in each turn.
#[derive(Debug)]
struct Turn {
    per_turn: u32,
    ends_ns: u64,
    left: u32,
}

impl Turn {
    /// Of one of so many threads, which share what is let through.
    fn of(per_turn: usize, threads: usize) -> Self {
        Self { per_turn: (per_turn / threads).max(1) as u32, ends_ns: 0, left: 0 }
    }

    /// When the next attempt may be made, if not now.
    fn take(&mut self, now_ns: u64) -> Result<(), u64> {
        if now_ns >= self.ends_ns {
            (self.ends_ns, self.left) = (now_ns + TURN_NS, self.per_turn);
        }
        if self.left == 0 {
            return Err(self.ends_ns);
        }
        self.left -= 1;
        Ok(())
    }
}

/// The connections of a thread that are to be opened again, by their places.
#[derive(Debug)]
pub struct Retries {
    first_turn: Turn,
    further_turn: Turn,
    /// Not tried yet, in the order in which they were lost: (when, place).
    first: VecDeque<(u64, usize)>,
    /// Tried in vain: (when the pause ends, when it began, place), the earliest first.
    further: BinaryHeap<Reverse<(u64, u64, usize)>>,
    random: fastrand::Rng,
}

impl Retries {
    /// Of thread number `thread`, over all parts, that draws its pauses by the seed; `threads` of them share
    /// the turns.
    pub fn new(threads: usize, seed: u64, thread: usize) -> Self {
        Self {
            first_turn: Turn::of(FIRST_PER_TURN, threads),
            further_turn: Turn::of(FURTHER_PER_TURN, threads),
            first: VecDeque::new(),
            further: BinaryHeap::new(),
            random: fastrand::Rng::with_seed(mix(seed, thread as u64)),
        }
    }

    /// A connection was lost, or tried in vain, with so many attempts since its last answer. It may be tried
    /// at once, or [`Retries::next`] names it later: the error is when to ask for it.
    pub fn put_off(&mut self, place: usize, failures: u32, now_ns: u64) -> Result<(), u64> {
        let pause_ns = pause_ns(failures, self.random.f64());
        if pause_ns > 0 {
            self.further.push(Reverse((now_ns + pause_ns, now_ns, place)));
            return Err(now_ns + pause_ns);
        }
        let turn = self.first_turn.take(now_ns);
        if turn.is_err() {
            self.first.push_back((now_ns, place));
        }
        turn
    }

    /// One that may be tried now, and how long it was put off; if there is none, when to ask again.
    pub fn next(&mut self, now_ns: u64) -> Result<(usize, u64), u64> {
        let mut next_ns = u64::MAX;
        if let Some(&(since_ns, place)) = self.first.front() {
            match self.first_turn.take(now_ns) {
                Ok(()) => {
                    self.first.pop_front();
                    return Ok((place, now_ns.saturating_sub(since_ns)));
                }
                Err(later_ns) => next_ns = later_ns,
            }
        }
        let Some(&Reverse((retry_ns, since_ns, place))) = self.further.peek() else { return Err(next_ns) };
        if retry_ns > now_ns {
            return Err(next_ns.min(retry_ns));
        }
        self.further_turn.take(now_ns).map_err(|later_ns| next_ns.min(later_ns))?;
        self.further.pop();
        Ok((place, now_ns - since_ns))
    }

    /// Whether some have not been tried at all.
    pub fn has_first(&self) -> bool {
        !self.first.is_empty()
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

    /// Lost together at 0, the server back at `back_ns`: (when each of `connections` is open again, how long
    /// that attempt was put off), attempts taking no time.
    fn return_after(back_ns: u64, connections: usize) -> Vec<(u64, u64)> {
        let mut retries = Retries::new(1, 7, 0);
        let (mut now, mut open, mut failures) = (0, Vec::new(), vec![0; connections]);
        let mut lost: Vec<(usize, u64)> = (0..connections).map(|place| (place, 0)).rev().collect();
        while open.len() < connections {
            let tried = match lost.pop() {
                Some((place, since_ns)) => {
                    let at_once = retries.put_off(place, failures[place], now).is_ok();
                    failures[place] += 1;
                    at_once.then_some((place, now - since_ns))
                }
                None => retries.next(now).map_err(|later_ns| now = later_ns).ok(),
            };
            match tried {
                Some((_, pause_ns)) if now >= back_ns => open.push((now, pause_ns)),
                Some((place, _)) => lost.push((place, now)),
                None => {}
            }
        }
        open
    }

    fn late_ms(open: &[(u64, u64)], back_ns: u64) -> Vec<u64> {
        open.iter().map(|(time, _)| (time - back_ns) / MS).collect()
    }

    #[test]
    fn after_an_outage_all_return_soon_and_not_all_at_once() {
        let back_ns = 1500 * MS;
        let late_ms = late_ms(&return_after(back_ns, 64), back_ns);
        assert_eq!(late_ms.len(), 64);
        assert!(late_ms.iter().all(|&late| late <= 75), "seed=7 {late_ms:?}");
        for at in 0..=75 {
            let together = late_ms.iter().filter(|&&late| late == at).count();
            assert!(together <= 12, "seed=7: {together} in one millisecond: {late_ms:?}");
        }
    }

    #[test]
    fn ten_thousand_return_within_a_second_or_so() {
        let back_ns = 1500 * MS;
        let late_ms = late_ms(&return_after(back_ns, 10_000), back_ns);
        assert!(late_ms.iter().all(|&late| late <= 1_100), "seed=7 {:?}", late_ms.iter().max());
    }

    #[test]
    fn connections_closed_together_by_a_server_that_still_listens_return_64_in_a_millisecond() {
        let open = return_after(0, 10_000);
        let late_ms = late_ms(&open, 0);
        for at in 0..=156 {
            assert!(late_ms.iter().filter(|&&late| late == at).count() <= 64, "at {at} ms");
        }
        assert_eq!(late_ms.iter().max(), Some(&156));
        // What one waited for its turn was a pause of the generator's, as any other.
        assert!(open.iter().all(|&(time, pause_ns)| pause_ns == time));
    }

    #[test]
    fn threads_share_what_a_turn_lets_through_and_each_has_at_least_one() {
        for (threads, at_once) in [(1, 64), (4, 16), (100, 1)] {
            let mut retries = Retries::new(threads, 7, 0);
            let tried = (0..64).filter(|&place| retries.put_off(place, 0, 5).is_ok()).count();
            assert_eq!((tried, retries.has_first()), (at_once, at_once < 64), "threads={threads}");
        }
    }

    #[test]
    fn a_first_attempt_does_not_wait_behind_those_that_were_in_vain() {
        let mut retries = Retries::new(1, 7, 0);
        (0..100).for_each(|place| assert!(retries.put_off(place, 1, 0).is_err()));
        (100..164).for_each(|place| assert_eq!(retries.put_off(place, 0, 20 * MS), Ok(())));
        assert_eq!(retries.put_off(164, 0, 20 * MS), Err(21 * MS));
        // All pauses are over: ten in the turn, then the one that was lost last.
        let tried: Vec<usize> =
            std::iter::from_fn(|| retries.next(20 * MS).ok()).map(|(place, _)| place).collect();
        assert_eq!(tried.len(), 10, "{tried:?}");
        assert_eq!(retries.next(21 * MS), Ok((164, MS)));
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
