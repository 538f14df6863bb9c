//! The rules D-06 … D-13 and E-25, as tables.

mod json;
mod lexis;
mod lookup;

use serde_json::{Map, Value, json};

use super::{Layers, OnMissing, StepView, Template, Unresolved};

/// Layers over plain maps. `steps` is in list order: `null` has not run, `false` failed, `[output]` succeeded.
#[derive(Default)]
struct World {
    runtime: Map<String, Value>,
    initial: Map<String, Value>,
    steps: Map<String, Value>,
}

impl World {
    fn new(runtime: Value, initial: Value, steps: Value) -> Self {
        let map = |value: Value| value.as_object().cloned().unwrap();
        Self { runtime: map(runtime), initial: map(initial), steps: map(steps) }
    }

    fn text(&self, text: &str) -> String {
        Template::parse(text).unwrap().render_text(self, OnMissing::Fault).unwrap()
    }

    fn value(&self, text: &str) -> Value {
        Template::parse(text).unwrap().render_value(self, OnMissing::Fault).unwrap()
    }

    fn fails(&self, text: &str) -> Unresolved {
        Template::parse(text).unwrap().render_value(self, OnMissing::Fault).unwrap_err()
    }
}

impl Layers for World {
    fn is_step(&self, id: &str) -> bool {
        self.steps.contains_key(id)
    }
    fn step(&self, id: &str) -> StepView<'_> {
        match &self.steps[id] {
            Value::Array(output) => StepView::Output(&output[0]),
            Value::Bool(false) => StepView::Failed(&Value::Null),
            _ => StepView::NotRun,
        }
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.runtime.get(name)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.initial.get(name)
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        self.steps.values().rev().find_map(|step| step.get(0)?.as_object()?.get(name))
    }
    fn names(&self) -> Vec<String> {
        [&self.runtime, &self.initial, &self.steps].iter().flat_map(|map| map.keys().cloned()).collect()
    }
}

/// After the second step of the seed's load forecast (004 §5.1, §5.2), with D-05's sync done.
fn forecast() -> World {
    let output = json!({"datasource_id": "ds_001", "datasource_name": "my_datasource"});
    World::new(
        json!({
            "is_valid": true, "step_1_is_valid": true, "row_count": 1000, "step_1_row_count": 1000,
            "datasource_id": "ds_001", "step_2_datasource_id": "ds_001",
        }),
        json!({"project_id": "proj_001", "file_path": "/data/load.csv", "city_name": "杭州"}),
        json!({
            "step_1": [{"is_valid": true, "row_count": 1000}],
            "step_2": [output],
            "step_3": [{"result": {"data": {"model_id": "model_123"}}}],
        }),
    )
}
