//! A server that answers well, except where a case tells it what to do instead.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What is done to the client, one after the other.
#[derive(Clone)]
pub enum Step {
    Send(Vec<u8>),
    /// Byte by byte.
    Drip(Vec<u8>, Duration),
    /// Without end, until the client has gone.
    Flood(Vec<u8>),
    Pause(Duration),
    /// Orderly, once all that was received is read.
    Close,
    /// With a reset (RST).
    Reset,
    /// No more is sent, but what comes is still read.
    HalfClose,
    /// Never another byte, until the client has gone.
    Hang,
    /// Never read another byte, until the test is over.
    Deaf,
}

/// Which requests, counted from 0 over all connections, are treated in the nasty way.
#[derive(Clone, Copy)]
pub enum Nasty {
    Always,
    Once(u64),
}

pub struct Server {
    pub port: u16,
}

impl Server {
    /// `greeting` is sent to each connection before it has asked for anything.
    pub fn start(nasty: Nasty, steps: Vec<Step>, greeting: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || serve(&listener, nasty, &Arc::new(steps), &Arc::new(greeting)));
        Self { port }
    }
}

pub fn serve(listener: &TcpListener, nasty: Nasty, steps: &Arc<Vec<Step>>, greeting: &Arc<Vec<Step>>) {
    let count = Arc::new(AtomicU64::new(0));
    for (number, stream) in listener.incoming().flatten().enumerate() {
        // The first connection only looks whether anybody listens.
        let greeting = if number == 0 { Arc::new(Vec::new()) } else { greeting.clone() };
        let (steps, count) = (steps.clone(), count.clone());
        thread::spawn(move || {
            let _ = stream.set_nodelay(true);
            let _ = talk(stream, nasty, &steps, &greeting, &count);
        });
    }
}

fn talk(
    mut stream: TcpStream,
    nasty: Nasty,
    steps: &[Step],
    greeting: &[Step],
    count: &AtomicU64,
) -> std::io::Result<()> {
    stream = act(stream, greeting)?;
    let mut received = Vec::new();
    loop {
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) {
            received.drain(..end);
            let number = count.fetch_add(1, Ordering::SeqCst);
            stream = match nasty {
                Nasty::Once(only) if number != only => stream.write_all(OK).map(|()| stream)?,
                _ => act(stream, steps)?,
            };
        }
        let mut room = [0; 65536];
        match stream.read(&mut room)? {
            0 => return Ok(()),
            some => received.extend_from_slice(&room[..some]),
        }
    }
}

/// The stream back, or an error if the connection has ended.
fn act(mut stream: TcpStream, steps: &[Step]) -> std::io::Result<TcpStream> {
    for step in steps {
        match step {
            Step::Send(bytes) => stream.write_all(bytes)?,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    stream.write_all(&[*byte])?;
                    thread::sleep(*pause);
                }
            }
            Step::Flood(bytes) => loop {
                stream.write_all(bytes)?;
            },
            Step::Pause(pause) => thread::sleep(*pause),
            Step::Close => {
                // Said before the socket goes: with a request unread the kernel would send a reset alone.
                stream.shutdown(Shutdown::Write)?;
                return Err(ErrorKind::ConnectionAborted.into());
            }
            Step::Reset => {
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                return Err(ErrorKind::ConnectionReset.into());
            }
            Step::HalfClose => stream.shutdown(Shutdown::Write)?,
            Step::Hang => {
                while stream.read(&mut [0; 65536])? > 0 {}
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Step::Deaf => loop {
                thread::sleep(Duration::from_secs(60));
            },
        }
    }
    Ok(stream)
}
