//! Which providers there are, and how one model of theirs is configured.

use super::anthropic::Messages;
use super::gemini::Gemini;
use super::limiter::Pace;
use super::openai::Chat;
use super::protocol::Protocol;
use super::responses::Responses;
use super::terms::{CallLimits, Price};
use reqwest::Url;
use selvedge_engine::ModelSettings;
use selvedge_http::Secret;

/// A kind of endpoint, by the protocol it speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// OpenAI's chat completions, which most other providers and servers speak too.
    #[default]
    OpenAi,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini, `generateContent`.
    Gemini,
    /// Ollama on this machine, by its chat completions.
    Ollama,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The provider of a name; `openai-compatible` is another name for `openai`, `google` for `gemini`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "openai-compatible" => Some(Self::OpenAi),
            "google" => Some(Self::Gemini),
            _ => Self::ALL.into_iter().find(|provider| provider.name() == name),
        }
    }

    /// Where it is unless a configuration says otherwise, version part included.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// The environment variables that its key may be in, best first; none where no key is needed.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi | Self::OpenAiResponses => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Ollama => &[],
        }
    }

    /// The first of [`Self::key_variables`].
    pub fn key_variable(self) -> Option<&'static str> {
        self.key_variables().first().copied()
    }

    /// Its protocol at an address. `extras` is [`ProviderConfig::extras`].
    pub(crate) fn protocol(self, base: &Url, extras: Option<bool>) -> Box<dyn Protocol> {
        match self {
            Self::OpenAi => Box::new(Chat::new(base, extras)),
            // It knows none of them.
            Self::Ollama => Box::new(Chat::new(base, extras.or(Some(false)))),
            Self::OpenAiResponses => Box::new(Responses),
            Self::Gemini => Box::new(Gemini),
            Self::Anthropic => Box::new(Messages),
        }
    }
}

/// How to reach one model.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Whose protocol the endpoint speaks.
    pub provider: Provider,
    /// The base URL, version part included: `http://127.0.0.1:8000/v1`. A query is kept on every request. `None`
    /// is [`Provider::default_base_url`].
    pub base_url: Option<String>,
    /// The model's name at the endpoint.
    pub model: String,
    /// The key.
    pub key: Option<Secret>,
    /// Where a key comes from, for the help of a 401: `OPENAI_API_KEY`.
    pub key_variable: String,
    /// What it costs, if the configuration says (E-20).
    pub price: Option<Price>,
    /// Time and size limits of a call.
    pub limits: CallLimits,
    /// How much it is asked at a time and a minute (E-51).
    pub pace: Pace,
    /// Whether `enable_search`, `enable_thinking` and the like are sent (P-26). `None`: to chat completions, except
    /// to OpenAI itself, which refuses fields it does not know, and to Ollama, which ignores them. Other protocols
    /// never send them.
    pub extras: Option<bool>,
    /// Settings of calls that say nothing else (P-28).
    pub settings: ModelSettings,
}

impl ProviderConfig {
    /// A model at the provider's own address, without key and price, with the default limits.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            base_url: None,
            model: model.into(),
            key: None,
            key_variable: provider.key_variable().unwrap_or("SELVEDGE_API_KEY").to_owned(),
            price: None,
            limits: CallLimits::default(),
            pace: Pace::default(),
            extras: None,
            settings: ModelSettings::default(),
        }
    }

    /// The same at another address.
    #[must_use]
    pub fn at(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }
}
