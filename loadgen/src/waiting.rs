//! How a thread waits: asleep, busily, or not at all.
//!
//! A sleep that ends at a certain time costs CPU itself: the kernel sets a timer and takes its interrupt, 2
//! us on bare metal and 30 us in some virtual machines, where each setting of the timer leaves the machine.
//! So what a sleep costs is measured before the run. Since sleepers wake late, the timer is set early by as
//! much as is usual on this machine, and what is then left is waited busily. A wait that is no longer than
//! both together is busy from its start: it costs more CPU than the sleep, by at most the usual lateness, and
//! ends in time.
//!
//! ```text
//! Waiting::wait → Habits: until when, and how → busily: Events::look, again and again
//!                                             → asleep: Events::wait_until
//!                                             → with slack: busily while Soon says so, then
//!                                               Events::wait_within, with the next timer set by Ahead
//! ```

mod ahead;
mod crowding;
mod habits;
mod soon;

pub use habits::{Busy, Habits, Wait};

use std::io;

use crate::epoll::Events;
use ahead::Ahead;
use crowding::Crowding;
use soon::Soon;

/// What one wait is for.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// How long the run has lasted.
    pub elapsed_ns: u64,
    /// When the next request is due.
    pub due_ns: u64,
    /// When sending ends.
    pub end_ns: u64,
    /// When the last request left, if an answer is awaited.
    pub answer_sent_ns: Option<u64>,
    /// Connections are being opened.
    pub opening: bool,
}

/// The waits of one thread, and what it learns by them. Times are monotonic nanoseconds.
#[derive(Debug)]
pub struct Waiting {
    habits: Habits,
    /// How the thread meant to wait when the run began.
    spin_at_first_ns: u64,
    /// None if others may need the CPU as they like.
    crowding: Option<Crowding>,
    soon: Soon,
    ahead: Ahead,
    /// Time waited busily, when there was nothing else to do.
    spun_ns: u64,
    /// When events were last asked for and came: an answer among them had come by then.
    looked_ns: u64,
    /// When something besides requests and answers is to be done: no wait is longer.
    housekeeping_ns: u64,
}

impl Waiting {
    /// `yields`: who waits busily ends that if others need the CPU.
    pub fn new(habits: Habits, yields: bool) -> Self {
        Self {
            habits,
            spin_at_first_ns: habits.spin_ns,
            crowding: yields.then(Crowding::default),
            soon: Soon::default(),
            ahead: Ahead::default(),
            spun_ns: 0,
            looked_ns: u64::MAX,
            housekeeping_ns: 0,
        }
    }

    pub fn habits(&self) -> Habits {
        self.habits
    }

    /// Others needed the CPU.
    pub fn has_given_up_spin(&self) -> bool {
        self.habits.spin_ns < self.spin_at_first_ns
    }

    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
    }

    /// What is there to be handled had come by then.
    #[inline]
    pub fn looked_ns(&self) -> u64 {
        self.looked_ns
    }

    /// Nothing that had come by then is still to be handled.
    pub fn has_looked(&mut self, at_ns: u64) {
        self.looked_ns = at_ns;
    }

    #[inline]
    pub fn housekeeping_ns(&self) -> u64 {
        self.housekeeping_ns
    }

    pub fn keep_house_at(&mut self, at_ns: u64) {
        self.housekeeping_ns = at_ns;
    }

    /// Then, or earlier.
    pub fn keep_house_by(&mut self, at_ns: u64) {
        self.housekeeping_ns = self.housekeeping_ns.min(at_ns);
    }

    /// Looks whether others need the CPU on which this thread spins, and then spins no more.
    /// `waited_for_cpu_ns`: how long it has waited for one so far, asked only of a thread that spins.
    pub fn mind_others(&mut self, now_ns: u64, waited_for_cpu_ns: impl FnOnce() -> Option<u64>) {
        let Some(crowding) = self.crowding.as_mut().filter(|_| self.habits.spin_ns > 0) else { return };
        if waited_for_cpu_ns().is_some_and(|waited_ns| crowding.look(now_ns, waited_ns)) {
            self.habits.stop_spinning();
        }
    }

    /// Waits for events until the next request is due or something else is to be done, or less long; returns
    /// how many there are.
    #[inline]
    pub fn wait(&mut self, events: &mut impl Events, now_ns: u64, awaited: &Awaited) -> io::Result<usize> {
        let count = self.wait_as_habit_is(events, now_ns, awaited)?;
        if count > 0 {
            self.looked_ns = events.now_ns();
        }
        Ok(count)
    }

    fn wait_as_habit_is(
        &mut self,
        events: &mut impl Events,
        now_ns: u64,
        awaited: &Awaited,
    ) -> io::Result<usize> {
        let Awaited { elapsed_ns, due_ns, end_ns, answer_sent_ns, opening } = *awaited;
        // What could wait until the end or longer is not held back: that would cut it off.
        let slack_until_ns = end_ns.saturating_sub(self.habits.slack_ns);
        let (habits, until_ns) = match now_ns < slack_until_ns {
            true => (self.habits, slack_until_ns),
            false => (Habits { slack_ns: 0, ..self.habits }, end_ns),
        };
        let others_ns = self.housekeeping_ns.min(until_ns);
        match habits.wait_after(self.spun_ns, elapsed_ns, now_ns, due_ns, others_ns, answer_sent_ns) {
            Wait::NotAtAll => events.look(),
            Wait::Asleep(until_ns) => events.wait_until(until_ns),
            // Where nothing is under way no look delays what is due; that a free connection was closed is
            // seen behind that.
            Wait::Busily(until_ns) => self.spin(events, until_ns, answer_sent_ns.is_some() || opening),
            Wait::Within { answer_by_ns, earliest_ns, wanted_ns, latest_ns } => {
                let answer_by_ns = if answer_sent_ns.is_some() { answer_by_ns } else { 0 };
                self.wait_within(events, now_ns, answer_by_ns, (earliest_ns, wanted_ns, latest_ns))
            }
        }
    }

    /// See [`Wait::Within`].
    fn wait_within(
        &mut self,
        events: &mut impl Events,
        now_ns: u64,
        answer_by_ns: u64,
        (earliest_ns, wanted_ns, latest_ns): (u64, u64, u64),
    ) -> io::Result<usize> {
        // A try that a due request ends early says nothing.
        let cut_short = answer_by_ns >= earliest_ns;
        if answer_by_ns > now_ns && self.soon.may_be_tried(cut_short) {
            let count = self.spin(events, answer_by_ns, true)?;
            if count > 0 || !cut_short {
                self.soon.tried(count > 0);
            }
            if count > 0 || cut_short {
                return Ok(count);
            }
        }
        let ahead_ns = self.ahead.begins(earliest_ns, wanted_ns, latest_ns);
        let waited = events.wait_within(earliest_ns, wanted_ns, latest_ns, ahead_ns)?;
        if let Some(until_ns) = waited.until_ns {
            self.habits.woke_late(events.now_ns().saturating_sub(until_ns));
            self.ahead.ended(until_ns);
        }
        Ok(waited.count)
    }

    /// Waits busily until events come, if any may, or the time has come; how many there are.
    ///
    /// Only looks that found nothing were time to spare: a thread that always finds an answer has none.
    #[inline]
    fn spin(&mut self, events: &mut impl Events, until_ns: u64, events_may_come: bool) -> io::Result<usize> {
        let from_ns = events.now_ns();
        let mut idle_until_ns = from_ns;
        let count = loop {
            let count = if events_may_come { events.look()? } else { 0 };
            if count > 0 {
                break count;
            }
            idle_until_ns = events.now_ns();
            if idle_until_ns >= until_ns {
                break 0;
            }
            std::hint::spin_loop();
        };
        self.spun_ns += idle_until_ns - from_ns;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::Waited;

    const US: u64 = 1000;
    const FAR: u64 = 1_000_000 * US;

    /// A clock that each look at it sets on by 10 ns, and each sleep to its end and 3 us; which look for
    /// events finds one, from 0; what was called.
    #[derive(Default)]
    struct Scripted {
        now_ns: u64,
        found_at: Option<usize>,
        looks: usize,
        slept_until_ns: Vec<u64>,
        ahead_ns: Vec<Option<u64>>,
    }

    impl Events for Scripted {
        fn now_ns(&mut self) -> u64 {
            self.now_ns += 10;
            self.now_ns
        }

        fn look(&mut self) -> io::Result<usize> {
            self.looks += 1;
            Ok(usize::from(self.found_at == Some(self.looks - 1)))
        }

        fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
            self.slept_until_ns.push(until_ns);
            self.now_ns = until_ns + 3 * US;
            Ok(0)
        }

        fn wait_within(
            &mut self,
            _: u64,
            wanted_ns: u64,
            _: u64,
            ahead_ns: Option<u64>,
        ) -> io::Result<Waited> {
            self.ahead_ns.push(ahead_ns);
            self.wait_until(wanted_ns).map(|count| Waited { count, until_ns: Some(wanted_ns) })
        }
    }

    fn waiting(habits: Habits) -> Waiting {
        let mut waiting = Waiting::new(habits, true);
        waiting.keep_house_at(FAR);
        waiting
    }

    fn spinning() -> Waiting {
        waiting(Habits { spin_ns: 50 * US, busy: Busy::Freely, ..Habits::default() })
    }

    fn until(due_ns: u64) -> Awaited {
        Awaited { elapsed_ns: 0, due_ns, end_ns: FAR, answer_sent_ns: Some(0), opening: false }
    }

    #[test]
    fn a_look_that_finds_an_answer_is_no_time_to_spare_and_looks_that_find_nothing_are() {
        for (found_at, until_ns, count, spun_ns) in
            [(Some(0), 1000, 1, 0), (Some(3), 1000, 1, 30), (None, 50, 0, 40)]
        {
            let (mut waiting, mut events) = (spinning(), Scripted { found_at, ..Scripted::default() });
            let found = waiting.wait(&mut events, 0, &until(until_ns)).unwrap();
            assert_eq!((found, waiting.spun_ns()), (count, spun_ns), "found_at={found_at:?}");
        }
    }

    #[test]
    fn what_is_found_had_come_when_it_was_looked_for_and_a_wait_without_events_changes_nothing() {
        let (mut waiting, mut events) = (spinning(), Scripted { found_at: Some(7), ..Scripted::default() });
        waiting.has_looked(0);
        waiting.wait(&mut events, 0, &until(50)).unwrap();
        assert_eq!((waiting.looked_ns(), events.looks), (0, 4));
        waiting.wait(&mut events, 50, &until(1000)).unwrap();
        assert_eq!((waiting.looked_ns(), events.looks), (100, 8));
    }

    #[test]
    fn where_nothing_can_come_the_end_of_a_wait_is_busy_without_a_look() {
        for (opening, looks) in [(false, 0), (true, 99)] {
            let mut events = Scripted::default();
            let awaited = Awaited { answer_sent_ns: None, opening, ..until(1000) };
            spinning().wait(&mut events, 0, &awaited).unwrap();
            assert_eq!((events.looks, events.now_ns), (looks, 1000), "opening={opening}");
        }
    }

    #[test]
    fn no_wait_is_longer_than_until_housekeeping_or_the_end() {
        let mut asleep = waiting(Habits::default());
        let mut events = Scripted::default();
        for (housekeeping_us, end_us) in [(70, 900), (800, 90)] {
            asleep.keep_house_at(housekeeping_us * US);
            let awaited = Awaited { end_ns: end_us * US, ..until(FAR) };
            asleep.wait(&mut events, 0, &awaited).unwrap();
        }
        asleep.keep_house_by(60 * US);
        asleep.keep_house_by(500 * US);
        asleep.wait(&mut events, 0, &until(FAR)).unwrap();
        assert_eq!(events.slept_until_ns, [70 * US, 90 * US, 60 * US]);
    }

    /// With slack, an answer is awaited or not; how many looks there were, and until when it slept then.
    fn within_slack(found_at: Option<usize>, answer_sent_ns: Option<u64>) -> (usize, Vec<u64>) {
        let habits = Habits { sleep_cost_ns: US, busy: Busy::Freely, slack_ns: 50 * US, ..Habits::default() };
        let mut events = Scripted { found_at, ..Scripted::default() };
        let awaited = Awaited { answer_sent_ns, ..until(20 * US) };
        waiting(habits).wait(&mut events, 0, &awaited).unwrap();
        (events.looks, events.slept_until_ns)
    }

    #[test]
    fn with_slack_an_answer_that_comes_soon_saves_a_sleep_and_none_is_looked_for_where_none_is_awaited() {
        assert_eq!(within_slack(Some(9), Some(0)), (10, vec![]));
        assert_eq!(within_slack(None, Some(0)), (99, vec![70 * US]));
        assert_eq!(within_slack(None, None), (0, vec![70 * US]));
    }

    #[test]
    fn what_could_wait_until_the_end_is_not_held_back_and_nothing_is_where_slack_is_longer_than_the_run() {
        let slept_until = |slack_us: u64, now_us: u64, due_us: u64| {
            let habits = Habits { slack_ns: slack_us * US, ..Habits::default() };
            let mut events = Scripted::default();
            let awaited = Awaited { end_ns: 500 * US, ..until(due_us * US) };
            waiting(habits).wait(&mut events, now_us * US, &awaited).unwrap();
            events.slept_until_ns[0] / US
        };
        assert_eq!(slept_until(50, 0, 100), 150);
        assert_eq!([slept_until(50, 0, 430), slept_until(50, 0, 450)], [450, 450], "until slack is over");
        assert_eq!([slept_until(50, 451, 460), slept_until(600, 0, 100)], [460, 100]);
        assert_eq!([slept_until(50, 0, 600), slept_until(50, 460, 600)], [450, 500]);
    }

    #[test]
    fn with_slack_sleeps_of_the_run_teach_how_early_to_wake_and_when_the_next_will_end() {
        let habits = Habits { slack_ns: 50 * US, ..Habits::default() };
        let (mut waiting, mut events) = (waiting(habits), Scripted::default());
        for wait in 1..=100 {
            let now_ns = events.now_ns;
            waiting.wait(&mut events, now_ns, &until(wait * 100 * US)).unwrap();
        }
        let last = events.slept_until_ns.last().unwrap() - 100 * 100 * US;
        assert!(
            (46 * US..=48 * US).contains(&last),
            "sleeps end 3 us late: woken {last} ns behind the due time"
        );
        let ahead_ns = events.ahead_ns.last().unwrap().unwrap();
        assert!((99 * US..=101 * US).contains(&ahead_ns), "{ahead_ns}");
        assert_eq!(events.ahead_ns[0], None);
    }

    #[test]
    fn who_is_to_yield_gives_up_spinning_when_others_need_the_cpu_and_is_not_asked_again() {
        for (yields, given_up) in [(true, true), (false, false)] {
            let mut waiting = Waiting::new(spinning().habits, yields);
            let mut asked = 0;
            for tenth in 0..10 {
                waiting.mind_others(tenth * 100_000 * US, || {
                    asked += 1;
                    Some(tenth * 60_000 * US)
                });
            }
            assert_eq!(waiting.has_given_up_spin(), given_up);
            assert_eq!(asked, if yields { 4 } else { 0 });
        }
    }
}
