use serde_json::{Value, json};

use super::{World, forecast};
use crate::fault::{Fault, FaultKind};
use crate::template::{JsonTemplate, OnMissing, ResolveError, Template};

fn resolve(value: &Value, world: &World) -> Result<Value, ResolveError> {
    JsonTemplate::parse(value).unwrap().resolve(world, OnMissing::Fault)
}

/// D-08: all strings of nested values, keys too, members in order; other values untouched.
#[test]
fn everywhere() {
    let parameters = json!({
        "z": "{{row_count}}",
        "a": {"list": ["{{is_valid}}", 1, null, {"deep": "id={{datasource_id}}"}]},
        "{{project_id}}/{{row_count}}": "\\{{x}}",
        "\\${k}": [],
        "plain": {"nothing": "here"},
    });
    let resolved = resolve(&parameters, &forecast()).unwrap();
    let expected = r#"{"z":1000,"a":{"list":[true,1,null,{"deep":"id=ds_001"}]},"proj_001/1000":"{{x}}","${k}":[],"plain":{"nothing":"here"}}"#;
    assert_eq!(resolved.to_string(), expected);
    // A lone string, and a value without any.
    assert_eq!(
        resolve(&json!("{{step_1}}"), &forecast()).unwrap(),
        json!({"is_valid": true, "row_count": 1000})
    );
    for value in [json!(null), json!(1), json!([]), json!({}), json!("text"), json!({"a": ["{{}}"]})] {
        assert_eq!(resolve(&value, &forecast()).unwrap(), value);
        assert!(JsonTemplate::parse(&value).unwrap().is_literal());
    }
}

/// D-08: a placeholder alone as a key gives text too. Two keys that become equal are an input error.
#[test]
fn keys() {
    assert_eq!(resolve(&json!({"{{row_count}}": 1}), &forecast()).unwrap(), json!({"1000": 1}));
    for (value, pointer, key) in [
        (json!({"{{row_count}}": 1, "1000": 2}), "", "1000"),
        (json!({"a/b": [{"x": 0, "{{project_id}}": 1, "${project_id}": 2}]}), "/a~1b/0", "proj_001"),
        (json!({"o": {"{{": 1, "\\{{": 2}}), "/o", "{{"),
    ] {
        let error = resolve(&value, &forecast()).unwrap_err();
        assert_eq!(error, ResolveError::DuplicateKey { pointer: pointer.into(), key: key.into() });
        assert_eq!(Fault::from(error).kind, FaultKind::InputError);
    }
}

/// D-10: the pointer, relative to the parameters, also of keys; the first in document order is told.
#[test]
fn pointers() {
    for (value, pointer) in [
        (json!("{{nope}}"), ""),
        (json!({"a~/b": [0, "{{nope}}"], "z": "{{nope}}"}), "/a~0~1b/1"),
        (json!({"o": {"{{nope}}": "{{nope}}"}}), "/o/{{nope}}"),
    ] {
        let Err(ResolveError::Unresolved(error)) = resolve(&value, &forecast()) else { panic!("{value}") };
        assert_eq!(&*error.pointer, pointer);
        let template = JsonTemplate::parse(&value).unwrap();
        assert_eq!(template.placeholders().next().unwrap().0, pointer);
        assert_eq!(template.resolve(&forecast(), OnMissing::Keep).unwrap(), value);
    }
    let error = JsonTemplate::parse(&json!({"a": ["{{x}}", {"b/": "an {{x"}]})).unwrap_err();
    assert_eq!((error.pointer.as_str(), error.error.offset), ("/a/1/b~1", 3));
    let error = JsonTemplate::parse(&json!({"{{x": 1})).unwrap_err();
    assert_eq!((error.pointer.as_str(), error.error.offset), ("/{{x", 0));
}

/// All placeholders with their places, a key before its value.
#[test]
fn listing() {
    let template =
        JsonTemplate::parse(&json!({"a": "{{b}} ${c}", "{{k}}": ["{{v}}"], "t": "\\{{no}}", "z": 1}))
            .unwrap();
    let found: Vec<_> = template.placeholders().map(|(pointer, found)| (pointer, &*found.raw)).collect();
    assert_eq!(found, [("/a", "{{b}}"), ("/a", "${c}"), ("/{{k}}", "{{k}}"), ("/{{k}}/0", "{{v}}")]);
    assert!(!template.is_literal());
}

/// D-10 for keys and values, D-11 for values that become part of the tree.
#[test]
fn missing_and_no_second_pass() {
    let world = World::new(json!({"evil": {"{{n}}": "{{n}}"}, "n": 1}), json!({}), json!({}));
    let template = JsonTemplate::parse(&json!({"{{x}}": "{{x}}", "e": "{{evil}}"})).unwrap();
    assert_eq!(
        template.resolve(&world, OnMissing::Null).unwrap().to_string(),
        r#"{"null":null,"e":{"{{n}}":"{{n}}"}}"#
    );
}

/// Serialized as the value it came from.
#[test]
fn serde_is_the_source() {
    let text = r#"{"b":"{{x}} \\{{","a":[1,{"{{k}}":null}]}"#;
    let template: JsonTemplate = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&template).unwrap(), text);
    assert_eq!(template, JsonTemplate::parse(template.source()).unwrap());
    assert!(serde_json::from_str::<JsonTemplate>(r#"["{{x"]"#).is_err());
}

/// E-28: what placeholders come to is counted before it is built, and no further than the limit.
#[test]
fn measured_before_it_is_built() {
    let world = forecast();
    let value = json!({"a": ["{{row_count}}", "id={{datasource_id}}"], "plain": "text"});
    let template = JsonTemplate::parse(&value).unwrap();
    assert_eq!(template.measure(&world, OnMissing::Fault, u64::MAX), Ok(4 + 9));
    let bomb = Template::parse(&"{{datasource_id}}".repeat(1000)).unwrap();
    assert_eq!(bomb.measure(&world, OnMissing::Fault, 6000), Ok(6000));
    assert!(bomb.measure(&world, OnMissing::Fault, 100).is_ok_and(|bytes| bytes > 100 && bytes < 200));
    let missing = JsonTemplate::parse(&json!(["{{nothing}}"])).unwrap();
    assert_eq!(
        missing.measure(&world, OnMissing::Fault, 100).unwrap_err(),
        missing.resolve(&world, OnMissing::Fault).unwrap_err()
    );
}
