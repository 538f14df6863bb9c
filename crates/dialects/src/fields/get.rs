//! Getters for fields of the usual types.

use std::sync::Arc;
use std::time::Duration;

use super::{Fields, almost};
use crate::diagnostic::shown;
use crate::json::{Kind, Node, Spanned};
use crate::{Diagnostics, Finding, Source};

/// The longest time in seconds that a field may give (about 31 years), so that no clock overflows.
const LONGEST_SECONDS: f64 = 1e9;

/// What a value should have been.
#[derive(Clone, Copy, Debug)]
pub struct TypeError<'t> {
    /// The field's name.
    pub field: &'t str,
    /// What it must be: "a string".
    pub expected: &'t str,
    /// The rule that says so.
    pub rule: &'static str,
    /// What to do about it.
    pub help: &'t str,
}

/// The finding "wrong-type": `node` is not what the field must hold.
pub fn type_error(node: &Node<'_>, error: TypeError<'_>) -> Finding {
    let is = match &node.kind {
        Kind::Number(number) => format!("{number}"),
        Kind::String(text) => format!("the string {}", shown(text)),
        Kind::Bool(flag) => flag.to_string(),
        _ => node.type_in_words().to_owned(),
    };
    let message = format!("`{}` must be {}, not {is}", error.field, error.expected);
    Finding::error(error.rule, "wrong-type", node.span, message).help(error.help)
}

impl<'n, 's> Fields<'n, 's> {
    /// An optional string.
    pub fn text(
        &self,
        field: &'static str,
        rule: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        text_of(self.given(field)?, field, rule, diagnostics)
    }

    /// A string that must be there. `help` says what to write if it is missing.
    pub fn required_text(
        &self,
        field: &'static str,
        rule: &'static str,
        help: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        text_of(self.required(field, rule, help, diagnostics)?, field, rule, diagnostics)
    }

    /// An optional string that must not be empty.
    pub fn name(
        &self,
        field: &'static str,
        rule: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        not_empty(self.text(field, rule, diagnostics)?, field, rule, diagnostics)
    }

    /// A string that must be there and not be empty.
    pub fn required_name(
        &self,
        field: &'static str,
        rule: &'static str,
        help: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Arc<str>>> {
        let text = self.required_text(field, rule, help, diagnostics)?;
        not_empty(text, field, rule, diagnostics)
    }

    /// An optional boolean.
    pub fn boolean(
        &self,
        field: &'static str,
        rule: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<bool>> {
        let node = self.given(field)?;
        if let Kind::Bool(flag) = node.kind {
            return Some(Spanned::new(flag, node.span));
        }
        let help = "write true or false, without quotes";
        diagnostics.push(type_error(node, TypeError { field, expected: "true or false", rule, help }));
        None
    }

    /// An optional integer from 0 on.
    pub fn count(
        &self,
        field: &'static str,
        rule: &'static str,
        source: &Source,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<u64>> {
        count_of(self.given(field)?, field, rule, source, diagnostics)
    }

    /// An optional number.
    pub fn number(
        &self,
        field: &'static str,
        rule: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<f64>> {
        let node = self.given(field)?;
        if let Kind::Number(number) = &node.kind
            && let Some(value) = number.as_f64()
        {
            return Some(Spanned::new(value, node.span));
        }
        let help = "write a number, without quotes";
        diagnostics.push(type_error(node, TypeError { field, expected: "a number", rule, help }));
        None
    }

    /// An optional time in seconds (`P-24`): a number above 0, or from 0 on with `zero`.
    pub fn seconds(
        &self,
        field: &'static str,
        rule: &'static str,
        zero: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<Duration>> {
        let node = self.given(field)?;
        if !matches!(node.kind, Kind::Number(_)) {
            let help = "write seconds as a number, such as 30 or 0.5, without quotes and unit";
            diagnostics
                .push(type_error(node, TypeError { field, expected: "a number of seconds", rule, help }));
            return None;
        }
        let number = self.number(field, rule, diagnostics)?;
        let fits = number.value <= LONGEST_SECONDS && (number.value > 0.0 || zero && number.value == 0.0);
        if fits && let Ok(time) = Duration::try_from_secs_f64(number.value) {
            return Some(Spanned::new(time, number.span));
        }
        let least = if zero { "0 or more" } else { "more than 0" };
        let message = format!("`{field}` must be {least} seconds and at most {LONGEST_SECONDS}");
        diagnostics.push(
            Finding::error(rule, "out-of-range", number.span, message)
                .help("write seconds as a number, such as 30 or 0.5, or leave the field out"),
        );
        None
    }

    /// An optional string that must be one of `choices`.
    pub fn choice<T: Copy>(
        &self,
        field: &'static str,
        rule: &'static str,
        choices: &[(&'static str, T)],
        diagnostics: &mut Diagnostics,
    ) -> Option<Spanned<T>> {
        choice_of(self.given(field)?, field, rule, choices, diagnostics)
    }
}

fn text_of(
    node: &Node<'_>,
    field: &str,
    rule: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<Arc<str>>> {
    if let Some(text) = node.as_str() {
        return Some(Spanned::new(text.into(), node.span));
    }
    let help = "write a text in double quotes";
    diagnostics.push(type_error(node, TypeError { field, expected: "a string", rule, help }));
    None
}

fn not_empty(
    text: Spanned<Arc<str>>,
    field: &str,
    rule: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<Arc<str>>> {
    if !text.value.is_empty() {
        return Some(text);
    }
    diagnostics.push(
        Finding::error(rule, "empty-name", text.span, format!("`{field}` must not be empty"))
            .help("write a name, or leave the field out if it is optional"),
    );
    None
}

pub(crate) fn count_of(
    node: &Node<'_>,
    field: &str,
    rule: &'static str,
    source: &Source,
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<u64>> {
    let Some(integer) = node.as_integer(source) else {
        let help = "write an integer, such as 3";
        diagnostics.push(type_error(node, TypeError { field, expected: "an integer", rule, help }));
        return None;
    };
    if let Ok(value) = u64::try_from(integer.value) {
        return Some(Spanned::new(value, node.span));
    }
    let message = format!("`{field}` must not be negative");
    diagnostics.push(
        Finding::error(rule, "out-of-range", node.span, message).help("write an integer that is 0 or more"),
    );
    None
}

pub(crate) fn choice_of<T: Copy>(
    node: &Node<'_>,
    field: &str,
    rule: &'static str,
    choices: &[(&'static str, T)],
    diagnostics: &mut Diagnostics,
) -> Option<Spanned<T>> {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let text = node.as_str();
    if let Some((_, value)) = choices.iter().find(|(name, _)| Some(*name) == text) {
        return Some(Spanned::new(*value, node.span));
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let expected = quoted.join(" or ");
    let meant = text.and_then(|text| almost(text, &names));
    let help = match meant {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("write {expected}"),
    };
    let code = if text.is_some() { "unknown-value" } else { "wrong-type" };
    let error = TypeError { field, expected: &expected, rule, help: &help };
    diagnostics.push(Finding { code, ..type_error(node, error) });
    None
}
