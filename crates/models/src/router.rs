//! The configured models of a run, by role (C-14).

use selvedge_engine::{Failure, FaultKind, ModelReply, ModelRequest};
use selvedge_runtime::ports::{CallContext, Model, Pending};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The role that stands in for every role without a model of its own.
pub const DEFAULT_ROLE: &str = "basic";

/// The roles that documents and the agent use; those without a model of their own use [`DEFAULT_ROLE`]'s.
pub const ROLES: [&str; 9] =
    ["basic", "summarize", "cluster", "tool_analyze", "coder", "judge", "vision", "planner", "reflection"];

/// A model of the configuration.
#[derive(Clone)]
pub struct Entry {
    /// How to call it.
    pub model: Arc<dyn Model>,
    /// How many tokens fit into its context, if the configuration says.
    pub context_tokens: Option<u64>,
}

/// Sends each request to the model that its role names.
#[derive(Clone, Default)]
pub struct Router {
    models: BTreeMap<Arc<str>, Entry>,
    roles: BTreeMap<Arc<str>, Arc<str>>,
}

impl Router {
    /// No models yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One model for every role and every name, as `--base-url` and `--script` want it.
    pub fn single(model: Arc<dyn Model>, context_tokens: Option<u64>) -> Self {
        let mut router = Self::new();
        router.add("*", model, context_tokens);
        router.assign("*", "*");
        router
    }

    /// Adds a model under its configured name (`[models.NAME]`). The role `*` stands for any other role or name.
    pub fn add(&mut self, name: &str, model: Arc<dyn Model>, context_tokens: Option<u64>) {
        self.models.insert(name.into(), Entry { model, context_tokens });
    }

    /// Lets `role` be played by the model called `name` (`[roles]`).
    pub fn assign(&mut self, role: &str, name: &str) {
        self.roles.insert(role.into(), name.into());
    }

    /// The model for a role, or for a model's name: an assigned role, else a model of that name, else, for one of
    /// [`ROLES`], what `basic` uses, else what `*` was assigned.
    pub fn resolve(&self, role: &str) -> Option<&Entry> {
        let assigned = |role: &str| self.roles.get(role).and_then(|name| self.models.get(name));
        assigned(role)
            .or_else(|| self.models.get(role))
            .or_else(|| {
                let standard = ROLES.contains(&role);
                if standard { assigned(DEFAULT_ROLE).or_else(|| self.models.get(DEFAULT_ROLE)) } else { None }
            })
            .or_else(|| assigned("*"))
    }

    /// How many tokens fit into the context of a role's model, if known.
    pub fn context_tokens(&self, role: &str) -> Option<u64> {
        self.resolve(role)?.context_tokens
    }

    /// Whether any model is configured at all (C-08).
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    fn unknown(&self, role: &str) -> Failure {
        let known: Vec<&str> = self.roles.keys().chain(self.models.keys()).map(|name| &**name).collect();
        let message = match known.is_empty() {
            true => format!("no model is configured, so none can play {role:?}"),
            false => format!("no model plays {role:?}; configured are {}", known.join(", ")),
        };
        let mut failure = Failure::permanent(FaultKind::ProviderError, message).unsent();
        failure.fault.cause = Some(json!({"role": role, "configured": known}));
        failure
    }
}

impl Model for Router {
    fn call(&self, request: ModelRequest, context: CallContext) -> Pending<ModelReply> {
        match self.resolve(&request.role) {
            Some(entry) => entry.model.call(request, context),
            None => {
                let failure = self.unknown(&request.role);
                Box::pin(std::future::ready(Err(failure)))
            }
        }
    }

    fn counts(&self) -> bool {
        self.models.values().any(|entry| entry.model.counts())
    }

    fn recorded(&self, request: &ModelRequest, run: &str) {
        if let Some(entry) = self.resolve(&request.role) {
            entry.model.recorded(request, run);
        }
    }
}
