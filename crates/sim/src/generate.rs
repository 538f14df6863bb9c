//! Random plans. What the generator writes freely, [`tidy`] makes a valid document, also after shrinking.

use crate::plan::{Arg, Initial, MAIN, Out, Part, SimNode, SimPlan, SimText, SimTool, Target};
use crate::rng::Rng;
use selvedge_engine::Effects;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Keys that outputs may have.
pub const KEYS: [&str; 4] = ["x", "y", "city", "total"];
/// Names that the first data layer may have; some collide with outputs' keys.
const GIVEN: [&str; 3] = ["city", "base", "user"];
const WORDS: [&str; 6] = ["weigh", "the", "load", "of", "Köln", "today"];
const ALL_EFFECTS: [Effects; 4] = [Effects::Pure, Effects::Read, Effects::Idempotent, Effects::Write];
const THREADS: [&str; 5] = [MAIN, "t1", "t2", "t3", "t4"];

/// What kind of plans to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Anything.
    #[default]
    Any,
    /// Only tools that depend on their arguments alone.
    Pure,
    /// Plenty of tools that look at the world and change it.
    Impure,
    /// Bare names everywhere, and tools that declare what they bring: who waits for whom is a matter of names.
    Names,
}

/// The plan of a seed.
pub fn plan(seed: u64, flavour: Flavour) -> SimPlan {
    let mut rng = Rng::new(seed);
    let tools = tools(&mut rng, flavour);
    let metadata =
        GIVEN.iter().filter(|_| rng.chance(85)).map(|name| ((*name).to_owned(), json!(name.len())));
    let metadata = metadata.collect();
    let count = 1 + rng.below(9);
    let nodes = (0..count).map(|at| node(&mut rng, at, &tools, flavour)).collect();
    let task = vec![Part::Text(format!("task {}", rng.below(3)))];
    let faults = rng.chance(60);
    let mut plan = SimPlan { seed: rng.bits(), faults, task, metadata, tools, nodes };
    if flavour == Flavour::Names {
        names(&mut rng, &mut plan);
    }
    tidy(plan)
}

/// Turns most placeholders into bare names that only outputs can bring.
fn names(rng: &mut Rng, plan: &mut SimPlan) {
    plan.faults = false;
    plan.metadata.remove("city");
    for tool in &mut plan.tools {
        let names = KEYS.iter().filter(|_| rng.chance(40)).map(|key| (*key).to_owned());
        tool.output_params = Some(names.collect());
        tool.effects = Some(Effects::Pure);
    }
    for node in &mut plan.nodes {
        if rng.chance(60) {
            node.tools.clear();
        }
        if let Some(prompt) = &mut node.prompt {
            prompt.truncate(1);
            if rng.chance(50) {
                prompt.push(Part::Ref(Target::Name(rng.word(&KEYS).to_owned()), 0));
            }
        }
        if rng.chance(40) {
            node.thread = format!("t{}", rng.below(9));
            node.slice = (Some(0), Some(1));
        }
        node.goes_on |= rng.chance(50);
    }
}

fn tools(rng: &mut Rng, flavour: Flavour) -> Vec<SimTool> {
    let count = 1 + rng.below(4);
    // Where every tool declares its fields, a bare name waits for single nodes (P-20).
    let declared = if rng.chance(30) { 100 } else { 55 };
    let tool = |at: usize| {
        let effects = match (flavour, rng.below(10)) {
            (Flavour::Pure | Flavour::Names, _) | (Flavour::Any, 0..=3) | (Flavour::Impure, 0) => {
                Some(Effects::Pure)
            }
            (_, 4 | 5 | 1) => Some(Effects::Read),
            (_, 6 | 7 | 2) => Some(Effects::Idempotent),
            (_, 8) => None,
            _ => Some(Effects::Write),
        };
        let names = KEYS.iter().filter(|_| rng.chance(50)).map(|key| (*key).to_owned()).collect();
        let output_params = rng.chance(declared).then_some(names);
        SimTool {
            name: format!("tool_{at}"),
            effects,
            output_params,
            strict: rng.chance(40),
            approval: rng.chance(8),
        }
    };
    (0..count).map(tool).collect()
}

fn node(rng: &mut Rng, at: usize, tools: &[SimTool], flavour: Flavour) -> SimNode {
    let initial = rng.chance(40).then(|| initial(rng, at, tools));
    let prompt = rng.chance(80).then(|| text(rng, at, 30));
    let offered: Vec<String> = tools.iter().filter(|_| rng.chance(55)).map(|t| t.name.clone()).collect();
    let looped = rng.chance(50);
    let limited: Vec<&SimTool> = tools.iter().filter(|_| rng.chance(40)).collect();
    let limits = limited.into_iter().map(|t| (t.name.clone(), rng.below(4) as u32)).collect();
    let out = rng.chance(55).then(|| Out { to: thread(rng), description: text(rng, at, 15) });
    let effects = (flavour == Flavour::Any && rng.chance(10))
        .then(|| *rng.pick(&ALL_EFFECTS).unwrap_or(&Effects::Write));
    SimNode {
        id: id(rng, at),
        thread: thread(rng),
        initial,
        prompt,
        tools: offered,
        looped,
        limits,
        max_rounds: rng.chance(60).then(|| 1 + rng.below(3) as u32),
        from: thread(rng),
        slice: slice(rng),
        out,
        goes_on: rng.chance(45),
        schema: rng.chance(20).then(|| schema(rng)),
        approval: rng.chance(8),
        effects,
        retry: rng.chance(40).then(|| rng.below(3) as u32),
    }
}

fn id(rng: &mut Rng, at: usize) -> String {
    match rng.below(30) {
        0 => format!("节点{at}"),
        1 => format!("_a-{at}"),
        2 => format!("नाम_{at}"),
        3..=7 => format!("{}", at + 1),
        _ => format!("n{}", at + 1),
    }
}

fn thread(rng: &mut Rng) -> String {
    (if rng.chance(30) { MAIN } else { rng.word(&THREADS) }).to_owned()
}

fn slice(rng: &mut Rng) -> (Option<i64>, Option<i64>) {
    match rng.below(10) {
        0 | 1 => (Some(0), Some(1)),
        2 => (None, None),
        3 => (Some(-1), None),
        4..=6 => (Some(0), Some(rng.within(1, 5))),
        _ => {
            let mut end = || rng.chance(80).then(|| rng.within(-4, 5));
            (end(), end())
        }
    }
}

fn schema(rng: &mut Rng) -> Vec<(String, bool)> {
    let mut fields: Vec<(String, bool)> = Vec::new();
    for key in KEYS {
        if rng.chance(50) {
            fields.push((key.to_owned(), rng.chance(60)));
        }
    }
    fields
}

fn initial(rng: &mut Rng, at: usize, tools: &[SimTool]) -> Initial {
    let tool = rng.pick(tools).map(|tool| tool.name.clone()).unwrap_or_default();
    let mut args = Vec::new();
    if rng.chance(70) {
        let a = if rng.chance(70) {
            Arg::Json(Value::from(rng.within(0, 3)))
        } else {
            Arg::Text(vec![reference(rng, at)])
        };
        args.push(("a".to_owned(), a));
    }
    if rng.chance(50) {
        args.push(("q".to_owned(), Arg::Text(text(rng, at, 35))));
    }
    if rng.chance(15) {
        args.push(("l".to_owned(), Arg::List(vec![text(rng, at, 30), vec![reference(rng, at)]])));
    }
    Initial { tool, args }
}

fn text(rng: &mut Rng, at: usize, percent: usize) -> SimText {
    let mut parts = vec![Part::Text(format!("{} ", rng.word(&WORDS)))];
    if rng.chance(percent) {
        parts.push(reference(rng, at));
        if rng.chance(50) {
            parts.push(Part::Text(format!(" {}", rng.word(&WORDS))));
        }
        if rng.chance(20) {
            parts.push(reference(rng, at));
        }
    }
    parts
}

fn reference(rng: &mut Rng, at: usize) -> Part {
    let name = |rng: &mut Rng| {
        let keys = rng.chance(35);
        (if keys { rng.word(&KEYS) } else { rng.word(&GIVEN) }).to_owned()
    };
    let earlier = rng.below(at.max(1));
    let target = match rng.below(10) {
        0..=4 => {
            // Positions become ids in `tidy`.
            let path = if rng.chance(15) { vec![name(rng)] } else { Vec::new() };
            Target::Output(format!("#{earlier}"), path, rng.below(3) as u8)
        }
        5 => Target::Metadata(name(rng)),
        6 => Target::Inputs(rng.word(&GIVEN).to_owned()),
        7 => Target::Name(format!("#{earlier}_{}", name(rng))),
        _ => Target::Name(name(rng)),
    };
    Part::Ref(target, rng.below(3) as u8)
}

/// Makes a plan a valid document: unique ids, threads and steps that exist (P-05, P-07, P-19, P-25).
pub fn tidy(mut plan: SimPlan) -> SimPlan {
    let mut ids = BTreeSet::new();
    for (at, node) in plan.nodes.iter_mut().enumerate() {
        if !ids.insert(node.id.clone()) {
            node.id = format!("m{}", at + 1);
            ids.insert(node.id.clone());
        }
    }
    let tools: BTreeSet<String> = plan.tools.iter().map(|tool| tool.name.clone()).collect();
    let asks: BTreeSet<String> = plan.tools.iter().filter(|t| t.approval).map(|t| t.name.clone()).collect();
    let mut known = BTreeSet::from([MAIN.to_owned()]);
    for node in &mut plan.nodes {
        if node.initial.as_ref().is_some_and(|initial| !tools.contains(&initial.tool)) {
            node.initial = None;
        }
        node.tools.retain(|tool| tools.contains(tool));
        node.limits.retain(|tool, _| tools.contains(tool) && !asks.contains(tool));
        if let Some(initial) = &node.initial
            && let Some(limit) = node.limits.get_mut(&initial.tool)
        {
            *limit = (*limit).max(1);
        }
        if node.prompt.is_none() {
            (node.tools, node.looped, node.schema, node.max_rounds) = (Vec::new(), false, None, None);
            node.limits.clear();
            node.approval &= node.initial.is_some();
        }
        if !known.contains(&node.from) {
            MAIN.clone_into(&mut node.from);
        }
        known.insert(node.thread.clone());
        if let Some(out) = &mut node.out
            && !known.contains(&out.to)
        {
            MAIN.clone_into(&mut out.to);
        }
    }
    let ids: Vec<String> = plan.nodes.iter().map(|node| node.id.clone()).collect();
    let metadata: BTreeSet<String> = plan.metadata.keys().cloned().collect();
    let mut context = Context { ids, known: metadata.clone(), metadata, any_sync: false, any_result: false };
    for (at, node) in plan.nodes.iter_mut().enumerate() {
        node.prompt.iter_mut().for_each(|text| context.tidy(at, text));
        node.out.iter_mut().for_each(|out| context.tidy(at, &mut out.description));
        for (name, arg) in node.initial.iter_mut().flat_map(|initial| &mut initial.args) {
            match arg {
                Arg::Json(_) => {}
                Arg::Text(text) => context.tidy(at, text),
                Arg::List(texts) => texts.iter_mut().for_each(|text| context.tidy(at, text)),
            }
            // A text that a strict tool can only refuse is an error of the document (D-15).
            if name == "a"
                && matches!(arg, Arg::Text(text) if text.iter().all(|part| matches!(part, Part::Text(_))))
            {
                *arg = Arg::Json(0.into());
            }
        }
        context.supply(node, &plan.tools);
    }
    plan
}

/// What placeholders may name at a node.
struct Context {
    ids: Vec<String>,
    metadata: BTreeSet<String>,
    /// Names that the first layer has or an earlier node declares.
    known: BTreeSet<String>,
    /// Whether an earlier node may bring other names to `runtime_metadata`, or to its result.
    any_sync: bool,
    any_result: bool,
}

impl Context {
    /// Turns positions into ids, and references to what is not there into text.
    fn tidy(&self, at: usize, text: &mut SimText) {
        for part in text {
            let Part::Ref(target, _) = part else { continue };
            let keep = match target {
                Target::Output(node, ..) => {
                    self.name(node, "");
                    self.earlier(at, node)
                }
                Target::Name(name) => {
                    if let Some((position, key)) = name.clone().split_once('_')
                        && position.starts_with('#')
                    {
                        let mut id = position.to_owned();
                        self.name(&mut id, "");
                        *name = format!("{id}_{key}");
                    }
                    let start = name.chars().next().is_some_and(char::is_alphabetic);
                    let some = self.any_sync || self.any_result || self.known.contains(name);
                    start && nameable(name) && some
                }
                Target::Metadata(name) => self.any_sync || self.known.contains(name),
                Target::Inputs(_) => true,
            };
            if let Target::Inputs(name) = target
                && !self.metadata.contains(name)
            {
                *part = Part::Text("no input".into());
            } else if !keep {
                *part = Part::Text("nothing".into());
            }
        }
    }

    /// P-25: what the node can bring.
    fn supply(&mut self, node: &SimNode, tools: &[SimTool]) {
        let mut names: Vec<String> = Vec::new();
        for tool in node.tools.iter().chain(node.initial.iter().map(|initial| &initial.tool)) {
            match tools.iter().find(|def| def.name == *tool).and_then(|def| def.output_params.clone()) {
                Some(declared) => names.extend(declared),
                None => self.any_sync = true,
            }
        }
        self.any_result |= node.is_empty() || (node.prompt.is_some() && node.schema.is_none());
        names.extend(node.schema.iter().flatten().map(|(name, _)| name.clone()));
        for name in names {
            self.known.insert(format!("{}_{name}", node.id));
            self.known.insert(name);
        }
    }

    fn name(&self, node: &mut String, otherwise: &str) {
        if let Some(position) = node.strip_prefix('#') {
            let id = position.parse().ok().and_then(|at: usize| self.ids.get(at));
            *node = id.map_or_else(|| otherwise.to_owned(), Clone::clone);
        }
    }

    fn earlier(&self, at: usize, node: &str) -> bool {
        nameable(node) && self.ids.iter().take(at).any(|id| id == node)
    }
}

fn nameable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
