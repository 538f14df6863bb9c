//! The shapes of the answers that models of an agent give.

use selvedge_engine::ReplySchema;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// A schema, made once: a graph has some of them often.
macro_rules! schema {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        pub fn $name() -> ReplySchema {
            static SCHEMA: LazyLock<ReplySchema> = LazyLock::new(|| {
                let name: Arc<str> = stringify!($name).into();
                ReplySchema { name, schema: $schema }
            });
            SCHEMA.clone()
        }
    };
}

schema! {
    /// Which tools the next round has, which are to be built, and how they are to be used.
    manager, object(json!({
        "required_tool_names": {"type": "array", "items": {"type": "string"}},
        "tool_usage_guidance": {"type": "string"},
        "tool_requests": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    // What is in them is for the coder: a model that writes them as text is understood, too.
                    "input_schema": {"type": ["object", "string", "null"]},
                    "output_schema": {"type": ["object", "string", "null"]},
                },
                "required": ["name", "description"],
            },
        },
    }))
}
schema! {
    /// Whether a task has been done.
    judge, object(json!({
        "status": {"type": "string", "enum": ["FINISH", "RETRY"]},
        "reason": {"type": "string"},
    }))
}
schema! {
    /// What is known of an attempt that came to nothing.
    failure_report, object(json!({
        "tried": {"type": "string"},
        "failed": {"type": "string"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    }))
}
schema! {
    /// What became of a call.
    tool_class, object(json!({
        "class": {"type": "string", "enum": ["Success", "Input Error", "Execution Failure"]},
        "reason": {"type": "string"},
    }))
}
schema! {
    /// Whether two outputs are as good as each other.
    equivalence, object(json!({"equal": {"type": "boolean"}, "reason": {"type": "string"}}))
}
schema! {
    /// Which tools do the same (V-06).
    clusters, object(json!({
        "consolidated_tool_clusters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "suggested_master_tool_name": {"type": "string"},
                    "tool_names": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["suggested_master_tool_name", "tool_names"],
            },
        },
    }))
}
schema! {
    /// The end of a task.
    final_answer, object(json!({
        "final_answer": {"type": "string"},
        "reasoning_summary": {"type": "string"},
    }))
}

/// An object that has all of these members; others mean nothing.
fn object(properties: Value) -> Value {
    let required: Vec<&str> = properties.as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// each is the schema of an object that requires its members, under its own name.
    #[test]
    fn a26_each_answer_is_an_object_with_all_of_its_members() {
        let all =
            [manager(), judge(), failure_report(), tool_class(), equivalence(), clusters(), final_answer()];
        let names =
            ["manager", "judge", "failure_report", "tool_class", "equivalence", "clusters", "final_answer"];
        for (ReplySchema { name, schema }, known) in all.into_iter().zip(names) {
            assert_eq!(&*name, known);
            let members = schema["properties"].as_object().unwrap();
            assert!(!members.is_empty() && schema["required"].as_array().unwrap().len() == members.len());
        }
        assert_eq!(judge().schema["required"], json!(["status", "reason"]));
        let request = &manager().schema["properties"]["tool_requests"]["items"];
        assert_eq!(request["required"], json!(["name", "description"]));
    }
}
