//! What a workflow has to come to: the rules read once more, block after block, with nothing of the engine's. Whatever a
//! path, an iteration or a subgraph begins with is copied.

use super::block::{Block, Cut, Kind, Paths, Rounds, SimWorkflow, Strategy};
use super::document::list;
use super::world;
use crate::canon::{Msg, MsgCall};
use selvedge_engine::FaultKind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What is observable of a workflow's run, in a form in which two can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The output, or the kind of the fault.
    pub end: Result<Value, String>,
    /// What is left of a workflow that completed.
    pub left: Option<Left>,
}

/// What a workflow leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// `x`, `y` and `e`.
    pub variables: Vec<Value>,
    /// The threads in which something was said.
    pub threads: BTreeMap<String, Vec<Msg>>,
}

/// Runs it.
pub fn run(workflow: &SimWorkflow) -> Observed {
    let mut env = Env::default();
    env.variables.extend([("x", json!(1)), ("y", json!(2)), ("e", json!(""))]);
    if workflow.task {
        env.say("main", Msg::text("user", "the task"));
    }
    let mut reference = Reference { workflow, calls: 0 };
    let end = reference.blocks(&mut env, &workflow.blocks);
    let output = match workflow.output {
        true => json!({"x": env.get("x"), "e": env.get("e")}),
        false => env.last.clone(),
    };
    let variables = super::block::VARIABLES.map(|name| env.get(name)).into();
    let left = end.is_ok().then(|| Left { variables, threads: env.spoken() });
    Observed { end: end.map(|()| output).map_err(|kind| kind.name().to_owned()), left }
}

/// What a block works on.
#[derive(Clone, Default)]
struct Env {
    variables: BTreeMap<&'static str, Value>,
    threads: BTreeMap<&'static str, Vec<Msg>>,
    /// The variables that were set: the others were given with the document.
    set: BTreeSet<&'static str>,
    /// What was said or made last.
    last: Value,
}

impl Env {
    fn get(&self, name: &str) -> Value {
        self.variables.get(name).cloned().unwrap_or_default()
    }
    fn set(&mut self, name: &'static str, value: Value) {
        self.variables.insert(name, value);
        self.set.insert(name);
    }
    fn say(&mut self, thread: &'static str, message: Msg) {
        self.threads.entry(thread).or_default().push(message);
    }
    fn thread(&self, name: &str) -> &[Msg] {
        self.threads.get(name).map_or(&[], Vec::as_slice)
    }
    /// A value in a text.
    fn text(&self, name: &str) -> String {
        crate::reference::output_text(&self.get(name))
    }
    /// The threads in which something was said.
    fn spoken(self) -> BTreeMap<String, Vec<Msg>> {
        let spoken = self.threads.into_iter().filter(|(_, messages)| !messages.is_empty());
        spoken.map(|(name, messages)| (name.to_owned(), messages)).collect()
    }
}

struct Reference<'w> {
    workflow: &'w SimWorkflow,
    calls: usize,
}

type Done = Result<(), FaultKind>;

impl Reference<'_> {
    fn blocks(&mut self, env: &mut Env, blocks: &[Block]) -> Done {
        blocks.iter().try_for_each(|block| {
            let (done, handled) = self.block(env, block);
            match done {
                Err(kind) if handled => {
                    env.set("e", json!(kind.name()));
                    Ok(())
                }
                done => done,
            }
        })
    }

    /// What comes of a block, and whether its fault is handled.
    fn block(&mut self, env: &mut Env, block: &Block) -> (Done, bool) {
        match block {
            Block::Set { name, of, more } => {
                let value = env.get(of).as_i64().map(|value| json!(value + more));
                (value.map(|value| env.set(name, value)).ok_or(FaultKind::InputError), false)
            }
            Block::Ask { thread, about, number, handled } => {
                (self.ask(env, thread, format!("question {number} of {}", env.text(about))), *handled)
            }
            Block::Call { thread, about, number, handled } => {
                let args = json!({"v": env.get(about), "n": number});
                (self.call(env, *thread, args), *handled)
            }
            Block::Cut { thread, cut } => (self.cut(env, thread, *cut), false),
            Block::Person { kind, thread, about, number, handled } => {
                let prompt = format!("person {number} of {}", env.text(about));
                (self.person(env, *kind, *thread, &prompt), *handled)
            }
            Block::Choose { of, even, odd, .. } => match env.get(of).as_i64() {
                Some(value) => (self.blocks(env, if value % 2 == 0 { even } else { odd }), false),
                None => (Err(FaultKind::InputError), false),
            },
            Block::Repeat { rounds, body, handled } => (self.repeat(env, *rounds, body), *handled),
            Block::Fork { paths, serial, strategy, main, export, handled } => {
                // Listed paths have a main one (W-05), those over a list only if they say so (W-13).
                let first = matches!(paths, Paths::Listed(_)).then_some(0);
                let joined = Joined {
                    paths,
                    serial: *serial,
                    strategy: *strategy,
                    main: main.or(first),
                    export: *export,
                };
                (self.fork(env, &joined), *handled)
            }
            Block::Sub { body, out, handled } => {
                let mut inner =
                    Env { variables: env.variables.clone(), set: env.set.clone(), ..Env::default() };
                let done = self.blocks(&mut inner, body).map(|()| {
                    env.last = inner.last.clone();
                    if *out {
                        env.set("y", inner.get("x"));
                    }
                });
                (done, *handled)
            }
            Block::Plan { about, number, handled } => {
                let mut inner = Env { variables: env.variables.clone(), ..Env::default() };
                inner.say("main", Msg::text("user", "planned"));
                let args = json!({"v": env.get(about), "n": number});
                let done = self.call(&mut inner, Some("main"), args);
                let done =
                    done.and_then(|()| self.ask(&mut inner, "main", format!("so {}", env.text(about))));
                (done.map(|()| env.last = inner.last), *handled)
            }
        }
    }

    /// P-10.
    fn ask(&mut self, env: &mut Env, thread: &'static str, prompt: String) -> Done {
        env.say(thread, Msg::text("user", prompt));
        let reply = world::model(self.workflow, env.thread(thread))?;
        env.say(thread, Msg::text("assistant", reply.clone()));
        env.last = json!(reply);
        Ok(())
    }

    /// P-13.
    fn call(&mut self, env: &mut Env, thread: Option<&'static str>, args: Value) -> Done {
        self.calls += 1;
        let call = MsgCall { id: format!("own{}", self.calls), name: "look".into(), args };
        let output = world::tool(self.workflow, &call.args);
        if let Some(thread) = thread {
            let text = match &output {
                Ok(output) => output.to_string(),
                Err(kind) => crate::reference::fault_text(&(kind.name().to_owned(), "simulated".into())),
            };
            let mut message = Msg::text("assistant", "");
            message.calls.push(call.clone());
            env.say(thread, message);
            env.say(thread, Msg::tool(&call, text));
        }
        output.map(|output| env.last = output)
    }

    /// E-21.
    fn person(&self, env: &mut Env, kind: Kind, thread: Option<&'static str>, prompt: &str) -> Done {
        let said = world::person(self.workflow, kind == Kind::Approve, prompt);
        if kind == Kind::Approve {
            return if said == "yes" { Ok(()) } else { Err(FaultKind::Denied) };
        }
        if let Some(thread) = thread {
            env.say(thread, Msg::text("user", said.to_string()));
        }
        env.last = said;
        Ok(())
    }

    /// E-09: what stays begins with whole rounds of calls.
    fn cut(&self, env: &mut Env, thread: &'static str, cut: Cut) -> Done {
        let messages = env.threads.remove(thread).unwrap_or_default();
        let whole = |keep: usize| {
            let mut start = messages.len().saturating_sub(keep);
            while start > 0 && messages.get(start).is_some_and(|message| message.role == "tool") {
                start -= 1;
            }
            start
        };
        let left = match cut {
            Cut::Clear => Vec::new(),
            Cut::Trim(keep) => messages.get(whole(keep)..).unwrap_or_default().to_vec(),
            Cut::Users { and_models } => {
                let stays = |message: &&Msg| {
                    message.role == "user"
                        || (and_models && message.role == "assistant" && message.calls.is_empty())
                };
                messages.iter().filter(stays).cloned().collect()
            }
            Cut::Summarise(keep) => {
                let mut asked = messages.clone();
                asked.push(world::sum_up());
                let summary = world::model(self.workflow, &asked)?;
                match messages.split_at_checked(whole(keep)) {
                    Some((older, rest)) if !older.is_empty() => {
                        std::iter::once(Msg::text("user", summary)).chain(rest.iter().cloned()).collect()
                    }
                    _ => messages.clone(),
                }
            }
        };
        env.threads.insert(thread, left);
        Ok(())
    }

    fn repeat(&mut self, env: &mut Env, rounds: Rounds, body: &[Block]) -> Done {
        let before = env.last.clone();
        let done = self.rounds(env, rounds, body);
        if !matches!(done, Ok(1..)) {
            // A loop that failed or did not go round has made nothing.
            env.last = before;
        }
        done.map(|_| ())
    }

    /// How often it went round.
    fn rounds(&mut self, env: &mut Env, rounds: Rounds, body: &[Block]) -> Result<usize, FaultKind> {
        let elements = match rounds {
            Rounds::Over(length) => list(length),
            Rounds::Count(count) => (0..).take(count).collect(),
            Rounds::While { .. } => Vec::new(),
        };
        let mut round = 0;
        loop {
            match rounds {
                Rounds::While { below, limit } => {
                    let value = env.get("x").as_i64().ok_or(FaultKind::InputError)?;
                    if value >= below {
                        break;
                    }
                    if round == limit {
                        return Err(FaultKind::LimitExceeded);
                    }
                }
                _ if round == elements.len() => break,
                _ => {}
            }
            // What fails leaves nothing behind, and what an iteration is given is gone after it.
            let mut own = Env { last: Value::Null, ..env.clone() };
            own.set("index", json!(round));
            if matches!(rounds, Rounds::Over(_)) {
                own.set("item", json!(elements.get(round)));
            }
            self.blocks(&mut own, body)?;
            for name in ["index", "item"] {
                match env.variables.get(name) {
                    Some(around) => own.variables.insert(name, around.clone()),
                    None => own.variables.remove(name),
                };
            }
            *env = own;
            round += 1;
        }
        Ok(round)
    }

    fn fork(&mut self, env: &mut Env, joined: &Joined<'_>) -> Done {
        let all = joined.paths.len();
        let mut ends: Vec<Result<Env, FaultKind>> = Vec::new();
        for at in 0..all {
            if joined.serial && joined.judged(&ends).is_some() {
                break;
            }
            let mut own = Env { last: Value::Null, ..env.clone() };
            if matches!(joined.paths, Paths::Each(..)) {
                own.set("index", json!(at));
                own.set("item", json!(list(all).get(at)));
            }
            ends.push(self.blocks(&mut own, joined.paths.body(at)).map(|()| own));
        }
        if joined.judged(&ends) != Some(true) {
            return Err(FaultKind::JoinUnmet);
        }
        let completed = |at: usize| ends.get(at).and_then(|end| end.as_ref().ok());
        let results: Map<String, Value> =
            (0..all).filter_map(|at| Some((at.to_string(), completed(at)?.last.clone()))).collect();
        if let Some(export) = joined.export {
            // What was given with the document is no variable (W-11).
            let end = completed(export).filter(|end| end.set.contains("y"));
            env.set("y", end.map(|end| end.get("y")).unwrap_or_default());
        }
        if let Some(main) = joined.main.and_then(completed) {
            env.threads.clone_from(&main.threads);
        }
        env.last = Value::Object(results);
        Ok(())
    }
}

struct Joined<'b> {
    paths: &'b Paths,
    serial: bool,
    strategy: Strategy,
    main: Option<usize>,
    export: Option<usize>,
}

impl Joined<'_> {
    /// W-06: met, unmet, or not decided yet.
    fn judged(&self, ends: &[Result<Env, FaultKind>]) -> Option<bool> {
        let all = self.paths.len();
        let failed = ends.iter().filter(|end| end.is_err()).count();
        let done = ends.len() - failed;
        let (met, unmet) = match self.strategy {
            Strategy::AllCompleted => (done == all, failed > 0),
            Strategy::AnyCompleted => (done > 0, failed == all),
            Strategy::AllFailed => (failed == all, done > 0),
            Strategy::AnyFailed => (failed > 0, done == all),
            Strategy::Threshold(least) => (done >= least, all - failed < least),
            Strategy::AllEnded => (ends.len() == all, false),
        };
        if met { Some(true) } else { unmet.then_some(false) }
    }
}
