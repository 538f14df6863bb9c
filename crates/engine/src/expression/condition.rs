//! What is asked of a way or a loop: a template that comes to true or false, or an expression.

use super::Expression;
use crate::template::JsonTemplate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A condition. An expression is written `{"expression": "…"}`, which as a template would never be true or false; anything
/// else is a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A template that comes to `true` or `false`.
    Template(JsonTemplate),
    /// An expression that does.
    Expression(Expression),
}

/// The one member of a condition that is an expression.
const EXPRESSION: &str = "expression";

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Template(template) => template.serialize(serializer),
            Self::Expression(expression) => serializer.collect_map([(EXPRESSION, expression)]),
        }
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let source = value
            .as_object()
            .filter(|members| members.len() == 1)
            .and_then(|members| members.get(EXPRESSION));
        match source.and_then(Value::as_str) {
            Some(source) => Expression::parse(source).map(Self::Expression).map_err(D::Error::custom),
            None => JsonTemplate::from_value(value).map(Self::Template).map_err(D::Error::custom),
        }
    }
}
