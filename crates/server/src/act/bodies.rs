//! What requests bring that act.

use crate::body::Fields;
use crate::problem::Problem;
use schemars::JsonSchema;
use selvedge_engine::Budget;
use selvedge_host::RunOptions;
use selvedge_host::options::{cap_count, is_cap, number_text, seconds};
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
    /// The model of all roles, or ROLE=NAME for one role.
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
    #[schemars(with = "Option<u64>")]
    calls: Option<f64>,
    /// Input and output tokens together.
    #[schemars(with = "Option<u64>")]
    tokens: Option<f64>,
    /// Money.
    cost: Option<f64>,
}

impl Chosen {
    /// Reads the options as the command line reads those of the same name (S-11).
    pub(crate) fn options(&self) -> Result<RunOptions, Problem> {
        let mut options = RunOptions {
            max_parallel: self.max_parallel,
            sequential: self.sequential,
            require_isolation: self.require_isolation,
            ..RunOptions::default()
        };
        if let Some(model) = &self.model {
            options.add_model(model, "model")?;
        }
        for (role, model) in &self.models {
            let wrong = || format!("`models` takes {{ROLE: NAME}}, not {role:?}: {model:?}");
            options.set_model(role, model, wrong)?;
        }
        if self.max_parallel == Some(0) {
            return Err(Problem::bad("bad-option", "max_parallel is 1 or more"));
        }
        if let Some(Fields(Caps { calls, tokens, cost })) = self.budget {
            let caps = [("calls", calls), ("tokens", tokens), ("cost", cost)];
            if let Some((name, _)) = caps.iter().find(|(_, cap)| cap.is_some_and(|cap| !is_cap(cap))) {
                return Err(Problem::bad("bad-option", &format!("`budget.{name}` must be 0 or more")));
            }
            options.budget = Budget { calls: calls.map(cap_count), tokens: tokens.map(cap_count), cost };
        }
        if let Some(timeout) = self.timeout_s {
            options.timeout_s = Some(seconds(Some(timeout), &number_text(timeout), "timeout_s")?);
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
