//! Status line and headers: what they say about the body and about the connection.

use std::mem::MaybeUninit;

use super::{AnswerError, Captured};

/// Headers of most answers; more are parsed a second time with room for [`HEADERS_MAX`].
const HEADERS_USUAL: usize = 48;
const HEADERS_MAX: usize = 8192;

#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub status: u16,
    pub keep_alive: bool,
    length: Option<u64>,
    /// The last transfer coding, if there is any, is `chunked`.
    chunked: Option<bool>,
}

impl Head {
    /// A head at the start of `input` and its length, or none if it is not whole yet.
    pub fn parse(
        input: &[u8],
        captured: Option<&mut Captured>,
    ) -> Result<Option<(usize, Self)>, AnswerError> {
        check_start(input)?;
        let mut room = [const { MaybeUninit::uninit() }; HEADERS_USUAL];
        let mut response = httparse::Response::new(&mut []);
        match lenient().parse_response_with_uninit_headers(&mut response, input, &mut room) {
            Ok(httparse::Status::Complete(length)) => {
                return Self::read(&response, captured).map(|head| Some((length, head)));
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {}
            Err(problem) => return Err(refused(problem, input)),
        }
        let mut room = vec![MaybeUninit::uninit(); HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        match lenient().parse_response_with_uninit_headers(&mut response, input, &mut room) {
            Ok(httparse::Status::Complete(length)) => {
                Self::read(&response, captured).map(|head| Some((length, head)))
            }
            Ok(httparse::Status::Partial) => Ok(None),
            Err(problem) => Err(refused(problem, input)),
        }
    }

    fn read(response: &httparse::Response, captured: Option<&mut Captured>) -> Result<Self, AnswerError> {
        let status = response.code.unwrap_or(0);
        let mut head = Self { status, keep_alive: response.version == Some(1), length: None, chunked: None };
        for header in response.headers.iter() {
            // By length first: most headers are none of these three.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => head.set_length(header.value)?,
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    // `identity` is HTTP of 1999 for no coding at all.
                    let codings =
                        tokens(header.value).filter(|coding| !coding.eq_ignore_ascii_case(b"identity"));
                    if let Some(last) = codings.last() {
                        head.chunked = Some(last.eq_ignore_ascii_case(b"chunked"));
                    }
                }
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for token in tokens(header.value) {
                        if token.eq_ignore_ascii_case(b"close") {
                            head.keep_alive = false;
                        } else if token.eq_ignore_ascii_case(b"keep-alive") {
                            head.keep_alive = true;
                        }
                    }
                }
                _ => {}
            }
        }
        if status == 101 {
            head.keep_alive = false; // what follows is no longer HTTP
        }
        if let Some(captured) = captured {
            captured.headers.extend(
                response.headers.iter().map(|header| (header.name.to_owned(), unfolded(header.value))),
            );
        }
        Ok(head)
    }

    /// Repeated lengths are fine as long as they agree (RFC 9112, 6.3).
    fn set_length(&mut self, value: &[u8]) -> Result<(), AnswerError> {
        for token in value.split(|&byte| byte == b',') {
            let token = token.trim_ascii();
            let digits = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
            let parsed =
                std::str::from_utf8(token).ok().filter(|_| digits).and_then(|text| text.parse().ok());
            let length: u64 = parsed.ok_or_else(|| AnswerError::seen("bad Content-Length", value))?;
            if let Some(before) = self.length.filter(|before| *before != length) {
                return Err(AnswerError {
                    rule: "two different Content-Lengths",
                    seen: format!("{before}, {length}"),
                });
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// 100 Continue, 103 Early Hints and the like: the answer itself is still to come.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    pub fn body(&self, head_only: bool) -> Body {
        match (self.status, self.chunked, self.length) {
            _ if head_only => Body::None,
            (100..200 | 204 | 304, _, _) => Body::None,
            (_, Some(true), _) => Body::Chunked,
            (_, Some(false), _) => Body::UntilClose,
            (_, None, Some(length)) => Body::Length(length),
            (_, None, None) => Body::UntilClose,
        }
    }
}

/// What wrk2's parser takes too: lines folded into the next, blanks before a colon and before a status.
fn lenient() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true);
    config
}

/// Whether a head can begin like this, told from as few bytes as there are: who speaks something else is not
/// waited for.
pub fn check_start(input: &[u8]) -> Result<(), AnswerError> {
    let known = START.len().min(input.len());
    if input[..known] == START[..known] {
        Ok(())
    } else {
        Err(AnswerError::seen("no status line", first_line(input)))
    }
}

const START: &[u8] = b"HTTP/";

/// The parser's reason in our words, with the line at fault.
fn refused(problem: httparse::Error, input: &[u8]) -> AnswerError {
    use httparse::Error;
    match problem {
        Error::Version => AnswerError::seen("HTTP version other than 1.0 and 1.1", first_line(input)),
        Error::Status => AnswerError::seen("bad status line", first_line(input)),
        Error::HeaderName => AnswerError::seen("bad header name", line_at_fault(input)),
        Error::HeaderValue => AnswerError::seen("bad header value", line_at_fault(input)),
        Error::TooManyHeaders => AnswerError::new("more than 8192 headers"),
        Error::NewLine | Error::Token => AnswerError::seen("bad line end", line_at_fault(input)),
    }
}

fn first_line(input: &[u8]) -> &[u8] {
    input.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end()
}

/// Lines are looked at one by one for the one at fault, so not too many of them.
const LINES_LOOKED_AT: usize = 100;

/// The first line with which the parser refuses the head; empty if it is far behind.
fn line_at_fault(input: &[u8]) -> &[u8] {
    let ends = memchr::memchr_iter(b'\n', input).map(|at| at + 1).chain([input.len()]);
    let mut begin = 0;
    for end in ends.take(LINES_LOOKED_AT) {
        let mut room = [const { MaybeUninit::uninit() }; LINES_LOOKED_AT];
        let mut response = httparse::Response::new(&mut []);
        if lenient().parse_response_with_uninit_headers(&mut response, &input[..end], &mut room).is_err() {
            return input[begin..end].trim_ascii_end();
        }
        begin = end;
    }
    &[]
}

/// A folded value on one line, as RFC 9112 (5.2) asks for.
fn unfolded(value: &[u8]) -> Vec<u8> {
    if memchr::memchr(b'\n', value).is_none() {
        return value.to_vec();
    }
    let lines: Vec<&[u8]> =
        value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect();
    lines.join(&b' ')
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Length of the head that ends (with a blank line) at or behind `from`.
pub fn end(bytes: &[u8], from: usize) -> Option<usize> {
    memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| from + at).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}
