//! A-22 over HTTP: sessions that end, refusals that are not about them, and requests that are taken and not answered.

use crate::mcp::loopback::{Asked, Loopback, Step, echo, events, message, result, status};
use crate::mcp::support::{Place, call, over_http, request, run};
use selvedge_engine::FaultKind;
use selvedge_tools::Catalogue;
use serde_json::json;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const JSON: &str = "content-type: application/json\r\n";

async fn of(server: &Loopback) -> (Place, Catalogue) {
    let place = Place::new();
    let catalogue = place.catalogue(vec![over_http("s", &server.url())], &["s__echo"]).await;
    (place, catalogue)
}

/// A session that is no more is begun anew, and nothing is called twice.
#[tokio::test]
async fn sessions_that_end_are_begun_anew() {
    let server = Loopback::start(|asked| {
        let over = asked.method() == "tools/call" && asked.header("mcp-session-id") == Some("session-0");
        (over && asked.before > 0).then(|| status(404, "", ""))
    })
    .await;
    let (_place, catalogue) = of(&server).await;
    for word in ["a", "b", "c"] {
        assert_eq!(call(&catalogue, "s__echo", json!({"text": word})).await.unwrap(), json!(word));
    }
    assert_eq!(server.asked("initialize").len(), 2);
    // Three calls, and the one that was refused.
    assert_eq!(server.asked("tools/call").len(), 4);
}

/// A-18: a new session may be that of a new version of the server; what is not as it was approved is not called.
#[tokio::test]
async fn definitions_are_compared_in_new_sessions() {
    let server = Loopback::start(|asked| match (asked.method(), asked.header("mcp-session-id")) {
        ("tools/call", Some("session-0")) => Some(status(404, "", "")),
        ("tools/list", Some("session-1")) => Some(result(asked, &json!({"tools": [echo("Deletes.")]}))),
        _ => None,
    })
    .await;
    let (_place, catalogue) = of(&server).await;
    let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
    assert!(failure.fault.kind == FaultKind::DefinitionChanged && failure.unsent, "{failure:?}");
    assert_eq!(server.asked("tools/call").len(), 1);
}

/// A server that ends each session at once is a fault, after one more try.
#[tokio::test]
async fn sessions_that_end_at_once_are_a_fault() {
    let server = Loopback::start(|asked| (asked.method() == "tools/call").then(|| status(404, "", ""))).await;
    let (_place, catalogue) = of(&server).await;
    let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
    assert!(failure.transient && failure.unsent && failure.fault.message.contains("`s`"), "{failure:?}");
    assert_eq!(server.asked("tools/call").len(), 2);
    // What it says is told.
    let server =
        Loopback::start(|asked| (asked.method() == "tools/call").then(|| status(404, JSON, LOST[4].1))).await;
    let (_place, catalogue) = of(&server).await;
    let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
    assert!(failure.fault.message.contains("status 404: Session not found"), "{failure:?}");
}

/// The texts with which servers made with the SDKs say that there is no such session, as they come.
const LOST: [(u16, &str); 5] = [
    (
        400,
        r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}, "id": null}"#,
    ),
    (
        400,
        r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}}"#,
    ),
    (
        400,
        r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: Server not initialized"}, "id": null}"#,
    ),
    (
        400,
        r#"{"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Bad Request: Missing session ID"}}"#,
    ),
    (404, r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Session not found"}}"#),
];

/// A server that has been restarted knows no session: it is begun anew, and nothing is called twice.
#[tokio::test]
async fn sessions_that_are_lost_are_begun_anew() {
    for (code, body) in LOST {
        let server = Loopback::start(move |asked| {
            let over = asked.method() == "tools/call" && asked.header("mcp-session-id") == Some("session-0");
            over.then(|| status(code, "content-type: application/json\r\n", body))
        })
        .await;
        let (_place, catalogue) = of(&server).await;
        assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"), "{body}");
        assert_eq!((server.asked("initialize").len(), server.asked("tools/call").len()), (2, 2), "{body}");
    }
}

/// A 404 that is about what was asked is the answer to it: it is not asked again in a new session, where it might be done.
#[tokio::test]
async fn refusals_that_are_not_about_the_session() {
    for (id, code, words, begins_anew) in [
        ("own", -32602, "no tool `echo`", false),
        ("own", -32001, "no such row", false),
        ("null", -32601, "Method not found", false),
        // It may be a session in other words: the next call is made in a new one, this one is not made again.
        ("null", -32000, "Unknown client", true),
        ("\"server-error\"", -32600, "Not Found", true),
    ] {
        let server = Loopback::start(move |asked| {
            let id = if id == "own" { asked.message["id"].to_string() } else { id.to_owned() };
            let error = json!({"code": code, "message": words});
            let body = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "error": {error}}}"#);
            (asked.method() == "tools/call" && asked.before == 0).then(|| status(404, JSON, &body))
        })
        .await;
        let (_place, catalogue) = of(&server).await;
        let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
        assert!(!failure.transient && failure.fault.message.contains(words), "{failure:?}");
        assert_eq!((server.asked("initialize").len(), server.asked("tools/call").len()), (1, 1), "{words}");
        assert_eq!(call(&catalogue, "s__echo", json!({"text": "b"})).await.unwrap(), json!("b"));
        assert_eq!(server.asked("initialize").len(), if begins_anew { 2 } else { 1 }, "{words}");
    }
}

/// A request that is taken and not answered is a fault at once, which says what came.
#[tokio::test]
async fn requests_that_are_only_taken() {
    for (code, body, words) in [(202, "", "status 202"), (204, "", "status 204"), (202, "queued", "queued")] {
        let server = Loopback::start(move |asked| {
            (asked.method() == "tools/call").then(|| status(code, "content-type: text/plain\r\n", body))
        })
        .await;
        let (_place, catalogue) = of(&server).await;
        let began = Instant::now();
        let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
        assert!(failure.transient && !failure.unsent, "{failure:?}");
        assert!(failure.fault.message.contains(words), "{failure:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    // One that answers all the same is heard.
    let server = Loopback::start(|asked| {
        let answer = message(asked, r#"{"content": [{"type": "text", "text": "late"}]}"#);
        (asked.method() == "tools/call").then(|| status(202, JSON, &answer))
    })
    .await;
    let (_place, catalogue) = of(&server).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("late"));
}

/// Where a stream is open for what the server says, the answer may come there: it is waited for, as long as for any other.
#[tokio::test]
async fn requests_that_are_answered_elsewhere() {
    let waits = Mutex::new(None::<Asked>);
    let server = Loopback::start(move |asked| match asked.method() {
        "tools/call" if asked.message["params"]["arguments"]["text"] == "never" => Some(status(202, "", "")),
        "tools/call" => {
            *waits.lock().unwrap() = Some(asked.clone());
            Some(status(202, "", ""))
        }
        // The first stream is cut; the second has the answer.
        "GET" if asked.before == 0 => Some(vec![events("retry: 700\nid: e1\ndata:\n\n"), Step::Wait(400)]),
        "GET" if asked.before == 1 => {
            let late = r#"{"content": [{"type": "text", "text": "elsewhere"}]}"#;
            let answer = waits.lock().unwrap().as_ref().map(|asked| message(asked, late));
            let answer = answer.map(|answer| format!("data: {answer}\n\n")).unwrap_or_default();
            Some(vec![events(&answer), Step::Wait(60_000)])
        }
        _ => None,
    })
    .await;
    let (_place, catalogue) = of(&server).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("elsewhere"));
    let mut asked = request(&catalogue, "s__echo", json!({"text": "never"}));
    asked.timeout_s = Some(0.5);
    let failure = run(&catalogue, asked).await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::Timeout, "{failure:?}");
}

/// No code is made up for an error that has none.
#[tokio::test]
async fn errors_without_a_code() {
    for (error, words) in [
        (r#""boom""#, "`s__echo` failed: boom"),
        (r#"{"message": "boom"}"#, "`s__echo` failed: boom"),
        (r#"{"code": -32603, "message": "boom"}"#, "`s__echo` failed (error -32603): boom"),
        (r#"{"code": "E42", "message": "boom"}"#, r#"`s__echo` failed: {"code":"E42","message":"boom"}"#),
    ] {
        let server = Loopback::start(move |asked| {
            let body = format!(r#"{{"jsonrpc": "2.0", "id": {}, "error": {error}}}"#, asked.message["id"]);
            (asked.method() == "tools/call").then(|| status(200, JSON, &body))
        })
        .await;
        let (_place, catalogue) = of(&server).await;
        let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
        assert_eq!(failure.fault.message, words);
    }
}
