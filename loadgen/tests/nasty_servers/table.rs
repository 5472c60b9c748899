//! The kinds of nasty answers, and what each is to be counted as.

use std::time::Duration;

use super::server::Step::{self, Close, Drip, Flood, HalfClose, Hang, Pause, Reset, Send};

/// What becomes of one request that is treated like this.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    /// Answered with this status; no error.
    Answered(u16),
    /// Answered with this status, and one read error for this reason: the connection is of no more use.
    AnsweredBut(u16, &'static str),
    /// As before, if the client looks again before its end.
    AnsweredThen(u16, &'static str),
    /// Lost with its connection: one read error for this reason.
    Lost(&'static str),
    /// Never answered: under way at the end, and a timeout.
    Hangs,
}
use Counted::{Answered, AnsweredBut, AnsweredThen, Hangs, Lost};

pub struct Case {
    pub name: &'static str,
    pub steps: Vec<Step>,
    pub counted: Counted,
}

const EARLY: &str = "closed before an answer";
const MIDDLE: &str = "closed in the middle of an answer";
const MORE: &str = "more than was asked for";
const UNASKED: &str = "closed while nothing was asked for";
const RST: &str = "Connection reset by peer";
const TLS_THERE: &str = "the server speaks TLS on this port: use https://";
const NO_STATUS_LINE: &str = "no status line";
const LENGTH: &str = "bad Content-Length";
const CHUNK: &str = "bad chunk size";

fn text(text: &str) -> Step {
    Send(text.as_bytes().to_vec())
}

/// An answer with these header lines and this body.
fn answer(headers: &str, body: &str) -> Step {
    text(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}"))
}

fn length(value: &str) -> Vec<Step> {
    vec![answer(&format!("Content-Length: {value}\r\n"), "ok")]
}

fn chunks(chunks: &str) -> Step {
    answer("Transfer-Encoding: chunked\r\n", chunks)
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn bytes(count: usize) -> String {
    "x".repeat(count)
}

pub fn cases() -> Vec<Case> {
    let case = |name, steps, counted| Case { name, steps, counted };
    vec![
        // Unusual, and right.
        case(
            "headers in lower case",
            vec![text("HTTP/1.1 200 ok\r\ncontent-length: 2\r\n\r\nok")],
            Answered(200),
        ),
        case(
            "headers in upper case",
            vec![answer("CONTENT-LENGTH: 2\r\nCONNECTION: KEEP-ALIVE\r\n", "ok")],
            Answered(200),
        ),
        case(
            "a folded header",
            vec![answer("X-A: one\r\n two\r\n\tthree\r\nContent-Length: 2\r\n", "ok")],
            Answered(200),
        ),
        case("a folded length", vec![answer("Content-Length:\r\n 2\r\n", "ok")], Answered(200)),
        case("a blank before a colon", vec![answer("Content-Length : 2\r\n", "ok")], Answered(200)),
        case("no blank behind a colon", vec![answer("Content-Length:2\r\n", "ok")], Answered(200)),
        case("an empty header", vec![answer("X-Empty:\r\nContent-Length: 2\r\n", "ok")], Answered(200)),
        case("line feeds alone", vec![text("HTTP/1.1 200 OK\nContent-Length: 2\n\nok")], Answered(200)),
        case("no reason phrase", vec![text("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok")], Answered(200)),
        case(
            "two blanks before the status",
            vec![text("HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok")],
            Answered(200),
        ),
        case(
            "a status of no standard",
            vec![text("HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok")],
            Answered(799),
        ),
        case(
            "Latin-1 in a header",
            vec![Send(b"HTTP/1.1 200 OK\r\nX: caf\xe9\r\nContent-Length: 2\r\n\r\nok".to_vec())],
            Answered(200),
        ),
        case(
            "blank lines before the answer",
            vec![text("\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")],
            Answered(200),
        ),
        case(
            "a blank line behind the answer",
            vec![answer("Content-Length: 2\r\n", "ok\r\n")],
            Answered(200),
        ),
        case(
            "a blank line behind an answer that closes",
            vec![answer("Connection: close\r\nContent-Length: 2\r\n", "ok\r\n"), Close],
            Answered(200),
        ),
        case(
            "a head of 60 KiB",
            vec![answer(&format!("X: {}\r\nContent-Length: 2\r\n", bytes(60 << 10)), "ok")],
            Answered(200),
        ),
        case(
            "5000 headers",
            vec![answer(&format!("{}Content-Length: 2\r\n", "A: b\r\n".repeat(5000)), "ok")],
            Answered(200),
        ),
        case(
            "a slow drip",
            vec![Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(), ms(1))],
            Answered(200),
        ),
        case(
            "a body of 4 MiB",
            vec![answer(&format!("Content-Length: {}\r\n", 4 << 20), &bytes(4 << 20))],
            Answered(200),
        ),
        // Lengths.
        case(
            "the same length twice",
            vec![answer("Content-Length: 2\r\nContent-Length: 2\r\n", "ok")],
            Answered(200),
        ),
        case("a list of the same length", length("2, 2"), Answered(200)),
        case("zeros before a length", length("0000000000000000000000000000002"), Answered(200)),
        case(
            "two different lengths",
            vec![answer("Content-Length: 2\r\nContent-Length: 3\r\n", "ok")],
            Lost("two different Content-Lengths"),
        ),
        case("a negative length", length("-2"), Lost(LENGTH)),
        case("a length with a sign", length("+2"), Lost(LENGTH)),
        case("a hexadecimal length", length("0x2"), Lost(LENGTH)),
        case("a length with a fraction", length("2.0"), Lost(LENGTH)),
        case("an empty length", length(""), Lost(LENGTH)),
        case("a length over 2^64", length("18446744073709551616"), Lost(LENGTH)),
        case(
            "a length over 2^63, then closed",
            [length("9223372036854775808"), vec![Close]].concat(),
            Lost(MIDDLE),
        ),
        case("a length over 2^63, then nothing", length("9223372036854775808"), Hangs),
        case("a length too large, then closed", [length("5"), vec![Close]].concat(), Lost(MIDDLE)),
        case("a length too large, then nothing", length("5"), Hangs),
        case("a length too small", length("1"), AnsweredBut(200, MORE)),
        // Until the end of the connection.
        case(
            "a body until the connection closes",
            vec![answer("", "as long as it takes"), Close],
            Answered(200),
        ),
        case("a body that no close ends", vec![answer("", "ok")], Hangs),
        case("a body until the connection is reset", vec![answer("", "ok"), Pause(ms(20)), Reset], Lost(RST)),
        case(
            "HTTP/1.0 with a length",
            vec![text("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), Close],
            Answered(200),
        ),
        case(
            "HTTP/1.0 kept alive",
            vec![text("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")],
            Answered(200),
        ),
        case("HTTP/1.0 until it closes", vec![text("HTTP/1.0 200 OK\r\n\r\nok"), Close], Answered(200)),
        case(
            "close, said and done",
            vec![answer("Connection: close\r\nContent-Length: 2\r\n", "ok"), Close],
            Answered(200),
        ),
        case(
            "close, said and not done",
            vec![answer("Connection: close\r\nContent-Length: 2\r\n", "ok"), Hang],
            Answered(200),
        ),
        case(
            "close, done and not said",
            vec![answer("Content-Length: 2\r\n", "ok"), Close],
            AnsweredThen(200, UNASKED),
        ),
        case(
            "half closed behind an answer",
            vec![answer("Content-Length: 2\r\n", "ok"), HalfClose, Hang],
            AnsweredThen(200, UNASKED),
        ),
        // No body, whatever is said.
        case(
            "204 with a length",
            vec![text("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")],
            Answered(204),
        ),
        case(
            "204 with a body",
            vec![text("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok")],
            AnsweredBut(204, MORE),
        ),
        case(
            "304 with a length",
            vec![text("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n")],
            Answered(304),
        ),
        case(
            "304 with a body",
            vec![text("HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok")],
            AnsweredBut(304, MORE),
        ),
        case(
            "a change of protocol",
            vec![text("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), Hang],
            Answered(101),
        ),
        // Interim answers.
        case(
            "a thousand interim answers",
            vec![text(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)), length("2")[0].clone()],
            Answered(200),
        ),
        case(
            "an interim answer, then closed",
            vec![text("HTTP/1.1 100 Continue\r\n\r\n"), Pause(ms(5)), Close],
            Lost(EARLY),
        ),
        case(
            "interim answers without end",
            vec![Flood(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5000))],
            Hangs,
        ),
        // More than was asked for.
        case(
            "two answers for one",
            vec![text(
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\
                    Content-Length: 2\r\n\r\nok",
            )],
            AnsweredBut(200, MORE),
        ),
        case(
            "rubbish behind an answer",
            vec![answer("Content-Length: 2\r\n", "ok rubbish")],
            AnsweredBut(200, MORE),
        ),
        case(
            "rubbish behind a last chunk",
            vec![chunks("2\r\nok\r\n0\r\n\r\nrubbish")],
            AnsweredBut(200, MORE),
        ),
        // Chunks.
        case(
            "chunks with extensions and trailers",
            vec![chunks("2;a=b\r\nok\r\n0;c\r\nT: 1\r\nU: 2\r\n\r\n")],
            Answered(200),
        ),
        case("chunks with line feeds alone", vec![chunks("2\nok\n0\n\n")], Answered(200)),
        case("a chunk size with zeros and blanks", vec![chunks("0002  \r\nok\r\n0\r\n\r\n")], Answered(200)),
        case(
            "chunks and a length",
            vec![answer("Content-Length: 999\r\nTransfer-Encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n")],
            Answered(200),
        ),
        case(
            "a coding that is none",
            vec![answer("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "ok")],
            Answered(200),
        ),
        case("chunks of one byte", vec![chunks(&("1\r\nx\r\n".repeat(2000) + "0\r\n\r\n"))], Answered(200)),
        case("a chunk size that is none", vec![chunks("xyz\r\nok\r\n0\r\n\r\n")], Lost(CHUNK)),
        case("an empty chunk size", vec![chunks("\r\nok\r\n0\r\n\r\n")], Lost(CHUNK)),
        case("a negative chunk size", vec![chunks("-2\r\nok\r\n0\r\n\r\n")], Lost(CHUNK)),
        case("a chunk size with a prefix", vec![chunks("0x2\r\nok\r\n0\r\n\r\n")], Lost(CHUNK)),
        case("two chunk sizes on a line", vec![chunks("2 2\r\nok\r\n0\r\n\r\n")], Lost(CHUNK)),
        case("a chunk size over 2^64", vec![chunks("10000000000000000\r\nok")], Lost("chunk size over 2^64")),
        case(
            "a chunk longer than its size",
            vec![chunks("2\r\nokay\r\n0\r\n\r\n")],
            Lost("chunk longer than its size"),
        ),
        case("a chunk shorter than its size, then closed", vec![chunks("5\r\nok"), Close], Lost(MIDDLE)),
        case("no last chunk, then nothing", vec![chunks("2\r\nok\r\n")], Hangs),
        case("no last chunk, then closed", vec![chunks("2\r\nok\r\n"), Close], Lost(MIDDLE)),
        case(
            "no line behind the last chunk, then closed",
            vec![chunks("2\r\nok\r\n0\r\n"), Close],
            Lost(MIDDLE),
        ),
        case(
            "an extension without end",
            vec![chunks(&format!("2;{}", bytes(70 << 10)))],
            Lost("chunk extension or trailers larger than 64 KiB"),
        ),
        case(
            "trailers without end",
            vec![chunks("0\r\n"), Flood(b"T: x\r\n".repeat(1000))],
            Lost("chunk extension or trailers larger than 64 KiB"),
        ),
        case("chunks without end", vec![chunks(""), Flood(b"5\r\nhello\r\n".repeat(10_000))], Hangs),
        // No HTTP, or not ours.
        case("HTTP/0.9", vec![text("<html>hello</html>\n"), Close], Lost(NO_STATUS_LINE)),
        case("HTTP/0.9 that never closes", vec![text("<html>hello</html>\n"), Hang], Lost(NO_STATUS_LINE)),
        case("two bytes of no HTTP, then nothing", vec![text("<h"), Hang], Lost(NO_STATUS_LINE)),
        case("a secure shell", vec![text("SSH-2.0-OpenSSH_9.2\r\n")], Lost(NO_STATUS_LINE)),
        case("a TLS alert", vec![Send(b"\x15\x03\x01\x00\x02\x02\x46".to_vec()), Close], Lost(TLS_THERE)),
        case(
            "frames of HTTP/2",
            vec![Send(
                b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff".to_vec(),
            )],
            Lost(NO_STATUS_LINE),
        ),
        case("zeros", vec![Send(vec![0; 1000])], Lost(NO_STATUS_LINE)),
        case(
            "HTTP/2.0 in words",
            vec![text("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok")],
            Lost("HTTP version other than 1.0 and 1.1"),
        ),
        case(
            "a status that is no number",
            vec![text("HTTP/1.1 2xx OK\r\nContent-Length: 2\r\n\r\nok")],
            Lost("bad status line"),
        ),
        case("no status", vec![text("HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nok")], Lost("bad status line")),
        case(
            "a header name of two words",
            vec![answer("X Y: 1\r\nContent-Length: 2\r\n", "ok")],
            Lost("bad header name"),
        ),
        case(
            "a header without a colon",
            vec![answer("rubbish\r\nContent-Length: 2\r\n", "ok")],
            Lost("bad header name"),
        ),
        case(
            "a zero in a header",
            vec![answer("X: a\0b\r\nContent-Length: 2\r\n", "ok")],
            Lost("bad header value"),
        ),
        case(
            "a head of 100 KiB",
            vec![answer(&format!("X: {}\r\nContent-Length: 2\r\n", bytes(100 << 10)), "ok")],
            Lost("head larger than 65 KiB"),
        ),
        case(
            "a head without end",
            vec![text("HTTP/1.1 200 OK\r\nX: "), Flood(vec![b'y'; 100_000])],
            Lost("head larger than 65 KiB"),
        ),
        case(
            "10 000 headers",
            vec![answer(&format!("{}Content-Length: 2\r\n", "A:b\r\n".repeat(10_000)), "ok")],
            Lost("more than 8192 headers"),
        ),
        // Ends in the middle.
        case("nothing, then closed", vec![Close], Lost(EARLY)),
        case("nothing, then reset", vec![Reset], Lost(RST)),
        case("nothing", vec![Hang], Hangs),
        case("blank lines, then closed", vec![text("\r\n\r\n"), Pause(ms(5)), Close], Lost(EARLY)),
        case("half a status line, then closed", vec![text("HTTP/1.1 2"), Close], Lost(MIDDLE)),
        case("half a head, then nothing", vec![text("HTTP/1.1 200 OK\r\nContent-Le"), Hang], Hangs),
        case("half a head, then closed", vec![text("HTTP/1.1 200 OK\r\nContent-Le"), Close], Lost(MIDDLE)),
        case(
            "half a head, then half closed",
            vec![text("HTTP/1.1 200 OK\r\nContent-Le"), HalfClose, Hang],
            Lost(MIDDLE),
        ),
        case(
            "half a head, then reset",
            vec![text("HTTP/1.1 200 OK\r\nContent-Le"), Pause(ms(20)), Reset],
            Lost(RST),
        ),
        case(
            "half a body, then reset",
            vec![answer("Content-Length: 4\r\n", "ok"), Pause(ms(20)), Reset],
            Lost(RST),
        ),
        case(
            "a body without end, as fast as it goes",
            vec![answer("", ""), Flood(vec![b'x'; 1 << 20])],
            Hangs,
        ),
        case("a body without end, dripping", vec![answer("", ""), Drip(vec![b'x'; 10_000], ms(5))], Hangs),
    ]
}
