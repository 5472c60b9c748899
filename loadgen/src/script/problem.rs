//! What went wrong in a script, as one line.

/// The prelude's own name, whose lines tell a script's author nothing.
const PRELUDE: &str = "wrk";

/// File, line and what is wrong, without the trace.
pub fn message(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { traceback, cause } => {
            // The innermost line of the script is where the callback was called.
            let place = traceback
                .lines()
                .filter_map(|line| Some(line.trim().split_once(": in ")?.0))
                .find(|place| has_place(&format!("{place}: ")));
            let cause = message(cause);
            match place {
                Some(place) if !has_place(&cause) => format!("{place}: {cause}"),
                _ => cause,
            }
        }
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::FromLuaConversionError { from, to, .. } => {
            let expected =
                if to.contains("userdata") { "address as wrk.lookup finds them" } else { to.as_str() };
            format!("{} is no {expected}", told_type(from))
        }
        other => other.to_string(),
    };
    let first = text.split("\nstack traceback:").next().unwrap_or_default();
    let text = first.trim_start_matches("runtime error: ").trim().replace('\n', " ");
    let text = match place(&text) {
        Some((name, rest)) if is_ours(name) => rest.to_owned(),
        _ => text,
    };
    // What error() was given may be any value.
    if text == "nil" || text.starts_with("table: 0x") {
        format!("an error without a text: {text}")
    } else {
        text
    }
}

/// `nil` is no table; `a number` is none.
pub fn told_type(name: &str) -> String {
    match name {
        "nil" => name.to_owned(),
        "integer" => "a number".to_owned(),
        _ => format!("a {name}"),
    }
}

/// Whether it begins with the name and line of a file.
pub fn has_place(text: &str) -> bool {
    place(text).is_some_and(|(name, _)| !is_ours(name) && !name.starts_with("[string"))
}

/// The prelude, or what stands between a script and the fields of a userdata.
fn is_ours(name: &str) -> bool {
    name == PRELUDE || name.starts_with("__mlua")
}

/// `script.lua:4: what` → `script.lua`, `what`.
fn place(text: &str) -> Option<(&str, &str)> {
    let (place, what) = text.split_once(": ")?;
    let (name, line) = place.rsplit_once(':')?;
    (!name.is_empty() && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some((name, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_and_a_line_whatever_the_file_is_called() {
        assert!(has_place("/dev/fd/63:3: attempt to index") && has_place("...a/b.lua:12: x"));
        for none in [
            "wrk:28: attempt",
            "__mlua_newindex:8: bad",
            "[string \"x\"]:1: y",
            "stack overflow",
            "table: 0x55",
            ":1: x",
            "a:b: c",
        ] {
            assert!(!has_place(none), "{none}");
        }
        assert_eq!(message(&mlua::Error::runtime("wrk:28: attempt to index")), "attempt to index");
    }
}
