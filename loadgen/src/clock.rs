//! Monotonic time in nanoseconds, and its place in UTC.

use jiff::Timestamp;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: read without a system call, never set back.
#[inline]
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CPU time that the calling thread has used so far.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time that the calling thread was ready to run and waited for a CPU, from the kernel's scheduler
/// statistics; none where the kernel keeps none.
pub fn thread_waited_for_cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// One moment on both clocks, so that monotonic times can be told in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    monotonic_ns: u64,
    utc: Timestamp,
}

impl Epoch {
    pub fn now() -> Self {
        Self { utc: Timestamp::now(), monotonic_ns: now_ns() }
    }

    /// The monotonic time of a moment in UTC; none before the machine was started.
    pub fn monotonic_ns(&self, utc: Timestamp) -> Option<u64> {
        let difference = utc.as_nanosecond() - self.utc.as_nanosecond();
        u64::try_from(i128::from(self.monotonic_ns) + difference).ok()
    }

    pub fn utc(&self, monotonic_ns: u64) -> Timestamp {
        let difference = monotonic_ns as i64 - self.monotonic_ns as i64;
        self.utc + jiff::SignedDuration::from_nanos(difference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_times_are_told_in_utc() {
        let epoch = Epoch { monotonic_ns: 5_000_000_000, utc: "2026-11-20T19:30:00Z".parse().unwrap() };
        assert_eq!(epoch.utc(6_500_000_000).to_string(), "2026-11-20T19:30:01.5Z");
        assert_eq!(epoch.utc(4_000_000_000).to_string(), "2026-11-20T19:29:59Z");
        assert_eq!(
            epoch.monotonic_ns("2026-11-20T19:30:00.000000001Z".parse().unwrap()),
            Some(5_000_000_001)
        );
        assert_eq!(epoch.monotonic_ns("2026-11-20T19:29:54Z".parse().unwrap()), None);
    }
}
