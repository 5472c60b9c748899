//! One nonblocking socket, TCP without delay (TCP_NODELAY) or Unix: connect, send, receive.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::endpoint::Endpoint;

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
    ///
    /// A Unix socket whose listen queue is full fails at once, with [`ErrorKind::WouldBlock`].
    pub fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        let family = match endpoint {
            Endpoint::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
            Endpoint::Tcp(_) => AddressFamily::INET6,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = Self(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?);
        let connecting = match endpoint {
            Endpoint::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                rustix::net::connect(&socket, address)
            }
            Endpoint::Unix(path) => rustix::net::connect(&socket, &SocketAddrUnix::new(&**path)?),
        };
        match connecting {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(Errno::AGAIN) => Err(io::Error::new(ErrorKind::WouldBlock, "the listen queue is full")),
            Err(problem) => Err(problem.into()),
        }
    }

    /// How connecting ended.
    ///
    /// Where nobody listens the kernel may give a socket the port that it connects to as its own. Then it is
    /// connected to itself: it would read its own requests as answers, and keep the server from its port.
    pub fn connected(&self) -> io::Result<()> {
        sockopt::socket_error(self)??;
        let (own, other) = (rustix::net::getsockname(self), rustix::net::getpeername(self));
        if matches!((own, other), (Ok(own), Ok(Some(other))) if own == other) {
            // Closed with a reset, so that the port is free at once.
            let _ = sockopt::set_socket_linger(self, Some(Duration::ZERO));
            return Err(Errno::CONNREFUSED.into());
        }
        Ok(())
    }

    /// How many bytes the kernel took; 0 if it has no room now.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(self, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(problem) => Err(problem.into()),
        }
    }

    /// How many bytes came; none if there are none now; 0 if the other side has closed.
    #[inline]
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::net::recv(self, room, RecvFlags::empty()) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(problem) => Err(problem.into()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn bound(address: &SocketAddr) -> io::Result<OwnedFd> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        rustix::net::bind(&socket, address)?;
        Ok(socket)
    }

    #[test]
    fn a_socket_that_is_connected_to_itself_has_found_no_server_and_leaves_the_port_free() {
        let socket = bound(&([127, 0, 0, 1], 0).into()).unwrap();
        let own = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
        rustix::net::connect(&socket, &own).unwrap();
        let socket = Socket(socket);
        assert_eq!(socket.connected().unwrap_err().kind(), ErrorKind::ConnectionRefused);
        drop(socket);
        bound(&own).unwrap();
    }
}
