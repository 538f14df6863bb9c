//! The outside of a step task: tools whose answers follow from the seed, the content of the call and, for those that
//! look at the world, from what was written before.

use super::task::{SimTask, SimTool};
use crate::rng::{Rng, hash};
use selvedge_engine::{Effects, FaultKind};
use serde_json::{Map, Value, json};

/// Why a tool failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broken {
    /// The fault's kind.
    pub kind: FaultKind,
    /// Whether trying again may help.
    pub transient: bool,
}

/// The state of the outside: what changed it, by the identity of the call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct World {
    log: Vec<(String, u64)>,
    /// Of them, those that may not be repeated.
    writes: Vec<(usize, u64)>,
}

impl World {
    /// How often it was changed.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Whether it is untouched.
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// The writes, in order. What is idempotent may run ahead of a step whose failure ends the run (P-20).
    pub fn writes(&self) -> Vec<u64> {
        self.writes.iter().map(|(_, content)| *content).collect()
    }

    /// Back to when it had been changed so often.
    pub fn rewind(&mut self, changes: usize) {
        self.log.truncate(changes);
        self.writes.retain(|(at, _)| *at < changes);
    }

    /// A tool's answer: try number `attempt` of the call that is known as `key`.
    ///
    /// # Errors
    /// That it failed.
    pub fn call(
        &mut self,
        task: &SimTask,
        tool: &SimTool,
        args: &Value,
        attempt: u32,
        key: &str,
    ) -> Result<Value, Broken> {
        let content = format!("{} {args}", tool.name);
        if task.faults {
            let mut always = Rng::new(hash(task.seed, &format!("always {content}")));
            if always.chance(30) {
                return Err(Broken { kind: FaultKind::ExecutionFailure, transient: false });
            }
            let mut now = Rng::new(hash(task.seed, &format!("try {attempt} {content}")));
            if now.chance(20) {
                return Err(Broken { kind: FaultKind::Timeout, transient: true });
            }
        }
        let known = self.log.iter().position(|(known, _)| known == key);
        let seen = match tool.effects {
            Effects::Pure => 0,
            _ => {
                // Of what is idempotent nothing is seen: it may run ahead of a step whose replan drops it (D-20).
                let end = known.unwrap_or(self.log.len());
                let before = self.writes.iter().filter(|(at, _)| *at < end);
                before.fold(1, |sum, (_, content)| hash(sum, &content.to_string()))
            }
        };
        let digest = hash(task.seed ^ seen, &content);
        if tool.effects >= Effects::Idempotent && known.is_none() {
            if tool.effects == Effects::Write {
                self.writes.push((self.log.len(), digest));
            }
            self.log.push((key.to_owned(), digest));
        }
        let mut rng = Rng::new(digest);
        let mut output = Map::new();
        output.insert("a".into(), json!(rng.within(0, 9)));
        output.insert("b".into(), json!(format!("text {}", rng.below(9))));
        if !tool.declares {
            output.insert("u".into(), json!(rng.within(0, 9)));
        }
        Ok(Value::Object(output))
    }
}
