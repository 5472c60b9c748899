//! Whether the generator itself was the limit, and why: so that nobody takes its limit for the service's.
//!
//! A request is late either because its connection waited for the service, or because the generator was not
//! there in time. Only the second is held against the generator:
//! - *out of time*: a thread had less than a twentieth of its time to spare. Time to spare is time asleep or
//!   waiting busily; it is what remains of the wall clock after work and after waiting for a CPU that
//!   somebody else had. If the offered rate was not kept, or requests left late, then a thread without time
//!   to spare is the limit, whatever the service did. What left in time and was under way at the end is kept:
//!   only a run without end has no such requests. A closed loop asks for as much as there is, so there a
//!   thread without time to spare, or one that waited for a CPU for over a quarter of it, is the limit
//!   always.
//! - *late by itself*: requests left late by the generator's own fault (see `lateness`), by more than the
//!   measurement can bear.
//!
//! Neither, and still late: the connections were taken all the time. Then the service was slow, or they were
//! too few. Or they were lost: what the generator paused before it tried again is no fault of it, but may be
//! more than the measurement can bear.

use std::ops::RangeInclusive;

use hdrhistogram::Histogram;

use crate::own_lateness::OwnHistograms;
use crate::statistics::{self, PRINTED_PERCENTILES};
use crate::thread_use::ThreadUse;
use crate::units::rate;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// None if nobody can tell.
    pub generator_saturated: Option<bool>,
    /// What kept requests from leaving in time; begins with `busy:`, `starved:` (the generator),
    /// `connections:` or `reconnecting:`.
    pub reason: Option<String>,
    /// Of those that are printed, all percentiles of the response time of which the generator itself made too
    /// much to be bearable.
    pub distorted_percentiles: Vec<f64>,
}

/// What is judged.
#[derive(Debug)]
pub struct Facts<'a> {
    pub threads: &'a [ThreadUse],
    /// None in a closed loop.
    pub offered_rate_rps: Option<f64>,
    pub achieved_rate_rps: f64,
    /// Of what was due, the share that was answered before the end, or had left in time and was answered
    /// behind it; see [`IN_TIME_NS`].
    pub kept_share: f64,
    /// How late requests may leave.
    pub slack_us: u64,
    /// What of the lateness of sends is not the service's, microseconds as all of them.
    pub own_lateness: &'a OwnHistograms,
    pub lateness: &'a Histogram<u64>,
    pub response: &'a Histogram<u64>,
    pub connections: usize,
    /// How much of the time they waited for answers, 0 to 1.
    pub connections_busy_share: f64,
}

/// Less time to spare than this share of the wall clock is none.
const SPARE_SHARE_MIN: f64 = 0.05;
/// Who waited longer than this share of it for a CPU was starved.
const WAITED_SHARE_MAX: f64 = 0.25;
/// Below this share of what was due the offered rate was not kept.
const KEPT_SHARE_MIN: f64 = 0.999;
/// Threads that were away at the end for this share of what was not kept are why it was not.
const AWAY_SHARE_MIN: f64 = 0.8;
/// Own lateness up to this never matters …
const OWN_LATENESS_US_MAX: u64 = 1000;
/// … and what left no later than this, beside the slack it had, left in time.
pub const IN_TIME_NS: u64 = OWN_LATENESS_US_MAX * 1000;
/// Nor does it matter where it is less than this share of the response time that is reported.
const OWN_LATENESS_SHARE_MAX: f64 = 0.1;
/// A percentile with fewer samples beyond it is that of single requests: it says nothing about the generator.
const SAMPLES_BEYOND_MIN: f64 = 10.0;
/// Own lateness at a percentile from the median up to p99 is held against the whole run; elsewhere only that
/// percentile is.
const JUDGED_PERCENTILES: RangeInclusive<f64> = 50.0..=JUDGED_PERCENTILE_MAX;
const JUDGED_PERCENTILE_MAX: f64 = 99.0;
/// Connections that waited for answers for this share of the time left no room for what fell due.
const CONNECTIONS_BUSY_SHARE_MIN: f64 = 0.9;

/// How the reason begins where a generator had time to spare and was late by itself: that may spoil some
/// percentiles alone, where one without time to spare spoils all.
pub const LATE_BY_ITSELF: &str = "starved: requests left late by the generator's own fault";

/// 0 to 1; 1 of nothing.
pub fn kept_share(kept: u64, due: u64) -> f64 {
    if due == 0 { 1.0 } else { kept as f64 / due as f64 }
}

pub fn judge(facts: &Facts) -> Verdict {
    let pauses = facts.own_lateness.pauses_of_all();
    let by_fault = |percentile| distorts(facts, &facts.own_lateness.faults, percentile);
    let by_pause = |percentile| distorts(facts, &pauses, percentile);
    let distorted_percentiles: Vec<f64> = PRINTED_PERCENTILES
        .into_iter()
        .filter(|&percentile| by_fault(percentile) || by_pause(percentile))
        .collect();
    let judged = || PRINTED_PERCENTILES.into_iter().rev().filter(|at| JUDGED_PERCENTILES.contains(at));
    let late_by_itself = || judged().find(|&at| by_fault(at)).map(|at| late_by_itself(facts, at));
    if let Some(reason) = out_of_time(facts).or_else(late_by_itself) {
        return Verdict { generator_saturated: Some(true), reason: Some(reason), distorted_percentiles };
    }
    let unknown = facts.offered_rate_rps.is_none()
        && facts.threads.iter().any(|thread| thread.waited_for_cpu_ns.is_none());
    Verdict {
        generator_saturated: (!unknown).then_some(false),
        reason: too_few_connections(facts)
            .or_else(|| judged().find(|&at| by_pause(at)).map(|at| found_again_late(&pauses, at))),
        distorted_percentiles,
    }
}

fn out_of_time(facts: &Facts) -> Option<String> {
    if !fell_behind(facts) {
        return None;
    }
    if let Some(reason) = away(facts) {
        return Some(reason);
    }
    let (index, thread) = facts
        .threads
        .iter()
        .enumerate()
        .min_by(|(_, a), (_, b)| spare_share(a).total_cmp(&spare_share(b)))?;
    let (work, waited) = (work_share(thread), waited_share(thread));
    let starved = waited > WAITED_SHARE_MAX;
    let lost_requests_by_it = starved && facts.offered_rate_rps.is_none();
    if spare_share(thread) >= SPARE_SHARE_MIN && !lost_requests_by_it {
        return None;
    }
    let told =
        format!("it worked {:.1} % of the time and waited {:.1} % for a CPU", work * 100.0, waited * 100.0);
    Some(if starved {
        format!("starved: thread {index} did not get the CPU it needed: {told}")
    } else {
        format!("busy: thread {index} had no time to spare: {told}")
    })
}

/// Most of what was not kept fell due while threads did not run, nor ran again before the end. What was never
/// sent has no lateness, so nothing else tells of it.
fn away(facts: &Facts) -> Option<String> {
    facts.offered_rate_rps?;
    let away_share = |thread: &ThreadUse| share(thread.away_at_end_ns, thread);
    let (index, thread) =
        facts.threads.iter().enumerate().max_by(|(_, a), (_, b)| a.away_at_end_ns.cmp(&b.away_at_end_ns))?;
    let of_all = facts.threads.iter().map(away_share).sum::<f64>() / facts.threads.len() as f64;
    (facts.kept_share < KEPT_SHARE_MIN && of_all >= (1.0 - facts.kept_share) * AWAY_SHARE_MIN).then(|| {
        format!(
            "starved: thread {index} was stopped, or did not get a CPU, for the last {:.1} % of the time",
            away_share(thread) * 100.0
        )
    })
}

/// The rate was missed or sends were late; a closed loop, which always wants more, is behind always.
fn fell_behind(facts: &Facts) -> bool {
    facts.offered_rate_rps.is_none()
        || facts.kept_share < KEPT_SHARE_MIN
        || statistics::percentile(facts.lateness, JUDGED_PERCENTILE_MAX)
            > OWN_LATENESS_US_MAX + facts.slack_us
}

fn late_by_itself(facts: &Facts, percentile: f64) -> String {
    let own_us = statistics::percentile(&facts.own_lateness.faults, percentile);
    let waited = facts.threads.iter().map(waited_share).fold(0.0, f64::max);
    format!(
        "{LATE_BY_ITSELF}: own lateness p{percentile} = {own_us} us; a thread waited {:.1} % of the time \
            for a CPU",
        waited * 100.0
    )
}

fn found_again_late(pauses: &Histogram<u64>, percentile: f64) -> String {
    format!(
        "reconnecting: connections were lost, and the generator paused before it tried again: of the \
            lateness of sends p{percentile} = {} us are such a pause at most",
        statistics::percentile(pauses, percentile)
    )
}

/// Lateness of this kind is too large a part of this percentile, and there are samples enough to say so.
/// Where nothing was answered there is no percentile that it could be a part of.
fn distorts(facts: &Facts, kind: &Histogram<u64>, percentile: f64) -> bool {
    let samples_beyond = kind.len() as f64 * (1.0 - percentile / 100.0);
    let own_us = statistics::percentile(kind, percentile);
    let response_us = statistics::percentile(facts.response, percentile);
    !facts.response.is_empty()
        && samples_beyond + 1e-6 >= SAMPLES_BEYOND_MIN
        && own_us > OWN_LATENESS_US_MAX
        && own_us as f64 > response_us as f64 * OWN_LATENESS_SHARE_MAX
}

fn too_few_connections(facts: &Facts) -> Option<String> {
    let offered = facts.offered_rate_rps?;
    if !fell_behind(facts) || facts.connections_busy_share < CONNECTIONS_BUSY_SHARE_MIN {
        return None;
    }
    let remedy = match needed_connections(facts, offered) {
        Some(needed) => format!(
            "{needed} or more are needed for {}/s at this service time, unless it is the service \
                that is overloaded",
            rate(offered)
        ),
        None => "the service answered nothing, so how many are needed is not known".to_owned(),
    };
    Some(format!(
        "connections: requests waited for a free connection: {} of them were busy {:.0} % of the time; \
            {remedy}",
        facts.connections,
        facts.connections_busy_share * 100.0,
    ))
}

/// As many as are busy at once at the offered rate (Little's law), and half as many again for what is not
/// even. None where nothing was answered: no service time is known.
fn needed_connections(facts: &Facts, offered_rate_rps: f64) -> Option<u64> {
    let busy = facts.connections as f64 * facts.connections_busy_share;
    (facts.achieved_rate_rps > 0.0)
        .then(|| (busy * offered_rate_rps / facts.achieved_rate_rps * 1.5).ceil().min(1e6) as u64)
}

fn spare_share(thread: &ThreadUse) -> f64 {
    1.0 - work_share(thread) - waited_share(thread)
}

fn work_share(thread: &ThreadUse) -> f64 {
    share(thread.cpu_ns.saturating_sub(thread.spun_ns), thread)
}

fn waited_share(thread: &ThreadUse) -> f64 {
    share(thread.waited_for_cpu_ns.unwrap_or(0).max(thread.away_ns), thread)
}

/// At most all of the time: the kernel counts a wait where it ends, also one that began before.
fn share(part_ns: u64, thread: &ThreadUse) -> f64 {
    (part_ns as f64 / thread.wall_ns.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::histogram;
    use crate::waiting::Habits;

    /// A thread that for each of 1000 ms worked, spun, and waited for a CPU this long, and slept the rest.
    fn thread(work_ms: u64, spun_ms: u64, waited_ms: u64) -> ThreadUse {
        let ms = 1_000_000;
        ThreadUse {
            connections: 1,
            sent: 0,
            wall_ns: 1000 * ms,
            cpu_ns: (work_ms + spun_ms) * ms,
            spun_ns: spun_ms * ms,
            habits: Habits::default(),
            spin_given_up: false,
            waited_for_cpu_ns: Some(waited_ms * ms),
            away_ns: 0,
            away_at_end_ns: 0,
        }
    }

    /// (microseconds, how often).
    type Values<'a> = &'a [(u64, u64)];

    #[derive(Clone, Copy)]
    struct Run<'a> {
        threads: &'a [ThreadUse],
        offered: Option<f64>,
        achieved: f64,
        /// As much as was achieved, unless it is said.
        kept_share: Option<f64>,
        own: Values<'a>,
        pauses: Values<'a>,
        lateness: Values<'a>,
        response: Values<'a>,
        busy_share: f64,
        slack_us: u64,
    }

    impl Default for Run<'_> {
        fn default() -> Self {
            let quick: Values = &[(50, 10_000)];
            let (offered, response): (_, Values) = (Some(1000.0), &[(400, 10_000)]);
            Self {
                threads: &[],
                offered,
                achieved: 1000.0,
                kept_share: None,
                own: quick,
                pauses: &[],
                lateness: quick,
                response,
                busy_share: 0.3,
                slack_us: 0,
            }
        }
    }

    impl Run<'_> {
        fn judged(&self) -> Verdict {
            let filled = |values: Values| {
                let mut filled: Histogram<u64> = histogram();
                values.iter().for_each(|&(us, count)| filled.record_n(us, count).unwrap());
                filled
            };
            judge(&Facts {
                threads: self.threads,
                offered_rate_rps: self.offered,
                achieved_rate_rps: self.achieved,
                kept_share: self.kept_share.unwrap_or(self.achieved / self.offered.unwrap_or(self.achieved)),
                slack_us: self.slack_us,
                own_lateness: &OwnHistograms { faults: filled(self.own), pauses: filled(self.pauses) },
                lateness: &filled(self.lateness),
                response: &filled(self.response),
                connections: 4,
                connections_busy_share: self.busy_share,
            })
        }
    }

    const SECONDS: Values = &[(5_000_000, 1000)];

    #[test]
    fn a_slow_service_is_not_the_generators_fault() {
        let slow = Run {
            threads: &[thread(100, 0, 5)],
            achieved: 300.0,
            lateness: SECONDS,
            response: SECONDS,
            ..Run::default()
        };
        assert_eq!(slow.judged(), Verdict { generator_saturated: Some(false), ..Verdict::default() });
    }

    #[test]
    fn connections_that_are_busy_all_the_time_are_named_with_how_many_it_needs() {
        let slow = Run {
            threads: &[thread(100, 0, 5)],
            achieved: 200.0,
            lateness: SECONDS,
            response: SECONDS,
            busy_share: 1.0,
            ..Run::default()
        };
        let verdict = slow.judged();
        assert_eq!(verdict.generator_saturated, Some(false));
        let reason = verdict.reason.unwrap();
        assert!(
            reason.starts_with("connections: ") && reason.contains("30 or more are needed for 1000/s"),
            "{reason}"
        );
    }

    #[test]
    fn where_nothing_was_answered_no_number_of_connections_is_named() {
        let hung = Run {
            threads: &[thread(100, 0, 5)],
            achieved: 0.0,
            lateness: SECONDS,
            busy_share: 1.0,
            ..Run::default()
        };
        let reason = hung.judged().reason.unwrap();
        assert!(
            reason.starts_with("connections: ") && reason.contains("answered nothing, so how many"),
            "{reason}"
        );
    }

    #[test]
    fn what_left_in_time_and_was_under_way_at_the_end_is_no_rate_missed() {
        // 190 a second at 5 ms over one connection: the last of a second is answered behind its end.
        let full = Run { offered: Some(190.0), achieved: 189.0, busy_share: 0.95, ..Run::default() };
        for threads in [&[thread(100, 0, 5)], &[thread(960, 0, 5)]] {
            let kept = Run { threads, kept_share: Some(1.0), ..full };
            assert_eq!(kept.judged(), Verdict { generator_saturated: Some(false), ..Verdict::default() });
        }
        let missed = Run { threads: &[thread(100, 0, 5)], kept_share: Some(0.99), ..full };
        assert!(missed.judged().reason.unwrap().starts_with("connections: "));
    }

    #[test]
    fn busy_connections_of_a_run_that_keeps_up_are_nobodys_fault() {
        assert_eq!(
            Run { threads: &[thread(100, 0, 5)], busy_share: 0.95, ..Run::default() }.judged().reason,
            None
        );
    }

    #[test]
    fn spinning_is_time_to_spare() {
        let slow = Run {
            threads: &[thread(300, 700, 0)],
            achieved: 300.0,
            lateness: SECONDS,
            response: SECONDS,
            ..Run::default()
        };
        assert_eq!(slow.judged().generator_saturated, Some(false));
    }

    #[test]
    fn a_thread_without_time_to_spare_is_busy() {
        let verdict =
            Run { threads: &[thread(100, 0, 0), thread(985, 5, 5)], achieved: 800.0, ..Run::default() }
                .judged();
        assert!(verdict.reason.unwrap().starts_with("busy: thread 1"));
    }

    #[test]
    fn a_thread_that_waits_for_its_cpu_is_starved() {
        let verdict = Run { threads: &[thread(300, 0, 690)], achieved: 800.0, ..Run::default() }.judged();
        assert!(verdict.reason.unwrap().starts_with("starved: thread 0"));
    }

    #[test]
    fn of_a_wait_that_began_before_the_time_no_more_than_all_of_it_is_told() {
        let verdict = Run { threads: &[thread(10, 0, 15_735)], achieved: 800.0, ..Run::default() }.judged();
        let reason = verdict.reason.unwrap();
        assert!(reason.ends_with("it worked 1.0 % of the time and waited 100.0 % for a CPU"), "{reason}");
    }

    #[test]
    fn threads_that_were_stopped_while_what_is_missing_fell_due_are_the_limit() {
        let away = |away_ms: u64| ThreadUse { away_at_end_ns: away_ms * 1_000_000, ..thread(100, 0, 0) };
        let judged = |threads: &[ThreadUse], kept_share| {
            Run { threads, kept_share: Some(kept_share), busy_share: 0.2, ..Run::default() }.judged()
        };
        let reason = judged(&[thread(100, 0, 0), away(400)], 0.8).reason.unwrap();
        assert!(
            reason.starts_with("starved: thread 1 was stopped, ") && reason.contains("40.0 %"),
            "{reason}"
        );
        let before = ThreadUse { away_ns: 400_000_000, ..thread(100, 0, 0) };
        assert_eq!(judged(&[before], 0.8).generator_saturated, Some(false), "what is late then is sent late");
        for (away_ms, kept_share) in [(150, 0.5), (5, 0.998), (400, 0.9995)] {
            let verdict = judged(&[away(away_ms), thread(100, 0, 0)], kept_share);
            assert_eq!(verdict.generator_saturated, Some(away_ms == 5), "{away_ms} ms, kept {kept_share}");
        }
    }

    #[test]
    fn a_closed_loop_is_judged_by_the_time_its_threads_had_to_spare() {
        let closed =
            |threads: &[ThreadUse]| Run { threads, offered: None, own: &[], ..Run::default() }.judged();
        assert!(
            closed(&[thread(300, 0, 0), thread(990, 0, 0)]).reason.unwrap().starts_with("busy: thread 1")
        );
        assert!(closed(&[thread(200, 0, 790)]).reason.unwrap().starts_with("starved: thread 0"));
        assert!(
            closed(&[thread(30, 0, 890)]).reason.unwrap().starts_with("starved: "),
            "it sleeps while its few requests are served"
        );
        assert_eq!(
            closed(&[thread(700, 0, 100)]),
            Verdict { generator_saturated: Some(false), ..Verdict::default() }
        );
    }

    #[test]
    fn closed_loops_on_two_cores_that_a_service_shares_are_condemned_only_where_a_thread_is_at_its_limit() {
        // From the reference runs, in which a service of two threads shared both cores: (work, waited for a
        // CPU) of each thread.
        let closed = |threads: &[(u64, u64)]| {
            let threads: Vec<ThreadUse> =
                threads.iter().map(|&(work_ms, waited_ms)| thread(work_ms, 0, waited_ms)).collect();
            Run { threads: &threads, offered: None, own: &[], ..Run::default() }.judged().generator_saturated
        };
        for healthy in [
            &[(860, 20)][..],
            &[(340, 90), (320, 50)],
            &[(220, 178), (208, 162), (199, 156), (204, 149)],
            &[(160, 50)],
        ] {
            assert_eq!(closed(healthy), Some(false), "{healthy:?}");
        }
        assert_eq!(closed(&[(952, 13)]), Some(true), "199 000 requests per second by one thread");
    }

    #[test]
    fn of_a_closed_loop_whose_time_to_spare_is_not_known_nothing_is_said() {
        let blind = |work_ms| ThreadUse { waited_for_cpu_ns: None, ..thread(work_ms, 0, 0) };
        let closed = |thread| Run { threads: &[thread], offered: None, own: &[], ..Run::default() }.judged();
        assert_eq!(closed(blind(300)).generator_saturated, None);
        assert_eq!(
            closed(blind(990)).generator_saturated,
            Some(true),
            "it worked all the time, whatever the kernel tells"
        );
    }

    #[test]
    fn sends_late_by_its_own_fault_are_the_generators_even_if_the_rate_was_held() {
        let late: Values = &[(50, 9800), (3000, 200)];
        let verdict = Run {
            threads: &[thread(100, 0, 300)],
            own: late,
            lateness: late,
            response: &[(400, 9800), (3500, 200)],
            ..Run::default()
        }
        .judged();
        assert!(verdict.reason.unwrap().contains("own lateness p99 = 3"));
        assert_eq!(verdict.distorted_percentiles, [99.0, 99.5, 99.9]);
    }

    #[test]
    fn every_percentile_that_is_printed_is_judged_and_one_below_the_median_does_not_condemn_the_run() {
        // The quickest third was late by 2 of its 3 ms, the others by 5 of 100.
        let verdict = Run {
            threads: &[thread(100, 0, 0)],
            own: &[(2000, 3500), (5000, 6500)],
            response: &[(3000, 3500), (100_000, 6500)],
            ..Run::default()
        }
        .judged();
        assert_eq!((verdict.generator_saturated, verdict.reason), (Some(false), None));
        assert_eq!(verdict.distorted_percentiles, [0.0, 10.0, 25.0]);
        let at_p95 = Run {
            threads: &[thread(100, 0, 0)],
            own: &[(50, 9400), (3000, 560), (20_000, 40)],
            response: &[(400, 9400), (3500, 560), (1_000_000, 40)],
            ..Run::default()
        };
        assert_eq!(at_p95.judged().distorted_percentiles, [95.0, 99.0, 99.5]);
    }

    #[test]
    fn a_service_that_was_away_is_named_and_not_the_generator_which_paused_before_it_tried_again() {
        let away = Run {
            threads: &[thread(100, 0, 5)],
            pauses: &[(26_000, 2600)],
            lateness: &[(50, 7000), (100_000, 3000)],
            response: &[(400, 7000), (100_000, 3000)],
            ..Run::default()
        };
        let verdict = away.judged();
        assert_eq!(verdict.generator_saturated, Some(false));
        let reason = verdict.reason.unwrap();
        assert!(reason.starts_with("reconnecting: ") && reason.contains("p99 = 26"), "{reason}");
        assert_eq!(verdict.distorted_percentiles, [75.0, 90.0, 95.0, 99.0, 99.5, 99.9]);
        let late: Values = &[(50, 9800), (3000, 200)];
        let both = Run { own: late, ..away }.judged();
        assert_eq!(both.generator_saturated, Some(false), "its 3 ms are little beside 100");
        let both = Run { own: &[(20_000, 10_000)], ..away }.judged();
        assert!(both.reason.unwrap().starts_with("starved: "));
    }

    #[test]
    fn fifteen_requests_have_no_p99_that_could_be_held_against_the_generator() {
        let few = Run {
            threads: &[thread(100, 0, 0)],
            own: &[(50, 14), (9000, 1)],
            response: &[(400, 14), (9400, 1)],
            ..Run::default()
        };
        assert_eq!(few.judged(), Verdict { generator_saturated: Some(false), ..Verdict::default() });
    }

    #[test]
    fn a_percentile_beyond_p99_that_the_generator_made_is_named_and_the_run_is_not_condemned_for_it() {
        let late: Values = &[(50, 9970), (3000, 30)];
        let verdict = Run {
            threads: &[thread(100, 0, 0)],
            own: late,
            response: &[(400, 9970), (3400, 30)],
            ..Run::default()
        }
        .judged();
        assert_eq!((verdict.generator_saturated, verdict.reason), (Some(false), None));
        assert_eq!(verdict.distorted_percentiles, [99.9]);
    }

    #[test]
    fn lateness_far_below_what_is_measured_does_not_matter() {
        let late: Values = &[(3000, 10_000)];
        let verdict = Run {
            threads: &[thread(100, 0, 10)],
            own: late,
            response: &[(2_000_000, 10_000)],
            ..Run::default()
        }
        .judged();
        assert_eq!(verdict.generator_saturated, Some(false));
    }

    #[test]
    fn lateness_that_was_asked_for_is_no_fault() {
        let late: Values = &[(20_000, 10_000)];
        let run = |slack_us| {
            Run { threads: &[thread(970, 0, 0)], lateness: late, slack_us, ..Run::default() }.judged()
        };
        assert_eq!(run(0).generator_saturated, Some(true));
        assert_eq!(run(20_000).generator_saturated, Some(false));
    }

    #[test]
    fn a_busy_thread_that_keeps_up_is_not_saturated() {
        assert_eq!(
            Run { threads: &[thread(970, 0, 0)], ..Run::default() }.judged().generator_saturated,
            Some(false)
        );
    }
}
