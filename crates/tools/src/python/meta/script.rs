//! Inline script metadata (PEP 723): the dependencies of a file as other programs read them, beside `__TOOL_META__`.

use crate::python::environment::Dependencies;
use toml::de::{DeTable, DeValue};

/// What a `# /// script` block says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Script {
    /// `dependencies`, if it has such.
    pub(super) dependencies: Option<Vec<String>>,
    /// Keys that mean nothing here.
    pub(super) unknown: Vec<String>,
}

impl Script {
    /// Reads a block's text, without its `#`.
    ///
    /// # Errors
    /// What is wrong with it, also that it is for another Python than `python`.
    pub(super) fn read(text: &str, python: (u32, u32)) -> Result<Self, String> {
        let table = DeTable::parse(text).map_err(|e| {
            format!("the block `# /// script` is no TOML: {}", e.message().replace('\n', ", "))
        })?;
        let mut script = Self::default();
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("dependencies", DeValue::Array(items)) => {
                    let texts = items.iter().map(|item| item.get_ref().as_str().map(str::to_owned));
                    let texts: Option<Vec<_>> = texts.collect();
                    script.dependencies = Some(texts.ok_or(STRINGS)?);
                }
                ("dependencies", _) => return Err(STRINGS.to_owned()),
                ("requires-python", DeValue::String(asked)) => match fits(asked, python) {
                    Some(true) => {}
                    Some(false) => {
                        let (major, minor) = python;
                        return Err(format!("it requires Python {asked}, and this is {major}.{minor}"));
                    }
                    None => return Err(format!("`requires-python` is {asked:?}, which says no version")),
                },
                ("requires-python", _) => return Err("`requires-python` must be a string".to_owned()),
                // `[tool]` is for other programs, where packages come from included.
                (other, _) => script.unknown.push(format!("# /// script: {other}")),
            }
        }
        Ok(script)
    }
}

const STRINGS: &str = "`dependencies` of the block `# /// script` must be a list of strings";

/// The dependencies of a file that may say them in two places.
///
/// # Errors
/// The two sets, where they are not the same.
pub(super) fn agreed(meta: Option<Vec<String>>, script: Option<Vec<String>>) -> Result<Vec<String>, String> {
    let (meta, script) = match (meta, script) {
        (Some(meta), Some(script)) => (meta, script),
        (one, other) => return Ok(one.or(other).unwrap_or_default()),
    };
    let same = match (Dependencies::new(&meta), Dependencies::new(&script)) {
        (Ok(meta), Ok(script)) => meta == script,
        // The entry that is wrong is named with the others.
        (Err(_), _) => return Ok(meta),
        (_, Err(_)) => return Ok(script),
    };
    if same {
        return Ok(meta);
    }
    Err(format!(
        "`dependencies` are [{}] in __TOOL_META__ and [{}] in the block `# /// script`: they must be the same",
        meta.join(", "),
        script.join(", ")
    ))
}

/// Whether a Python is one of these versions, as far as its first two numbers tell; `None` if the text says none.
fn fits(asked: &str, python: (u32, u32)) -> Option<bool> {
    let mut all = true;
    for part in asked.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let signs = ["~=", "==", "!=", "<=", ">=", "<", ">"];
        let (sign, version) = signs.iter().find_map(|sign| Some((*sign, part.strip_prefix(sign)?.trim())))?;
        let version = version.strip_suffix(".*").unwrap_or(version);
        let numbers: Vec<u32> =
            version.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let (asked, finer) = match *numbers.as_slice() {
            // `3` alone stands for 3.0, but for all of 3 where only equality counts.
            [3] if sign == "==" || sign == "~=" => ((3, python.1), true),
            [major] => ((major, 0), false),
            [major, minor] => ((major, minor), false),
            [major, minor, _, ..] => ((major, minor), true),
            [] => return None,
        };
        all &= match sign {
            ">=" => python >= asked,
            "<=" => python <= asked,
            ">" => python > asked || (finer && python == asked),
            "<" => python < asked || (finer && python == asked),
            "!=" => python != asked || finer,
            "~=" if !finer => python >= asked && python.0 == asked.0,
            _ => python == asked,
        };
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::{Script, agreed, fits};

    #[test]
    fn versions_of_python_are_compared_by_their_first_two_numbers() {
        for asked in [
            ">=3.9",
            ">=3.11,<4",
            "==3.11.*",
            "~=3.9",
            "~=3.11.2",
            ">3.10",
            "!=3.10",
            "<3.12",
            "== 3",
            ">=3.11.4",
            "",
        ] {
            assert_eq!(fits(asked, (3, 11)), Some(true), "{asked}");
        }
        for asked in [">=3.12", "<3.11", "==3.10.*", "~=4.0", "~=3.12", ">3.11", "!=3.11.*", "<=3.10", "==2"]
        {
            assert_eq!(fits(asked, (3, 11)), Some(false), "{asked}");
        }
        for asked in ["3.11", ">=x", ">=", "^3.9"] {
            assert_eq!(fits(asked, (3, 11)), None, "{asked}");
        }
    }

    #[test]
    fn a_block_is_toml_with_two_keys() {
        let read = |text| Script::read(text, (3, 11));
        let script =
            read("requires-python = '>=3.9'\ndependencies = [\n 'a>=1',\n]\n[tool.uv]\nindex = 1\n").unwrap();
        assert_eq!(script.dependencies.unwrap(), ["a>=1"]);
        assert_eq!(script.unknown, ["# /// script: tool"]);
        assert_eq!(read("").unwrap(), Script::default());
        for (text, why) in [
            ("dependencies = 'a'", "list of strings"),
            ("dependencies = [1]", "list of strings"),
            ("dependencies = [", "no TOML"),
            ("requires-python = '>=3.12'", "requires Python >=3.12, and this is 3.11"),
            ("requires-python = 3", "must be a string"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn both_places_must_say_the_same_set() {
        let list = |entries: &[&str]| Some(entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            agreed(list(&["B>=1", "a"]), list(&["a", "b >= 1", "pydantic>=2"])).unwrap(),
            ["B>=1", "a"]
        );
        assert_eq!(agreed(None, list(&["a"])).unwrap(), ["a"]);
        assert_eq!(agreed(list(&["a"]), None).unwrap(), ["a"]);
        let error = agreed(list(&["a"]), list(&["b", "c"])).unwrap_err();
        assert!(error.contains("[a] in __TOOL_META__ and [b, c] in the block"), "{error}");
        assert!(agreed(list(&[]), list(&["a"])).is_err());
    }
}
