//! How many requests a script's string holds, and which of their answers have no body.

use std::borrow::Cow;

use super::chunked::Chunked;
use super::{HttpError, blank_bytes};

/// A string of one or more requests, sent at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of requests, and so of answers.
    pub requests: u32,
    /// Bit i: request i asks for a head only; longer batches continue in `more`.
    head_only: u64,
    more: Vec<u64>,
}

impl Batch {
    /// Counts the requests in `bytes`. They must be whole, with bodies as long as their headers say; blank
    /// lines before and behind them are passed over, as servers do.
    pub fn parse(bytes: &[u8]) -> Result<Self, HttpError> {
        let mut batch = Self::default();
        let mut rest = behind_blank_lines(bytes);
        while !rest.is_empty() {
            let length = request_lengths(rest)?.whole;
            if rest.starts_with(b"HEAD ") {
                batch.mark_head_only();
            }
            batch.requests += 1;
            rest = behind_blank_lines(&rest[length..]);
        }
        if batch.requests == 0 {
            return Err(HttpError("the request is empty".to_owned()));
        }
        Ok(batch)
    }

    fn mark_head_only(&mut self) {
        let (word, bit) = (self.requests as usize / 64, self.requests % 64);
        if word == 0 {
            self.head_only |= 1 << bit;
        } else {
            self.more.resize(self.more.len().max(word), 0);
            self.more[word - 1] |= 1 << bit;
        }
    }

    /// Whether the answer to request `index` has no body whatever its headers say.
    pub fn head_only(&self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, index % 64);
        let bits = if word == 0 { self.head_only } else { self.more.get(word - 1).copied().unwrap_or(0) };
        bits >> bit & 1 == 1
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    pub method: &'a [u8],
    /// As in the request line.
    pub target: &'a [u8],
    /// Empty without one; without the sizes of its chunks.
    pub body: Cow<'a, [u8]>,
}

/// Request `index` of a batch that [`Batch::parse`] has taken.
pub fn nth(bytes: &[u8], index: u32) -> Option<Parts<'_>> {
    let mut rest = behind_blank_lines(bytes);
    for _ in 0..index {
        rest = behind_blank_lines(rest.get(request_lengths(rest).ok()?.whole..)?);
    }
    let lengths = request_lengths(rest).ok()?;
    let line = &rest[..memchr::memchr(b'\n', rest)?];
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\r');
    let mut body = Cow::Borrowed(&rest[lengths.head..lengths.whole]);
    if lengths.chunked {
        let mut data = Vec::new();
        let keep = |part: &[u8]| {
            data.extend_from_slice(part);
            Ok(())
        };
        Chunked::default().feed(&body, keep).ok()?;
        body = Cow::Owned(data);
    }
    Some(Parts { method: words.next()?, target: words.next()?, body })
}

fn behind_blank_lines(bytes: &[u8]) -> &[u8] {
    &bytes[blank_bytes(bytes)..]
}

struct Lengths {
    /// Up to the body.
    head: usize,
    whole: usize,
    /// The body is in chunks.
    chunked: bool,
}

/// Lengths of the request at the start of `bytes`.
fn request_lengths(bytes: &[u8]) -> Result<Lengths, HttpError> {
    let (mut body, mut chunked) = (0usize, false);
    let mut line_start = 0;
    for line_end in memchr::memchr_iter(b'\n', bytes) {
        let line = &bytes[line_start..line_end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let first = line_start == 0;
        line_start = line_end + 1;
        if line.is_empty() && !first {
            if chunked {
                body = chunks_length(&bytes[line_start..])?;
            }
            let length = line_start.saturating_add(body);
            if length > bytes.len() {
                return Err(HttpError(format!(
                    "request body shorter than its Content-Length: {} < {body}",
                    bytes.len() - line_start
                )));
            }
            return Ok(Lengths { head: line_start, whole: length, chunked });
        }
        // `Content-Length: 0` is the shortest that matters; compare the name only where the colon fits.
        if line.len() > 15 && line[14] == b':' && line[..14].eq_ignore_ascii_case(b"content-length") {
            let value = std::str::from_utf8(line[15..].trim_ascii()).ok().and_then(|text| text.parse().ok());
            body = value.ok_or_else(|| HttpError("bad Content-Length in the request".to_owned()))?;
        } else if line.len() > 18 && line[17] == b':' && line[..17].eq_ignore_ascii_case(b"transfer-encoding")
        {
            chunked = line[18..].trim_ascii().eq_ignore_ascii_case(b"chunked");
            if !chunked {
                return Err(HttpError("a Transfer-Encoding other than chunked in the request".to_owned()));
            }
        }
    }
    Err(HttpError("the request has no blank line behind its headers".to_owned()))
}

fn chunks_length(bytes: &[u8]) -> Result<usize, HttpError> {
    match Chunked::default().feed(bytes, |_| Ok(())) {
        Ok((length, true)) => Ok(length),
        Ok((_, false)) => Err(HttpError("the request's last chunk is not there".to_owned())),
        Err(problem) => Err(HttpError(format!("chunks of the request: {problem}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_may_hold_several_requests() {
        let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let put = "PUT / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab\n\nc";
        assert_eq!(Batch::parse(get.as_bytes()).unwrap().requests, 1);
        assert_eq!(Batch::parse([get, put, get].concat().as_bytes()).unwrap().requests, 3);
    }

    #[test]
    fn each_request_of_a_string_can_be_had_by_its_number() {
        let batch = b"PUT /a?id=1 HTTP/1.1\r\ncontent-length: 5\r\n\r\nab\n\ncGET * HTTP/1.1\r\n\r\n";
        assert_eq!(
            nth(batch, 0),
            Some(Parts { method: b"PUT", target: b"/a?id=1", body: Cow::Borrowed(b"ab\n\nc") })
        );
        assert_eq!(nth(batch, 1), Some(Parts { method: b"GET", target: b"*", body: Cow::Borrowed(b"") }));
        assert_eq!(nth(batch, 2), None);
    }

    #[test]
    fn bodies_in_chunks_end_with_their_last_chunk() {
        let put =
            "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        let batch = [put, "GET /b HTTP/1.1\r\n\r\n", put].concat();
        assert_eq!(Batch::parse(batch.as_bytes()).unwrap().requests, 3);
        for index in [0, 2] {
            assert_eq!(*nth(batch.as_bytes(), index).unwrap().body, *b"abc0123456789");
        }
    }

    #[test]
    fn blank_lines_before_and_behind_requests_are_no_requests() {
        let (post, head) = ("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "HEAD /b HTTP/1.1\r\n\r\n");
        for (bytes, requests) in [
            (format!("{post}\r\n"), 1),
            (format!("\r\n\r\n{post}"), 1),
            (format!("{post}\r\n\r\n{post}\n"), 2),
            (format!("\n{post}\r\n{head}\r\n\r\n\r\n"), 2),
        ] {
            let batch = Batch::parse(bytes.as_bytes()).unwrap();
            assert_eq!(batch.requests, requests, "{bytes:?}");
            let of_batch = |index| nth(bytes.as_bytes(), index);
            assert_eq!(*of_batch(0).unwrap().body, *b"hello", "{bytes:?}");
            assert_eq!(of_batch(requests), None, "{bytes:?}");
        }
        let batch = Batch::parse(format!("\r\n{head}\r\n{post}").as_bytes()).unwrap();
        assert_eq!([batch.head_only(0), batch.head_only(1)], [true, false]);
    }

    #[test]
    fn requests_for_a_head_are_remembered_in_long_batches_too() {
        let get = "GET / HTTP/1.1\r\n\r\n";
        let head = "HEAD / HTTP/1.1\r\n\r\n";
        let batch = Batch::parse([get, head, get.repeat(198).as_str(), head].concat().as_bytes()).unwrap();
        let marked: Vec<u32> = (0..batch.requests).filter(|&index| batch.head_only(index)).collect();
        assert_eq!(marked, [1, 200]);
    }

    #[test]
    fn what_is_no_whole_request_is_refused() {
        for (bytes, part) in [
            ("", "empty"),
            ("\r\n\r\n", "empty"),
            ("GET / HTTP/1.1\r\n", "no blank line"),
            ("PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", "shorter"),
            ("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "bad Content-Length"),
            ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "last chunk"),
            ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "bad chunk size"),
            ("PUT / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "other than chunked"),
        ] {
            let HttpError(message) = Batch::parse(bytes.as_bytes()).unwrap_err();
            assert!(message.contains(part), "{bytes:?}: {message}");
        }
    }
}
