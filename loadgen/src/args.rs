//! What was typed: wrk2's command line, and the options that are ours alone.
//!
//! Parsing follows getopt_long as wrk2 does: options and the URL in any order, `-c10` and `-c 10`,
//! `--rate=2k` and `--rate 2k`, everything behind `--` for the script.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

use crate::alternation::TurnOrder;
use crate::error::Error;
use crate::method::is_method;
use crate::part::Part;
use crate::steps::{STEPS_MAX, Step};
use crate::units;

/// wrk2's usage text, byte for byte.
pub const USAGE: &str = include_str!("usage.txt");
/// What `--help` adds to it.
pub const USAGE_OWN: &str = include_str!("usage-own.txt");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    Uniform,
    Poisson,
}

/// Which connection sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Each connection has its own requests, as in wrk2.
    Fixed,
    /// The first that is free.
    Any,
}

/// Which of several addresses of a host are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The first that answers, as in wrk2.
    First,
    /// All that answer, each by as many connections.
    All,
}

/// The pause behind a slice: of one length, or drawn between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapLength {
    pub least: Duration,
    pub most: Duration,
}

/// How the last microseconds before a due time are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// Where the thread has a core to itself.
    Auto,
    Off,
    /// Busy from this long before each due time.
    For(Duration),
}

/// A hundred days, up to which due times are exact: so long a run lasts at most.
pub const LASTS_MAX: Duration = Duration::from_secs(100 * 86400);

/// The last of more random due times takes too long to find.
const POISSON_REQUESTS_MAX: u64 = 10_000_000;

/// Each slice takes about a millisecond to write down, at the end of the run, and one that is shorter than a
/// thread may wake late has no requests of its own.
const SLICE_MIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Args {
    pub connections: u64,
    pub threads: u64,
    pub duration: Duration,
    /// Or else it is the default.
    pub duration_typed: bool,
    pub rate_rps: Option<f64>,
    /// A rate that changes; there is no other then.
    pub steps: Vec<Step>,
    pub closed: bool,
    pub arrivals: Arrivals,
    pub dispatch: Dispatch,
    pub script: Option<PathBuf>,
    pub method: Option<String>,
    /// As typed: text, or @ and a file.
    pub body: Option<OsString>,
    pub targets: Option<PathBuf>,
    pub headers: Vec<(String, String)>,
    pub insecure: bool,
    pub ca_file: Option<PathBuf>,
    pub addresses: Addresses,
    pub unix_socket: Option<PathBuf>,
    pub latency: bool,
    pub uncorrected: bool,
    pub batch_latency: bool,
    pub timeout: Duration,
    /// How much later than it is due a request may leave.
    pub slack: Duration,
    /// The run ends after so many requests.
    pub requests: Option<u64>,
    /// No line on a terminal while it runs.
    pub quiet: bool,
    pub warm_up: Option<Duration>,
    pub json: Option<PathBuf>,
    pub hlog: Option<PathBuf>,
    /// How long an interval of its log lasts.
    pub interval: Option<Duration>,
    pub slowest: Option<PathBuf>,
    pub slowest_count: Option<u64>,
    pub sample: u64,
    pub seed: u64,
    pub expect: Vec<u16>,
    pub max_lateness: Option<Duration>,
    /// Of the requests due, 0 to 1.
    pub max_unanswered: Option<f64>,
    pub spin: Spin,
    pub pin: Vec<usize>,
    pub url: String,
    pub script_args: Vec<OsString>,
    /// None: as soon as all connections are open.
    pub start_at: Option<jiff::Timestamp>,
    /// Of a load that several generators make together.
    pub part: Part,
    /// Or else it is the whole.
    pub part_typed: bool,
    /// The second of two servers in turn.
    pub alternate: Option<String>,
    pub slice: Duration,
    /// The first part of each slice, which is not counted.
    pub settle: Duration,
    pub gap: GapLength,
    pub order: TurnOrder,
    /// When the slices will be, instead of a run.
    pub print_slices: bool,
    /// An option that was typed and means nothing of one server alone.
    pub of_turns_typed: Option<&'static str>,
    /// Everything after the program's name, for the JSON result.
    pub typed: Vec<String>,
}

/// What says how two servers take turns.
const OF_TURNS: [&str; 5] = ["slice", "settle", "gap", "order", "print-slices"];

impl Args {
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }

    /// The rate, or the mean of its steps; none in a closed loop.
    pub fn mean_rate_rps(&self) -> Option<f64> {
        if self.steps.is_empty() {
            return self.rate_rps;
        }
        let requests: f64 = self.steps.iter().map(|step| step.rate_rps * step.length.as_secs_f64()).sum();
        Some(requests / self.steps.iter().map(|step| step.length.as_secs_f64()).sum::<f64>())
    }
}

pub enum Parsed {
    Run(Box<Args>),
    Help,
    Version,
    /// For this shell.
    Completions(String),
    ManPage,
}

/// `typed`: everything behind the program's name. Names of files may be any bytes.
pub fn parse<Word: Into<OsString>>(typed: impl IntoIterator<Item = Word>) -> Result<Parsed, Error> {
    let typed: Vec<OsString> = typed.into_iter().map(Into::into).collect();
    let mut args = Args {
        connections: 10,
        threads: 2,
        duration: Duration::from_secs(10),
        duration_typed: false,
        rate_rps: None,
        steps: Vec::new(),
        closed: false,
        arrivals: Arrivals::Uniform,
        dispatch: Dispatch::Fixed,
        script: None,
        method: None,
        body: None,
        targets: None,
        headers: Vec::new(),
        insecure: false,
        ca_file: None,
        addresses: Addresses::First,
        unix_socket: None,
        latency: false,
        uncorrected: false,
        batch_latency: false,
        timeout: Duration::from_secs(2),
        slack: Duration::ZERO,
        requests: None,
        quiet: false,
        warm_up: None,
        json: None,
        hlog: None,
        interval: None,
        slowest: None,
        slowest_count: None,
        sample: 0,
        seed: 1,
        expect: Vec::new(),
        max_lateness: None,
        max_unanswered: None,
        spin: Spin::Auto,
        pin: Vec::new(),
        url: String::new(),
        script_args: Vec::new(),
        start_at: None,
        part: Part::WHOLE,
        part_typed: false,
        alternate: None,
        slice: Duration::from_millis(500),
        settle: Duration::ZERO,
        gap: GapLength { least: Duration::from_millis(20), most: Duration::from_millis(20) },
        order: TurnOrder::Abba,
        print_slices: false,
        of_turns_typed: None,
        typed: typed.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
    };
    let options_end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    args.script_args = typed[options_end..].iter().skip(1).cloned().collect();
    let mut url = None;
    let mut parser = lexopt::Parser::from_args(typed[..options_end].to_vec());
    while let Some(arg) = parser.next().map_err(usage)? {
        if let Long(long) = arg
            && let Some(&typed) = OF_TURNS.iter().find(|&&option| option == long)
        {
            args.of_turns_typed = Some(typed);
        }
        match arg {
            Short('c') | Long("connections") => args.connections = count(&mut parser, "--connections")?,
            Short('t') | Long("threads") => args.threads = count(&mut parser, "--threads")?,
            Short('d') | Long("duration") => {
                (args.duration, args.duration_typed) = (duration(&mut parser, "--duration")?, true);
            }
            Short('R') | Long("rate") => (args.rate_rps, args.steps) = rate_or_steps(&text(&mut parser)?)?,
            Short('s') | Long("script") => args.script = Some(file(&mut parser, "--script")?),
            Short('m') | Long("method") => args.method = Some(method(text(&mut parser)?)?),
            Long("body") => args.body = Some(parser.value().map_err(usage)?),
            Long("targets") => args.targets = Some(file(&mut parser, "--targets")?),
            Short('H') | Long("header") => set_header(&mut args.headers, header(&text(&mut parser)?)?),
            Long("addresses") => args.addresses = addresses(&text(&mut parser)?)?,
            Long("unix-socket") => args.unix_socket = Some(file(&mut parser, "--unix-socket")?),
            Long("insecure") => args.insecure = true,
            Long("ca-file") => args.ca_file = Some(file(&mut parser, "--ca-file")?),
            Short('L') | Long("latency") => args.latency = true,
            Short('U') | Long("u_latency") => (args.latency, args.uncorrected) = (true, true),
            Short('B') | Long("batch_latency") => args.batch_latency = true,
            Short('T') | Long("timeout") => args.timeout = duration(&mut parser, "--timeout")?,
            Long("slack") => args.slack = duration(&mut parser, "--slack")?,
            Long("requests") => args.requests = Some(count(&mut parser, "--requests")?),
            Long("quiet") => args.quiet = true,
            Long("warmup") => args.warm_up = Some(duration(&mut parser, "--warmup")?),
            Long("json") => args.json = Some(file(&mut parser, "--json")?),
            Long("hlog") => args.hlog = Some(file(&mut parser, "--hlog")?),
            Long("interval") => args.interval = Some(duration(&mut parser, "--interval")?),
            Long("slowest") => args.slowest = Some(file(&mut parser, "--slowest")?),
            Long("slowest-count") => args.slowest_count = Some(count(&mut parser, "--slowest-count")?),
            Long("sample") => args.sample = count(&mut parser, "--sample")?,
            Long("closed") => args.closed = true,
            Long("seed") => args.seed = seed(&text(&mut parser)?)?,
            Long("start-at") => args.start_at = Some(start_at(&text(&mut parser)?)?),
            Long("part") => {
                (args.part, args.part_typed) = (Part::parse(&text(&mut parser)?)?, true);
            }
            Long("alternate") => {
                let both = (text(&mut parser)?, text(&mut parser)?);
                if let Some(option) = [&both.0, &both.1].into_iter().find(|url| url.starts_with('-')) {
                    return Err(Error::Failed(format!(
                        "--alternate is followed by two URLs: {option} is none; example: --alternate \
                            http://127.0.0.1:8081/ http://127.0.0.1:8082/"
                    )));
                }
                if let Some(other) = url.replace(both.0) {
                    return Err(one_url(&other));
                }
                args.alternate = Some(both.1);
            }
            Long("slice") => args.slice = duration(&mut parser, "--slice")?,
            Long("settle") => args.settle = duration(&mut parser, "--settle")?,
            Long("gap") => args.gap = gap(&text(&mut parser)?)?,
            Long("order") => args.order = order(&text(&mut parser)?)?,
            Long("print-slices") => args.print_slices = true,
            Long("expect") => args.expect.extend(statuses(&text(&mut parser)?)?),
            Long("max-lateness") => args.max_lateness = Some(duration(&mut parser, "--max-lateness")?),
            Long("max-unanswered") => args.max_unanswered = Some(share(&text(&mut parser)?)?),
            Long("arrivals") => args.arrivals = arrivals(&text(&mut parser)?)?,
            Long("dispatch") => args.dispatch = dispatch(&text(&mut parser)?)?,
            Long("spin") => args.spin = spin(&text(&mut parser)?)?,
            Long("pin") => args.pin.extend(cpus(&text(&mut parser)?)?),
            Short('v') | Long("version") => return Ok(Parsed::Version),
            Short('h') | Long("help") => return Ok(Parsed::Help),
            Long("completions") => return Ok(Parsed::Completions(text(&mut parser)?)),
            Long("man") => return Ok(Parsed::ManPage),
            Value(value) if url.is_none() => url = Some(value.string().map_err(usage)?),
            Value(extra) => return Err(one_url(&extra.to_string_lossy())),
            other => return Err(usage(other.unexpected())),
        }
    }
    args.url = url.ok_or_else(|| no_url(&typed[..options_end]))?;
    if !args.steps.is_empty() {
        if args.duration_typed {
            return Err(Error::Failed(
                "steps say how long the run lasts: they exclude --duration".to_owned(),
            ));
        }
        args.duration = args.steps.iter().fold(Duration::ZERO, |all, step| all.saturating_add(step.length));
    }
    check(&args)?;
    Ok(Parsed::Run(Box::new(args)))
}

/// Of a run that lasts longer than any may.
pub fn too_long(lasts: Duration) -> Error {
    Error::Failed(format!("a run lasts at most {} days: {lasts:?}", LASTS_MAX.as_secs() / 86400))
}

fn one_url(extra: &str) -> Error {
    Error::Failed(format!("one URL only: unexpected argument {extra:?}; script arguments follow --"))
}

/// Where an option without its value has taken the URL for it, that is told.
fn no_url(typed: &[OsString]) -> Error {
    let typed: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let taken = typed.windows(2).find(|pair| pair[0].starts_with('-') && pair[1].contains("://"));
    match taken {
        Some([option, url]) => Error::Failed(format!("no URL: {url} was taken for the value of {option}")),
        _ => Error::Usage("no URL: it comes after the options, as in http://127.0.0.1:8080/".to_owned()),
    }
}

fn check(args: &Args) -> Result<(), Error> {
    let rule = |what: String| Err(Error::Failed(what));
    if args.threads == 0 || args.connections == 0 {
        return rule(format!(
            "threads and connections must be at least 1: threads={}, connections={}",
            args.threads, args.connections
        ));
    }
    if args.connections < args.threads {
        return Err(Error::Usage("number of connections must be >= threads".to_owned()));
    }
    if args.part.share(args.connections as usize) < args.threads as usize {
        return rule(format!(
            "a part needs a connection for each of its threads: --part {}/{} has {} of {} \
                connections, threads={}",
            args.part.number,
            args.part.of,
            args.part.share(args.connections as usize),
            args.connections,
            args.threads
        ));
    }
    let rates = args.rate_rps.iter().copied().chain(args.steps.iter().map(|step| step.rate_rps));
    match (args.mean_rate_rps(), args.closed) {
        (None, false) => {
            return Err(Error::Usage("Throughput MUST be specified with the --rate or -R option".to_owned()));
        }
        (Some(_), true) => {
            return rule("--closed sends as fast as answers come: it excludes --rate".to_owned());
        }
        _ => {}
    }
    for rate in rates {
        if !(rate > 0.0 && rate <= 1e9) {
            return rule(format!("rate must be over 0 and at most 1G requests per second: rate={rate}"));
        }
    }
    if args.steps.len() > STEPS_MAX || args.steps.iter().any(|step| step.length.is_zero()) {
        return rule(format!(
            "from 1 to {STEPS_MAX} steps, each of a length over 0: steps={}",
            args.steps.len()
        ));
    }
    if args.connections > 1_000_000 || args.threads > 1024 {
        return rule(format!(
            "at most 1000000 connections and 1024 threads: connections={}, threads={}",
            args.connections, args.threads
        ));
    }
    if let Some(count) = args.slowest_count.filter(|count| !(1..=1_000_000).contains(count)) {
        return rule(format!(
            "from 1 to 1000000 of the slowest answers can be kept: --slowest-count {count}"
        ));
    }
    if let (Some(count), None) = (args.slowest_count, &args.slowest) {
        return rule(format!(
            "the slowest answers are written into a file: --slowest-count {count} asks for --slowest FILE"
        ));
    }
    let interval_ns = args.interval().as_nanos();
    let fits = (10_000_000..=1_000_000_000).contains(&interval_ns) && 1_000_000_000 % interval_ns == 0;
    if !fits || !interval_ns.is_multiple_of(1_000_000) {
        return rule(format!(
            "an interval is of whole milliseconds, from 10ms to 1s, and fits into a second without a rest: \
                --interval {:?}; examples: 100ms, 250ms",
            args.interval()
        ));
    }
    if let (Some(interval), None) = (args.interval, &args.hlog) {
        return rule(format!(
            "intervals are those of the interval log: --interval {interval:?} asks for --hlog FILE"
        ));
    }
    if args.targets.is_some() && (args.method.is_some() || args.body.is_some() || args.script.is_some()) {
        return rule(
            "--targets says what is requested: it excludes --method, --body and --script".to_owned(),
        );
    }
    if args.unix_socket.is_some() && (args.alternate.is_some() || args.addresses == Addresses::All) {
        return rule(
            "--unix-socket is one server at one place: it excludes --alternate and --addresses all"
                .to_owned(),
        );
    }
    if args.insecure && args.ca_file.is_some() {
        return rule("--insecure accepts any certificate: it excludes --ca-file".to_owned());
    }
    if args.sample > 1_000_000 {
        return rule(format!("at most 1000000 answered requests can be sampled: --sample {}", args.sample));
    }
    if args.sample > 0 && args.json.is_none() {
        return rule(format!(
            "the sample is written into the JSON result: --sample {} asks for --json FILE",
            args.sample
        ));
    }
    if args.duration.is_zero() || args.timeout.is_zero() {
        return rule(format!(
            "duration and timeout must be over 0: duration={:?}, timeout={:?}",
            args.duration, args.timeout
        ));
    }
    let lengths = [args.duration, args.warm_up.unwrap_or_default()];
    if let Some(longest) = lengths.into_iter().find(|time| *time > LASTS_MAX) {
        return Err(too_long(longest));
    }
    if args.steps.is_empty()
        && (args.duration_typed || args.requests.is_none())
        && args.warm_up.is_some_and(|warm_up| warm_up >= args.duration)
    {
        return rule(format!(
            "warm-up must be shorter than the run: warmup={:?}, duration={:?}",
            args.warm_up.unwrap(),
            args.duration
        ));
    }
    let of_schedules =
        args.arrivals == Arrivals::Poisson || args.dispatch == Dispatch::Any || args.max_lateness.is_some();
    if args.closed && (of_schedules || !args.slack.is_zero()) {
        return rule(
            "--closed has no schedule: it excludes --arrivals, --dispatch, --max-lateness and --slack"
                .to_owned(),
        );
    }
    if args.closed && matches!(args.spin, Spin::For(_)) {
        return rule("--closed has no due times to wait for busily: it excludes --spin T".to_owned());
    }
    if !args.slack.is_zero() && args.alternate.is_some() {
        return rule(
            "--slack lets requests leave in the other server's slice: it excludes --alternate".to_owned(),
        );
    }
    if !args.slack.is_zero() && args.max_lateness.is_some_and(|most| args.slack >= most) {
        return rule(format!(
            "--slack lets requests leave so late that the run fails: --slack {:?}, --max-lateness {:?}",
            args.slack,
            args.max_lateness.unwrap_or_default()
        ));
    }
    if !args.slack.is_zero() && matches!(args.spin, Spin::For(_)) {
        return rule("--slack waits asleep: it excludes --spin T".to_owned());
    }
    if args.requests == Some(0)
        || args.requests.is_some() && (args.alternate.is_some() || !args.steps.is_empty())
    {
        return rule("--requests is over 0, and excludes --alternate and a rate in steps".to_owned());
    }
    if args.arrivals == Arrivals::Poisson
        && args.requests.is_some_and(|requests| requests > POISSON_REQUESTS_MAX)
    {
        return rule(format!(
            "with --arrivals poisson --requests is at most {POISSON_REQUESTS_MAX}, which are drawn \
                before the run"
        ));
    }
    if args.alternate.is_some()
        && (args.arrivals == Arrivals::Poisson || args.dispatch == Dispatch::Any || !args.steps.is_empty())
    {
        return rule(
            "--alternate sends at even distances: it excludes --arrivals poisson, --dispatch any \
                and a rate in steps"
                .to_owned(),
        );
    }
    if let (Some(option), None) = (args.of_turns_typed, &args.alternate) {
        return rule(format!("--{option} is of two servers in turn: it asks for --alternate"));
    }
    if args.slice < SLICE_MIN || args.settle >= args.slice {
        return rule(format!(
            "a slice is at least {SLICE_MIN:?} long, and longer than it settles: --slice {:?}, --settle {:?}",
            args.slice, args.settle
        ));
    }
    Ok(())
}

fn usage(problem: lexopt::Error) -> Error {
    Error::Usage(problem.to_string())
}

/// The name of a file.
fn file(parser: &mut lexopt::Parser, option: &str) -> Result<PathBuf, Error> {
    named(option, parser.value().map_err(usage)?)
}

/// An empty name, as of a variable that is not set, names no file.
pub fn named(option: &str, name: OsString) -> Result<PathBuf, Error> {
    if name.is_empty() {
        return Err(Error::Failed(format!("the name of a file is empty: {option} \"\"")));
    }
    Ok(name.into())
}

fn text(parser: &mut lexopt::Parser) -> Result<String, Error> {
    parser.value().map_err(usage)?.string().map_err(usage)
}

fn count(parser: &mut lexopt::Parser, option: &str) -> Result<u64, Error> {
    let text = text(parser)?;
    units::parse_count(&text)
        .ok_or_else(|| Error::Failed(format!("not a whole number: {option} {text:?}; examples: 16, 1k")))
}

/// `20k`, or `1k:10s,2k:10s`.
fn rate_or_steps(text: &str) -> Result<(Option<f64>, Vec<Step>), Error> {
    let wrong = || {
        let examples = "examples: 500, 0.5, 20k; in steps 1k:10s,2k:10s";
        Error::Failed(format!("not a rate in requests per second: --rate {text:?}; {examples}"))
    };
    if !text.contains(':') {
        return units::parse_rate(text).map(|rate_rps| (Some(rate_rps), Vec::new())).ok_or_else(wrong);
    }
    let step = |text: &str| {
        let (rate, length) = text.split_once(':')?;
        Some(Step { rate_rps: units::parse_rate(rate)?, length: units::parse_duration(length)? })
    };
    let steps: Option<Vec<Step>> = text.split(',').map(step).collect();
    steps.map(|steps| (None, steps)).ok_or_else(wrong)
}

fn duration(parser: &mut lexopt::Parser, option: &str) -> Result<Duration, Error> {
    let text = text(parser)?;
    units::parse_duration(&text)
        .ok_or_else(|| Error::Failed(format!("not a time: {option} {text:?}; examples: 10s, 500ms, 1.5m")))
}

fn header(text: &str) -> Result<(String, String), Error> {
    let wrong = || Error::Failed(format!("not a header: {text:?}; example: -H \"Accept: text/plain\""));
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = http::HeaderName::try_from(name).map(|_| name.to_owned()).map_err(|_| wrong())?;
    let value = value.trim();
    http::HeaderValue::try_from(value).map_err(|_| wrong())?;
    Ok((name, value.to_owned()))
}

/// Of one name the last counts, as in wrk, whose scripts have a table of them.
fn set_header(headers: &mut Vec<(String, String)>, new: (String, String)) {
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&new.0));
    headers.push(new);
}

fn method(text: String) -> Result<String, Error> {
    if is_method(&text) {
        Ok(text)
    } else {
        Err(Error::Failed(format!("not a method: --method {text:?}; example: -m PUT")))
    }
}

fn seed(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::Failed(format!("not a whole number: --seed {text:?}")))
}

fn statuses(text: &str) -> Result<Vec<u16>, Error> {
    let one = |part: &str| part.parse().ok().filter(|status| (100..1000).contains(status));
    let all: Option<Vec<u16>> = text.split(',').map(one).collect();
    all.ok_or_else(|| {
        Error::Failed(format!("not a list of statuses: --expect {text:?}; example: --expect 200,404"))
    })
}

/// `0.01` or `1%`.
fn share(text: &str) -> Result<f64, Error> {
    let (number, hundredth) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number
        .parse::<f64>()
        .ok()
        .map(|number| number * hundredth)
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| {
        Error::Failed(format!("not a share from 0 to 1: --max-unanswered {text:?}; examples: 0.01, 1%"))
    })
}

fn arrivals(text: &str) -> Result<Arrivals, Error> {
    match text {
        "uniform" => Ok(Arrivals::Uniform),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err(Error::Failed(format!("--arrivals is uniform or poisson, not {text:?}"))),
    }
}

fn start_at(text: &str) -> Result<jiff::Timestamp, Error> {
    let utc: jiff::Timestamp = text.parse().map_err(|_| {
        Error::Failed(format!(
            "not a time in UTC: --start-at {text:?}; example: 2026-11-20T19:30:00.000000000Z"
        ))
    })?;
    Ok(utc)
}

/// `20ms`, or `20ms..350ms`.
fn gap(text: &str) -> Result<GapLength, Error> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let lengths = units::parse_duration(least).zip(units::parse_duration(most));
    lengths.filter(|(least, most)| least <= most).map(|(least, most)| GapLength { least, most }).ok_or_else(
        || {
            Error::Failed(format!(
                "not a pause, nor a range of pauses: --gap {text:?}; examples: 20ms, 20ms..350ms"
            ))
        },
    )
}

fn order(text: &str) -> Result<TurnOrder, Error> {
    let named = TurnOrder::ALL.into_iter().find(|order| order.name() == text);
    named.ok_or_else(|| Error::Failed(format!("--order is abba or random, not {text:?}")))
}

fn addresses(text: &str) -> Result<Addresses, Error> {
    match text {
        "first" => Ok(Addresses::First),
        "all" => Ok(Addresses::All),
        _ => Err(Error::Failed(format!("--addresses is first or all, not {text:?}"))),
    }
}

fn dispatch(text: &str) -> Result<Dispatch, Error> {
    match text {
        "fixed" => Ok(Dispatch::Fixed),
        "any" => Ok(Dispatch::Any),
        _ => Err(Error::Failed(format!("--dispatch is fixed or any, not {text:?}"))),
    }
}

fn spin(text: &str) -> Result<Spin, Error> {
    match text {
        "auto" => Ok(Spin::Auto),
        "off" => Ok(Spin::Off),
        _ => units::parse_duration(text).map(Spin::For).ok_or_else(|| {
            Error::Failed(format!("--spin is auto, off or a time, not {text:?}; example: --spin 50us"))
        }),
    }
}

/// `0,2-3` → 0, 2, 3.
fn cpus(text: &str) -> Result<Vec<usize>, Error> {
    let wrong = || Error::Failed(format!("not a list of CPUs: --pin {text:?}; example: --pin 0,2-3"));
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) =
            (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        if first > last || last >= rustix::thread::CpuSet::MAX_CPU {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Result<Box<Args>, String> {
        match parse(words) {
            Ok(Parsed::Run(args)) => Ok(args),
            Ok(_) => Err("help or version".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn options_may_stand_before_and_after_the_url() {
        let args =
            run(&["-t2", "-c", "64", "http://h/", "-R", "2k", "--latency", "-d1m", "--", "-x", "y"]).unwrap();
        assert_eq!((args.threads, args.connections, args.rate_rps), (2, 64, Some(2000.0)));
        assert_eq!((args.latency, args.duration), (true, Duration::from_secs(60)));
        assert_eq!(args.script_args, ["-x", "y"]);
    }

    #[test]
    fn a_rate_in_steps_says_how_long_the_run_lasts() {
        let args = run(&["-R", "1k:10s,2k:30s", "--warmup", "50s", "http://h/"]).unwrap();
        assert_eq!((args.mean_rate_rps(), args.duration), (Some(1750.0), Duration::from_secs(40)));
    }

    #[test]
    fn of_headers_of_one_name_the_last_counts() {
        let typed = ["-R1", "-H", "X-A: 1", "-H", "X-B: 2", "-H", "x-a: 3", "http://h/"];
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(run(&typed).unwrap().headers, [pair("X-B", "2"), pair("x-a", "3")]);
    }

    #[test]
    fn u_latency_implies_latency() {
        let args = run(&["-U", "-R1", "http://h/"]).unwrap();
        assert!(args.latency && args.uncorrected);
    }

    #[test]
    fn a_missing_rate_is_told_in_wrk2s_words() {
        assert_eq!(
            run(&["http://h/"]).unwrap_err(),
            "Throughput MUST be specified with the --rate or -R option"
        );
    }

    #[test]
    fn fewer_connections_than_threads_is_told_in_wrk2s_words() {
        assert_eq!(
            run(&["-c1", "-t2", "-R1", "http://h/"]).unwrap_err(),
            "number of connections must be >= threads"
        );
    }

    #[test]
    fn bad_values_name_the_option_and_show_an_example() {
        for (words, part) in [
            (&["-R", "fast", "http://h/"][..], "--rate \"fast\""),
            (&["-R1", "-d", "soon", "http://h/"], "--duration \"soon\""),
            (&["-R1", "-H", "no colon", "http://h/"], "not a header"),
            (&["-R1", "--expect", "ok", "http://h/"], "--expect \"ok\""),
            (&["-R1", "--max-unanswered", "2", "http://h/"], "--max-unanswered \"2\""),
            (&["-R1", "--order", "ab", "--alternate", "http://h/", "http://i/"], "--order"),
            (
                &["-R1", "--dispatch", "any", "--alternate", "http://h/", "http://i/"],
                "--alternate sends at even distances",
            ),
            (
                &["--closed", "--settle", "500ms", "--alternate", "http://h/", "http://i/"],
                "--slice 500ms, --settle 500ms",
            ),
            (
                &["-R1", "--gap", "350ms..20ms", "--alternate", "http://h/", "http://i/"],
                "--gap \"350ms..20ms\"; examples: 20ms, 20ms..350ms",
            ),
            (&["-R1", "--gap", "20ms..", "--alternate", "http://h/", "http://i/"], "--gap \"20ms..\""),
            (&["-R1", "--print-slices", "http://h/"], "--print-slices is of two servers in turn"),
            (&["-R1", "--slice", "1s", "http://h/"], "--slice is of two servers in turn"),
            (&["-R1", "--settle", "1ms", "http://h/"], "--settle is of two servers in turn"),
            (&["-R1", "--gap", "20ms", "http://h/"], "--gap is of two servers in turn"),
            (&["-R1", "--order", "abba", "http://h/"], "--order is of two servers in turn"),
            (&["-R1", "--alternate", "http://h/"], "--alternate"),
            (&["-R1", "--slice", "0s", "--alternate", "http://h/", "http://i/"], "--slice 0ns"),
            (
                &["-R1", "--slice", "9999us", "--alternate", "http://h/", "http://i/"],
                "a slice is at least 10ms long",
            ),
            (&["-R1", "--alternate", "http://h/", "-c2"], "two URLs: -c2 is none"),
            (&["-R1", "--json", "", "http://h/"], "the name of a file is empty: --json \"\""),
            (&["-R1", "--hlog=", "http://h/"], "empty: --hlog"),
            (&["-R1", "--slowest", "", "http://h/"], "empty: --slowest"),
            (&["-R1", "--unix-socket", "", "http://h/"], "empty: --unix-socket"),
            (&["-R1", "-s", "", "http://h/"], "empty: --script"),
            (&["-R1", "--targets", "", "http://h/"], "empty: --targets"),
            (&["-R1", "--ca-file", "", "https://h/"], "empty: --ca-file"),
            (&["-R1", "--slowest-count", "5", "http://h/"], "--slowest-count 5 asks for --slowest FILE"),
            (&["-R1", "--interval", "100ms", "http://h/"], "--interval 100ms asks for --hlog FILE"),
            (&["--closed", "--spin", "50us", "http://h/"], "it excludes --spin T"),
            (&["-R1", "--alternate", "http://h/", "http://i/", "http://j/"], "one URL only"),
            (&["-R1", "http://j/", "--alternate", "http://h/", "http://i/"], "argument \"http://j/\""),
            (&["-R1", "--start-at", "noon", "http://h/"], "--start-at \"noon\""),
            (&["-R1", "--part", "3/2", "http://h/"], "--part \"3/2\""),
            (
                &["-R1", "-c4", "-t2", "--part", "3/3", "http://h/"],
                "--part 3/3 has 1 of 4 connections, threads=2",
            ),
            (&["-R1", "--pin", "3-1", "http://h/"], "--pin \"3-1\""),
            (&["-R1", "--spin", "hard", "http://h/"], "--spin"),
            (&["-R1", "--addresses", "two", "http://h/"], "--addresses is first or all"),
            (
                &["-R1", "--unix-socket", "/s", "--addresses", "all", "http://h/"],
                "--unix-socket is one server",
            ),
            (&["-R1", "--dispatch", "round", "http://h/"], "--dispatch"),
            (&["--closed", "--dispatch", "any", "http://h/"], "--closed"),
            (&["-R0", "http://h/"], "rate must be over 0"),
            (&["-R", "1k:5s,0:5s", "http://h/"], "rate must be over 0"),
            (&["-R", "1k:5s,2k", "http://h/"], "--rate \"1k:5s,2k\""),
            (&["-R", "1k:5s,2k:0s", "http://h/"], "each of a length over 0"),
            (&["-R", "1:50h,1:5000000000000000h,1:5000000000000000h", "http://h/"], "at most 100 days: "),
            (&["-R", "1:1h,1:2400h", "http://h/"], "at most 100 days: 8643600s"),
            (&["-R", "1k:5s", "-d5s", "http://h/"], "they exclude --duration"),
            (&["-R", "1k:5s", "--closed", "http://h/"], "--closed"),
            (&["-R", "1k:5s", "--alternate", "http://h/", "http://i/"], "a rate in steps"),
            (&["-R1", "--closed", "http://h/"], "--closed"),
            (&["-R1", "--slowest-count", "0", "http://h/"], "--slowest-count 0"),
            (&["-R1", "--slowest-count", "2M", "http://h/"], "--slowest-count 2000000"),
            (&["-R1", "--hlog", "f", "--interval", "300ms", "http://h/"], "without a rest: --interval 300ms"),
            (&["-R1", "--hlog", "f", "--interval", "2s", "http://h/"], "--interval 2s"),
            (&["-R1", "--hlog", "f", "--interval", "5ms", "http://h/"], "--interval 5ms"),
            (&["-R1", "--hlog", "f", "--interval", "62500us", "http://h/"], "--interval 62.5ms"),
            (&["-R1", "--hlog", "f", "--interval", "0s", "http://h/"], "--interval 0ns"),
            (&["-R1", "-m", "P T", "http://h/"], "--method \"P T\""),
            (&["-R1", "--targets", "f", "--body", "x", "http://h/"], "--targets says what is requested"),
            (&["-R1", "--sample", "2M", "http://h/"], "--sample 2000000"),
            (&["-R1", "--sample", "5", "http://h/"], "--sample 5 asks for --json"),
            (&["-R1", "--warmup", "10s", "http://h/"], "warm-up must be shorter"),
            (&["-R1", "-d", "2401h", "http://h/"], "at most 100 days: 8643600s"),
            (&["--closed", "-d", "10000000h", "http://h/"], "at most 100 days: 36000000000s"),
            (&["-R", "1:5s", "--warmup", "2401h", "http://h/"], "at most 100 days: 8643600s"),
            (&["-R1", "--slack", "1ms", "--spin", "1ms", "http://h/"], "it excludes --spin"),
            (&["-R1", "--slack", "1ms", "--alternate", "http://h/", "http://i/"], "it excludes --alternate"),
            (&["-R1", "--slack", "1ms", "--max-lateness", "1ms", "http://h/"], "so late that the run fails"),
            (&["--closed", "--slack", "1ms", "http://h/"], "and --slack"),
            (&["--closed", "--requests", "0", "http://h/"], "--requests is over 0"),
            (
                &["--closed", "--requests", "5", "--alternate", "http://h/", "http://i/"],
                "excludes --alternate",
            ),
            (&["-R1", "--arrivals", "poisson", "--requests", "1G", "http://h/"], "at most 10000000"),
            (&["-R1", "-c0", "-t0", "http://h/"], "at least 1"),
            (&["-R1"], "no URL"),
            (&["-R1", "--ca-file", "https://h/"], "no URL: https://h/ was taken for the value of --ca-file"),
            (&["-R1", "http://h/", "http://i/"], "one URL only"),
            (&["-R1", "--frobnicate", "http://h/"], "--frobnicate"),
        ] {
            let message = run(words).unwrap_err();
            assert!(message.contains(part), "{words:?}: {message}");
        }
    }

    #[test]
    fn names_of_files_and_arguments_of_scripts_may_be_any_bytes() {
        use std::os::unix::ffi::OsStringExt;

        let odd = OsString::from_vec(b"a\xff".to_vec());
        let words = ["-R1", "--json", "ODD", "--body", "ODD", "http://h/", "--", "ODD"];
        let words = words.map(|word| if word == "ODD" { odd.clone() } else { word.into() });
        let Ok(Parsed::Run(args)) = parse(words) else { panic!("refused") };
        assert_eq!((args.json, args.body), (Some(odd.clone().into()), Some(odd.clone())));
        assert_eq!((args.script_args, args.typed.last().unwrap().as_str()), (vec![odd], "a\u{fffd}"));
    }

    #[test]
    fn a_pause_is_of_one_length_or_drawn_between_two() {
        let ms = Duration::from_millis;
        assert_eq!(gap("20ms").unwrap(), GapLength { least: ms(20), most: ms(20) });
        assert_eq!(gap("0s..1.5s").unwrap(), GapLength { least: ms(0), most: ms(1500) });
    }

    #[test]
    fn a_share_may_be_in_percent() {
        assert_eq!(["0.05", "5%", "0", "100%"].map(|text| share(text).unwrap()), [0.05, 0.05, 0.0, 1.0]);
    }

    #[test]
    fn cpu_lists_have_ranges() {
        assert_eq!(cpus("0,2-4").unwrap(), [0, 2, 3, 4]);
    }
}
