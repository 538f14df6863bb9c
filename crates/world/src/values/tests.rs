#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

/// Schemas as tools and documents have them; whatever is made of one has to fit it.
#[test]
fn what_is_made_fits() {
    let schemas = [
        json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 5}, "b": {"type": "string"}}, "required": ["a"], "additionalProperties": false}),
        json!({"type": "object", "required": ["free"]}),
        json!({"type": "array", "items": {"enum": ["x", "y", 3]}, "minItems": 2, "maxItems": 3}),
        json!({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true}),
        json!({"type": "string", "pattern": "^[A-Z]{2,3}-[0-9]+(a|b)?$"}),
        json!({"type": "string", "minLength": 30, "maxLength": 40}),
        json!({"type": "string", "maxLength": 2}),
        json!({"type": "integer", "multipleOf": 7, "minimum": 1}),
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.6}),
        json!({"type": ["null", "string"]}),
        json!({"const": {"a": [1]}}),
        json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["k"], "properties": {"k": {"type": "null"}}}]}),
        json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}], "type": "object"}),
        json!({"$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "n": {"type": "integer"}}, "required": ["n"]}}, "$ref": "#/$defs/tree"}),
        json!({"properties": {"when": {"type": "string", "format": "date"}, "id": {"format": "uuid"}}}),
        json!(true),
    ];
    let words = Words { texts: vec!["yes".into()], numbers: vec![4.into()], fields: vec!["a".into()] };
    for schema in &schemas {
        for seed in 0..100 {
            let value = fitting(schema, &words, &mut Rng::new(seed));
            assert!(fits(schema, &value), "{schema}: {value}");
        }
    }
}

/// A schema that has no end is left where it may be, and values stay small.
#[test]
fn what_has_no_end_is_cut() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}, "d": {"$ref": "#"}}});
    for seed in 0..20 {
        let value = fitting(&schema, &Words::default(), &mut Rng::new(seed));
        assert!(value.to_string().len() < 200_000);
    }
}
