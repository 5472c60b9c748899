//! Whether a server can be reached: one connection, opened as those of the run are, and closed again.

use std::io;
use std::time::Duration;

use crate::clock::now_ns;
use crate::endpoint::Endpoint;
use crate::epoll::{Epoll, Events, READABLE, WRITABLE};
use crate::error::Trouble;
use crate::socket::Socket;
use crate::tls::{CIPHER_BYTES, Tls, TlsClient};

/// Opens a connection, with TLS its handshake too, and says why that cannot be done.
pub fn probe(endpoint: &Endpoint, tls: Option<&TlsClient>, timeout: Duration) -> io::Result<()> {
    let until_ns = now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    let (mut epoll, socket) = (Epoll::new()?, Socket::connect(endpoint)?);
    epoll.add(&socket, WRITABLE, 0)?;
    wait(&mut epoll, until_ns, "connection")?;
    socket.connected()?;
    let Some(client) = tls else { return Ok(()) };
    let (mut tls, mut cipher) = (Tls::new(client), vec![0; CIPHER_BYTES]);
    tls.begin()?;
    while tls.shake(&socket, &mut cipher)?.is_none() {
        epoll.modify(&socket, if tls.has_unwritten() { READABLE | WRITABLE } else { READABLE }, 0)?;
        wait(&mut epoll, until_ns, "TLS handshake")?;
    }
    tls.close(&socket);
    Ok(())
}

fn wait(epoll: &mut Epoll, until_ns: u64, what: &str) -> io::Result<()> {
    loop {
        if epoll.wait_until(until_ns)? > 0 {
            return Ok(());
        }
        if now_ns() >= until_ns {
            return Err(Trouble::io(format!("no {what} within the timeout"), "", ""));
        }
    }
}
