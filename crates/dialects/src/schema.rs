//! JSON Schemas of documents, for editors and other programs (`C-11`).
//!
//! A schema says what the reader says of types, names and ranges, field by field. What needs more than one field,
//! such as threads and placeholders, only the checker finds. A document that the reader accepts fits its schema.

use crate::Dialect;

/// The schemas there are.
const SCHEMAS: [(Dialect, &str); 4] = [
    (Dialect::Plan, include_str!("schema/plan.json")),
    (Dialect::Steps, include_str!("schema/steps.json")),
    (Dialect::Workflow, include_str!("schema/workflow.json")),
    (Dialect::Agent, include_str!("schema/agent.json")),
];

/// The JSON Schema (draft 2020-12) of the documents of a dialect, as text.
pub fn of(dialect: Dialect) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == dialect).map(|(_, schema)| *schema)
}

/// The dialects that have a schema.
pub fn available() -> impl Iterator<Item = Dialect> {
    SCHEMAS.iter().map(|(dialect, _)| *dialect)
}

#[cfg(test)]
mod tests;
