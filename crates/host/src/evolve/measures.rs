//! What the batches of an evolution came to: the lines of its `measures.jsonl` (V-11).

use super::statistics::{Interval, wilson};
use selvedge_engine::Tokens;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One batch: one line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Which batch, from 1 on.
    pub batch: u32,
    /// Of this batch.
    pub own: Figures,
    /// Of all batches up to this one.
    pub total: Figures,
    /// What it did to the library, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// Clusters that did not become one tool, and why (V-09).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub separate: Vec<Separate>,
}

/// Counts of a batch, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Tasks that have a prediction.
    pub done: u64,
    /// Tasks that failed or ran out of time.
    pub failed: u64,
    /// Tasks that have an answer to be held against.
    pub scored: u64,
    /// Those of them whose prediction is right (V-04).
    pub right: u64,
    /// The accuracy with its interval; `None` where nothing is scored. It follows from the counts.
    pub accuracy: Option<Accuracy>,
    /// What happened to tools.
    pub tools: ToolCounts,
    /// Calls of tools.
    pub calls: u64,
    /// Those that gave an output.
    pub succeeded: u64,
    /// New tools for each call of a tool; `None` where nothing was called. It follows from the counts.
    pub egl: Option<f64>,
    /// Calls of models, by role.
    pub roles: BTreeMap<Arc<str>, RoleUsage>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A share of right answers, with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// The share.
    pub value: f64,
    /// Where it lies with 95 % confidence (Wilson).
    #[serde(flatten)]
    pub interval: Interval,
}

/// What happened to tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCounts {
    /// Tools that tasks had built and proved.
    pub created: u64,
    /// Tools of the library that tasks called.
    pub reused: u64,
    /// Tools that a better version took the place of.
    pub enhanced: u64,
    /// Tools whose work another one does.
    pub merged: u64,
    /// Tools that were given up, those that no call had proved among them.
    pub retired: u64,
}

/// What a role of models used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// Requests that were answered.
    pub calls: u64,
    /// Tokens and money.
    #[serde(flatten)]
    pub tokens: Tokens,
}

/// What became of a tool at the end of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its public name.
    pub name: Arc<str>,
    /// The version that the name means now.
    pub version: Arc<str>,
    /// What happened.
    pub how: How,
    /// The versions that it was made of, or whose place it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Arc<str>>,
    /// The names of these versions. Earlier versions did not record them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Arc<str>>,
    /// Names that lead to it from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<Arc<str>>,
}

/// What happened to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A task's tool became everybody's.
    Created,
    /// A better version has its place.
    Enhanced,
    /// It does the work of several.
    Merged,
    /// It was given up.
    Retired,
}

/// Tools that were found to do the same, and stay apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Separate {
    /// The name that one tool for all of them would have had.
    pub name: Arc<str>,
    /// Their names.
    pub members: Vec<Arc<str>>,
    /// Why.
    pub why: String,
}

impl Accuracy {
    /// So many right ones of so many; `None` of nothing.
    pub fn of(right: u64, scored: u64) -> Option<Self> {
        wilson(right, scored).map(|interval| Self { value: right as f64 / scored as f64, interval })
    }
}

impl Figures {
    /// With what follows from the counts.
    pub fn derived(mut self) -> Self {
        self.accuracy = Accuracy::of(self.right, self.scored);
        self.egl = (self.calls > 0).then(|| self.tools.created as f64 / self.calls as f64);
        self
    }

    /// Both together.
    pub fn and(&self, other: &Self) -> Self {
        let (a, b) = (&self.tools, &other.tools);
        let tools = ToolCounts {
            created: a.created + b.created,
            reused: a.reused + b.reused,
            enhanced: a.enhanced + b.enhanced,
            merged: a.merged + b.merged,
            retired: a.retired + b.retired,
        };
        let mut roles = self.roles.clone();
        for (role, usage) in &other.roles {
            let sum = roles.entry(Arc::clone(role)).or_default();
            sum.calls += usage.calls;
            sum.tokens.add(&usage.tokens);
        }
        let sum = Self {
            done: self.done + other.done,
            failed: self.failed + other.failed,
            scored: self.scored + other.scored,
            right: self.right + other.right,
            tools,
            calls: self.calls + other.calls,
            succeeded: self.succeeded + other.succeeded,
            roles,
            seconds: self.seconds + other.seconds,
            ..Self::default()
        };
        sum.derived()
    }
}

impl Measures {
    /// The next batch after those that came to `before`.
    pub fn after(before: Option<&Self>, own: Figures) -> Self {
        let (batch, total) = match before {
            Some(before) => (before.batch + 1, before.total.and(&own)),
            None => (1, own.clone().derived()),
        };
        Self { batch, own: own.derived(), total, changes: Vec::new(), separate: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V-11: what is cumulative is the sum, and EGL is of the sums.
    #[test]
    fn v11_batches_add_up() {
        let own = |created, calls, right| Figures {
            done: 5,
            scored: 5,
            right,
            tools: ToolCounts { created, ..ToolCounts::default() },
            calls,
            succeeded: calls,
            roles: BTreeMap::from([(
                "coder".into(),
                RoleUsage { calls: created, tokens: Tokens::default() },
            )]),
            seconds: 1.5,
            ..Figures::default()
        };
        let first = Measures::after(None, own(4, 10, 3));
        let second = Measures::after(Some(&first), own(0, 30, 5));
        assert_eq!((second.batch, second.total.done, second.total.seconds), (2, 10, 3.0));
        assert_eq!((first.total.egl, second.total.egl, second.own.egl), (Some(0.4), Some(0.1), Some(0.0)));
        assert_eq!(second.total.accuracy.map(|it| it.value), Some(0.8));
        assert_eq!(second.total.roles["coder"].calls, 4);
        // A line is read as it was written, also one that lacks what came later.
        let line = serde_json::to_string(&second).unwrap();
        assert_eq!(serde_json::from_str::<Measures>(&line).unwrap(), second);
        let early: Measures =
            serde_json::from_str(r#"{"batch": 1, "own": {}, "total": {"done": 2}}"#).unwrap();
        assert_eq!((early.total.done, early.total.accuracy, early.total.egl), (2, None, None));
    }
}
