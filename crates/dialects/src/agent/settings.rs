//! What agents are lowered with, besides their documents.

use super::prompts::{ALL, Prompt};
use selvedge_engine::template::Template;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who writes tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coder {
    /// The model of the role `coder`.
    #[default]
    Model,
    /// The codex CLI.
    Codex,
}

impl Coder {
    /// Their names in documents, options and the configuration.
    pub const NAMES: [(&'static str, Self); 2] = [("model", Self::Model), ("codex", Self::Codex)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Codex => "codex",
        }
    }
}

/// Settings of `[agent]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Who writes tools where a document says nothing of it.
    pub coder: Coder,
    /// Tokens of a conversation beyond which its oldest rounds are summarised.
    pub context_tokens: u64,
    /// Tokens of one output beyond which it is cut.
    pub tool_output_tokens: u64,
    /// How tokens are counted.
    pub encoding: Arc<str>,
    /// Prompts of the user's own, by their names; the others are the built-in ones.
    pub prompts: BTreeMap<Arc<str>, Arc<str>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            coder: Coder::Model,
            context_tokens: 120_000,
            tool_output_tokens: 64_000,
            encoding: "cl100k_base".into(),
            prompts: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The text of a prompt.
    pub(super) fn prompt(&self, prompt: Prompt) -> &str {
        self.prompts.get(prompt.name).map_or(prompt.text, |own| own)
    }

    /// Takes a user's own prompt.
    ///
    /// # Errors
    /// No prompt has that name, or the text is no template or has a placeholder that nothing fills: what is wrong, in words.
    pub fn add_prompt(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(known) = ALL.iter().find(|prompt| prompt.name == name) else {
            let names: Vec<&str> = ALL.iter().map(|prompt| prompt.name).collect();
            return Err(format!("there is no prompt `{name}`: they are {}", names.join(", ")));
        };
        let template = Template::parse(text).map_err(|error| error.to_string())?;
        for found in template.placeholders() {
            let filled = known.fields.iter().any(|field| found.path.to_string() == *field);
            if !filled {
                let fields = known.fields.join("`, `");
                return Err(format!(
                    "nothing fills {} in the prompt `{name}`: there are `{fields}`",
                    found.raw
                ));
            }
        }
        self.prompts.insert(name.into(), text.into());
        Ok(())
    }
}
