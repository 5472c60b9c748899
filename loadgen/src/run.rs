//! One run from start to end: workers set up, started together, listened to, merged; reports written; exit
//! code found.

mod crew;
mod ending;
mod interruption;
mod step_results;
mod thread;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread::{Builder, scope};

use crate::error::Error;
use crate::live::{self, Board};
use crate::machine;
use crate::opening_times::OpeningTimes;
use crate::order::Order;
use crate::output::print;
use crate::own_lateness::OwnHistograms;
use crate::plan::{Pacing, Plan};
use crate::reconnecting::Reconnecting;
use crate::recorder::histogram;
use crate::result::{Intervals, RunResult, achieved_rate_rps, rate_histogram};
use crate::sample;
use crate::script::{self, MainState, ThreadLink};
use crate::slices::SliceCounts;
use crate::slowest;
use crate::tally::Tally;
use crate::tell;
use crate::thread_use::ThreadUse;
use crate::unanswered::AtLeast;
use crate::verdict::{Facts, judge, kept_share};
use crate::whole_file;
use crate::worker::Links;
use crew::{Crew, Gathered};
pub use interruption::Interruption;
use step_results::OfThread;

/// Runs the plan, prints wrk2's text on stdout and notes on stderr, and returns the exit code.
pub fn run(plan: &Plan, interruption: &Interruption) -> Result<i32, Error> {
    machine::raise_file_limit(plan.connections_total(), plan.threads)?;
    machine::check_cpus(&plan.pin)?;
    let mut results = [&plan.json, &plan.hlog, &plan.slowest].into_iter().flatten();
    interruption.spare(|| results.try_for_each(|path| whole_file::check(path)))?;
    let main_state = plan.script.is_some().then(|| MainState::new(plan)).transpose()?;
    let endpoints = match main_state.as_ref().filter(|_| plan.unix_socket.is_none()) {
        Some(state) => state.resolve(plan)?,
        None => plan.reachable(0)?,
    };
    if main_state.as_ref().is_some_and(MainState::has_delay) && plan.pacing != Pacing::ClosedLoop {
        tell!(
            "note: delay() is not called: at a constant rate the schedule says when a request is \
                due, as in wrk2; --closed calls it"
        );
    }
    let second = plan.alternate.as_ref().map(|_| plan.reachable(1)).transpose()?;
    plan.check_reaches_all([Some(&endpoints), second.as_ref()].into_iter().flatten())?;
    let board = live::is_wanted(plan).then(|| Board::new(plan.threads));
    let board = board.as_ref();
    let (reports, heard) = channel();
    let stop = &*interruption.stop;

    scope(|scope| {
        // Belongs to this block: threads serve it until it is gone, also when the run is given up.
        let mut main_state = main_state;
        let mut crew = Crew { orders: Vec::new(), heard, stop, board };
        for number in 0..plan.threads {
            let (orders, taken) = channel();
            let (answers, replies) = channel();
            let (reports, second) = (reports.clone(), second.clone());
            let work = move || {
                let links = Links { thread: number, reports: &reports, stop, board };
                thread::worker_thread(plan, second, links, &taken, &answers);
            };
            Builder::new().spawn_scoped(scope, work).map_err(|problem| {
                Error::Failed(format!("cannot start thread {} of {}: {problem}", number + 1, plan.threads))
            })?;
            crew.orders.push(orders.clone());
            let link = ThreadLink { orders: orders.clone(), replies };
            let endpoints = match &mut main_state {
                // That a thread has ended is what a script sees; why it has, the thread has said.
                Some(state) => state
                    .setup(link, endpoints.clone())
                    .map_err(|problem| crew.failure().unwrap_or(problem))?,
                None => endpoints.clone(),
            };
            crew.tell(number, Order::Init(endpoints));
            crew.await_initialized(number)?;
        }
        interruption.run_begins(plan.script.is_some());
        script::flush_prints();
        print(ending::banner(plan))?;
        let opened = crew.connect(plan.threads)?;
        let gathered = crew.go(plan)?;
        interruption.threads_have_ended();
        let (result, failure) = merge(plan, gathered, opened.missing);
        let code = ending::report(
            plan,
            &result.0,
            &result.1,
            main_state.as_ref(),
            failure,
            opened.problem,
            interruption,
        );
        drop(main_state);
        code
    })
}

fn merge(
    plan: &Plan,
    gathered: Gathered,
    missing_at_start: usize,
) -> ((RunResult, Intervals), Option<Error>) {
    let mut tally = Tally::default();
    let mut rates = BTreeMap::<u64, u64>::new();
    let (mut own_lateness, mut unanswered) = (OwnHistograms::default(), histogram());
    let (mut busy_ns, mut kept) = (0, 0);
    let (mut threads, mut used_measured) = (Vec::new(), Vec::<ThreadUse>::new());
    let (mut slowest, mut samples, mut failure) = (Vec::new(), Vec::new(), None);
    let (mut duration_ns, mut reconnecting) = (0, Reconnecting::default());
    let mut endpoints = BTreeMap::<String, u64>::new();
    let mut opening_times = OpeningTimes::new(plan.has_tls());
    let mut slices = Vec::<SliceCounts>::new();
    let mut of_threads = Vec::new();
    for outcome in gathered.outcomes {
        let measured = outcome.measured;
        tally.add(&measured.tally);
        measured.rates_rps.iter().for_each(|(&rate, count)| *rates.entry(rate).or_default() += count);
        own_lateness.add(&measured.own_lateness);
        unanswered.add(&measured.unanswered).expect("both have the project's one shape");
        (busy_ns, kept) = (busy_ns + measured.busy_ns, kept + measured.kept);
        slices.resize_with(measured.slices.len(), SliceCounts::default);
        slices.iter_mut().zip(&measured.slices).for_each(|(all, own)| all.add(own));
        of_threads.push(OfThread { steps: measured.steps, used: outcome.used_by_steps });
        duration_ns = duration_ns.max(outcome.sent_for_ns);
        failure = failure.or(outcome.failure);
        reconnecting.add(&outcome.reconnecting);
        opening_times.add(&outcome.opening_times);
        outcome.endpoints.into_iter().for_each(|(name, count)| *endpoints.entry(name).or_default() += count);
        slowest.push(measured.slowest);
        samples.extend(measured.sample);
        threads.push(outcome.thread_use);
        used_measured.push(outcome.used_measured);
    }
    let latencies = gathered.intervals.measured();
    let warm_up_ns = plan.warm_up_ns.min(duration_ns);
    let measured_ns = duration_ns - warm_up_ns;
    let sending_share = plan.sending_share(warm_up_ns, duration_ns);
    let offered_rate_rps =
        plan.own_rate_rps(warm_up_ns, duration_ns).map(|rate_rps| rate_rps * sending_share);
    let steps = step_results::merged(plan, &threads.iter().zip(of_threads).collect::<Vec<_>>(), duration_ns);
    // Asleep while no slice lasts is no time to spare.
    let share_used = if sending_share > 0.0 { sending_share } else { plan.sending_share(0, duration_ns) };
    used_measured.iter_mut().for_each(|used| used.wall_ns = (used.wall_ns as f64 * share_used) as u64);
    let verdict = judge(&Facts {
        threads: &used_measured,
        offered_rate_rps,
        achieved_rate_rps: achieved_rate_rps(&tally, measured_ns),
        kept_share: kept_share(kept, tally.measured + unanswered.len()),
        slack_us: plan.slack_ns / 1000,
        own_lateness: &own_lateness,
        lateness: &latencies.lateness,
        response: &latencies.response,
        connections: plan.connections,
        connections_busy_share: busy_ns as f64
            / (plan.connections as f64 * measured_ns.max(1) as f64 * sending_share),
    });
    let utc = |ns: u64| gathered.epoch.utc(gathered.start_ns + ns);
    let result = RunResult {
        at_least: AtLeast::of(&latencies.response, tally.measured, &unanswered),
        unexpected: tally.unexpected(&plan.expect),
        tally,
        open_at_start: plan.connections_total() - missing_at_start,
        reconnecting,
        opening_times,
        endpoints,
        latencies,
        rates_rps: rate_histogram(&rates),
        own_lateness,
        slowest: slowest::merged(slowest, plan.slowest_count),
        sample: (plan.sample > 0).then(|| sample::merged(samples, plan.sample)),
        slices,
        steps,
        threads,
        duration_ns,
        warm_up_ns,
        start_ns: gathered.start_ns,
        offered_rate_rps,
        start_utc: utc(0),
        measure_start_utc: utc(warm_up_ns),
        stop_utc: utc(duration_ns),
        verdict,
    };
    ((result, gathered.intervals), failure)
}
