//! All tests of loadgen from outside, in one program: each program of its own would link, and compile
//! `common`, once more. `cargo test --test all merge::` runs those of `merge.rs`.

mod alternate;
mod behaviour;
mod command_line;
mod common;
mod endpoints;
mod https;
mod many_connections;
mod merge;
mod nasty_servers;
mod part;
mod result_json;
mod rooms;
mod sample;
mod scripts;
mod slack_and_length;
mod slowest;
mod start_at;
mod steps;
mod verdict;
mod wild_scripts;
mod without_lua;
mod wrk2_text;

/// Cargo does not look for them, and a file that nobody names is not compiled.
#[test]
fn every_file_of_tests_is_part_of_this_program() {
    let named: Vec<&str> = include_str!("main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    let mut there: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("mod.rs").is_file() || path.extension().is_some_and(|end| end == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "main")
        .collect();
    there.sort();
    assert_eq!(named, there);
}
