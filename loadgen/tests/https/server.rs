//! TLS servers: rustls as it should be, and streams that treat its records badly.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::common::{Act, serve};

/// An authority of the test's own, and the folder with its certificate.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// A certificate with its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Two of the same name would be one by its name and two by their keys.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::SeqCst));
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.as_ref().pem()).unwrap();
        Self { issuer, folder }
    }

    /// What `--ca-file` takes.
    pub fn file(&self) -> String {
        self.path("ca.pem")
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn identity(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = params(names);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &*self.issuer).unwrap();
        Identity { pem: certificate.pem(), chain: vec![certificate.der().clone()], key }
    }
}

/// As `openssl req -x509` makes one: an authority and a server in one.
pub fn self_signed(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut params = params(names);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Identity { pem: certificate.pem(), chain: vec![certificate.der().clone()], key }
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub fn expired(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
}

pub fn not_valid_yet(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2100, 1, 1), date_time_ymd(2101, 1, 1));
}

/// How records go to the client.
#[derive(Clone, Copy, PartialEq)]
pub enum Manner {
    Well,
    /// Each byte in a segment of its own.
    ByteByByte,
    /// Closes without a word at the end.
    NoCloseNotify,
    /// Sends half the record of an answer that closes, and its end with it in one segment.
    HalfARecord,
    /// Sends a fatal alert behind an answer that closes, in one segment.
    AlertBehind,
    /// The second connection of the run gets its tickets and the end in one segment.
    TicketsAndEnd,
}

pub struct TlsServer {
    pub port: u16,
    pub requests: Arc<AtomicU64>,
    pub full: Arc<AtomicU64>,
    pub resumed: Arc<AtomicU64>,
    /// Connections that the client closed with close_notify.
    pub said_goodbye: Arc<AtomicU64>,
}

impl TlsServer {
    pub fn start(identity: Identity, act: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> Self {
        Self::with(identity, Manner::Well, rustls::ALL_VERSIONS, &["http/1.1"], act)
    }

    pub fn with(
        identity: Identity,
        manner: Manner,
        versions: &[&'static SupportedProtocolVersion],
        alpn: &[&str],
        act: impl Fn(u64, &str) -> Act + Send + Sync + 'static,
    ) -> Self {
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap().with_no_client_auth();
        let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(identity.chain, key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        if manner == Manner::ByteByByte {
            // Each handshake is a full one.
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self {
            port,
            requests: Arc::default(),
            full: Arc::default(),
            resumed: Arc::default(),
            said_goodbye: Arc::default(),
        };
        let counts = [&server.requests, &server.full, &server.resumed, &server.said_goodbye].map(Arc::clone);
        let act = Arc::new(act);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let (config, act, counts) = (config.clone(), act.clone(), counts.clone());
                // The first looked whether anybody is there.
                let manner =
                    if manner == Manner::TicketsAndEnd && number != 2 { Manner::Well } else { manner };
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    let [requests, full, resumed, said_goodbye] = &counts;
                    let mut stream =
                        TlsStream { tls: ServerConnection::new(config).unwrap(), stream, manner };
                    let shaken = stream.shake();
                    if shaken.is_err() {
                        return;
                    }
                    let kind = if stream.tls.handshake_kind() == Some(HandshakeKind::Resumed) {
                        resumed
                    } else {
                        full
                    };
                    kind.fetch_add(1, Ordering::SeqCst);
                    serve(&mut stream, &*act, requests);
                    // What the client still said.
                    if matches!(stream.tls.reader().read(&mut [0]), Ok(0)) {
                        said_goodbye.fetch_add(1, Ordering::SeqCst);
                    }
                    stream.close();
                });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}

/// A server that does with the bare stream as it likes; the client's first message has been read then.
pub fn raw(act: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let act = Arc::new(act);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let act = act.clone();
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 65536]);
                act(stream);
            });
        }
    });
    port
}

/// The bytes of a server's first flight, as an answer to nothing in particular.
pub const HALF_A_RECORD: &[u8] = b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03half a ServerHello";

struct TlsStream {
    tls: ServerConnection,
    stream: TcpStream,
    manner: Manner,
}

impl TlsStream {
    fn shake(&mut self) -> io::Result<()> {
        while self.tls.is_handshaking() {
            self.push()?;
            if self.tls.is_handshaking() {
                self.pull()?;
            }
        }
        if self.manner == Manner::TicketsAndEnd {
            return self.push_and_end(|records| records.len());
        }
        self.push()
    }

    /// So many of the bytes that wait, and the end, all in one segment.
    fn push_and_end(&mut self, bytes: impl Fn(&[u8]) -> usize) -> io::Result<()> {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records)?;
        }
        rustix::net::sockopt::set_tcp_cork(&self.stream, true)?;
        self.stream.write_all(&records[..bytes(&records)])?;
        self.stream.shutdown(Shutdown::Write)
    }

    fn pull(&mut self) -> io::Result<usize> {
        let count = self.tls.read_tls(&mut self.stream)?;
        if let Err(problem) = self.tls.process_new_packets() {
            let _ = self.push();
            return Err(io::Error::other(problem));
        }
        Ok(count)
    }

    fn push(&mut self) -> io::Result<()> {
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records)?;
        }
        if self.manner == Manner::ByteByByte {
            // Each sleep may take a tick of a busy machine.
            return records.iter().enumerate().try_for_each(|(place, byte)| {
                if place % 16 == 0 {
                    thread::sleep(Duration::from_micros(20));
                }
                self.stream.write_all(&[*byte])
            });
        }
        self.stream.write_all(&records)
    }

    fn close(&mut self) {
        if self.manner != Manner::NoCloseNotify {
            self.tls.send_close_notify();
            let _ = self.push();
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        // A close that leaves bytes unread is a reset, which tells the client something else.
        let _ = self.stream.set_read_timeout(Some(Duration::from_millis(200)));
        while self.stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }
}

impl Read for TlsStream {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(room) {
                Err(problem) if problem.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.push()?;
            self.pull()?;
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.tls.writer().write(bytes)?;
        let closes = bytes.windows(17).any(|part| part == b"Connection: close");
        match self.manner {
            Manner::HalfARecord if closes => self.push_and_end(|records| records.len() / 2)?,
            Manner::AlertBehind if closes => {
                // What cannot be decrypted is answered with an alert.
                let nonsense = [&[23, 3, 3, 0, 32][..], &[0; 32]].concat();
                self.tls.read_tls(&mut &nonsense[..])?;
                assert!(self.tls.process_new_packets().is_err());
                self.push()?;
            }
            _ => self.push()?,
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes the first connections on to another port, and does as it likes with the others once the client has
/// spoken.
pub fn passing(to: u16, first: u64, act: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let act = Arc::new(act);
    thread::spawn(move || {
        for (number, mut stream) in (0..).zip(listener.incoming().flatten()) {
            let act = act.clone();
            thread::spawn(move || {
                if number >= first {
                    let _ = stream.read(&mut [0; 65536]);
                    return act(stream);
                }
                let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                let (mut back, mut from) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || drop((io::copy(&mut from, &mut back), back.shutdown(Shutdown::Write))));
                let _ = (io::copy(&mut stream, &mut server), server.shutdown(Shutdown::Write));
            });
        }
    });
    port
}
