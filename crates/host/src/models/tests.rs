use super::*;
use crate::config::ModelConfig;

pub(super) fn config(models: &[&str], roles: &[(&str, &str)]) -> Config {
    let model = |name: &&str| {
        let model = ModelConfig {
            provider: Provider::OpenAi,
            model: format!("{name}-model"),
            base_url: None,
            api_key_env: None,
            context_tokens: None,
            pace: selvedge_models::Pace::default(),
            withheld: false,
            price: None,
            settings: ModelSettings::default(),
        };
        ((*name).to_owned(), model)
    };
    let roles = roles.iter().map(|(role, name)| ((*role).to_owned(), (*name).to_owned()));
    Config { models: models.iter().map(model).collect(), roles: roles.collect(), ..Config::default() }
}

fn played(config: &Config, options: &[&str], role: &str) -> Option<String> {
    let mut chosen = RunOptions::default();
    for option in options {
        chosen.add_model(option, "--model").unwrap();
    }
    Table::new(&chosen, config).model_for(role).map(|(name, _)| name.to_owned())
}

/// A name that nothing configures says whose model it is (C-01).
#[test]
fn an_unknown_name_chooses_its_provider() {
    for (name, provider, model) in [
        ("gpt-5", Provider::OpenAi, "gpt-5"),
        ("claude-x", Provider::Anthropic, "claude-x"),
        ("gemini-x", Provider::Gemini, "gemini-x"),
        ("anthropic/other", Provider::Anthropic, "other"),
        ("gemini/tuned/one", Provider::Gemini, "tuned/one"),
        ("openai/gpt-5", Provider::OpenAi, "gpt-5"),
        ("openai-responses/gpt-5", Provider::OpenAiResponses, "gpt-5"),
        ("ollama/qwen3:8b", Provider::Ollama, "qwen3:8b"),
    ] {
        let mut chosen = RunOptions::default();
        chosen.add_model(name, "--model").unwrap();
        let config = Config::default();
        let table = Table::new(&chosen, &config);
        let (_, spec) = table.model_for("judge").unwrap();
        assert_eq!((spec.provider, spec.model.as_str()), (provider, model), "{name}");
        assert_eq!(spec.base_url, provider.default_base_url());
    }
}

/// The variables of keys that could go to an address, when none is set: what the message asks for (C-01, C-06).
#[test]
fn each_place_has_its_variable() {
    let none = Environment::default();
    let asked = |provider, url: &str, own: Option<&str>| keys::of_model(&none, provider, url, own).variable;
    let anthropic = Provider::Anthropic.default_base_url();
    assert_eq!(asked(Provider::Anthropic, anthropic, None), "ANTHROPIC_API_KEY");
    assert_eq!(asked(Provider::Anthropic, anthropic, Some("MINE")), "MINE");
    assert_eq!(asked(Provider::Anthropic, "http://127.0.0.1:1", None), "SELVEDGE_API_KEY");
    assert_eq!(asked(Provider::Gemini, Provider::Gemini.default_base_url(), None), "GEMINI_API_KEY");
    assert_eq!(asked(Provider::Ollama, "http://10.0.0.5:11434/v1", None), "SELVEDGE_API_KEY");
    assert!(keys::is_own(Provider::OpenAi, "https://api.openai.com/v1/other"));
    assert!(!keys::is_own(Provider::OpenAi, "https://api.openai.com.example.net/v1"));
    assert!(!keys::is_own(Provider::OpenAi, anthropic));
}

#[test]
fn a_list_has_a_model_and_knows_its_neighbours() {
    let names = ["qwen3:8b", "llama3:latest", "models/gemini-x", "gpt-5-mini"].map(str::to_owned);
    for there in ["qwen3:8b", "llama3", "gemini-x", "models/gemini-x"] {
        assert!(has(&names, there), "{there}");
    }
    assert!(!has(&names, "gpt-5") && !has(&names, "qwen3:4b"));
    assert_eq!(near(&names, "gpt-5-mimi", 3), ["gpt-5-mini"]);
    assert_eq!(near(&names, "qwen3", 3), ["qwen3:8b"]);
    assert_eq!(near(&names, "zzz", 3), [""; 0]);
}

#[test]
fn roles_fall_back_to_basic_and_options_go_over_the_configuration() {
    let config = config(&["small", "big"], &[("basic", "small"), ("judge", "big")]);
    assert_eq!(played(&config, &[], "judge").as_deref(), Some("big"));
    assert_eq!(played(&config, &[], "coder").as_deref(), Some("small"));
    assert_eq!(played(&config, &[], "big").as_deref(), Some("big"));
    assert_eq!(played(&config, &[], "other"), None);
    assert_eq!(played(&config, &["judge=small"], "judge").as_deref(), Some("small"));
    assert_eq!(played(&config, &["big"], "basic").as_deref(), Some("big"));
    assert_eq!(played(&config, &["big"], "other").as_deref(), Some("big"));
}

/// Who names a model that is not there hears of the models, roles apart, and of the one that may be meant (C-08).
#[test]
fn a_role_that_nobody_plays_has_neighbours() {
    let config = config(&["anthropic", "small"], &[("judge", "small")]);
    let chosen = RunOptions::default();
    assert_eq!(unplayed(&chosen, &config, &["judge".into(), "antropic".into()]).as_deref(), Some("antropic"));
    assert_eq!(unplayed(&chosen, &config, &["judge".into()]), None);
    let failure = unknown_role("antropic", &Table::new(&chosen, &config));
    let first = &failure.diagnostics[0];
    assert_eq!(first.message, "no model plays `antropic`; configured: anthropic, small; roles: judge");
    assert!(first.help.starts_with("did you mean \"anthropic\"?"), "{}", first.help);
}

#[test]
fn one_model_plays_every_role() {
    let config = config(&["only"], &[]);
    assert_eq!(played(&config, &[], "basic").as_deref(), Some("only"));
    assert_eq!(played(&config, &[], "anything").as_deref(), Some("only"));
}

#[test]
fn nothing_configured_says_three_ways() {
    let failure = nothing_configured(&Environment::default(), &["basic".into()]);
    assert_eq!(failure.kind, ErrorKind::Environment);
    let help = &failure.diagnostics[0].help;
    for part in ["OPENAI_API_KEY", "--base-url http://127.0.0.1:11434/v1", "--script"] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
}

/// P-26: a warning names the node, the model, and what is not sent; each node is told once.
#[test]
fn settings_that_are_not_sent_are_warned_of() {
    let graph: Graph = serde_json::from_value(serde_json::json!({
        "threads": [{"name": "main", "first": "t"}],
        "nodes": [
            {"id": "n1", "name": "a", "body": {"thread": 0, "leaves": [
                {"name": "model", "act": {"infer": {"settings": {"seed": 1, "temperature": 0.5}}}},
                {"name": "end", "act": {"infer": {"settings": {"seed": 1, "temperature": 0.5}}}}]}},
            {"id": "n2", "name": "b", "body": {"thread": 0, "leaves": [
                {"name": "model", "act": {"infer": {"settings": {"temperature": 0.5}}}}]}}],
        "tools": {}}))
    .unwrap();
    let endpoint =
        |provider| Endpoint::new(ProviderConfig::new(provider, "m"), &Http::new(|_| None)).unwrap();
    let mut models = Models::of(Router::new());
    assert!(models.unsent(&graph).is_empty());
    for role in [EVERY_ROLE, DEFAULT_ROLE] {
        models.endpoints = [(role.into(), endpoint(Provider::Anthropic))].into_iter().collect();
        models.names = [("basic".into(), "claude-x at https://h".into())].into_iter().collect();
        let warnings = models.unsent(&graph);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!((&*warnings[0].code, warnings[0].node.as_deref()), ("setting-not-sent", Some("n1")));
        assert!(
            warnings[0].message.contains("seed") && warnings[0].message.contains("claude-x"),
            "{warnings:?}"
        );
    }
    models.endpoints = [(EVERY_ROLE.into(), endpoint(Provider::OpenAi))].into_iter().collect();
    assert!(models.unsent(&graph).is_empty());
}
