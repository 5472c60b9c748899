//! TLS over one nonblocking socket: handshake, requests in, answers out. rustls does the protocol; here are
//! the bytes' ways.
//!
//! ```text
//! begin → shake, shake, … → (send | flush | receive)* → close
//! bytes that came: kernel → cipher → session → room
//! ```
//!
//! After each call nothing that can be read is left in the session: what waits is in the kernel, which tells
//! of it. Each connection keeps its own sessions for resumption: its first handshake is a full one, as that
//! of a client of its own.

mod client;
mod problem;
mod trust;

pub use client::{TlsClient, Trust};
pub use trust::CaFile;

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::http::shown;
use crate::socket::{Received, Socket};

/// Room for what comes encrypted: what it holds always fits, decrypted, into a room of twice its size.
pub const CIPHER_BYTES: usize = 64 * 1024;

/// A record's first byte is one of these, its second 3.
const RECORD_TYPES: std::ops::RangeInclusive<u8> = 20..=24;
/// An alert, as a server sends it that was spoken to without TLS.
const ALERT: u8 = 21;

/// What a server that speaks TLS says to a client that does not.
pub fn is_alert(bytes: &[u8]) -> bool {
    matches!(bytes, [ALERT, 3, 0..=4, ..])
}

/// The TLS of one connection, over all sockets that it has one after the other.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    session: Option<ClientConnection>,
    heard: bool,
    /// The other side sends no more, and whether it said so.
    ended: Option<Ended>,
    /// What went wrong behind what has been decrypted, which is read first.
    failed: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Orderly,
    Truncated,
}

/// What a handshake has agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// An earlier session went on: no certificate was sent, no signature made.
    pub resumed: bool,
    /// As in `TLSv1_3 TLS13_AES_256_GCM_SHA384 http/1.1`.
    pub protocol: String,
}

impl Tls {
    pub fn new(client: &TlsClient) -> Self {
        let mut config = ClientConfig::clone(&client.config);
        config.resumption = Resumption::in_memory_sessions(1);
        Self {
            config: Arc::new(config),
            name: client.name.clone(),
            session: None,
            heard: false,
            ended: None,
            failed: None,
        }
    }

    /// A socket has connected.
    pub fn begin(&mut self) -> io::Result<()> {
        let session = ClientConnection::new(self.config.clone(), self.name.clone());
        let mut session = session.map_err(|problem| problem::told(&problem))?;
        // A request is taken whole, however long; what the kernel has no room for waits here, encrypted.
        session.set_buffer_limit(None);
        (self.session, self.heard, self.ended, self.failed) = (Some(session), false, None, None);
        Ok(())
    }

    /// Goes on with the handshake as far as can be; what it has agreed on once it is done.
    pub fn shake(&mut self, socket: &Socket, cipher: &mut [u8]) -> io::Result<Option<Agreed>> {
        loop {
            let all_left = self.flush(socket)?;
            let Some(session) = &mut self.session else { return Ok(None) };
            if !session.is_handshaking() {
                return Ok(if all_left { Some(agreed(session)) } else { None });
            }
            let count = match socket.receive(cipher)? {
                None => return Ok(None),
                Some(0) => return Err(problem::closed_in_handshake()),
                Some(count) => count,
            };
            if !self.heard && !RECORD_TYPES.contains(&cipher[0]) {
                return Err(problem::no_tls(&shown(&cipher[..count])));
            }
            self.heard = true;
            // Answers cannot have come yet: a server that speaks first is told by the next receive.
            self.decrypt(socket, &cipher[..count], &mut [])?;
        }
    }

    /// Takes all of it; true if all has gone to the kernel.
    pub fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Err(ErrorKind::NotConnected.into()) };
        session.writer().write_all(bytes)?;
        self.flush(socket)
    }

    /// True if nothing waits for room in the kernel any more.
    pub fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(true) };
        while session.wants_write() {
            match session.write_tls(&mut Sending(socket)) {
                Ok(_) => {}
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(problem) => return Err(problem),
            }
        }
        Ok(true)
    }

    /// Something still waits for room in the kernel.
    pub fn has_unwritten(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.wants_write())
    }

    /// `room` is at least twice as large as `cipher`.
    pub fn receive(&mut self, socket: &Socket, cipher: &mut [u8], room: &mut [u8]) -> io::Result<Received> {
        let mut count = self.decrypted(room)?;
        let mut more = false;
        while self.ended.is_none() && self.failed.is_none() {
            more = room.len() - count < 2 * cipher.len();
            if more && count > 0 {
                break;
            }
            let came = match socket.receive(cipher)? {
                None => break,
                Some(0) => {
                    self.ended = Some(Ended::Truncated);
                    break;
                }
                Some(came) => came,
            };
            count += self.decrypt(socket, &cipher[..came], &mut room[count..])?;
            // Where nothing to be read came of it, an end that the same event told of is still to be found.
            if came < cipher.len() && count > 0 {
                more = count == room.len();
                break;
            }
        }
        if count > 0 {
            let more = more || self.ended.is_some() || self.failed.is_some();
            return Ok(Received::Bytes { count, more });
        }
        match self.failed.take() {
            Some(problem) => Err(problem),
            None if self.ended.is_some() => Ok(Received::End),
            None => Ok(Received::Nothing),
        }
    }

    /// What came is decrypted into the room; how much that is.
    fn decrypt(&mut self, socket: &Socket, mut came: &[u8], room: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while !came.is_empty() && self.ended.is_none() && self.failed.is_none() {
            let Some(session) = &mut self.session else { break };
            let took = session.read_tls(&mut came)?;
            let state = session.process_new_packets();
            if let Err(problem) = state {
                // The server is told why, if it still listens.
                let _ = self.flush(socket);
                if room.is_empty() {
                    return Err(problem::told(&problem));
                }
                // An answer may have come before it.
                self.failed = Some(problem::told(&problem));
            }
            if !room.is_empty() {
                count += self.decrypted(&mut room[count..])?;
            }
            if took == 0 {
                break; // behind close_notify nothing counts
            }
        }
        if self.failed.is_none() && self.has_unwritten() {
            self.flush(socket)?;
        }
        Ok(count)
    }

    /// What the session has decrypted so far.
    fn decrypted(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return Ok(0) };
        let mut count = 0;
        while count < room.len() {
            match session.reader().read(&mut room[count..]) {
                Ok(0) => {
                    self.ended = Some(Ended::Orderly);
                    break;
                }
                Ok(some) => count += some,
                Err(problem) if problem.kind() == ErrorKind::WouldBlock => break,
                Err(problem) => return Err(problem),
            }
        }
        Ok(count)
    }

    /// The other side closed without saying so: what came may not be all that it sent.
    pub fn is_truncated(&self) -> bool {
        self.ended == Some(Ended::Truncated)
    }

    /// Says so to the other side, if the kernel has room for it.
    pub fn close(&mut self, socket: &Socket) {
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_handshaking()) {
            session.send_close_notify();
            let _ = self.flush(socket);
        }
        self.session = None;
    }
}

fn agreed(session: &ClientConnection) -> Agreed {
    let version = session.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
    let suite = session
        .negotiated_cipher_suite()
        .and_then(|suite| suite.suite().as_str())
        .unwrap_or("no cipher suite");
    let alpn = session.alpn_protocol().map_or("no ALPN".into(), String::from_utf8_lossy);
    let resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    Agreed { resumed, protocol: format!("{version} {suite} {alpn}") }
}

struct Sending<'a>(&'a Socket);

impl Write for Sending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes)? {
            0 if !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
