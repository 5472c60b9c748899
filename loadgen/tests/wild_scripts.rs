//! What public scripts for wrk and wrk2 do, one construct a test: the table of docs/lua.md names these tests.

mod common;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use common::{Act, OK, Run, Server, loadgen, script};

/// Writes `files` beside the script, runs it in a thread with two connections, and returns what the server
/// saw: heads of requests.
fn run_beside(
    files: &[(&str, &str)],
    source: &str,
    options: &[&str],
    script_args: &[&str],
) -> (Run, Vec<String>) {
    let (folder, path) = script(source);
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    let server = Server::start(move |_, head| {
        heads.lock().unwrap().push(head.to_owned());
        Act::Answer(OK.to_owned())
    });
    let url = format!("{}index", server.url());
    let rate = if options.contains(&"--closed") { &[][..] } else { &["-R40"] };
    let run =
        loadgen(&[rate, options, &["-c2", "-t1", "-d500ms", "-s", &path, &url, "--"], script_args].concat());
    let heads = seen.lock().unwrap().clone();
    (run, heads)
}

fn run(source: &str) -> (Run, Vec<String>) {
    run_beside(&[], source, &[], &[])
}

/// The script ran, and these are the paths it asked for.
fn paths(source: &str) -> HashSet<String> {
    paths_of(run(source))
}

fn paths_of((run, heads): (Run, Vec<String>)) -> HashSet<String> {
    assert_eq!(run.code, 0, "{}", run.stderr);
    heads.iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
}

fn set(paths: &[&str]) -> HashSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn numbers_and_booleans_may_stand_for_text() {
    let (run, heads) = run("local n = 0\nwrk.headers['X-Limit'] = 10.5\nwrk.headers['X-On'] = true\n\
            wrk.headers['X-Off'] = false\n\
        function request() n = n + 1; wrk.body = n\n\
        if n % 3 == 1 then return wrk.format('PUT', n) end\n\
        if n % 3 == 2 then return wrk.format('PUT', '/body', nil, 12345) end\n\
        return wrk.format('PUT', '/true', nil, true) end");
    assert_eq!(run.code, 0, "{}", run.stderr);
    // Two threads of the server note them, one for each connection.
    let of = |begin: &str| heads.iter().find(|head| head.starts_with(begin)).unwrap();
    for line in [
        "PUT 1 HTTP/1.1\r\n",
        "X-Limit: 10.5\r\n",
        "X-On: true\r\n",
        "X-Off: false\r\n",
        "Content-Length: 1\r\n",
    ] {
        assert!(of("PUT 1 ").contains(line), "{line} {}", of("PUT 1 "));
    }
    assert!(of("PUT /body ").contains("Content-Length: 5\r\n"), "{heads:?}");
    assert!(of("PUT /true ").contains("Content-Length: 4\r\n"), "{heads:?}");
}

#[test]
fn a_body_set_to_a_number_is_sent_without_a_request_function_too() {
    let (run, heads) = run("wrk.method = 'POST'; wrk.body = 123.25");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(heads[0].contains("Content-Length: 6\r\n"), "{heads:?}");
}

#[test]
fn what_is_no_text_is_told_with_its_place() {
    for (call, place) in [
        ("return wrk.format(t, '/', h)", "script.lua: request(): wrk"),
        ("return (wrk.format(t, '/', h))", "script.lua:3: wrk"),
    ] {
        let (run, heads) =
            run(&format!("local t, h = 'PUT', {{ ['X-List'] = {{ 1 }} }}\nfunction request()\n{call}\nend"));
        assert_eq!((run.code, heads.len()), (1, 0));
        let told =
            format!("{place}.format: the header X-List must be text, a number or a boolean, not a table\n");
        assert!(run.stderr.ends_with(&told), "{}", run.stderr);
    }
}

#[test]
fn no_table_and_no_function_may_stand_for_path_body_or_header_value() {
    for (arguments, what) in [
        ("'PUT', {}", "path must be text, a number or a boolean, not a table"),
        ("'PUT', print", "path must be text, a number or a boolean, not a function"),
        ("'PUT', '/', nil, {}", "body must be text, a number or a boolean, not a table"),
        ("'PUT', '/', nil, print", "body must be text, a number or a boolean, not a function"),
        ("'PUT', '/', { ['X-F'] = print }", "header X-F must be text, a number or a boolean, not a function"),
    ] {
        let (run, heads) = run(&format!("function request()\nreturn (wrk.format({arguments}))\nend"));
        assert_eq!((run.code, heads.len()), (1, 0), "{arguments}: {}", run.stderr);
        let told = format!("script.lua:2: wrk.format: the {what}\n");
        assert!(run.stderr.ends_with(&told), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn what_only_forks_of_wrk_know_is_not_there() {
    let paths = paths(
        "function request() return wrk.format(nil, '/one'), 'of a fork', 3 end\n\
        function response(status, headers, body, ...) assert(select('#', ...) == 0 and status == 200) end",
    );
    assert_eq!(paths, set(&["/one"]));
}

#[test]
fn request_and_response_may_be_assigned_anew_while_they_run() {
    let paths = paths(
        "local function later() return wrk.format(nil, '/later' .. #seen) end\nseen = ''\n\
        function request() request = later; return wrk.format(nil, '/first') end\n\
        function response() response = function() seen = 'xx' end end",
    );
    assert!(paths.contains("/first") && paths.contains("/later0") && paths.contains("/later2"), "{paths:?}");
    assert_eq!(
        self::paths("function request() request = nil; return wrk.format(nil, '/own') end"),
        set(&["/own", "/index"])
    );
}

#[test]
fn a_thread_that_stops_itself_may_return_no_request() {
    let source = "local n = 0\nfunction request() n = n + 1; if n > 5 then wrk.thread:stop() else return \
        wrk.format() end end";
    let (run, heads) = run(source);
    assert_eq!((run.code, heads.len()), (0, 5), "{}", run.stderr);
    let (run, _) = self::run("function request() return nil end");
    assert!(run.code == 1 && run.stderr.contains("must return a string"), "{}", run.stderr);
}

#[test]
fn addresses_are_resolved_into_wrk_addrs_before_setup() {
    let (run, _) = run("function setup(thread) print(#wrk.addrs, wrk.addrs[1], thread.addr); thread.addr = \
            wrk.addrs[#wrk.addrs] end");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = run.stdout.lines().next().unwrap();
    let words: Vec<&str> = line.split('\t').collect();
    assert!(words[0] == "1" && words[1].starts_with("127.0.0.1:") && words[1] == words[2], "{line}");
}

#[test]
fn a_script_may_resolve_addresses_itself() {
    let other = Server::start(|_, _| Act::Answer(OK.to_owned()));
    let source =
        format!("function wrk.resolve(host, service) wrk.addrs = wrk.lookup(host, '{}') end", other.port);
    let (run, heads) = run(&source);
    assert!(run.code == 0 && heads.is_empty() && other.requests() > 0, "{}", run.stderr);
    let (run, _) = self::run("function wrk.resolve() wrk.addrs = {} end");
    let told = run.stderr.strip_suffix("script.lua: wrk.resolve left no address in wrk.addrs\n");
    assert!(run.code == 1 && told.is_some_and(|folder| folder.starts_with('/')), "{}", run.stderr);
}

#[test]
fn in_a_closed_loop_delay_says_how_long_a_connection_waits_before_each_request() {
    let (run, heads) = run_beside(&[], "function delay() return 100 end", &["--closed"], &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    // Two connections, each at most at 100, 200, 300 and 400 ms; the next would leave at the end.
    assert!((2..=8).contains(&heads.len()), "{}", heads.len());
    assert!(
        run.json["response_time"]["min_us"].as_u64().unwrap() < 100_000,
        "the wait is no part of it: {}",
        run.json
    );
    let (run, heads) = run_beside(&[], "function delay() return 0 end", &["--closed"], &[]);
    assert!(run.code == 0 && heads.len() > 8, "{} {}", heads.len(), run.stderr);
}

#[test]
fn a_delay_that_returns_nothing_is_none_and_of_several_values_the_first_counts() {
    for source in
        ["function delay() end", "function delay() return nil end", "function delay() return '0', 99 end"]
    {
        let (run, heads) = run_beside(&[], source, &["--closed"], &[]);
        assert!(run.code == 0 && heads.len() > 8, "{source}: {} {}", heads.len(), run.stderr);
    }
}

#[test]
fn at_a_constant_rate_delay_is_not_called_and_the_user_is_told() {
    let (run, heads) = run("function delay() error('called') end");
    assert!(run.code == 0 && !heads.is_empty(), "{}", run.stderr);
    assert!(run.stderr.starts_with("note: delay() is not called"), "{}", run.stderr);
}

#[test]
fn the_host_header_follows_wrk_host_and_comes_back_when_headers_are_replaced() {
    for (source, host) in [
        ("wrk.headers = { ['Content-Type'] = 'text/plain' }", "Host: 127.0.0.1:"),
        ("wrk.host = 'example.org'; wrk.port = 81", "Host: example.org:81\r\n"),
        ("wrk.headers['Host'] = 'own.example'", "Host: own.example\r\n"),
        ("wrk.host = 'example.org'; wrk.headers = { Host = 'own.example' }", "Host: own.example\r\n"),
    ] {
        let (run, heads) = run(source);
        assert!(
            run.code == 0 && heads[0].contains(host) && heads[0].matches("Host:").count() == 1,
            "{source}: {heads:?}"
        );
    }
    let (run, heads) = run_beside(&[], "wrk.host = 'example.org'", &["-H", "Host: typed.example"], &[]);
    assert!(run.code == 0 && heads[0].contains("Host: typed.example\r\n"), "{heads:?}");
}

#[test]
fn files_are_read_line_by_line_and_whole_and_named_by_the_environment() {
    let source = "local folder = debug.getinfo(1, 'S').source:sub(2):match('(.*/)')\n\
        local ids = {}\n\
        for line in io.lines(folder .. 'ids.txt') do if line ~= '' then table.insert(ids, line) end end\n\
        local file = io.open(folder .. 'body.json', 'rb'); local body = file:read('*a'); file:close()\n\
        function init(args) assert(args[1] == 'x' and #args == 1 and os.getenv('PATH')); \
        math.randomseed(os.time()) end\n\
        function request() return wrk.format('POST', '/' .. ids[math.random(#ids)], { Length = #body }, \
        body) end";
    let files = [("ids.txt", "a\nb\n\nc\n"), ("body.json", "{\"a\":\n1}")];
    let (run, heads) = run_beside(&files, source, &[], &["x"]);
    assert!(
        heads.iter().all(|head| head.contains("Content-Length: 8\r\n") && head.contains("Length: 8\r\n")),
        "{heads:?}"
    );
    assert!(paths_of((run, heads)).is_subset(&set(&["/a", "/b", "/c"])));
}

#[test]
fn modules_in_lua_are_found_by_require_loadfile_and_package_path() {
    let source = "local folder = debug.getinfo(1, 'S').source:sub(2):match('(.*/)')\n\
        package.path = folder .. 'lib/?.lua;' .. package.path\n\
        local json = require 'json'; local common = loadfile(folder .. 'json.lua')(); dofile(folder .. \
        'json.lua')\n\
        function request() return wrk.format(nil, '/' .. json.encode(1) .. common.encode(2)) end";
    let module = "return { encode = function(value) return '[' .. value .. ']' end }";
    assert_eq!(paths_of(run_beside(&[("json.lua", module)], source, &[], &[])), set(&["/[1][2]"]));
}

#[test]
fn modules_in_c_such_as_cjson_find_lua_in_the_generator() {
    let folder = tempfile::tempdir().unwrap();
    let (source, module) = (folder.path().join("answer.c"), folder.path().join("answer.so"));
    // As much of Lua's header as this needs.
    std::fs::write(
        &source,
        "typedef struct lua_State lua_State;\n\
        extern void lua_pushstring(lua_State *, const char *); extern void lua_createtable(lua_State *, int, \
        int);\n\
        extern void lua_setfield(lua_State *, int, const char *); extern double luaL_checknumber(lua_State \
        *, int);\n\
        int luaopen_answer(lua_State *L) { lua_createtable(L, 0, 1); lua_pushstring(L, \"from-c\"); \
            lua_setfield(L, -2, \"path\"); return 1; }\n\
        int unused(lua_State *L) { return (int)luaL_checknumber(L, 1); }\n",
    )
    .unwrap();
    assert!(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&module)
            .arg(&source)
            .status()
            .unwrap()
            .success()
    );
    let source = format!(
        "package.cpath = '{}/?.so;' .. package.cpath\nlocal answer = require 'answer'\n\
            wrk.path = '/' .. answer.path",
        folder.path().display()
    );
    assert_eq!(paths(&source), set(&["/from-c"]));
}

#[test]
fn all_of_luajits_libraries_and_lua_5_1s_functions_are_there() {
    let paths = paths(
        "local ffi, bit = require 'ffi', require 'bit'\nffi.cdef 'int abs(int);'\n\
        local a = ffi.C.abs(-3) + bit.band(6, 3) + table.getn({ 1, 2 }) + select('#', unpack({ 1, 2 })) + \
        loadstring('return 1')()\n\
        setfenv(function() end, {}); math.randomseed(tonumber(tostring({}):sub(8)) or 0); local co = \
        coroutine.wrap(function() return 1 end)\n\
        wrk.path = '/' .. (a + co() + (jit and 1 or 0)) .. os.date('!%Y', 0) .. (string.gsub('a b', ' ', \
        '%%20'))",
    );
    assert_eq!(paths, set(&["/121970a%20b"]));
}

#[test]
fn requests_written_by_hand_may_have_chunks_and_be_pipelined() {
    const PUT: &str = "PUT /put HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
        2\r\nab\r\n1a;x=y\r\n0123456789abcdefghijklmnop\r\n0\r\n\r\n";
    const GET: &str = "GET /get HTTP/1.1\r\nhost: h\r\n\r\n";
    let pair = [PUT, GET].concat();
    // What each connection received, byte by byte; every whole pair is answered twice.
    let received = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (kept, length) = (received.clone(), pair.len());
    std::thread::spawn(move || {
        for (place, mut stream) in listener.incoming().flatten().enumerate() {
            kept.lock().unwrap().push(Vec::new());
            let kept = kept.clone();
            std::thread::spawn(move || {
                let (mut answered, mut room) = (0, [0; 65536]);
                while let Ok(count @ 1..) = stream.read(&mut room) {
                    let mut kept = kept.lock().unwrap();
                    kept[place].extend_from_slice(&room[..count]);
                    let pairs = kept[place].len() / length;
                    let answers = OK.repeat(2 * (pairs - answered));
                    answered = pairs;
                    let _ = stream.write_all(answers.as_bytes());
                }
            });
        }
    });
    let (_folder, path) = script(&format!("request = function() return {pair:?} end"));
    let run = loadgen(&["-R40", "-c2", "-t1", "-d500ms", "-s", &path, &url]);
    assert_eq!((run.code, run.error("read"), run.count("lost")), (0, 0, 0), "{}", run.stderr);
    assert_eq!((run.count("completed"), run.count("sent") + run.count("unsent")), (run.count("sent"), 20));
    let all = received.lock().unwrap().concat();
    assert_eq!((all.len() / length * 2) as u64, run.count("sent"));
    assert_eq!(String::from_utf8_lossy(&all), pair.repeat(all.len() / length));
}

/// Of docs/lua.md: the cells of the table of constructs, without its head.
fn documented() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(format!("{}/docs/lua.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| construct |")).skip(2);
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

#[test]
fn every_test_that_the_table_of_the_documentation_names_is_there() {
    let rows = documented();
    assert!(rows.len() >= 27, "{rows:?}");
    for row in &rows {
        let told = row.last().unwrap();
        let tests: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
        assert!(row.len() == 5 && (!tests.is_empty() || told == "the same"), "no test is named: {row:?}");
        for test in tests {
            let (file, name) = test.split_once(": ").unwrap_or(("wild_scripts.rs", test));
            let path = format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR"));
            let source = std::fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"));
            let begins =
                name.strip_suffix('…').map_or(format!("\nfn {name}("), |part| format!("\nfn {part}"));
            let found: Vec<usize> = source.match_indices(&begins).map(|(at, _)| at).collect();
            assert_eq!(found.len(), 1, "{file}: {name}");
            assert!(source[..found[0]].ends_with("#[test]"), "{file}: {name} is no test");
        }
    }
}

#[test]
fn done_may_take_values_by_rank_and_write_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.csv");
    let source = format!(
        "done = function(summary, latency, requests)\n\
         local f = io.open('{}', 'w'); f:write(string.format('%d,%d,%s,%s', latency[1], \
         latency[summary.requests], latency.nothing, requests.mean > 0)); f:close() end",
        out.display()
    );
    // Req/Sec is sampled after a warm-up alone.
    let (run, _) = run_beside(&[], &source, &["--warmup", "1ms"], &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(out).unwrap();
    let parts: Vec<&str> = text.split(',').collect();
    assert_eq!(parts[0], run.percentile("response_time", "0").to_string(), "{text}");
    assert_eq!(parts[1], run.percentile("response_time", "100").to_string(), "{text}");
    assert_eq!(parts[2], "nil");
}

#[test]
fn a_field_that_threads_do_not_have_is_nil() {
    let (run, _) = run("function setup(thread) print(thread.id); thread:set('id', thread.id) end\n\
            function init() print(id, wrk.thread.id) end");
    assert!(run.code == 0 && run.stdout.starts_with("nil\nnil\tnil\n"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn os_exit_ends_the_program_with_its_code() {
    let (answered, _) = run("function response() os.exit(7) end");
    assert_eq!((answered.code, answered.json.is_null()), (7, true), "{}", answered.stderr);
    let (done, _) = run("function done() os.exit(7) end");
    assert_eq!((done.code, done.json.is_null()), (7, false), "what was measured is kept: {}", done.stderr);
    assert!(!done.hlog.is_empty());
}

#[test]
fn wrk_request_makes_the_request_that_would_be_made_without_a_script() {
    assert_eq!(
        paths("local n = 0\nrequest = function() n = n + 1; return wrk.request() end"),
        set(&["/index"])
    );
    assert_eq!(
        paths("local old = wrk.format\nwrk.format = function(...) return old('GET', '/wrapped') end"),
        set(&["/wrapped"])
    );
}
