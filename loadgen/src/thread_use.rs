//! What one thread used while it sent: CPU, and time waiting in every way.

use crate::steps::Steps;
use crate::waiting::Habits;

#[derive(Clone, Debug)]
pub struct ThreadUse {
    pub connections: usize,
    /// Requests: with a script the first so many that this thread's `request()` made, unless a write failed.
    pub sent: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub spun_ns: u64,
    pub habits: Habits,
    /// It stopped spinning during the run, since others needed the CPU.
    pub spin_given_up: bool,
    pub waited_for_cpu_ns: Option<u64>,
}

impl ThreadUse {
    /// Of one CPU, 0 to 1.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_ns as f64 / self.wall_ns.max(1) as f64
    }

    /// What it used between two moments.
    pub fn between(&self, from: &UsedBy, until: &UsedBy) -> Self {
        let UsedBy { at_ns: wall_ns, cpu_ns, spun_ns, waited_for_cpu_ns } = until.since(from);
        Self { wall_ns, cpu_ns, spun_ns, waited_for_cpu_ns, ..self.clone() }
    }
}

/// What a thread had used by a moment; all times but that are from when the thread began.
#[derive(Clone, Copy, Debug)]
pub struct UsedBy {
    pub at_ns: u64,
    pub cpu_ns: u64,
    pub spun_ns: u64,
    pub waited_for_cpu_ns: Option<u64>,
}

impl UsedBy {
    /// What it used since another moment, `at_ns` the time between.
    fn since(&self, from: &Self) -> Self {
        let waited = self.waited_for_cpu_ns.zip(from.waited_for_cpu_ns);
        Self {
            at_ns: self.at_ns.saturating_sub(from.at_ns),
            cpu_ns: self.cpu_ns.saturating_sub(from.cpu_ns),
            spun_ns: self.spun_ns.saturating_sub(from.spun_ns),
            waited_for_cpu_ns: waited.map(|(until_ns, from_ns)| until_ns.saturating_sub(from_ns)),
        }
    }
}

/// What a thread had used at the moments that the result tells of.
#[derive(Debug, Default)]
pub struct UseLog {
    /// When the schedule started; none before that.
    at_start: Option<UsedBy>,
    /// When each step began, as far as they have.
    at_steps: Vec<UsedBy>,
}

impl UseLog {
    /// The schedule has started. What was used before is no part of the run: it may have waited for an hour.
    #[inline]
    pub fn start(&mut self, used: impl FnOnce() -> UsedBy) {
        if self.at_start.is_none() {
            self.at_start = Some(used());
        }
    }

    /// Notes each step that has begun, in a run that started then; returns when the next begins.
    pub fn note_steps(
        &mut self,
        steps: &Steps,
        start_ns: u64,
        now_ns: u64,
        used: impl Fn() -> UsedBy,
    ) -> u64 {
        while self.at_steps.len() < steps.count() {
            let begins_ns = start_ns + steps.start_ns(self.at_steps.len());
            if now_ns < begins_ns {
                return begins_ns;
            }
            self.at_steps.push(used());
        }
        u64::MAX
    }

    /// What the thread used from the start until sending ended. A run that never started used nothing.
    pub fn since_start(&self, until: &UsedBy) -> UsedBy {
        until.since(self.at_start.as_ref().unwrap_or(until))
    }

    /// What it had used when each of so many steps began, and when sending ended; those that were not begun
    /// used nothing.
    pub fn into_steps(mut self, steps: Option<&Steps>, until: UsedBy) -> Vec<UsedBy> {
        if let Some(steps) = steps {
            self.at_steps.resize(steps.count() + 1, until);
        }
        self.at_steps
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::steps::Step;

    const SECOND: u64 = 1_000_000_000;

    /// A thread that works for a tenth of the time, waits busily for another, and for its CPU for a third.
    fn used_by(at_ns: u64) -> UsedBy {
        UsedBy { at_ns, cpu_ns: at_ns / 5, spun_ns: at_ns / 10, waited_for_cpu_ns: Some(at_ns / 10) }
    }

    #[test]
    fn what_was_used_before_the_start_is_no_part_of_the_run_and_only_the_first_look_behind_it_counts() {
        let mut log = UseLog::default();
        [3, 5].iter().for_each(|second| log.start(|| used_by(second * SECOND)));
        let used = log.since_start(&used_by(13 * SECOND));
        assert_eq!((used.cpu_ns, used.spun_ns), (2 * SECOND, SECOND));
        assert_eq!(used.waited_for_cpu_ns, Some(SECOND));
        let never = UseLog::default().since_start(&used_by(13 * SECOND));
        assert_eq!((never.cpu_ns, never.spun_ns, never.waited_for_cpu_ns), (0, 0, Some(0)));
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_waits_is_not_taken_for_one_without_any() {
        let silent = |at_ns: u64| UsedBy { waited_for_cpu_ns: None, ..used_by(at_ns) };
        let mut log = UseLog::default();
        log.start(|| silent(0));
        assert_eq!(log.since_start(&silent(SECOND)).waited_for_cpu_ns, None);
    }

    #[test]
    fn steps_that_a_late_look_finds_begun_are_all_noted_and_those_never_begun_used_nothing() {
        let step = Step { rate_rps: 10.0, length: Duration::from_secs(1) };
        let steps = Steps::new(&[step; 4], 0);
        let mut log = UseLog::default();
        let mut note = |at_ns: u64| log.note_steps(&steps, SECOND, at_ns, || used_by(at_ns));
        assert_eq!([note(SECOND / 2), note(SECOND), note(3 * SECOND + 7)], [1, 2, 4].map(|s| s * SECOND));
        let used = log.into_steps(Some(&steps), used_by(4 * SECOND - 1));
        let at_ns: Vec<u64> = used.iter().map(|used| used.at_ns).collect();
        let late_ns = 3 * SECOND + 7;
        assert_eq!(at_ns, [SECOND, late_ns, late_ns, 4 * SECOND - 1, 4 * SECOND - 1]);
        assert!(UseLog::default().into_steps(None, used_by(9)).is_empty());
    }
}
