//! Random tasks, and what a random model answers when one of their steps fails.

use super::task::{Arg, Args, SimStep, SimTask, TOOLS};
use crate::rng::{Rng, hash};
use serde_json::{Map, Value, json};

/// The task of a seed.
pub fn task(seed: u64) -> SimTask {
    let mut rng = Rng::new(hash(seed, "task"));
    let count = 1 + rng.below(9);
    let mut task = SimTask {
        seed,
        faults: rng.chance(85),
        model: rng.chance(50),
        finish: rng.chance(60),
        replans: 1,
        initial: initial(&mut rng),
        steps: Vec::new(),
    };
    if rng.chance(50) {
        task.replans = u32::try_from(rng.below(4)).unwrap_or(1);
    }
    for at in 0..count {
        let id = if rng.chance(20) { format!("{}", at + 1) } else { format!("step_{}", at + 1) };
        let step = step(&mut rng, id, &task.steps);
        task.steps.push(step);
    }
    task
}

fn initial(rng: &mut Rng) -> Map<String, Value> {
    let mut initial = Map::new();
    initial.insert("base".into(), json!(rng.within(0, 9)));
    if rng.chance(30) {
        initial.insert("a".into(), json!(rng.within(0, 9)));
    }
    initial
}

/// A step that may refer to `earlier` ones.
fn step(rng: &mut Rng, id: String, earlier: &[SimStep]) -> SimStep {
    let mut after = Vec::new();
    if rng.chance(20)
        && let Some(step) = rng.pick(earlier)
    {
        after.push(step.id.clone());
    }
    let mut alternatives = Vec::new();
    while rng.chance(30) && alternatives.len() < 3 {
        let own = rng.chance(40).then(|| args(rng, earlier));
        alternatives.push((tool_name(rng), own));
    }
    SimStep {
        id,
        tool: tool_name(rng),
        args: args(rng, earlier),
        after,
        alternatives,
        retry: rng.chance(35).then(|| u32::try_from(rng.below(3)).unwrap_or(0)),
    }
}

fn tool_name(rng: &mut Rng) -> String {
    rng.pick(&TOOLS).map_or("pure_d", |tool| tool.name).to_owned()
}

fn args(rng: &mut Rng, earlier: &[SimStep]) -> Args {
    let mut args = Args::new();
    args.insert("n".into(), arg(rng, earlier));
    if rng.chance(50) {
        args.insert("v".into(), arg(rng, earlier));
    }
    args
}

fn arg(rng: &mut Rng, earlier: &[SimStep]) -> Arg {
    match (rng.below(10), rng.pick(earlier)) {
        (0..=3, Some(step)) => {
            // `b` is a text, which `n` refuses once it is resolved; `u` is not there in what some tools bring.
            let field = match rng.below(12) {
                0 => "u",
                1 => "b",
                _ => "a",
            };
            Arg::Field(step.id.clone(), field.to_owned())
        }
        // Names begin with a letter (D-09).
        (4, Some(step)) if step.id.starts_with(char::is_alphabetic) => Arg::Name(format!("{}_a", step.id)),
        (5, Some(_)) => Arg::Name("a".to_owned()),
        (6, _) => Arg::Name("base".to_owned()),
        _ => Arg::Value(json!(rng.within(0, 9))),
    }
}

/// What a model that reflects says.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// No JSON of the schema, whatever it is told.
    Nonsense,
    /// The same tool with other parameters.
    Params(Args),
    /// Another tool; it may be one that there is not.
    Tool(String, Option<Args>),
    /// A step in its place.
    Repair(String, Args),
    /// Other steps from here on; `None`: it does not say which.
    Replan(Option<Vec<SimStep>>),
    /// No way on.
    GiveUp,
}

impl Advice {
    /// As the model says it.
    pub fn text(&self) -> String {
        let params = super::task::parameters;
        let answer = match self {
            Self::Nonsense => return "I can't say".to_owned(),
            Self::Params(args) => json!({"action": "retry_with_params", "parameters": params(args)}),
            Self::Tool(tool, args) => match args {
                None => json!({"action": "retry_with_tool", "tool_id": tool}),
                Some(args) => {
                    json!({"action": "retry_with_tool", "tool_id": tool, "parameters": params(args)})
                }
            },
            Self::Repair(tool, args) => {
                json!({"action": "repair_step", "step": {"tool_id": tool, "parameters": params(args)}})
            }
            Self::Replan(steps) => {
                let mut answer = json!({"action": "replan", "strategy": "from_step"});
                if let (Some(steps), Some(object)) = (steps, answer.as_object_mut()) {
                    object.insert("steps".into(), steps.iter().map(SimStep::json).collect());
                }
                answer
            }
            Self::GiveUp => json!({"action": "give_up"}),
        };
        let mut answer = answer;
        if let Some(object) = answer.as_object_mut() {
            object.insert("reason".into(), json!("because"));
        }
        answer.to_string()
    }
}

/// What the model says to the `nth` failure of a step, counted over the whole run from 1.
pub fn advice(task: &SimTask, id: &str, nth: u32) -> Advice {
    let mut rng = Rng::new(hash(task.seed, &format!("advice {id} {nth}")));
    let earlier = earlier(task, id);
    match rng.below(20) {
        0 | 1 => Advice::Nonsense,
        2..=6 => Advice::Params(args(&mut rng, earlier)),
        7..=9 => {
            let tool = if rng.chance(15) { "ghost".to_owned() } else { tool_name(&mut rng) };
            let own = rng.chance(50).then(|| args(&mut rng, earlier));
            Advice::Tool(tool, own)
        }
        10..=12 => Advice::Repair(tool_name(&mut rng), args(&mut rng, earlier)),
        13..=15 => Advice::Replan(Some(replan(task, id, &mut rng))),
        16 | 17 => Advice::Replan(None),
        _ => Advice::GiveUp,
    }
}

/// What the model says when it is asked for steps, the `nth` time for this step, from 1.
pub fn plan(task: &SimTask, id: &str, nth: u32) -> Vec<SimStep> {
    let mut rng = Rng::new(hash(task.seed, &format!("plan {id} {nth}")));
    replan(task, id, &mut rng)
}

fn earlier<'t>(task: &'t SimTask, id: &str) -> &'t [SimStep] {
    let at = task.position(id).unwrap_or(0);
    task.steps.get(..at).unwrap_or_default()
}

/// Steps from the failed one on; some lists are wrong (D-20).
fn replan(task: &SimTask, id: &str, rng: &mut Rng) -> Vec<SimStep> {
    let at = task.position(id).unwrap_or(task.steps.len());
    let mut known: Vec<SimStep> = earlier(task, id).to_vec();
    let first = known.len();
    if rng.chance(50) {
        let again = step(rng, id.to_owned(), &known);
        known.push(again);
    }
    for more in 0..rng.below(3) {
        let new = step(rng, format!("new_{more}"), &known);
        known.push(new);
    }
    for later in task.steps.get(at + 1..).unwrap_or_default() {
        let refers = |id: &String| known.iter().any(|step| step.id == *id);
        let all = |args: &Args| {
            args.values().all(|arg| match arg {
                Arg::Field(step, _) => refers(step),
                Arg::Value(_) | Arg::Name(_) => true,
            })
        };
        let fits = later.after.iter().all(refers)
            && all(&later.args)
            && later.alternatives.iter().all(|(_, own)| own.as_ref().is_none_or(all));
        if fits && rng.chance(70) {
            known.push(later.clone());
        }
    }
    let mut steps = known.split_off(first);
    match rng.below(10) {
        // A tool that there is not; or a finished step's id.
        0 => steps.push(SimStep { tool: "ghost".into(), ..step(rng, "new_9".into(), &[]) }),
        1 if first > 0 => {
            let done = known.first().map_or("x", |step| &step.id).to_owned();
            steps.push(step(rng, done, &[]));
        }
        _ => {}
    }
    // Nothing is left to do: an answer, too, where something has been done.
    if steps.is_empty() && rng.chance(50) {
        steps.push(step(rng, "new_8".into(), &[]));
    }
    steps
}
