use super::*;

fn config(models: &[&str], roles: &[(&str, &str)]) -> Config {
    let model = |name: &&str| {
        let model = ModelConfig {
            provider: Provider::OpenAi,
            model: format!("{name}-model"),
            base_url: None,
            api_key_env: None,
            context_tokens: None,
            price: None,
        };
        ((*name).to_owned(), model)
    };
    let roles = roles.iter().map(|(role, name)| ((*role).to_owned(), (*name).to_owned()));
    Config { models: models.iter().map(model).collect(), roles: roles.collect(), ..Config::default() }
}

fn played(config: &Config, options: &[&str], role: &str) -> Option<String> {
    let mut chosen = Chosen::default();
    for option in options {
        chosen.add_model(option, "--model").unwrap();
    }
    let (specs, roles) = table(&chosen, config);
    name_for(role, &specs, &roles).map(|(name, _)| name.to_owned())
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

#[test]
fn one_model_plays_every_role() {
    let config = config(&["only"], &[]);
    assert_eq!(played(&config, &[], "basic").as_deref(), Some("only"));
    assert_eq!(played(&config, &[], "anything").as_deref(), Some("only"));
}

#[test]
fn nothing_configured_says_three_ways() {
    let failure = nothing_configured(&["basic".into()]);
    assert_eq!(failure.exit, Exit::Environment);
    let help = &failure.diagnostics[0].help;
    for part in ["OPENAI_API_KEY", "--base-url http://127.0.0.1:11434/v1", "--script"] {
        assert!(help.contains(part), "{part} is not in {help}");
    }
}
