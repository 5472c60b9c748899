//! Real runs against servers that answer, stall, close, refuse and talk nonsense. No test asserts how fast
//! this machine is.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use common::{Act, OK, Server, loadgen};
use rustix::process::{Pid, Signal, kill_process};

fn answer() -> Act {
    Act::Answer(OK.to_owned())
}

#[test]
fn every_request_that_is_due_is_sent_and_counted() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R200", "-c4", "-t2", "-d1s", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.count("sent") + run.count("unsent"), 200);
    assert_eq!(run.count("completed"), run.count("sent"));
    assert_eq!(run.count("completed"), server.requests());
    assert_eq!(run.json["response_time"]["count"], run.count("measured"));
    assert_eq!(run.json["answers"]["200"], run.count("completed"));
}

#[test]
fn all_connections_are_opened_even_if_threads_do_not_divide_them() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R50", "-c5", "-t2", "-d500ms", &server.url()]);
    let connections: Vec<u64> = run.json["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["connections"].as_u64().unwrap())
        .collect();
    assert_eq!(connections, [3, 2]);
}

#[test]
fn every_thread_says_how_many_requests_it_sent() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R200", "-c3", "-t2", "-d1s", &server.url()]);
    let sent: Vec<u64> = run.json["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["sent"].as_u64().unwrap())
        .collect();
    assert_eq!(sent.iter().sum::<u64>(), run.count("sent"));
    assert!(sent[0] > sent[1], "the first has two of three connections: {sent:?}");
}

#[test]
fn half_a_request_per_second_is_one_request_in_the_first_two_seconds() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R0.5", "-c1", "-t1", "-d1500ms", &server.url()]);
    assert_eq!((run.code, run.count("sent"), run.count("unsent")), (0, 1, 0));
}

#[test]
fn response_time_counts_the_wait_behind_a_stall_and_service_time_does_not() {
    let server = Server::start(|number, _| {
        if number == 10 { Act::After(Duration::from_millis(400), OK.to_owned()) } else { answer() }
    });
    let run = loadgen(&["-R100", "-c1", "-t1", "-d1s", &server.url()]);
    // 40 requests were due during the stall; half of them waited at least 200 ms, and only one was slow
    // itself.
    assert!(run.percentile("response_time", "90") >= 200_000, "{}", run.stdout);
    assert!(run.percentile("response_time", "100") >= 400_000);
    assert!(run.percentile("send_lateness", "90") >= 200_000);
    let service = &run.json["service_time"];
    assert!(service["max_us"].as_u64().unwrap() >= 399_000);
    assert!(run.percentile("service_time", "50") < run.percentile("response_time", "90"));
    assert_eq!((run.count("sent") + run.count("unsent"), run.count("completed")), (100, run.count("sent")));
    assert!(run.count("completed") >= 90, "{}", run.stderr);
}

#[test]
fn a_stall_at_the_end_does_not_disappear() {
    let server = Server::start(|number, _| if number >= 20 { Act::Silence } else { answer() });
    let run = loadgen(&["-R100", "-c2", "-t1", "-d1s", "-T", "300ms", &server.url()]);
    assert_eq!(run.count("in_flight_at_end"), 2);
    assert_eq!(run.error("timeout"), 2);
    assert_eq!(run.count("completed"), 20);
    assert_eq!(run.count("sent") + run.count("unsent"), 100);
    assert_eq!(run.count("unsent"), 78);
    assert!(run.stderr.contains("never sent 78"), "{}", run.stderr);
}

#[test]
fn answers_under_way_at_the_end_are_awaited_and_recorded() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(300), OK.to_owned()));
    let run = loadgen(&["-R10", "-c10", "-t1", "-d1s", &server.url()]);
    // Ten are due before the end, each on a connection of its own; the eleventh is due at the end and is no
    // part of the run.
    assert_eq!((run.count("sent"), run.count("unsent")), (10, 0));
    assert_eq!((run.count("completed"), run.count("in_flight_at_end")), (10, 0));
    assert_eq!(run.json["response_time"]["count"], 10);
}

#[test]
fn a_timeout_is_counted_once_and_its_answer_recorded() {
    let server = Server::start(|number, _| {
        if number == 0 { Act::After(Duration::from_millis(500), OK.to_owned()) } else { answer() }
    });
    let run = loadgen(&["-R10", "-c1", "-t1", "-d1s", "-T", "300ms", &server.url()]);
    assert!(run.error("timeout") >= 1);
    assert!(run.percentile("response_time", "100") >= 500_000);
    assert_eq!(run.count("completed"), 10);
}

#[test]
fn a_request_whose_connection_is_lost_after_the_timeout_is_a_timeout_too() {
    let server = Server::start(|number, _| {
        if number > 0 {
            return answer();
        }
        std::thread::sleep(Duration::from_millis(1500));
        Act::Close
    });
    let run = loadgen(&["-R10", "-c10", "-t1", "-d1s", "-T", "1s", &server.url()]);
    assert_eq!((run.count("completed"), run.count("lost")), (9, 1), "{}", run.stderr);
    assert_eq!((run.error("timeout"), run.error("read")), (1, 1), "{}", run.stderr);
    assert!(run.stderr.contains("1 lost after the timeout"), "{}", run.stderr);
}

#[test]
fn a_lost_connection_is_opened_again_and_its_request_counted() {
    let server = Server::start(|number, _| if number % 10 == 9 { Act::Close } else { answer() });
    let run = loadgen(&["-R100", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.count("sent"), run.count("completed") + run.count("lost") + run.count("in_flight_at_end"));
    assert!(run.count("lost") >= 5, "lost={}", run.count("lost"));
    assert_eq!(run.error("read"), run.count("lost"));
    assert!(run.stdout.contains("Socket errors: connect 0, read"), "{}", run.stdout);
}

#[test]
fn connections_that_are_closed_together_return_in_turns_and_the_wait_for_a_turn_is_the_generators() {
    const CONNECTIONS: usize = 320;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 1024).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        drop(listener.accept().unwrap()); // the look whether anybody listens
        let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| listener.accept().unwrap().0).collect();
        let _ = streams[0].read(&mut [0; 4096]);
        streams.iter().for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(OK.as_bytes());
                }
            });
        }
    });
    // 32 threads share 64 attempts a millisecond: two of the ten connections that each loses at once.
    let run = loadgen(&["-R640", "-c320", "-t32", "-d1s", "--spin", "off", "-T", "10s", &url]);
    let reconnecting = &run.json["reconnecting"];
    assert_eq!((run.code, &reconnecting["reopened"]), (0, &320.into()), "{}", run.stderr);
    assert_eq!(run.error("connect"), 0, "the first attempt of each finds the server: {}", run.stderr);
    assert!(reconnecting["own_pause_s"].as_f64().unwrap() > 0.0, "{reconnecting}");
}

#[test]
fn a_server_that_goes_away_in_the_middle_leaves_refused_connections_counted() {
    // Where nobody else is given a port: nobody is to listen on this one any more.
    let listener = TcpListener::bind("127.0.0.79:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // The first connection is the look whether anybody listens; the second makes requests, and is closed
        // after ten.
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        for _ in 0..10 {
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let run = loadgen(&["-R100", "-c1", "-t1", "-d1s", &url]);
    server.join().unwrap();
    assert_eq!((run.code, run.count("completed")), (0, 10), "{}", run.stderr);
    assert_eq!(run.count("sent") + run.count("unsent"), 100);
    assert_eq!(run.count("sent"), 10 + run.count("lost"));
    assert!(run.error("connect") >= 2, "refused at once, and again after pauses: {}", run.json["errors"]);
    assert!(run.stdout.contains("Socket errors: connect "), "{}", run.stdout);
}

#[test]
fn an_answer_that_closes_its_connection_is_no_error() {
    let server = Server::start(|_, _| {
        Act::AnswerAndClose("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_owned())
    });
    let run = loadgen(&["-R50", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!((run.count("lost"), run.error("read")), (0, 0), "{}", run.stderr);
    assert!(run.count("completed") == run.count("sent") && run.count("sent") >= 45, "{}", run.stderr);
}

#[test]
fn a_body_may_last_until_the_connection_closes() {
    let server =
        Server::start(|_, _| Act::AnswerAndClose("HTTP/1.1 200 OK\r\n\r\nas long as it takes".to_owned()));
    let run = loadgen(&["-R50", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!((run.count("completed"), run.error("read")), (run.count("sent"), 0), "{}", run.stderr);
    assert!(run.count("sent") >= 45 && run.count("sent") + run.count("unsent") == 50, "{}", run.stderr);
}

#[test]
fn answers_may_come_in_pieces_cut_at_every_byte() {
    let text =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
        0\r\n\r\n";
    let server = Server::start(|number, _| {
        let (first, second) = text.split_at(number as usize % text.len());
        Act::Pieces(vec![first.to_vec(), second.to_vec()])
    });
    let run = loadgen(&["-R200", "-c2", "-t1", "-d1s", "--expect", "200", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!((run.count("completed"), run.error("read")), (run.count("sent"), 0));
    assert!(run.count("sent") > 0);
}

#[test]
fn what_is_no_http_is_a_read_error() {
    let server = Server::start(|_, _| Act::Answer("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned()));
    let run = loadgen(&["-R20", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!((run.code, run.count("completed")), (1, 0));
    assert!(run.error("read") >= 2);
    assert!(run.stderr.contains("no request was answered"), "{}", run.stderr);
}

#[test]
fn a_server_that_closes_every_connection_does_not_make_a_busy_loop() {
    let server = Server::start(|_, _| Act::Close);
    let run = loadgen(&["-R1000", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!(run.code, 1);
    // Pauses grow from 10 ms to about 50: some 22 attempts in a second for each connection.
    assert!(server.requests() <= 100, "requests={}", server.requests());
    assert_eq!(run.count("sent") + run.count("unsent"), 1000);
}

#[test]
fn an_unexpected_status_is_exit_3() {
    let server = Server::start(|number, _| {
        if number == 3 {
            Act::Answer("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned())
        } else {
            answer()
        }
    });
    let run = loadgen(&["-R20", "-c1", "-t1", "-d1s", "--expect", "200,404", &server.url()]);
    assert_eq!((run.code, run.count("unexpected")), (3, 1));
    assert!(run.stderr.contains("1 with a status other than 200, 404"), "{}", run.stderr);
    assert!(run.stdout.contains("Non-2xx or 3xx responses: 1"));
}

#[test]
fn lateness_over_what_is_allowed_is_exit_4() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(50), OK.to_owned()));
    let run = loadgen(&["-R100", "-c1", "-t1", "-d1s", "--max-lateness", "20ms", &server.url()]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("sent too late"), "{}", run.stderr);
}

#[test]
fn a_closed_loop_sends_when_the_answer_has_come() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(10), OK.to_owned()));
    let run = loadgen(&["--closed", "-c2", "-t1", "-d1s", &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.count("completed") > 2 && run.count("completed") <= 202,
        "completed={}",
        run.count("completed")
    );
    assert!(run.json["offered_rate_rps"].is_null());
    assert_eq!(run.percentile("send_lateness", "100"), 0);
    assert_eq!(run.percentile("response_time", "50"), run.percentile("service_time", "50"));
}

#[test]
fn poisson_arrivals_are_the_same_for_the_same_seed_and_others_for_another() {
    let server = Server::start(|_, _| answer());
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("all.csv");
    // When each was due, in microseconds, of all that were answered.
    let due = |seed: &str| -> Vec<u64> {
        let options = ["-R300", "-c4", "-t2", "-d500ms", "-T10s", "--arrivals", "poisson", "--seed", seed];
        let kept = ["--slowest-count", "1000", "--slowest", csv.to_str().unwrap(), &server.url()];
        let run = loadgen(&[&options[..], &kept].concat());
        assert_eq!(run.count("completed"), run.count("sent"), "{}", run.stderr);
        let text = std::fs::read_to_string(&csv).unwrap();
        let all = text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap());
        // On a busy machine the last ones may wait for their connections until the end, and are never sent.
        all.filter(|due_us| *due_us < 300_000).collect()
    };
    let seven = due("7");
    assert!((50..130).contains(&seven.len()), "90 are due on average: {}", seven.len());
    assert_eq!(seven, due("7"));
    assert_ne!(seven, due("8"));
}

#[test]
fn head_requests_have_no_body_whatever_the_headers_say() {
    let (_folder, path) = common::script("wrk.method = 'HEAD'");
    let server = Server::start(|_, head| {
        assert!(head.starts_with("HEAD / "), "{head}");
        Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_owned())
    });
    let run = loadgen(&["-R50", "-c1", "-t1", "-d1s", "-s", &path, &server.url()]);
    assert_eq!((run.count("completed"), run.error("read")), (run.count("sent"), 0), "{}", run.stderr);
    assert!(run.count("sent") >= 45 && run.count("sent") + run.count("unsent") == 50, "{}", run.stderr);
}

#[test]
fn a_million_per_second_leaves_what_it_cannot_send_counted() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R1M", "-c4", "-t2", "-d300ms", "-T", "5s", &server.url()]);
    assert_eq!(run.count("sent") + run.count("unsent"), 300_000);
    assert_eq!(run.count("completed"), run.count("sent"));
}

#[test]
fn warm_up_answers_are_recorded_apart() {
    let server = Server::start(|number, _| {
        if number < 10 { Act::After(Duration::from_millis(20), OK.to_owned()) } else { answer() }
    });
    let run = loadgen(&["-R50", "-c1", "-t1", "-d2s", "--warmup", "1s", &server.url()]);
    assert!(run.count("measured") < run.count("completed"));
    assert_eq!(run.json["response_time"]["count"], run.count("measured"));
    assert_eq!(run.json["warm_up_s"], 1.0);
    assert!(run.hlog.contains("Tag=warmup_response,0.000,1.000,"), "{}", run.hlog);
    assert!(run.hlog.contains("Tag=response,1.000,1.000,"), "{}", run.hlog);
    assert!(run.stdout.contains("Thread calibration: mean lat.:"));
}

#[test]
fn what_was_due_in_the_warm_up_is_not_measured_however_late_it_is_answered() {
    // The first answer takes until long after the warm-up, and what was due in it waits behind that.
    let server = Server::start(|number, _| {
        if number == 0 { Act::After(Duration::from_millis(1200), OK.to_owned()) } else { answer() }
    });
    let run = loadgen(&["-R20", "-c1", "-t1", "-d2s", "--warmup", "1s", &server.url()]);
    assert_eq!((run.count("completed"), run.count("measured")), (40, 20));
    assert_eq!(run.json["response_time"]["count"], 20);
    assert_eq!(run.json["send_lateness"]["count"], 20);
    // Those due from 1.0 s on waited 200 ms at most; the first one of all waited 1200 ms.
    assert!(run.percentile("response_time", "100") < 1_000_000, "{}", run.json["response_time"]["max_us"]);
    assert!(
        run.hlog.contains("Tag=warmup_response,1.000,1.000,"),
        "late answers of the warm-up: {}",
        run.hlog
    );
}

#[test]
fn a_run_whose_answers_are_all_of_the_warm_up_has_a_rate_and_an_exit_code_of_its_own() {
    let server = Server::start(|number, _| if number >= 20 { Act::Silence } else { answer() });
    let run = loadgen(&["-R100", "-c2", "-t1", "-d1s", "--warmup", "500ms", "-T", "300ms", &server.url()]);
    assert_eq!((run.code, run.count("completed"), run.count("measured")), (5, 20, 0), "{}", run.stderr);
    let told = "no answer was measured: all 20 are to requests of the warm-up, none to the 50 due behind it";
    assert_eq!(run.stderr.lines().last(), Some(told));
    assert!(run.stdout.contains("Requests/sec"), "{}", run.stdout);
    let server = Server::start(|number, _| if number >= 20 { Act::Silence } else { answer() });
    let load =
        ["-R100", "-c2", "-t1", "-d1s", "--warmup", "500ms", "-T", "300ms", "--max-unanswered", "100%"];
    let allowed = loadgen(&[&load[..], &[&server.url()]].concat());
    assert_eq!((allowed.code, allowed.count("measured")), (0, 0), "{}", allowed.stderr);
}

#[test]
fn a_part_in_which_nothing_is_due_before_the_end_says_so() {
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R2", "-c2", "-t1", "-d300ms", "--part", "2/2", &server.url()]);
    assert_eq!((run.code, run.count("sent"), server.requests()), (1, 0, 0));
    assert!(run.stderr.contains("no request was due before the end"), "{}", run.stderr);
}

#[test]
fn a_run_that_ends_before_anything_measured_is_due_does_not_fail() {
    let (_folder, path) = common::script(
        "local n = 0\nfunction response() n = n + 1; if n == 3 then wrk.thread:stop() end end",
    );
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R40", "-c1", "-t1", "-d10s", "--warmup", "9s", "-s", &path, &server.url()]);
    assert_eq!((run.code, run.count("completed"), run.count("measured")), (0, 3, 0), "{}", run.stderr);
    assert!(run.stdout.contains("Latency     -nan"), "{}", run.stdout);
}

#[test]
fn the_rate_counts_what_was_answered_before_the_end_and_the_text_stays_wrk2s() {
    // Ten connections, each answered at 0.55 s and, too late, at 1.1 s.
    let server = Server::start(|_, _| Act::After(Duration::from_millis(550), OK.to_owned()));
    let run = loadgen(&["--closed", "-c10", "-t1", "-d1s", &server.url()]);
    assert_eq!((run.count("completed"), run.count("completed_in_window")), (20, 10));
    let rate = run.json["achieved_rate_rps"].as_f64().unwrap();
    assert!((9.5..=10.0).contains(&rate), "rate={rate}");
    assert!(
        run.stdout.contains("Requests/sec:     20.0") || run.stdout.contains("Requests/sec:     19."),
        "{}",
        run.stdout
    );
}

#[test]
fn requests_without_an_answer_stand_in_the_percentiles_with_how_long_they_were_waited_for() {
    let server = Server::start(|number, _| if number >= 200 { Act::Silence } else { answer() });
    let args = ["-R1000", "-c4", "-t1", "-d1s", "-T", "300ms"];
    let run = loadgen(&[&args[..], &["--max-unanswered", "80%", &server.url()]].concat());
    let at_least = &run.json["response_time_at_least"];
    assert_eq!((&at_least["count"], &at_least["unanswered"]), (&1000.into(), &800.into()));
    // The last was due at 999 ms and waited for until 1300 ms; half of all were due before 0.6 s.
    let bounds: Vec<&str> =
        at_least["lower_bounds"].as_array().unwrap().iter().map(|bound| bound.as_str().unwrap()).collect();
    assert!(bounds.contains(&"50") && bounds.contains(&"99") && bounds.contains(&"100"), "{bounds:?}");
    assert!(!bounds.contains(&"10"), "a tenth of all were answered long before: {bounds:?}");
    assert!(run.percentile("response_time_at_least", "50") >= 500_000);
    assert!(run.percentile("response_time_at_least", "99") >= 1_000_000);
    assert!(run.stderr.contains("p50 ≥ ") && run.stderr.contains("p99 ≥ 1."), "{}", run.stderr);
    assert_eq!(run.code, 0, "80 % is allowed: {}", run.stderr);

    let server = Server::start(|number, _| if number >= 200 { Act::Silence } else { answer() });
    let strict = loadgen(&[&args[..], &["--max-unanswered", "0.5", &server.url()]].concat());
    assert_eq!(strict.code, 5, "{}", strict.stderr);
    assert!(strict.stderr.contains("800 = 0.8000 of those due, --max-unanswered 0.5"), "{}", strict.stderr);
}

#[test]
fn with_batch_latency_the_share_without_an_answer_is_still_that_of_requests() {
    let (_folder, path) = common::script("function request() return wrk.format() .. wrk.format() end");
    let server = Server::start(|number, _| if number >= 200 { Act::Silence } else { answer() });
    let options = ["-R1000", "-c4", "-t1", "-d1s", "-T", "300ms", "-B", "--max-unanswered", "80%"];
    let run = loadgen(&[&options[..], &["-s", &path, &server.url()]].concat());
    let at_least = &run.json["response_time_at_least"];
    assert_eq!((run.count("measured"), &at_least["unanswered"]), (200, &800.into()));
    assert!(run.json["response_time"]["count"].as_u64().unwrap() <= 100, "one for each batch");
    assert!((at_least["unanswered_share"].as_f64().unwrap() - 0.8).abs() < 1e-9, "{at_least}");
    assert_eq!(run.code, 0, "80 % is allowed: {}", run.stderr);
}

#[test]
fn requests_lost_with_their_connection_are_without_an_answer_too() {
    let server = Server::start(|number, _| if number % 10 == 9 { Act::Close } else { answer() });
    let run = loadgen(&["-R100", "-c2", "-t1", "-d1s", "--max-unanswered", "0", &server.url()]);
    let at_least = &run.json["response_time_at_least"];
    assert_eq!(at_least["count"], 100);
    assert_eq!(at_least["unanswered"].as_u64().unwrap(), run.count("lost") + run.count("unsent"));
    assert_eq!(run.code, 5, "{}", run.stderr);
}

#[test]
fn where_everything_was_answered_the_bounds_are_the_response_times() {
    let server = Server::start(|_, _| answer());
    // One request for each connection: none can be kept waiting until the end.
    let run = loadgen(&["-R10", "-c10", "-t1", "-d1s", "--max-unanswered", "0", &server.url()]);
    let (exact, at_least) = (&run.json["response_time"], &run.json["response_time_at_least"]);
    assert_eq!((run.code, &at_least["histogram_v2_base64"]), (0, &exact["histogram_v2_base64"]));
    assert_eq!(at_least["lower_bounds"].as_array().unwrap().len(), 0);
    assert!(!run.stderr.contains("without an answer"), "{}", run.stderr);
}

#[test]
fn an_interrupted_run_prints_what_was_measured() {
    let server = Server::start(|_, _| answer());
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("r.json");
        let before = server.requests();
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R100", "-c1", "-t1", "-d60s", "--json", json.to_str().unwrap(), &server.url()])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        while server.requests() < before + 5 {
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(String::from_utf8_lossy(&output.stdout).contains("requests in"));
        assert!(String::from_utf8_lossy(&output.stderr).contains("note: interrupted after"));
        assert!(json.exists());
    }
}

#[test]
fn a_closed_terminal_does_not_end_a_run_under_nohup() {
    let server = Server::start(|_, _| answer());
    let child = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_loadgen")])
        .args(["-R100", "-c1", "-t1", "-d1s", &server.url()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while server.requests() < 5 {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.contains("interrupted")), (Some(0), false), "{stderr}");
}

/// timeout(1) signals its child and then the group: one end, as two signals. That of a terminal is one, too.
#[test]
fn two_signals_at_once_are_one_end_and_a_later_one_ends_the_program() {
    let server = Server::start(|number, _| if number < 20 { answer() } else { Act::Silence });
    let cases = [(Signal::TERM, 1, true), (Signal::TERM, 600, false), (Signal::HUP, 600, true)];
    for (signal, pause_ms, prints) in cases {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R100", "-c1", "-t1", "-d60s", "-T", "60s", &server.url()])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        for _ in 0..2 {
            kill_process(Pid::from_child(&child), signal).unwrap();
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + signal.as_raw()));
        let has_printed = String::from_utf8_lossy(&output.stdout).contains("requests in");
        assert_eq!(has_printed, prints, "{signal:?}, {pause_ms} ms");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(told.contains("interrupted a second time"), !prints, "{told}");
    }
}

#[test]
fn before_anything_is_opened_a_signal_ends_the_program_at_once_with_a_line() {
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", deaf.local_addr().unwrap());
    // It waits for a handshake, or for its list.
    for waits in [&["-T", "60s"][..], &["--targets", "-"]] {
        let began = std::time::Instant::now();
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R100", "-c1", "-t1", "-d1s", &url])
            .args(waits)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{waits:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told, "interrupted before the run began: nothing was measured\n", "{waits:?}");
        assert!(began.elapsed() < Duration::from_secs(40), "its timeout is a minute");
    }
}

/// The signal comes while it starts, looks whether its files can be written, connects, or measures.
#[test]
fn an_early_signal_leaves_a_line_or_a_result_and_no_half_of_a_file() {
    let server = Server::start(|_, _| answer());
    let early = |after_us: u64| {
        let folder = tempfile::tempdir().unwrap();
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R100", "-c2", "-t2", "-d60s", &server.url(), "--json", "r.json", "--hlog", "r.hlog"])
            .current_dir(&folder)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(after_us));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
        files.sort();
        match output.status.code() {
            // The program itself had not begun.
            None => assert_eq!((told.as_str(), files.len()), ("", 0)),
            Some(143) if told.starts_with("interrupted before") => assert_eq!(files.len(), 0, "{files:?}"),
            Some(143) => {
                assert!(told.starts_with("note: interrupted after"), "{told}");
                assert_eq!(files, ["r.hlog", "r.json"]);
                let json = std::fs::read(folder.path().join("r.json")).unwrap();
                serde_json::from_slice::<serde_json::Value>(&json).unwrap();
            }
            code => panic!("{code:?} {told}"),
        }
    };
    let times = std::sync::Mutex::new((0..100).map(|step| step * 200));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(after_us) = times.lock().unwrap().next() else { break };
                    early(after_us);
                }
            });
        }
    });
}

#[test]
fn an_interrupted_run_whose_results_cannot_be_kept_says_so() {
    let server = Server::start(|_, _| answer());
    let (_folder, path) = common::script("function done() error('in done') end");
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R100", "-c1", "-t1", "-d60s", "--json", "/dev/full", "-s", &path, &server.url()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while server.requests() < 5 {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    for told in ["script.lua:1: in done\n", "/dev/full: cannot write: No space left"] {
        assert!(stderr.contains(told), "{stderr}");
    }
}

#[test]
fn a_full_disk_is_told_in_one_line_whichever_file_is_being_written() {
    let server = Server::start(|_, _| answer());
    // So many intervals that the log is written before its end.
    for option in [&["--json"][..], &["--slowest"], &["--interval", "10ms", "--hlog"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R500", "-c2", "-t1", "-d1s"])
            .args(option)
            .args(["/dev/full", &server.url()])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let told = "/dev/full: cannot write: No space left on device (os error 28)";
        assert!(stderr.lines().any(|line| line == told), "{option:?}: {stderr}");
    }
}

#[test]
fn a_file_that_may_not_become_as_large_is_told_and_nothing_of_it_is_left() {
    let server = Server::start(|_, _| answer());
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_loadgen")])
        .args(["-R100", "-c1", "-t1", "-d100ms", "--json", "r.json", &server.url()])
        .current_dir(&folder)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("r.json: cannot write: File too large"), "{stderr}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn every_limit_that_is_exceeded_is_told_and_the_first_is_the_exit_code() {
    let server = Server::start(|number, _| if number % 2 == 0 { Act::Close } else { answer() });
    let limits = ["--expect", "299", "--max-lateness", "1us", "--max-unanswered", "1%", "--spin", "off"];
    let run = loadgen(&[&["-R100", "-c2", "-t1", "-d500ms"][..], &limits, &[&server.url()]].concat());
    assert_eq!(run.code, 3, "{}", run.stderr);
    for told in ["unexpected answers: ", "sent too late: ", "too many requests without an answer: "] {
        assert!(run.stderr.contains(told), "{told}: {}", run.stderr);
    }
}

#[test]
fn an_interrupted_run_awaits_answers_for_two_seconds_whatever_the_timeout() {
    // Interrupted while requests are sent, and when only answers are awaited any more.
    for (duration, sleep_ms) in [("60s", 0), ("100ms", 1500)] {
        let server = Server::start(|_, _| Act::Silence);
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("r.json");
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["-R100", "-c1", "-t1", "-d", duration, "-T", "300s"])
            .args(["--json", json.to_str().unwrap(), &server.url()])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        while server.requests() < 1 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(sleep_ms));
        let began = std::time::Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{duration}: {:?}", began.elapsed());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{duration}: {stderr}");
        let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(result["counts"]["in_flight_at_end"], 1, "{duration}: {stderr}");
        assert_eq!(result["errors"]["timeout"], 0, "it was not waited for as long: {duration}: {stderr}");
    }
}

#[test]
fn headers_from_the_command_line_are_sent() {
    let server = Server::start(|_, head| {
        let right = head.contains("X-One: 1\r\n")
            && head.contains("Host: other\r\n")
            && head.matches("Host:").count() == 1;
        Act::Answer(if right {
            OK.to_owned()
        } else {
            "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n".to_owned()
        })
    });
    let run = loadgen(&[
        "-R20",
        "-c1",
        "-t1",
        "-d500ms",
        "-H",
        "X-One: 1",
        "-H",
        "Host: other",
        "--expect",
        "200",
        &server.url(),
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn a_file_that_can_no_longer_be_written_is_named_behind_what_was_measured() {
    let server = Server::start(|_, _| answer());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone").join("r.json");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R20", "-c1", "-t1", "-d1s", "--json", path.to_str().unwrap(), &server.url()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while server.requests() < 1 {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::fs::remove_dir(path.parent().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gone/r.json: cannot write"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Requests/sec"));
}

#[test]
fn spin_off_does_not_spin_and_a_fixed_spin_is_what_was_asked_for() {
    let server = Server::start(|_, _| answer());
    let run = |spin: &str| {
        let run = loadgen(&["-R5000", "-c8", "-t1", "-d1s", "--spin", spin, &server.url()]);
        assert_eq!(run.json["threads"][0]["spin_given_up"], false);
        run.json["threads"][0].clone()
    };
    let off = run("off");
    assert_eq!((off["spun_s"].as_f64(), off["spin_us"].as_f64()), (Some(0.0), Some(0.0)), "{off}");
    assert_eq!(run("300us")["spin_us"], 300.0);
}

#[test]
fn with_spin_off_a_hundred_requests_take_little_cpu_however_it_is_named() {
    // A wait that is busy unseen would be most of this time.
    let server = Server::start(|_, _| answer());
    let run = loadgen(&["-R100", "-c8", "-t1", "-d1s", "--spin", "off", &server.url()]);
    let cpu_s = run.json["threads"][0]["cpu_s"].as_f64().unwrap();
    assert!(run.count("completed") > 50, "{}", run.stderr);
    assert!(0.0 < cpu_s && cpu_s < 0.3, "{}", run.json["threads"]);
}

#[test]
fn a_connection_that_opens_while_nothing_else_is_under_way_is_seen_in_a_busy_wait() {
    // The first answer ends its connection after 100 ms; the second request is due at 1 s, and until then all
    // of the time is waited busily.
    let server = Server::start(|number, _| match number {
        0 => {
            std::thread::sleep(Duration::from_millis(100));
            Act::AnswerAndClose(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned(),
            )
        }
        _ => answer(),
    });
    let run = loadgen(&["-R1", "-c2", "-t1", "-d3s", "--spin", "1500ms", &server.url()]);
    assert_eq!((run.count("completed"), run.json["reconnecting"]["reopened"].as_u64()), (3, Some(1)));
    let longest_us = run.json["connect_time"]["max_us"].as_u64().unwrap();
    assert!(longest_us < 500_000, "it was seen when the next was due: {longest_us} us");
}

#[test]
fn with_dispatch_any_nothing_waits_behind_one_slow_answer() {
    let slow = || {
        Server::start(|number, _| {
            if number == 3 { Act::After(Duration::from_millis(700), OK.to_owned()) } else { answer() }
        })
    };
    let late = |dispatch: &str| {
        let run = loadgen(&["-R100", "-c4", "-t1", "-d1s", "--dispatch", dispatch, &slow().url()]);
        assert_eq!((run.code, run.count("sent") + run.count("unsent")), (0, 100), "{}", run.stderr);
        assert_eq!(run.count("completed"), run.count("sent"));
        run.percentile("send_lateness", "90")
    };
    // Of 100 requests a quarter is the slow connection's own: 17 are due while it waits, most of them for
    // over 100 ms.
    assert!(late("fixed") > 100_000);
    assert!(late("any") < 100_000, "any other connection sends them");
}

#[test]
fn with_dispatch_any_what_is_due_while_none_is_free_waits_and_is_counted() {
    let server = Server::start(|_, _| Act::After(Duration::from_millis(100), OK.to_owned()));
    let run = loadgen(&[
        "-R100",
        "-c5",
        "-t2",
        "-d1s",
        "--dispatch",
        "any",
        "--arrivals",
        "poisson",
        &server.url(),
    ]);
    let fixed = loadgen(&[
        "-R100",
        "-c5",
        "-t2",
        "-d1s",
        "--dispatch",
        "any",
        "--arrivals",
        "poisson",
        &server.url(),
    ]);
    assert_eq!(run.count("completed"), run.count("sent"));
    assert!(
        (20..=60).contains(&run.count("sent")),
        "five at a time, ten times a second: {}",
        run.count("sent")
    );
    assert!(run.count("unsent") > 20);
    assert_eq!(
        run.count("sent") + run.count("unsent"),
        fixed.count("sent") + fixed.count("unsent"),
        "the same seed"
    );
    let lost = Server::start(|number, _| if number % 10 == 9 { Act::Close } else { answer() });
    let run = loadgen(&["-R100", "-c3", "-t1", "-d1s", "--dispatch", "any", &lost.url()]);
    assert_eq!(run.count("sent") + run.count("unsent"), 100);
    assert_eq!(run.count("sent"), run.count("completed") + run.count("lost"), "{}", run.stderr);
    assert!(run.count("lost") >= 5);
}
