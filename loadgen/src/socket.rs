//! One nonblocking TCP socket without delay (TCP_NODELAY): connect, send, receive.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What a look at what has come finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Nothing,
    /// The other side has closed.
    End,
    /// `more`: there may be more.
    Bytes {
        count: usize,
        more: bool,
    },
}

#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Starts to connect; the socket is writable once that has worked or failed.
    pub fn connect(address: &SocketAddr) -> io::Result<Self> {
        let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: no pointers; the result is checked and owned.
        let fd = unsafe { libc::socket(domain, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made belongs to nobody else.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        socket.set_no_delay()?;
        let result = match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: `raw` is a valid sockaddr_in of the given size.
                unsafe { libc::connect(fd, (&raw const raw).cast(), size_of_val(&raw) as u32) }
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: `raw` is a valid sockaddr_in6 of the given size.
                unsafe { libc::connect(fd, (&raw const raw).cast(), size_of_val(&raw) as u32) }
            }
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINPROGRESS) {
                return Err(error);
            }
        }
        Ok(socket)
    }

    fn set_no_delay(&self) -> io::Result<()> {
        let on: i32 = 1;
        // SAFETY: `on` is an int of the given size.
        let result = unsafe {
            libc::setsockopt(self.fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const on).cast(), size_of::<i32>() as u32)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// How connecting ended.
    pub fn connected(&self) -> io::Result<()> {
        let mut error: i32 = 0;
        let mut size = size_of::<i32>() as u32;
        // SAFETY: `error` has room for the int that SO_ERROR is.
        let result = unsafe { libc::getsockopt(self.fd(), libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &mut size) };
        match (result, error) {
            (0, 0) => Ok(()),
            (0, code) => Err(io::Error::from_raw_os_error(code)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// How many bytes the kernel took; 0 if it has no room now.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: pointer and length are those of a slice.
        let sent = unsafe { libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        if sent >= 0 { Ok(sent as usize) } else { again_or(0) }
    }

    /// How many bytes came; none if there are none now; 0 if the other side has closed.
    #[inline]
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: pointer and length are those of a slice.
        let count = unsafe { libc::recv(self.fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        if count >= 0 { Ok(Some(count as usize)) } else { again_or(None) }
    }
}

fn again_or<T>(nothing: T) -> io::Result<T> {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(nothing),
        _ => Err(error),
    }
}
