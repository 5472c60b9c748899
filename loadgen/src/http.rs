//! HTTP/1.1 answers out of bytes, however they are cut up. Bytes only, no I/O.
//!
//! [`AnswerReader::feed`] takes what was received and says how much of it it used and whether an answer ended
//! there. It never reads past the end of an answer, keeps at most one head in memory (and for a script a body
//! up to a limit), and does work linear in the bytes it is given.

mod chunked;
mod head;
pub mod request;

use std::fmt;

use chunked::Chunked;
use head::{Body, Head};

/// Heads may be this large, status line and blank line included.
pub const HEAD_BYTES_MAX: usize = 64 * 1024 + 1024;

/// Bodies that are kept for a script may be this large: one without end would fill the memory as fast as
/// loopback is.
pub const KEPT_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longer heads are not kept for the next.
const REMEMBERED_BYTES_MAX: usize = 512;

/// What of an answer a script wants to see.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Captured {
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// False if the connection is of no more use after this answer.
    pub keep_alive: bool,
}

/// Why a request is none.
#[derive(Debug, PartialEq, Eq)]
pub struct HttpError(pub String);

/// Why bytes are no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    /// The rule that they break; few of them, so that errors can be counted by it.
    pub rule: &'static str,
    /// What broke it, shortened; may be empty.
    pub seen: String,
}

/// Of what was received this much is shown.
const SEEN_BYTES_MAX: usize = 60;

impl AnswerError {
    pub fn new(rule: &'static str) -> Self {
        Self { rule, seen: String::new() }
    }

    fn seen(rule: &'static str, bytes: &[u8]) -> Self {
        Self { rule, seen: shown(bytes) }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.rule)?;
        if self.seen.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.seen) }
    }
}

#[derive(Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// Reads the answers of one connection, one after the other.
#[derive(Debug)]
pub struct AnswerReader {
    state: State,
    /// A head of which only a part has come.
    partial: Vec<u8>,
    /// The latest head, and what it says: servers repeat theirs to the byte, and comparing is ten times
    /// faster than parsing.
    latest: Vec<u8>,
    latest_head: Option<Head>,
    answer: Answer,
    captured: Option<Captured>,
}

impl AnswerReader {
    /// `capture`: keep headers and body for [`AnswerReader::captured`].
    pub fn new(capture: bool) -> Self {
        Self {
            state: State::Head,
            partial: Vec::new(),
            latest: Vec::new(),
            latest_head: None,
            answer: Answer { status: 0, keep_alive: true },
            captured: capture.then(Captured::default),
        }
    }

    /// Headers and body of the answer that ended last.
    pub fn captured(&self) -> Option<&Captured> {
        self.captured.as_ref()
    }

    /// Forgets everything; for a new connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.partial.clear();
    }

    /// Whether bytes of an unfinished answer have been read.
    pub fn in_answer(&self) -> bool {
        !matches!(self.state, State::Head) || !self.partial.is_empty()
    }

    /// Uses bytes of `input` up to the end of one answer, which is to a request for a head only if
    /// `head_only`.
    ///
    /// Returns how many bytes were used, and the answer if it is whole. Unless an answer ended, all of
    /// `input` was used.
    pub fn feed(&mut self, input: &[u8], head_only: bool) -> Result<(usize, Option<Answer>), AnswerError> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match &mut self.state {
                State::Head => {
                    let (taken, head) = self.take_head(rest)?;
                    used += taken;
                    let Some(head) = head else { return Ok((used, None)) };
                    if head.is_interim() {
                        continue;
                    }
                    self.answer = Answer { status: head.status, keep_alive: head.keep_alive };
                    match head.body(head_only) {
                        Body::None | Body::Length(0) => return Ok((used, Some(self.answer))),
                        Body::Length(length) => self.state = State::Length(length),
                        Body::Chunked => self.state = State::Chunked(Chunked::default()),
                        Body::UntilClose => {
                            self.answer.keep_alive = false;
                            self.state = State::UntilClose;
                        }
                    }
                }
                State::Length(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= taken as u64;
                    let done = *left == 0;
                    keep(&mut self.captured, &rest[..taken])?;
                    used += taken;
                    return Ok((used, done.then(|| self.finish())));
                }
                State::Chunked(chunked) => {
                    let captured = &mut self.captured;
                    let (taken, done) = chunked.feed(rest, |data| keep(captured, data))?;
                    used += taken;
                    return Ok((used, done.then(|| self.finish())));
                }
                State::UntilClose => {
                    keep(&mut self.captured, rest)?;
                    return Ok((input.len(), None));
                }
            }
        }
    }

    /// The other side closed: an answer that lasts until then is whole now.
    pub fn end_of_stream(&mut self) -> Option<Answer> {
        matches!(self.state, State::UntilClose).then(|| self.finish())
    }

    /// A script sees the headers of each answer, so that each has to be parsed.
    fn remember(&mut self, bytes: &[u8], head: Head) {
        if self.captured.is_none() && bytes.len() <= REMEMBERED_BYTES_MAX {
            self.latest.clear();
            self.latest.extend_from_slice(bytes);
            self.latest_head = Some(head);
        }
    }

    fn finish(&mut self) -> Answer {
        self.state = State::Head;
        self.answer
    }

    /// Blank lines before a head are passed over, as HTTP asks of servers and browsers do.
    fn take_head(&mut self, input: &[u8]) -> Result<(usize, Option<Head>), AnswerError> {
        if let Some(captured) = &mut self.captured {
            captured.headers.clear();
            captured.body.clear();
        }
        if self.partial.is_empty() {
            let blank = blank_bytes(input);
            let rest = &input[blank..];
            if let Some(head) = self.latest_head.filter(|_| rest.starts_with(&self.latest)) {
                return Ok((blank + self.latest.len(), Some(head)));
            }
            if let Some((length, head)) = Head::parse(rest, self.captured.as_mut())? {
                check_head_size(length)?;
                self.remember(&rest[..length], head);
                return Ok((blank + length, Some(head)));
            }
            check_head_size(rest.len())?;
            self.partial.extend_from_slice(rest);
            return Ok((input.len(), None));
        }
        // The end of the head may be cut anywhere: search again from three bytes before the new ones.
        let before = self.partial.len();
        let room = (HEAD_BYTES_MAX + 1).saturating_sub(before).min(input.len());
        self.partial.extend_from_slice(&input[..room]);
        let Some(length) = head::end(&self.partial, before.saturating_sub(3)) else {
            check_head_size(self.partial.len())?;
            head::check_start(&self.partial)?;
            return Ok((input.len(), None));
        };
        check_head_size(length)?;
        let parsed = Head::parse(&self.partial[..length], self.captured.as_mut())?;
        let Some((_, head)) = parsed else { return Err(AnswerError::new("a blank line inside a head")) };
        self.partial.clear();
        Ok((length - before, Some(head)))
    }
}

/// Bytes as text in quotes, shortened.
pub fn shown(bytes: &[u8]) -> String {
    let first = &bytes[..bytes.len().min(SEEN_BYTES_MAX)];
    format!("\"{}{}\"", first.escape_ascii(), if first.len() < bytes.len() { "…" } else { "" })
}

/// How many bytes of blank lines `input` begins with.
pub fn blank_bytes(input: &[u8]) -> usize {
    input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

fn check_head_size(bytes: usize) -> Result<(), AnswerError> {
    if bytes > HEAD_BYTES_MAX { Err(AnswerError::new("head larger than 65 KiB")) } else { Ok(()) }
}

fn keep(captured: &mut Option<Captured>, data: &[u8]) -> Result<(), AnswerError> {
    let Some(captured) = captured else { return Ok(()) };
    if captured.body.len() + data.len() > KEPT_BODY_BYTES_MAX {
        captured.body = Vec::new();
        return Err(AnswerError::new("body larger than 64 MiB, kept for the script's response()"));
    }
    captured.body.extend_from_slice(data);
    Ok(())
}

#[cfg(test)]
mod tests;
