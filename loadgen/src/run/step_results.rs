//! What all threads found in each step, and whether the generator was the limit in it.

use crate::own_lateness::OwnHistograms;
use crate::plan::Plan;
use crate::recorder::{Latencies, add_counts, histogram};
use crate::result::StepResult;
use crate::step_recorder::StepCounts;
use crate::steps::Steps;
use crate::thread_use::{ThreadUse, UsedBy};
use crate::unanswered::AtLeast;
use crate::verdict::{Facts, judge, kept_share};

/// What one thread found in each step, and what it had used when each began; the last when sending ended.
pub(super) struct OfThread {
    pub(super) steps: Vec<StepCounts>,
    pub(super) used: Vec<UsedBy>,
}

/// Those of the steps that were begun.
pub(super) fn merged(plan: &Plan, threads: &[(&ThreadUse, OfThread)], duration_ns: u64) -> Vec<StepResult> {
    let Some(steps) = &plan.steps else { return Vec::new() };
    let begun = (0..steps.count()).filter(|&step| steps.start_ns(step) < duration_ns);
    begun.map(|step| one(plan, steps, step, threads, duration_ns)).collect()
}

fn one(
    plan: &Plan,
    steps: &Steps,
    step: usize,
    threads: &[(&ThreadUse, OfThread)],
    duration_ns: u64,
) -> StepResult {
    let (start_ns, end_ns) = (steps.start_ns(step), steps.end_ns(step).min(duration_ns));
    let mut latencies = Latencies { response: histogram(), service: histogram(), lateness: histogram() };
    let (mut own_lateness, mut unanswered) = (OwnHistograms::default(), histogram());
    let (mut sent, mut completed, mut late, mut late_sent, mut within, mut busy_ns) = (0, 0, 0, 0, 0, 0);
    for (_, OfThread { steps, .. }) in threads {
        let own = &steps[step];
        add_counts(&mut latencies.response, &own.latencies.response);
        add_counts(&mut latencies.service, &own.latencies.service);
        add_counts(&mut latencies.lateness, &own.latencies.lateness);
        own_lateness.add(&own.own_lateness);
        unanswered.add(&own.unanswered).expect("both have the project's one shape");
        (sent, completed, late) = (sent + own.sent, completed + own.completed, late + own.late);
        (within, late_sent) = (within + own.answered_within, late_sent + own.late_sent);
        busy_ns += own.busy_ns;
    }
    let seconds = (end_ns - start_ns) as f64 / 1e9;
    let offered_rate_rps = steps.rate_rps(step) * plan.own_share();
    let achieved_rate_rps = within as f64 / seconds;
    let used: Vec<ThreadUse> = threads
        .iter()
        .map(|(all, OfThread { used, .. })| all.between(&used[step], &used[step + 1]))
        .collect();
    let verdict = judge(&Facts {
        threads: &used,
        offered_rate_rps: Some(offered_rate_rps),
        achieved_rate_rps,
        kept_share: kept_share(completed - late_sent, completed + unanswered.len()),
        slack_us: plan.slack_ns / 1000,
        own_lateness: &own_lateness,
        lateness: &latencies.lateness,
        response: &latencies.response,
        connections: plan.connections,
        connections_busy_share: busy_ns as f64 / 1e9 / (plan.connections as f64 * seconds),
    });
    StepResult {
        number: step + 1,
        start_ns,
        end_ns,
        offered_rate_rps,
        achieved_rate_rps,
        sent,
        completed,
        late,
        at_least: AtLeast::of(&latencies.response, completed, &unanswered),
        latencies,
        own_lateness: own_lateness.faults,
        verdict,
    }
}
