//! JSON Schemas, which come from anybody: documents, tools, servers, models (D-15, E-33, E-45).
//!
//! This is the only door to the validator. What is done with a schema and a value is counted in steps, and ends where
//! they are used up; [decision 14](../../../docs/decisions/0014-schemas.md) says why it is done so.

mod checks;
mod metered;
pub(crate) mod pattern;
mod rewrite;
mod survey;
mod unique;

pub(crate) use checks::{Checks, Owner, Refusal, Same};
pub use survey::Unchecked;

use jsonschema::{PatternOptions, ValidationError, Validator};
use metered::{Metered, Prices, Seen, Spent, within};
use serde_json::Value;
use std::fmt;
use survey::{Spread, Survey};

/// `schema_steps` of E-28: a tenth of a second at most, where the validator is compiled for speed.
pub const STEPS: u64 = 5_000_000;

/// Objects and arrays inside each other that a schema may have: it is walked by calls within calls.
pub const NESTING: usize = 128;

/// Steps of a validation of runs that began before there was a limit: far more than any of them took that came to an end.
const STEPS_BEFORE: u64 = 2_000_000_000;
/// Steps for telling what is wrong with a value, each of which may leave something behind.
const TELLING: u64 = 200_000;
const TELLING_MOST: u64 = 1_000_000;
/// Parts of all patterns, with what is repeated as often as it may be.
const PATTERNS: u64 = 100_000;
/// Schemas that the keywords of unevaluated parts may look through.
const UNEVALUATED: u64 = 4_096;
/// Schemas that may be passed without a look at the value, for each look.
const SILENT: u64 = 16;
/// Schemas inside each other, of one value and its parts, that a value may be held against.
const DEEPEST: u64 = 20_000;
/// Stack for one of them.
const STACK_EACH: usize = 6 << 10;
/// How many of them fit the stack that there is anyway.
const SHALLOW: u64 = 150;

/// A schema that values can be held against.
pub struct Schema {
    validator: Validator<Metered>,
    prices: Prices,
    steps: u64,
    /// Whether telling what is wrong has a limit of its own.
    bounded: bool,
    /// The most schemas that one value is held against, each inside of another one.
    way: u64,
    unchecked: Vec<Unchecked>,
}

/// Why a schema can't be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Unusable {
    /// It is none.
    Invalid {
        /// What is wrong.
        message: String,
        /// Where, as a JSON pointer into the schema.
        place: String,
        /// What stands there.
        value: Box<Value>,
    },
    /// It is beyond a limit (E-45): the limit, in words.
    OverLimit(String),
}

/// Why nobody knows whether a value fits (E-45). It reads as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It takes more than so many steps.
    Steps(u64),
    /// Schemas and parts of the value stand too deep inside each other.
    Nesting,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(steps) => write!(f, "takes more than {steps} steps (setting: limits.schema_steps)"),
            Self::Nesting => write!(f, "goes through more than {DEEPEST} schemas inside each other"),
        }
    }
}

/// Something about a value that its schema does not allow.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// What is wrong, as a sentence.
    pub message: String,
    /// Where, as a JSON pointer into the value.
    pub place: String,
    /// The keyword that says so.
    pub keyword: String,
    /// Where that stands, as a JSON pointer into the schema.
    pub schema_place: String,
}

impl Schema {
    /// Reads a schema, with so many steps for reading it and for each value.
    ///
    /// # Errors
    /// It is none, or it is beyond a limit.
    pub fn new(schema: &Value, steps: u64) -> Result<Self, Unusable> {
        let (survey, spread) = surveyed(schema, steps)?;
        // What one byte costs at the worst: the engine is at all places of the pattern at once.
        const PLACES: u64 = 40;
        let text = match survey.patterns.places {
            0 if !survey.formats => 1,
            places => places.div_ceil(PLACES).max(1).saturating_mul(64),
        };
        let prices = Prices { text, names: survey.names, look: 1 + survey.silent() / SILENT };
        let options = jsonschema::options_for::<Metered>().with_pattern_options(PatternOptions::regex());
        let validator = options
            .build(&rewrite::rewritten(schema, &survey))
            .map_err(|error| Unusable::of(&error, schema))?;
        Ok(Self { validator, prices, steps, bounded: true, way: spread.way, unchecked: survey.unchecked })
    }

    /// Reads a schema as it was read before there were limits: patterns may look ahead, and nothing is refused.
    fn before_limits(schema: &Value) -> Result<Self, Unusable> {
        let validator = jsonschema::options_for::<Metered>()
            .build(schema)
            .map_err(|error| Unusable::of(&error, schema))?;
        let prices = Prices { text: 1, names: 0, look: 1 };
        Ok(Self { validator, prices, steps: STEPS_BEFORE, bounded: false, way: 1, unchecked: Vec::new() })
    }

    /// Patterns that only an engine that goes back could check. They refuse nothing.
    pub fn unchecked(&self) -> &[Unchecked] {
        &self.unchecked
    }

    /// Whether a value fits.
    ///
    /// # Errors
    /// To find out takes more than it may.
    pub fn fits(&self, value: &Value) -> Result<bool, Excess> {
        self.run(value, self.steps, || self.validator.is_valid(Seen(value))).map(|(fits, _)| fits)
    }

    /// The first so many things that are wrong with a value. It fits if there are none.
    ///
    /// # Errors
    /// To find out takes more than it may.
    pub fn violations(&self, value: &Value, most: usize) -> Result<Vec<Violation>, Excess> {
        let (fits, taken) = self.run(value, self.steps, || self.validator.is_valid(Seen(value)))?;
        if fits {
            return Ok(Vec::new());
        }
        let telling = taken.saturating_mul(4).clamp(TELLING, TELLING_MOST).min(self.steps);
        let telling = if self.bounded { telling } else { self.steps };
        let told = self.run(value, telling, || {
            self.validator.iter_errors(Seen(value)).take(most).map(|error| Violation::of(&error)).collect()
        });
        // To find the one may have been quick, and to tell them all is not.
        Ok(told.map_or_else(|_| vec![Violation::untold()], |(told, _)| told))
    }

    /// The first thing that is wrong with a value.
    ///
    /// # Errors
    /// To find out takes more than it may.
    pub fn violation(&self, value: &Value) -> Result<Option<Violation>, Excess> {
        Ok(self.violations(value, 1)?.pop())
    }

    fn run<T>(&self, value: &Value, steps: u64, work: impl FnOnce() -> T) -> Result<(T, u64), Excess> {
        let deep = self.way.saturating_add(1).saturating_mul(nesting_of(value) as u64 + 1);
        match deep {
            deep if deep <= SHALLOW => within(steps, self.prices, work).map_err(|Spent| Excess::Steps(steps)),
            deep if deep <= DEEPEST => {
                let room = usize::try_from(deep).unwrap_or(usize::MAX).saturating_mul(STACK_EACH);
                stacker::maybe_grow(room, room + (1 << 20), || within(steps, self.prices, work))
                    .map_err(|Spent| Excess::Steps(steps))
            }
            _ => Err(Excess::Nesting),
        }
    }
}

/// What can be said of a schema without reading it as a whole: its patterns that are not checked.
///
/// # Errors
/// The limit that it is beyond.
pub fn look(schema: &Value, steps: u64) -> Result<Vec<Unchecked>, Unusable> {
    Ok(surveyed(schema, steps)?.0.unchecked)
}

fn surveyed(schema: &Value, steps: u64) -> Result<(Survey<'_>, Spread), Unusable> {
    if is_nested_over(schema, NESTING) {
        let message = format!("it has more than {NESTING} objects and arrays inside each other");
        return Err(Unusable::OverLimit(message));
    }
    let survey = Survey::of(schema, steps);
    if survey.is_over() {
        return Err(Unusable::OverLimit(format!("reading it {}", Excess::Steps(steps))));
    }
    if survey.patterns.parts > PATTERNS {
        let message = format!("its patterns, written out, have more than {PATTERNS} parts");
        return Err(Unusable::OverLimit(message));
    }
    let spread = survey.spread();
    if spread.unevaluated > UNEVALUATED {
        return Err(Unusable::OverLimit(format!(
            "its `unevaluatedProperties` and `unevaluatedItems` look through more than {UNEVALUATED} schemas"
        )));
    }
    Ok((survey, spread))
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl Unusable {
    fn of(error: &ValidationError<'_>, schema: &Value) -> Self {
        // Of what a reference leads to that is not kept for schemas, the validator tells the place within it.
        let place = Some(error.instance_path().as_str()).filter(|place| schema.pointer(place).is_some());
        Self::Invalid {
            message: error.to_string(),
            place: place.unwrap_or_default().to_owned(),
            value: Box::new(error.instance().clone().into_owned()),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { message, .. } => f.write_str(message),
            Self::OverLimit(limit) => f.write_str(limit),
        }
    }
}

impl Violation {
    fn of(error: &ValidationError<'_>) -> Self {
        Self {
            message: error.to_string(),
            place: error.instance_path().as_str().to_owned(),
            keyword: error.kind().keyword().to_owned(),
            schema_place: error.schema_path().as_str().to_owned(),
        }
    }

    fn untold() -> Self {
        Self {
            message: "it does not fit its schema, and there is more wrong with it than can be told"
                .to_owned(),
            place: String::new(),
            keyword: String::new(),
            schema_place: String::new(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.message),
            place => write!(f, "{place}: {}", self.message),
        }
    }
}

/// Objects and arrays inside each other.
fn nesting_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nesting_of).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(nesting_of).max().unwrap_or(0),
        _ => 0,
    }
}

fn is_nested_over(value: &Value, most: usize) -> bool {
    let below = |value: &Value| most.checked_sub(1).is_none_or(|most| is_nested_over(value, most));
    match value {
        Value::Array(items) => most == 0 || items.iter().any(below),
        Value::Object(fields) => most == 0 || fields.values().any(below),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
