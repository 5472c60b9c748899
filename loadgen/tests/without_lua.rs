//! Requests without a script: `-m`, `--body`, `--targets`.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Act, OK, Run, Server, loadgen, script};

/// Runs against a server and returns what it saw: "METHOD path length".
fn run(args: &[&str]) -> (Run, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = seen.clone();
    let server = Server::start(move |_, head| {
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("-");
        let words: Vec<&str> = head.split(' ').take(2).collect();
        requests.lock().unwrap().push(format!("{} {length}", words.join(" ")));
        let get = head.starts_with("HEAD");
        Act::Answer(if get {
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".to_owned()
        } else {
            OK.to_owned()
        })
    });
    let args: Vec<String> =
        args.iter().map(|arg| arg.replace("SERVER", &format!("127.0.0.1:{}", server.port))).collect();
    let mut words = vec!["-R40", "-d500ms"];
    words.extend(args.iter().map(String::as_str));
    let url = format!("{}index?x=1", server.url());
    words.push(&url);
    let run = loadgen(&words);
    let seen = seen.lock().unwrap().clone();
    (run, seen)
}

#[test]
fn method_and_body_are_typed_or_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body.bin");
    std::fs::write(&file, b"\0\r\n\r\nbinary\xff").unwrap();
    let from_file = format!("@{}", file.display());
    for (args, seen) in [
        (&["-m", "DELETE"][..], "DELETE /index?x=1 -"),
        (&["--body", "hello"], "POST /index?x=1 5"),
        (&["-mPUT", "--body", &from_file], "PUT /index?x=1 12"),
        (&["--method=HEAD"], "HEAD /index?x=1 -"),
        (&["-m", "PUT", "--body", ""], "PUT /index?x=1 0"),
    ] {
        let (run, requests) = run(&[&["-c2", "-t1"], args].concat());
        assert_eq!(run.code, 0, "{args:?} {}", run.stderr);
        assert!(!requests.is_empty() && requests.iter().all(|one| one == seen), "{requests:?}");
    }
}

#[test]
fn a_script_begins_with_the_method_and_body_that_were_typed() {
    let (_folder, path) =
        script("local n = 0\nfunction request() n = n + 1; return wrk.format(n > 10 and 'PATCH' or nil) end");
    let (run, requests) = run(&["-c2", "-t1", "-s", &path, "-m", "PUT", "--body", "abc"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(requests[0], "PUT /index?x=1 3");
    assert_eq!(requests.last().unwrap(), "PATCH /index?x=1 3");
}

#[test]
fn targets_are_sent_in_turn_with_their_own_methods_and_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("targets.txt");
    std::fs::write(folder.path().join("a body.json"), "{}\n").unwrap();
    // The server's port is known when it runs: this list has paths alone.
    std::fs::write(
        &list,
        "# comment\n\nPUT /v0/entity?id=1 a body.json\n  GET\t/v0/entity?id=1\r\nHEAD /head\n",
    )
    .unwrap();
    let (run, requests) = run(&["-c1", "-t1", "--targets", list.to_str().unwrap(), "--sample", "100"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let round = ["PUT /v0/entity?id=1 3", "GET /v0/entity?id=1 -", "HEAD /head -"];
    assert!(
        requests.len() > 6 && requests.iter().zip(round.iter().cycle()).all(|(one, other)| one == other),
        "{requests:?}"
    );
    let bodies: u64 =
        run.json["sample"].as_array().unwrap().iter().map(|one| one["body_bytes"].as_u64().unwrap()).sum();
    assert_eq!(bodies, 3 * requests.len().div_ceil(3) as u64);
}

#[test]
fn targets_come_from_standard_input_and_threads_share_them() {
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let mut process = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R100", "-d1s", "-c4", "-t2", "--targets", "-", "--sample", "1000", "--json"])
        .args([&json, Path::new(&server.url())])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = format!("GET {}first\nGET /second\nGET /third\n", server.url());
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(process.wait().unwrap().success());
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let sample = json["sample"].as_array().unwrap();
    let of = |target: &str| sample.iter().filter(|one| one["target"] == target).count();
    let counts = ["/first", "/second", "/third"].map(of);
    let unsent = json["counts"]["unsent"].as_u64().unwrap() as usize;
    assert_eq!((counts.iter().sum::<usize>(), sample.len() + unsent), (sample.len(), 100));
    assert!(counts.iter().all(|&count| count <= 34), "{counts:?}");
}

/// How often each of so many lines, `/0` and so on, came to a server that takes its time for `/0`.
fn counts_of_lines(lines: usize, options: &[&str]) -> (Run, Vec<u64>) {
    let seen = Arc::new(Mutex::new(vec![0; lines]));
    let counts = seen.clone();
    let server = Server::start(move |_, head| {
        let line: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        counts.lock().unwrap()[line] += 1;
        if line == 0 {
            Act::After(Duration::from_millis(5), OK.to_owned())
        } else {
            Act::Answer(OK.to_owned())
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("targets.txt");
    std::fs::write(&list, (0..lines).map(|line| format!("GET /{line}\n")).collect::<String>()).unwrap();
    let run = loadgen(&[options, &["--targets", list.to_str().unwrap(), &server.url()]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let counts = seen.lock().unwrap().clone();
    (run, counts)
}

#[test]
fn at_a_rate_each_line_is_due_equally_often_whatever_the_numbers_of_lines_connections_and_threads() {
    for (lines, connections, threads) in [(2, "3", "2"), (4, "10", "4")] {
        for dispatch in ["fixed", "any"] {
            let options = ["-R200", "-d1s", "--dispatch", dispatch, "-c", connections, "-t", threads];
            let (run, counts) = counts_of_lines(lines, &options);
            assert_eq!(counts.iter().sum::<u64>() + run.count("unsent"), 200, "{counts:?}");
            assert!(counts.iter().all(|&count| count <= 200 / lines as u64), "{dispatch} {counts:?}");
        }
    }
}

#[test]
fn of_requests_that_come_at_random_each_line_is_sent_equally_often() {
    for dispatch in ["fixed", "any"] {
        let options = ["-R200", "-d1s", "--arrivals", "poisson", "--dispatch", dispatch, "-c4", "-t1"];
        let (_, counts) = counts_of_lines(4, &options);
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 0 && most - least <= 1, "{dispatch} {counts:?}");
    }
}

#[test]
fn in_a_closed_loop_each_thread_sends_all_lines_however_slowly_one_is_answered() {
    let options = ["--closed", "--requests", "40", "-c4", "-t2", "--sample", "40"];
    let (run, counts) = counts_of_lines(2, &options);
    assert_eq!(counts, [20, 20]);
    let sample = run.json["sample"].as_array().unwrap();
    for (thread, target) in [(0, "/0"), (0, "/1"), (1, "/0"), (1, "/1")] {
        let own = sample.iter().filter(|one| one["thread"] == thread && one["target"] == target).count();
        assert_eq!(own, 10, "{thread} {target}: {sample:?}");
    }
}

#[test]
fn what_is_wrong_with_a_list_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("targets.txt");
    let name = list.to_str().unwrap();
    for (text, told) in [
        ("GET /\n\nGET\n", ":3: no method and URL: \"GET\"; example: PUT /v0/entity?id=1 body.bin"),
        ("G@T /\n", ":1: no method and URL"),
        ("GET http://elsewhere.example/\n", ":1: another server than that of http://127.0.0.1:"),
        ("GET ftp://h/\n", ":1: invalid URL: ftp://h/"),
        ("PUT / nothing.bin\n", "nothing.bin: cannot read the body: No such file"),
        ("# nothing\n", ": no targets"),
    ] {
        std::fs::write(&list, text).unwrap();
        let (run, requests) = run(&["--targets", name]);
        assert_eq!((run.code, requests.len()), (1, 0));
        assert!(
            run.stderr.contains(told) && run.stderr.starts_with(name) && run.stderr.lines().count() == 1,
            "{}",
            run.stderr
        );
    }
    let (run, _) = run(&["--body", "@/nowhere/x"]);
    assert!(run.stderr.starts_with("/nowhere/x: cannot read the body: No such file"), "{}", run.stderr);
}

#[test]
fn two_servers_that_are_loaded_in_turn_get_the_same_list() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("targets.txt");
    std::fs::write(folder.path().join("body"), "abc").unwrap();
    std::fs::write(&list, "PUT /a body\nGET /b\n").unwrap();
    let seen = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let servers = seen.clone().map(|seen| {
        Server::start(move |_, head| {
            seen.lock().unwrap().push(head.split(" HTTP").next().unwrap().to_owned());
            Act::Answer(OK.to_owned())
        })
    });
    let urls = [&servers[0], &servers[1]].map(Server::url);
    let list = list.to_str().unwrap();
    let args = [
        "-R100",
        "-c1",
        "-t1",
        "-d1s",
        "--slice",
        "100ms",
        "--targets",
        list,
        "--alternate",
        &urls[1],
        &urls[0],
    ];
    let run = loadgen(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for seen in seen {
        let seen = seen.lock().unwrap();
        assert!(
            seen.len() > 4
                && seen.iter().zip(["PUT /a", "GET /b"].iter().cycle()).all(|(one, other)| one == other),
            "{seen:?}"
        );
    }
}
