//! Keys that stand in a configuration file, where they don't belong: found by name, and never shown (C-06).

use crate::environment::Environment;
use selvedge_tools::unfit_variable;
use std::ops::Range;

/// Whether a field of this name would hold a key itself: `api_key`, `token`; not `api_key_env`, which names a variable.
pub(super) fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 6] = ["key", "token", "secret", "password", "passwd", "passphrase"];
    let name = name.to_ascii_lowercase().replace('-', "_");
    !name.ends_with("_env") && WORDS.iter().any(|word| name.ends_with(word))
}

/// Whether a text may be shown as the name of a variable: letters, digits and `_`, no digit first. A key that was written in
/// its place may look like one; no variable that is set is taken for it, but a long word of capitals, small letters and
/// digits is.
pub(super) fn names_variable(environment: &Environment, text: &str) -> bool {
    /// Keys are longer than this.
    const LONG: usize = 20;
    let signs = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let has = |kind: fn(&char) -> bool| text.chars().any(|c| kind(&c));
    let small = has(char::is_ascii_lowercase);
    let mixed = small && has(char::is_ascii_digit) && (has(char::is_ascii_uppercase) || !text.contains('_'));
    signs
        && text.chars().next().is_some_and(|first| !first.is_ascii_digit())
        && (text.len() < LONG || !mixed || environment.is_set(text))
}

/// Why a text is no name of a variable that tools may be given (A-20); `None` if it is one. It may be the key itself.
pub fn not_a_variable(environment: &Environment, text: &str) -> Option<&'static str> {
    let key = "does not look like a name of a variable";
    unfit_variable(text).or_else(|| (!names_variable(environment, text)).then_some(key))
}

/// Whether a variable's value is nothing to hide, whoever is handed it: each process has such a one, or it is a word, or the
/// place of something that is there.
pub(super) fn tells_nothing(name: &str, value: &str) -> bool {
    const USUAL: [&str; 14] = [
        "HOME", "PATH", "PWD", "SHELL", "TERM", "USER", "LOGNAME", "HOSTNAME", "LANG", "TMPDIR", "TZ",
        "DISPLAY", "EDITOR", "PAGER",
    ];
    let place = std::path::Path::new(value);
    USUAL.contains(&name)
        || ["LC_", "XDG_"].iter().any(|start| name.starts_with(start))
        || value.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'))
        || place.is_absolute() && place.exists()
}

/// Whether a variable or a header of this name may hold a key: of servers that are not ours, so more names may.
pub(super) fn may_be_secret(name: &str) -> bool {
    const PARTS: [&str; 11] = [
        "key",
        "token",
        "secret",
        "passw",
        "passphrase",
        "auth",
        "cookie",
        "credential",
        "private",
        "bearer",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || name.split(['_', '-']).any(|word| word == "pat")
}

/// Where keys stand in the addresses of a text, as ranges of bytes: users with their passwords, passwords, and values of a
/// query behind names of keys. A user without a password is one only where addresses are of the web, which knows no other
/// users.
pub fn in_addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices("://") {
        let scheme = text.get(..at).unwrap_or_default();
        let letter = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let scheme = scheme.rfind(|c| !letter(c)).and_then(|end| scheme.get(end + 1..)).unwrap_or(scheme);
        let start = at + sign.len();
        let rest = text.get(start..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>\\".contains(c);
        let address = rest.split(ends).next().unwrap_or_default();
        let user_end = user_end(address);
        if let Some(end) = user_end {
            let user = address.get(..end).unwrap_or_default();
            if let Some((name, password)) = user.split_once(':') {
                if !password.is_empty() {
                    found.push(start..start + end);
                    found.push(start + name.len() + 1..start + end);
                }
            } else if scheme.to_ascii_lowercase().starts_with("http") && !user.is_empty() {
                found.push(start..start + end);
            }
        }
        let behind = user_end.unwrap_or_default();
        let Some(query) = address.get(behind..).and_then(|rest| rest.find('?')) else { continue };
        let mut at = behind + query + 1;
        let pairs = address.get(at..).unwrap_or_default();
        for pair in pairs.split('#').next().unwrap_or_default().split('&') {
            if let Some((name, value)) = pair.split_once('=')
                && (may_be_secret(name) || name == "sig")
                && !value.is_empty()
            {
                found.push(start + at + name.len() + 1..start + at + pair.len());
            }
            at += pair.len() + 1;
        }
    }
    found
}

/// Where the user of an address ends, at an `@`. A password may have signs in it that should not stand there: what is
/// neither a host nor one with a port before the path is the beginning of one.
fn user_end(address: &str) -> Option<usize> {
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some(end) = authority.rfind('@') {
        return Some(end);
    }
    let (_, port) = authority.rsplit_once(':').filter(|_| !authority.starts_with('['))?;
    if port.chars().all(|c| c.is_ascii_digit()) { None } else { address.rfind('@') }
}

/// The same JSON, byte for byte as long, with `*` in place of the texts that are values; names of fields stay.
pub(super) fn masked_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        let (before, literal) = rest.split_at(at);
        shown.push_str(before);
        let mut escaped = false;
        let closing = literal.char_indices().skip(1).find(|(_, c)| {
            let closes = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            closes
        });
        let (literal, after) = literal.split_at(closing.map_or(literal.len(), |(end, _)| end + 1));
        match after.trim_start().starts_with(':') {
            true => shown.push_str(literal),
            false => shown.push_str(&stars(literal)),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// The same text, byte for byte as long, with `*` in place of values behind such names, and of keys in addresses; and of what
/// stands for the name of a variable and is none, as that may be the key. By its signs and not by its tree, so that a file
/// that is no TOML is shown without them as well.
pub(super) fn masked(environment: &Environment, text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('=') {
        let name = name_before(before);
        let variables = name.ends_with("_env") || name == "env";
        let list = variables && behind.trim_start().starts_with('[');
        let unnamed = || variables && !names_variable(environment, quoted(behind));
        let end = match (list, is_secret(name) || unnamed()) {
            (true, _) => behind.find(']').unwrap_or(behind.len()),
            (_, true) => value_end(behind),
            _ => 0,
        };
        let (value, after) = behind.split_at(behind.floor_char_boundary(end));
        shown.push_str(before);
        shown.push('=');
        shown.push_str(&if list { names_only(environment, value) } else { stars(value) });
        rest = after;
    }
    shown.push_str(rest);
    for range in in_addresses(&shown) {
        let hidden = shown.get(range.clone()).map(stars).unwrap_or_default();
        shown.replace_range(range, &hidden);
    }
    shown
}

/// A list of names of variables with `*` in place of what is none.
fn names_only(environment: &Environment, list: &str) -> String {
    let mut shown = String::with_capacity(list.len());
    let word = |c: char| !(c.is_whitespace() || "[],\"'".contains(c));
    let mut rest = list;
    while let Some(at) = rest.find(word) {
        let (between, behind) = rest.split_at(at);
        let (name, after) = behind.split_at(behind.find(|c| !word(c)).unwrap_or(behind.len()));
        shown.push_str(between);
        shown.push_str(&if names_variable(environment, name) { name.to_owned() } else { stars(name) });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// The last word in front of a `=`, without quotes and what a dotted name has before it.
fn name_before(text: &str) -> &str {
    let text = text.trim_end().trim_end_matches(['"', '\'']);
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.rfind(|c| !word(c)).and_then(|at| text.get(at..)).unwrap_or(text).trim_start_matches(|c| !word(c))
}

/// Where the value behind a `=` ends: at its closing quotes, else with the line. Tables and lists hold values of other
/// names.
fn value_end(text: &str) -> usize {
    let value = text.trim_start_matches([' ', '\t']);
    let start = text.len() - value.len();
    let line = text.find('\n').unwrap_or(text.len());
    for quotes in ["\"\"\"", "'''"] {
        if let Some(inside) = value.strip_prefix(quotes) {
            return inside.find(quotes).map_or(text.len(), |end| start + 3 + end);
        }
    }
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let mut escaped = false;
            let closing = value.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == quote && !escaped;
                escaped = quote == '"' && *c == '\\' && !escaped;
                closes
            });
            closing.map_or(line, |(end, _)| (start + end).min(line))
        }
        Some('{' | '[') => start,
        _ => start + number_end(value).unwrap_or(line - start),
    }
}

/// What of a value that is a number or a truth value is masked: nothing, as that is no key, but digits as long as a key all
/// the same. `None` for any other value.
fn number_end(value: &str) -> Option<usize> {
    /// What is shorter is no key (C-06).
    const SHORTEST_KEY: usize = 8;
    let end = value.find(|c: char| c.is_whitespace() || ",]}#".contains(c)).unwrap_or(value.len());
    let word = value.get(..end).unwrap_or_default();
    let digits = word.replace('_', "");
    let plain = matches!(word, "true" | "false")
        || digits.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            && digits.parse::<f64>().is_ok();
    plain.then_some(if digits.len() < SHORTEST_KEY { 0 } else { end })
}

/// The text in the quotes behind a `=`, or the word there.
fn quoted(text: &str) -> &str {
    let end = value_end(text);
    let value = text.get(..end).unwrap_or(text).trim();
    value.trim_matches(['"', '\'']).trim()
}

/// As many bytes of `*`; white space and quotes stay, so that the rest of the line is where it was.
fn stars(value: &str) -> String {
    let kept = |c: char| c.is_ascii_whitespace() || c == '"' || c == '\'';
    value.chars().flat_map(|c| std::iter::repeat_n(if kept(c) { c } else { '*' }, c.len_utf8())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys() {
        for name in ["api_key", "apikey", "token", "API-KEY", "client_secret", "password"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["api_key_env", "context_tokens", "tokens", "input_per_mtok", "model"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    /// C-06: what may be a key is no name of a variable.
    #[test]
    fn names_of_variables() {
        for name in ["OPENAI_API_KEY", "_x1", "k", "my_company_openai_api_key_2", "PATH"] {
            assert!(names_variable(&Environment::default(), name), "{name}");
        }
        for key in [
            "",
            "sk-proj-1",
            "1KEY",
            "A B",
            "$KEY",
            "KEÝ",
            "AIzaSyD0123456789abcdefghijklmnopqrstu",
            "0a1b2c3d",
        ] {
            assert!(!names_variable(&Environment::default(), key), "{key}");
        }
        assert!(!names_variable(&Environment::default(), "gsk_abcDEF0123456789abcdef"));
    }

    #[test]
    fn names_of_keys_of_others() {
        for name in ["GITHUB_TOKEN", "Authorization", "X-API-Key", "GITHUB_PAT", "PRIVATE_TOKEN_2", "Cookie"]
        {
            assert!(may_be_secret(name), "{name}");
        }
        for name in ["PATH", "PYTHONPATH", "LOG_LEVEL", "X-Trace-Id", "COMPATIBLE"] {
            assert!(!may_be_secret(name), "{name}");
        }
    }

    /// C-06: what of an address tells who may come in; hosts, ports, paths and other values are no keys.
    #[test]
    fn keys_of_addresses() {
        for (text, keys) in [
            ("https://u:p%20w@h/x", &["u:p%20w", "p%20w"][..]),
            ("--db=postgresql://u:p/w#1@h:5432/db?a=1", &["u:p/w#1", "p/w#1"]),
            ("https://ghp_0123@github.com/a.git", &["ghp_0123"]),
            ("ssh://git@github.com/a.git redis://:pw@h", &[":pw", "pw"]),
            ("https://h/a?api_key=k1&page=2&X-Amz-Signature=s3&sig=s4#token=no", &["k1", "s3", "s4"]),
            ("wss://u:p@h?token=t", &["u:p", "p", "t"]),
            ("see 'http://a:b@c' and \"http://d:e@f\"", &["a:b", "b", "d:e", "e"]),
            ("https://h:8080/a@1.0?x=1 http://[::1]:80/@ mailto:a@b key=v", &[]),
            ("postgres://localhost/db https://é:ü@h", &["é:ü", "ü"]),
        ] {
            let found: Vec<&str> = in_addresses(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, keys, "{text}");
        }
        assert_eq!(
            masked(&Environment::default(), "url = \"https://u:pé@h?auth=k\" # x"),
            "url = \"https://*****@h?auth=*\" # x"
        );
    }

    #[test]
    fn values_of_json_are_masked_in_place() {
        for (text, shown) in [
            (r#"{"a": "sk-1", "b" : ["x y"]}"#, r#"{"a": "****", "b" : ["* *"]}"#),
            (r#"{"a": "q\"r", "é": "ü"}"#, r#"{"a": "**"*", "é": "**"}"#),
            (r#"{"a": "never ends"#, r#"{"a": "***** ****"#),
        ] {
            assert_eq!(masked_json(text), shown);
            assert_eq!(masked_json(text).len(), text.len());
        }
    }

    /// C-06: whatever the line looks like, the value is gone and everything else is where it was.
    #[test]
    fn values_are_masked_in_place() {
        for (line, shown) in [
            ("api_key = \"sk-1\" # x = 1", "api_key = \"****\" # x = 1"),
            (
                "models.a = { provder = \"x\", 'token' = 'é1' }",
                "models.a = { provder = \"x\", 'token' = '***' }",
            ),
            ("api_key = sk-1, more", "api_key = ***** ****"),
            ("api_key = \"sk 1", "api_key = \"** *"),
            ("a.b.secret=s", "a.b.secret=*"),
            // Numbers are no keys, unless they are as long.
            (
                "price = { input_per_mtoken = 3, output_per_mtok = 1 }",
                "price = { input_per_mtoken = 3, output_per_mtok = 1 }",
            ),
            ("max_token = 1_000 # x", "max_token = 1_000 # x"),
            ("{ token = -0.5}", "{ token = -0.5}"),
            ("{ use_token = true, token = \"s\" }", "{ use_token = true, token = \"*\" }"),
            ("{ token = 0123456789, a = 1 }", "{ token = **********, a = 1 }"),
            ("token = 1s2", "token = ***"),
            ("api_key_env = \"sk-proj-1\" # x", "api_key_env = \"*********\" # x"),
            ("api_key_env = sk-proj-1", "api_key_env = *********"),
            (r#"token = "a\"b" # c"#, r#"token = "**"*" # c"#),
            ("token = \"\"\"a\nb\"\"\"\nx = 1", "token = \"\"\"*\n*\"\"\"\nx = 1"),
            ("api_key_env = \"NAME\"", "api_key_env = \"NAME\""),
            ("token = { type = \"string\" }", "token = { type = \"string\" }"),
        ] {
            assert_eq!(masked(&Environment::default(), line), shown);
            assert_eq!(
                masked(&Environment::default(), &format!("{line}\n{line}\r\n")).len(),
                2 * line.len() + 3
            );
        }
    }

    /// C-06: what stands in a list of names of variables and is none may be a key.
    #[test]
    fn lists_of_variables_show_names_only() {
        let text = "allow_env = [\"SERP_KEY\", 'serp-0123', \"a b\"]\nenv = [oops-1]\nenv = \"sk-1\"\nenv = { A = \"b\" }\nenv = [\"x-1\n";
        let shown = masked(&Environment::default(), text);
        let stars = "allow_env = [\"SERP_KEY\", '*********', \"a b\"]\nenv = [******]\nenv = \"****\"\nenv = { A = \"b\" }\nenv = [\"***\n";
        assert_eq!(shown, stars);
    }
}
