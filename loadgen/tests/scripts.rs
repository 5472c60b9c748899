//! Scripts as they are found in the wild, run unchanged.

mod common;

use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Act, OK, Run, Server, loadgen, script};
use rustix::process::{Pid, Signal, kill_process};

/// Runs a script and returns the heads of the requests that the server saw.
fn run(source: &str, more: &[&str]) -> (Run, Vec<String>) {
    run_with(source, more, |_| OK.to_owned())
}

fn run_with(
    source: &str,
    more: &[&str],
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (Run, Vec<String>) {
    let (folder, path) = script(source);
    std::fs::write(folder.path().join("beside.lua"), "return { path = '/from-beside' }").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    let server = Server::start(move |_, head| {
        heads.lock().unwrap().push(head.to_owned());
        Act::Answer(answer(head))
    });
    let url = format!("{}index?x=1", server.url());
    let mut args = vec!["-c2", "-t2", "-s", path.as_str(), url.as_str()];
    let rate = ["-R40", "-d500ms"];
    args.splice(0..0, rate);
    args.extend_from_slice(more);
    let run = loadgen(&args);
    let heads = seen.lock().unwrap().clone();
    (run, heads)
}

fn paths(heads: &[String]) -> Vec<&str> {
    heads.iter().map(|head| head.split(' ').nth(1).unwrap()).collect()
}

#[test]
fn counters_in_globals_make_different_paths() {
    let (run, heads) = run(
        "counter = 0\nrequest = function() path = '/' .. counter; counter = counter + 1; return \
            wrk.format(nil, path) end",
        &[],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let paths = paths(&heads);
    assert!((0..5).all(|n| paths.iter().filter(|path| **path == format!("/{n}")).count() == 2), "{paths:?}");
}

#[test]
fn request_is_called_exactly_as_often_as_requests_are_sent() {
    let source = "local n = 0; threads = {}\n\
        function setup(t) table.insert(threads, t) end\n\
        function request() n = n + 1; calls = n; return wrk.format() end\n\
        function done() local sum = 0; for _, t in ipairs(threads) do sum = sum + t:get('calls') end; \
        print('calls ' .. sum) end";
    let (run, heads) = run(source, &[]);
    assert!(run.stdout.ends_with(&format!("calls {}\n", heads.len())), "{}", run.stdout);
}

#[test]
fn wrk_fields_set_the_default_request() {
    let source = "wrk.method = 'POST'\nwrk.body = 'foo=bar&baz=quux'\n\
        wrk.headers['Content-Type'] = 'application/x-www-form-urlencoded'";
    let (run, heads) = run(source, &["-H", "X-Own: yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let head = &heads[0];
    assert!(head.starts_with("POST /index?x=1 HTTP/1.1\r\n"), "{head}");
    for line in [
        "Content-Length: 16\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "X-Own: yes\r\n",
        "Host: 127.0.0.1:",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
}

#[test]
fn init_gets_the_url_and_the_scripts_own_arguments() {
    let (run, heads) = run(
        "function init(args) wrk.path = '/' .. args[1] .. #args .. (args[0]:match('index') or '') end",
        &["--", "a", "b"],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(paths(&heads).iter().all(|path| *path == "/a2index"), "{heads:?}");
}

#[test]
fn an_init_that_calls_wrk_init_as_older_scripts_do_works() {
    let (run, heads) = run(
        "init = function(args) wrk.init(args); req = wrk.format(nil, '/old') end\n\
            request = function() return req end",
        &[],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(heads[0].contains("Host: 127.0.0.1:"), "{heads:?}");
}

#[test]
fn a_string_of_several_requests_is_a_pipelined_batch() {
    let source = "init = function(args) local r = {}; for i = 1, 3 do r[i] = wrk.format(nil, '/' .. i) end; \
        req = table.concat(r) end\n\
        request = function() return req end";
    let (run, heads) = run(source, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(heads.len() % 3, 0);
    assert_eq!(run.count("completed"), heads.len() as u64);
    // 20 are due on two connections; whole batches reach at most two more on each.
    assert!((20..=24).contains(&(run.count("sent") + run.count("unsent"))), "sent={}", run.count("sent"));
    assert_eq!(run.json["response_time"]["count"], run.count("completed"));
}

#[test]
fn batch_latency_records_only_the_last_answer_of_a_batch() {
    let source = "request = function() return wrk.format(nil, '/a') .. wrk.format(nil, '/b') end";
    let (run, _) = run(source, &["-B"]);
    assert_eq!(run.json["response_time"]["count"].as_u64().unwrap() * 2, run.count("completed"));
}

#[test]
fn responses_come_with_status_headers_and_body() {
    let source = "function response(status, headers, body)\n\
        if status == 201 and headers['X-Token'] == 'secret' and body == 'hello' then path = '/with-token' \
        end end\n\
        path = '/login'\nfunction request() return wrk.format('GET', path) end";
    let (run, heads) = run_with(source, &[], |_| {
        "HTTP/1.1 201 Created\r\nX-Token: secret\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n\
            3\r\nllo\r\n0\r\n\r\n"
            .to_owned()
    });
    assert_eq!(run.code, 0, "{}", run.stderr);
    let paths = paths(&heads);
    assert_eq!(paths.iter().filter(|path| **path == "/login").count(), 2, "{paths:?}");
    assert!(paths.contains(&"/with-token"));
}

#[test]
fn tables_go_through_thread_set_and_get_with_keys_and_values_in_place() {
    let source = "threads = {}\n\
        function setup(thread) thread:set('config', { name = 'x', list = { 10, 20, 30 }, on = true }); \
        table.insert(threads, thread) end\n\
        function init() seen = { count = 0, sum = config.list[1] + config.list[2] + config.list[3], name = \
        config.name, on = config.on } end\n\
        function request() seen.count = seen.count + 1; return wrk.format() end\n\
        function done() for _, t in ipairs(threads) do local s = t:get('seen'); print(s.name, s.sum, s.on, \
        s.count > 0) end end";
    let (run, _) = run(source, &[]);
    assert!(run.stdout.ends_with("x\t60\ttrue\ttrue\nx\t60\ttrue\ttrue\n"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn a_thread_may_stop_itself() {
    let source = "local n = 0\nfunction response() n = n + 1; if n == 3 then wrk.thread:stop() end end";
    let (run, heads) = run(source, &[]);
    assert_eq!((run.code, heads.len()), (0, 6), "{}", run.stderr);
}

#[test]
fn addresses_can_be_looked_up_tried_and_chosen() {
    let source = "local addrs\nfunction setup(thread)\n\
        if not addrs then addrs = wrk.lookup(wrk.host, wrk.port or 'http'); for i = #addrs, 1, -1 do\n\
        if not wrk.connect(addrs[i]) then table.remove(addrs, i) end end end\n\
        thread.addr = addrs[math.random(#addrs)] end\n\
        function init() print('thread addr: ' .. tostring(wrk.thread.addr)) end";
    let (run, _) = run(source, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout.matches("thread addr: 127.0.0.1:").count(), 2, "{}", run.stdout);
    assert!(run.stdout.find("thread addr").unwrap() < run.stdout.find("Running").unwrap());
}

#[test]
fn modules_beside_the_script_are_found() {
    let (run, heads) = run("local beside = require 'beside'\nwrk.path = beside.path", &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(paths(&heads)[0], "/from-beside");
}

#[test]
fn done_sees_summary_latency_and_requests() {
    let source = "function done(summary, latency, requests)\n\
        print(string.format('%d %d %d/%d/%d/%d/%d', summary.requests, summary.duration, \
        summary.errors.connect, summary.errors.read,\n\
        summary.errors.write, summary.errors.status, summary.errors.timeout))\n\
        print(latency.min <= latency.mean and latency.mean <= latency.max and latency.stdev >= 0)\n\
        for _, p in pairs({ 50, 99.999 }) do \
        io.write(string.format('%g%%,%d\\n', p, latency:percentile(p))) end\n\
        local value, count = latency(1); print(value <= latency.max, count >= 1, #latency >= 1)\n\
        print(wrk.time_us() > 1e15) end";
    let (run, _) = run(source, &["--", "x"]);
    let own: Vec<&str> =
        run.stdout.lines().skip_while(|line| !line.starts_with("Transfer/sec")).skip(1).collect();
    assert_eq!(
        own[0],
        format!("{} 500000 0/0/0/0/0", run.count("completed")),
        "{}{}",
        run.stdout,
        run.stderr
    );
    assert_eq!(own[1], "true");
    // The same digits as JSON's, for one is made of the other's histogram.
    assert_eq!(own[2], format!("50%,{}", run.percentile("response_time", "50")));
    assert_eq!(own[3], format!("99.999%,{}", run.percentile("response_time", "99.999")));
    assert_eq!(own[4..], ["true\ttrue\ttrue", "true"]);
}

#[test]
fn a_script_without_request_sends_the_plain_one() {
    let (run, heads) = run("-- nothing at all", &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(heads[0].starts_with("GET /index?x=1 HTTP/1.1\r\n"), "{heads:?}");
}

#[test]
fn an_error_in_the_middle_of_a_run_names_file_and_line_and_prints_what_was_measured() {
    let (run, _) = run(
        "local n = 0\nfunction request()\n  n = n + 1\n  if n > 5 then return wrk.nothing.at_all \
            end\n  return wrk.format()\nend",
        &[],
    );
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("script.lua:4: attempt to index"), "{}", run.stderr);
    assert!(run.stdout.contains("Requests/sec:"), "{}", run.stdout);
    assert!(run.count("completed") >= 5);
}

#[test]
fn an_error_while_others_are_due_at_the_end_ends_the_run_too() {
    // The second request takes until behind the end, when one is due on every other connection.
    let (_folder, path) = script(
        "local n = 0\nfunction request()\n  n = n + 1\n  if n == 2 then\n    local late = os.clock() + 0.7\n\
            while os.clock() < late do end\n    error('too late')\n  end\n  return wrk.format()\nend",
    );
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["-R100", "-c10", "-t1", "-d500ms", "-s", &path, &server.url()]);
    assert_eq!(run.code, 1, "124 if it hangs: {}", run.stderr);
    assert!(run.stderr.contains("script.lua:7: too late"), "{}", run.stderr);
}

#[test]
fn an_error_ends_the_run_of_all_threads_whatever_the_timeout() {
    // The first request of the first thread is never answered.
    let is_first = |head: &str| head.starts_with("GET /1/1 ");
    let server = Server::start(move |_, head| match is_first(head) {
        true => Act::Silence,
        false => Act::Answer(OK.to_owned()),
    });
    let (_folder, path) = script(
        "local threads = 0\nfunction setup(thread) threads = threads + 1; thread:set('number', threads) end\n\
            local n = 0\nfunction request()\n  n = n + 1\n\
            if number == 1 and n == 5 then error('fifth') end\n\
            return wrk.format(nil, '/' .. number .. '/' .. n)\nend",
    );
    for pacing in ["-R100", "--closed"] {
        let run = loadgen(&[pacing, "-c4", "-t2", "-d90s", "-T", "90s", "-s", &path, &server.url()]);
        assert_eq!(run.code, 1, "124 if it goes on: {}", run.stderr);
        assert!(run.stderr.contains(": fifth"), "{}", run.stderr);
        assert_eq!(run.json["threads"][0]["sent"], 4, "{pacing}");
    }
}

#[test]
fn errors_in_every_other_place_name_file_and_line_too() {
    for (source, place) in [
        ("x = = 1", "script.lua:1:"),
        ("error('top')", "script.lua:1: top"),
        ("\nfunction setup(t) error('in setup') end", "script.lua:2: in setup"),
        ("\nfunction setup(t) t:set('f', print) end", "script.lua:2: a function cannot go to another thread"),
        ("\n\nfunction init() error('in init') end", "script.lua:3: in init"),
        ("\nfunction response() error('in response') end", "script.lua:2: in response"),
        ("function request() return 7 end", "request() must return a string"),
        ("function request() return 'GET /' end", "no blank line"),
        ("\nfunction done() local x = nil + 1 end", "script.lua:2: attempt to perform arithmetic"),
    ] {
        let (run, _) = run(source, &[]);
        assert_eq!(run.code, 1, "{source}: {}", run.stderr);
        assert!(run.stderr.contains(place), "{source}: {}", run.stderr);
    }
}

#[test]
fn of_a_script_that_fails_before_the_start_nothing_is_said_of_connections_that_are_not_open() {
    let (_folder, path) = script("function delay() error('called') end");
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["--closed", "-c8", "-t4", "-d500ms", "-s", &path, &server.url()]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("script.lua:1: called"), "{}", run.stderr);
    assert!(!run.stderr.contains("were not open"), "{}", run.stderr);
}

#[test]
fn every_error_of_a_script_is_one_line_that_begins_with_its_path() {
    for (source, place) in [
        ("function request() return 5 end", ": request() must return a string, not a number"),
        ("function request() end", ": request() must return a string, not nil"),
        ("function request() return 'GET /' end", ": request() returned no request: "),
        ("wrk = nil", ": wrk: nil is no table"),
        ("function init() wrk = nil end", ": wrk: nil is no table"),
        ("function setup(t) t.foo = 1 end", ": setup(): attempt to set an unknown field 'foo'"),
        ("function setup(t) t.addr = 5 end", ": bad argument #2 to `Thread.addr`"),
        ("setup = 5", ": setup: a number is no function"),
        ("function f() return 1 + f() end\nfunction request() return f() end", "stack overflow"),
        ("error({ code = 5 })", ": an error without a text: table: 0x"),
        ("function request() error() end", ": request(): an error without a text: nil"),
        ("function done() error({}) end", ": done(): an error without a text: table: 0x"),
        (
            "function wrk.resolve() wrk.addrs = { '127.0.0.1' } end",
            ": wrk.addrs[1]: a string is no address as wrk.lookup finds them",
        ),
        ("function wrk.resolve() wrk.addrs = {} end", ": wrk.resolve left no address in wrk.addrs"),
        ("wrk.resolve = 5", ": wrk.resolve: a number is no function"),
        ("wrk.headers = nil", ": wrk.format: attempt to index field 'headers' (a nil value)"),
        ("wrk.headers = 5", ": wrk.headers: a number is no table"),
        ("wrk.format = nil", ": wrk.format: nil is no function"),
        ("wrk.host = {}", ": wrk.host: a table is no String"),
        ("wrk.body = {}", ": wrk.format: the body must be text, a number or a boolean, not a table"),
        ("wrk.method = nil", ": wrk.format: the method must be text, a number or a boolean, not a nil"),
    ] {
        let (run, _) = run(source, &[]);
        assert_eq!(run.code, 1, "{source}: {}", run.stderr);
        let told = run.stderr.lines().find(|line| !line.starts_with("note: ")).unwrap();
        assert!(told.contains("script.lua:") && told.contains(place), "{source}: {told}");
        assert!(told.starts_with('/') && !told.contains("wrk:2"), "{source}: {told}");
        assert_eq!(run.stderr.lines().filter(|line| !line.starts_with("note: ")).count(), 1, "{told}");
    }
}

/// Runs the program in a shell, which gives it a script that can be read only once.
fn run_in_shell(command: &str) -> (Output, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    let server = Server::start(move |_, head| {
        heads.lock().unwrap().push(head.to_owned());
        Act::Answer(OK.to_owned())
    });
    let command = command.replace("LOADGEN", env!("CARGO_BIN_EXE_loadgen")).replace("URL", &server.url());
    let output = Command::new("timeout").args(["-k1", "20", "bash", "-c", &command]).output().unwrap();
    let heads = seen.lock().unwrap().clone();
    (output, heads)
}

#[test]
fn a_script_may_be_a_pipe_which_can_be_read_only_once() {
    let script = "function request() return wrk.format(\"PUT\", \"/x\") end";
    for command in [
        format!("LOADGEN -R20 -c2 -t2 -d300ms -s <(echo '{script}') URL"),
        format!("echo '{script}' | LOADGEN -R20 -c2 -t2 -d300ms -s /dev/stdin URL"),
    ] {
        let (output, heads) = run_in_shell(&command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(heads.len() >= 6 && heads.iter().all(|head| head.starts_with("PUT /x ")), "{heads:?}");
    }
}

#[test]
fn what_is_read_from_one_pipe_twice_is_refused_before_it_is_found_empty() {
    let script = "wrk.method = \"PUT\"";
    for (other, name) in [("--body @/dev/stdin", "--body"), ("--ca-file /proc/self/fd/0", "--ca-file")] {
        let (output, heads) =
            run_in_shell(&format!("echo '{script}' | LOADGEN -R20 -d300ms -s /dev/stdin {other} URL"));
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), heads.len()), (Some(1), 0), "{told}");
        assert!(told.contains(&format!("a pipe is read once: -s and {name} name it")), "{told}");
    }
    let two = format!("LOADGEN -R20 -c2 -t2 -d300ms -s <(echo '{script}') --body @<(echo text) URL");
    let (output, heads) = run_in_shell(&two);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(heads.iter().all(|head| head.starts_with("PUT ")) && !heads.is_empty(), "{heads:?}");
}

#[test]
fn a_pipe_into_which_nobody_writes_a_script_is_waited_for_until_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let command =
            format!("timeout --preserve-status -s {signal} 0.5 LOADGEN -R20 -s {} URL", pipe.display());
        let (output, heads) = run_in_shell(&command);
        assert_eq!((output.status.code(), heads.len()), (Some(code), 0), "{signal}");
    }
}

#[test]
fn a_run_whose_script_does_not_return_ends_ten_seconds_after_it_was_called_off() {
    let folder = tempfile::tempdir().unwrap();
    let loops = folder.path().join("loops");
    let source = format!(
        "local n = 0\n\
        function request() n = n + 1\n\
          if n > 5 then io.open('{}', 'w'):close(); while true do end end\n\
          return wrk.format() end",
        loops.display()
    );
    let (_folder, path) = script(&source);
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R50", "-c1", "-t1", "-d60s", "-s", &path, &server.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !loops.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    // As timeout(1) does it: once.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let expected = "interrupted, and a function of the script does not return: nothing was kept\n";
    assert_eq!((output.status.code(), &*told), (Some(143), expected));
}

#[test]
fn random_numbers_differ_between_threads_and_repeat_with_the_seed() {
    let source = "threads = {}\nfunction setup(t) table.insert(threads, t) end\n\
        function init() r = math.random(1e9) end\n\
        function done() print(threads[1]:get('r'), threads[2]:get('r')) end";
    let numbers = |seed: &str| {
        let (run, _) = run(source, &["--seed", seed]);
        run.stdout.lines().last().unwrap().to_owned()
    };
    let (first, again, other) = (numbers("5"), numbers("5"), numbers("6"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let (a, b) = first.split_once('\t').unwrap();
    assert_ne!(a, b);
}

#[test]
fn the_golden_script_prints_what_it_printed_under_wrk2() {
    let path = format!("{}/tests/golden/g13-done.lua", env!("CARGO_MANIFEST_DIR"));
    let server = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let run = loadgen(&["-R40", "-c4", "-t2", "-d500ms", "-s", &path, &server.url()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.contains(
            "thread 1 made 10 requests and got 10 responses\nthread 2 made 10 requests and got 10 responses\n"
        ),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("requests=20 duration=500000 bytes="), "{}", run.stdout);
}

#[test]
fn setup_may_set_and_get_globals_of_threads_that_were_set_up_before() {
    let source = "local threads = {}\n\
        function setup(thread) table.insert(threads, thread); thread:set('number', #threads)\n\
        for _, t in ipairs(threads) do t:set('count', #threads) end\n\
        if #threads == 2 then print('first is ' .. threads[1]:get('number') .. ', said in init ' .. \
        threads[1]:get('said')) end end\n\
        function init() said = number * 10 end\n\
        function request() return wrk.format(nil, '/' .. number .. 'of' .. count) end";
    let (run, heads) = run(source, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("first is 1, said in init 10\n"), "{}", run.stdout);
    let paths = paths(&heads);
    assert!(paths.contains(&"/1of2") && paths.contains(&"/2of2"), "{paths:?}");
    assert!(paths.iter().all(|path| path.ends_with("of2")), "{paths:?}");
}

#[test]
fn a_thread_that_cannot_load_the_script_says_why_though_setup_is_about_to_ask_it() {
    // As a script that reads what it is given once, at its top: there is nothing left for the second state.
    let source = "local folder = debug.getinfo(1, 'S').source:sub(2):match('(.*/)')\n\
        local file = io.open(folder .. 'beside.lua')\n\
        if not file then error('no ids are left') end\n\
        os.remove(folder .. 'beside.lua')\n\
        function setup(thread) thread:set('x', 1) end";
    let (run, heads) = run(source, &[]);
    assert_eq!((run.code, heads.len()), (1, 0));
    assert!(run.stderr.contains("script.lua:3: no ids are left"), "{}", run.stderr);
}

#[test]
fn an_error_in_the_setup_or_init_of_a_later_thread_ends_the_run_for_all() {
    for (source, part) in [
        (
            "function setup(t) n = (n or 0) + 1; t:set('n', n) end\n\
                function init() if n == 2 then error('no second') end end",
            "no second",
        ),
        ("function setup() n = (n or 0) + 1; if n == 2 then error('no more') end end", "no more"),
        (
            "function setup(t) first = first or t; if t ~= first then first:get('print') end end",
            "a function cannot go to another thread",
        ),
    ] {
        let (run, heads) = run(source, &[]);
        assert_eq!((run.code, heads.len()), (1, 0), "{}", run.stderr);
        assert!(run.stderr.contains(part) && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
}
