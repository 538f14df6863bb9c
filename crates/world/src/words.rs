//! What a document itself speaks of: the texts and numbers that its conditions compare with, and the fields that it reads. Random
//! values are made of these often, as otherwise no condition would ever hold.

use selvedge_engine::Graph;
use selvedge_engine::expression::Expression;
use selvedge_engine::template::{Path, Seg, Template};
use serde_json::{Number, Value};
use std::collections::BTreeSet;

/// Entries of each kind that are kept: a document with more speaks of too much to hit any of it.
const MOST: usize = 200;
/// Characters of a text of a condition that is kept.
const LONG: usize = 200;

/// Texts, numbers and names of fields of a document.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Texts that conditions name.
    pub texts: Vec<String>,
    /// Numbers that they name, with the whole ones beside them.
    pub numbers: Vec<Number>,
    /// Fields of values that placeholders and expressions read.
    pub fields: Vec<String>,
}

#[derive(Default)]
struct Found {
    texts: BTreeSet<String>,
    numbers: BTreeSet<i64>,
    fields: BTreeSet<String>,
}

impl Words {
    /// Those of a compiled document.
    pub fn of(graph: &Graph) -> Self {
        let mut found = Found::default();
        // A graph as JSON has each text of the document once, wherever it stands; a graph that can't be written has none.
        if let Ok(graph) = serde_json::to_value(graph) {
            found.value(&graph);
        }
        Self {
            texts: found.texts.into_iter().take(MOST).collect(),
            numbers: found.numbers.into_iter().take(MOST).map(Number::from).collect(),
            fields: found.fields.into_iter().take(MOST).collect(),
        }
    }
}

impl Found {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            // What is said of tools is theirs and not the document's.
            Value::Object(fields) => {
                fields.iter().filter(|(name, _)| *name != "tools").for_each(|(_, value)| self.value(value));
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Ok(template) = Template::parse(text) {
            template.placeholders().for_each(|placeholder| self.path(&placeholder.path));
        }
        // A prompt is hardly ever an expression, and one that is does no harm.
        if let Ok(expression) = Expression::parse(text)
            && expression.paths().next().is_some()
        {
            expression.paths().for_each(|path| self.path(path));
            self.literals(text);
        }
    }

    fn path(&mut self, path: &Path) {
        for segment in &path.rest {
            if let Seg::Key(key) = segment
                && !matches!(&**key, "output" | "outputs" | "error")
            {
                self.fields.insert(key.to_string());
            }
        }
    }

    /// The texts and whole numbers that an expression names, and the fields that follow an index.
    fn literals(&mut self, source: &str) {
        let mut rest = source;
        while let Some(at) = rest.find(|char: char| char == '"' || char == '\'' || char.is_ascii_digit()) {
            let begins = rest.split_at(at).1;
            let quote = begins.chars().next().unwrap_or(' ');
            let within = begins.split_at(1).1;
            rest = if quote.is_ascii_digit() {
                let end = begins.find(|char: char| !char.is_ascii_digit()).unwrap_or(begins.len());
                let (number, behind) = begins.split_at(end);
                if let Ok(number) = number.parse::<i64>() {
                    let near = [number.checked_sub(1), Some(number), number.checked_add(1)];
                    self.numbers.extend(near.into_iter().flatten());
                }
                behind
            } else {
                let end = within.find(quote).unwrap_or(within.len());
                let (text, behind) = within.split_at(end);
                if text.chars().count() <= LONG {
                    self.texts.insert(text.to_owned());
                }
                behind.strip_prefix(quote).unwrap_or(behind)
            };
        }
    }
}
