//! How a thread waits in this run, by what it was told and by what was measured before: until when asleep,
//! and from when on busily.

use crate::clock::thread_cpu_ns;
use crate::epoll::Events;
use crate::machine::Busily;
use crate::plan::{Pacing, Plan};

/// Sleeps that are measured before the run, and how long each is: long enough for the CPU to idle as deeply
/// as it does.
const SLEEPS: usize = 150;
const SLEEP_NS: u64 = 400_000;
/// A measured cost or lateness over this is not believed: something else disturbed.
const SLEEP_COST_NS_MAX: u64 = 50_000;
const WAKES_LATE_NS_MAX: u64 = 100_000;
/// Where the spin fits itself to the machine: at least and at most this long.
const SPIN_NS_MIN: u64 = 50_000;
const SPIN_NS_MAX: u64 = 1_000_000;
/// What one sleep that ends late, or in time, teaches of how late they usually end.
const LEARNT_NS: u64 = 200;

/// How one thread waits in this run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Busily from this long before each due time, and for as long after each send, when the answer may come.
    pub spin_ns: u64,
    /// How much later than asked for a sleep ends, in half of the cases.
    pub wakes_late_ns: u64,
    /// CPU time of one sleep until a certain time.
    pub sleep_cost_ns: u64,
    pub busy: Busy,
    /// How much later than it is due a request may leave; then no due time is waited for busily.
    pub slack_ns: u64,
    /// With slack: how late sleeps of this run have ended, in about half of the cases. They are shorter than
    /// those measured before it, and end sooner.
    pub(super) slack_wakes_late_ns: u64,
}

/// How much of its waiting a thread may do busily.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Busy {
    /// `--spin off`: every wait is a sleep, and ends as late as the machine wakes its sleepers.
    #[default]
    Never,
    /// The end of a wait, as long as all of it is no more than [`SPARING_SHARE`] of the time.
    Sparingly,
    /// And every wait that is no longer than a sleep costs: asleep, it would take as much CPU and end late.
    Cheaply,
    Freely,
}

/// A twentieth.
const SPARING_SHARE: u64 = 20;

impl Busy {
    /// Whether a thread that has spun for so long in that time may do so again.
    fn allows(self, spun_ns: u64, elapsed_ns: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Sparingly | Self::Cheaply => spun_ns <= elapsed_ns / SPARING_SHARE,
            Self::Freely => true,
        }
    }
}

impl Habits {
    /// What sleeps cost and how late they end is measured now.
    pub fn measured(events: &mut impl Events, plan: &Plan, busily: Busily) -> std::io::Result<Self> {
        if plan.pacing == Pacing::ClosedLoop {
            return Ok(Self::default());
        }
        let mut late_ns = [0; SLEEPS];
        let cpu_before_ns = thread_cpu_ns();
        for late_ns in &mut late_ns {
            let until_ns = events.now_ns() + SLEEP_NS;
            events.wait_until(until_ns)?;
            *late_ns = events.now_ns().saturating_sub(until_ns);
        }
        let sleep_cost_ns = (thread_cpu_ns() - cpu_before_ns) / SLEEPS as u64;
        late_ns.sort_unstable();
        // The very latest is not the machine's habit but its accident; one in a hundred is what a p99 shows.
        let (median_ns, nearly_all_ns) = (late_ns[SLEEPS / 2], late_ns[SLEEPS - 1 - SLEEPS / 100]);
        let spin_ns = match busily {
            Busily::Never | Busily::Sparingly | Busily::Cheaply => 0,
            Busily::For(time) => time.as_nanos() as u64,
            Busily::Fitting => (nearly_all_ns * 2).clamp(SPIN_NS_MIN, SPIN_NS_MAX),
        };
        let busy = match busily {
            Busily::Never => Busy::Never,
            Busily::Sparingly => Busy::Sparingly,
            Busily::Cheaply => Busy::Cheaply,
            Busily::For(_) | Busily::Fitting => Busy::Freely,
        };
        let (wakes_late_ns, sleep_cost_ns) =
            (median_ns.min(WAKES_LATE_NS_MAX), sleep_cost_ns.min(SLEEP_COST_NS_MAX));
        Ok(Self {
            spin_ns,
            wakes_late_ns,
            sleep_cost_ns,
            busy,
            slack_ns: plan.slack_ns,
            slack_wakes_late_ns: wakes_late_ns,
        })
    }

    /// From now on others have the CPU.
    pub fn stop_spinning(&mut self) {
        (self.spin_ns, self.busy) = (0, Busy::Sparingly);
    }

    /// As [`Habits::wait`], by a thread that has spun for so long in that time.
    pub fn wait_after(
        &self,
        spun_ns: u64,
        elapsed_ns: u64,
        now_ns: u64,
        due_ns: u64,
        housekeeping_ns: u64,
        answer: Option<u64>,
    ) -> Wait {
        let may_be_busy = self.busy.allows(spun_ns, elapsed_ns);
        if self.slack_ns > 0 {
            return self.wait_slack(now_ns, due_ns, housekeeping_ns, may_be_busy);
        }
        if may_be_busy {
            return self.wait(now_ns, due_ns, housekeeping_ns, answer);
        }
        let until_ns = due_ns.min(housekeeping_ns);
        if until_ns <= now_ns {
            Wait::NotAtAll
        } else if self.busy == Busy::Cheaply && until_ns <= now_ns + self.sleep_cost_ns {
            Wait::Busily(until_ns)
        } else {
            Wait::Asleep(until_ns)
        }
    }

    /// A sleep that was to end then ended so late.
    pub fn woke_late(&mut self, late_ns: u64) {
        let now_ns = &mut self.slack_wakes_late_ns;
        *now_ns = if late_ns > *now_ns {
            (*now_ns + LEARNT_NS).min(WAKES_LATE_NS_MAX)
        } else {
            now_ns.saturating_sub(LEARNT_NS)
        };
    }

    /// Asleep as long as the request may wait; who wakes late meanwhile finds more that are due, and sends
    /// all of them.
    fn wait_slack(&self, now_ns: u64, due_ns: u64, housekeeping_ns: u64, may_be_busy: bool) -> Wait {
        if due_ns.min(housekeeping_ns) <= now_ns {
            return Wait::NotAtAll;
        }
        if due_ns >= housekeeping_ns {
            return Wait::Asleep(housekeeping_ns);
        }
        let wanted_ns = due_ns + self.slack_ns.saturating_sub(self.slack_wakes_late_ns);
        let latest_ns = (due_ns + self.slack_ns).min(housekeeping_ns);
        let answer_by_ns = if may_be_busy { (now_ns + self.sleep_cost_ns).min(due_ns) } else { now_ns };
        Wait::Within { answer_by_ns, earliest_ns: due_ns, wanted_ns: wanted_ns.min(latest_ns), latest_ns }
    }

    /// `answer_sent_ns`: when the last request left, if an answer is awaited.
    fn wait(&self, now_ns: u64, due_ns: u64, housekeeping_ns: u64, answer_sent_ns: Option<u64>) -> Wait {
        let until_ns = due_ns.min(housekeeping_ns);
        let wake_ns = due_ns.saturating_sub(self.spin_ns.max(self.wakes_late_ns)).min(housekeeping_ns);
        let answer_by_ns = answer_sent_ns.map_or(0, |sent_ns| sent_ns + self.spin_ns);
        if until_ns <= now_ns {
            Wait::NotAtAll
        } else if wake_ns <= now_ns + self.sleep_cost_ns {
            Wait::Busily(until_ns)
        } else if answer_by_ns > now_ns {
            Wait::Busily(answer_by_ns.min(wake_ns))
        } else {
            Wait::Asleep(wake_ns)
        }
    }
}

/// Until when, and how; answers end each of them.
#[derive(Debug, PartialEq)]
pub enum Wait {
    NotAtAll,
    Busily(u64),
    Asleep(u64),
    /// Asleep until the time wanted, or until another between these if the timer is set to that already. For
    /// an answer that comes by then it is cheaper to wait busily.
    Within {
        answer_by_ns: u64,
        earliest_ns: u64,
        wanted_ns: u64,
        latest_ns: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uniform::NEVER;

    const US: u64 = 1000;
    const FAR: u64 = 1_000_000 * US;

    fn habits(spin_us: u64, wakes_late_us: u64, sleep_cost_us: u64, busy: Busy) -> Habits {
        Habits {
            spin_ns: spin_us * US,
            wakes_late_ns: wakes_late_us * US,
            sleep_cost_ns: sleep_cost_us * US,
            busy,
            ..Habits::default()
        }
    }

    #[test]
    fn what_is_due_is_not_waited_for() {
        let habits = habits(50, 20, 5, Busy::Freely);
        assert_eq!(habits.wait(100 * US, 100 * US, FAR, None), Wait::NotAtAll);
        assert_eq!(habits.wait(100 * US, FAR, 99 * US, None), Wait::NotAtAll);
    }

    #[test]
    fn a_wait_no_longer_than_a_sleep_costs_is_made_busily_and_a_longer_one_asleep() {
        let sparing = habits(0, 0, 5, Busy::Sparingly);
        assert_eq!(sparing.wait(0, 5 * US, FAR, None), Wait::Busily(5 * US));
        assert_eq!(sparing.wait(0, 6 * US, FAR, None), Wait::Asleep(6 * US));
        assert_eq!(sparing.wait(0, 6 * US, FAR, Some(0)), Wait::Asleep(6 * US), "an answer wakes by itself");
    }

    #[test]
    fn the_timer_is_set_early_by_as_much_as_sleepers_wake_late_and_the_rest_is_waited_for_busily() {
        let sparing = habits(0, 20, 5, Busy::Sparingly);
        assert_eq!(sparing.wait(0, 500 * US, FAR, None), Wait::Asleep(480 * US));
        assert_eq!(sparing.wait(483 * US, 500 * US, FAR, None), Wait::Busily(500 * US));
    }

    #[test]
    fn with_spin_the_last_part_of_a_wait_is_busy_and_so_is_the_time_in_which_an_answer_may_come() {
        let spin = habits(50, 20, 5, Busy::Freely);
        assert_eq!(spin.wait(0, 500 * US, FAR, None), Wait::Asleep(450 * US));
        assert_eq!(spin.wait(450 * US, 500 * US, FAR, None), Wait::Busily(500 * US));
        assert_eq!(spin.wait(10 * US, 500 * US, FAR, Some(0)), Wait::Busily(50 * US));
        assert_eq!(spin.wait(50 * US, 500 * US, FAR, Some(0)), Wait::Asleep(450 * US));
    }

    #[test]
    fn where_nothing_is_due_it_sleeps_until_there_is_something_else_to_do() {
        assert_eq!(Habits::default().wait(0, NEVER, FAR, Some(0)), Wait::Asleep(FAR));
        let dear = habits(0, 40, 30, Busy::Sparingly);
        assert_eq!(dear.wait(0, NEVER, FAR, Some(0)), Wait::Asleep(FAR));
    }

    #[test]
    fn off_never_waits_busily_however_short_the_wait() {
        let off = habits(0, 20, 5, Busy::Never);
        for due_us in [1, 5, 20, 500] {
            assert_eq!(
                off.wait_after(0, FAR, 0, due_us * US, FAR, Some(0)),
                Wait::Asleep(due_us * US),
                "due_us={due_us}"
            );
        }
        assert_eq!(off.wait_after(0, FAR, 9, 9, FAR, None), Wait::NotAtAll);
    }

    #[test]
    fn with_slack_a_thread_sleeps_past_the_due_time_and_wakes_when_the_slack_is_over() {
        let spin = Habits { slack_wakes_late_ns: 20 * US, ..habits(50, 20, 5, Busy::Freely) };
        let wait = |slack_us: u64, now_us: u64, due_us: u64| {
            let slack = Habits { slack_ns: slack_us * US, ..spin };
            slack.wait_after(0, FAR, now_us * US, due_us * US, FAR, Some(0))
        };
        let within = |earliest_us: u64, wanted_us: u64, latest_us: u64| Wait::Within {
            answer_by_ns: 5 * US,
            earliest_ns: earliest_us * US,
            wanted_ns: wanted_us * US,
            latest_ns: latest_us * US,
        };
        assert_eq!(wait(50, 0, 10), within(10, 40, 60));
        assert_eq!(
            wait(10, 0, 10),
            within(10, 10, 20),
            "late by no more than the machine wakes its sleepers"
        );
        assert_eq!(wait(50, 10, 10), Wait::NotAtAll, "who is awake sends");
        assert_eq!(wait(50, 0, NEVER / US), Wait::Asleep(FAR));
    }

    #[test]
    fn with_slack_only_an_answer_is_waited_for_busily_no_longer_than_a_sleep_costs_or_until_one_is_due() {
        let answer_by = |busy: Busy, spun_us: u64, due_us: u64| {
            let slack = Habits { sleep_cost_ns: 5 * US, busy, slack_ns: 50 * US, ..Habits::default() };
            match slack.wait_after(spun_us * US, 1000 * US, 100 * US, due_us * US, FAR, Some(0)) {
                Wait::Within { answer_by_ns, .. } => answer_by_ns / US,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([answer_by(Busy::Freely, 900, 120), answer_by(Busy::Freely, 900, 103)], [105, 103]);
        assert_eq!([answer_by(Busy::Sparingly, 50, 120), answer_by(Busy::Sparingly, 51, 120)], [105, 100]);
        assert_eq!(answer_by(Busy::Never, 0, 120), 100);
    }

    #[test]
    fn with_slack_the_timer_is_set_early_by_as_much_as_sleeps_of_this_run_end_late() {
        let mut slack = Habits { slack_ns: 50 * US, slack_wakes_late_ns: 40 * US, ..Habits::default() };
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            slack.woke_late(random.u64(5 * US..25 * US));
        }
        let Wait::Within { wanted_ns, .. } = slack.wait_after(0, FAR, 0, 100 * US, FAR, None) else {
            panic!("a request is due")
        };
        assert!((132 * US..138 * US).contains(&wanted_ns), "seed=5: half of the sleeps end by {wanted_ns}");
        (0..10_000).for_each(|_| slack.woke_late(FAR));
        assert_eq!(slack.slack_wakes_late_ns, WAKES_LATE_NS_MAX);
    }

    #[test]
    fn who_shares_a_cpu_finishes_waits_busily_only_up_to_a_twentieth_of_the_time() {
        let sparing = habits(0, 20, 5, Busy::Sparingly);
        assert_eq!(sparing.wait_after(50 * US, 1000 * US, 0, 10 * US, FAR, None), Wait::Busily(10 * US));
        assert_eq!(sparing.wait_after(51 * US, 1000 * US, 0, 10 * US, FAR, None), Wait::Asleep(10 * US));
    }

    #[test]
    fn where_the_service_has_another_cpu_a_wait_no_longer_than_a_sleep_costs_is_always_busy() {
        let wait = |busy: Busy, due_us: u64, answer_sent_ns: Option<u64>| {
            habits(0, 20, 5, busy).wait_after(FAR, FAR, 0, due_us * US, FAR, answer_sent_ns)
        };
        for answer_sent_ns in [None, Some(0)] {
            assert_eq!(wait(Busy::Cheaply, 5, answer_sent_ns), Wait::Busily(5 * US));
            assert_eq!(wait(Busy::Cheaply, 6, answer_sent_ns), Wait::Asleep(6 * US));
            assert_eq!(wait(Busy::Sparingly, 5, answer_sent_ns), Wait::Asleep(5 * US));
        }
        assert_eq!(wait(Busy::Cheaply, 0, None), Wait::NotAtAll);
    }
}
