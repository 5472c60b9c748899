//! The slowest answers as CSV, in the order in which they were due.
//!
//! `due_us` counts from where measuring began (negative: due before, answered after); response and service
//! time are rounded as in the histograms. A request that never got an answer has no latency and is not here;
//! the result's counts have it.

use std::io::Write;
use std::path::Path;

use crate::error::Error;
use crate::recorder::microseconds;
use crate::slowest::SlowAnswer;
use crate::whole_file;

pub fn write(path: &Path, measured_from_ns: u64, answers: &[SlowAnswer]) -> Result<(), Error> {
    whole_file::write(path, |out| {
        writeln!(out, "due_us,response_us,service_us,connection")?;
        for answer in answers {
            let due_ns = answer.due_ns as i64 - measured_from_ns as i64;
            writeln!(
                out,
                "{},{},{},{}",
                (due_ns + 500).div_euclid(1000),
                microseconds(answer.answered_ns.saturating_sub(answer.due_ns)),
                microseconds(answer.answered_ns.saturating_sub(answer.sent_ns)),
                answer.connection
            )?;
        }
        Ok(())
    })
}
