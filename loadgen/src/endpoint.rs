//! Where a server is reached: an address and port, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Unix(Arc<Path>),
}

impl Endpoint {
    /// The server runs on this machine, and needs its CPUs.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// All that one server is reached at; never empty. Connection k begins with number k modulo their count.
pub type Endpoints = Arc<[Endpoint]>;
