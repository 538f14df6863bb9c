//! The scripted model (C-07), and roles (C-14).

use crate::support::{call, context, listening, request, user};
use selvedge_engine::{Cut, FaultKind, Message, ModelReply, ModelRequest, Tokens};
use selvedge_models::router::Router;
use selvedge_models::scripted::Scripted;
use selvedge_runtime::ports::{CallContext, Model};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn script(yaml: &str) -> Scripted {
    Scripted::parse("demo.yaml", yaml).unwrap()
}

async fn text(model: &Scripted, request: ModelRequest) -> String {
    model.call(request, context()).await.unwrap().text
}

fn at(role: &str, thread: &str, node: &str, content: &str) -> ModelRequest {
    let mut request = request(vec![user("earlier"), user(content)]);
    (request.role, request.thread, request.node) = (role.into(), thread.into(), node.into());
    request
}

#[tokio::test]
async fn the_first_rule_that_fits_answers() {
    let model = script(
        r#"
- when: {role: judge}
  reply: {text: judged}
- when: {thread: side, node: 7}
  reply: {text: both}
- when: {node: n2}
  reply: {text: second}
- when: {contains: weather}
  reply: {text: sunny}
- when: {matches: "^\\d+ \\+ \\d+$"}
  reply: {text: sum}
- reply: {text: anything}
"#,
    );
    let cases = [
        (at("judge", "main", "n2", "weather"), "judged"),
        (at("basic", "side", "7", "x"), "both"),
        (at("basic", "main", "7", "x"), "anything"),
        (at("basic", "side", "n2", "x"), "second"),
        (at("basic", "main", "n1", "the weather today"), "sunny"),
        (at("basic", "main", "n1", "12 + 30"), "sum"),
        (at("basic", "main", "n1", "12 + 30 "), "anything"),
        // Only the last message counts.
        (request(vec![user("weather"), user("x")]), "anything"),
        (request(vec![]), "anything"),
    ];
    for (asked, expected) in cases {
        let shown = format!("{asked:?}");
        assert_eq!(text(&model, asked).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn nth_counts_the_requests_that_meet_the_other_conditions() {
    let model = script(
        r#"
- {when: {contains: a, nth: 2}, reply: {text: second a}}
- {when: {nth: 3}, reply: {text: third of all}}
- {when: {contains: a}, reply: {text: some a}}
- {reply: {text: other}}
"#,
    );
    let mut replies = Vec::new();
    for content in ["a", "b", "a", "a", "b"] {
        replies.push(text(&model, request(vec![user(content)])).await);
    }
    // The third request is also the second with an `a`, and the first rule that fits answers.
    assert_eq!(replies, ["some a", "other", "second a", "some a", "other"]);

    // Each run counts for itself.
    let other = CallContext::of("r2");
    assert_eq!(model.call(request(vec![user("a")]), other.clone()).await.unwrap().text, "some a");
    assert_eq!(model.call(request(vec![user("a")]), other).await.unwrap().text, "second a");
}

#[tokio::test]
async fn counting_follows_the_order_of_requests_and_goes_on_after_a_resume() {
    let yaml = "- {when: {nth: 1}, reply: {text: one, delay_ms: 40}}\n- {when: {nth: 2}, reply: {text: two}}\n- {when: {nth: 3}, reply: {text: three}}\n";
    let model = script(yaml);
    let first = model.call(request(vec![user("x")]), context());
    let second = model.call(request(vec![user("x")]), context());
    // The second future is polled first.
    assert_eq!(second.await.unwrap().text, "two");
    assert_eq!(first.await.unwrap().text, "one");

    let resumed = script(yaml);
    let seen = request(vec![user("x")]);
    resumed.recorded(&seen, "r1");
    resumed.recorded(&seen, "r1");
    assert_eq!(text(&resumed, request(vec![user("x")])).await, "three");
}

#[tokio::test]
async fn has_tool_result_looks_at_the_last_message() {
    let model = script(
        "- {when: {has_tool_result: true}, reply: {text: after a tool}}\n- {when: {has_tool_result: false}, reply: {text: no}}\n",
    );
    let result = Arc::new(Message::tool(&call("c", "t", json!({})), "r"));
    assert_eq!(text(&model, request(vec![user("x"), result.clone()])).await, "after a tool");
    assert_eq!(text(&model, request(vec![result, user("x")])).await, "no");
}

#[tokio::test]
async fn replies_in_all_their_forms() {
    let model = script(
        r#"
- when: {contains: calls}
  reply:
    text: let me see
    tool_calls:
      - {name: search, arguments: {z: 1, a: "ü"}, id: c9}
      - {name: now}
      - {name: broken, arguments: "{not json"}
    usage: {input_tokens: 10, output_tokens: 5, cost: 0.5}
- when: {contains: cut}
  reply: {text: as far as, stop: length}
- when: {contains: json}
  reply: {json: {z: [1, 2.5, true, null], a: {ü: "ß"}}}
- when: {contains: empty}
  reply: {empty: true, usage: {input_tokens: 1, output_tokens: 0}}
"#,
    );
    let ask = |content: &str| model.call(request(vec![user(content)]), context());
    let reply: ModelReply = ask("calls").await.unwrap();
    assert_eq!(reply.text, "let me see");
    assert_eq!(reply.tokens, Tokens { input: 10, output: 5, cost: 0.5, ..Tokens::default() });
    let expected = vec![
        call("c9", "search", json!({"z": 1, "a": "ü"})),
        call("", "now", json!({})),
        call("", "broken", Value::String("{not json".to_owned())),
    ];
    assert_eq!(reply.calls, expected);
    assert_eq!(ask("json").await.unwrap().text, r#"{"z":[1,2.5,true,null],"a":{"ü":"ß"}}"#);
    let cut = ask("cut").await.unwrap();
    assert_eq!((cut.stop.as_deref(), cut.cut), (Some("length"), Some(Cut::Limit)));
    let empty = ask("empty").await.unwrap();
    assert!(empty.text.is_empty() && empty.calls.is_empty() && empty.tokens.input == 1);
}

#[tokio::test]
async fn errors_behave_like_their_status_or_kind() {
    let model = script(
        r#"
- {when: {contains: "429"}, reply: {error: {status: 429, message: slow down}}}
- {when: {contains: "503"}, reply: {error: {status: 503}}}
- {when: {contains: "401"}, reply: {error: {status: 401, message: no key}}}
- {when: {contains: "400"}, reply: {error: {status: 400, message: bad}}}
- {when: {contains: timeout}, reply: {error: timeout}}
- {when: {contains: limit}, reply: {error: limit_exceeded}}
"#,
    );
    let cases = [
        ("429", FaultKind::ProviderError, true),
        ("503", FaultKind::ProviderError, true),
        ("401", FaultKind::ProviderError, false),
        ("400", FaultKind::ProviderError, false),
        ("timeout", FaultKind::Timeout, true),
        ("limit", FaultKind::LimitExceeded, false),
    ];
    for (content, kind, transient) in cases {
        let failed = model.call(request(vec![user(content)]), context()).await.unwrap_err();
        assert_eq!((failed.fault.kind, failed.transient), (kind, transient), "{content}");
        if let Ok(status) = content.parse::<u16>() {
            assert_eq!(failed.fault.cause.unwrap()["status"], json!(status));
        }
    }
}

#[tokio::test]
async fn no_rule_is_a_fault_that_shows_the_request() {
    let model = script("- {when: {contains: never}, reply: {text: x}}\n");
    let long = format!("what is this? {}", "é".repeat(100_000));
    let failed = model.call(at("judge", "side", "n7", &long), context()).await.unwrap_err();
    assert!(!failed.transient);
    assert_eq!(failed.fault.kind, FaultKind::ProviderError);
    for part in ["demo.yaml", "judge", "side", "n7", "what is this?"] {
        assert!(failed.fault.message.contains(part), "{part}: {}", failed.fault.message);
    }
    assert!(serde_json::to_string(&failed).unwrap().len() < 10_000);
}

#[tokio::test]
async fn a_delay_passes_and_streams() {
    let model = script("- {reply: {text: one two three, delay_ms: 120}}\n");
    let (context, heard) = listening();
    let started = Instant::now();
    let reply = model.call(request(vec![user("x")]), context).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(120));
    assert_eq!(heard.lock().unwrap().concat(), reply.text);
    assert!(heard.lock().unwrap().len() > 1);
    let mut hurried = request(vec![user("x")]);
    hurried.timeout_s = Some(0.03);
    let failed = model.call(hurried, crate::support::context()).await.unwrap_err();
    assert!(failed.fault.kind == FaultKind::Timeout && failed.transient);
}

#[test]
fn mistakes_have_a_place() {
    let cases = [
        ("- reply: {text: a}\n- when:\n    nod: x\n  reply: {text: b}\n", 3, "nod"),
        ("- reply:\n    txt: a\n", 2, "txt"),
        ("- when: {}\n  replies: {text: a}\n", 2, "replies"),
        ("- when: {matches: '('}\n  reply: {text: a}\n", 1, "regular expression"),
        ("- when:\n    nth: 0\n  reply: {text: a}\n", 2, "from 1"),
        ("- reply: {text: a, empty: true}\n", 1, "exactly one"),
        ("- reply: {}\n", 1, "exactly one"),
        ("- reply:\n    error: nonsense\n", 2, "nonsense"),
        ("- reply:\n    error: {status: 200, message: m}\n", 2, "200"),
        ("- reply:\n    error: {code: 429}\n", 2, "code"),
        ("- reply:\n    delay_ms: soon\n    text: a\n", 2, ""),
        ("- when: {role: a}\n", 1, "reply"),
        ("rules: []\n", 1, ""),
        ("- {reply: {text: a}\n", 0, ""),
    ];
    for (yaml, line, part) in cases {
        let error = Scripted::parse("demo.yaml", yaml).expect_err(yaml);
        assert!(error.message.contains(part), "{yaml}: {error}");
        assert!(error.line >= 1 && error.column >= 1, "{yaml}: {error}");
        assert!(line == 0 || error.line == line, "{yaml}: {error}");
        assert!(error.to_string().starts_with(&format!("demo.yaml:{}:{}: ", error.line, error.column)));
        assert!(!error.message.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn json_is_yaml_and_numbers_may_be_text() {
    let model = script(r#"[{"when": {"contains": 42, "node": 3}, "reply": {"text": 7}}]"#);
    assert_eq!(text(&model, at("basic", "main", "3", "is it 42?")).await, "7");
}

#[tokio::test]
async fn roles_and_names_find_their_models() {
    let says = |word: &str| Arc::new(script(&format!("- {{reply: {{text: {word}}}}}\n"))) as Arc<dyn Model>;
    let mut router = Router::new();
    router.add("small", says("from small"), Some(8000));
    router.add("large", says("from large"), None);
    router.assign("basic", "small");
    router.assign("coder", "large");
    for (role, expected) in
        [("basic", "from small"), ("coder", "from large"), ("judge", "from small"), ("large", "from large")]
    {
        let reply = router.call(at(role, "main", "n", "x"), context()).await.unwrap();
        assert_eq!(reply.text, expected, "{role}");
    }
    assert_eq!(router.context_tokens("judge"), Some(8000));
    let failed = router.call(at("nobody", "main", "n", "x"), context()).await.unwrap_err();
    assert!(!failed.transient && failed.fault.kind == FaultKind::ProviderError);
    assert!(failed.fault.message.contains("nobody") && failed.fault.message.contains("large"), "{failed:?}");
    let all = Router::single(says("any"), None);
    assert_eq!(all.call(at("nobody", "main", "n", "x"), context()).await.unwrap().text, "any");
}
