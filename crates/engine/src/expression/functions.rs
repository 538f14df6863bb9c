//! Functions: sizes, conversions, and what is asked of texts.

use super::COST;
use super::ast::Function;
use super::eval::{Evaluation, Outcome, Stop};
use super::value::Val;
use crate::schema::pattern::{self, Size};
use regex::Regex;

/// Doubles from which on there is no int, and no uint; both are powers of two.
const INTS: f64 = 9_223_372_036_854_775_808.0;
const UINTS: f64 = 18_446_744_073_709_551_616.0;

const TOO_LARGE: &str = "the pattern is too large";

/// A pattern that one evaluation has compiled.
pub(super) struct Compiled {
    regex: Regex,
    /// Places that a match can be at.
    places: u64,
}

/// Refuses a pattern that is written out and is none, or that takes more to be read than any evaluation may cost.
pub(super) fn check_pattern(text: &str) -> Result<(), String> {
    if pattern::price(text) > COST {
        return Err(TOO_LARGE.to_owned());
    }
    read_pattern(text).map(|_| ())
}

/// How large a pattern is, in the syntax of RE2 as far as it can be matched in linear time. What reading it takes was paid.
fn read_pattern(text: &str) -> Result<Size, String> {
    match regex_syntax::parse(text) {
        Ok(parsed) => Ok(pattern::size(&parsed)),
        Err(regex_syntax::Error::Parse(error)) => Err(format!("this is no pattern: {}", error.kind())),
        Err(regex_syntax::Error::Translate(error)) => Err(format!("this is no pattern: {}", error.kind())),
        Err(_) => Err("this is no pattern".to_owned()),
    }
}

impl<'a> Evaluation<'a> {
    pub(super) fn call(&mut self, at: usize, function: Function, args: &[Val<'a>]) -> Outcome<'a> {
        let (of, with) = match args {
            [of] => (of, None),
            [of, with] => (of, Some(with)),
            _ => return Err(Stop::wrong(at, "a function is called with one value or two")),
        };
        let Some(with) = with else { return self.convert(at, function, of) };
        let (Val::Text(text), Val::Text(part)) = (of, with) else {
            let message =
                format!("`{}` is of two texts, not {} and {}", function.name(), of.kind(), with.kind());
            return Err(Stop::wrong(at, message));
        };
        let (text, part) = (text.as_str(), part.as_str());
        if function == Function::Matches {
            return self.matches(at, text, part).map(Val::Bool);
        }
        self.pay(if function == Function::Contains { text.len() + part.len() } else { part.len() })?;
        Ok(Val::Bool(match function {
            Function::StartsWith => text.starts_with(part),
            Function::EndsWith => text.ends_with(part),
            _ => text.contains(part),
        }))
    }

    fn convert(&mut self, at: usize, function: Function, of: &Val<'a>) -> Outcome<'a> {
        if let Val::Text(text) = of {
            self.pay(text.as_str().len())?;
        }
        let converted = match function {
            Function::Dyn => Some(of.clone()),
            Function::Size => length(of).and_then(|length| i64::try_from(length).ok()).map(Val::Int),
            Function::String => string(of),
            Function::Int => int(of),
            Function::Uint => uint(of),
            Function::Double => double(of),
            Function::Bool => bool(of),
            _ => None,
        };
        let shown = || match of {
            Val::Text(text) => format!("the text `{}`", text.as_str().chars().take(40).collect::<String>()),
            Val::Int(number) => format!("the int {number}"),
            Val::Uint(number) => format!("the uint {number}"),
            Val::Double(number) => format!("the double {number}"),
            other => other.kind().to_owned(),
        };
        converted
            .ok_or_else(|| Stop::wrong(at, format!("`{}` is not defined for {}", function.name(), shown())))
    }

    fn matches(&mut self, at: usize, text: &str, part: &str) -> Outcome<'a, bool> {
        self.pay(part.len())?;
        if !self.patterns.contains_key(part) {
            self.pay_steps(pattern::price(part))?;
            let size = read_pattern(part).map_err(|message| Stop::wrong(at, message))?;
            self.pay_steps(size.price())?;
            let regex = Regex::new(part).map_err(|_| Stop::wrong(at, TOO_LARGE))?;
            self.patterns.insert(part.to_owned(), Compiled { regex, places: size.places });
        }
        let places = self.patterns.get(part).map_or(0, |compiled| compiled.places);
        self.pay_steps(places.saturating_mul(text.len() as u64 + 1))?;
        Ok(self.patterns.get(part).is_some_and(|compiled| compiled.regex.is_match(text)))
    }
}

fn length(of: &Val<'_>) -> Option<usize> {
    match of {
        Val::Text(text) => Some(text.as_str().chars().count()),
        other => other.length().or(other.members()),
    }
}

fn string<'a>(of: &Val<'a>) -> Option<Val<'a>> {
    Some(match of {
        Val::Text(_) => of.clone(),
        Val::Bool(value) => Val::made(value.to_string()),
        Val::Int(number) => Val::made(number.to_string()),
        Val::Uint(number) => Val::made(number.to_string()),
        Val::Double(number) => Val::made(number.to_string()),
        _ => return None,
    })
}

fn int<'a>(of: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Int(number) => Some(*number),
        Val::Uint(number) => i64::try_from(*number).ok(),
        Val::Double(number) => (number.abs() < INTS).then_some(*number as i64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => None,
    }
    .map(Val::Int)
}

fn uint<'a>(of: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Uint(number) => Some(*number),
        Val::Int(number) => u64::try_from(*number).ok(),
        Val::Double(number) => (*number > -1.0 && *number < UINTS).then_some(*number as u64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => None,
    }
    .map(Val::Uint)
}

fn double<'a>(of: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Double(number) => Some(*number),
        Val::Int(number) => Some(*number as f64),
        Val::Uint(number) => Some(*number as f64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => None,
    }
    .map(Val::Double)
}

fn bool<'a>(of: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Bool(value) => Some(*value),
        Val::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        },
        _ => None,
    }
    .map(Val::Bool)
}
