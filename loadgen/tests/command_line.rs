//! The command line: wrk2's usage errors byte for byte, and what each failure prints and returns.

mod common;

use std::process::{Command, Output};

use common::NullServer;

fn loadgen(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadgen")).args(args).output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The golden files hold stderr, then stdout, then the exit code.
fn assert_golden(name: &str, args: &[&str]) {
    let output = loadgen(args);
    let printed = format!(
        "{}{}exit {}\n",
        error(&output),
        String::from_utf8_lossy(&output.stdout),
        output.status.code().unwrap()
    );
    let golden =
        std::fs::read_to_string(format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert_eq!(printed, golden);
}

#[test]
fn a_missing_rate_prints_wrk2s_error_and_usage() {
    assert_golden("g07-norate.txt", &["-c1", "-t1", "http://127.0.0.1:1/"]);
}

#[test]
fn fewer_connections_than_threads_print_wrk2s_error_and_usage() {
    assert_golden("g08-c-lt-t.txt", &["-c1", "-t2", "-R10", "http://127.0.0.1:1/"]);
}

#[test]
fn a_port_where_nobody_listens_is_one_clear_line() {
    let output = loadgen(&["-R10", "-d1s", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error(&output).starts_with("unable to connect to 127.0.0.1:1 Connection refused"),
        "{}",
        error(&output)
    );
    assert_eq!(error(&output).lines().count(), 1);
    assert!(output.stdout.is_empty());
}

#[test]
fn text_that_cannot_be_written_is_told_and_no_success() {
    for args in
        [&["--help"][..], &["--version"], &["--man"], &["--completions", "bash"], &["merge", "--help"]]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(args)
            .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(error(&output).starts_with("cannot write to standard output: No space left"), "{args:?}");
        assert_eq!(error(&output).lines().count(), 1, "{args:?}");
    }
}

#[test]
fn a_run_whose_text_cannot_be_written_does_not_begin() {
    let (server, folder) = (NullServer::start(), tempfile::tempdir().unwrap());
    let json = folder.path().join("run.json");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R100", "-c1", "-t1", "-d60s", "--json", json.to_str().unwrap(), &server.url])
        .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error(&output).starts_with("cannot write to standard output: No space left"),
        "{}",
        error(&output)
    );
    assert!(!json.exists());
}

#[test]
fn lines_that_nobody_can_read_end_no_run() {
    let (server, folder) = (NullServer::start(), tempfile::tempdir().unwrap());
    let json = folder.path().join("run.json");
    let status = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R100", "-c1", "-t1", "-d300ms", "--expect", "299", &server.url, "--json"])
        .arg(&json)
        .stderr(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap()
        .status;
    assert_eq!(status.code(), Some(3), "the code of an unexpected answer, not of a panic");
    assert!(json.is_file());
}

#[test]
fn a_script_that_cannot_be_loaded_is_named() {
    let output = loadgen(&["-R10", "-d1s", "-s", "/nowhere/x.lua", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(error(&output).starts_with("/nowhere/x.lua: cannot read the script"), "{}", error(&output));
}

#[test]
fn a_value_that_is_none_is_one_line_that_names_the_option() {
    for (args, message) in [
        (
            &["-R100", "-d", "1x", "http://h/"][..],
            "not a time: --duration \"1x\"; examples: 10s, 500ms, 1.5m\n",
        ),
        (
            &["-R100", "localhost:8080"],
            "invalid URL: localhost:8080: no scheme; example: http://127.0.0.1:8080/\n",
        ),
    ] {
        let output = loadgen(args);
        assert_eq!((output.status.code(), error(&output).as_str()), (Some(1), message));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn files_that_cannot_be_written_and_cpus_that_are_not_there_are_told_before_the_run() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    for (option, value, part) in [
        ("--json", "/nowhere/r.json", "/nowhere/r.json: cannot write: No such file"),
        ("--hlog", "/", "/: cannot write: it is a directory"),
        ("--slowest", "/", "/: cannot write: it is a directory"),
        ("--pin", "1000", "no such CPU for this process: --pin 1000"),
    ] {
        let output = loadgen(&["-R10", "-d1s", option, value, &url]);
        assert_eq!(output.status.code(), Some(1));
        assert!(error(&output).starts_with(part), "{}", error(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_start_that_is_past_is_one_line() {
    let output = loadgen(&["-R1", "--start-at", "2026-11-20T19:30:00Z", "http://h/"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(error(&output), "the time is past: --start-at 2026-11-20T19:30:00Z\n");
}

#[test]
fn one_file_for_two_results_is_refused_however_it_is_spelled() {
    let output = loadgen(&["-R10", "--json", "/tmp/loadgen.r", "--hlog", "/tmp/./loadgen.r", "http://h/"]);
    assert_eq!(output.status.code(), Some(1));
    let told = "/tmp/./loadgen.r: a file holds one result: --json and --hlog name it\n";
    assert_eq!(error(&output), told);
    let output = loadgen(&["-R10", "--json", "/dev/null", "--hlog", "/dev/null", "http://127.0.0.1:1/"]);
    assert!(error(&output).starts_with("unable to connect"), "{}", error(&output));
}

#[test]
fn no_result_takes_the_place_of_what_the_run_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "GET /").unwrap();
    let (name, body) = (path.to_str().unwrap(), format!("@{}", path.display()));
    for (option, value) in [("--script", name), ("--targets", name), ("--body", &body)] {
        let output = loadgen(&["-R10", option, value, "--json", name, "http://127.0.0.1:1/"]);
        assert_eq!(output.status.code(), Some(1));
        let told = format!("{name}: --json would replace a file that is read\n");
        assert_eq!(error(&output), told, "{option}");
    }
    let list = folder.path().join("targets.txt");
    std::fs::write(&list, "# first\nGET /\n PUT /\tfile \n").unwrap();
    for option in ["--json", "--hlog", "--slowest"] {
        let output =
            loadgen(&["-R10", "--targets", list.to_str().unwrap(), option, name, "http://127.0.0.1:1/"]);
        assert_eq!(error(&output), format!("{name}: {option} would replace a file that is read\n"));
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), "GET /");
}

#[test]
fn names_of_files_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let (server, folder) = (NullServer::start(), tempfile::tempdir().unwrap());
    let odd = folder.path().join(OsStr::from_bytes(b"f\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("beside.lua"), "return '/from-beside'").unwrap();
    std::fs::write(odd.join("s.lua"), "wrk.path = require 'beside'").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R10", "-c1", "-t1", "-d200ms", &server.url, "--sample", "1", "--script"])
        .arg(odd.join("s.lua"))
        .arg("--json")
        .arg(odd.join("r.json"))
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", error(&status));
    assert_eq!(std::fs::read_dir(&odd).unwrap().count(), 3, "no file of another name");
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(odd.join("r.json")).unwrap()).unwrap();
    assert_eq!(result["sample"][0]["target"], "/from-beside");
}

#[test]
fn a_result_may_go_to_a_device_which_stays_one() {
    let server = NullServer::start();
    let output = loadgen(&[
        "-R10",
        "-c1",
        "-t1",
        "-d200ms",
        "--hlog",
        "/dev/null",
        "--json",
        "/dev/stdout",
        &server.url,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text[text.find("Transfer/sec").unwrap()..].contains("\"schema_version\": 2"), "{text}");
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn results_go_behind_what_is_printed_where_standard_output_and_error_are_files() {
    let (server, folder) = (NullServer::start(), tempfile::tempdir().unwrap());
    let [out, err] = ["out", "err"].map(|name| folder.path().join(name));
    let status = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["-R10", "-c1", "-t1", "-d200ms", "--json", "/dev/stdout", "--hlog", "/dev/stderr"])
        .args(["--expect", "299", &server.url])
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&err).unwrap())
        .status()
        .unwrap();
    let [out, err] = [out, err].map(|path| std::fs::read_to_string(path).unwrap());
    assert_eq!(status.code(), Some(3), "{err}");
    assert!(out.starts_with("Running ") && out.ends_with("}\n"), "{out}");
    assert!(out[out.find("Transfer/sec").unwrap()..].contains("\"schema_version\": 2"), "{out}");
    assert!(err.starts_with('#') && err.ends_with("a status other than 299\n"), "{err}");
    for name in ["/dev/stdout", "/dev/stderr"] {
        assert!(std::path::Path::new(name).is_symlink(), "{name} is the system's");
    }
}

#[test]
fn help_lists_wrk2s_options_and_ours() {
    let output = loadgen(&["--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for option in [
        "--rate",
        "--warmup",
        "--json",
        "--hlog",
        "--slowest",
        "--slowest-count",
        "--closed",
        "--expect",
        "--max-lateness",
        "--spin",
        "--pin",
    ] {
        assert!(text.contains(option), "{option} is missing");
    }
}

#[test]
fn bash_completes_options_and_words_as_they_are_accepted() {
    let script = loadgen(&["--completions", "bash"]);
    assert!(script.status.success());
    let complete = "COMP_WORDS=(loadgen \"$2\" \"$1\"); COMP_CWORD=2; _loadgen loadgen \"$1\" \"$2\"; echo \
        \"${COMPREPLY[*]}\"";
    let bash = String::from_utf8(script.stdout).unwrap() + complete;
    for (word, before, expected) in
        [("", "--addresses", "first all"), ("--ins", "-L", "--insecure"), ("--unix", "-L", "--unix-socket")]
    {
        let output = Command::new("bash").args(["-c", &bash, "bash", word, before]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{}", error(&output));
    }
    let output = loadgen(&["--completions", "tcsh"]);
    assert_eq!((output.status.code(), error(&output).lines().count()), (Some(1), 1), "{}", error(&output));
}

#[test]
fn the_man_page_has_all_sections() {
    let page = String::from_utf8(loadgen(&["--man"]).stdout).unwrap();
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(sections, ["NAME", "SYNOPSIS", "OPTIONS", "OPTIONS OF MERGE", "EXIT STATUS"]);
    assert!(page.contains("\\-\\-unix\\-socket") && page.contains("130, 143 interrupted"), "{page}");
}
