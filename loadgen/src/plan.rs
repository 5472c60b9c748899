//! What will be done: arguments checked against each other and the machine, addresses resolved, times in
//! nanoseconds.
//!
//! Nothing after this module looks at the command line again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::alternation::{Alternation, Gaps, Server, Slicing};
use crate::args::{self, Addresses, Args, Arrivals, Dispatch, LASTS_MAX, Spin};
use crate::endpoint::{Endpoint, Endpoints};
use crate::error::Error;
use crate::part::Part;
use crate::requests::{self, List, Request};
use crate::schedule;
use crate::script_file::ScriptFile;
use crate::steps::Steps;
use crate::target::Target;
use crate::tls::{CaFile, TlsClient, Trust};
use crate::uniform::Uniform;
use crate::whole_file;

/// wrk2 starts its histograms again this long after the start …
const WARM_UP: Duration = Duration::from_secs(10);
/// … and this much later for each connection of a thread.
const WARM_UP_PER_CONNECTION: Duration = Duration::from_millis(5);
/// What is found in each slice is kept until the end.
const PAIRS_MAX: u64 = 1_000_000;

/// How long a run may wait for its start; the clocks of the run count some hundred years.
const START_WITHIN: SignedDuration = SignedDuration::from_hours(366 * 24);

/// So many of the slowest answers are written unless another number was typed.
const SLOWEST: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Request i of connection k is due at a time known beforehand.
    ConstantThroughput { rate_rps: f64, arrivals: Arrivals },
    /// The next request leaves when the answer to the last has come.
    ClosedLoop,
}

impl Pacing {
    pub fn offered_rate_rps(self) -> Option<f64> {
        match self {
            Self::ConstantThroughput { rate_rps, .. } => Some(rate_rps),
            Self::ClosedLoop => None,
        }
    }
}

/// Two servers in turn: the second of them, and whose turn it is.
#[derive(Debug)]
pub struct Alternate {
    pub target: Target,
    pub alternation: Alternation,
    /// When the slices will be is printed, instead of a run.
    pub only_printed: bool,
}

#[derive(Debug)]
pub struct Plan {
    pub target: Target,
    pub alternate: Option<Alternate>,
    /// None at one rate.
    pub steps: Option<Steps>,
    /// How TLS is spoken with each of two servers, which may be the same; none without https.
    pub tls: [Option<TlsClient>; 2],
    pub addresses: Addresses,
    /// Instead of the addresses of the URL's host.
    pub unix_socket: Option<PathBuf>,
    /// What this generator is of a load that several make; the whole of it unless said otherwise.
    pub part: Part,
    /// Its result is to be merged with those of others, of which there may be none.
    pub is_part: bool,
    /// To each server, of this part.
    pub connections: usize,
    /// To each server, of all parts.
    pub whole_connections: usize,
    /// Of this part.
    pub threads: usize,
    /// Of all parts together; of a rate that changes the mean of its steps.
    pub pacing: Pacing,
    pub duration_ns: u64,
    /// Zero if everything is reported.
    pub warm_up_ns: u64,
    pub timeout_ns: u64,
    /// How much later than it is due a request may leave.
    pub slack_ns: u64,
    /// In a closed loop of all parts together; at a rate they are those that are due before the end.
    pub requests_max: Option<u64>,
    /// No line on a terminal while it runs.
    pub quiet: bool,
    /// None: as soon as all connections are open.
    pub start_at: Option<Timestamp>,
    pub headers: Vec<(String, String)>,
    pub script: Option<Arc<ScriptFile>>,
    pub method: String,
    pub body: Option<Vec<u8>>,
    /// In turn, to each of two servers, which may be the same; a script makes its own.
    pub requests: [Vec<Request>; 2],
    pub script_args: Vec<OsString>,
    pub latency: bool,
    pub uncorrected: bool,
    pub batch_latency: bool,
    pub seed: u64,
    /// Empty: every status is right.
    pub expect: Vec<u16>,
    pub max_lateness: Option<Duration>,
    /// Of the measured requests that were due, 0 to 1.
    pub max_unanswered: Option<f64>,
    pub dispatch: Dispatch,
    pub spin: Spin,
    pub pin: Vec<usize>,
    pub json: Option<PathBuf>,
    pub hlog: Option<PathBuf>,
    /// Of what is measured; the warm-up has those of a second.
    pub interval_ns: u64,
    pub slowest: Option<PathBuf>,
    /// Zero if nobody asked for them.
    pub slowest_count: usize,
    /// How many answered requests go into the result one by one.
    pub sample: usize,
    pub typed: Vec<String>,
}

impl Plan {
    pub fn new(args: Args) -> Result<Self, Error> {
        let now = Timestamp::now();
        if let Some(utc) = args.start_at.filter(|utc| *utc <= now) {
            return Err(Error::Failed(format!("the time is past: --start-at {utc}")));
        }
        if let Some(utc) = args.start_at.filter(|utc| utc.duration_since(now) > START_WITHIN) {
            return Err(Error::Failed(format!(
                "the time is too far away: --start-at {utc}; at most a year from now"
            )));
        }
        let outputs = [
            ("--json", args.json.as_deref()),
            ("--hlog", args.hlog.as_deref()),
            ("--slowest", args.slowest.as_deref()),
        ];
        whole_file::check_differ(&outputs)?;
        let body = args.body.as_deref().and_then(requests::body_file);
        let targets = args.targets.as_deref().map(requests::list_file);
        let inputs = [
            ("-s", args.script.as_deref()),
            ("--targets", targets),
            ("--ca-file", args.ca_file.as_deref()),
            ("--body", body),
        ];
        whole_file::check_spares(&outputs, inputs.iter().filter_map(|(_, path)| *path))?;
        whole_file::check_read_once(&inputs)?;
        let target = Target::parse(&args.url)?;
        let pacing = match args.mean_rate_rps() {
            Some(rate_rps) => Pacing::ConstantThroughput { rate_rps, arrivals: args.arrivals },
            None => Pacing::ClosedLoop,
        };
        let warm_up = args.warm_up.unwrap_or_else(|| {
            // The same for each part: of all connections, and of threads of which another host may have more.
            let of = if args.part.of > 1 { args.part.of as u64 } else { args.threads };
            let per_thread = args.connections / of;
            let default = WARM_UP + WARM_UP_PER_CONNECTION * per_thread as u32;
            if args.duration > default && args.requests.is_none() { default } else { Duration::ZERO }
        });
        let (mut duration_ns, mut warm_up_ns) = (nanoseconds(args.duration), nanoseconds(warm_up));
        let steps = (!args.steps.is_empty()).then(|| Steps::new(&args.steps, warm_up_ns));
        if let Some(steps) = &steps {
            duration_ns = steps.duration_ns();
        }
        if let Some(requests) = args.requests {
            if args.part.of > 1 && args.dispatch == Dispatch::Any && args.arrivals == Arrivals::Poisson {
                return Err(Error::Failed(
                    "--requests with --part, --dispatch any and --arrivals poisson: no part knows how many \
                     threads the others have, and so not when the last is due; take -d"
                        .to_owned(),
                ));
            }
            let typed_ns = if args.duration_typed { duration_ns } else { u64::MAX / 4 };
            duration_ns = typed_ns.min(requests_end_ns(&args, requests));
            // In a closed loop nobody knows, and it ends with its answers.
            if args.rate_rps.is_some() && duration_ns > nanoseconds(LASTS_MAX) {
                return Err(args::too_long(Duration::from_nanos(duration_ns)));
            }
            if warm_up_ns >= duration_ns {
                return Err(Error::Failed(format!(
                    "warm-up must be shorter than {requests} requests last: warmup={warm_up:?}"
                )));
            }
        }
        let alternate = args.alternate.as_ref().map(|url| alternate(&args, url, duration_ns)).transpose()?;
        if let Some(Alternate { alternation, .. }) = &alternate {
            duration_ns = alternation.duration_ns();
            warm_up_ns = alternation.measured_from_ns(warm_up_ns).ok_or_else(|| too_short(&args))?;
        }
        let body = args.body.as_deref().map(requests::body).transpose()?;
        let method =
            args.method.clone().unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned());
        let list = args.targets.as_deref().map(List::read).transpose()?;
        let bodies: BTreeSet<PathBuf> = list.iter().flat_map(List::body_files).collect();
        whole_file::check_spares(&outputs, bodies.iter().map(PathBuf::as_path))?;
        let requests_to = |target: &Target| match &list {
            Some(list) => list.requests(target, &args.headers),
            None => Request::of(target, &method, &target.path, &args.headers, body.as_deref())
                .map(|request| vec![request]),
        };
        let second = alternate.as_ref().map_or(&target, |second| &second.target);
        let requests = [requests_to(&target)?, requests_to(second)?];
        let tls = tls(&args, [&target, second])?;
        let interval_ns = nanoseconds(args.interval());
        Ok(Self {
            target,
            tls,
            addresses: args.addresses,
            unix_socket: args.unix_socket,
            alternate,
            steps,
            method,
            body,
            requests,
            part: args.part,
            is_part: args.part_typed,
            connections: args.part.share(args.connections as usize),
            whole_connections: args.connections as usize,
            threads: args.threads as usize,
            pacing,
            duration_ns,
            warm_up_ns,
            timeout_ns: nanoseconds(args.timeout),
            slack_ns: nanoseconds(args.slack),
            requests_max: args.requests,
            quiet: args.quiet,
            start_at: args.start_at,
            headers: args.headers,
            script: args.script.map(ScriptFile::read).transpose()?.map(Arc::new),
            script_args: args.script_args,
            latency: args.latency,
            uncorrected: args.uncorrected,
            batch_latency: args.batch_latency,
            seed: args.seed,
            expect: args.expect,
            max_lateness: args.max_lateness,
            max_unanswered: args.max_unanswered,
            dispatch: args.dispatch,
            spin: args.spin,
            pin: args.pin,
            json: args.json,
            hlog: args.hlog,
            interval_ns,
            slowest_count: args
                .slowest
                .as_ref()
                .map_or(0, |_| args.slowest_count.unwrap_or(SLOWEST) as usize),
            slowest: args.slowest,
            sample: args.sample as usize,
            typed: args.typed,
        })
    }

    /// None if a number of requests ends the run.
    pub fn duration(&self) -> Option<Duration> {
        (self.duration_ns < u64::MAX / 4).then_some(Duration::from_nanos(self.duration_ns))
    }

    /// A run that only a number of requests ends, and that nobody knows the length of: it ends too where no
    /// answers come.
    pub fn ends_by_answers(&self) -> bool {
        self.pacing == Pacing::ClosedLoop && self.requests_max.is_some() && self.duration().is_none()
    }

    /// How many requests a thread sends in a closed loop before it ends; none if it is not ended by that.
    pub fn requests_of(&self, thread: usize) -> Option<u64> {
        let threads = (self.threads * self.part.of) as u64;
        let all = self.requests_max.filter(|_| self.pacing == Pacing::ClosedLoop)?;
        Some((all + threads - 1 - self.part.place(thread) as u64) / threads)
    }

    /// Over so many series the requests of all parts are shared out: each connection has its own, or each
    /// thread.
    pub fn series(&self) -> usize {
        match self.dispatch {
            Dispatch::Fixed => self.whole_connections,
            Dispatch::Any => self.threads * self.part.of,
        }
    }

    /// The URLs under test, as the banner prints them.
    pub fn urls(&self) -> String {
        let second =
            self.alternate.as_ref().map_or(String::new(), |second| format!(",{}", second.target.url));
        format!("{}{second}", self.target.url)
    }

    /// Where the first server is reached, or the second of two in turn.
    pub fn reachable(&self, server: Server) -> Result<Endpoints, Error> {
        let endpoints = match &self.unix_socket {
            Some(path) => vec![Endpoint::Unix(path.as_path().into())],
            None => self.target_of(server).endpoints()?,
        };
        self.reachable_of(server, endpoints)
    }

    /// Those of these endpoints that accept a connection.
    pub fn reachable_of(&self, server: Server, endpoints: Vec<Endpoint>) -> Result<Endpoints, Error> {
        let (tls, timeout) = (self.tls[server].as_ref(), Duration::from_nanos(self.timeout_ns));
        self.target_of(server).reachable(endpoints, self.addresses, tls, timeout)
    }

    /// With `--addresses all` none of a server's addresses may be left without a connection.
    pub fn check_reaches_all<'a>(&self, servers: impl Iterator<Item = &'a Endpoints>) -> Result<(), Error> {
        let most = servers.map(|endpoints| endpoints.len()).max().unwrap_or(0);
        if self.addresses == Addresses::All && most > self.connections {
            let whose = if self.part.of > 1 { " of this part" } else { "" };
            return Err(Error::Failed(format!(
                "--addresses all needs a connection{whose} for each of them: addresses={most}, \
                 connections={}",
                self.connections
            )));
        }
        Ok(())
    }

    fn target_of(&self, server: Server) -> &Target {
        self.alternate.as_ref().filter(|_| server == 1).map_or(&self.target, |second| &second.target)
    }

    /// Whether a server is spoken to by https.
    pub fn has_tls(&self) -> bool {
        self.tls.iter().any(Option::is_some)
    }

    /// Connections to all servers.
    pub fn connections_total(&self) -> usize {
        if self.alternate.is_some() { self.connections * 2 } else { self.connections }
    }

    /// Requests per second that are due in this part between two times, while its server's turn lasts; none
    /// in a closed loop.
    pub fn own_rate_rps(&self, from_ns: u64, until_ns: u64) -> Option<f64> {
        let of_steps = self
            .steps
            .as_ref()
            .filter(|_| until_ns > from_ns)
            .map(|steps| steps.mean_rate_rps(from_ns, until_ns));
        of_steps.or(self.pacing.offered_rate_rps()).map(|rate_rps| rate_rps * self.own_share())
    }

    /// How much of the whole load's rate is this part's.
    pub fn own_share(&self) -> f64 {
        match self.dispatch {
            Dispatch::Fixed => self.connections as f64 / self.whole_connections as f64,
            Dispatch::Any => 1.0 / self.part.of as f64,
        }
    }

    /// The share of the time between these two in which requests are due; of no time that of the whole run.
    pub fn sending_share(&self, from_ns: u64, until_ns: u64) -> f64 {
        let Some(Alternate { alternation, .. }) = &self.alternate else { return 1.0 };
        let (from_ns, until_ns) =
            if from_ns < until_ns { (from_ns, until_ns) } else { (0, alternation.duration_ns()) };
        alternation.sending_between_ns(from_ns, until_ns) as f64 / (until_ns - from_ns) as f64
    }

    /// Connections of one thread, as numbers k of all connections: k goes to thread k modulo threads, so that
    /// the requests of each thread are spread evenly too and no connection is left out.
    pub fn connections_of(&self, thread: usize) -> impl Iterator<Item = usize> + use<> {
        (thread..self.connections_total()).step_by(self.threads)
    }
}

fn alternate(args: &Args, url: &str, duration_ns: u64) -> Result<Alternate, Error> {
    let slicing = Slicing {
        slice_ns: nanoseconds(args.slice),
        settle_ns: nanoseconds(args.settle),
        gaps: Gaps { least_ns: nanoseconds(args.gap.least), most_ns: nanoseconds(args.gap.most) },
        order: args.order,
    };
    if duration_ns / slicing.pair_ns() > PAIRS_MAX {
        return Err(Error::Failed(format!(
            "at most {PAIRS_MAX} pairs of slices: duration={:?}, slice={:?}, gap={:?}",
            args.duration, args.slice, args.gap.least
        )));
    }
    let alternation = Alternation::new(slicing, args.seed, duration_ns).ok_or_else(|| too_short(args))?;
    Ok(Alternate { target: Target::parse(url)?, alternation, only_printed: args.print_slices })
}

fn tls(args: &Args, targets: [&Target; 2]) -> Result<[Option<TlsClient>; 2], Error> {
    let option = if args.insecure { "--insecure" } else { "--ca-file" };
    let is_typed = args.insecure || args.ca_file.is_some();
    if is_typed && targets.iter().all(|target| target.scheme == "http") {
        return Err(Error::Failed(format!(
            "{option} is for https: {} has no certificate to check",
            args.url
        )));
    }
    // Read once for both servers: it may be a pipe.
    let file = args.ca_file.as_deref().map(CaFile::read).transpose()?;
    let trust = match &file {
        _ if args.insecure => Trust::Anybody,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let client =
        |target: &Target| (target.scheme == "https").then(|| TlsClient::new(&target.host, trust)).transpose();
    let first = client(targets[0])?;
    let second = if args.alternate.is_some() { client(targets[1])? } else { first.clone() };
    Ok([first, second])
}

/// When so many requests have been due; in a closed loop nobody knows.
fn requests_end_ns(args: &Args, requests: u64) -> u64 {
    let Some(rate_rps) = args.rate_rps else { return u64::MAX / 4 };
    let series = match args.dispatch {
        Dispatch::Fixed => args.connections as usize,
        Dispatch::Any => args.threads as usize * args.part.of,
    };
    match args.arrivals {
        Arrivals::Uniform => Uniform::new(rate_rps, 1, u64::MAX / 4).due_ns(0, requests).min(u64::MAX / 4),
        Arrivals::Poisson => schedule::poisson_end_ns(rate_rps, series, args.seed, requests),
    }
}

fn too_short(args: &Args) -> Error {
    Error::Failed(format!(
        "no room for a slice of each server behind the warm-up: duration={:?}, slice={:?}, gap={:?}",
        args.duration,
        args.slice,
        args.gap.least.saturating_add(args.gap.most) / 2
    ))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::args::{Parsed, parse};

    pub(crate) fn plan(words: &str) -> Plan {
        match parse(words.split(' ')) {
            Ok(Parsed::Run(args)) => Plan::new(*args).unwrap(),
            _ => panic!("{words}"),
        }
    }

    #[test]
    fn a_start_that_is_over_a_year_away_is_refused_as_that() {
        let told = |utc: &str| match parse(["-R1", "--start-at", utc, "http://h/"]) {
            Ok(Parsed::Run(args)) => Plan::new(*args).unwrap_err().to_string(),
            _ => panic!("{utc}"),
        };
        for utc in ["9999-01-01T00:00:00Z", "2400-01-01T00:00:00Z"] {
            let expected = format!("the time is too far away: --start-at {utc}; at most a year from now");
            assert_eq!(told(utc), expected);
        }
        assert!(told("2020-01-01T00:00:00Z").starts_with("the time is past: "));
    }

    #[test]
    fn warm_up_is_wrk2s_only_where_the_run_is_longer() {
        assert_eq!(plan("-c10 -t2 -R1 -d14s http://h/").warm_up_ns, 10_025_000_000);
        assert_eq!(plan("-c10 -t2 -R1 -d5s http://h/").warm_up_ns, 0);
        assert_eq!(plan("-c10 -t2 -R1 -d5s --warmup 1s http://h/").warm_up_ns, 1_000_000_000);
    }

    #[test]
    fn a_number_of_requests_ends_a_paced_run_when_the_next_is_due_and_a_closed_loop_when_answered() {
        assert_eq!(plan("-c10 -t2 -R1000 --requests 50 http://h/").duration_ns, 50_000_000);
        assert_eq!(plan("-c10 -t2 -R1000 --requests 50 -d20ms http://h/").duration_ns, 20_000_000);
        assert_eq!(plan("-c10 -t2 -R1000 --requests 30k http://h/").warm_up_ns, 0);
        let closed = plan("-c10 -t3 --closed --requests 50 --part 2/2 http://h/");
        assert_eq!(
            (closed.duration(), [0, 1, 2].map(|thread| closed.requests_of(thread))),
            (None, [Some(9), Some(8), Some(8)])
        );
    }

    #[test]
    fn requests_that_are_due_for_more_than_a_hundred_days_are_refused() {
        for options in ["-R1 --requests 100M", "-R0.000001 --requests 20 --arrivals poisson"] {
            let words = format!("{options} http://h/");
            let Ok(Parsed::Run(args)) = parse(words.split(' ')) else { panic!("{words}") };
            let told = Plan::new(*args).unwrap_err().to_string();
            assert!(told.starts_with("a run lasts at most 100 days: "), "{words}: {told}");
        }
        assert_eq!(plan("-R1 --requests 100M -d1s http://h/").duration_ns, 1_000_000_000);
        assert_eq!(plan("--closed --requests 100M http://h/").duration(), None);
    }

    #[test]
    fn of_two_servers_in_turn_as_much_is_offered_as_was_due_until_the_run_was_called_off() {
        let plan =
            plan("-R100 -d4s --slice 300ms --gap 100ms --warmup 800ms --alternate http://a/ http://b/");
        assert_eq!((plan.duration_ns, plan.warm_up_ns), (4_000_000_000, 800_000_000));
        let share =
            |from_ms: u64, until_ms: u64| plan.sending_share(from_ms * 1_000_000, until_ms * 1_000_000);
        for (from_ms, until_ms, expected) in
            [(800, 4000, 0.75), (800, 2400, 0.75), (800, 1000, 1.0), (800, 1200, 0.75), (500, 500, 0.75)]
        {
            let found = share(from_ms, until_ms);
            assert!((found - expected).abs() < 1e-9, "{from_ms} to {until_ms} ms: {found}");
        }
    }

    #[test]
    fn the_warm_up_of_all_parts_is_one_whatever_threads_each_has() {
        let warm_up_ns = |options: &str| plan(&format!("-R1000 -c100 -d30s {options} http://h/")).warm_up_ns;
        assert_eq!(warm_up_ns("-t1 --part 1/2"), warm_up_ns("-t4 --part 2/2"));
        assert!(warm_up_ns("-t2") < warm_up_ns("-t1"));
    }

    #[test]
    fn every_connection_belongs_to_exactly_one_thread() {
        let plan = plan("-c10 -t3 -R1 http://h/");
        let mut all: Vec<usize> = (0..3).flat_map(|thread| plan.connections_of(thread)).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
