//! The options as data, read from the usage texts: for shells to complete, and for a man page. One source, so
//! that neither can lack an option that `--help` has; tests compare both with what the parser accepts.
//!
//! ```text
//! usage.txt, usage-own.txt, merge's usage → options → clap's description → bash, zsh, fish; roff
//! ```

use std::io;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::{USAGE, USAGE_OWN};
use crate::error::Error;
use crate::merge;
use crate::output::print;

/// One option as a usage text describes it.
#[derive(Debug)]
struct Described {
    short: Option<char>,
    long: &'static str,
    /// Names of its values; none of a switch.
    values: Vec<&'static str>,
    help: String,
}

/// What a value may be, beyond what the usage texts say.
const WORDS: [(&str, &[&str]); 5] = [
    ("addresses", &["first", "all"]),
    ("arrivals", &["uniform", "poisson"]),
    ("dispatch", &["fixed", "any"]),
    ("order", &["abba", "random"]),
    ("spin", &["auto", "off"]),
];
const FILES: [&str; 7] = ["script", "targets", "json", "hlog", "slowest", "ca-file", "unix-socket"];
/// Accepted by wrk2 too, and not in its usage text.
const SHORT_OF_TIMEOUT: char = 'T';

/// Prints what a shell needs to complete the command line.
pub fn print_completions(shell: &str) -> Result<(), Error> {
    let shell = Shell::from_str(shell).map_err(|_| {
        Error::Failed(format!("--completions is bash, zsh, fish, elvish or powershell, not {shell:?}"))
    })?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "loadgen", &mut script);
    print(script)
}

/// Prints the man page.
pub fn print_man_page() -> Result<(), Error> {
    print(man_page().map_err(|problem| Error::Failed(format!("cannot make the man page: {problem}")))?)
}

fn man_page() -> io::Result<Vec<u8>> {
    let (all, mut page, mut of_merge) = (Man::new(command()), Vec::new(), Vec::new());
    all.render_title(&mut page)?;
    all.render_name_section(&mut page)?;
    page.extend_from_slice(SYNOPSIS.as_bytes());
    all.render_options_section(&mut page)?;
    Man::new(merge_command()).render_options_section(&mut of_merge)?;
    page.extend_from_slice(
        String::from_utf8_lossy(&of_merge).replace(".SH OPTIONS", ".SH OPTIONS OF MERGE").as_bytes(),
    );
    page.extend_from_slice(format!(".SH EXIT STATUS\n{}\n", exit_codes()).as_bytes());
    Ok(page)
}

/// Short enough to be read, which a list of all options is not.
const SYNOPSIS: &str = ".SH SYNOPSIS\n\
    \\fBloadgen\\fR [options] \\fIurl\\fR [\\-\\- \\fIscript arguments\\fR]\n.br\n\
    \\fBloadgen merge\\fR [options] \\fIpart.json\\fR ...\n";

fn command() -> Command {
    let url = Arg::new("url")
        .value_name("url")
        .value_hint(ValueHint::Url)
        .help("http or https, host, port and path");
    let script_args = Arg::new("script args")
        .value_name("script args")
        .last(true)
        .num_args(0..)
        .help("For the script's init");
    Command::new("loadgen")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(described(&[USAGE, USAGE_OWN]).into_iter().map(arg))
        .args([url, script_args])
        .subcommand(merge_command())
}

fn merge_command() -> Command {
    let files = Arg::new("part.json")
        .num_args(1..)
        .value_hint(ValueHint::FilePath)
        .help("Results of all parts of a load");
    let merge = Command::new("merge").about("One result of all parts of a load").disable_help_flag(true);
    merge.args(described(&[merge::USAGE]).into_iter().map(arg)).arg(files)
}

fn arg(described: Described) -> Arg {
    let Described { long, values, help, .. } = described;
    let short = if long == "timeout" { Some(SHORT_OF_TIMEOUT) } else { described.short };
    let arg = Arg::new(long).long(long).short(short).help(help);
    let arg = match values.len() {
        0 => arg.action(ArgAction::SetTrue),
        count => arg.num_args(count).value_names(values).action(ArgAction::Append),
    };
    match WORDS.iter().find(|(name, _)| *name == long) {
        Some((_, words)) => {
            arg.value_parser(PossibleValuesParser::new(words.iter().copied())).hide_possible_values(true)
        }
        None if FILES.contains(&long) => arg.value_hint(ValueHint::FilePath),
        None => arg,
    }
}

/// What an exit code means, from the end of the usage text.
fn exit_codes() -> &'static str {
    USAGE_OWN.split_once("Exit codes:").map_or("", |(_, codes)| codes.trim())
}

/// Each option of these texts once; what a later text says of one it has in common with an earlier one is
/// added.
fn described(texts: &[&'static str]) -> Vec<Described> {
    let mut all = Vec::<Described>::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let words = line.trim();
        let indent = line.len() - line.trim_start().len();
        if let Some(mut new) = option(words).filter(|_| indent >= 4) {
            if let Some(place) = all.iter().position(|known| known.long == new.long) {
                let known = all.remove(place);
                new = Described { help: format!("{}. {}", known.help, new.help), ..known };
            }
            all.push(new);
        } else if let Some(last) = all.last_mut().filter(|_| indent > 8 && !words.is_empty()) {
            last.help = format!("{} {words}", last.help);
        }
    }
    all
}

/// `-m, --method      <M>  Method of the request`
fn option(line: &'static str) -> Option<Described> {
    let (short, rest) = match line.strip_prefix('-')?.strip_prefix('-') {
        Some(_) => (None, line),
        None => (line.chars().nth(1), line.get(2..)?.trim_start_matches(',').trim_start()),
    };
    let rest = rest.strip_prefix("--")?;
    let (long, mut rest) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
    let mut values = Vec::new();
    rest = rest.trim_start();
    while let Some((value, behind)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        values.push(value);
        // `<N>:<T>,…` is one value.
        let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
        rest = behind[end..].trim_start();
    }
    Some(Described { short, long, values, help: rest.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    /// Names of options in the source of a parser: `Short('c') | Long("connections")`.
    fn accepted(source: &str, function: &str) -> Vec<String> {
        let body = source.split_once(function).expect("the parser is there").1;
        let body = body.split_once("\n}\n").expect("it ends").0;
        let names = |open: &str, close: char, dashes: &str| -> Vec<String> {
            body.split(open)
                .skip(1)
                .filter_map(|rest| rest.split_once(close))
                .map(|(name, _)| format!("{dashes}{name}"))
                .collect()
        };
        [names("Long(\"", '"', "--"), names("Short('", '\'', "-")].concat()
    }

    fn told(command: &Command) -> Vec<String> {
        let long = command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
        let short = command.get_arguments().filter_map(|arg| Some(format!("-{}", arg.get_short()?)));
        long.chain(short).collect()
    }

    #[test]
    fn shells_and_the_man_page_know_every_option_that_is_accepted_and_no_other() {
        let command = command();
        let merge = command.find_subcommand("merge").unwrap();
        for (accepted, told, unlisted) in [
            (
                accepted(include_str!("args.rs"), "pub fn parse<"),
                told(&command),
                &["--completions", "--man", "--help", "-h"][..],
            ),
            (accepted(include_str!("merge.rs"), "fn wanted("), told(merge), &["--help", "-h"]),
        ] {
            assert!(accepted.len() > 5 && told.len() > 5, "{accepted:?} {told:?}");
            for option in &accepted {
                assert!(
                    told.contains(option) || unlisted.contains(&option.as_str()),
                    "no usage text has {option}"
                );
            }
            for option in &told {
                assert!(accepted.contains(option), "{option} is in a usage text and not accepted");
            }
        }
    }

    fn refusal(words: &[&str]) -> String {
        parse(words).err().map_or(String::new(), |problem| problem.to_string())
    }

    #[test]
    fn options_take_a_value_where_they_are_said_to() {
        for arg in
            command().get_arguments().filter(|arg| arg.get_long().is_some_and(|long| long != "version"))
        {
            let option = format!("--{}", arg.get_long().unwrap());
            let message = if arg.get_action().takes_values() {
                refusal(&[&option])
            } else {
                refusal(&[&format!("{option}=x")])
            };
            let expected =
                if arg.get_action().takes_values() { "missing argument" } else { "unexpected argument" };
            assert!(message.contains(expected), "{option}: {message}");
        }
    }

    #[test]
    fn words_that_are_completed_are_accepted_and_belong_to_an_option() {
        let command = command();
        for (name, words) in WORDS {
            for word in words {
                let second: &[&str] =
                    if name == "order" { &["--alternate", "http://h/", "http://i/"] } else { &["http://h/"] };
                assert_eq!(
                    refusal(&[&["-R1", &format!("--{name}"), word], second].concat()),
                    "",
                    "--{name} {word}"
                );
            }
        }
        for name in WORDS.iter().map(|(name, _)| name).chain(&FILES) {
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(name)), "no option --{name}");
        }
    }

    #[test]
    fn every_option_has_a_help_of_its_own() {
        let command = command();
        for arg in command.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 8 && !help.contains("  "), "{}: {help:?}", arg.get_id());
        }
        let rate = command.get_arguments().find(|arg| arg.get_long() == Some("rate")).unwrap();
        assert!(
            rate.get_help().unwrap().to_string().starts_with("work rate (throughput)"),
            "{:?}",
            rate.get_help()
        );
        let two: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| arg.get_num_args().is_some_and(|n| n.min_values() == 2))
            .collect();
        assert_eq!(two.iter().map(|arg| arg.get_id().as_str()).collect::<Vec<_>>(), ["alternate"]);
        assert!(exit_codes().contains("130, 143 interrupted"));
    }
}
