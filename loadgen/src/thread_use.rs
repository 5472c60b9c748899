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
    /// It was stopped, or did not get its CPU, when something was to be done: at least so long.
    pub away_ns: u64,
    /// So long before the end of the schedule it was away, and did not come again until then.
    pub away_at_end_ns: u64,
}

impl ThreadUse {
    /// Of one CPU, 0 to 1.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_ns as f64 / self.wall_ns.max(1) as f64
    }

    /// What it used between two moments.
    pub fn between(&self, from: &UsedBy, until: &UsedBy) -> Self {
        let UsedBy { at_ns: wall_ns, cpu_ns, spun_ns, waited_for_cpu_ns, away_ns } = until.since(from);
        let away_at_end_ns = self.away_at_end_ns.min(away_ns);
        Self { wall_ns, cpu_ns, spun_ns, waited_for_cpu_ns, away_ns, away_at_end_ns, ..self.clone() }
    }
}

/// What a thread had used by a moment; all times but that are from when the thread began.
#[derive(Clone, Copy, Debug)]
pub struct UsedBy {
    pub at_ns: u64,
    pub cpu_ns: u64,
    pub spun_ns: u64,
    pub waited_for_cpu_ns: Option<u64>,
    /// See [`Absence`].
    pub away_ns: u64,
}

impl UsedBy {
    /// What it used since another moment, `at_ns` the time between.
    fn since(&self, from: &Self) -> Self {
        Self {
            at_ns: self.at_ns.saturating_sub(from.at_ns),
            cpu_ns: self.cpu_ns.saturating_sub(from.cpu_ns),
            spun_ns: self.spun_ns.saturating_sub(from.spun_ns),
            waited_for_cpu_ns: self.waited_since(from),
            away_ns: self.away_ns.saturating_sub(from.away_ns),
        }
    }

    fn waited_since(&self, from: &Self) -> Option<u64> {
        let waited = self.waited_for_cpu_ns.zip(from.waited_for_cpu_ns);
        waited.map(|(until_ns, from_ns)| until_ns.saturating_sub(from_ns))
    }

    /// What it had used at a moment that this is the first look behind.
    ///
    /// What it was away or waited for a CPU since the look before is taken for the last that it did: a thread
    /// sleeps until something is due, then waits, then looks.
    fn already_at(&self, moment_ns: u64, look_before: &Self) -> Self {
        let behind_ns = self.at_ns.saturating_sub(moment_ns);
        let waited_behind = self.waited_since(look_before).map(|waited_ns| waited_ns.min(behind_ns));
        let waited = self.waited_for_cpu_ns.zip(waited_behind);
        let away_behind_ns = self.away_ns.saturating_sub(look_before.away_ns).min(behind_ns);
        Self {
            at_ns: moment_ns,
            waited_for_cpu_ns: waited.map(|(all_ns, behind_ns)| all_ns - behind_ns),
            away_ns: self.away_ns - away_behind_ns,
            ..*self
        }
    }
}

/// How long a thread was away: it did not run when something was to be done, and did not work until it
/// looked. The kernel counts no wait for a CPU where the program was stopped, or the machine, or where its
/// group of processes had used up its share.
#[derive(Debug, Default)]
pub struct Absence {
    /// When it last looked, and its CPU time then.
    at_ns: u64,
    cpu_ns: u64,
    total_ns: u64,
    /// Of that what lasted until the end of the schedule or longer.
    at_end_ns: u64,
}

impl Absence {
    /// Later than this it was away; earlier, a timer may have been late.
    const LATE_NS: u64 = 1_000_000;

    pub fn has_looked(&mut self, now_ns: u64, cpu_ns: u64) {
        (self.at_ns, self.cpu_ns) = (now_ns, cpu_ns);
    }

    /// It looks now, and was to look or to work from then on, in a run that ends then.
    pub fn look(&mut self, planned_ns: u64, now_ns: u64, end_ns: u64, cpu_ns: impl FnOnce() -> u64) {
        let is_over = now_ns >= end_ns;
        let now_ns = now_ns.min(end_ns);
        let late_ns = now_ns.saturating_sub(planned_ns.max(self.at_ns));
        if late_ns <= Self::LATE_NS {
            return;
        }
        let cpu_ns = cpu_ns();
        let away_ns = late_ns.saturating_sub(cpu_ns - self.cpu_ns);
        self.total_ns += away_ns;
        self.at_end_ns += if is_over { away_ns } else { 0 };
        self.has_looked(now_ns, cpu_ns);
    }

    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    pub fn at_end_ns(&self) -> u64 {
        self.at_end_ns
    }
}

/// What a thread had used at the moments that the result tells of.
#[derive(Debug)]
pub struct UseLog {
    newest: UsedBy,
    /// When the schedule started; none before that. What was used until then is no part of the run: it may
    /// have waited for an hour.
    at_start: Option<UsedBy>,
    /// When the warm-up was over, so long after the start; none before that.
    at_measure: Option<UsedBy>,
    warm_up_ns: u64,
    /// When each step began, as far as they have.
    at_steps: Vec<UsedBy>,
}

impl UseLog {
    /// `used` is the first look, before the start.
    pub fn new(used: UsedBy, warm_up_ns: u64) -> Self {
        Self { newest: used, at_start: None, at_measure: None, warm_up_ns, at_steps: Vec::new() }
    }

    #[inline]
    pub fn awaits_start(&self) -> bool {
        self.at_start.is_none()
    }

    #[inline]
    pub fn awaits_measure(&self) -> bool {
        self.at_measure.is_none()
    }

    /// Notes the start, the end of the warm-up and each step, if they have come since the look before, in a
    /// run that starts then; returns when the next of them comes.
    pub fn look(&mut self, start_ns: u64, steps: Option<&Steps>, used: UsedBy) -> u64 {
        let newest = std::mem::replace(&mut self.newest, used);
        if used.at_ns >= start_ns && self.awaits_start() {
            self.at_start = Some(used.already_at(start_ns, &newest));
        }
        let measure_ns = start_ns.saturating_add(self.warm_up_ns);
        if used.at_ns >= measure_ns && self.awaits_measure() {
            self.at_measure = Some(used.already_at(measure_ns, &newest));
        }
        let next_ns = if self.awaits_measure() { measure_ns } else { u64::MAX };
        while let Some(begins_ns) = self.next_step_ns(start_ns, steps) {
            if used.at_ns < begins_ns {
                return begins_ns.min(next_ns);
            }
            self.at_steps.push(used.already_at(begins_ns, &newest));
        }
        next_ns
    }

    /// The last look, of a schedule that ended then: what it waited for a CPU behind the end is no part of
    /// the run, as what it was away behind it is not either.
    pub fn end(&mut self, start_ns: u64, end_ns: u64, steps: Option<&Steps>, used: UsedBy) {
        let at_end = used.already_at(used.at_ns.min(end_ns), &self.newest);
        self.look(start_ns, steps, UsedBy { away_ns: used.away_ns, ..at_end });
    }

    fn next_step_ns(&self, start_ns: u64, steps: Option<&Steps>) -> Option<u64> {
        let step = self.at_steps.len();
        steps.filter(|steps| step < steps.count()).map(|steps| start_ns + steps.start_ns(step))
    }

    /// What the thread used from the start until the last look. A run that never started used nothing.
    pub fn since_start(&self) -> UsedBy {
        self.newest.since(self.at_start.as_ref().unwrap_or(&self.newest))
    }

    /// From when to when its use is judged: from the end of the warm-up until the last look, or all of a run
    /// that was called off before.
    pub fn measured(&self) -> (UsedBy, UsedBy) {
        (self.at_measure.or(self.at_start).unwrap_or(self.newest), self.newest)
    }

    /// What it had used when each of so many steps began, and at the last look; those that were not begun
    /// used nothing.
    pub fn into_steps(mut self, steps: Option<&Steps>) -> Vec<UsedBy> {
        if let Some(steps) = steps {
            self.at_steps.resize(steps.count() + 1, self.newest);
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
        UsedBy {
            at_ns,
            cpu_ns: at_ns / 5,
            spun_ns: at_ns / 10,
            waited_for_cpu_ns: Some(at_ns / 10),
            away_ns: 0,
        }
    }

    fn looked(start_ns: u64, looks: &[UsedBy]) -> UseLog {
        let mut log = UseLog::new(looks[0], 0);
        looks[1..].iter().for_each(|&used| _ = log.look(start_ns, None, used));
        log
    }

    #[test]
    fn what_was_used_before_the_start_is_no_part_of_the_run_and_only_the_first_look_behind_it_counts() {
        let used = looked(3 * SECOND, &[0, 3, 5, 13].map(|second| used_by(second * SECOND))).since_start();
        assert_eq!((used.at_ns, used.cpu_ns, used.spun_ns), (10 * SECOND, 2 * SECOND, SECOND));
        assert_eq!(used.waited_for_cpu_ns, Some(SECOND));
        let never = looked(14 * SECOND, &[0, 13].map(|second| used_by(second * SECOND))).since_start();
        assert_eq!((never.cpu_ns, never.spun_ns, never.waited_for_cpu_ns), (0, 0, Some(0)));
    }

    #[test]
    fn a_thread_that_gets_no_cpu_from_before_the_start_on_has_waited_since_the_start() {
        let looks = |late| [used_by(0), UsedBy { waited_for_cpu_ns: Some(late), ..used_by(5 * SECOND) }];
        let waited = |late| looked(3 * SECOND, &looks(late)).since_start().waited_for_cpu_ns;
        assert_eq!([4 * SECOND, 2 * SECOND, SECOND].map(waited), [2, 2, 1].map(|s| Some(s * SECOND)));
    }

    #[test]
    fn a_thread_that_is_stopped_from_before_the_start_on_was_away_since_the_start() {
        let after = UsedBy { away_ns: 4 * SECOND, ..used_by(5 * SECOND) };
        assert_eq!(looked(3 * SECOND, &[used_by(0), after]).since_start().away_ns, 2 * SECOND);
    }

    #[test]
    fn what_a_thread_works_until_it_looks_is_no_absence_nor_is_a_late_timer() {
        const MS: u64 = 1_000_000;
        let mut absence = Absence::default();
        absence.has_looked(0, 100 * MS);
        let mut away_after = |planned_ns, now_ns, cpu_ns| {
            absence.look(planned_ns, now_ns, 3 * SECOND, || cpu_ns);
            (absence.total_ns() / MS, absence.at_end_ns() / MS)
        };
        assert_eq!(away_after(SECOND, SECOND + MS, 100 * MS), (0, 0));
        assert_eq!(away_after(SECOND, SECOND + 50 * MS, 120 * MS), (30, 0));
        assert_eq!(away_after(2 * SECOND, 2 * SECOND + 50 * MS, 190 * MS), (30, 0));
        assert_eq!(away_after(SECOND, 2 * SECOND + 70 * MS, 205 * MS), (35, 0), "it looked since");
        assert_eq!(away_after(2 * SECOND + 100 * MS, 4 * SECOND, 205 * MS), (935, 900), "until the end");
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_waits_is_not_taken_for_one_without_any() {
        let silent = |at_ns: u64| UsedBy { waited_for_cpu_ns: None, ..used_by(at_ns) };
        assert_eq!(looked(0, &[silent(0), silent(SECOND)]).since_start().waited_for_cpu_ns, None);
    }

    #[test]
    fn what_is_judged_is_what_was_used_behind_the_warm_up() {
        let waited = |second: u64, ms: u64| UsedBy {
            waited_for_cpu_ns: Some(ms * 1_000_000),
            ..used_by(second * SECOND)
        };
        let mut log = UseLog::new(waited(0, 0), 30 * SECOND);
        let next = log.look(0, None, waited(0, 0));
        assert_eq!((next, log.awaits_measure()), (30 * SECOND, true));
        let called_off = log.measured();
        assert_eq!((called_off.0.at_ns, called_off.1.at_ns), (0, 0));
        for used in [waited(30, 12_000), waited(40, 12_200)] {
            assert_eq!(log.look(0, None, used), u64::MAX);
        }
        let (from, until) = log.measured();
        let used = until.since(&from);
        assert_eq!((used.at_ns, used.waited_for_cpu_ns), (10 * SECOND, Some(SECOND / 5)));
        assert_eq!(log.since_start().waited_for_cpu_ns, Some(12_200_000_000), "of the whole run");
    }

    #[test]
    fn what_comes_behind_the_end_is_no_part_of_the_run() {
        let late =
            UsedBy { waited_for_cpu_ns: Some(16 * SECOND), away_ns: 5 * SECOND, ..used_by(20 * SECOND) };
        let mut log = looked(0, &[used_by(0), used_by(5 * SECOND)]);
        log.end(0, 10 * SECOND, None, late);
        let used = log.since_start();
        assert_eq!((used.at_ns, used.away_ns), (10 * SECOND, 5 * SECOND), "which was clipped already");
        assert_eq!(used.waited_for_cpu_ns, Some(6 * SECOND));
    }

    fn four_steps() -> Steps {
        Steps::new(&[Step { rate_rps: 10.0, length: Duration::from_secs(1) }; 4], 0)
    }

    #[test]
    fn steps_that_a_late_look_finds_begun_are_all_noted_and_those_never_begun_used_nothing() {
        let steps = four_steps();
        let mut log = UseLog::new(used_by(0), 0);
        let mut look = |at_ns: u64| log.look(SECOND, Some(&steps), used_by(at_ns));
        assert_eq!([look(SECOND / 2), look(SECOND), look(3 * SECOND + 7)], [1, 2, 4].map(|s| s * SECOND));
        look(4 * SECOND - 1);
        let at_ns: Vec<u64> = log.into_steps(Some(&steps)).iter().map(|used| used.at_ns).collect();
        assert_eq!(at_ns, [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND - 1, 4 * SECOND - 1]);
        assert!(UseLog::new(used_by(0), 0).into_steps(None).is_empty());
    }

    #[test]
    fn a_wait_that_lasts_from_one_step_into_the_last_belongs_to_all_of_them() {
        let steps = four_steps();
        let waited = |at_ns: u64, ns: u64| UsedBy { waited_for_cpu_ns: Some(ns), ..used_by(at_ns) };
        let mut log = UseLog::new(waited(0, 0), 0);
        for used in [waited(SECOND / 2, 0), waited(4 * SECOND, 7 * SECOND / 2)] {
            log.look(0, Some(&steps), used);
        }
        let used = log.into_steps(Some(&steps));
        let by_step: Vec<u64> = used.windows(2).map(|pair| pair[1].waited_since(&pair[0]).unwrap()).collect();
        assert_eq!(by_step, [SECOND / 2, SECOND, SECOND, SECOND]);
    }
}
