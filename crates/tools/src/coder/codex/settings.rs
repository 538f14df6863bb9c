//! `config.toml` of codex: all that it is told besides its arguments.

use super::Codex;
use selvedge_sandbox::process::SEARCH_PATH;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder that npm puts packages in.
const MODULES: &str = "node_modules";

/// The settings of a call that works in this folder.
///
/// What a command of codex's reads is the system's programs, codex itself, and the folder, which it alone writes; it has no network, and no
/// variable of codex's, whose key is one of them. `--sandbox workspace-write` would let it read every file of the user's. Settings that a
/// version of codex does not know mean nothing to it; one that does not know these of the sandbox writes nothing at all.
pub(super) fn text(codex: &Codex, work: &Path) -> String {
    let package = package(&codex.program);
    let (work, path, package) = (quoted(work), quoted(Path::new(SEARCH_PATH)), quoted(&package));
    let model = codex.model.as_ref().map(|model| format!("model = {}\n", Value::from(model.as_str())));
    let (model, address) = (model.unwrap_or_default(), Value::from(codex.base_url.as_str()));
    let key = Value::from(codex.key.0.as_str());
    format!(
        r#"{model}model_provider = "selvedge"
approval_policy = "never"
default_permissions = "selvedge"
allow_login_shell = false
web_search = "disabled"
check_for_update_on_startup = false

[analytics]
enabled = false

[history]
persistence = "none"

[features]
apps = false
plugins = false
hooks = false
memories = false
multi_agent = false

[shell_environment_policy]
inherit = "none"
set = {{ PATH = {path}, HOME = {work}, LANG = "C.UTF-8" }}

[permissions.selvedge.filesystem]
":minimal" = "read"
":workspace_roots" = "write"
{package} = "read"

[permissions.selvedge.network]
enabled = false

[model_providers.selvedge]
name = "selvedge"
base_url = {address}
env_key = {key}
wire_api = "responses"
"#
    )
}

/// What a command of codex's has to read of it: its sandbox is started by codex itself.
fn package(program: &Path) -> PathBuf {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let modules = real.ancestors().filter(|folder| folder.ends_with(MODULES)).last().map(Path::to_owned);
    modules.unwrap_or(real)
}

/// A text of TOML: what JSON escapes, it does, too.
fn quoted(path: &Path) -> String {
    Value::from(path.to_string_lossy()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_http::Secret;

    #[test]
    fn a07_settings_are_toml_without_the_key() {
        let codex = Codex {
            program: "/opt/a \"b\"/node_modules/@openai/codex/node_modules/x/bin/codex".into(),
            key: ("SOME_KEY".to_owned(), Secret::new("sk-0123456789")),
            base_url: "http://127.0.0.1:1/v1".to_owned(),
            model: Some("gpt-\\5".to_owned()),
            timeout: super::super::CODEX_TIME,
            env: Default::default(),
            scratch_root: "/".into(),
        };
        let text = text(&codex, Path::new("/work\n"));
        assert!(!text.contains("sk-0123456789"));
        let root = toml::de::DeTable::parse(&text).unwrap().into_inner();
        let said = |path: &[&str]| {
            let mut at = root.get(path[0]).unwrap().get_ref();
            for name in &path[1..] {
                at = at.as_table().unwrap().get(*name).unwrap().get_ref();
            }
            at.as_str().unwrap().to_owned()
        };
        assert_eq!(said(&["model"]), "gpt-\\5");
        assert_eq!(said(&["shell_environment_policy", "set", "HOME"]), "/work\n");
        let readable = ["permissions", "selvedge", "filesystem", "/opt/a \"b\"/node_modules"];
        assert_eq!(said(&readable), "read");
        assert_eq!(said(&["model_providers", "selvedge", "env_key"]), "SOME_KEY");
    }
}
