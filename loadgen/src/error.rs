//! Everything that can stop the program, as one clear line and an exit code.

use std::fmt;

/// Exit codes: 0 answered, and these.
pub mod exit {
    /// Bad arguments, nothing answered, a script that failed.
    pub const FAILED: i32 = 1;
    /// An answer's status was not among those of `--expect`.
    pub const UNEXPECTED_ANSWER: i32 = 3;
    /// Send lateness p99 was over `--max-lateness`.
    pub const TOO_LATE: i32 = 4;
    /// More requests than `--max-unanswered` allows got no answer; without it, all that were to be measured.
    pub const UNANSWERED: i32 = 5;
    /// Added to the number of the signal that stopped the run.
    pub const SIGNAL_BASE: i32 = 128;
}

#[derive(Debug)]
pub enum Error {
    /// Something is missing on the command line, or unknown: the usage text follows, as in wrk2.
    Usage(String),
    /// Everything else: a value that is none, a file, an address, a script. One line.
    Failed(String),
}

impl Error {
    pub fn failed(what: impl fmt::Display) -> Self {
        Self::Failed(what.to_string())
    }

    pub fn file(path: &std::path::Path, problem: impl fmt::Display) -> Self {
        Self::Failed(format!("{}: {problem}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Failed(what) => formatter.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

/// Why a connection is of no use, in the same words for all of its sort, and what was seen; travels inside an
/// [`std::io::Error`].
#[derive(Debug, Default)]
pub struct Trouble {
    pub why: String,
    pub seen: String,
    pub hint: &'static str,
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)?;
        if !self.seen.is_empty() {
            write!(out, " ({})", self.seen)?;
        }
        if self.hint.is_empty() { Ok(()) } else { write!(out, "; {}", self.hint) }
    }
}

impl std::error::Error for Trouble {}

impl Trouble {
    pub fn io(why: impl Into<String>, seen: impl Into<String>, hint: &'static str) -> std::io::Error {
        std::io::Error::other(Self { why: why.into(), seen: seen.into(), hint })
    }

    /// What an error of the system is about, if it is one of these.
    pub fn of(problem: &std::io::Error) -> Option<&Self> {
        problem.get_ref()?.downcast_ref()
    }
}
