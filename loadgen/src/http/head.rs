//! Status line and headers: what they say about the body and about the connection.

use std::mem::MaybeUninit;

use super::{Captured, HttpError};

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

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub keep_alive: bool,
    length: Option<u64>,
    /// The last transfer coding, if there is any, is `chunked`.
    chunked: Option<bool>,
}

impl Head {
    /// A head at the start of `input` and its length, or none if it is not whole yet.
    pub fn parse(input: &[u8], captured: Option<&mut Captured>) -> Result<Option<(usize, Self)>, HttpError> {
        let mut room = [const { MaybeUninit::uninit() }; HEADERS_USUAL];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut response, input, &mut room) {
            Ok(httparse::Status::Complete(length)) => return Self::read(&response, captured).map(|head| Some((length, head))),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {}
            Err(problem) => return Err(HttpError(problem.to_string())),
        }
        let mut room = vec![MaybeUninit::uninit(); HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        match config.parse_response_with_uninit_headers(&mut response, input, &mut room) {
            Ok(httparse::Status::Complete(length)) => Self::read(&response, captured).map(|head| Some((length, head))),
            Ok(httparse::Status::Partial) => Ok(None),
            Err(problem) => Err(HttpError(problem.to_string())),
        }
    }

    fn read(response: &httparse::Response, captured: Option<&mut Captured>) -> Result<Self, HttpError> {
        let status = response.code.unwrap_or(0);
        let mut head = Self { status, keep_alive: response.version == Some(1), length: None, chunked: None };
        for header in response.headers.iter() {
            // By length first: most headers are none of these three.
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("content-length") => head.set_length(header.value)?,
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let last = tokens(header.value).last();
                    head.chunked = Some(last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")));
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
            captured.headers.extend(response.headers.iter().map(|header| (header.name.to_owned(), header.value.to_vec())));
        }
        Ok(head)
    }

    /// Repeated lengths are fine as long as they agree (RFC 9112, 6.3).
    fn set_length(&mut self, value: &[u8]) -> Result<(), HttpError> {
        for token in value.split(|&byte| byte == b',') {
            let token = token.trim_ascii();
            let digits = !token.is_empty() && token.iter().all(u8::is_ascii_digit);
            let parsed = std::str::from_utf8(token).ok().filter(|_| digits).and_then(|text| text.parse().ok());
            let wrong = || HttpError(format!("bad Content-Length: {:?}", String::from_utf8_lossy(value)));
            let length: u64 = parsed.ok_or_else(wrong)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(HttpError(format!("two different Content-Lengths: {}, {length}", self.length.unwrap())));
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
