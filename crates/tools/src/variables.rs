//! Variables of the environment that tools are given: declared by name, allowed by name, and read by the user's own
//! program alone. Their values are keys (C-06): they reach the process of the tool that declares them, and nothing else.

use crate::diag::ToolError;
use selvedge_http::Secret;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Those that each tool has, whatever there is in the environment.
const OURS: [&str; 7] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "USER"];
/// Those that say what programs load before they begin, and Selvedge's own.
const STEERING: [&str; 4] = ["DYLD_", "LD_", "PYTHON", "SELVEDGE_"];

/// Why no tool is given a variable of this name; `None` if one may be.
pub fn unfit_variable(name: &str) -> Option<&'static str> {
    let signs = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !signs || name.chars().next().is_none_or(|first| first.is_ascii_digit()) {
        return Some("is no name of a variable (letters, digits and `_`)");
    }
    if OURS.contains(&name) {
        return Some("is a variable that tools have anyway");
    }
    let steers = STEERING.iter().any(|begin| name.starts_with(begin));
    steers.then_some("is a variable that no tool is given: it steers how programs start")
}

/// What was allowed: names, and the values of those that are set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables(BTreeMap<String, Option<Secret>>);

impl FromIterator<(String, Option<String>)> for Variables {
    fn from_iter<T: IntoIterator<Item = (String, Option<String>)>>(all: T) -> Self {
        Self(all.into_iter().map(|(name, value)| (name, value.map(|value| Secret::new(&value)))).collect())
    }
}

impl Variables {
    /// The names that were allowed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether a name was allowed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Those of these names that were allowed and are set.
    pub(crate) fn given(&self, names: &[String]) -> Vec<(String, Secret)> {
        let given = |name: &String| Some((name.clone(), self.0.get(name)?.clone()?));
        names.iter().filter_map(given).collect()
    }

    /// The same, where all have to be set.
    ///
    /// # Errors
    /// One error (`Environment`) that names the tool and those that are not.
    pub(crate) fn all(&self, tool: &str, names: &[String]) -> Result<Vec<(String, Secret)>, ToolError> {
        let given = self.given(names);
        if given.len() == names.len() {
            return Ok(given);
        }
        let unset = names.iter().filter(|name| !given.iter().any(|(known, _)| known == *name));
        let unset: Vec<String> = unset.map(|name| format!("`{name}`")).collect();
        let (what, verb) = if unset.len() == 1 { ("variable", "is") } else { ("variables", "are") };
        let message =
            format!("the tool `{tool}` needs the {what} {}, which {verb} not set", unset.join(", "));
        Err(ToolError::environment("A-20", message).help("set it in the environment of this command"))
    }
}

/// Variables as a process is given them.
pub(crate) fn pairs(given: &[(String, Secret)]) -> impl Iterator<Item = (OsString, OsString)> {
    given.iter().map(|(name, value)| (name.into(), value.expose().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// neither what is no name nor what would steer the interpreter before the sandbox has begun.
    #[test]
    fn names_that_no_tool_is_given() {
        for fit in ["SERP_KEY", "_x", "a1", "GOOGLE_APPLICATION_CREDENTIALS", "LDAP_PASSWORD"] {
            assert_eq!(unfit_variable(fit), None, "{fit}");
        }
        for unfit in [
            "",
            "1A",
            "A-B",
            "A=B",
            "schlüssel",
            "PATH",
            "HOME",
            "LD_PRELOAD",
            "PYTHONPATH",
            "SELVEDGE_API_KEY",
        ] {
            assert!(unfit_variable(unfit).is_some(), "{unfit}");
        }
    }

    #[test]
    fn what_is_not_set_is_named_and_no_value_is_shown() {
        let all = [("A".to_owned(), Some("value-of-a".to_owned())), ("B".to_owned(), None)];
        let variables = Variables::from_iter(all);
        let names = ["A".to_owned(), "B".to_owned(), "C".to_owned()];
        assert_eq!(variables.given(&names).len(), 1);
        let error = variables.all("t", &names).unwrap_err();
        assert_eq!(error.message, "the tool `t` needs the variables `B`, `C`, which are not set");
        assert!(!format!("{variables:?}").contains("value-of-a"));
    }
}
