//! The rules themselves: each has a case, each stands in the source, and nothing names a rule that does not exist.

use super::{Case, cli::CliCase, files, read, spec_dir};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folders of `spec/cases` whose cases run in this process.
pub const FOLDERS: [&str; 4] = ["engine", "plan", "data", "workflow"];

/// The folders of those that run the built program.
pub const CLI_FOLDERS: [&str; 3] = ["cli", "agent", "evolve"];

/// What the suite knows of rules.
#[derive(Debug, Default)]
pub struct Rules {
    /// Rules that `spec/*.md` define, with the file.
    pub defined: BTreeMap<String, String>,
    /// Rules that cases name, with one of the cases.
    pub named: BTreeMap<String, String>,
    /// Rules that diagnostics in the source name, with the file.
    pub diagnosed: BTreeMap<String, String>,
    /// Rules that occur in the source of the product.
    pub in_source: BTreeSet<String>,
    /// Rules that a test in Rust names: for what no case can show, such as a bug in the program.
    pub tested: BTreeSet<String>,
}

impl Rules {
    /// Collects them.
    ///
    /// # Errors
    /// If a file can't be read.
    pub fn collect() -> Result<Self, String> {
        let mut rules = Self::default();
        let wrong = |error: regex::Error| error.to_string();
        let defines = Regex::new(r"(?m)^- \*\*([A-Z]-\d\d)\b").map_err(wrong)?;
        for path in all(&spec_dir(), "md", 1) {
            let text = text(&path)?;
            for found in defines.captures_iter(&text).filter_map(|found| found.get(1)) {
                rules.defined.insert(found.as_str().into(), name(&path));
            }
        }
        rules.cases()?;
        let id = Regex::new(r"\b[A-Z]-\d\d\b").map_err(wrong)?;
        let literal = Regex::new(r#""([A-Z]-\d\d)""#).map_err(wrong)?;
        let test = Regex::new(r"fn \w*?([a-z])(\d\d)_").map_err(wrong)?;
        let crates = spec_dir().join("../crates");
        for path in all(&crates, "rs", 12) {
            let text = text(&path)?;
            let inside = path.strip_prefix(&crates).unwrap_or(&path);
            for found in test.captures_iter(&text) {
                if let (Some(letter), Some(number)) = (found.get(1), found.get(2)) {
                    rules.tested.insert(format!("{}-{}", letter.as_str().to_uppercase(), number.as_str()));
                }
            }
            // The product's own source: neither tests nor this crate.
            let mut parts = inside.iter().map(|part| part.to_string_lossy());
            if inside.starts_with("sim") || parts.any(|part| part == "tests" || part == "tests.rs") {
                continue;
            }
            rules.in_source.extend(id.find_iter(&text).map(|found| found.as_str().to_owned()));
            for found in literal.captures_iter(&text).filter_map(|found| found.get(1)) {
                rules.diagnosed.insert(found.as_str().into(), name(&path));
            }
        }
        // The page is a part of the product, too.
        for path in all(&crates.join("server/page"), "js", 3) {
            rules.in_source.extend(id.find_iter(&text(&path)?).map(|found| found.as_str().to_owned()));
        }
        Ok(rules)
    }

    fn cases(&mut self) -> Result<(), String> {
        let cases = spec_dir().join("cases");
        for folder in FOLDERS {
            for file in files(&cases.join(folder))? {
                for case in read::<Case>(&file)? {
                    self.name(&case.rules, &file, &case.name);
                }
            }
        }
        for folder in CLI_FOLDERS {
            for file in files(&cases.join(folder))? {
                for case in read::<CliCase>(&file)? {
                    self.name(&case.rules, &file, &case.name);
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, rules: &[String], file: &Path, case: &str) {
        for rule in rules {
            self.named.entry(rule.clone()).or_insert_with(|| format!("{}: {case}", name(file)));
        }
    }

    /// Rules without a case.
    pub fn without_case(&self) -> Vec<String> {
        let missing = self.defined.iter();
        let missing =
            missing.filter(|(rule, _)| !self.named.contains_key(*rule) && !self.tested.contains(*rule));
        missing.map(|(rule, file)| format!("{rule} ({file}) has no case")).collect()
    }

    /// Rules that cases name and nothing defines.
    pub fn undefined(&self) -> Vec<String> {
        let unknown = self.named.iter().filter(|(rule, _)| !self.defined.contains_key(*rule));
        unknown.map(|(rule, case)| format!("{rule} is not defined (case {case})")).collect()
    }

    /// Rules that diagnostics name and nothing defines.
    pub fn undefined_in_source(&self) -> Vec<String> {
        let unknown = self.diagnosed.iter().filter(|(rule, _)| !self.defined.contains_key(*rule));
        unknown.map(|(rule, file)| format!("{rule} is not defined (source {file})")).collect()
    }

    /// Rules that the source does not name.
    pub fn without_source(&self) -> Vec<String> {
        let missing = self.defined.iter().filter(|(rule, _)| !self.in_source.contains(*rule));
        missing.map(|(rule, file)| format!("{rule} ({file}) is not in the source")).collect()
    }
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// All files of a kind in a folder and the folders in it, `depth` folders deep.
fn all(dir: &Path, extension: &str, depth: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() && depth > 1 {
            found.extend(all(&path, extension, depth - 1));
        } else if path.extension().is_some_and(|known| known == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}
