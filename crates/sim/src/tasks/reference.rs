//! What a step task has to come to, one step after another: the rules read once more, with nothing of the engine's.

use super::generate::{Advice, advice, plan};
use super::observed::Observed;
use super::task::{Arg, Args, SimStep, SimTask, tool};
use super::world::{Broken, World};
use selvedge_engine::{Effects, FaultKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// D-19.
const RETRIES: u32 = 3;
const REPAIRS: u32 = 1;
const CONSECUTIVE: u32 = 3;
const REFLECTIONS: u32 = 5;
/// D-21: so often an invalid list of steps goes back, for each replan.
const PLANS: u32 = 3;

struct Row {
    step: SimStep,
    /// The tool that gave the result, or that failed last.
    tool: String,
    result: Result<Value, FaultKind>,
    skipped: bool,
}

struct Run<'t> {
    task: &'t SimTask,
    world: World,
    rows: Vec<Row>,
    attempts: BTreeMap<String, u32>,
    advised: BTreeMap<String, u32>,
    planned: BTreeMap<String, u32>,
    replans: u32,
    ladder: Vec<(String, String)>,
    warnings: Vec<String>,
    calls: u32,
}

impl Row {
    /// The tools that its step names.
    fn tools(&self) -> impl Iterator<Item = &str> {
        let others = self.step.alternatives.iter().map(|(tool, _)| tool.as_str());
        std::iter::once(self.step.tool.as_str()).chain(others)
    }

    /// Whether one of them declares the name.
    fn declares(&self, name: &str) -> bool {
        let has = |field: &&str| name == *field || name == format!("{}_{field}", self.step.id);
        self.tools().any(|name| tool(name).is_some_and(|tool| tool.declares)) && ["a", "b"].iter().any(has)
    }
}

enum End {
    Done(String, Value),
    Failed(String, FaultKind),
    Replan(Vec<SimStep>),
}

/// Runs the task.
pub fn run(task: &SimTask) -> Observed {
    let mut run = Run {
        task,
        world: World::default(),
        rows: Vec::new(),
        attempts: BTreeMap::new(),
        advised: BTreeMap::new(),
        planned: BTreeMap::new(),
        replans: 0,
        ladder: Vec::new(),
        warnings: Vec::new(),
        calls: 0,
    };
    let mut list = task.steps.clone();
    let mut in_a_row = 0;
    let mut fault: Option<(String, String)> = None;
    let mut at = 0;
    while let Some(step) = list.get(at).cloned() {
        if run.depends_on_failed(&step) {
            let tool = step.tool.clone();
            run.rows.push(Row { step, tool, result: Ok(Value::Null), skipped: true });
            at += 1;
            continue;
        }
        let told = run.warnings.len();
        run.warnings.extend(run.shadowed(&step).map(|_| "input-shadowed".to_owned()));
        match run.step(&step) {
            End::Done(tool, output) => {
                in_a_row = 0;
                run.rows.push(Row { step, tool, result: Ok(output), skipped: false });
            }
            End::Failed(tool, kind) => {
                in_a_row += 1;
                fault.get_or_insert((kind.name().to_owned(), step.id.clone()));
                run.rows.push(Row { step, tool, result: Err(kind), skipped: false });
                if !task.finish || in_a_row >= CONSECUTIVE {
                    break;
                }
            }
            End::Replan(steps) => {
                run.warnings.truncate(told);
                // D-20: nothing is done any more, and somebody should know.
                run.warnings.extend(steps.is_empty().then(|| "steps-left-out".to_owned()));
                list.truncate(at);
                list.extend(steps);
                continue;
            }
        }
        at += 1;
    }
    run.observed(fault)
}

impl Run<'_> {
    fn observed(self, fault: Option<(String, String)>) -> Observed {
        let mut runtime = BTreeMap::new();
        for row in self.rows.iter().filter(|row| !row.skipped) {
            for (name, value) in synced(row) {
                runtime.insert(format!("{}_{name}", row.step.id), (value.clone(), row.step.id.clone()));
                runtime.insert(name, (value, row.step.id.clone()));
            }
        }
        let shown = self.rows.iter().filter(|row| !row.skipped);
        let results = shown.map(|row| {
            let (output, fault) = match &row.result {
                Ok(output) => (output.clone(), None),
                Err(kind) => (Value::Null, Some(kind.name().to_owned())),
            };
            let attempts = self.attempts.get(&row.step.id).copied().unwrap_or(0);
            (row.step.id.clone(), row.tool.clone(), output, fault, attempts)
        });
        let mut warnings = self.warnings;
        warnings.sort();
        Observed {
            status: if fault.is_some() { "failed" } else { "completed" }.into(),
            fault,
            results: results.collect(),
            runtime,
            writes: self.world.writes(),
            ladder: self.ladder,
            warnings,
        }
    }

    /// D-16: whether the step may depend on one that failed or was skipped.
    fn depends_on_failed(&self, step: &SimStep) -> bool {
        let missing = |id: &str| {
            let row = self.rows.iter().find(|row| row.step.id == id);
            row.is_some_and(|row| row.skipped || row.result.is_err())
        };
        let mut all: Vec<&Args> = vec![&step.args];
        all.extend(step.alternatives.iter().filter_map(|(_, own)| own.as_ref()));
        let through_args = all.iter().flat_map(|args| args.values()).any(|arg| match arg {
            Arg::Value(_) => false,
            Arg::Field(of, _) => missing(of),
            Arg::Name(name) => self.name_depends_on_failed(name),
        });
        through_args || step.after.iter().any(|id| missing(id))
    }

    /// A failed step could have brought the name: it, or an alternative, declares nothing, or it is the last that
    /// declares the name.
    fn name_depends_on_failed(&self, name: &str) -> bool {
        let mut last_declares = None;
        for row in &self.rows {
            let failed = row.skipped || row.result.is_err();
            if row.tools().any(|name| tool(name).is_none_or(|tool| !tool.declares)) && failed {
                return true;
            }
            if row.declares(name) {
                last_declares = Some(failed);
            }
        }
        last_declares.unwrap_or(false)
    }

    /// D-07: names of the first layer whose place a step has taken that does not declare them, behind the last that does.
    fn shadowed(&self, step: &SimStep) -> impl Iterator<Item = String> + use<> {
        let brings = |row: &Row, name: &str| {
            let own = |field: &str| field == name || format!("{}_{field}", row.step.id) == name;
            !row.skipped && synced(row).iter().any(|(field, _)| own(field))
        };
        let names =
            step.args.values().filter_map(|arg| if let Arg::Name(name) = arg { Some(name) } else { None });
        let names = names.filter(|name| self.task.initial.contains_key(name.as_str()));
        let taken = names.filter(|name| {
            let by = self.rows.iter().rposition(|row| brings(row, name));
            by > self.rows.iter().rposition(|row| row.declares(name))
        });
        taken.cloned().collect::<std::collections::BTreeSet<_>>().into_iter()
    }

    fn resolve(&self, args: &Args) -> Result<Value, FaultKind> {
        let mut object = Map::new();
        for (key, arg) in args {
            object.insert(key.clone(), self.value(arg).ok_or(FaultKind::UnresolvedPlaceholder)?);
        }
        Ok(Value::Object(object))
    }

    fn value(&self, arg: &Arg) -> Option<Value> {
        match arg {
            Arg::Value(value) => Some(value.clone()),
            Arg::Field(id, field) => {
                let row = self.rows.iter().find(|row| row.step.id == *id && !row.skipped)?;
                row.result.as_ref().ok()?.get(field).cloned()
            }
            Arg::Name(name) => self.name(name),
        }
    }

    /// D-07: runtime, initial, then the latest output with that key.
    fn name(&self, name: &str) -> Option<Value> {
        let rows = || self.rows.iter().rev().filter(|row| !row.skipped);
        for row in rows() {
            for (field, value) in synced(row) {
                if field == name || format!("{}_{field}", row.step.id) == name {
                    return Some(value);
                }
            }
        }
        if let Some(value) = self.task.initial.get(name) {
            return Some(value.clone());
        }
        rows().find_map(|row| row.result.as_ref().ok()?.get(name).cloned())
    }

    /// One call with its transient retries (D-17).
    fn call(&mut self, step: &SimStep, name: &str, args: &Args) -> Result<Value, (FaultKind, bool)> {
        let mut count = || *self.attempts.entry(step.id.clone()).and_modify(|n| *n += 1).or_insert(1);
        count();
        let Some(known) = tool(name) else { return Err((FaultKind::UnknownTool, false)) };
        let resolved = self.resolve(args).map_err(|kind| (kind, false))?;
        let fits = resolved.get("n").is_some_and(Value::is_i64);
        if !fits {
            return Err((FaultKind::InputError, false));
        }
        self.calls += 1;
        let key = format!("{} {}", step.id, self.calls);
        let mut attempt = 1;
        loop {
            match self.world.call(self.task, known, &resolved, attempt, &key) {
                Ok(output) => return Ok(output),
                Err(Broken { kind, transient }) => {
                    // Unwritten, a write is not tried again and anything else as often as D-19 says.
                    let usual = if known.effects == Effects::Write { 0 } else { RETRIES };
                    if transient && attempt <= step.retry.unwrap_or(usual) {
                        attempt += 1;
                        *self.attempts.entry(step.id.clone()).or_insert(0) += 1;
                        continue;
                    }
                    let write = known.effects == Effects::Write && transient && step.retry.unwrap_or(0) == 0;
                    return Err(if write { (FaultKind::UnknownOutcome, false) } else { (kind, transient) });
                }
            }
        }
    }

    /// A step with its ladder (D-17 … D-20).
    fn step(&mut self, step: &SimStep) -> End {
        let (mut name, mut args) = (step.tool.clone(), step.args.clone());
        let mut fault = match self.call(step, &name, &args) {
            Ok(output) => return End::Done(name, output),
            Err(fault) => fault,
        };
        let (mut retries, mut repairs, mut reflections) = (0, 0, 0);
        let mut alternatives = step.alternatives.iter();
        loop {
            let mut action = None;
            if self.task.model && reflections < REFLECTIONS {
                reflections += 1;
                action = self.reflect(step, fault.1, (&name, &args), (&mut retries, &mut repairs));
            }
            if let Some(Move::Replan(steps)) = action {
                self.note(step, "replan");
                self.replans += 1;
                if let Some(steps) = self.valid_plan(step, steps) {
                    return End::Replan(steps);
                }
                action = None;
            }
            match action {
                Some(Move::Try(said, tool, own)) => {
                    self.note(step, said);
                    (name, args) = (tool, own);
                }
                Some(Move::GiveUp) => {
                    self.note(step, "give_up");
                    return End::Failed(name, fault.0);
                }
                // What a model may not do, or nobody asks it, the ladder decides.
                _ => match alternatives.next() {
                    Some((tool, own)) => {
                        self.note(step, "retry_with_tool");
                        (name, args) = (tool.clone(), own.clone().unwrap_or_else(|| step.args.clone()));
                    }
                    None => {
                        // A step that can't recover has nothing to give up.
                        if self.task.model || !step.alternatives.is_empty() {
                            self.note(step, "give_up");
                        }
                        return End::Failed(name, fault.0);
                    }
                },
            }
            match self.call(step, &name, &args) {
                Ok(output) => return End::Done(name, output),
                Err(again) => fault = again,
            }
        }
    }

    fn note(&mut self, step: &SimStep, action: &str) {
        self.ladder.push((step.id.clone(), action.to_owned()));
    }

    /// What the model decides; `None`: it may not.
    fn reflect(
        &mut self,
        step: &SimStep,
        transient: bool,
        (name, args): (&str, &Args),
        (retries, repairs): (&mut u32, &mut u32),
    ) -> Option<Move> {
        let nth = self.advised.entry(step.id.clone()).and_modify(|n| *n += 1).or_insert(1);
        let said = match advice(self.task, &step.id, *nth) {
            Advice::Nonsense if transient => Advice::Params(args.clone()),
            Advice::Nonsense => Advice::Replan(None),
            said => said,
        };
        let spend = |used: &mut u32, limit: u32| {
            let left = *used < limit;
            *used += u32::from(left);
            left
        };
        match said {
            Advice::Params(own) => {
                spend(retries, RETRIES).then(|| Move::Try("retry_with_params", name.to_owned(), own))
            }
            Advice::Tool(other, own) => (tool(&other).is_some() && spend(retries, RETRIES))
                .then(|| Move::Try("retry_with_tool", other, own.unwrap_or_else(|| args.clone()))),
            Advice::Repair(other, own) => {
                spend(repairs, REPAIRS).then(|| Move::Try("repair_step", other, own))
            }
            Advice::Replan(steps) => (self.replans < self.task.replans).then(|| Move::Replan(steps)),
            Advice::GiveUp => Some(Move::GiveUp),
            Advice::Nonsense => None,
        }
    }

    /// The first list of steps that passes the checks (D-20, D-21): the one that came along, or the one that is asked
    /// for, and so many more as diagnostics go back.
    fn valid_plan(&mut self, step: &SimStep, first: Option<Vec<SimStep>>) -> Option<Vec<SimStep>> {
        let mut back = 0;
        let mut steps = first;
        loop {
            match steps.take() {
                Some(steps) if self.is_valid(&steps) => return Some(steps),
                Some(_) if back == PLANS => return None,
                Some(_) => back += 1,
                None => {}
            }
            let nth = self.planned.entry(step.id.clone()).and_modify(|n| *n += 1).or_insert(1);
            steps = Some(plan(self.task, &step.id, *nth));
        }
    }

    /// D-15 and D-20.
    fn is_valid(&self, steps: &[SimStep]) -> bool {
        let taken = |id: &str| self.rows.iter().any(|row| row.step.id == id);
        let good = self.rows.iter().filter(|row| !row.skipped && row.result.is_ok());
        // What has no output is not referred to.
        let mut ids: Vec<&str> = good.clone().map(|row| row.step.id.as_str()).collect();
        // What may bring a name (P-25): a tool that declares it, or one that declares nothing.
        let mut brought: Vec<(&str, &str)> =
            good.map(|row| (row.step.id.as_str(), row.tool.as_str())).collect();
        for step in steps {
            let refers = |id: &str| ids.contains(&id);
            let named = |name: &str| {
                self.task.initial.contains_key(name)
                    || brought.iter().any(|(id, by)| match tool(by) {
                        Some(tool) if tool.declares => {
                            ["a", "b"].iter().any(|field| name == *field || name == format!("{id}_{field}"))
                        }
                        _ => true,
                    })
            };
            let mut all: Vec<&Args> = vec![&step.args];
            all.extend(step.alternatives.iter().filter_map(|(_, own)| own.as_ref()));
            let args = all.iter().flat_map(|args| args.values()).all(|arg| match arg {
                Arg::Field(id, _) => refers(id),
                Arg::Name(name) => named(name),
                Arg::Value(_) => true,
            });
            let tools = std::iter::once(&step.tool).chain(step.alternatives.iter().map(|(tool, _)| tool));
            let tools = tools.into_iter().all(|name| tool(name).is_some());
            let after = step.after.iter().all(|id| refers(id));
            if taken(&step.id) || refers(&step.id) || !args || !tools || !after {
                return false;
            }
            ids.push(&step.id);
            brought.push((&step.id, &step.tool));
            brought.extend(step.alternatives.iter().map(|(tool, _)| (step.id.as_str(), tool.as_str())));
        }
        // D-21: no plan at all where nothing has been done yet.
        !ids.is_empty()
    }
}

enum Move {
    Try(&'static str, String, Args),
    Replan(Option<Vec<SimStep>>),
    GiveUp,
}

/// D-05: the fields that the tool declares, or all.
fn synced(row: &Row) -> Vec<(String, Value)> {
    let Ok(Value::Object(object)) = &row.result else { return Vec::new() };
    let declares = tool(&row.tool).is_some_and(|tool| tool.declares);
    let fields = object.iter().filter(|(name, _)| !declares || matches!(name.as_str(), "a" | "b"));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}
