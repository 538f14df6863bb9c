//! The meaning of a plan, written down as directly as possible: one node after another, in list order, over
//! plain lists of messages. It shares no code with the engine; speed is no concern here.

use crate::canon::{self, Msg, MsgCall};
use crate::plan::{MAIN, Part, SimNode, SimPlan};
use crate::world::{Answer, Asker, Broken, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;

mod node;
mod scope;

use crate::observed::Observed;
use scope::Scope;

/// Mistakes that a reference can be told to make, to see that the properties notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mistake {
    /// None.
    #[default]
    None,
    /// Publishes twice on the target thread (against P-18).
    MergeTwice,
    /// Slices take one message more (against P-05).
    LongSlice,
    /// Failed calls do not count against a limit (against P-14).
    FreeFailures,
}

/// A fault, in neutral form: kind and message.
pub(crate) type Fault = (String, String);

/// A node's result (P-17), and what of it goes to `runtime_metadata` (D-05).
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) value: Value,
    pub(crate) sync: Sync,
}

/// Which fields sync.
pub(crate) enum Sync {
    Nothing,
    All,
    Names(Vec<String>),
}

/// The run so far.
pub(crate) struct Run<'a> {
    pub(crate) plan: &'a SimPlan,
    pub(crate) world: &'a mut World,
    pub(crate) mistake: Mistake,
    pub(crate) threads: BTreeMap<String, Vec<Msg>>,
    pub(crate) scope: Scope,
    pub(crate) data_out: BTreeMap<String, Value>,
    pub(crate) requests: Vec<(usize, String)>,
    pub(crate) serial: usize,
}

/// Runs the plan in list order.
pub fn run(plan: &SimPlan, world: &mut World, mistake: Mistake) -> Observed {
    let mut run = Run {
        plan,
        world,
        mistake,
        threads: BTreeMap::new(),
        scope: Scope::new(plan),
        data_out: BTreeMap::new(),
        requests: Vec::new(),
        serial: 0,
    };
    let mut observed = Observed { status: "completed".into(), ..Observed::default() };
    let task = match run.scope.text(&plan.task) {
        Ok(task) => task,
        Err((kind, message)) => {
            observed.status = "failed".into();
            observed.fault = canon::fault(&kind, &message);
            return observed;
        }
    };
    run.threads.insert(MAIN.into(), vec![Msg::text("user", task)]);
    for (at, def) in plan.nodes.iter().enumerate() {
        let result = run.node(at, def);
        let tool = def.initial.as_ref().map(|initial| &initial.tool);
        let (output, error) = match &result {
            Ok(outcome) => (outcome.value.clone(), Value::Null),
            Err((kind, message)) => {
                let mut fault = canon::fault(kind, message);
                if let Some(object) = fault.as_object_mut() {
                    object.insert("node".into(), json!(def.id));
                }
                (Value::Null, fault)
            }
        };
        observed.results.push(json!({
            "id": def.id, "name": format!("node {}", def.id), "tool": tool,
            "output": canon::value(&output), "ok": result.is_ok(), "error": error,
        }));
        observed.output = canon::value(&output);
        run.scope.finished(&def.id, result.ok());
        if error != Value::Null && !def.goes_on {
            observed.status = "failed".into();
            observed.fault = error;
            observed.output = Value::Null;
            break;
        }
    }
    run.report(&mut observed);
    observed
}

impl Run<'_> {
    fn report(&mut self, observed: &mut Observed) {
        let threads = std::mem::take(&mut self.threads);
        observed.threads =
            threads.into_iter().map(|(name, list)| (name, canon::messages(&list, true))).collect();
        observed.data_out = std::mem::take(&mut self.data_out);
        let runtime = self.scope.runtime.iter();
        observed.runtime =
            runtime.map(|(name, (value, node))| (name.clone(), json!([canon::value(value), node]))).collect();
        observed.count(&self.requests);
    }

    /// P-03 and P-05: the first node on a thread fills it with a slice.
    fn open(&mut self, def: &SimNode) {
        if self.threads.contains_key(&def.thread) {
            return;
        }
        let source = self.threads.get(&def.from).cloned().unwrap_or_default();
        let mut taken = slice(&source, def.slice);
        if self.mistake == Mistake::LongSlice && !taken.is_empty() && taken.len() < source.len() {
            taken = source.iter().take(taken.len() + 1).cloned().collect();
        }
        self.threads.insert(def.thread.clone(), taken);
    }

    pub(crate) fn push(&mut self, thread: &str, message: Msg) {
        self.threads.entry(thread.to_owned()).or_default().push(message);
    }

    /// P-18 and P-19.
    fn publish(&mut self, def: &SimNode, outcome: &Outcome) -> Result<(), Fault> {
        let Some(out) = &def.out else { return Ok(()) };
        let description = self.scope.text(&out.description)?;
        if out.to != def.thread {
            let message = Msg::text("assistant", format!("{description}{}", outcome.text));
            if self.mistake == Mistake::MergeTwice {
                self.push(&out.to, message.clone());
            }
            self.push(&out.to, message);
        }
        let label = if def.initial.is_some() { "tool-first" } else { "llm-first" };
        let row = json!({
            "node": def.id, "node_type": label, "description": canon::text(&description),
            "content": canon::text(&outcome.text),
        });
        self.data_out.insert(def.thread.clone(), row);
        Ok(())
    }

    fn node(&mut self, at: usize, def: &SimNode) -> Result<Outcome, Fault> {
        self.open(def);
        if def.approval && !self.world.approves(&def.id, "node") {
            return Err(("denied".into(), String::new()));
        }
        let outcome = node::Body::new(self, at, def).run()?;
        self.publish(def, &outcome)?;
        Ok(outcome)
    }
}

/// A slice as Python takes it.
fn slice(list: &[Msg], (start, end): (Option<i64>, Option<i64>)) -> Vec<Msg> {
    let len = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let place = |at: Option<i64>, open: i64| match at {
        None => open,
        Some(at) if at < 0 => (len + at).max(0),
        Some(at) => at.min(len),
    };
    let (start, end) = (place(start, 0), place(end, len));
    (start..end).filter_map(|at| list.get(usize::try_from(at).ok()?).cloned()).collect()
}

/// A thread as it is sent: results and calls that a slice parted are mended (E-23).
fn sendable(thread: &[Msg]) -> Vec<Msg> {
    let mut out: Vec<Msg> = Vec::new();
    let mut at = 0;
    while let Some(message) = thread.get(at) {
        at += 1;
        if message.of.is_some() {
            out.push(Msg::text("user", message.content.clone()));
            continue;
        }
        out.push(message.clone());
        let mut missing: Vec<&MsgCall> = message.calls.iter().collect();
        while let Some(answer) = thread.get(at)
            && let Some((id, _)) = &answer.of
            && let Some(found) = missing.iter().position(|call| call.id == *id)
        {
            missing.remove(found);
            out.push(answer.clone());
            at += 1;
        }
        out.extend(missing.into_iter().map(|call| Msg::tool(call, "(not available in this thread)")));
    }
    out
}

/// JSON in a text: an object or array and nothing else (E-25).
pub(crate) fn parsed(text: &str) -> Value {
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// The text of a tool's output (E-24).
pub(crate) fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The text that states a fault (E-24).
pub(crate) fn fault_text((kind, message): &Fault) -> String {
    json!({"error": {"type": kind, "message": message}}).to_string()
}

pub(crate) fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        Part::Ref(..) => None,
    }
}

pub(crate) fn broken(failure: Broken) -> Fault {
    (failure.kind.to_owned(), failure.message)
}

/// Asks the world, and notes what was asked.
impl Run<'_> {
    pub(crate) fn ask_model(
        &mut self,
        at: usize,
        asker: Asker<'_>,
        sent: &[Msg],
        tools: &[String],
        schema: Option<&Value>,
    ) -> Answer {
        let content = canon::model_content(sent, tools, schema);
        self.requests.push((at, format!("{} model {content}", asker.node)));
        self.world.model(asker, &content, tools, schema)
    }
    pub(crate) fn ask_tool(
        &mut self,
        at: usize,
        asker: Asker<'_>,
        def: &SimNode,
        name: &str,
        args: &Value,
    ) -> Answer {
        let content = canon::tool_content(name, args);
        self.requests.push((at, format!("{} tool {content}", asker.node)));
        self.serial += 1;
        let key = format!("reference {}", self.serial);
        let effects = self.plan.effects(def, name);
        self.world.tool(asker, &key, &content, effects)
    }
}
