//! Whether the generator itself was the limit, and why: so that nobody takes its limit for the service's.
//!
//! A request is late either because its connection waited for the service, or because the generator was not there in time.
//! Only the second is held against the generator:
//! - *out of time*: a thread had less than a twentieth of its time to spare. Time to spare is time asleep or waiting busily; it
//!   is what remains of the wall clock after work and after waiting for a CPU that somebody else had. If the offered rate was
//!   not reached, or requests left late, then a thread without time to spare is the limit, whatever the service did.
//! - *late by itself*: requests whose connection was idle when they became due left late all the same, by more than the
//!   measurement can bear.

use crate::thread_use::ThreadUse;

#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub generator_saturated: bool,
    /// None if it was not.
    pub reason: Option<String>,
}

/// What is judged.
#[derive(Debug)]
pub struct Facts<'a> {
    pub threads: &'a [ThreadUse],
    pub offered_rate_rps: Option<f64>,
    pub achieved_rate_rps: f64,
    /// Of sends whose connection was idle when they were due.
    pub own_lateness_p99_us: u64,
    pub lateness_p99_us: u64,
    pub response_p99_us: u64,
}

/// Less time to spare than this share of the wall clock is none.
const SPARE_SHARE_MIN: f64 = 0.05;
/// Below this share of the offered rate it was not reached.
const ACHIEVED_SHARE_MIN: f64 = 0.999;
/// Own lateness up to this never matters …
const OWN_LATENESS_US_MAX: u64 = 1000;
/// … nor does it where it is less than this share of the response time that is reported.
const OWN_LATENESS_SHARE_MAX: f64 = 0.1;

pub fn judge(facts: &Facts) -> Verdict {
    let reason = out_of_time(facts).or_else(|| late_by_itself(facts));
    Verdict { generator_saturated: reason.is_some(), reason }
}

fn out_of_time(facts: &Facts) -> Option<String> {
    let offered = facts.offered_rate_rps?;
    let behind = facts.achieved_rate_rps < offered * ACHIEVED_SHARE_MIN || facts.lateness_p99_us > OWN_LATENESS_US_MAX;
    if !behind {
        return None;
    }
    let (index, thread) = facts.threads.iter().enumerate().min_by(|(_, a), (_, b)| spare_share(a).total_cmp(&spare_share(b)))?;
    let spare = spare_share(thread);
    if spare >= SPARE_SHARE_MIN {
        return None;
    }
    let (work, waited) = (thread.cpu_share() - share(thread.spun_ns, thread), waited_share(thread));
    let told = format!("it worked {:.1} % of the time and waited {:.1} % for a CPU", work * 100.0, waited * 100.0);
    Some(if waited > 0.25 {
        format!("starved: thread {index} did not get the CPU it needed: {told}")
    } else {
        format!("busy: thread {index} had no time to spare: {told}")
    })
}

fn late_by_itself(facts: &Facts) -> Option<String> {
    let own = facts.own_lateness_p99_us;
    let matters = own > OWN_LATENESS_US_MAX && own as f64 > facts.response_p99_us as f64 * OWN_LATENESS_SHARE_MAX;
    if !matters {
        return None;
    }
    let waited = facts.threads.iter().map(waited_share).fold(0.0, f64::max);
    Some(format!(
        "starved: requests left late on idle connections: own lateness p99 = {own} us; a thread waited {:.1} % of the time for a CPU",
        waited * 100.0
    ))
}

fn spare_share(thread: &ThreadUse) -> f64 {
    1.0 - (thread.cpu_share() - share(thread.spun_ns, thread)) - waited_share(thread)
}

fn waited_share(thread: &ThreadUse) -> f64 {
    share(thread.waited_for_cpu_ns.unwrap_or(0), thread)
}

fn share(part_ns: u64, thread: &ThreadUse) -> f64 {
    part_ns as f64 / thread.wall_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
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
            waited_for_cpu_ns: Some(waited_ms * ms),
        }
    }

    fn facts(threads: &[ThreadUse]) -> Facts<'_> {
        Facts {
            threads,
            offered_rate_rps: Some(1000.0),
            achieved_rate_rps: 1000.0,
            own_lateness_p99_us: 50,
            lateness_p99_us: 50,
            response_p99_us: 400,
        }
    }

    #[test]
    fn a_slow_service_is_not_the_generators_fault() {
        let threads = [thread(100, 0, 5)];
        let slow = Facts { achieved_rate_rps: 300.0, lateness_p99_us: 5_000_000, response_p99_us: 5_000_000, ..facts(&threads) };
        assert_eq!(judge(&slow), Verdict { generator_saturated: false, reason: None });
    }

    #[test]
    fn spinning_is_time_to_spare() {
        let threads = [thread(300, 700, 0)];
        let slow = Facts { achieved_rate_rps: 300.0, lateness_p99_us: 5_000_000, response_p99_us: 5_000_000, ..facts(&threads) };
        assert!(!judge(&slow).generator_saturated);
    }

    #[test]
    fn a_thread_without_time_to_spare_is_busy() {
        let threads = [thread(100, 0, 0), thread(985, 5, 5)];
        let verdict = judge(&Facts { achieved_rate_rps: 800.0, ..facts(&threads) });
        assert!(verdict.reason.unwrap().starts_with("busy: thread 1"));
    }

    #[test]
    fn a_thread_that_waits_for_its_cpu_is_starved() {
        let threads = [thread(300, 0, 690)];
        let verdict = judge(&Facts { achieved_rate_rps: 800.0, ..facts(&threads) });
        assert!(verdict.reason.unwrap().starts_with("starved: thread 0"));
    }

    #[test]
    fn late_sends_on_idle_connections_are_the_generators_even_if_the_rate_was_held() {
        let threads = [thread(100, 0, 300)];
        let verdict =
            judge(&Facts { own_lateness_p99_us: 3000, lateness_p99_us: 3000, response_p99_us: 3500, ..facts(&threads) });
        assert!(verdict.reason.unwrap().contains("own lateness p99 = 3000 us"));
    }

    #[test]
    fn lateness_far_below_what_is_measured_does_not_matter() {
        let threads = [thread(100, 0, 10)];
        assert!(!judge(&Facts { own_lateness_p99_us: 3000, response_p99_us: 2_000_000, ..facts(&threads) }).generator_saturated);
    }

    #[test]
    fn a_busy_thread_that_keeps_up_is_not_saturated() {
        let threads = [thread(970, 0, 0)];
        assert!(!judge(&facts(&threads)).generator_saturated);
    }
}
