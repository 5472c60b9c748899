//! Answers whole, in pieces cut anywhere, and at random. Failing random cases print their seed and are kept
//! by proptest.

use proptest::prelude::*;

use super::*;

/// All answers in `bytes`, fed in pieces that end at `cuts`; the stream ends behind them. A reader that keeps
/// no bodies, but the latest head, must say the same.
fn read(bytes: &[u8], cuts: &[usize], head_only: bool) -> Result<Vec<(u16, bool, Vec<u8>)>, AnswerError> {
    let (mut reader, mut plain) = (AnswerReader::new(true), AnswerReader::new(false));
    let mut answers = Vec::new();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    for piece in ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]) {
        let mut used = 0;
        while used < piece.len() {
            let fed = reader.feed(&piece[used..], head_only);
            assert_eq!(plain.feed(&piece[used..], head_only), fed);
            let (count, answer) = fed?;
            assert!(count > 0, "nothing used of {} bytes: it would spin", piece.len() - used);
            assert!(answer.is_some() || used + count == piece.len(), "no answer, and bytes left over");
            used += count;
            answers.extend(answer.map(|a| (a.status, a.keep_alive, reader.captured().unwrap().body.clone())));
        }
    }
    answers.extend(
        reader.end_of_stream().map(|a| (a.status, a.keep_alive, reader.captured().unwrap().body.clone())),
    );
    Ok(answers)
}

fn one(text: &str) -> (u16, bool, String) {
    let mut answers = read(text.as_bytes(), &[], false).unwrap();
    assert_eq!(answers.len(), 1, "{text:?}: {answers:?}");
    let (status, keep_alive, body) = answers.remove(0);
    (status, keep_alive, String::from_utf8(body).unwrap())
}

#[test]
fn lengths_chunks_and_the_end_of_the_stream_end_bodies() {
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), (200, true, "hello".to_owned()));
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n"),
        (200, true, "hello".to_owned())
    );
    assert_eq!(one("HTTP/1.1 200 OK\r\n\r\nhello"), (200, false, "hello".to_owned()));
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello"),
        (200, false, "hello".to_owned())
    );
}

#[test]
fn a_body_without_end_is_kept_for_a_script_up_to_a_limit_and_passed_over_without_one() {
    let piece = vec![b'x'; 1 << 20];
    let chunk = [b"100000\r\n", &piece[..], b"\r\n"].concat();
    let pieces = KEPT_BODY_BYTES_MAX >> 20;
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\n\r\n", &piece),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", &piece),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &chunk),
    ] {
        let (mut reader, mut plain) = (AnswerReader::new(true), AnswerReader::new(false));
        for reader in [&mut reader, &mut plain] {
            assert_eq!(reader.feed(head.as_bytes(), false).unwrap(), (head.len(), None));
            (0..pieces).for_each(|_| assert_eq!(reader.feed(piece, false).unwrap(), (piece.len(), None)));
        }
        assert_eq!(reader.captured().unwrap().body.len(), KEPT_BODY_BYTES_MAX);
        assert!(reader.feed(piece, false).unwrap_err().rule.starts_with("body larger than 64 MiB"));
        assert_eq!(reader.captured().unwrap().body.capacity(), 0, "it is given back");
        assert!(plain.feed(piece, false).is_ok());
    }
}

#[test]
fn some_statuses_have_no_body() {
    for status in [204, 304] {
        let text = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        );
        let statuses: Vec<u16> =
            read(text.as_bytes(), &[], false).unwrap().iter().map(|answer| answer.0).collect();
        assert_eq!(statuses, [status, 200]);
    }
}

#[test]
fn a_head_that_is_repeated_is_read_as_the_first_time_and_one_that_is_nearly_the_same_is_not() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let longer = "HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\nHTTP/1.1 500 no answer";
    let closing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let all = [ok, ok, longer, longer, ok, ok, closing].concat();
    let read = read(all.as_bytes(), &[], false).unwrap();
    let told: Vec<(u16, bool, usize)> =
        read.iter().map(|(status, keep, body)| (*status, *keep, body.len())).collect();
    assert_eq!(
        told,
        [
            (200, true, 2),
            (200, true, 2),
            (200, true, 22),
            (200, true, 22),
            (200, true, 2),
            (200, true, 2),
            (200, false, 2)
        ]
    );
    // Without the bodies kept, as most runs read.
    let mut reader = AnswerReader::new(false);
    let (mut used, mut found) = (0, Vec::new());
    while used < all.len() {
        let (count, answer) = reader.feed(&all.as_bytes()[used..], false).unwrap();
        used += count;
        found.push((count, answer.unwrap().keep_alive));
    }
    assert_eq!(found, [ok, ok, longer, longer, ok, ok, closing].map(|text| (text.len(), text != closing)));
}

#[test]
fn interim_answers_are_passed_over() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\
        Content-Length: 2\r\n\r\nok";
    assert_eq!(one(text), (200, true, "ok".to_owned()));
}

#[test]
fn answers_to_head_have_headers_only() {
    let text =
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(text, &[], true).unwrap().len(), 2);
}

#[test]
fn the_connection_header_and_the_version_say_whether_it_stays_open() {
    for (text, keep_alive) in [
        ("HTTP/1.1 204 X\r\n\r\n", true),
        ("HTTP/1.1 204 X\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.1 204 X\r\nconnection: Keep-Alive, Close\r\n\r\n", false),
        ("HTTP/1.0 204 X\r\n\r\n", false),
        ("HTTP/1.0 204 X\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", false),
    ] {
        assert_eq!(one(text).1, keep_alive, "{text:?}");
    }
}

#[test]
fn repeated_lengths_must_agree() {
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok").2, "ok");
    for lengths in ["2\r\nContent-Length: 3", "2, 3", "-1", "+1", "", "1x", "99999999999999999999"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {lengths}\r\n\r\n");
        assert!(read(text.as_bytes(), &[], false).is_err(), "{lengths:?}");
    }
}

/// What a script sees of the headers of one answer.
fn headers(text: &str) -> Vec<(String, String)> {
    let mut reader = AnswerReader::new(true);
    reader.feed(text.as_bytes(), false).unwrap().1.expect("a whole answer");
    let captured = reader.captured().unwrap();
    captured
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), String::from_utf8(value.clone()).unwrap()))
        .collect()
}

#[test]
fn folded_headers_are_read_as_one_line_and_a_blank_before_a_colon_is_not_part_of_the_name() {
    let text = "HTTP/1.1  200 OK\r\nX-Folded: one\r\n two\r\n\t three\r\nX-Empty:\r\n \r\n\
        Content-Length :\r\n 2\r\n\r\nok";
    assert_eq!(one(text), (200, true, "ok".to_owned()));
    let names_and_values = [("X-Folded", "one two three"), ("X-Empty", ""), ("Content-Length", "2")]
        .map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(headers(text), names_and_values);
}

#[test]
fn a_coding_that_is_none_leaves_the_length_in_force() {
    assert_eq!(one("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok").2, "ok");
}

#[test]
fn blank_lines_before_a_head_are_passed_over_wherever_they_are_cut() {
    let text = b"\r\n\r\n\nHTTP/1.1 204 X\r\n\r\n\r\nHTTP/1.1 204 Y\r\n\r\n";
    for cut in 0..text.len() {
        assert_eq!(read(text, &[cut], false).unwrap().len(), 2, "cut={cut}");
    }
}

#[test]
fn errors_name_the_rule_and_show_what_broke_it() {
    for (text, told) in [
        ("SSH-2.0-OpenSSH_9.2\r\n", "no status line: \"SSH-2.0-OpenSSH_9.2\""),
        ("\x15\x03\x01", "no status line: \"\\x15\\x03\\x01\""),
        ("HTTP/2.0 200 OK\r\n\r\n", "HTTP version other than 1.0 and 1.1: \"HTTP/2.0 200 OK\""),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "bad status line: \"HTTP/1.1 2x0 OK\""),
        ("HTTP/1.1 200 OK\r\nX: 1\r\nX Y: 2\r\n\r\n", "bad header name: \"X Y: 2\""),
        ("HTTP/1.1 200 OK\r\nX: 1\r\nY: a\0b\r\nZ: 3\r\n\r\n", "bad header value: \"Y: a\\x00b\""),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "bad Content-Length: \"-5\""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n", "two different Content-Lengths: 2, 3"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay", "chunk longer than its size"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 2", "bad chunk size: \"2\""),
    ] {
        assert_eq!(read(text.as_bytes(), &[], false).unwrap_err().to_string(), told, "{text:?}");
    }
}

#[test]
fn what_cannot_become_a_status_line_is_refused_from_its_first_bytes_on() {
    let mut reader = AnswerReader::new(false);
    assert_eq!(reader.feed(b"HT", false).unwrap(), (2, None));
    assert_eq!(reader.feed(b"ML>", false).unwrap_err().rule, "no status line");
}

#[test]
fn chunks_win_over_a_length() {
    let text =
        "HTTP/1.1 200 OK\r\nContent-Length: 999\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(one(text).2, "ok");
}

#[test]
fn bad_chunks_are_errors() {
    for chunks in [
        "x\r\n",
        "\r\n",
        "fffffffffffffffff\r\n",
        "2\r\nokay\r\n",
        "-1\r\n",
        "2 2\r\nok\r\n",
        "0x2\r\nok\r\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        assert!(read(text.as_bytes(), &[], false).is_err(), "{chunks:?}");
    }
}

#[test]
fn heads_up_to_64_kib_are_read_and_larger_ones_refused() {
    let head = |bytes: usize| {
        let fixed = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: \r\n\r\n";
        fixed.replace("X: ", &format!("X: {}", "y".repeat(bytes - fixed.len())))
    };
    let whole = head(64 * 1024);
    assert_eq!(read(whole.as_bytes(), &[], false).unwrap().len(), 1);
    let every_hundred: Vec<usize> = (0..whole.len()).step_by(100).collect();
    assert_eq!(read(whole.as_bytes(), &every_hundred, false).unwrap().len(), 1);
    let endless = "HTTP/1.1 200 OK\r\nX: ".to_owned() + &"y".repeat(200_000);
    assert!(read(endless.as_bytes(), &every_hundred, false).is_err());
    assert!(read(endless.as_bytes(), &[], false).is_err());
    let too_large = head(HEAD_BYTES_MAX + 1);
    assert!(read(too_large.as_bytes(), &[], false).is_err(), "also if all of it came at once");
}

#[test]
fn many_headers_are_read() {
    let text = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok", "A: b\r\n".repeat(5000));
    assert_eq!(one(&text).2, "ok");
}

#[test]
fn extensions_and_trailers_without_end_are_refused() {
    for (open, more) in [("1;", "x"), ("0\r\nT: ", "x"), ("1", " "), ("", "0"), ("0\r\n", "\r")] {
        let text =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{open}{}", more.repeat(100_000));
        assert!(read(text.as_bytes(), &[], false).is_err(), "{open:?}");
    }
}

#[test]
fn every_single_cut_gives_the_same_answers() {
    let text =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n\
        3;e\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\n\
        xyzHTTP/1.1 204 N\n\n";
    let whole = read(text, &[], false).unwrap();
    assert_eq!(whole.len(), 3);
    for cut in 0..text.len() {
        assert_eq!(read(text, &[cut], false).unwrap(), whole, "cut={cut}");
    }
    let everywhere: Vec<usize> = (0..text.len()).collect();
    assert_eq!(read(text, &everywhere, false).unwrap(), whole);
}

/// An answer and the body that it carries.
fn answer() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let body = prop::collection::vec(any::<u8>(), 0..300);
    let headers = prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,20}", "[ -~]{0,40}"), 0..60);
    let chunks = prop::collection::vec(1usize..80, 1..8);
    (200u16..=299, headers, body, prop::option::of(chunks), any::<bool>()).prop_map(
        |(status, headers, body, chunks, interim)| {
            let status = if status == 204 { 200 } else { status };
            let mut bytes = if interim { b"HTTP/1.1 100 Continue\r\n\r\n".to_vec() } else { Vec::new() };
            bytes.extend(format!("HTTP/1.1 {status} Some Reason\r\n").bytes());
            let own = ["content-length", "transfer-encoding", "connection"];
            let others =
                headers.iter().filter(|(name, _)| !own.contains(&name.to_ascii_lowercase().as_str()));
            for ((name, value), written) in
                others.zip(["{}: {}", "{} :{}", "{}:\r\n {}", "{}: {}\r\n\t more"].iter().cycle())
            {
                bytes.extend(
                    format!("{}\r\n", written.replacen("{}", name, 1).replacen("{}", value, 1)).bytes(),
                );
            }
            match chunks {
                None => {
                    bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                    bytes.extend(&body);
                }
                Some(sizes) => {
                    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                    let mut rest = &body[..];
                    for size in sizes.iter().cycle() {
                        let (chunk, more) = rest.split_at((*size).min(rest.len()));
                        bytes.extend(
                            format!("{:x}\r\n", chunk.len())
                                .bytes()
                                .chain(chunk.iter().copied())
                                .chain(*b"\r\n"),
                        );
                        rest = more;
                        if chunk.is_empty() {
                            break;
                        }
                    }
                }
            }
            (bytes, body)
        },
    )
}

proptest! {
    #[test]
    fn answers_are_the_same_however_they_are_cut(
        answers in prop::collection::vec(answer(), 1..5),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        let bytes: Vec<u8> = answers.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let bodies: Vec<Vec<u8>> = answers.into_iter().map(|(_, body)| body).collect();
        let answers = read(&bytes, &cuts, false).unwrap();
        let read: Vec<Vec<u8>> = answers.into_iter().map(|answer| answer.2).collect();
        prop_assert_eq!(read, bodies);
    }

    #[test]
    fn no_bytes_make_it_panic_or_spin(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
        head_only: bool,
    ) {
        let _ = read(&bytes, &cuts, head_only);
    }

    #[test]
    fn damaged_answers_do_not_either(
        answers in prop::collection::vec(answer(), 1..4),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        let mut bytes: Vec<u8> = answers.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let _ = read(&bytes, &cuts, false);
    }

    /// Cut or not, the same answers; and what is refused whole is refused in pieces, or still waited for.
    #[test]
    fn where_damaged_answers_are_cut_does_not_matter_either(
        answers in prop::collection::vec(answer(), 1..4),
        damage in prop::collection::vec(
            (any::<usize>(), prop::sample::select(b"\r\n :;0aH\0\xff".to_vec())), 1..4),
        cuts in prop::collection::vec(any::<usize>(), 1..10),
    ) {
        let mut bytes: Vec<u8> = answers.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        match (read(&bytes, &[], false), read(&bytes, &cuts, false)) {
            (Ok(whole), Ok(cut)) => prop_assert_eq!(whole, cut),
            (Err(_), _) => {}
            (Ok(whole), Err(problem)) => {
                prop_assert!(false, "refused in pieces only: {} {:?}", problem, whole)
            }
        }
    }

    #[test]
    fn no_bytes_make_the_request_counter_panic(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = request::Batch::parse(&bytes);
    }
}
