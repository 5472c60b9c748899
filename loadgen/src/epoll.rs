//! Waiting for sockets until a certain time, in nanoseconds: epoll, with a timer among what it waits for.
//!
//! The timer is set once for each time that is waited for, not once for each wait: answers that come
//! meanwhile do not touch it. In a virtual machine setting a timer is dear, and epoll_pwait2 would set it
//! anew in each call and take it back in each that an answer ends.
//!
//! Dear is a timer that becomes the CPU's next, which leaves the machine. One that is set behind another
//! costs next to nothing: when the first goes off, its interrupt programs the second. So there are two, and
//! who knows about when the wait after this one ends has it set ahead ([`Events::wait_within`]).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock;

/// What a socket is watched for.
pub type Interest = epoll::EventFlags;

pub const READABLE: Interest = Interest::IN.union(Interest::RDHUP);
pub const WRITABLE: Interest = Interest::OUT;
/// Told once for each arrival instead of as long as something is there, which saves the kernel a second look
/// at each socket. Who asks for this reads all that has come, and past it if [`Event::ended`].
pub const ONCE: Interest = Interest::ET;

const ENDED: Interest = Interest::RDHUP.union(Interest::HUP).union(Interest::ERR);
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The timers' own tokens.
const TIMERS: [u64; 2] = [u64::MAX - 1, u64::MAX - 2];

pub struct Epoll {
    fd: OwnedFd,
    timers: [Timer; 2],
    events: Vec<epoll::Event>,
}

struct Timer {
    fd: OwnedFd,
    /// 0 if it has gone off.
    set_to_ns: u64,
}

/// How a wait until about a time ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    pub count: usize,
    /// For what time the timer was set that has gone off, if it has.
    pub until_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub token: u64,
    pub writable: bool,
    /// Readable, closed or broken: a read tells which.
    pub readable: bool,
    /// Nothing comes behind what can be read.
    pub ended: bool,
}

/// What a thread waits on. Each wait returns how many events there are.
pub trait Events {
    fn now_ns(&mut self) -> u64;

    /// How many events there are now.
    fn look(&mut self) -> io::Result<usize>;

    /// Waits for events, at the latest until this monotonic time.
    fn wait_until(&mut self, until_ns: u64) -> io::Result<usize>;

    /// Waits for events, at the latest until a time between two: until one that is already set if it lies
    /// there, and else until `wanted_ns`. `ahead_ns`: the wait after this one will be until about so long
    /// after the end of this one, which is then set too.
    fn wait_within(
        &mut self,
        earliest_ns: u64,
        wanted_ns: u64,
        latest_ns: u64,
        ahead_ns: Option<u64>,
    ) -> io::Result<Waited>;
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let none = epoll::Event { flags: Interest::empty(), data: epoll::EventData::new_u64(0) };
        let epoll = Self { fd, timers: [Timer::new()?, Timer::new()?], events: vec![none; 256] };
        for (timer, token) in epoll.timers.iter().zip(TIMERS) {
            epoll.add(&timer.fd, Interest::IN | ONCE, token)?;
        }
        Ok(epoll)
    }

    pub fn add(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub fn modify(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, epoll::EventData::new_u64(token), interest)?)
    }

    #[inline]
    fn collect(&mut self, timeout: Option<&Timespec>) -> io::Result<usize> {
        let mut count = match epoll::wait(&self.fd, &mut self.events[..], timeout) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(0),
            Err(problem) => return Err(problem.into()),
        };
        for index in (0..count).rev() {
            let token = { self.events[index].data }.u64();
            if let Some(timer) = TIMERS.iter().position(|&one| one == token) {
                count -= 1;
                self.events.swap(index, count);
                self.timers[timer].set_to_ns = 0;
            }
        }
        Ok(count)
    }

    #[inline]
    pub fn event(&self, index: usize) -> Event {
        let epoll::Event { flags, data, .. } = self.events[index];
        Event {
            token: data.u64(),
            writable: flags.contains(WRITABLE),
            readable: !flags.difference(WRITABLE).is_empty(),
            ended: flags.intersects(ENDED),
        }
    }
}

impl Events for Epoll {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        clock::now_ns()
    }

    #[inline]
    fn look(&mut self) -> io::Result<usize> {
        self.collect(Some(&NO_TIME))
    }

    #[inline]
    fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
        self.timers[0].set(until_ns)?;
        self.collect(None)
    }

    fn wait_within(
        &mut self,
        earliest_ns: u64,
        wanted_ns: u64,
        latest_ns: u64,
        ahead_ns: Option<u64>,
    ) -> io::Result<Waited> {
        let is_set = |timer: &Timer| (earliest_ns..=latest_ns).contains(&timer.set_to_ns);
        // Else the one that would wake too soon, or has gone off: it is the earlier one.
        let first = self
            .timers
            .iter()
            .position(is_set)
            .unwrap_or_else(|| usize::from(self.timers[1].set_to_ns < self.timers[0].set_to_ns));
        if !is_set(&self.timers[first]) {
            self.timers[first].set(wanted_ns)?;
        }
        let until_ns = self.timers[first].set_to_ns;
        let second = &mut self.timers[1 - first];
        if let (Some(ahead_ns), 0) = (ahead_ns, second.set_to_ns) {
            second.set(until_ns.saturating_add(ahead_ns))?;
        }
        let count = self.collect(None)?;
        Ok(Waited { count, until_ns: (self.timers[first].set_to_ns == 0).then_some(until_ns) })
    }
}

impl Timer {
    fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { fd, set_to_ns: 0 })
    }

    /// Nothing is done if it is set to that already.
    fn set(&mut self, to_ns: u64) -> io::Result<()> {
        if to_ns == self.set_to_ns {
            return Ok(());
        }
        let seconds = i64::try_from(to_ns / 1_000_000_000).unwrap_or(i64::MAX);
        let at = Timespec { tv_sec: seconds, tv_nsec: (to_ns.max(1) % 1_000_000_000) as i64 };
        let setting = Itimerspec { it_interval: NO_TIME, it_value: at };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set_to_ns = to_ns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::clock::now_ns;

    #[test]
    fn a_wait_ends_at_its_time_or_with_an_event_and_the_same_time_can_be_waited_for_again() {
        let mut epoll = Epoll::new().unwrap();
        let (mut sender, receiver) = UnixStream::pair().unwrap();
        epoll.add(&receiver, READABLE | ONCE, 7).unwrap();
        let until_ns = now_ns() + 20_000_000;
        sender.write_all(b"x").unwrap();
        assert_eq!((epoll.wait_until(until_ns).unwrap(), epoll.event(0).token), (1, 7));
        assert_eq!(epoll.wait_until(until_ns).unwrap(), 0, "told once");
        assert!(now_ns() >= until_ns);
        assert_eq!(epoll.wait_until(until_ns).unwrap(), 0, "a time that is over");
        assert_eq!(epoll.look().unwrap(), 0);
    }

    #[test]
    fn a_time_that_is_set_and_will_do_is_not_set_anew() {
        let mut epoll = Epoll::new().unwrap();
        let (mut sender, receiver) = UnixStream::pair().unwrap();
        epoll.add(&receiver, READABLE | ONCE, 7).unwrap();
        let (from_ns, second_ns) = (now_ns(), 1_000_000_000);
        let soon_ns = from_ns + second_ns / 2;
        sender.write_all(b"x").unwrap();
        assert_eq!(epoll.wait_until(soon_ns).unwrap(), 1, "an event ends it before its time");
        assert_eq!(
            epoll.wait_within(from_ns, from_ns + 60 * second_ns, from_ns + 90 * second_ns, None).unwrap(),
            Waited { count: 0, until_ns: Some(soon_ns) }
        );
        assert!((soon_ns..from_ns + 60 * second_ns).contains(&now_ns()));
        let later_ns = now_ns() + second_ns / 50;
        assert_eq!(
            epoll.wait_within(later_ns, later_ns, later_ns, None).unwrap(),
            Waited { count: 0, until_ns: Some(later_ns) }
        );
        assert!(now_ns() >= later_ns, "one that is over, or too early, is");
    }

    #[test]
    fn a_time_that_was_set_ahead_ends_the_next_wait_if_it_will_do_and_another_is_set_if_not() {
        let (step_ns, far_ns) = (20_000_000, 60_000_000_000);
        for (right, ahead_ns) in [(true, 25 * step_ns), (false, step_ns / 4), (false, far_ns)] {
            let mut epoll = Epoll::new().unwrap();
            let first_ns = now_ns() + step_ns;
            let waited = epoll.wait_within(first_ns, first_ns, first_ns, Some(ahead_ns)).unwrap();
            assert_eq!(waited.until_ns, Some(first_ns), "ahead_ns={ahead_ns}");
            let next_ns = first_ns + ahead_ns;
            // Near the time that was set ahead, a millisecond behind what is wanted; or away from it.
            let (earliest_ns, latest_ns) = if right {
                (next_ns - 2_000_000, next_ns + 2_000_000)
            } else {
                (first_ns + step_ns / 2, first_ns + step_ns)
            };
            let wanted_ns = earliest_ns + 1_000_000;
            let expected_ns = if right { next_ns } else { wanted_ns };
            let mut waited = epoll.wait_within(earliest_ns, wanted_ns, latest_ns, None).unwrap();
            for _ in 0..2 {
                if waited.until_ns.is_none() {
                    waited = epoll.wait_within(earliest_ns, wanted_ns, latest_ns, None).unwrap();
                }
            }
            assert_eq!(waited.until_ns, Some(expected_ns), "ahead_ns={ahead_ns}");
            assert!(now_ns() >= expected_ns);
        }
    }
}
