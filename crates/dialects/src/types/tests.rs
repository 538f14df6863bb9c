use super::*;
use serde_json::json;

fn at(schema: &Value, pointer: &str) -> String {
    types_at(schema, &ways_of(pointer)).to_string()
}

fn of(schema: Value) -> String {
    at(&schema, "")
}

#[test]
fn types_as_schemas_name_them() {
    for (schema, expected) in [
        (json!(true), "anything"),
        (json!({}), "anything"),
        (json!({"description": "a string"}), "anything"),
        (json!({"type": "string"}), "a string"),
        (json!({"type": "integer"}), "an integer"),
        (json!({"type": "number"}), "a number"),
        (json!({"type": ["integer", "null"]}), "an integer or null"),
        (json!({"type": "integer", "nullable": true}), "an integer or null"),
        (json!({"type": "float"}), "anything"),
        (json!({"const": 2.0}), "an integer"),
        (json!({"const": 2.5}), "a number with a fraction"),
        (json!({"enum": ["a", false]}), "a string or a boolean"),
        (json!({"type": "string", "enum": ["a", 1]}), "a string"),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "an integer or null"),
        (json!({"anyOf": [{"type": "integer"}, {"minimum": 1}]}), "anything"),
        (json!({"oneOf": [{"type": "array"}, {"type": "object"}]}), "an array or an object"),
        (json!({"allOf": [{"type": ["integer", "string"]}, {"type": ["string", "null"]}]}), "a string"),
        (json!({"not": {"type": "string"}}), "anything"),
        (json!({"if": {"type": "string"}, "then": {"type": "null"}}), "anything"),
        (json!({"type": []}), "anything"),
    ] {
        assert_eq!(of(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn ways_go_through_members_elements_and_references() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/P"}},
            "t": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
            "old": {"type": "array", "items": [{"type": "string"}, {"type": "null"}]},
            "maybe": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]},
            "closed": {"properties": {"x": {"type": "string"}}, "additionalProperties": false},
            "map": {"additionalProperties": {"type": "boolean"}},
            "pattern": {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}},
            "o/d~d": {"type": "null"},
            "n": {"type": "integer"},
            "else": {"$ref": "https://example.com/x.json"},
            "based": {"$id": "https://example.com/y", "type": "string"},
            "all": {"allOf": [{"$ref": "#/$defs/P"}], "properties": {"x": {"enum": [1, 0.5, "a"]}}},
        },
        "$defs": {"P": {"type": "object", "properties": {"x": {"type": "number"}}}},
    });
    for (pointer, expected) in [
        ("/a", "an array"),
        ("/a/0", "an object"),
        ("/a/0/x", "a number"),
        ("/a/x", "anything"),
        ("/t/0", "a string"),
        ("/t/1", "null"),
        ("/old/1", "null"),
        ("/old/2", "anything"),
        ("/maybe", "an object or null"),
        ("/maybe/x", "a number"),
        ("/closed/x", "a string"),
        ("/closed/y", "anything"),
        ("/map/any", "a boolean"),
        ("/pattern/x1", "anything"),
        ("/o~1d~0d", "null"),
        ("/n/x", "anything"),
        ("/else", "anything"),
        ("/based", "anything"),
        ("/all/x", "a number"),
        ("/none", "anything"),
    ] {
        assert_eq!(at(&schema, pointer), expected, "{pointer}");
    }
    let from_end =
        |name: &'static str| types_at(&schema, &[Way::Key(name.into()), Way::Index(-1)]).to_string();
    assert_eq!((from_end("a"), from_end("t")), ("an object".into(), "anything".into()));
}

#[test]
fn integers_are_numbers_and_null_is_none() {
    let types = |schema: Value| types_at(&schema, &[]);
    assert!(types(json!({"type": "integer"})).meets(types(json!({"type": "number"}))));
    assert!(types(json!({"type": "number"})).meets(types(json!({"type": "integer"}))));
    assert!(!types(json!({"const": 0.5})).meets(types(json!({"type": "integer"}))));
    assert!(!types(json!({"type": "null"})).meets(types(json!({"type": "string"}))));
}

/// A schema that refers to itself, or that branches without end, says nothing in time.
#[test]
fn hostile_schemas_come_to_an_end() {
    let around = json!({"$ref": "#"});
    assert_eq!(at(&around, "/a/b"), "anything");
    let wide = json!({"$defs": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}}, "$ref": "#/$defs/n"});
    let started = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(at(&wide, "/a"), "anything");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}
