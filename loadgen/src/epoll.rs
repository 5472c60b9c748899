//! Waiting for sockets, with a deadline in nanoseconds (epoll_pwait2, Linux 5.11 and newer).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub const READABLE: u32 = libc::EPOLLIN as u32 | libc::EPOLLRDHUP as u32;
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;

#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub token: u64,
    pub writable: bool,
    /// Readable, closed or broken: a read tells which.
    pub readable: bool,
}

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked and owned.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] })
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

    /// Waits at most `timeout_ns` (0: not at all) and returns how many events there are.
    pub fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let timeout =
            libc::timespec { tv_sec: (timeout_ns / 1_000_000_000) as i64, tv_nsec: (timeout_ns % 1_000_000_000) as i64 };
        // SAFETY: `events` has room for as many as are asked for; no signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as i32,
                &timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match count {
            0.. => Ok(count as usize),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }

    pub fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        let events = event.events;
        Event { token: event.u64, writable: events & WRITABLE != 0, readable: events & !WRITABLE != 0 }
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
