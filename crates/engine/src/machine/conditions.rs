//! What conditions and expressions come to where a node stands: anything but a value is `input_error` (E-46).

use super::scope::Scope;
use super::state::State;
use crate::expression::{Condition, Expression};
use crate::fault::{Fault, FaultKind};
use crate::ids::NodeRef;
use crate::template::kind;
use serde_json::{Value, json};

/// How much of an expression a message shows, in characters.
const SHOWN: usize = 120;

impl State {
    /// Whether a condition holds; `what` says which, for people.
    pub(super) fn holds(&self, node: NodeRef, condition: &Condition, what: &str) -> Result<bool, Fault> {
        let value = match condition {
            Condition::Template(template) => self.resolved(node, template)?,
            Condition::Expression(expression) => self.computed(node, expression, what)?,
        };
        let Value::Bool(holds) = value else {
            let message = format!("{what} is {}, not true or false", kind(&value));
            return Err(Fault::new(FaultKind::InputError, message).because(json!({ "value": value })));
        };
        Ok(holds)
    }

    /// What an expression comes to. A missing value is an error whatever the node says of placeholders: `has` asks for it.
    pub(super) fn computed(
        &self,
        node: NodeRef,
        expression: &Expression,
        what: &str,
    ) -> Result<Value, Fault> {
        let scope = Scope { state: self, at: node };
        expression.evaluate(&scope, self.start.limits.expression_cost).map_err(|error| {
            let shown: String = expression.source().chars().take(SHOWN).collect();
            let more = if shown.len() < expression.source().len() { "…" } else { "" };
            let mut fault = Fault::from(error);
            fault.message = format!("{what}, `{shown}{more}`, has no value: {}", fault.message);
            fault
        })
    }
}
