//! What holds for any stream.

use super::{completed, expected, message, read, stream};
use crate::protocol::Assembler;
use crate::responses::reply;
use crate::samples::{any_json, pieces};
use proptest::prelude::*;
use serde_json::{Value, json};

const WORDS: &[&str] = &[
    "type",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.failed",
    "error",
    "item",
    "response",
    "output",
    "content",
    "message",
    "function_call",
    "delta",
    "text",
    "arguments",
    "output_index",
    "content_index",
    "item_id",
    "id",
    "call_id",
    "name",
    "part",
    "output_text",
    "refusal",
    "status",
    "usage",
    "incomplete_details",
    "reason",
    "input_tokens",
    "output_tokens",
];

proptest! {
    #[test]
    fn the_cuts_of_a_text_do_not_matter((text, pieces) in pieces(), last in any::<bool>(), done in any::<bool>()) {
        let delta = |piece: &String| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece});
        let mut events: Vec<Value> = pieces.iter().map(delta).collect();
        if done {
            events.push(json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": text}));
        }
        events.push(completed(&if last { json!([message("m", &text)]) } else { json!([]) }));
        let (reply, heard, _) = read(&events).unwrap();
        prop_assert_eq!(&reply.text, &text);
        prop_assert_eq!(heard, text);
    }

    /// Whatever is left out before the finished response, its text is the reply, and is heard once.
    #[test]
    fn what_is_left_out_is_made_up_for(keep in prop::collection::vec(any::<bool>(), 21)) {
        let all = stream();
        let (last, before) = all.split_last().unwrap();
        let mut events: Vec<Value> =
            before.iter().zip(keep).filter(|(_, keep)| *keep).map(|(event, _)| event.clone()).collect();
        events.push(last.clone());
        prop_assert_eq!(read(&events).unwrap().0, expected());
    }

    #[test]
    fn no_json_makes_it_panic(
        events in prop::collection::vec((prop::sample::select(WORDS), any_json(WORDS)), 1..8),
    ) {
        let mut reply = Box::new(reply::Reply::new(500));
        for (kind, event) in &events {
            let mut event = event.clone();
            if let Value::Object(fields) = &mut event {
                fields.insert("type".to_owned(), json!(kind));
            }
            let _ = reply.event(Some(kind), &event.to_string());
        }
        reply.finish();
        let _ = reply::Reply::new(500).whole(events[0].1.to_string().as_bytes());
    }

    /// The same with items that nearly fit.
    #[test]
    fn no_items_make_it_panic(item in any_json(WORDS), output in prop::collection::vec(any_json(WORDS), 0..4)) {
        let mut reply = Box::new(reply::Reply::new(500));
        for (kind, index) in [("added", 0), ("done", 1), ("done", 0)] {
            for of in ["function_call", "message"] {
                let mut item = item.clone();
                if let Value::Object(fields) = &mut item {
                    fields.insert("type".to_owned(), json!(of));
                }
                let event = json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
                let _ = reply.event(None, &event.to_string());
            }
        }
        let _ = reply.event(None, &completed(&Value::Array(output)).to_string());
        reply.finish();
    }
}
