//! A tool as its server defines it, checked, and pinned by hash.

use super::config::McpServer;
use crate::json::depth_of;
use crate::store::sha256;
use rmcp::model::Tool;
use selvedge_engine::schema::{Excess, NESTING, Schema, Unusable, Violation};
use selvedge_engine::{Effects, Outputs, ToolDef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A tool of a server, with all that models and people are told about it.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// Its name at the server.
    pub(crate) name: Arc<str>,
    description: String,
    input_schema: Value,
    output: Option<Arc<Schema>>,
    /// Whether an output is the only field of an object.
    wraps: bool,
    read_only: bool,
    idempotent: bool,
    /// Everything that was said, with the keys of objects in order.
    said: Value,
}

/// What a run has pinned: kept in a file that is named by its hash, which is the tool's version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pinned {
    /// The server's name.
    pub(crate) server: Arc<str>,
    /// The tool's name at the server.
    pub(crate) tool: Arc<str>,
    /// Its definition: what was approved.
    pub(crate) definition: Value,
    pub(super) effects: Effects,
    /// Seconds a call may take.
    pub(super) timeout_s: Option<f64>,
}

impl Definition {
    /// Checks what a server says of a tool. Where it says what it said `before`, that stands: schemas are checked once.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence.
    pub(super) fn read(tool: &Tool, before: Option<&Arc<Self>>, steps: u64) -> Result<Arc<Self>, String> {
        let name = tool.name.trim();
        if name.is_empty() || name != tool.name || name.chars().any(char::is_control) {
            return Err("its name is empty, or has white space around it or control characters in it".into());
        }
        let input_schema = Value::Object((*tool.input_schema).clone());
        let output_schema = tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
        for (schema, field) in
            [(Some(&input_schema), "inputSchema"), (output_schema.as_ref(), "outputSchema")]
        {
            if schema.is_some_and(|schema| depth_of(schema) > NESTING) {
                return Err(format!(
                    "its `{field}` has more than {NESTING} objects and arrays inside each other"
                ));
            }
        }
        let said = in_order(json!({
            "name": name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input_schema,
            "outputSchema": output_schema,
            "annotations": tool.annotations,
        }));
        if let Some(same) = before.filter(|before| before.said == said) {
            return Ok(Arc::clone(same));
        }
        schema(&input_schema, "inputSchema", steps)?;
        let output =
            output_schema.as_ref().map(|output| schema(output, "outputSchema", steps)).transpose()?;
        let hints = tool.annotations.as_ref();
        let title = tool.title.as_deref().or_else(|| hints?.title.as_deref());
        Ok(Arc::new(Self {
            name: name.into(),
            description: tool.description.as_deref().or(title).unwrap_or_default().to_owned(),
            input_schema,
            output: output.map(Arc::new),
            wraps: output_schema.as_ref().is_some_and(|schema| wraps(name, schema)),
            read_only: hints.and_then(|hints| hints.read_only_hint) == Some(true),
            idempotent: hints.and_then(|hints| hints.idempotent_hint) == Some(true),
            said,
        }))
    }

    /// What a run pins of it.
    pub(crate) fn pinned(&self, server: &McpServer) -> Pinned {
        Pinned {
            server: Arc::clone(&server.name),
            tool: Arc::clone(&self.name),
            definition: self.said.clone(),
            // E-22: what the user says, else what the server hints at, else the worst.
            effects: server.effects.of(&self.name).unwrap_or(match (self.read_only, self.idempotent) {
                (true, _) => Effects::Read,
                (false, true) => Effects::Idempotent,
                (false, false) => Effects::Write,
            }),
            timeout_s: server.timeout_s,
        }
    }

    /// The tool as models and graphs see it, under its full name.
    pub(crate) fn tool(&self, pinned: &Pinned) -> ToolDef {
        ToolDef {
            description: self.description.as_str().into(),
            input_schema: self.input_schema.clone(),
            ..pinned.tool()
        }
    }

    /// Whether it still is what a run has pinned.
    pub(super) fn is(&self, pinned: &Pinned) -> bool {
        self.said == pinned.definition
    }

    /// Why an output is not what the server promised.
    ///
    /// # Errors
    /// To find out takes more than it may (E-45).
    pub(super) fn misfit(&self, output: &Value) -> Result<Option<String>, Excess> {
        let Some(schema) = &self.output else { return Ok(None) };
        Ok(schema.violation(output)?.map(|Violation { message, place, .. }| match place.as_str() {
            "" => message,
            place => format!("{message} (at {place})"),
        }))
    }
}

impl Definition {
    /// An output that fits, out of the object that its server puts around it where a schema has to be one of an object.
    pub(super) fn unwrapped(&self, output: Value) -> Value {
        match output {
            Value::Object(mut fields) if self.wraps && fields.len() == 1 => match fields.remove("result") {
                Some(result) => result,
                None => Value::Object(fields),
            },
            other => other,
        }
    }
}

/// Whether a server has wrapped the outputs of a tool, as its schema says: FastMCP in so many words, the Python SDK by the
/// name that it gives to what it makes.
fn wraps(tool: &str, schema: &Value) -> bool {
    if schema.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true)) {
        return true;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let only = properties.is_some_and(|fields| fields.len() == 1 && fields.contains_key("result"));
    let title = schema.get("title").and_then(Value::as_str).and_then(|title| title.strip_suffix("Output"));
    only && title == Some(tool) && schema.get("required") == Some(&json!(["result"]))
}

impl Pinned {
    /// The bytes that are kept and hashed.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The name that always works.
    pub(crate) fn full_name(&self) -> String {
        format!("{}__{}", self.server, self.tool)
    }

    /// The tool as far as what is pinned tells.
    pub(crate) fn tool(&self) -> ToolDef {
        let of = |field: &str| self.definition.get(field).filter(|value| !value.is_null());
        ToolDef {
            name: self.full_name().into(),
            description: of("description").and_then(Value::as_str).unwrap_or_default().into(),
            input_schema: of("inputSchema").cloned().unwrap_or_else(|| json!({ "type": "object" })),
            // D-24: the properties of the outputs' schema.
            output_params: of("outputSchema").and_then(|schema| match wraps(&self.tool, schema) {
                true => Outputs::of_schema(&inner(schema)?),
                false => Outputs::of_schema(schema),
            }),
            effects: Some(self.effects),
            version: sha256(&self.bytes()).into(),
            source: format!("mcp:{}", self.server).into(),
            timeout_s: self.timeout_s,
            approval: false,
        }
    }
}

/// The schema of what is wrapped, with the definitions that it may name.
fn inner(schema: &Value) -> Option<Value> {
    let inner = schema.get("properties")?.get("result")?;
    let inner = match inner.get("$ref").and_then(Value::as_str) {
        Some(place) => schema.pointer(place.strip_prefix('#')?)?,
        None => inner,
    };
    let mut inner = inner.clone();
    for definitions in ["$defs", "definitions"] {
        if let (Some(fields), Some(all)) = (inner.as_object_mut(), schema.get(definitions)) {
            fields.insert(definitions.to_owned(), all.clone());
        }
    }
    Some(inner)
}

/// A schema, which must be one of objects.
fn schema(schema: &Value, field: &str, steps: u64) -> Result<Schema, String> {
    match schema.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("the `type` of its `{field}` is {other}, not \"object\"")),
    }
    Schema::new(schema, steps).map_err(|error| match error {
        Unusable::Invalid { .. } => format!("its `{field}` is no JSON Schema: {error}"),
        Unusable::OverLimit(limit) => format!("its `{field}` can't be used: {limit}"),
    })
}

/// The same value with the keys of all objects in order: a server that says the same in another order says the same.
fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().map(|(key, field)| (key, in_order(field))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, output: Value) -> Arc<Definition> {
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": output});
        Definition::read(&serde_json::from_value(tool).unwrap(), None, 10_000).unwrap()
    }

    /// what a server has wrapped for the schema's sake is taken out, and nothing else.
    #[test]
    fn outputs_that_are_wrapped() {
        let number = json!({"title": "Result", "type": "integer"});
        let sdk = json!({"properties": {"result": number}, "required": ["result"], "title": "addOutput", "type": "object"});
        let fast = json!({"properties": {"result": {"type": "integer"}}, "required": ["result"], "type": "object",
            "x-fastmcp-wrap-result": true});
        let own = json!({"properties": {"result": number}, "required": ["result"], "title": "Sum", "type": "object"});
        let two = json!({"properties": {"result": number, "b": number}, "required": ["result"], "title": "addOutput",
            "type": "object"});
        let output = json!({"result": 5});
        for (schema, wrapped) in [(sdk, true), (fast, true), (own, false), (two, false)] {
            let unwrapped = of("add", schema.clone()).unwrapped(output.clone());
            assert_eq!(unwrapped, if wrapped { json!(5) } else { output.clone() }, "{schema}");
        }
        let list = json!({"$defs": {"P": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            "properties": {"result": {"$ref": "#/$defs/P"}}, "required": ["result"], "type": "object", "x-fastmcp-wrap-result": true});
        let def = Pinned {
            server: "s".into(),
            tool: "t".into(),
            definition: json!({"outputSchema": list}),
            effects: Effects::Read,
            timeout_s: None,
        };
        assert_eq!(def.tool().output_params.unwrap().names().join(" "), "x");
    }
}
