//! Everything that is configured.

use super::withheld::Off;
use crate::environment::Environment;
use crate::places::Files;
use selvedge_dialects::agent::Settings;
use selvedge_dialects::steps::Recovery;
use selvedge_dialects::{Diagnostic, DocumentLimits};
use selvedge_engine::{Budget, ModelSettings};
use selvedge_models::{CallLimits, Pace, Price, Provider};
use selvedge_store::RunStatus;
use selvedge_tools::mcp::McpServer;
use selvedge_tools::{CommandTool, NativeTool, Network, ToolLimits};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// `[models.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// `provider`.
    pub provider: Provider,
    /// `model`: its name at the endpoint.
    pub model: String,
    /// `base_url`.
    pub base_url: Option<String>,
    /// `api_key_env`: the variable that holds the key.
    pub api_key_env: Option<String>,
    /// `context_tokens`.
    pub context_tokens: Option<u64>,
    /// `price`.
    pub price: Option<Price>,
    /// `requests_per_minute`, `tokens_per_minute` and `max_parallel`.
    pub pace: Pace,
    /// Settings of its calls where documents say nothing else (P-28).
    pub settings: ModelSettings,
    /// Whether nothing is to be sent there, as nobody trusts who says so (C-20).
    pub withheld: bool,
}

/// Limits that are set; the others have their defaults (E-28).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    pub(super) values: BTreeMap<&'static str, f64>,
}

/// `[agent]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentConfig {
    /// What agents are lowered with.
    pub settings: Arc<Settings>,
    /// `codex`: the program, by path or to be looked up.
    pub codex: Option<PathBuf>,
    /// `codex_api_key_env`: the variable that holds the one key that codex is given.
    pub codex_api_key_env: Option<String>,
    /// `codex_base_url`: where its model is.
    pub codex_base_url: Option<String>,
    /// `codex_model`: the name of its model there.
    pub codex_model: Option<String>,
}

/// `[[webhooks]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfig {
    /// `url`: where it is told.
    pub url: Url,
    /// `events`: of runs that come to stand so.
    pub events: Vec<RunStatus>,
    /// `secret_env`: the variable that holds the secret that it is signed with.
    pub secret_env: String,
}

/// Everything that is configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What it is configured in.
    pub environment: Environment,
    /// The files that it was read from.
    pub files: Files,
    /// `[models.NAME]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// `[roles]`.
    pub roles: BTreeMap<String, String>,
    /// Where each role is given away: an error that is none as long as there is a model of that name.
    pub places: BTreeMap<String, Diagnostic>,
    /// `[tools] dirs`.
    pub tool_dirs: Vec<PathBuf>,
    /// Where each of them is named: an error that is none as long as the folder is there.
    pub dir_places: BTreeMap<PathBuf, Diagnostic>,
    /// `[tools] allow_read`.
    pub allow_read: Vec<PathBuf>,
    /// `[tools] allow_write`.
    pub allow_write: Vec<PathBuf>,
    /// `[tools] allow_network`.
    pub allow_network: Network,
    /// `[tools] allow_env`, and `--allow-env`.
    pub allow_env: Vec<String>,
    /// `[tools] shell_approval = false` lets `shell` run without asking.
    pub shell_approval: Option<bool>,
    /// `[tools] python`.
    pub python: Option<PathBuf>,
    /// `[tools.command.NAME]`, by name.
    pub commands: BTreeMap<String, CommandTool>,
    /// `[mcp.servers.NAME]`, and those of `--mcp`, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Tools of the program that the host is a part of.
    pub natives: Vec<NativeTool>,
    /// `[limits]`.
    pub limits: Limits,
    /// `[budget]`.
    pub budget: Budget,
    /// `[agent]`.
    pub agent: AgentConfig,
    /// `[recovery]`: what a step task's own `recovery` goes over (D-19, D-23).
    pub recovery: Recovery,
    /// `[[webhooks]]`: who is told what becomes of runs, of all files.
    pub webhooks: Vec<WebhookConfig>,
    /// What is off, as nobody trusts it (C-20).
    pub off: Option<Off>,
}

impl Limits {
    fn count(&self, key: &str) -> Option<u64> {
        // Settings are checked to be whole numbers from 0 on where they are read.
        self.values.get(key).map(|value| *value as u64)
    }

    fn size(&self, key: &str, default: usize) -> usize {
        self.count(key).and_then(|count| usize::try_from(count).ok()).unwrap_or(default)
    }

    fn time(&self, key: &str, default: Duration) -> Duration {
        // Thirty years stand for "none"; the clock could not hold much more.
        self.values.get(key).and_then(|s| Duration::try_from_secs_f64(s.min(1e9)).ok()).unwrap_or(default)
    }

    fn millis(&self, key: &str, default: u64) -> u64 {
        let time = self.time(key, Duration::from_millis(default));
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// Limits of documents.
    pub fn document(&self) -> DocumentLimits {
        let default = DocumentLimits::default();
        DocumentLimits {
            document_bytes: self.count("document_bytes").unwrap_or(default.document_bytes),
            nodes: self.size("nodes", default.nodes),
            json_nesting: self.size("json_nesting", default.json_nesting),
            schema_steps: self.count("schema_steps").unwrap_or(default.schema_steps),
            subgraph_depth: self.size("subgraph_depth", default.subgraph_depth),
        }
    }

    /// Limits that the machine applies.
    pub fn machine(&self) -> selvedge_engine::Limits {
        let default = selvedge_engine::Limits::default();
        selvedge_engine::Limits {
            message_bytes: self.count("message_bytes").unwrap_or(default.message_bytes),
            events: self.count("events").unwrap_or(default.events),
            model_attempts: self
                .count("model_attempts")
                .map_or(default.model_attempts, |attempts| u32::try_from(attempts).unwrap_or(u32::MAX)),
            retry_span_ms: self.millis("retry_span_s", default.retry_span_ms),
            retry_wait_ms: self.millis("retry_wait_s", default.retry_wait_ms),
            rate_limit_wait_ms: self.millis("rate_limit_wait_s", default.rate_limit_wait_ms),
            calls_per_reply: self.count("calls_per_reply").or(default.calls_per_reply),
            schema_steps: self.count("schema_steps").or(default.schema_steps),
            model_request_bytes: self.count("model_request_bytes").unwrap_or(default.model_request_bytes),
            fanout: self.count("fanout").unwrap_or(default.fanout),
            loop_iterations: self.count("loop_iterations").unwrap_or(default.loop_iterations),
            timers: self.count("timers").unwrap_or(default.timers),
            subgraph_depth: self
                .count("subgraph_depth")
                .map_or(default.subgraph_depth, |depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            expression_cost: self.count("expression_cost").unwrap_or(default.expression_cost),
        }
    }

    /// Limits that the driver applies; options go over settings.
    pub fn driver(&self, max_parallel: Option<u32>, timeout_s: Option<u64>) -> selvedge_runtime::Limits {
        let default = selvedge_runtime::Limits::default();
        let parallel = max_parallel.and_then(|n| usize::try_from(n).ok());
        selvedge_runtime::Limits {
            max_parallel: parallel.unwrap_or_else(|| self.size("max_parallel", default.max_parallel)),
            concurrency: self.size("concurrency", default.concurrency),
            run_timeout_s: timeout_s.or(self.count("run_timeout_s")),
        }
    }

    /// Limits of model calls.
    pub fn calls(&self) -> CallLimits {
        let default = CallLimits::default();
        CallLimits {
            model_timeout: self.time("model_timeout_s", default.model_timeout),
            first_token_timeout: self.time("first_token_timeout_s", default.first_token_timeout),
            message_bytes: self.size("message_bytes", default.message_bytes),
            rate_limit_wait: self.time("rate_limit_wait_s", default.rate_limit_wait),
        }
    }

    /// Limits of tool calls.
    pub fn tools(&self) -> ToolLimits {
        let default = ToolLimits::default();
        ToolLimits {
            tool_timeout_s: self.values.get("tool_timeout_s").copied().unwrap_or(default.tool_timeout_s),
            tool_output_bytes: self.count("tool_output_bytes").unwrap_or(default.tool_output_bytes),
            json_nesting: self.document().nesting_in_force(),
            schema_steps: self.document().schema_steps,
            ..default
        }
    }
}
