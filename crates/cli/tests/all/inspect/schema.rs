//! `schema` (C-11).

use crate::support::Place;

#[test]
fn the_schemas_of_dialects_are_printed() {
    let place = Place::new();
    for dialect in ["plan", "steps", "workflow", "agent", "script", "config"] {
        let schema = place.run(&["schema", dialect]).exits(0).json();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(place.run(&["schema", dialect, "--json"]).exits(0).json(), schema);
    }
    assert!(!place.state().exists());
}

/// C-10: topics that are no commands.
#[test]
fn topics_are_explained() {
    let place = Place::new();
    for (topic, part) in
        [("placeholders", "{{inputs.city}}"), ("scripts", "has_tool_result"), ("config", "[models.small]")]
    {
        let text = place.run(&["help", topic]).exits(0).stdout;
        assert!(text.contains(part), "{text}");
        assert_eq!(place.run(&["help", topic, "--json"]).exits(0).json()["help"], text);
    }
    let told = place.run(&["help", "scriptz"]).exits(2).stderr;
    assert!(told.contains("the topics environment, placeholders, scripts, config"), "{told}");
}

#[test]
fn other_dialects_are_refused_with_the_list() {
    let place = Place::new();
    for name in ["prose", "nonsense"] {
        let refused = place.run(&["schema", name, "--json"]).exits(2);
        let error = refused.error();
        assert_eq!(
            (refused.stdout.as_str(), error["help"].as_str()),
            ("", Some("there are schemas of: plan, steps, workflow, agent, script, config"))
        );
    }
    place.run(&["schema"]).exits(2);
}
