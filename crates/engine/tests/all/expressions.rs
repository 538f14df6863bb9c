//! Expressions (E-46): the cases of the CEL specification, the rules of our own, and laws over many expressions.

mod conformance;
mod laws;
mod limits;
mod rules;

use selvedge_engine::expression::{COST, EvaluationError, Expression};
use selvedge_engine::template::{Layers, StepView};
use serde_json::{Map, Value};

/// What expressions see: two data layers, and nodes with their output, if they have one.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) initial: Map<String, Value>,
    pub(crate) runtime: Map<String, Value>,
    pub(crate) nodes: Map<String, Value>,
    pub(crate) failed: Vec<&'static str>,
    pub(crate) waiting: Vec<&'static str>,
}

impl Layers for World {
    fn is_step(&self, id: &str) -> bool {
        self.nodes.contains_key(id) || self.failed.contains(&id) || self.waiting.contains(&id)
    }
    fn step(&self, id: &str) -> StepView<'_> {
        match self.nodes.get(id) {
            Some(output) => StepView::Output(output),
            None if self.failed.contains(&id) => StepView::Failed(&Value::Null),
            None => StepView::NotRun,
        }
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.runtime.get(name)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.initial.get(name)
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        self.nodes.values().rev().find_map(|output| output.get(name))
    }
    fn names(&self) -> Vec<String> {
        [&self.initial, &self.runtime, &self.nodes]
            .into_iter()
            .flat_map(|layer| layer.keys().cloned())
            .collect()
    }
}

impl World {
    pub(crate) fn new(initial: Value, runtime: Value, nodes: Value) -> Self {
        let map = |value: Value| value.as_object().cloned().unwrap();
        Self { initial: map(initial), runtime: map(runtime), nodes: map(nodes), ..Self::default() }
    }
    pub(crate) fn eval(&self, source: &str) -> Result<Value, EvaluationError> {
        let expression = Expression::parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        expression.evaluate(self, COST)
    }
    /// Why there is no value.
    pub(crate) fn wrong(&self, source: &str) -> String {
        self.eval(source).map_or_else(|error| error.to_string(), |value| panic!("{source} is {value}"))
    }
}
