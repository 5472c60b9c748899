//! Which module may know which: what is measured and judged knows no sockets and no worker, and no modules
//! know each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Modules that are tested without sockets, and what they must not import.
const PURE: [&str; 20] = [
    "course",
    "errors",
    "exchange",
    "lateness",
    "measurement",
    "opening_times",
    "reconnecting",
    "recorder",
    "result",
    "schedule",
    "slices",
    "slowest",
    "statistics",
    "step_recorder",
    "steps",
    "tally",
    "thread_use",
    "unanswered",
    "uniform",
    "verdict",
];
const HOLDING: [&str; 8] = ["worker", "connection", "epoll", "socket", "agenda", "run", "tls", "probe"];

/// By module those that it names, and the file in which it does.
type Graph = BTreeMap<String, BTreeMap<String, PathBuf>>;

/// Source without comments and without what is compiled for tests alone; tests in a block end their file.
fn code(source: &str) -> String {
    let (mut kept, mut lines) = (String::new(), source.lines());
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            if lines.next().is_some_and(|item| item.trim_end().ends_with('{')) {
                break;
            }
            continue;
        }
        kept += line.split("//").next().unwrap();
        kept.push('\n');
    }
    kept
}

/// The first name of a path, or of each in a group in braces: `a::b` → a; `{a::{b, c}, d}` → a, d.
fn first_names(path: &str) -> Vec<&str> {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else { return vec![&path[..word(path)]] };
    let (mut names, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.push(&group[at..at + word(&group[at..])]);
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// What stands behind `crate::`, and behind the `super::`s that lead there from a file that lies so deep.
fn names(code: &str, depth: usize) -> Vec<&str> {
    let above = "super::".repeat(depth);
    let is_start = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    let mut names = Vec::new();
    for root in ["crate::", &above] {
        for (at, _) in code.match_indices(root).filter(|&(at, _)| is_start(at)) {
            names.extend(first_names(&code[at + root.len()..]));
        }
    }
    names
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Of the modules of the library, those in folders counted as their parents.
fn graph() -> Graph {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    files_below(&root, &mut files);
    let parts = |file: &Path| -> Vec<String> {
        let below = file.strip_prefix(&root).unwrap().with_extension("");
        below.iter().map(|part| part.to_str().unwrap().to_owned()).collect()
    };
    let of_library = |file: &&PathBuf| {
        let parts = parts(file);
        let is_program = parts[0] == "bin" || parts == ["main"] || parts == ["lib"];
        !is_program && parts.last().unwrap() != "tests"
    };
    let mut graph: Graph =
        files.iter().filter(of_library).map(|file| (parts(file)[0].clone(), BTreeMap::new())).collect();
    for file in files.iter().filter(of_library) {
        let (parts, source) = (parts(file), std::fs::read_to_string(file).unwrap());
        let code = code(&source);
        let known: Vec<String> = names(&code, parts.len())
            .into_iter()
            .filter(|&name| name != parts[0] && graph.contains_key(name))
            .map(str::to_owned)
            .collect();
        graph.get_mut(&parts[0]).unwrap().extend(known.into_iter().map(|name| (name, file.clone())));
    }
    graph
}

#[test]
fn names_are_found_in_every_form_of_use_and_in_paths_and_not_in_comments_or_tests() {
    let source = "use crate::a::{x, y};\nuse crate::{b, c::{d, self}, \n    e};\nfn f() { crate::g::h() } \
        // crate::i\npub use super::super::j::K;\nuse super::l;\n\
        #[cfg(test)]\nmod n;\nuse crate::o;\n#[cfg(test)]\nmod tests {\n    use crate::p;\n}\n";
    assert_eq!(names(&code(source), 2), ["a", "b", "c", "e", "g", "o", "j"]);
}

#[test]
fn what_is_measured_and_judged_names_nothing_that_holds_a_socket() {
    let graph = graph();
    for module in PURE {
        for held in HOLDING {
            let file = graph[module].get(held);
            assert!(file.is_none(), "{module} names {held}: {}", file.unwrap().display());
        }
    }
}

#[test]
fn no_modules_know_each_other_in_a_circle() {
    let mut graph = graph();
    assert!(graph.len() > 40 && graph["worker"].contains_key("measurement"), "{graph:?}");
    // What names nobody that is left is in no circle, and goes; in the end nothing is left.
    loop {
        let left: BTreeSet<String> = graph.keys().cloned().collect();
        let known = graph.len();
        graph.retain(|_, named| named.keys().any(|name| left.contains(name)));
        if graph.len() == known {
            break;
        }
    }
    let circle: Vec<String> = graph
        .iter()
        .flat_map(|(module, named)| named.iter().map(move |(name, file)| (module, name, file)))
        .filter(|(_, name, _)| graph.contains_key(*name))
        .map(|(module, name, file)| format!("{module} → {name} ({})", file.display()))
        .collect();
    assert!(circle.is_empty(), "in a circle, or leading to one:\n{}", circle.join("\n"));
}
