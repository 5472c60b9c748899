//! Waiting for sockets until a certain time, in nanoseconds: epoll, with a timer among what it waits for.
//!
//! The timer is set once for each time that is waited for, not once for each wait: answers that come meanwhile do not touch it.
//! In a virtual machine setting a timer is dear, and epoll_pwait2 would set it anew in each call and take it back in each that an
//! answer ends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub const READABLE: u32 = libc::EPOLLIN as u32 | libc::EPOLLRDHUP as u32;
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// Told once for each arrival instead of as long as something is there, which saves the kernel a second look at each socket. Who
/// asks for this reads all that has come, and past it if [`Event::ended`].
pub const ONCE: u32 = libc::EPOLLET as u32;

/// The timer's own token.
const TIMER: u64 = u64::MAX - 1;

#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to; 0 if it has gone off.
    set_to_ns: u64,
    events: Vec<libc::epoll_event>,
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
        // SAFETY: no pointers; the result is checked and owned.
        let fd = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: as above.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })?;
        let epoll = Self { fd, timer, set_to_ns: 0, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] };
        epoll.add(epoll.timer.as_raw_fd(), libc::EPOLLIN as u32 | ONCE, TIMER)?;
        Ok(epoll)
    }

    pub fn add(&self, fd: RawFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, interest, token)
    }

    pub fn modify(&self, fd: RawFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, interest, token)
    }

    fn control(&self, operation: i32, fd: RawFd, interest: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest, u64: token };
        // SAFETY: `event` is valid for the call.
        checked(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &mut event) }).map(drop)
    }

    /// How many events there are now.
    #[inline]
    pub fn look(&mut self) -> io::Result<usize> {
        self.collect(0)
    }

    /// Waits for events, at the latest until this monotonic time; how many there are.
    #[inline]
    pub fn wait_until(&mut self, until_ns: u64) -> io::Result<usize> {
        if until_ns != self.set_to_ns {
            self.set_timer(until_ns)?;
        }
        self.collect(-1)
    }

    fn set_timer(&mut self, to_ns: u64) -> io::Result<()> {
        let seconds = i64::try_from(to_ns / 1_000_000_000).unwrap_or(i64::MAX);
        let at = libc::timespec { tv_sec: seconds, tv_nsec: (to_ns.max(1) % 1_000_000_000) as i64 };
        let setting = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
        let timer = self.timer.as_raw_fd();
        // SAFETY: `setting` is valid for the call; nothing is written.
        checked(unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &setting, std::ptr::null_mut()) })?;
        self.set_to_ns = to_ns;
        Ok(())
    }

    #[inline]
    fn collect(&mut self, timeout_ms: i32) -> io::Result<usize> {
        let room = self.events.len() as i32;
        // SAFETY: `events` has room for as many as are asked for.
        let count = unsafe { libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), room, timeout_ms) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) };
        }
        let mut count = count as usize;
        if let Some(index) = self.events[..count].iter().position(|event| { event.u64 } == TIMER) {
            count -= 1;
            self.events.swap(index, count);
            self.set_to_ns = 0;
        }
        Ok(count)
    }

    #[inline]
    pub fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        let events = event.events;
        let ended = events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
        Event { token: event.u64, writable: events & WRITABLE != 0, readable: events & !WRITABLE != 0, ended }
    }
}

fn owned(result: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: a descriptor that was just made belongs to nobody else.
    checked(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
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
        epoll.add(receiver.as_raw_fd(), READABLE | ONCE, 7).unwrap();
        let until_ns = now_ns() + 20_000_000;
        sender.write_all(b"x").unwrap();
        assert_eq!((epoll.wait_until(until_ns).unwrap(), epoll.event(0).token), (1, 7));
        assert_eq!(epoll.wait_until(until_ns).unwrap(), 0, "told once");
        assert!(now_ns() >= until_ns);
        assert_eq!(epoll.wait_until(until_ns).unwrap(), 0, "a time that is over");
        assert_eq!(epoll.look().unwrap(), 0);
    }
}
