//! `selvedge models`: what is configured, and what asking the endpoints comes to (C-14, C-15).

use crate::net::{answer, serve};
use crate::support::{Done, Place, finish};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn models(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = place.command(&[&["models"], args].concat());
    // Whatever listens on this machine is none of these tests' business.
    command.env("OLLAMA_HOST", "127.0.0.1:9").envs(variables.iter().copied());
    finish(command.spawn().unwrap())
}

fn list(names: &[&str]) -> String {
    let rows: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
    answer(200, &json!({"object": "list", "data": rows}).to_string())
}

fn configured(place: &Place, url: &str) {
    place.write(
        "selvedge.toml",
        &format!(
            "[models.big]\nprovider = \"anthropic\"\nmodel = \"claude-x\"\ncontext_tokens = 200000\n\
             price = {{ input_per_mtok = 3, output_per_mtok = 15, cached_input_per_mtok = 0.3 }}\n\
             [models.near]\nprovider = \"openai\"\nmodel = \"tiny\"\nbase_url = \"{url}?token=query-secret\"\n\
             [roles]\nbasic = \"near\"\njudge = \"big\"\nsummarize = \"near\"\n"
        ),
    );
}

#[test]
fn nothing_configured_says_what_to_do() {
    let place = Place::new();
    let page = models(&place, &[], &[]).exits(0).stdout;
    assert!(page.contains("--script") && page.contains("OPENAI_API_KEY"), "{page}");
    assert_eq!(models(&place, &["--json"], &[]).exits(0).json(), json!({"models": []}));
    assert_eq!(models(&place, &["--check", "--json"], &[]).exits(0).json(), json!({"models": []}));
}

#[test]
fn the_list_has_its_shape_and_no_key() {
    let place = Place::new();
    configured(&place, "http://127.0.0.1:9/v1");
    let key = [("ANTHROPIC_API_KEY", "anthropic-secret-4711")];
    let listed = models(&place, &["--json"], &key).exits(0);
    let big = json!({
        "name": "big", "provider": "anthropic", "model": "claude-x", "base_url": "https://api.anthropic.com/v1",
        "roles": ["judge"], "key": {"variable": "ANTHROPIC_API_KEY", "found": true}, "context_tokens": 200000,
        "price": {"input_per_mtok": 3.0, "output_per_mtok": 15.0, "cached_input_per_mtok": 0.3},
        "requests_per_minute": null, "tokens_per_minute": null, "max_parallel": null,
    });
    let near = json!({
        "name": "near", "provider": "openai", "model": "tiny", "base_url": "http://127.0.0.1:9/v1",
        "roles": ["basic", "summarize"], "key": {"variable": "SELVEDGE_API_KEY", "found": false},
        "context_tokens": null, "price": null,
        "requests_per_minute": null, "tokens_per_minute": null, "max_parallel": null,
    });
    assert_eq!(listed.json(), json!({"models": [big, near]}));
    let page = models(&place, &[], &key).exits(0).stdout;
    for part in
        ["big", "anthropic/claude-x", "judge", "ANTHROPIC_API_KEY", "200000", "3+15", "basic, summarize"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("4711") && !listed.stdout.contains("4711") && !page.contains("query-secret"));
    // In a pipe nothing is cut; on a terminal the address is.
    assert!(
        page.contains("http://127.0.0.1:9/v1") && page.contains("https://api.anthropic.com/v1"),
        "{page}"
    );
    assert!(page.contains("3+15 (0.3 cached)") && !page.contains('…'), "{page}");
    let page = models(&place, &[], &[]).exits(0).stdout;
    assert!(page.contains("ANTHROPIC_API_KEY not set"), "{page}");
}

/// What asking the endpoint comes to, and the exit code.
fn checked(place: &Place) -> (String, Value, i32) {
    let done = models(place, &["--check", "--json"], &[]);
    let status = done.json()["models"][0]["status"].clone();
    (status["state"].as_str().unwrap().to_owned(), status, done.code)
}

#[test]
fn a_check_tells_what_is_wrong_with_an_endpoint() {
    let place = Place::new();
    let model = |url: &str, more: &str| {
        place.write(
            "selvedge.toml",
            &format!("[models.m]\nprovider = \"openai\"\nmodel = \"qwen3\"\nbase_url = \"{url}\"\n{more}"),
        );
    };
    let at = |port: u16| format!("http://127.0.0.1:{port}/v1");
    model(&at(serve(|_| list(&["other", "qwen3:latest"])).0), "");
    assert_eq!((checked(&place).0.as_str(), checked(&place).2), ("ok", 0));
    model(&at(serve(|_| list(&["qwen3:8b", "other"])).0), "");
    let (state, status, code) = checked(&place);
    assert_eq!((state.as_str(), code, &status["near"]), ("not_listed", 0, &json!(["qwen3:8b"])));
    for refused in [401, 403] {
        model(&at(serve(move |_| answer(refused, "{}")).0), "");
        assert_eq!((checked(&place).0.as_str(), checked(&place).2), ("key_refused", 4));
    }
    model(&at(serve(|_| answer(404, "")).0), "");
    assert_eq!((checked(&place).0.as_str(), checked(&place).2), ("no_list", 0));
    model(&at(9), "");
    assert_eq!((checked(&place).0.as_str(), checked(&place).2), ("unreachable", 4));
    model(&at(9), "api_key_env = \"NOT_SET\"\n");
    assert_eq!((checked(&place).0.as_str(), checked(&place).2), ("no_key", 4));
    let page = models(&place, &["--check"], &[]).exits(4).stdout;
    assert!(page.contains("no key") && page.contains("NOT_SET is not set"), "{page}");
}

/// Endpoints are asked at once, each for a bounded time.
#[test]
fn silent_endpoints_are_waited_for_together() {
    let silent: Vec<_> = (0..4).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let models_of = silent.iter().enumerate().map(|(n, listener)| {
        let address = listener.local_addr().unwrap();
        format!("[models.m{n}]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"http://{address}/v1\"\n")
    });
    let place = Place::new();
    place.write("selvedge.toml", &models_of.collect::<String>());
    let started = Instant::now();
    let done = models(&place, &["--check", "--json"], &[]).exits(4);
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
    assert_eq!(done.json()["models"][3]["status"]["state"], "unreachable");
}

#[test]
fn what_endpoints_have_is_listed() {
    let place = Place::new();
    let (port, _) = serve(|_| list(&["alpha", "beta"]));
    let (ollama, _) = serve(|_| list(&["llama3:latest"]));
    let url = format!("http://127.0.0.1:{port}/v1");
    let host = format!("127.0.0.1:{ollama}");
    configured(&place, &url);
    let done = models(&place, &["--available", "--json"], &[("OLLAMA_HOST", &host)]).exits(0).json();
    let rows = done["available"].as_array().unwrap();
    let of = |provider: &str| rows.iter().find(|row| row["provider"] == provider).unwrap().clone();
    assert_eq!((&of("openai")["models"], &of("openai")["error"]), (&json!(["alpha", "beta"]), &Value::Null));
    assert_eq!(of("openai")["base_url"], url);
    assert_eq!(of("ollama")["models"], json!(["llama3:latest"]));
    assert_eq!(rows.len(), 2, "no key, no question: {rows:?}");
    let page = models(&place, &["--available", "--base-url", &url], &[]).exits(0).stdout;
    assert!(page.contains("alpha") && page.contains("beta") && !page.contains("llama3"), "{page}");
}
