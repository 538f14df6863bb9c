//! Coders that are programs of the user's, as operations of a run.

use crate::config::Config;
use selvedge_engine::{Failure, FaultKind, Operated, ToolRequest};
use selvedge_http::Secret;
use selvedge_runtime::{CallContext, Delta, Pending};
use selvedge_sandbox::process::Watch;
use selvedge_tools::coder::{CODEX_ADDRESS, CODEX_KEY, CODEX_TIME, Codex};
use selvedge_tools::operations::Operate;
use serde_json::Value;
use std::sync::Arc;

/// The operation `codex`: `{name, prompt}` gives `{file, words}`, with the tokens that codex used.
pub(crate) fn codex(config: &Config) -> Operate {
    let config = config.clone();
    Arc::new(move |request: ToolRequest, context: CallContext| -> Pending<Operated> {
        let codex = found(&config);
        let watch = context
            .watch
            .map(|watch| -> Watch { Arc::new(move |line: &str| watch(Delta::Progress(line.to_owned()))) });
        Box::pin(async move {
            let text = |name: &str| request.args.get(name).and_then(Value::as_str).unwrap_or_default();
            codex?.write(text("name"), text("prompt"), watch).await
        })
    })
}

/// codex as it is configured.
///
/// # Errors
/// It is not there, or has no key: `tool_build_failure`, with what to do.
fn found(config: &Config) -> Result<Codex, Failure> {
    let failed = |message: String| Err(Failure::permanent(FaultKind::ToolBuildFailure, message).unsent());
    let (env, agent) = (config.environment.process(), &config.agent);
    let Some(program) = Codex::find(agent.codex.as_deref(), env) else {
        return failed(match &agent.codex {
            Some(program) => format!("there is no program {}, which is configured as codex ([agent] codex)", program.display()),
            None => "the codex CLI is not on PATH: install it (`npm install -g @openai/codex`), or name it in [agent] of selvedge.toml: \
                     codex = \"/path/to/codex\""
                .to_owned(),
        });
    };
    let variable = agent.codex_api_key_env.as_deref().unwrap_or(CODEX_KEY);
    let Some(key) = config.environment.variable(variable) else {
        return failed(format!(
            "codex needs the key of its model: set {variable}, or name another variable in [agent] of selvedge.toml: codex_api_key_env = \
             \"NAME\""
        ));
    };
    Ok(Codex {
        program,
        key: (variable.to_owned(), Secret::new(&key)),
        base_url: agent.codex_base_url.clone().unwrap_or_else(|| CODEX_ADDRESS.to_owned()),
        model: agent.codex_model.clone(),
        timeout: CODEX_TIME,
        env: env.clone(),
        scratch_root: env.temporary(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn a07_what_codex_lacks_is_told_before_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        let with = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            let path = ("PATH".into(), dir.path().join("bin").into());
            Config::new(&Environment::new(variables.chain([path]), dir.path().to_owned()))
        };
        let said = |config: &Config| found(config).unwrap_err().fault.message;
        assert!(said(&with(&[])).contains("npm install -g @openai/codex"));
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::write(dir.path().join("bin/codex"), "").unwrap();
        assert!(said(&with(&[])).contains("set OPENAI_API_KEY"));
        let found = |config: &Config| super::found(config).unwrap();
        let usual = found(&with(&[("OPENAI_API_KEY", "sk-0123456789")]));
        assert_eq!((usual.program, &*usual.base_url), (dir.path().join("bin/codex"), CODEX_ADDRESS));
        let mut config = with(&[("OTHER_KEY", "sk-0123456789")]);
        config.agent.codex_api_key_env = Some("OTHER_KEY".to_owned());
        config.agent.codex_base_url = Some("http://127.0.0.1:9/v1".to_owned());
        let other = found(&config);
        assert_eq!((&*other.key.0, &*other.base_url), ("OTHER_KEY", "http://127.0.0.1:9/v1"));
        assert!(!format!("{other:?}").contains("sk-0123456789"));
        config.agent.codex = Some(dir.path().join("none"));
        assert!(said(&config).contains("which is configured as codex"));
    }
}
