//! What went wrong while running: counted by kind as wrk2 does, and within each kind by reason.

use crate::error::Trouble;

/// Kinds of errors, those of wrk2's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// A connection could not be opened.
    Connect,
    /// A connection closed, broke or spoke no HTTP where an answer, or nothing, was to come.
    Read,
    Write,
    /// An answer took longer than the timeout, or never came; each request once.
    Timeout,
}

impl ErrorKind {
    /// In the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Connect, Self::Read, Self::Write, Self::Timeout];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
            Self::Timeout => "timeout",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub kind: ErrorKind,
    /// The same words for all errors of its sort, so that there are few of them.
    pub why: String,
    pub count: u64,
    /// What was seen the first time; may be empty.
    pub first_seen: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    pub connect: u64,
    pub read: u64,
    pub write: u64,
    pub timeout: u64,
    reasons: Vec<Reason>,
}

impl Errors {
    pub fn count(&mut self, kind: ErrorKind, why: &str, seen: &str, count: u64) {
        if count == 0 {
            return;
        }
        *match kind {
            ErrorKind::Connect => &mut self.connect,
            ErrorKind::Read => &mut self.read,
            ErrorKind::Write => &mut self.write,
            ErrorKind::Timeout => &mut self.timeout,
        } += count;
        match self.reasons.iter_mut().find(|reason| reason.kind == kind && reason.why == why) {
            Some(reason) => reason.count += count,
            None => {
                self.reasons.push(Reason { kind, why: why.to_owned(), count, first_seen: seen.to_owned() })
            }
        }
    }

    /// An error that the system told.
    pub fn count_system(&mut self, kind: ErrorKind, problem: &std::io::Error) {
        if let Some(Trouble { why, seen, .. }) = Trouble::of(problem) {
            return self.count(kind, why, seen, 1);
        }
        let text = problem.to_string();
        let why = text.split(" (os error").next().unwrap_or_default();
        self.count(kind, why, "", 1);
    }

    pub fn add(&mut self, other: &Self) {
        for reason in &other.reasons {
            self.count(reason.kind, &reason.why, &reason.first_seen, reason.count);
        }
    }

    /// By kind, the most frequent first.
    pub fn reasons(&self) -> Vec<&Reason> {
        let mut all: Vec<&Reason> = self.reasons.iter().collect();
        all.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.count.cmp(&a.count)).then(a.why.cmp(&b.why)));
        all
    }

    /// One line for each kind that there was: `read errors: 10 bad Content-Length (the first: "-5"); 2
    /// connection reset by peer`.
    pub fn lines(&self) -> Vec<String> {
        let reasons = self.reasons();
        let told = |reason: &&&Reason| match reason.first_seen.as_str() {
            "" => format!("{} {}", reason.count, reason.why),
            seen => format!("{} {} (the first: {seen})", reason.count, reason.why),
        };
        let kinds = reasons.chunk_by(|a, b| a.kind == b.kind);
        kinds
            .map(|of_kind| {
                format!(
                    "{} errors: {}",
                    of_kind[0].kind.name(),
                    of_kind.iter().map(|r| told(&r)).collect::<Vec<_>>().join("; ")
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_a_kind_add_up_to_its_count_over_all_threads() {
        let (mut one, mut other) = (Errors::default(), Errors::default());
        one.count(ErrorKind::Read, "bad Content-Length", "\"-5\"", 2);
        one.count(ErrorKind::Read, "bad Content-Length", "\"-6\"", 1);
        one.count(ErrorKind::Timeout, "no answer", "", 0);
        other.count(ErrorKind::Read, "closed in the middle of an answer", "", 4);
        other.count(ErrorKind::Read, "bad Content-Length", "\"x\"", 1);
        other.count_system(ErrorKind::Connect, &rustix::io::Errno::CONNREFUSED.into());
        one.add(&other);
        assert_eq!((one.connect, one.read, one.write, one.timeout), (1, 8, 0, 0));
        assert_eq!(
            one.lines(),
            [
                "connect errors: 1 Connection refused",
                "read errors: 4 bad Content-Length (the first: \"-5\"); 4 closed in the middle of an answer",
            ]
        );
    }
}
