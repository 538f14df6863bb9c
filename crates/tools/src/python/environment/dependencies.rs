//! Sets of dependencies: what a tool may ask for, and one spelling for all ways to write it.

use std::collections::BTreeSet;
use std::fmt;

/// The most packages that one tool may name, and the longest of their entries.
const MOST: usize = 200;
const LONGEST: usize = 300;

/// What compares versions, longer ones before their beginnings.
const COMPARISONS: [&str; 8] = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"];

/// A set of dependencies: normalised, sorted, pydantic included.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependencies(BTreeSet<String>);

/// An entry that is no released package, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// As it was written.
    pub entry: String,
    /// What about it is refused.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a released package like `requests` or `requests>=2`: {}", self.entry, self.why)
    }
}

impl Dependencies {
    /// Reads the `dependencies` of a tool: packages of the index by name, with extras and versions.
    ///
    /// # Errors
    /// The first entry that is something else: an option, a path, an address, a condition.
    pub fn new(listed: &[String]) -> Result<Self, Refused> {
        let refused = |entry: &str, why: String| {
            let entry = entry.chars().take(LONGEST).filter(|c| !c.is_control()).collect();
            Refused { entry, why }
        };
        if let Some(over) = listed.get(MOST) {
            return Err(refused(over, format!("a tool may name {MOST} packages, and this is one more")));
        }
        let mut set = BTreeSet::new();
        for entry in listed {
            set.insert(normal(entry).map_err(|why| refused(entry, why))?);
        }
        // The worker itself needs it, whatever else the tool asks of it.
        set.insert("pydantic>=2".to_owned());
        Ok(Self(set))
    }

    /// One entry a line, as `uv` reads them.
    pub(super) fn text(&self) -> String {
        self.0.iter().fold(String::new(), |text, entry| text + entry + "\n")
    }
}

impl fmt::Display for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(String::as_str).collect();
        f.write_str(&all.join(", "))
    }
}

/// `Name [B, a] < 2, >= 1` as `name[a,b]<2,>=1`. What is refused would let a tool choose where packages come from, or
/// run code of its own while they are installed.
fn normal(entry: &str) -> Result<String, String> {
    let entry = entry.trim();
    let refuse = |why: &str| Err(why.to_owned());
    match entry {
        "" => return refuse("it is empty"),
        _ if entry.len() > LONGEST => return refuse("it is too long"),
        _ if entry.starts_with('-') => return refuse("options are not taken"),
        _ if entry.contains(char::is_control) => {
            return refuse("an entry is one line without control characters");
        }
        _ if entry.contains('@') || entry.contains("://") => {
            return refuse("addresses are not taken, only names of the package index");
        }
        _ if entry.contains(['/', '\\']) || entry.starts_with('.') => {
            return refuse("paths are not taken, only names of the package index");
        }
        _ if entry.contains(';') => {
            return refuse("conditions (environment markers) are not taken: it is installed for one machine");
        }
        _ => {}
    }
    let end = entry.find(|c: char| !is_named(c)).unwrap_or(entry.len());
    let (given, rest) = entry.split_at_checked(end).unwrap_or((entry, ""));
    let mut text = name(given).ok_or_else(|| format!("`{given}` is no name"))?;
    let mut rest = rest.trim();
    if let Some((inside, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let extras: Option<BTreeSet<_>> = inside.split(',').map(|extra| name(extra.trim())).collect();
        let extras = extras.ok_or_else(|| format!("`[{inside}]` names no extras"))?;
        text = format!("{text}[{}]", extras.into_iter().collect::<Vec<_>>().join(","));
        rest = after.trim();
    }
    let bare = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest).trim();
    if bare.is_empty() {
        return Ok(text);
    }
    let versions: Result<BTreeSet<_>, _> = bare.split(',').map(|part| version(part.trim())).collect();
    Ok(text + &versions?.into_iter().collect::<Vec<_>>().join(","))
}

fn is_named(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// A name as PyPI compares them: lower case, and each run of `-`, `_` and `.` one `-`.
fn name(given: &str) -> Option<String> {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !edge(given.chars().next()) || !edge(given.chars().last()) || !given.chars().all(is_named) {
        return None;
    }
    let mut text = String::with_capacity(given.len());
    for c in given.chars() {
        match c {
            '-' | '_' | '.' if text.ends_with('-') => {}
            '-' | '_' | '.' => text.push('-'),
            other => text.push(other.to_ascii_lowercase()),
        }
    }
    Some(text)
}

fn version(part: &str) -> Result<String, String> {
    let compared = COMPARISONS.iter().find_map(|sign| Some((*sign, part.strip_prefix(sign)?.trim())));
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '*' | '+' | '!' | '_' | '-');
    match compared {
        Some((sign, number)) if !number.is_empty() && number.chars().all(usual) => {
            Ok(format!("{sign}{number}"))
        }
        _ => Err(format!("`{part}` says no version like `>=2`")),
    }
}
