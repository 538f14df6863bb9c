//! Providers by name, whose key goes where, and how it is told that none is configured (C-01, C-06, C-08).

use crate::net::{answer, endpoint, serve};
use crate::support::{Done, Place, finish, says};
use serde_json::json;

const KEYS: [(&str, &str); 5] = [
    ("SELVEDGE_API_KEY", "own-secret-4711"),
    ("OPENAI_API_KEY", "openai-secret-4711"),
    ("ANTHROPIC_API_KEY", "anthropic-secret-4711"),
    ("GEMINI_API_KEY", "gemini-secret-4711"),
    ("GOOGLE_API_KEY", "google-secret-4711"),
];

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place
}

fn run(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Done {
    let mut command = place.command(&[&["run", "plan.json", "--json"], args].concat());
    finish(command.envs(variables.iter().copied()).spawn().unwrap())
}

fn model(place: &Place, provider: &str, url: &str, more: &str) {
    place.write(
        "selvedge.toml",
        &format!("[models.m]\nprovider = \"{provider}\"\nmodel = \"tiny\"\nbase_url = \"{url}\"\n{more}\n"),
    );
}

/// Each provider is asked in its own protocol. To this machine goes `SELVEDGE_API_KEY` and no provider's own key, unless the configuration names its variable.
#[test]
fn no_provider_s_key_goes_to_this_machine() {
    for (provider, path) in [
        ("openai", "/v1/chat/completions"),
        ("openai-responses", "/v1/responses"),
        ("anthropic", "/v1/messages"),
        ("gemini", "/v1/models/tiny:"),
        ("ollama", "/v1/chat/completions"),
    ] {
        let (port, heads) = serve(|_| answer(400, r#"{"error": {"message": "enough"}}"#));
        let place = place();
        model(&place, provider, &format!("http://127.0.0.1:{port}/v1"), "");
        run(&place, &[], &KEYS[1..]).exits(1);
        let seen = heads.lock().unwrap().concat();
        assert!(seen.starts_with(&format!("POST {path}")) && !seen.contains("secret"), "{provider}: {seen}");
        heads.lock().unwrap().clear();
        run(&place, &[], &KEYS).exits(1);
        assert!(heads.lock().unwrap().concat().contains("own-secret-4711"), "{provider}");
        heads.lock().unwrap().clear();
        model(&place, provider, &format!("http://127.0.0.1:{port}/v1"), "api_key_env = \"OPENAI_API_KEY\"");
        run(&place, &[], &KEYS).exits(1);
        let seen = heads.lock().unwrap().concat();
        assert!(seen.contains("openai-secret-4711") && !seen.contains("own-secret"), "{provider}: {seen}");
    }
}

/// Every key is redacted, whether or not a model of the run uses it.
#[test]
fn keys_that_nobody_uses_are_redacted_as_well() {
    let said: Vec<&str> = KEYS.iter().map(|(_, key)| *key).collect();
    let place = place();
    place.write("script.yaml", &format!("- reply: {{text: \"{}\"}}\n", said.join(" ")));
    let done = run(&place, &["--script", "script.yaml"], &KEYS).exits(0);
    assert_eq!(done.json()["output"], ["[redacted]"; 5].join(" "));
}

/// A model that no option and no file configures is its provider's own, and asks for that provider's key.
#[test]
fn a_name_chooses_its_provider_and_its_key() {
    for (name, variable) in [
        ("gpt-x", "OPENAI_API_KEY"),
        ("openai/gpt-x", "OPENAI_API_KEY"),
        ("openai-responses/gpt-x", "OPENAI_API_KEY"),
        ("claude-x", "ANTHROPIC_API_KEY"),
        ("anthropic/x", "ANTHROPIC_API_KEY"),
        ("gemini-x", "GEMINI_API_KEY"),
        ("gemini/x", "GEMINI_API_KEY"),
    ] {
        let wrong: Vec<_> = KEYS.into_iter().filter(|(key, _)| *key == "OPENAI_API_KEY").collect();
        let keys = if variable == "OPENAI_API_KEY" { &[][..] } else { &wrong };
        let done = run(&place(), &["--model", name], keys).exits(4);
        assert_eq!(
            (&done.error()["rule"], &done.error()["code"]),
            (&json!("C-06"), &json!("no-key")),
            "{name}"
        );
        assert!(done.error()["message"].as_str().unwrap().contains(variable), "{done:#?}");
    }
}

/// A model whose address is none is an error for who asks it, and for nobody else (C-14).
#[test]
fn a_wrong_address_stops_only_who_asks_it() {
    let place = place();
    let (port, _) = serve(endpoint);
    place.write(
        "selvedge.toml",
        &format!(
            "[models.bad]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"no address\"\n\
             [models.good]\nprovider = \"openai\"\nmodel = \"tiny\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
             [roles]\nbasic = \"good\"\n"
        ),
    );
    run(&place, &[], &[]).exits(0);
    let done = run(&place, &["--model", "bad"], &[]).exits(4);
    assert_eq!(done.error()["rule"], "C-14");
    assert!(done.error()["message"].as_str().unwrap().contains("[models.bad]"), "{done:#?}");
}

#[test]
fn ollama_is_where_its_variable_says() {
    let (port, heads) = serve(endpoint);
    let place = place();
    let host = format!("127.0.0.1:{port}");
    let done = run(&place, &["--model", "ollama/tiny"], &[("OLLAMA_HOST", &host)]).exits(0);
    assert_eq!(done.json()["output"], "hello");
    assert!(heads.lock().unwrap()[0].starts_with("POST /v1/chat/completions "));
    place.write("selvedge.toml", "[models.m]\nprovider = \"ollama\"\nmodel = \"tiny\"\n");
    run(&place, &[], &[("OLLAMA_HOST", &host)]).exits(0);
}

/// C-08: the three ways, with what is really found.
#[test]
fn without_a_model_the_ways_to_one_say_what_is_here() {
    let nobody = [("OLLAMA_HOST", "127.0.0.1:9")];
    let help = |variables: &[(&str, &str)]| {
        let done = run(&place(), &[], variables).exits(4);
        assert_eq!(done.error()["rule"], "C-08");
        done.error()["help"].as_str().unwrap().to_owned()
    };
    let bare = help(&nobody);
    for part in [
        "(1) OPENAI_API_KEY is not set",
        "OPENAI_API_KEY",
        "(2) no Ollama was found at 127.0.0.1:9",
        "(3)",
        "--script",
    ] {
        assert!(bare.contains(part), "{part}: {bare}");
    }
    for (variable, option) in [
        ("OPENAI_API_KEY", "--model openai/NAME"),
        ("ANTHROPIC_API_KEY", "--model anthropic/NAME"),
        ("GOOGLE_API_KEY", "--model gemini/NAME"),
    ] {
        let found = help(&[nobody[0], (variable, "secret-4711-key")]);
        assert!(found.contains(&format!("{variable} is set: add {option}")), "{found}");
        assert!(!found.contains("4711-key"));
    }
    let (port, _) = serve(endpoint);
    let there = help(&[("OLLAMA_HOST", &format!("127.0.0.1:{port}"))]);
    assert!(there.contains(&format!(
        "Ollama was found at 127.0.0.1:{port}: add --base-url http://127.0.0.1:{port}/v1"
    )));
}
