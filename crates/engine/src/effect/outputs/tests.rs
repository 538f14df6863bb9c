use super::*;
use serde_json::json;

fn read(declared: Value) -> Outputs {
    serde_json::from_value(declared).unwrap()
}

fn names(outputs: &Outputs) -> Vec<&str> {
    outputs.names().iter().map(|name| &**name).collect()
}

#[test]
fn d24_a_list_has_names_and_an_object_says_what_their_values_are() {
    let list = read(json!(["b", "a"]));
    assert_eq!((names(&list), list.is_typed(), list.schema("a")), (vec!["b", "a"], false, None));
    assert_eq!(serde_json::to_value(&list).unwrap(), json!(["b", "a"]));
    let object = read(json!({
        "n": "integer", "maybe": ["string", "null"], "rows": {"type": "array", "items": {"type": "number"}},
        "about": "how many there are", "odd": ["a", "b"], "empty": {}, "any": true, "nothing": null,
    }));
    assert_eq!(names(&object), ["n", "maybe", "rows", "about", "odd", "empty", "any", "nothing"]);
    assert_eq!(object.schema("n"), Some(&json!({"type": "integer"})));
    assert_eq!(object.schema("maybe"), Some(&json!({"type": ["string", "null"]})));
    assert_eq!(object.schema("rows").unwrap()["items"], json!({"type": "number"}));
    for said_nothing in ["about", "odd", "empty", "any", "nothing", "none"] {
        assert_eq!(object.schema(said_nothing), None, "{said_nothing}");
    }
    let written = serde_json::to_value(&object).unwrap();
    assert_eq!((&written["n"], &written["about"]), (&json!({"type": "integer"}), &json!(true)));
    assert_eq!(read(written), object, "what is written is read back");
    for wrong in [json!("a"), json!(3), json!([1]), json!(null)] {
        assert!(serde_json::from_value::<Outputs>(wrong.clone()).is_err(), "{wrong}");
    }
    // Where only names are left of an object, they are a list.
    assert_eq!(serde_json::to_value(read(json!({"a": "the a"}))).unwrap(), json!(["a"]));
}

#[test]
fn properties_of_a_schema_stand_alone() {
    let schema = json!({
        "type": "object",
        "required": ["at", "far"],
        "properties": {"at": {"$ref": "#/$defs/Point"}, "n": {"type": "integer"}, "far": {"$ref": "other.json"}},
        "$defs": {"Point": {"properties": {"x": {"$ref": "#/$defs/X"}}}, "X": {"type": "number"}},
    });
    let outputs = Outputs::of_schema(&schema).unwrap();
    assert_eq!(names(&outputs), ["at", "n", "far"]);
    assert_eq!(outputs.schema("at"), Some(&json!({"properties": {"x": {"type": "number"}}})));
    assert_eq!(outputs.schema("far"), None, "it may be anything");
    assert_eq!(outputs.schema("n"), Some(&json!({"type": "integer", "optional": true})));
    assert!(outputs.is_optional("n") && !outputs.is_optional("at") && !outputs.is_optional("gone"));
    assert_eq!(Outputs::of_schema(&json!({"type": "object"})), None);
    assert_eq!(Outputs::of_schema(&json!({"properties": {}})), Some(Outputs::default()));
}

#[test]
fn a_schema_that_refers_to_itself_comes_to_an_end() {
    let twice = json!({"anyOf": [{"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}]});
    let schema = json!({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": twice}});
    let outputs = Outputs::of_schema(&schema).unwrap();
    assert!(serde_json::to_string(&outputs).unwrap().len() < 100_000);
}
