//! What requests bring that act.

use crate::body::Fields;
use crate::problem::Problem;
use schemars::JsonSchema;
use selvedge_engine::Budget;
use selvedge_host::RunOptions;
use selvedge_host::options::{EVERY_ROLE, seconds};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A run to be begun.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Start {
    /// The document: an object, or its text.
    #[schemars(with = "Option<Value>")]
    pub(crate) document: Option<IgnoredAny>,
    /// The name of a document that the server has.
    pub(crate) name: Option<String>,
    /// Which plan, if the document holds several.
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out.
    pub(crate) dialect: Option<String>,
    /// Values of its inputs.
    pub(crate) inputs: Map<String, Value>,
    /// How it is run.
    #[schemars(with = "Chosen")]
    pub(crate) options: Fields<Chosen>,
    /// The run's id, never used before.
    pub(crate) run_id: Option<String>,
}

/// How a run is run, over what the server was started with. What a run may reach is the server's to say.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Chosen {
    /// The model of all roles.
    model: Option<String>,
    /// Models by role.
    models: BTreeMap<String, String>,
    /// Caps of the run.
    #[schemars(with = "Option<Caps>")]
    budget: Option<Fields<Caps>>,
    /// Seconds that it may take.
    timeout_s: Option<f64>,
    /// Model calls at a time.
    max_parallel: Option<u32>,
    /// One node after the other.
    sequential: bool,
    /// Refused where tools can't be isolated.
    require_isolation: bool,
}

/// Caps of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Caps {
    /// Model calls.
    calls: Option<u64>,
    /// Input and output tokens together.
    tokens: Option<u64>,
    /// Money.
    cost: Option<f64>,
}

impl Chosen {
    /// As options of a run.
    pub(crate) fn options(&self) -> Result<RunOptions, Problem> {
        let mut options = RunOptions {
            max_parallel: self.max_parallel,
            sequential: self.sequential,
            require_isolation: self.require_isolation,
            ..RunOptions::default()
        };
        let all = self.model.iter().map(|model| (EVERY_ROLE, model));
        for (role, model) in all.chain(self.models.iter().map(|(role, model)| (role.as_str(), model))) {
            options.add_model(&format!("{role}={model}"), "models")?;
        }
        if self.max_parallel == Some(0) {
            return Err(Problem::bad("bad-option", "max_parallel is 1 or more"));
        }
        if let Some(Fields(Caps { calls, tokens, cost })) = self.budget {
            if cost.is_some_and(|cost| !(cost >= 0.0 && cost.is_finite())) {
                return Err(Problem::bad("bad-option", "the cost of a budget is 0 or more"));
            }
            options.budget = Budget { calls, tokens, cost };
        }
        if let Some(timeout) = self.timeout_s {
            options.timeout_s = Some(seconds(Some(timeout), &timeout.to_string(), "timeout_s")?);
        }
        Ok(options)
    }
}

/// What a person says to an ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// The answer: `"yes"` or `"no"` to an approval, `"done"` too where it is in doubt, else any JSON.
    pub(crate) answer: Value,
    /// With `"done"`: what came back.
    #[serde(default)]
    pub(crate) output: Option<Value>,
    /// Who answers, for the record.
    #[serde(default)]
    pub(crate) by: Option<String>,
    /// Why, for the record.
    #[serde(default)]
    pub(crate) why: Option<String>,
}

/// What a person says that answers no question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// What is said.
    pub(crate) text: String,
    /// The node that is meant, or that the agent is in; needed where several go on at once.
    #[serde(default)]
    pub(crate) to: Option<String>,
    /// Who says it, for the record.
    #[serde(default)]
    pub(crate) by: Option<String>,
}

/// How a run goes on that has stopped.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Resumed {
    /// How it is run, over what it was begun with.
    #[schemars(with = "Chosen")]
    pub(crate) options: Fields<Chosen>,
}

/// How a run is forked.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Forked {
    /// The last event that the fork shares with the run; else the run's last one.
    pub(crate) at: Option<u64>,
    /// Other texts for messages.
    #[schemars(with = "Vec<Edited>")]
    pub(crate) messages: Vec<Fields<Edited>>,
    /// Another document in place of the run's: an object, or its text.
    #[schemars(with = "Option<Value>")]
    pub(crate) document: Option<IgnoredAny>,
    /// Which plan, if that holds several.
    pub(crate) plan: Option<String>,
    /// Its dialect, instead of finding out.
    pub(crate) dialect: Option<String>,
    /// Other values of inputs.
    pub(crate) inputs: Map<String, Value>,
    /// How it is run, over what the run was begun with.
    #[schemars(with = "Chosen")]
    pub(crate) options: Fields<Chosen>,
    /// The fork's id, never used before.
    pub(crate) run_id: Option<String>,
}

/// Another text for a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edited {
    /// The event that appended it.
    pub(crate) event: u64,
    /// The text.
    pub(crate) text: String,
}

/// A document to be looked at.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Checked {
    /// The document: an object, or its text.
    #[schemars(with = "Option<Value>")]
    pub(crate) document: Option<IgnoredAny>,
    /// The name of a document that the server has.
    pub(crate) name: Option<String>,
    /// Which plan, if it holds several.
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out.
    pub(crate) dialect: Option<String>,
}
