//! The requests of a run that no script makes: one that is sent every time, or those of a list in turn.
//!
//! A list (`--targets`) has a request per line: method, URL or path, and the file of its body if it has
//! one. At a uniform rate request m of the run, over all connections, has a line that follows from m,
//! whoever sends it: all lines in turn, shifted by one where a connection would send the same lines again
//! before it has sent the others. Where requests have no such numbers, in a closed loop, at random times
//! and with two servers in turn, each thread goes through the whole list again and again, thread t of T
//! from t/T of it on. So all lines are sent equally often, also where some connections or threads send
//! more than others.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::http::HttpError;
use crate::http::request::Batch;
use crate::method::is_method;
use crate::target::Target;

/// A request as it is sent, and what is to be known of its answer.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub batch: Batch,
}

impl Request {
    pub fn new(bytes: Vec<u8>) -> Result<Self, Error> {
        let batch =
            Batch::parse(&bytes).map_err(|HttpError(why)| Error::Failed(format!("bad request: {why}")))?;
        Ok(Self { bytes, batch })
    }

    /// One with the headers that were typed; Host and Content-Length are added.
    pub fn of(
        target: &Target,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let typed = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !typed("host") {
            head += &format!("Host: {}\r\n", target.host_header());
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body.filter(|_| !typed("content-length")) {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        Self::new([(head + "\r\n").as_bytes(), body.unwrap_or_default()].concat())
    }
}

/// Requests in turn, as one thread sends them.
#[derive(Debug)]
pub struct Rotation<'a> {
    requests: Cow<'a, [Request]>,
    /// Of those without a number.
    next: usize,
    /// Those with a number are shared out over so many series.
    series: u64,
    /// The greatest number that divides both series and lines: in turn, a series has every so-many-th line.
    divisor: u64,
}

impl<'a> Rotation<'a> {
    /// `series`: see [`crate::due::DueRequests::request_number`].
    pub fn new(
        requests: impl Into<Cow<'a, [Request]>>,
        thread: usize,
        threads: usize,
        series: usize,
    ) -> Self {
        let requests = requests.into();
        let (series, lines) = (series as u64, requests.len() as u64);
        Self {
            next: thread * requests.len() / threads,
            requests,
            series,
            divisor: greatest_common_divisor(series, lines),
        }
    }

    /// `number`: that of the request among all of the run, if it has one.
    #[inline]
    pub fn next(&mut self, number: Option<u64>) -> &Request {
        let lines = self.requests.len();
        let place = match number {
            _ if lines == 1 => 0,
            Some(number) => {
                let (lines, round) = (lines as u64, number / self.series);
                let lines_of_a_series = lines / self.divisor;
                let shift = round / lines_of_a_series % self.divisor;
                ((number + shift) % lines) as usize
            }
            None => {
                let following = (self.next + 1) % lines;
                std::mem::replace(&mut self.next, following)
            }
        };
        &self.requests[place]
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// What was typed for a body: the text itself, or @ and the file that holds it.
pub fn body(typed: &OsStr) -> Result<Vec<u8>, Error> {
    body_file(typed).map_or_else(|| Ok(typed.as_bytes().to_vec()), read_body)
}

/// The file that holds it, if it is one.
pub fn body_file(typed: &OsStr) -> Option<&Path> {
    typed.as_bytes().strip_prefix(b"@").map(|path| Path::new(OsStr::from_bytes(path)))
}

/// The file of a list: `-` is standard input.
pub fn list_file(typed: &Path) -> &Path {
    if typed == Path::new("-") { Path::new("/dev/stdin") } else { typed }
}

fn read_body(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|problem| Error::file(path, format!("cannot read the body: {problem}")))
}

/// A list of requests as it was read.
pub struct List {
    path: PathBuf,
    text: String,
}

impl List {
    /// `-` is standard input.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut text = String::new();
        let read = match path == Path::new("-") {
            true => std::io::stdin().read_to_string(&mut text),
            false => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
        };
        read.map_err(|problem| Error::file(path, format!("cannot read the targets: {problem}")))?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// Its numbered lines that are requests.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines().map(str::trim));
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    }

    /// Body files are found beside the list.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The files of its bodies.
    pub fn body_files(&self) -> impl Iterator<Item = PathBuf> {
        self.lines()
            .map(|(_, line)| split(line).2)
            .filter(|file| !file.is_empty())
            .map(|file| self.folder().join(file))
    }

    /// Its requests to one server.
    pub fn requests(&self, target: &Target, headers: &[(String, String)]) -> Result<Vec<Request>, Error> {
        let folder = self.folder();
        let requests: Vec<Request> = self
            .lines()
            .map(|(number, line)| {
                of_line(line, folder, target, headers)
                    .map_err(|problem| Error::Failed(format!("{}:{number}: {problem}", self.path.display())))
            })
            .collect::<Result<_, _>>()?;
        if requests.is_empty() {
            return Err(Error::file(
                &self.path,
                "no targets: a line holds a method, a URL or path, and a body's file if there is one",
            ));
        }
        Ok(requests)
    }
}

/// Method, URL or path, and the file of the body; what is missing is empty.
fn split(line: &str) -> (&str, &str, &str) {
    let (method, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let (url, file) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (method, url, file.trim())
}

fn of_line(
    line: &str,
    folder: &Path,
    target: &Target,
    headers: &[(String, String)],
) -> Result<Request, Error> {
    let (method, url, file) = split(line);
    if !is_method(method) || url.is_empty() {
        return Err(Error::Failed(format!(
            "no method and URL: {line:?}; example: PUT /v0/entity?id=1 body.bin"
        )));
    }
    let path = if url.starts_with('/') {
        // What may stand in a path is told by the parser of URLs.
        Target::parse(&format!("http://h{url}"))?.path
    } else {
        let other = Target::parse(url)?;
        if !other.is_same_server(target) {
            return Err(Error::Failed(format!("another server than that of {}: {url}", target.url)));
        }
        other.path
    };
    let body = match file {
        "" => None,
        file => Some(read_body(&folder.join(file))?),
    };
    Request::of(target, method, &path, headers, body.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<Request> {
        (0..count).map(|n| Request::new(format!("GET /{n} HTTP/1.1\r\n\r\n").into_bytes()).unwrap()).collect()
    }

    fn line(request: &Request) -> usize {
        String::from_utf8_lossy(&request.bytes[5..]).split(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_request_with_a_number_is_the_line_of_that_number_whichever_thread_sends_it() {
        let requests = numbered(5);
        for thread in 0..3 {
            let mut rotation = Rotation::new(&requests, thread, 3, 1);
            assert_eq!([0, 4, 5, 13].map(|number| line(rotation.next(Some(number)))), [0, 4, 0, 3]);
        }
    }

    #[test]
    fn with_numbers_all_lines_are_due_equally_often_in_the_run_and_on_each_connection() {
        for (lines, connections) in (1..13).flat_map(|lines| (1..13).map(move |count| (lines, count))) {
            let requests = numbered(lines);
            let mut rotation = Rotation::new(&requests, 0, 1, connections);
            let (mut all, mut of_each) = (vec![0; lines], vec![vec![0; lines]; connections]);
            for number in 0..2 * lines * connections {
                let sent = line(rotation.next(Some(number as u64)));
                all[sent] += 1;
                of_each[number % connections][sent] += 1;
                let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
                assert!(most - least <= 1, "{lines} lines, {connections} connections: {all:?}");
            }
            let each_twice = of_each.iter().flatten().all(|&count| count == 2);
            assert!(each_twice, "{lines} lines, {connections} connections: {of_each:?}");
        }
    }

    #[test]
    fn without_numbers_each_thread_goes_through_the_whole_list_from_a_place_of_its_own_on() {
        let sent = |requests: &[Request], thread: usize, threads: usize, count: usize| -> Vec<usize> {
            let mut rotation = Rotation::new(requests, thread, threads, 1);
            (0..count).map(|_| line(rotation.next(None))).collect()
        };
        let requests = numbered(5);
        assert_eq!(sent(&requests, 0, 1, 7), [0, 1, 2, 3, 4, 0, 1]);
        assert_eq!(sent(&requests, 1, 2, 6), [2, 3, 4, 0, 1, 2]);
        assert_eq!(sent(&requests, 2, 3, 5), [3, 4, 0, 1, 2]);
        assert_eq!(sent(&requests[..1], 3, 4, 2), [0, 0]);
        assert_eq!(sent(&requests[..2], 3, 4, 3), [1, 0, 1]);
    }
}
