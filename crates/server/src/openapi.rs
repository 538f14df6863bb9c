//! What there is, as OpenAPI 3.1 has it (S-08): made from the routes and the types of their bodies.

use crate::params::{Kind, Param};
use crate::routes::{ROUTES, Route};
use serde_json::{Map, Value, json};

/// The description.
pub(crate) fn description() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut schemas = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(route.method.as_str().to_ascii_lowercase(), operation(route, &mut schemas));
        }
    }
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Selvedge", "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of plans, step tasks, workflows and agents: docs/api.md says what the objects are.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

fn operation(route: &Route, schemas: &mut Map<String, Value>) -> Value {
    let path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = path.map(|name| {
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
    });
    let query = route.query.iter().map(parameter);
    let parameters: Vec<Value> = path.chain(query).collect();
    let properties: Map<String, Value> =
        route.gives.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    let object = json!({"type": "object", "required": route.gives, "properties": properties});
    let mut content = json!({"application/json": {"schema": object}});
    if let (true, Some(content)) = (route.path.ends_with("/events"), content.as_object_mut()) {
        content.insert("text/event-stream".to_owned(), json!({"schema": {"type": "string"}}));
    }
    let answer = json!({"description": route.about, "content": content});
    let problem = json!({
        "description": "A problem (RFC 9457) with the fields of C-04",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    let mut responses = Map::from_iter([("200".to_owned(), answer.clone())]);
    if route.body.is_some() && route.gives.contains(&"run_id") {
        responses.insert("201".to_owned(), answer);
    }
    for status in ["400", "401", "403", "404", "405", "408", "409", "413", "422", "429", "500", "503", "507"]
    {
        responses.insert(status.to_owned(), problem.clone());
    }
    let mut operation = json!({
        "operationId": id(route), "summary": route.about, "parameters": parameters, "responses": responses,
    });
    if let (Some(body), Some(fields)) = (route.body, operation.as_object_mut()) {
        let mut schema = body().to_value();
        let name = schema.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
        let parts = schema.as_object_mut().and_then(|schema| {
            schema.remove("$schema");
            schema.remove("$defs")
        });
        if let Some(Value::Object(parts)) = parts {
            schemas.extend(parts.into_iter().map(|(name, part)| (name, moved(part))));
        }
        schemas.insert(name.clone(), moved(schema));
        let reference = format!("#/components/schemas/{name}");
        fields.insert(
            "requestBody".to_owned(),
            json!({"required": true, "content": {"application/json": {"schema": {"$ref": reference}}}}),
        );
    }
    operation
}

/// References to where the schemas are here.
fn moved(schema: Value) -> Value {
    match schema {
        Value::String(text) => Value::String(text.replace("#/$defs/", "#/components/schemas/")),
        Value::Array(items) => items.into_iter().map(moved).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, moved(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn parameter(param: &Param) -> Value {
    let schema = match param.kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Number { most } => json!({"type": "integer", "minimum": 1, "maximum": most}),
        Kind::Event => json!({"type": "integer", "minimum": 0, "maximum": i64::MAX}),
        Kind::Place => json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
        Kind::OneOf(words) => json!({"type": "string", "enum": words}),
    };
    json!({"name": param.name, "in": "query", "required": param.required, "description": param.about, "schema": schema})
}

fn id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/v1/").replace(['{', '}'], "").replace('/', "_");
    format!("{}_{path}", route.method.as_str().to_ascii_lowercase())
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "rule", "message", "help"],
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "detail": {"type": "string"}, "code": {"type": "string"}, "rule": {"type": "string"},
            "message": {"type": "string"}, "help": {"type": ["string", "null"]},
            "file": {"type": ["string", "null"]}, "line": {"type": ["integer", "null"]},
            "column": {"type": ["integer", "null"]}, "pointer": {"type": ["string", "null"]},
            "diagnostics": {"type": "array", "items": {"type": "object"}},
        },
    })
}
