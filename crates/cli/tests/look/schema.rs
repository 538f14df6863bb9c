//! `schema` (C-11).

use crate::support::Place;

#[test]
fn the_schemas_of_dialects_are_printed() {
    let place = Place::new();
    for dialect in ["plan", "steps"] {
        let schema = place.run(&["schema", dialect]).exits(0).json();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(place.run(&["schema", dialect, "--json"]).exits(0).json(), schema);
    }
    assert!(!place.state().exists());
}

#[test]
fn other_dialects_are_refused_with_the_list() {
    let place = Place::new();
    for name in ["agent", "nonsense"] {
        let refused = place.run(&["schema", name, "--json"]).exits(2);
        let error = refused.error();
        assert_eq!(
            (refused.stdout.as_str(), error["help"].as_str()),
            ("", Some("there are schemas of: plan, steps"))
        );
    }
    place.run(&["schema"]).exits(2);
}
