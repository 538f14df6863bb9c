//! Reading the fields of an object: their types, those that are missing, and those that nobody knows (`E-32`).
//!
//! A [`Shape`] names the fields of one kind of object. [`Fields::open`] sorts the members of an object into
//! them once and reports unknown ones; the getters then read single fields. `null` on an optional field is the
//! same as leaving the field out, unless the reader asks for the raw value.

mod get;

use crate::diagnostic::shown;
use crate::json::{Member, Node, Span};
use crate::{Diagnostics, Finding};

pub use get::{TypeError, type_error};
pub(crate) use get::{choice_of, count_of};

/// The fields of one kind of object.
#[derive(Debug)]
pub struct Shape {
    /// What the object is, with its article: "a plan node".
    pub what: &'static str,
    /// The known fields, in ascending order (they are searched).
    pub fields: &'static [&'static str],
}

impl Shape {
    fn position(&self, name: &str) -> Option<usize> {
        self.fields.binary_search(&name).ok()
    }
}

/// The members of one object, sorted into the fields of a [`Shape`].
#[derive(Debug)]
pub struct Fields<'n, 's> {
    shape: &'static Shape,
    span: Span,
    slots: Vec<Option<&'n Member<'s>>>,
    /// Known fields that a misspelt one probably means: they are not reported as missing as well.
    meant: Vec<&'static str>,
}

impl<'n, 's> Fields<'n, 's> {
    /// Sorts the members of `node`; `None`, with a finding, if it is not an object. Unknown fields are findings
    /// (`E-32`): errors if they are misspelt known ones, else warnings.
    pub fn open(
        node: &'n Node<'s>,
        shape: &'static Shape,
        rule: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        debug_assert!(shape.fields.is_sorted(), "the fields of {} are not sorted", shape.what);
        let Some(members) = node.as_object() else {
            let message = format!("{} must be an object, not {}", shape.what, node.type_in_words());
            diagnostics.push(
                Finding::error(rule, "wrong-type", node.span, message)
                    .help("write its fields in braces: {\"field\": value}"),
            );
            return None;
        };
        let mut slots = vec![None; shape.fields.len()];
        let mut unknown = Vec::new();
        for member in members {
            let slot = shape.position(&member.key).and_then(|position| slots.get_mut(position));
            match slot {
                // The first of duplicate keys counts; the parser has reported the others.
                Some(slot @ None) => *slot = Some(member),
                Some(Some(_)) => {}
                None => unknown.push(member),
            }
        }
        let mut fields = Fields { shape, span: node.span, slots, meant: Vec::new() };
        for member in unknown {
            fields.report_unknown(member, diagnostics);
        }
        Some(fields)
    }

    /// Where the whole object is written.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The member `name` as it is written, `null` included. `name` must be one of the shape's fields.
    pub fn member(&self, name: &str) -> Option<&'n Member<'s>> {
        let position = self.shape.position(name);
        debug_assert!(position.is_some(), "{name} is no field of {}", self.shape.what);
        self.slots.get(position?).copied().flatten()
    }

    /// The value of the field `name`, unless it is absent or `null`.
    pub fn given(&self, name: &str) -> Option<&'n Node<'s>> {
        self.member(name).map(|member| &member.value).filter(|value| !value.is_null())
    }

    /// The value of a field that must be there, `null` included; else a finding "missing-field".
    pub fn required(
        &self,
        name: &'static str,
        rule: &'static str,
        help: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<&'n Node<'s>> {
        let member = self.member(name);
        if member.is_none() && !self.meant.contains(&name) {
            let message = format!("{} needs the field `{name}`", self.shape.what);
            diagnostics.push(Finding::error(rule, "missing-field", self.span.opening(), message).help(help));
        }
        member.map(|member| &member.value)
    }

    /// `E-32`: an unknown field that is probably a misspelt known one is an error, any other a warning.
    fn report_unknown(&mut self, member: &Member<'s>, diagnostics: &mut Diagnostics) {
        let key = shown(&member.key);
        let message = format!("{} has no field {key}", self.shape.what);
        if let Some(meant) = misspelt(&member.key, self.shape.fields) {
            self.meant.push(meant);
            diagnostics.push(
                Finding::error("E-32", "unknown-field", member.key_span, message)
                    .help(format!("did you mean `{meant}`?")),
            );
            return;
        }
        let help = match spelt_otherwise(&member.key, self.shape.fields) {
            Some(known) => format!("it is ignored; did you mean `{known}`?"),
            None => "it is ignored; remove it, or check its name".to_owned(),
        };
        diagnostics.push(Finding::warning("E-32", "unknown-field", member.key_span, message).help(help));
    }
}

/// The known name that `name` probably means (`E-32`): one or two letters (inserted, left out, changed, or two
/// neighbours swapped) away from one of four letters or more. The nearest, and of equals the first.
pub fn misspelt<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const LETTERS: usize = 4;
    const LONGEST: usize = 64;
    let length = name.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let near = |candidate: &&&str| {
        let letters = candidate.chars().count();
        // Nobody means `$schema` by `schema`, which is for something else.
        letters >= LETTERS && letters.abs_diff(length) <= 2 && !candidate.starts_with('$')
    };
    let measured =
        known.iter().filter(near).map(|candidate| (strsim::osa_distance(name, candidate), *candidate));
    // `min_by_key` keeps the first of equals.
    let (distance, nearest) = measured.min_by_key(|(distance, _)| *distance)?;
    (1..=2).contains(&distance).then_some(nearest)
}

/// The same of names of any length, for advice only: who says what is wrong without it.
pub fn meant<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = misspelt(name, known);
    // A short name that is one letter away is meant rather than a long one that is two away.
    near.filter(|near| strsim::osa_distance(name, near) == 1)
        .or_else(|| slip(name, known))
        .or(near)
        .or_else(|| spelt_otherwise(name, known))
}

/// The known name that stands almost so: it is misspelt, or differs only in case, `_` and `-`.
pub fn almost<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    misspelt(name, known).or_else(|| spelt_otherwise(name, known))
}

/// The only known name of up to three letters that becomes `name` by one slip: a letter doubled, or, of two letters or more,
/// one too many, one too few, or two swapped. Another letter in its place makes another name.
fn slip<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const LONGEST: usize = 3;
    let letters = |text: &str| text.chars().take(LONGEST + 2).collect::<Vec<char>>();
    let sorted = |mut word: Vec<char>| {
        word.sort_unstable();
        word
    };
    let typed = letters(name);
    let becomes = |candidate: &&&str| match letters(candidate) {
        word if word.len() == 1 => typed == [word.clone(), word].concat(),
        word if word.len() > LONGEST || typed.len() < 2 => false,
        word => {
            (word.len().abs_diff(typed.len()) == 1 || sorted(word) == sorted(typed.clone()))
                && strsim::osa_distance(name, candidate) == 1
        }
    };
    let mut found = known.iter().filter(becomes);
    found.next().filter(|_| found.next().is_none()).copied()
}

/// The same of what somebody types: also the only known name that begins with it.
pub fn near<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    meant(name, known).or_else(|| {
        let mut longer = known.iter().copied().filter(|known| name.len() > 1 && known.starts_with(name));
        longer.next().filter(|only| longer.next().is_none() && *only != name)
    })
}

/// The known name that differs only in case, `_` and `-`: `toolsLimit` for `tools_limit`.
fn spelt_otherwise<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    fn bare(text: &str) -> impl Iterator<Item = char> {
        text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase)
    }
    known.iter().copied().find(|candidate| *candidate != name && bare(candidate).eq(bare(name)))
}

#[cfg(test)]
mod tests;
