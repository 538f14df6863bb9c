//! The pieces that need no server.

use super::*;

fn request(max_tokens: Option<u64>) -> ModelRequest {
    ModelRequest {
        effect: selvedge_engine::EffectId("e".into()),
        node: "n".into(),
        thread: "t".into(),
        role: "basic".into(),
        messages: Vec::new().into(),
        tools: Vec::new(),
        known: Vec::new(),
        schema: None,
        settings: selvedge_engine::ModelSettings { max_tokens, ..Default::default() },
        timeout_s: None,
    }
}

#[test]
fn a_form_is_given_up_only_when_the_refusal_names_it() {
    let chat = Chat { extras: false, own: false };
    let bad = StatusCode::BAD_REQUEST;
    let now = WireQuirks::default();
    let after = |quirks, status, body: &[u8], most| chat.after(quirks, status, body, &request(most));
    assert_eq!(after(now, bad, b"the stream of messages is wrong", Some(1)), None);
    assert_eq!(after(now, StatusCode::NOT_FOUND, b"stream_options", Some(1)), None);
    assert_eq!(after(now, bad, b"max_completion_tokens is too large", None), None);
    let without = after(now, bad, br#"{"error":"stream_options: Extra inputs are not permitted"}"#, None);
    assert_eq!(without, Some(now.with(NO_STREAM_OPTIONS)));
    // What was given up already is not given up again, so that the questions end.
    assert_eq!(without.and_then(|quirks| after(quirks, bad, b"stream_options", None)), None);
    let whole = after(now, bad, b"streaming is not supported", None);
    assert_eq!(whole, Some(now.with(NO_STREAM)));
    assert_eq!(whole.and_then(|quirks| after(quirks, bad, b"streaming is not supported", None)), None);
}
