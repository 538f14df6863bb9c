//! `[agent]`: how agents work, who writes their tools, and what their models are told (A-07, A-11 … A-13).

use super::read::Reader;
use super::settings::Config;
use crate::library::regular;
use selvedge_dialects::Finding;
use selvedge_dialects::agent::{Coder, Settings};
use selvedge_dialects::fields::{Fields, Shape};
use selvedge_dialects::json::Node;
use selvedge_models::tokens::Encoding;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const AGENT: Shape = Shape {
    what: "[agent]",
    fields: &[
        "coder",
        "codex",
        "codex_api_key_env",
        "codex_base_url",
        "codex_model",
        "context_tokens",
        "encoding",
        "prompts",
        "tool_output_tokens",
    ],
};
/// The largest prompt.
const PROMPT: u64 = 1 << 20;

impl Reader<'_> {
    /// Puts what the table says over what is configured.
    pub(super) fn agent(&mut self, node: &Node<'_>, config: &mut Config) {
        let node = &self.without_keys(node);
        let Some(fields) = Fields::open(node, &AGENT, "C-14", self.diagnostics) else { return };
        let mut settings = Settings::clone(&config.agent.settings);
        if let Some(coder) = fields.choice("coder", "C-14", &Coder::NAMES, self.diagnostics) {
            settings.coder = coder.value;
        }
        if let Some(tokens) = self.count(&fields, "context_tokens", "C-14") {
            settings.context_tokens = tokens;
        }
        if let Some(tokens) = self.count(&fields, "tool_output_tokens", "C-14") {
            settings.tool_output_tokens = tokens;
        }
        if let Some(encoding) = fields.choice("encoding", "C-14", &Encoding::NAMES, self.diagnostics) {
            let name = Encoding::NAMES.iter().find(|(_, known)| *known == encoding.value);
            settings.encoding = name.map_or(settings.encoding, |(name, _)| (*name).into());
        }
        if let Some(folder) = fields.name("prompts", "C-14", self.diagnostics)
            && let Err(message) = prompts(&self.folder.join(&*folder.value), &mut settings)
        {
            let help = "`prompts` is a folder of files such as `manager.md`, each in place of the built-in prompt of that name";
            self.diagnostics.push(Finding::error("C-14", "bad-prompts", folder.span, message).help(help));
        }
        config.agent.settings = Arc::new(settings);
        if let Some(program) = fields.name("codex", "C-14", self.diagnostics) {
            config.agent.codex = Some(self.program(&program.value));
        }
        if let Some(name) = self.variable(&fields, "codex_api_key_env") {
            config.agent.codex_api_key_env = Some(name);
        }
        for (field, place) in [
            ("codex_base_url", &mut config.agent.codex_base_url),
            ("codex_model", &mut config.agent.codex_model),
        ] {
            if let Some(text) = fields.name(field, "C-14", self.diagnostics) {
                *place = Some(text.value.to_string());
            }
        }
    }
}

/// Takes the prompts of a folder.
fn prompts(folder: &Path, settings: &mut Settings) -> Result<(), String> {
    let unread = |error: std::io::Error| format!("{} can't be read: {error}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        files.push(entry.map_err(unread)?.path());
    }
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")) {
        let wrong = |why: String| format!("{}: {why}", file.display());
        let bytes = regular::read(file, PROMPT).map_err(wrong)?.unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|_| wrong("this is no UTF-8 text".to_owned()))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        settings.add_prompt(&name, &text).map_err(wrong)?;
    }
    Ok(())
}
