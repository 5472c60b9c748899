//! A server whose behaviour each test chooses, and loadgen runs with their results read back.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;

pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What the server does with one request.
pub enum Act {
    Answer(String),
    /// Pieces with a pause between them, so that they arrive apart.
    Pieces(Vec<Vec<u8>>),
    After(Duration, String),
    AnswerAndClose(String),
    Close,
    /// Never answers, keeps the connection.
    Silence,
}

pub struct Server {
    pub port: u16,
    pub requests: Arc<AtomicU64>,
}

impl Server {
    /// `act` is given the number of the request (from 0, over all connections) and its head.
    pub fn start(act: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", act)
    }

    pub fn start_at(address: &str, act: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicU64::new(0));
        let (act, counter) = (Arc::new(act), requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, counter) = (act.clone(), counter.clone());
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    serve(stream, &*act, &counter);
                });
            }
        });
        Self { port, requests }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Answers one connection until it ends.
pub fn serve(mut stream: impl Read + Write, act: &(impl Fn(u64, &str) -> Act + ?Sized), counter: &AtomicU64) {
    let mut received = Vec::new();
    let mut room = [0; 65536];
    loop {
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map_or(0, |n| n.parse().unwrap());
            if received.len() < end + length {
                break;
            }
            received.drain(..end + length);
            let sent = match act(counter.fetch_add(1, Ordering::SeqCst), &head) {
                Act::Answer(text) => stream.write_all(text.as_bytes()),
                Act::Pieces(pieces) => pieces.iter().try_for_each(|piece| {
                    thread::sleep(Duration::from_micros(300));
                    stream.write_all(piece)
                }),
                Act::After(pause, text) => {
                    thread::sleep(pause);
                    stream.write_all(text.as_bytes())
                }
                Act::AnswerAndClose(text) => {
                    stream.write_all(text.as_bytes()).and(Err(std::io::ErrorKind::Other.into()))
                }
                Act::Close => return,
                Act::Silence => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
        match stream.read(&mut room) {
            Ok(0) | Err(_) => return,
            Ok(count) => received.extend_from_slice(&room[..count]),
        }
    }
}

/// The null server of the benchmarks, in a process of its own.
pub struct NullServer {
    process: Child,
    pub url: String,
}

impl NullServer {
    pub fn start() -> Self {
        let mut process =
            Command::new(env!("CARGO_BIN_EXE_nullserver")).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = format!("{}/", line.trim().strip_prefix("ready: ").unwrap());
        Self { process, url }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What one run of loadgen said.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub json: Value,
    pub hlog: String,
}

impl Run {
    pub fn count(&self, name: &str) -> u64 {
        self.json["counts"][name].as_u64().unwrap_or_else(|| panic!("no count {name}: {}", self.stderr))
    }

    pub fn error(&self, name: &str) -> u64 {
        self.json["errors"][name].as_u64().unwrap()
    }

    pub fn percentile(&self, kind: &str, percentile: &str) -> u64 {
        self.json[kind]["percentiles"][percentile].as_u64().unwrap()
    }
}

pub fn loadgen(args: &[&str]) -> Run {
    run_command(Command::new(env!("CARGO_BIN_EXE_loadgen")).args(args))
}

/// Runs with `--json` and `--hlog` into a scratch folder; JSON is null if none was written.
pub fn run_command(command: &mut Command) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let (json, hlog) = (folder.path().join("r.json"), folder.path().join("r.hlog"));
    let output: Output = with_options_first(command, &json, &hlog).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        json: std::fs::read(json).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap()),
        hlog: std::fs::read_to_string(hlog).unwrap_or_default(),
    }
}

/// The same command with two more options in front, so that `--` and what follows keep their place; a run
/// that hangs is ended with code 124.
fn with_options_first(command: &Command, json: &Path, hlog: &Path) -> Command {
    let mut own = Command::new("timeout");
    own.args(["-k1", "60"])
        .arg(command.get_program())
        .arg("--json")
        .arg(json)
        .arg("--hlog")
        .arg(hlog)
        .args(command.get_args());
    own
}

/// The JSON result is as its published schema says.
pub fn assert_follows_schema(run: &Run) {
    let path = format!("{}/schema/loadgen-result-2.schema.json", env!("CARGO_MANIFEST_DIR"));
    let mut schemas = boon::Schemas::new();
    let schema = boon::Compiler::new().compile(&path, &mut schemas).unwrap();
    if let Err(problem) = schemas.validate(&run.json, schema) {
        panic!("{problem:#}");
    }
}

/// Of an interval log: tag, start and length in seconds, and histogram of each line.
pub fn lines(log: &str) -> Vec<(String, f64, f64, Histogram<u64>)> {
    IntervalLogIterator::new(log.as_bytes())
        .filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(line) => {
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(line.encoded_histogram()).unwrap();
                let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                let [start_s, length_s] =
                    [line.start_timestamp(), line.duration()].map(|time| time.as_secs_f64());
                Some((line.tag().unwrap().as_str().to_owned(), start_s, length_s, histogram))
            }
            _ => None,
        })
        .collect()
}

/// How many values each line with this tag has.
pub fn counts_of(log: &str, tag: &str) -> Vec<u64> {
    lines(log).into_iter().filter(|line| line.0 == tag).map(|line| line.3.len()).collect()
}

/// A script in a folder of its own; the folder goes away with the first value.
pub fn script(source: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.lua");
    std::fs::write(&path, source).unwrap();
    (folder, path.to_str().unwrap().to_owned())
}
