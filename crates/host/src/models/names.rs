//! Names of models that nothing can be meant by: a provider that is none, and slips of the pen (C-01).

use super::table::Table;
use crate::config::Config;
use crate::error::Error;
use crate::options::RunOptions;
use crate::ways::WayOut;
use selvedge_dialects::fields::misspelt;
use selvedge_models::Provider;

/// What the names of providers' models begin with: such a name is meant as it stands, however much a configured one
/// looks like it.
const FAMILIES: [&str; 8] = ["chatgpt", "claude-", "codex", "ft:", "gemini-", "gpt-", "o1", "o3"];

/// Checks the names of `--model` that no configuration has, also where a script answers in their place.
///
/// # Errors
/// `Usage`: the call is wrong (C-12); `Environment` for names in the environment (C-03).
pub(super) fn check(chosen: &RunOptions, config: &Config) -> Result<(), Error> {
    let configured: Vec<&str> = config.models.keys().map(String::as_str).collect();
    for name in chosen.models.values().filter(|name| !config.models.contains_key(*name)) {
        let wrong = match name.split_once('/') {
            Some((provider, model)) => prefixed(name, provider, model),
            None => bare(name, &configured),
        };
        if let Some((message, help)) = wrong {
            let option = if chosen.models_of_environment { "SELVEDGE_MODEL" } else { "--model" };
            let failure = Error::usage("C-01", "bad-model", &format!("`{option}`: {message}")).help(&help);
            return Err(if chosen.models_of_environment { failure.of_environment() } else { failure });
        }
    }
    Ok(())
}

/// `PROVIDER/NAME`.
fn prefixed(name: &str, provider: &str, model: &str) -> Option<(String, String)> {
    let providers = Provider::ALL.map(Provider::name);
    match Provider::parse(provider) {
        Some(_) if !model.trim().is_empty() => None,
        Some(_) => Some((
            format!("{name:?} names no model"),
            format!("write {provider}/NAME; {} lists the names", WayOut::Models(None)),
        )),
        None => {
            let all = providers.join(", ");
            let known = match misspelt(provider, &providers) {
                Some(meant) => format!("did you mean \"{meant}/{model}\"?"),
                None => {
                    "another endpoint's models are for --base-url URL, or for [models.NAME] with a base_url"
                        .to_owned()
                }
            };
            Some((format!("no provider is called {provider:?} in {name:?}; the providers are {all}"), known))
        }
    }
}

/// A name without a provider, which nothing configures.
fn bare(name: &str, configured: &[&str]) -> Option<(String, String)> {
    if Provider::parse(name).is_some() {
        return Some((
            format!("{name:?} is a provider, and no model is configured by that name"),
            format!("write {name}/NAME; {} lists the names", WayOut::Models(None)),
        ));
    }
    if FAMILIES.iter().any(|family| name.starts_with(family)) {
        return None;
    }
    let meant = misspelt(name, configured)?;
    Some((
        format!("no model is called {name:?}; configured: {}", configured.join(", ")),
        format!("did you mean \"{meant}\"? OpenAI's model of this name is openai/{name}"),
    ))
}

/// What is said about a name without a key that nothing configures: whose model it was taken for.
pub(super) fn taken_for(name: &str, table: &Table<'_>) -> String {
    let configured: Vec<&str> =
        table.specs.iter().filter(|(_, spec)| spec.configured).map(|(name, _)| name.as_str()).collect();
    match configured.as_slice() {
        [] => format!("`{name}` is taken for the provider's model of that name: nothing is configured"),
        names => format!(
            "`{name}` is not configured and taken for the provider's model of that name; configured: {}",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    fn told(models: &[&str], option: &str) -> Option<(String, String)> {
        let mut chosen = RunOptions::default();
        chosen.add_model(option, "--model").unwrap();
        let failure = check(&chosen, &config(models, &[])).err()?;
        assert_eq!(failure.kind, crate::error::ErrorKind::Usage);
        let first = &failure.diagnostics[0];
        Some((first.message.clone(), first.help.clone()))
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        let (message, help) = told(&["anthropic", "small"], "anthropicc").unwrap();
        assert!(message.contains("anthropic, small") && help.contains("\"anthropic\""), "{message} {help}");
        for (option, said) in [
            ("mistral/foo", "openai, openai-responses, anthropic, gemini, ollama"),
            ("judge=antropic/claude-x", "no provider is called \"antropic\""),
            ("anthropic/", "names no model"),
            ("ollama", "is a provider"),
            ("/x", "no provider"),
        ] {
            let (message, _) = told(&[], option).unwrap();
            assert!(message.contains(said), "{option}: {message}");
        }
        assert!(told(&[], "antropic/x").unwrap().1.contains("\"anthropic/x\""));
    }

    #[test]
    fn names_that_may_be_meant_are_not() {
        for option in
            ["gpt-5.1", "gpt-6", "qwen3", "openai/gpt-6", "google/x", "judge=claude-x", "anthropic", "a/b"]
        {
            assert_eq!(told(&["gpt-5", "anthropic", "small", "a/b"], option), None, "{option}");
        }
    }
}
