//! What an evaluation comes to, as JSON.

use super::eval::{Evaluation, Outcome, Stop};
use super::value::Val;
use serde_json::{Map, Number, Value};

/// How deep a result may be nested: a journal has to be read again.
const NESTED: usize = 100;

impl<'a> Evaluation<'a> {
    pub(super) fn json(&mut self, at: usize, value: &Val<'a>, depth: usize) -> Outcome<'a, Value> {
        self.pay(1)?;
        if depth > NESTED {
            return Err(Stop::wrong(at, format!("the result is nested more than {NESTED} levels deep")));
        }
        Ok(match value {
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(number) => Value::from(*number),
            Val::Uint(number) => Value::from(*number),
            Val::Double(number) => match Number::from_f64(*number) {
                Some(number) => Value::Number(number),
                None => {
                    return Err(Stop::wrong(
                        at,
                        format!("the result holds {number}, which is no number of JSON"),
                    ));
                }
            },
            Val::Text(text) => {
                self.pay(text.as_str().len())?;
                Value::from(text.as_str())
            }
            Val::Array(_) | Val::List(_) => {
                let items = (0..value.length().unwrap_or(0)).filter_map(|index| value.item(index));
                Value::Array(items.map(|item| self.json(at, &item, depth + 1)).collect::<Outcome<'a, _>>()?)
            }
            Val::Object(_) | Val::Map(_) => {
                self.pay(value.members().unwrap_or(0))?;
                let mut members = Map::new();
                for (key, member) in value.entries() {
                    let Val::Text(key) = key else {
                        return Err(Stop::wrong(
                            at,
                            format!("a key of the result is {}, and not text", key.kind()),
                        ));
                    };
                    self.pay(key.as_str().len())?;
                    members.insert(key.as_str().to_owned(), self.json(at, &member, depth + 1)?);
                }
                Value::Object(members)
            }
        })
    }
}
