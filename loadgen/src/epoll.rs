//! Waiting for sockets until a certain time, in nanoseconds: epoll, with a timer among what it waits for.
//!
//! The timer is set once for each time that is waited for, not once for each wait: answers that come
//! meanwhile do not touch it. In a virtual machine setting a timer is dear, and epoll_pwait2 would set it
//! anew in each call and take it back in each that an answer ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// What a socket is watched for.
pub type Interest = epoll::EventFlags;

pub const READABLE: Interest = Interest::IN.union(Interest::RDHUP);
pub const WRITABLE: Interest = Interest::OUT;
/// Told once for each arrival instead of as long as something is there, which saves the kernel a second look
/// at each socket. Who asks for this reads all that has come, and past it if [`Event::ended`].
pub const ONCE: Interest = Interest::ET;

const ENDED: Interest = Interest::RDHUP.union(Interest::HUP).union(Interest::ERR);
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The timer's own token.
const TIMER: u64 = u64::MAX - 1;

pub struct Epoll {
    fd: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to; 0 if it has gone off.
    set_to_ns: u64,
    events: Vec<epoll::Event>,
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

impl Epoll {
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let none = epoll::Event { flags: Interest::empty(), data: epoll::EventData::new_u64(0) };
        let epoll = Self { fd, timer, set_to_ns: 0, events: vec![none; 256] };
        epoll.add(&epoll.timer, Interest::IN | ONCE, TIMER)?;
        Ok(epoll)
    }

    pub fn add(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token), interest)?)
    }

    pub fn modify(&self, fd: impl AsFd, interest: Interest, token: u64) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, epoll::EventData::new_u64(token), interest)?)
    }

    /// How many events there are now.
    #[inline]
    pub fn look(&mut self) -> io::Result<usize> {
        self.collect(Some(&NO_TIME))
    }

    /// Waits for events, at the latest until this monotonic time; how many there are.
    #[inline]
    pub fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
        if until_ns != self.set_to_ns {
            self.set_timer(until_ns)?;
        }
        self.collect(None)
    }

    /// Waits for events, at the latest until a time between two: until the one that is already set if it lies
    /// there, since setting one costs as much as some wakes, and else until `wanted_ns`. Returns too for what
    /// time the timer was set if it has gone off.
    pub fn wait_within(
        &mut self,
        earliest_ns: u64,
        wanted_ns: u64,
        latest_ns: u64,
    ) -> io::Result<(usize, Option<u64>)> {
        let set = (earliest_ns..=latest_ns).contains(&self.set_to_ns);
        let until_ns = if set { self.set_to_ns } else { wanted_ns };
        let count = self.wait_until(until_ns)?;
        Ok((count, (self.set_to_ns == 0).then_some(until_ns)))
    }

    fn set_timer(&mut self, to_ns: u64) -> io::Result<()> {
        let seconds = i64::try_from(to_ns / 1_000_000_000).unwrap_or(i64::MAX);
        let at = Timespec { tv_sec: seconds, tv_nsec: (to_ns.max(1) % 1_000_000_000) as i64 };
        let setting = Itimerspec { it_interval: NO_TIME, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set_to_ns = to_ns;
        Ok(())
    }

    #[inline]
    fn collect(&mut self, timeout: Option<&Timespec>) -> io::Result<usize> {
        let mut count = match epoll::wait(&self.fd, &mut self.events[..], timeout) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(0),
            Err(problem) => return Err(problem.into()),
        };
        if let Some(index) = self.events[..count].iter().position(|event| { event.data }.u64() == TIMER) {
            count -= 1;
            self.events.swap(index, count);
            self.set_to_ns = 0;
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
        let soon_ns = from_ns + second_ns / 50;
        sender.write_all(b"x").unwrap();
        assert_eq!(epoll.wait_until(soon_ns).unwrap(), 1, "an event ends it before its time");
        assert_eq!(
            epoll.wait_within(from_ns, from_ns + 60 * second_ns, from_ns + 90 * second_ns).unwrap(),
            (0, Some(soon_ns))
        );
        assert!((soon_ns..from_ns + 60 * second_ns).contains(&now_ns()));
        let later_ns = now_ns() + second_ns / 50;
        assert_eq!(epoll.wait_within(later_ns, later_ns, later_ns).unwrap(), (0, Some(later_ns)));
        assert!(now_ns() >= later_ns, "one that is over, or too early, is");
    }
}
