//! A-22 over HTTP: sessions that end, refusals, redirects, streams that break, and limits on what comes (E-28).

use crate::mcp::loopback::{Asked, Loopback, Step, events, message, raw, result, status, text};
use crate::mcp::support::{Place, call, over_http, request, run};
use selvedge_engine::{Failure, FaultKind};
use selvedge_http::Secret;
use selvedge_tools::mcp::{Hidden, McpServer, Reached};
use selvedge_tools::{Catalogue, ErrorClass};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::{Duration, Instant};

async fn catalogue(server: &Loopback) -> (Place, Catalogue) {
    let place = Place::new();
    let catalogue = place.catalogue(vec![over_http("s", &server.url())], &["s__echo"]).await;
    (place, catalogue)
}

/// The outcome of a call whose answer is this.
async fn answered(answer: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static) -> Result<Value, Failure> {
    let server = Loopback::start(move |asked| (asked.method() == "tools/call").then(|| answer(asked))).await;
    let (_place, catalogue) = catalogue(&server).await;
    call(&catalogue, "s__echo", json!({"text": "a"})).await
}

/// An error belongs to the call whose response it is, whatever its id and status: the call ends at once, and of what was
/// refused for good nobody wonders what came of it.
#[tokio::test]
async fn errors_that_name_no_call() {
    for id in ["", r#""id": null,"#, r#""id": "server-error","#, r#""id": 77,"#] {
        for (code, as_events) in
            [(200, false), (200, true), (400, false), (422, false), (500, false), (429, false)]
        {
            let error = r#"{"code": -32000, "message": "the lock is held"}"#;
            let body = format!(r#"{{"jsonrpc": "2.0", {id} "error": {error}}}"#);
            let began = Instant::now();
            let failure = answered(move |_| match as_events {
                true => vec![events(&format!("data: {body}\n\n")), Step::Wait(60_000)],
                false => status(code, "content-type: application/json\r\n", &body),
            });
            let failure = failure.await.unwrap_err();
            assert!(began.elapsed() < Duration::from_secs(5), "{id} {code}");
            assert!(failure.fault.message.contains("the lock is held"), "{failure:?}");
            assert_eq!(
                (failure.transient, failure.unsent),
                (code == 429 || code == 500, code == 429),
                "{failure:?}"
            );
        }
    }
}

/// What a server gets wrong is read where it says what it means; what can't be read is the fault of its call, at once, and
/// shows how it begins.
#[tokio::test]
async fn answers_that_are_not_quite_right() {
    let of = |text: &str| format!(r#"{{"content": [{{"type": "text", "text": "{text}"}}]}}"#);
    for as_events in [false, true] {
        let whole = move |body: String| match as_events {
            true => vec![events(&format!("data: {body}\n\n")), Step::Wait(60_000)],
            false => status(200, "content-type: application/json\r\n", &body),
        };
        let half = of(r"a\ud83d b");
        let output = answered(move |asked| whole(message(asked, &half))).await.unwrap();
        assert_eq!(output, json!("a\u{fffd} b"));
        let other = message(
            &Asked {
                verb: String::new(),
                headers: Default::default(),
                message: json!({"id": 5000}),
                before: 0,
            },
            &of("b"),
        );
        let listed = of("a");
        let output = answered(move |asked| whole(format!("[{other}, {}]", message(asked, &listed))));
        assert_eq!(output.await.unwrap(), json!("a"));
        let failure = answered(move |asked| {
            whole(format!(r#"{{"jsonrpc": "2.0", "id": {}, "error": "boom"}}"#, asked.message["id"]))
        });
        assert!(failure.await.unwrap_err().fault.message.contains("boom"));
        let began = Instant::now();
        let failure = answered(move |asked| whole(message(asked, "{\"x\": NaN}"))).await.unwrap_err();
        assert!(failure.fault.message.contains("\"result\": {\"x\": NaN}"), "{failure:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

/// E-28: the limit is one of outputs. Escapes and what is said twice do not count, whatever they take on their way.
#[tokio::test]
async fn limits_count_outputs() {
    // Within 1 MiB, and 6 times that as it comes.
    let text = "é".repeat(500_000);
    let escaped = r"\u00e9".repeat(500_000);
    let said = format!(
        r#"{{"content": [{{"type": "text", "text": "{{\"a\": \"{escaped}\"}}"}}], "structuredContent": {{"a": "{escaped}"}}}}"#
    );
    for as_events in [false, true] {
        let said = said.clone();
        let output = answered(move |asked| match as_events {
            true => vec![events(&format!("data: {}\n\n", message(asked, &said)))],
            false => raw(asked, &said),
        });
        assert_eq!(output.await.unwrap(), json!({"a": text}));
    }
    let over = r"\u00e9".repeat(600_000);
    let failure = answered(move |asked| {
        raw(asked, &format!(r#"{{"content": [], "structuredContent": {{"a": "{over}"}}}}"#))
    });
    let failure = failure.await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::LimitExceeded, "{failure:?}");
}

/// Refusals before a run are exit 4, in it faults that no second attempt mends; both say what to do.
#[tokio::test]
async fn refusals_of_keys() {
    for (code, challenge) in [(401, "www-authenticate: Bearer\r\n"), (401, ""), (403, "")] {
        let server = Loopback::start(move |_| Some(status(code, challenge, "{}"))).await;
        let errors = Place::new().refused(vec![over_http("s", &server.url())], &["s__echo"]).await;
        assert_eq!(errors.class(), ErrorClass::Environment);
        let said = errors.to_string();
        assert!(said.contains("wants another authorization") && said.contains("Bearer ${"), "{code}: {said}");
        let failure = answered(move |_| status(code, challenge, "")).await.unwrap_err();
        assert!(!failure.transient && failure.fault.message.contains("authorization"), "{failure:?}");
        assert!(failure.unsent, "{failure:?}");
    }
}

/// C-06: a redirect is not followed, as the requests carry a key for one address; the other address is told.
#[tokio::test]
async fn redirects_are_told_and_not_followed() {
    let elsewhere = Loopback::start(|_| None).await;
    let to = format!("location: {}?token=key-0123456789\r\n", elsewhere.url());
    let server = Loopback::start(move |_| Some(status(308, &to, ""))).await;
    let errors = Place::new().refused(vec![over_http("s", &server.url())], &["s__echo"]).await;
    let said = errors.to_string();
    assert!(said.contains(&elsewhere.url()) && said.contains("308") && !said.contains("key-0"), "{said}");
    assert!(elsewhere.asked("server/discover").is_empty() && elsewhere.asked("initialize").is_empty());
}

/// What a server says beside the protocol is shown to people: pages of proxies, empty bodies.
#[tokio::test]
async fn answers_that_are_none() {
    for (answer, words) in [
        (status(200, "content-type: text/html\r\n", "<h1>Welcome</h1>"), "<h1>Welcome</h1>"),
        (status(200, "content-type: application/json\r\n", ""), "no message of the protocol"),
        (status(418, "", "I am a teapot"), "I am a teapot"),
        (status(503, "retry-after: 7\r\n", "later"), "status 503"),
    ] {
        let failure = answered(move |_| answer.clone()).await.unwrap_err();
        assert!(failure.fault.message.contains(words), "{words}: {failure:?}");
        let waits = words.contains("503").then_some(7000);
        assert_eq!(failure.retry_after_ms, waits);
    }
}

/// E-14: a stream that is cut before the answer is a connection fault, at once.
#[tokio::test]
async fn streams_that_are_cut() {
    let began = Instant::now();
    let failure = answered(|_| vec![events(": hello\n\ndata: {\"jsonrpc\": \"2.0\", ")]).await.unwrap_err();
    assert!(failure.transient && !failure.unsent, "{failure:?}");
    assert!(failure.fault.message.contains("was lost while it worked on `echo`"), "{failure:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A stream that can be taken up again is, where it was cut; a few times.
#[tokio::test]
async fn streams_that_are_cut_go_on() {
    let waits = Mutex::new(None);
    let server = Loopback::start(move |asked| match asked.method() {
        "tools/call" => {
            *waits.lock().unwrap() = Some(asked.clone());
            Some(vec![events("retry: 10\nid: e1\ndata:\n\n")])
        }
        "GET" if asked.header("last-event-id") == Some("e1") => {
            let late = r#"{"content": [{"type": "text", "text": "late"}]}"#;
            let answer = message(waits.lock().unwrap().as_ref().unwrap(), late);
            Some(vec![events(&format!("id: e2\ndata: {answer}\n\n"))])
        }
        _ => None,
    })
    .await;
    let (_place, catalogue) = catalogue(&server).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("late"));
    // Nobody takes up what can't be taken up for ever.
    let began = Instant::now();
    let failure = answered(|_| vec![events("retry: 10\nid: e1\ndata:\n\n")]).await.unwrap_err();
    assert!(failure.transient && began.elapsed() < Duration::from_secs(30), "{failure:?}");
}

/// A server that cuts each stream at once is not asked in a loop.
#[tokio::test]
async fn streams_are_not_opened_in_a_loop() {
    let server = Loopback::start(|asked| {
        let broken = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: 100\r\n\r\n: ";
        (asked.method() == "GET").then(|| vec![Step::Write(broken.into())])
    })
    .await;
    let (_place, catalogue) = catalogue(&server).await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"));
    assert!(server.asked("GET").len() <= 8, "{}", server.asked("GET").len());
}

/// E-28: one answer that is too long is the fault of one call, which names the limit; the server goes on.
#[tokio::test]
async fn answers_that_are_too_long() {
    let long = || format!(r#"{{"content": [{{"type": "text", "text": "{}"}}]}}"#, "x".repeat(4 << 20));
    let flood: &'static str = "x".repeat(256 << 10).leak();
    let server = Loopback::start(move |asked| match (asked.method(), asked.before) {
        ("tools/call", 0) => Some(raw(asked, &long())),
        ("tools/call", 1) => Some(vec![events(&format!("data: {}\n\n", message(asked, &long())))]),
        ("tools/call", 2) => Some(vec![events("data: "), Step::Drip(flood, 1)]),
        _ => None,
    })
    .await;
    let (_place, catalogue) = catalogue(&server).await;
    for _ in 0..3 {
        let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
        assert_eq!(failure.fault.kind, FaultKind::LimitExceeded, "{failure:?}");
        assert!(failure.fault.message.contains("tool_output_bytes"), "{failure:?}");
    }
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"));
    assert_eq!(server.asked("initialize").len(), 1);
}

/// E-28: what is nested as deeply as may be arrives, what is deeper names the limit, as JSON and as events.
#[tokio::test]
async fn answers_that_are_nested() {
    let deep = |levels: usize| {
        format!(
            r#"{{"content": [], "structuredContent": {{"a": {}1{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    for as_events in [false, true] {
        let server = Loopback::start(move |asked| {
            let levels = [126, 127, 128, 60_000].get(asked.before).copied().unwrap_or_default();
            (asked.method() == "tools/call").then(|| match as_events {
                false => raw(asked, &deep(levels)),
                true => vec![events(&format!("data: {}\n\n", message(asked, &deep(levels))))],
            })
        })
        .await;
        let (_place, catalogue) = catalogue(&server).await;
        for levels in [126, 127] {
            let output = call(&catalogue, "s__echo", json!({})).await.unwrap();
            let mut value = &output["a"];
            for _ in 0..levels {
                value = &value[0];
            }
            assert_eq!(value, &json!(1), "{levels}");
        }
        for _ in 0..2 {
            let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
            assert_eq!(failure.fault.kind, FaultKind::LimitExceeded, "{failure:?}");
            assert!(failure.fault.message.contains("json_nesting"), "{failure:?}");
        }
        assert_eq!(call(&catalogue, "s__echo", json!({})).await.unwrap(), json!({"a": 1}));
        // E-25: no integer becomes another one.
        let failure = answered(move |asked| {
            let result = r#"{"content": [], "structuredContent": {"n": 18446744073709551617}}"#;
            match as_events {
                false => raw(asked, result),
                true => vec![events(&format!("data: {}\n\n", message(asked, result)))],
            }
        });
        let failure = failure.await.unwrap_err();
        assert!(failure.fault.message.contains("18446744073709551617"), "{failure:?}");
    }
}

/// E-12: an answer that comes byte by byte and never ends has the call's time limit, as a start has its own.
#[tokio::test]
async fn answers_that_never_end() {
    for first in ["", "content-type: text/event-stream\r\n\r\n", "content-type: application/json\r\n\r\n"] {
        let server = Loopback::start(move |asked| {
            let head = Step::Write(format!("HTTP/1.1 200 X\r\n{first}"));
            let drip = Step::Drip(if first.is_empty() { "x-a: b\r\n" } else { " " }, 20);
            (asked.method() == "tools/call").then(|| vec![head, drip])
        })
        .await;
        let (_place, catalogue) = catalogue(&server).await;
        let mut asked = request(&catalogue, "s__echo", json!({}));
        asked.timeout_s = Some(0.4);
        let began = Instant::now();
        let failure = run(&catalogue, asked).await.unwrap_err();
        assert_eq!(failure.fault.kind, FaultKind::Timeout, "{failure:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    let server = Loopback::start(|_| Some(vec![Step::Wait(60_000)])).await;
    let slow = McpServer { start_timeout: Duration::from_millis(500), ..over_http("s", &server.url()) };
    let errors = Place::new().refused(vec![slow], &["s__echo"]).await;
    assert!(errors.to_string().contains("was not ready within 0.5 s"), "{errors}");
}

/// C-02, E-05: what never reached the server is no call that was made; what may have reached it is one.
#[tokio::test]
async fn calls_that_were_not_sent() {
    let server = Loopback::start(|_| None).await;
    let (_place, catalogue) = catalogue(&server).await;
    call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap();
    drop(server);
    let failure = call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap_err();
    assert!(failure.transient && failure.unsent, "{failure:?}");
    let failure = answered(|_| status(429, "", "")).await.unwrap_err();
    assert!(failure.transient && failure.unsent, "{failure:?}");
    for answer in [status(500, "", ""), vec![Step::Write("HTTP/1.1 200 X\r\n".into())], Vec::new()] {
        let failure = answered(move |_| answer.clone()).await.unwrap_err();
        assert!(failure.transient && !failure.unsent, "{failure:?}");
    }
}

/// C-06: keys in an address come in, and come out nowhere.
#[tokio::test]
async fn addresses_with_keys() {
    let server = Loopback::start(|asked| (asked.method() == "tools/call").then(|| text(asked, "a"))).await;
    let address =
        |port: u16| format!("http://user:pass-0123456789@127.0.0.1:{port}/mcp?api_key=key-0123456789");
    let with_keys = |port: u16| McpServer {
        secrets: ["user:pass-0123456789", "pass-0123456789", "key-0123456789"].map(Secret::new).into(),
        ..over_http("s", &address(port))
    };
    let place = Place::new();
    let catalogue = place.catalogue(vec![with_keys(server.port)], &["s__echo"]).await;
    assert_eq!(call(&catalogue, "s__echo", json!({})).await.unwrap(), json!("a"));
    let asked = &server.asked("tools/call")[0];
    assert!(asked.header("authorization").is_some_and(|header| header.starts_with("Basic ")), "{asked:?}");
    drop(server);
    let errors = place.refused(vec![with_keys(9)], &["s__echo"]).await;
    let said = format!("{errors} {errors:?}");
    assert!(said.contains("127.0.0.1:9/mcp") && !said.contains("-0123456789"), "{said}");
    let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
    assert!(!format!("{failure:?}").contains("-0123456789"), "{failure:?}");
}

/// The generation without a handshake, over HTTP: no session, and names in headers whatever characters they have.
#[tokio::test]
async fn without_a_handshake() {
    let server = Loopback::start(|asked| {
        let whole = |mut answer: Value| {
            answer["resultType"] = "complete".into();
            Some(result(asked, &answer))
        };
        let tool = json!({"name": "größe / x", "inputSchema": {"type": "object"}});
        match asked.method() {
            "server/discover" => {
                whole(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private"}))
            }
            "tools/list" => whole(json!({"tools": [tool], "ttlMs": 0, "cacheScope": "private"})),
            "tools/call" => whole(json!({"content": [{"type": "text", "text": "a"}]})),
            _ => None,
        }
    })
    .await;
    let place = Place::new();
    let catalogue = place.catalogue(vec![over_http("s", &server.url())], &["s__größe / x"]).await;
    assert_eq!(call(&catalogue, "s__größe / x", json!({})).await.unwrap(), json!("a"));
    let asked = &server.asked("tools/call")[0];
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"), "{asked:?}");
    assert!(server.asked("initialize").is_empty() && asked.header("mcp-session-id").is_none());
}

/// A header of the protocol is nobody else's.
#[tokio::test]
async fn headers_of_the_protocol() {
    for name in ["Mcp-Session-Id", "Accept", "Content-Type"] {
        let mut server = over_http("s", "http://127.0.0.1:9/mcp");
        if let Reached::Url { headers, .. } = &mut server.reached {
            headers.insert(name.to_owned(), Hidden("x".into()));
        }
        let errors = Place::new().refused(vec![server], &["s__echo"]).await;
        assert!(errors.to_string().contains("belongs to the protocol"), "{errors}");
    }
}
