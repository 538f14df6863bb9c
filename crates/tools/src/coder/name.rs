//! Names of tools that somebody asks for.

use crate::builtin::Builtin;
use crate::names::reserved;
use crate::python::{LONGEST_NAME, safe_name as plain};

/// The name that a tool gets which is asked for by this one: every run of others than `a-zA-Z0-9_` becomes one `_`, and none is left
/// at the ends.
///
/// # Errors
/// Why there is none, in words for who asked: nothing is left, it begins with a digit, or it is not to be had.
pub fn safe_name(name: &str) -> Result<String, String> {
    let plain = plain(name);
    let safe = plain.trim_matches('_');
    let unfit = match safe.chars().next() {
        None => "has no letter of a to z in it".to_owned(),
        Some(first) if first.is_ascii_digit() => {
            format!("would be `{}`, which begins with a digit", start(safe))
        }
        Some(_) if safe.len() > LONGEST_NAME => {
            format!("has {} characters, and the longest has {LONGEST_NAME}", safe.len())
        }
        Some(_) if Builtin::ALL.iter().any(|builtin| builtin.name() == safe) => {
            format!("would be `{safe}`, which is a built-in tool's")
        }
        Some(_) => match reserved(safe) {
            Some(message) => return Err(format!("{message}: choose another name")),
            None => return Ok(safe.to_owned()),
        },
    };
    let shown: String = start(name).chars().flat_map(char::escape_default).collect();
    Err(format!(
        "the name \"{shown}\" {unfit}: choose another one of letters, digits and `_`, such as `parse_invoice`"
    ))
}

/// The beginning of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a08_names_are_made_safe() {
        for (name, safe) in [
            ("parse_csv", "parse_csv"),
            ("Parse CSV", "Parse_CSV"),
            ("../../x", "x"),
            ("__a--b  c__", "a_b_c"),
            ("a__b", "a__b"),
            ("größe", "gr_e"),
            ("x\u{202e}y\n", "x_y"),
            // It is one of ours only at its beginning.
            ("_selvedge__x", ""),
            ("a_selvedge__x", "a_selvedge__x"),
        ] {
            match safe {
                "" => assert!(safe_name(name).is_err(), "{name}"),
                safe => assert_eq!(safe_name(name).as_deref(), Ok(safe), "{name}"),
            }
        }
        for (name, why) in [
            ("", "no letter"),
            ("日本語", "no letter"),
            ("../..", "no letter"),
            ("3d plot", "digit"),
            ("selvedge__draft", "Selvedge's own"),
            ("read_file", "built-in"),
            ("read-file", "built-in"),
            (" shell ", "built-in"),
            (&"x".repeat(201), "201 characters"),
        ] {
            let error = safe_name(name).unwrap_err();
            assert!(error.contains(why) && error.contains("choose another"), "{name}: {error}");
        }
        assert!(safe_name(&"x".repeat(200)).is_ok());
        // What is shown of a name steers no terminal and fills no prompt.
        let error = safe_name(&format!("\u{1b}[31m{}", "é".repeat(9000))).unwrap_err();
        assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
    }
}
