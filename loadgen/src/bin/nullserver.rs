//! A server that does nothing but answer: the least service there can be, to measure a load generator
//! against.
//!
//! One thread, one event loop; every request gets the same short answer. `nullserver [--port N] [--pin CPU]
//! [--spin]`; with `--spin` it never sleeps, so that it answers without the kernel's wake-up time. It prints
//! `ready: http://127.0.0.1:PORT`.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use lexopt::prelude::*;
use loadgen::epoll::{Epoll, Events, READABLE};
use loadgen::http::request::Batch;
use loadgen::machine;
use loadgen::uniform::NEVER;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LISTENER: u64 = u64::MAX;

struct Options {
    port: u16,
    pin: Option<usize>,
    spin: bool,
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options { port: 0, pin: None, spin: false };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("port") => options.port = parser.value()?.parse()?,
            Long("pin") => options.pin = Some(parser.value()?.parse()?),
            Long("spin") => options.spin = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

fn main() {
    let served = options()
        .map_err(|problem| problem.to_string())
        .and_then(|options| serve(&options).map_err(|problem| problem.to_string()));
    if let Err(problem) = served {
        eprintln!("nullserver: {problem}");
        std::process::exit(1);
    }
}

struct Client {
    stream: TcpStream,
    /// Received, and not yet a whole request.
    received: Vec<u8>,
    /// What came last and was whole, and how many requests it held: generators repeat themselves.
    latest: (Vec<u8>, usize),
}

fn serve(options: &Options) -> io::Result<()> {
    if let Some(cpu) = options.pin {
        machine::pin_thread(cpu).map_err(io::Error::other)?;
    }
    machine::raise_file_limit(10_000, 1).map_err(io::Error::other)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    listener.set_nonblocking(true)?;
    // The standard library lets 128 wait to be accepted; listening again allows as many as the system does.
    rustix::net::listen(&listener, i32::from(u16::MAX))?;
    let mut epoll = Epoll::new()?;
    epoll.add(&listener, READABLE, LISTENER)?;
    println!("ready: http://{}", listener.local_addr()?);
    let mut clients = HashMap::new();
    let mut room = vec![0; 128 * 1024];
    let answers = ANSWER.repeat(64);
    loop {
        let count = if options.spin { epoll.look()? } else { epoll.wait_until(NEVER)? };
        for index in 0..count {
            match epoll.event(index).token {
                LISTENER => accept(&listener, &epoll, &mut clients)?,
                token => {
                    let open = clients.get_mut(&token).is_some_and(|client: &mut Client| {
                        client.answer(&mut room, &answers).unwrap_or(false)
                    });
                    if !open {
                        clients.remove(&token);
                    }
                }
            }
        }
    }
}

fn accept(listener: &TcpListener, epoll: &Epoll, clients: &mut HashMap<u64, Client>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                let token = stream.as_raw_fd() as u64;
                epoll.add(&stream, READABLE, token)?;
                clients.insert(token, Client { stream, received: Vec::new(), latest: (Vec::new(), 0) });
            }
            Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(problem) => return Err(problem),
        }
    }
}

impl Client {
    /// Answers what has come; false when the client has left.
    fn answer(&mut self, room: &mut [u8], answers: &[u8]) -> io::Result<bool> {
        let count = match self.stream.read(room) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(problem) if problem.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(problem) => return Err(problem),
        };
        let bytes = if self.received.is_empty() {
            &room[..count]
        } else {
            self.received.extend_from_slice(&room[..count]);
            &self.received
        };
        let requests = if *bytes == *self.latest.0 {
            self.latest.1
        } else if let Ok(batch) = Batch::parse(bytes) {
            self.latest.0.clear();
            self.latest.0.extend_from_slice(bytes);
            self.latest.1 = batch.requests as usize;
            self.latest.1
        } else {
            self.received = bytes.to_vec();
            return Ok(true);
        };
        match answers.get(..requests * ANSWER.len()) {
            Some(enough) => self.stream.write_all(enough)?,
            None => self.stream.write_all(&ANSWER.repeat(requests))?,
        }
        self.received.clear();
        Ok(true)
    }
}
