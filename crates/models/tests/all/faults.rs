//! What goes wrong at an endpoint, as faults (E-13, E-14, E-28, C-03, C-06).

use crate::support::*;
use selvedge_engine::{Failure, FaultKind};
use selvedge_runtime::ports::Model;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};

const BEGUN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";

async fn failure(steps: Vec<Step>) -> Failure {
    ask(steps).await.expect_err("a failure")
}

fn cause(failure: &Failure, field: &str) -> Value {
    failure.fault.cause.as_ref().map_or(Value::Null, |cause| cause[field].clone())
}

#[tokio::test]
async fn statuses_are_sorted_into_those_that_pass_and_those_that_stay() {
    for (status, passes) in [
        (400, false),
        (401, false),
        (402, false),
        (403, false),
        (404, false),
        (408, true),
        (409, true),
        (413, false),
        (422, false),
        (429, true),
        (500, true),
        (502, true),
        (503, true),
        (529, true),
        (301, false),
    ] {
        let failed =
            failure(answer(status, &[], r#"{"error":{"message":"why it is so","code":null}}"#)).await;
        assert_eq!(failed.transient, passes, "{status}");
        assert_eq!(failed.fault.kind, FaultKind::ProviderError);
        assert_eq!(cause(&failed, "status"), json!(status));
        assert!(failed.fault.message.contains("why it is so"), "{}", failed.fault.message);
        assert!(cause(&failed, "url").as_str().unwrap().ends_with("/v1/chat/completions"));
    }
}

#[tokio::test]
async fn a_refused_request_is_sent_once() {
    let server = Server::start(vec![answer(400, &[], r#"{"error":{"message":"bad messages"}}"#)]).await;
    model(&server).call(request(vec![user("x")]), context()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

/// A server that compresses unasked is told apart from one that sends something else.
#[tokio::test]
async fn a_compressed_reply_is_named() {
    let garbled = "\u{1f}\u{fffd}\u{8}";
    let failed = failure(answer(200, &[("content-encoding", "gzip")], garbled)).await;
    assert!(failed.fault.message.contains("compressed with gzip"), "{}", failed.fault.message);
    assert!(!failed.fault.message.contains('\u{fffd}') && failed.transient);
    let refused = failure(answer(500, &[("content-encoding", "br")], garbled)).await;
    assert!(!refused.fault.message.contains('\u{fffd}'), "{}", refused.fault.message);
    let server = Server::start(vec![json(r#"{"choices":[{"message":{"content":"x"}}]}"#)]).await;
    model(&server).call(request(vec![user("x")]), context()).await.unwrap();
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn retry_after_in_seconds_or_as_a_date() {
    let date = |ahead: u64| httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(ahead));
    let asked = |value: String| async move { failure(answer(429, &[("retry-after", &value)], "{}")).await };
    assert_eq!(asked("7".to_owned()).await.retry_after_ms, Some(7000));
    assert_eq!(asked("0.25".to_owned()).await.retry_after_ms, Some(250));
    let dated = asked(date(30)).await;
    assert!(dated.transient && (28_000..=30_000).contains(&dated.retry_after_ms.unwrap()), "{dated:?}");
    assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()).await.retry_after_ms, Some(0));
    // A server's date is one of its own clock, whatever this machine's says.
    let theirs =
        [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:52 GMT")];
    assert_eq!(failure(answer(429, &theirs, "{}")).await.retry_after_ms, Some(15_000));
    assert_eq!(asked("soon".to_owned()).await.retry_after_ms, None);
    assert!(asked("60".to_owned()).await.transient);
    for long in ["61".to_owned(), date(3600), "1e300".to_owned(), "9".repeat(23), "9".repeat(400)] {
        let failed = asked(long.clone()).await;
        assert!(!failed.transient && failed.retry_after_ms > Some(60_000), "{long}: {failed:?}");
    }
}

#[tokio::test]
async fn errors_inside_a_stream_keep_their_status_and_wait() {
    let within = |error: Value| async move {
        let body = format!("{BEGUN}data: {error}\n\n");
        failure(stream(&body, 4096)).await
    };
    let rated = within(json!({"error": {"message": "slow down", "type": "rate_limit_exceeded", "code": null, "retry_after": 3}})).await;
    assert!(rated.transient && rated.fault.message.contains("slow down"), "{rated:?}");
    assert_eq!((cause(&rated, "status"), rated.retry_after_ms), (json!(429), Some(3000)));

    let far = within(
        json!({"error": {"code": 429, "metadata": {"headers": {"Retry-After": "120"}}, "message": "later"}}),
    )
    .await;
    assert!(!far.transient && far.retry_after_ms == Some(120_000), "{far:?}");

    let router =
        within(json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        "error": {"code": 502, "message": "Provider disconnected"}}))
        .await;
    assert!(router.transient && cause(&router, "status") == json!(502), "{router:?}");

    let vllm =
        within(json!({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}))
            .await;
    assert!(!vllm.transient && cause(&vllm, "status") == json!(400), "{vllm:?}");

    let ollama = within(json!({"error": "an unknown thing happened"})).await;
    assert!(ollama.transient && ollama.fault.message.contains("unknown thing"), "{ollama:?}");

    let key = within(json!({"error": {"code": "invalid_api_key", "message": "no"}})).await;
    assert!(!key.transient && cause(&key, "status") == json!(401), "{key:?}");
}

#[tokio::test]
async fn an_error_object_with_status_200_is_an_error() {
    let failed = failure(json(r#"{"error":{"code":503,"message":"busy"}}"#)).await;
    assert!(failed.transient && cause(&failed, "status") == json!(503), "{failed:?}");
}

#[tokio::test]
async fn broken_streams_and_bodies_count_as_connection_faults() {
    let cases = [
        ("closed", cut(BEGUN, Step::Close)),
        ("reset", cut(BEGUN, Step::Reset)),
        ("ended early", stream(BEGUN, 4096)),
        ("reset at once", vec![Step::Reset]),
        ("closed at once", vec![Step::Close]),
        ("malformed event", stream(&format!("{BEGUN}data: {{\"choices\":[\n\ndata: [DONE]\n\n"), 4096)),
        ("half an event", stream(&format!("{BEGUN}data: {{\"choi"), 4096)),
        ("not UTF-8", vec![stream_head(), chunk(b"data: {\"choices\":\xff\xfe}\n\n"), stream_end()]),
        ("malformed JSON", json(r#"{"choices":[{"message":{"content":"x"}"#)),
        ("no choices", json(r#"{"choices":[]}"#)),
        ("empty", json("")),
        ("blank", json("  \n ")),
        ("a page", answer(200, &[("content-type", "text/html")], "<!doctype html><title>Sign in</title>")),
        (
            "cut JSON",
            vec![
                Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"choices\"".to_vec()),
                Step::Close,
            ],
        ),
        ("not HTTP", vec![Step::Bytes(b"hello there\r\n\r\n".to_vec()), Step::Close]),
    ];
    for (name, steps) in cases {
        let failed = failure(steps).await;
        assert!(failed.transient, "{name}: {failed:?}");
        assert_eq!(failed.fault.kind, FaultKind::ProviderError, "{name}");
    }
}

#[tokio::test]
async fn a_page_as_an_error_is_shown_in_one_line() {
    let failed =
        failure(answer(502, &[("content-type", "text/html")], "<html>\n <h1>Bad\n Gateway</h1>\n</html>"))
            .await;
    assert!(failed.fault.message.ends_with(": a web page, `Bad Gateway`"), "{}", failed.fault.message);
    let page = format!(
        "<!DOCTYPE html><html><head><style>p {{}}</style><TITLE>403\nForbidden</TITLE></head><p>{}</p></html>",
        "word ".repeat(1000)
    );
    let failed = failure(answer(403, &[], &page)).await;
    let message = &failed.fault.message;
    assert!(message.contains("a web page, `403 Forbidden`") && message.len() < 400, "{message}");
    assert!(message.contains("proxy") && message.contains("OPENAI_API_KEY"), "{message}");
    // A status without a name leaves no gap.
    let failed = failure(answer(529, &[], r#"{"error":{"message":"busy."}}"#)).await;
    assert!(
        failed.fault.message.ends_with("/chat/completions answered 529: busy"),
        "{}",
        failed.fault.message
    );
    let long = failure(answer(500, &[], &"é".repeat(1 << 20))).await;
    assert!(long.fault.message.len() < 1000 && cause(&long, "body").as_str().unwrap().len() < 5000);
}

#[tokio::test]
async fn no_server_is_a_connection_fault() {
    let server = Server::start(vec![]).await;
    let model = model_with(&server, |config| config.base_url = Some("http://127.0.0.1:1/v1".to_owned()));
    let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
    assert!(failed.transient && failed.fault.message.contains("127.0.0.1:1"), "{failed:?}");
    assert!(failed.fault.message.contains("refused"), "{}", failed.fault.message);
}

#[tokio::test]
async fn a_refused_key_names_its_variable_and_never_shows() {
    let body = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let failed = failure(answer(401, &[], &body)).await;
    assert!(!failed.transient && failed.fault.message.contains("OPENAI_API_KEY"), "{failed:?}");
    let whole = serde_json::to_string(&failed).unwrap();
    assert!(!whole.contains(KEY) && whole.contains("[redacted]"), "{whole}");
    let server = Server::start(vec![answer(401, &[], "{}")]).await;
    let keyless = model_with(&server, |config| config.key = None);
    let failed = keyless.call(request(vec![user("x")]), context()).await.unwrap_err();
    assert!(failed.fault.message.contains("no key was sent"), "{}", failed.fault.message);
}

#[tokio::test]
async fn time_limits_name_their_settings() {
    let head = || vec![stream_head(), chunk(b": still here\n\n")];
    let silent = [vec![Step::Hang], [head(), vec![Step::Hang]].concat()];
    for steps in silent {
        let server = Server::start(vec![steps]).await;
        let model =
            model_with(&server, |config| config.limits.first_token_timeout = Duration::from_millis(150));
        let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
        assert_eq!(failed.fault.kind, FaultKind::Timeout);
        assert!(
            failed.transient && failed.fault.message.contains("limits.first_token_timeout_s"),
            "{failed:?}"
        );
    }
    // A node's own time may end before the first token does.
    let server = Server::start(vec![vec![Step::Hang]]).await;
    let mut own = request(vec![user("x")]);
    own.timeout_s = Some(0.15);
    let failed = model_with(&server, |_| {}).call(own, context()).await.unwrap_err();
    assert!(
        failed.transient && failed.fault.message.contains("within 0.15 s (setting: the node's timeout)"),
        "{failed:?}"
    );
    let drip: Vec<Step> = (0..100).flat_map(|_| [chunk(BEGUN.as_bytes()), Step::Pause(20)]).collect();
    let drip = [vec![stream_head()], drip].concat();
    let server = Server::start(vec![drip]).await;
    let model = model_with(&server, |config| config.limits.model_timeout = Duration::from_millis(300));
    let started = Instant::now();
    let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
    assert!(failed.transient && failed.fault.message.contains("limits.model_timeout_s"), "{failed:?}");
    let mut own = request(vec![user("x")]);
    own.timeout_s = Some(0.2);
    let failed = model.call(own, context()).await.unwrap_err();
    assert!(
        failed.fault.kind == FaultKind::Timeout && failed.fault.message.contains("node's timeout"),
        "{failed:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_slow_reply_within_its_time_is_a_reply() {
    let body = format!(
        "{BEGUN}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let drip = body.as_bytes().chunks(3).flat_map(|piece| [chunk(piece), Step::Pause(2)]);
    let steps: Vec<Step> = [stream_head()].into_iter().chain(drip).chain([stream_end()]).collect();
    assert_eq!(ask(steps).await.unwrap().text, "half");
}

#[tokio::test]
async fn floods_meet_message_bytes() {
    const BIG: usize = 50 << 20;
    let length = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", BIG + 100);
    let body = format!("{length}{{\"choices\":[{{\"message\":{{\"content\":\"");
    let event = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"";
    for head in [body.as_str(), event] {
        let server = Server::start(vec![vec![Step::Bytes(head.as_bytes().to_vec()), Step::Flood(BIG)]]).await;
        let model = model_with(&server, |config| config.limits.message_bytes = 1 << 20);
        let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
        assert!(!failed.transient && failed.fault.kind == FaultKind::LimitExceeded, "{failed:?}");
        assert!(failed.fault.message.contains("limits.message_bytes"), "{failed:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(server.flooded() < 25 << 20, "read on after the limit: {}", server.flooded());
    }
    // Many small events add up to the same limit.
    let many = BEGUN.repeat(400);
    let server = Server::start(vec![stream(&many, 4096)]).await;
    let model = model_with(&server, |config| config.limits.message_bytes = 1000);
    let failed = model.call(request(vec![user("x")]), context()).await.unwrap_err();
    assert_eq!(failed.fault.kind, FaultKind::LimitExceeded);
}

#[tokio::test]
async fn dropping_the_call_drops_the_connection() {
    for steps in [vec![Step::Hang], vec![stream_head(), chunk(BEGUN.as_bytes()), Step::Hang]] {
        let server = Server::start(vec![steps]).await;
        let call = model(&server).call(request(vec![user("x")]), context());
        assert!(tokio::time::timeout(Duration::from_millis(150), call).await.is_err());
        server.gone().await;
    }
}

/// What to write into `base_url` is an address of the provider, not of one kind of request.
#[tokio::test]
async fn a_redirect_names_the_base_url_behind_it() {
    for (to, base) in [
        ("https://h.example/v2/chat/completions", "put https://h.example/v2 into base_url"),
        ("/v2/chat/completions", "/v2 into base_url"),
        ("https://h.example/login", "put the final address into base_url"),
    ] {
        let failed = failure(answer(308, &[("location", to)], "")).await;
        assert!(failed.fault.message.ends_with(base), "{}", failed.fault.message);
    }
}

/// E-14: what is paid for and used up comes back with no wait of a run; a limit by the minute does.
#[tokio::test]
async fn a_quota_that_is_used_up_is_not_waited_for() {
    for (field, word, passes) in [
        ("code", "insufficient_quota", false),
        ("type", "INSUFFICIENT_QUOTA", false),
        ("code", "insufficient_balance", false),
        ("code", "insufficient_credits", false),
        ("code", "billing_hard_limit_reached", false),
        ("code", "billing_not_active", false),
        ("type", "exceeded_current_quota_error", false),
        ("type", "credit_balance_too_low", false),
        ("code", "rate_limit_exceeded", true),
        ("code", "quota", true),
        ("message", "insufficient_quota", true),
    ] {
        let mut error = json!({"message": "you have had it"});
        error[field] = json!(word);
        let failed =
            failure(answer(429, &[("retry-after", "1")], &json!({ "error": error }).to_string())).await;
        assert_eq!(failed.transient, passes, "{field} {word}");
        assert_eq!(failed.fault.kind, FaultKind::ProviderError);
    }
}
