//! Arguments → plan → run → reports → exit code; or results of parts → one result.

use std::ffi::OsString;
use std::process::exit;

use loadgen::args::{self, Parsed};
use loadgen::error::{Error, exit as code};
use loadgen::merge;
use loadgen::options;
use loadgen::output::{outlive_file_limits, print};
use loadgen::plan::Plan;
use loadgen::report::planned_slices;
use loadgen::run::{self, Interruption};
use loadgen::tell;

fn main() {
    outlive_file_limits();
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((_, words)) = typed.split_first().filter(|(first, _)| *first == "merge") {
        return merge::run(words).unwrap_or_else(|problem| fail(&problem));
    }
    let interruption = Interruption::watch().unwrap_or_else(|problem| fail(&problem));
    let args = match args::parse(typed) {
        Ok(Parsed::Run(args)) => args,
        Ok(Parsed::Help) => {
            return print(format!("{}{}", args::USAGE, args::USAGE_OWN))
                .unwrap_or_else(|problem| fail(&problem));
        }
        Ok(Parsed::Version) => {
            return print(format!("loadgen {}\n", env!("CARGO_PKG_VERSION")))
                .unwrap_or_else(|problem| fail(&problem));
        }
        Ok(Parsed::Completions(shell)) => {
            return options::print_completions(&shell).unwrap_or_else(|problem| fail(&problem));
        }
        Ok(Parsed::ManPage) => return options::print_man_page().unwrap_or_else(|problem| fail(&problem)),
        Err(problem) => fail(&problem),
    };
    match Plan::new(*args).and_then(|plan| done(&plan, &interruption)) {
        Ok(code) => exit(code),
        Err(problem) => fail(&problem),
    }
}

/// Exit code.
fn done(plan: &Plan, interruption: &Interruption) -> Result<i32, Error> {
    match plan.alternate.as_ref().filter(|alternate| alternate.only_printed) {
        Some(alternate) => print(planned_slices::json(plan, &alternate.alternation)).map(|()| 0),
        None => run::run(plan, interruption),
    }
}

fn fail(problem: &Error) -> ! {
    tell!("{problem}");
    if matches!(problem, Error::Usage(_)) {
        let _ = print(args::USAGE);
    }
    exit(code::FAILED)
}
