//! What people and scripts read: text on standard output, lines on standard error. Neither can panic, as the
//! standard library's macros do where nothing can be written.

use std::io::{self, ErrorKind, Write};

use crate::error::Error;

/// A file that may not become as large (`ulimit -f`) is told as a full disk is; else the kernel would end the
/// program, and leave what was written of it.
pub fn outlive_file_limits() {
    // SAFETY: nothing runs yet that minds the signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// A reader that has gone away is no failure; a full disk is one, since its file looks whole.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(problem) if problem.kind() != ErrorKind::BrokenPipe => {
            Err(Error::Failed(format!("cannot write to standard output: {problem}")))
        }
        _ => Ok(()),
    }
}

/// A line on standard error, as of `eprintln!`; where it cannot be written, it is lost and nothing else.
#[macro_export]
macro_rules! tell {
    ($($part:tt)*) => {{
        use ::std::io::Write as _;
        let _ = ::std::writeln!(::std::io::stderr(), $($part)*);
    }};
}
