//! The three data layers, and placeholders over them (D-01 … D-10).

use super::{Fault, Outcome, Sync, output_text, text_of};
use crate::plan::{Arg, Part, SimPlan, Target};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What placeholders see.
pub(crate) struct Scope {
    initial: Map<String, Value>,
    pub(crate) runtime: BTreeMap<String, (Value, String)>,
    /// Results of the nodes so far; `None` after a failure.
    results: Vec<(String, Option<Value>)>,
    ids: Vec<String>,
}

impl Scope {
    pub(crate) fn new(plan: &SimPlan) -> Self {
        Self {
            initial: plan.metadata.clone(),
            runtime: BTreeMap::new(),
            results: Vec::new(),
            ids: plan.nodes.iter().map(|node| node.id.clone()).collect(),
        }
    }

    /// D-03 and D-05.
    pub(crate) fn finished(&mut self, id: &str, outcome: Option<Outcome>) {
        if let Some(Outcome { value: Value::Object(object), sync, .. }) = &outcome {
            for (key, value) in object {
                let synced = match sync {
                    Sync::Nothing => false,
                    Sync::All => true,
                    Sync::Names(names) => names.contains(key),
                };
                if synced {
                    self.runtime.insert(format!("{id}_{key}"), (value.clone(), id.to_owned()));
                    self.runtime.insert(key.clone(), (value.clone(), id.to_owned()));
                }
            }
        }
        self.results.push((id.to_owned(), outcome.map(|outcome| outcome.value)));
    }

    /// D-07.
    fn find(&self, target: &Target) -> Option<Value> {
        match target {
            Target::Output(id, path, _) => self.step(id, path),
            Target::Inputs(name) => self.initial.get(name).cloned(),
            Target::Metadata(name) => self.layers(name),
            Target::Name(name) if self.ids.contains(name) => self.step(name, &[]),
            Target::Name(name) => self.layers(name).or_else(|| {
                let values = self.results.iter().rev().filter_map(|(_, value)| value.as_ref());
                values.filter_map(|value| value.as_object()?.get(name)).next().cloned()
            }),
        }
    }

    fn layers(&self, name: &str) -> Option<Value> {
        self.runtime.get(name).map(|(value, _)| value).or_else(|| self.initial.get(name)).cloned()
    }

    fn step(&self, id: &str, path: &[String]) -> Option<Value> {
        let mut value = self.results.iter().find(|(known, _)| known == id)?.1.clone()?;
        for key in path {
            value = value.as_object()?.get(key)?.clone();
        }
        Some(value)
    }

    fn part(&self, part: &Part) -> Result<Value, Fault> {
        match part {
            Part::Text(text) => Ok(Value::String(text.clone())),
            Part::Ref(target, _) => {
                let missing = || ("unresolved_placeholder".to_owned(), String::new());
                self.find(target).ok_or_else(missing)
            }
        }
    }

    /// A template as text (D-08).
    pub(crate) fn text(&self, text: &[Part]) -> Result<String, Fault> {
        text.iter().map(|part| Ok(output_text(&self.part(part)?))).collect()
    }

    /// A template as a value: a placeholder alone keeps its type (D-08).
    fn value(&self, text: &[Part]) -> Result<Value, Fault> {
        match text {
            [part] if text_of(part).is_none() => self.part(part),
            parts => self.text(parts).map(Value::String),
        }
    }

    pub(crate) fn args(&self, args: &[(String, Arg)]) -> Result<Value, Fault> {
        let mut out = Map::new();
        for (key, arg) in args {
            let value = match arg {
                Arg::Json(value) => value.clone(),
                Arg::Text(text) => self.value(text)?,
                Arg::List(texts) => {
                    let items: Result<Vec<Value>, Fault> =
                        texts.iter().map(|text| self.value(text)).collect();
                    Value::Array(items?)
                }
            };
            out.insert(key.clone(), value);
        }
        Ok(Value::Object(out))
    }
}
