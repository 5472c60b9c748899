//! Which module may know which: what is measured and judged knows no sockets and no worker.

/// Modules that are tested without sockets, and what they must not import.
const PURE: [&str; 12] = [
    "measurement",
    "recorder",
    "tally",
    "slowest",
    "schedule",
    "statistics",
    "verdict",
    "thread_use",
    "result",
    "opening_times",
    "reconnecting",
    "errors",
];
const HOLDING: [&str; 8] = ["worker", "connection", "epoll", "socket", "agenda", "run", "tls", "probe"];

#[test]
fn what_is_measured_and_judged_imports_nothing_that_holds_a_socket() {
    for module in PURE {
        let path = format!("{}/src/{module}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"));
        let code = source.split("#[cfg(test)]").next().unwrap();
        for held in HOLDING {
            let imported =
                code.contains(&format!("crate::{held}::")) || code.contains(&format!("crate::{held};"));
            assert!(!imported, "{module}.rs imports {held}");
        }
    }
}
