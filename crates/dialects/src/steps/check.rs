//! What only the whole task can tell (D-15): tools, steps that are named, their order, placeholders, types.

mod order;
mod placeholders;
mod typed;

use super::doc::{Parameters, Step};
use crate::ToolSource;
use crate::arguments::{self, Arguments};
use crate::checks::Kind;
use crate::diagnostic::listed;
use crate::diagnostic::shown;
use crate::fields::meant;
use crate::json::{Span, Spanned};
use crate::{Diagnostics, Finding, Severity, Source};
use order::Link;
use selvedge_engine::ToolDef;
use selvedge_engine::schema::{STEPS, Schema};
use selvedge_engine::template::normalized;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use typed::Brought;

/// What there is besides the steps that are checked.
#[derive(Debug, Default)]
pub(super) struct Scope<'p> {
    /// Names of the first data layer; `None`: nobody knows them all.
    pub(super) names: Option<HashSet<&'p str>>,
    /// Steps that have run, with the tool that gave their result: a replan may refer to them (D-20).
    pub(super) earlier: Vec<(&'p str, Option<&'p str>)>,
    /// Whether a model wrote the steps, and reads what is said about them.
    pub(super) for_model: bool,
    /// Whether all steps could be read. If not, only what each step says by itself is checked: what is said about
    /// names of steps might only follow from those that are missing.
    pub(super) complete: bool,
    /// `schema_steps` of `[limits]`; `None`: schemas of tools that can't be used are not told.
    pub(super) schema_steps: Option<u64>,
}

/// Checks steps that could be read; `task` is checked as a template of the first data layer.
pub(super) fn check<'p>(
    task: Option<&Spanned<Arc<str>>>,
    steps: &'p [Step],
    scope: Scope<'p>,
    source: &'p Source,
    tools: &'p dyn ToolSource,
    diagnostics: &mut Diagnostics,
) {
    let ids = steps.iter().map(|step| (step.id.value.as_ref(), step.index)).collect();
    let mut check = Check {
        steps,
        source,
        tools,
        ids,
        earlier: scope.earlier.iter().map(|(id, _)| *id).collect(),
        names: scope.names,
        supplied: HashMap::new(),
        suppliers: HashSet::new(),
        unknown: false,
        results: HashMap::new(),
        links: Vec::new(),
        known: HashMap::new(),
        told: HashSet::new(),
        looked: HashSet::new(),
        for_model: scope.for_model,
        complete: scope.complete,
        schema_steps: scope.schema_steps,
        diagnostics,
    };
    if let Some(task) = task.filter(|_| scope.complete) {
        check.text(None, task);
    }
    for (id, tool) in scope.earlier {
        let def = tool.and_then(|tool| check.known(tool).0);
        check.supply(id, vec![def]);
    }
    for step in steps {
        check.step(step);
    }
    check.order();
}

/// Finds the place of something, once there is something to say about it.
type Place<'a> = &'a dyn Fn() -> Span;

/// A tool's definition, and what holds arguments against its schema.
type Known = (Option<Arc<ToolDef>>, Option<Arc<Schema>>);

struct Check<'p, 'd> {
    steps: &'p [Step],
    source: &'p Source,
    tools: &'p dyn ToolSource,
    ids: HashMap<&'p str, usize>,
    earlier: HashSet<&'p str>,
    /// Names of the first data layer; `None`: not all are known.
    names: Option<HashSet<&'p str>>,
    /// Fields that earlier steps' tools declare, with what is known of their values.
    supplied: HashMap<Arc<str>, Brought>,
    /// The tools whose fields are among them, by address.
    suppliers: HashSet<*const ToolDef>,
    /// Whether an earlier step may bring any name.
    unknown: bool,
    /// The tools that may have given an earlier step's result; `None`: one that nobody knows.
    results: HashMap<&'p str, Vec<Option<Arc<ToolDef>>>>,
    links: Vec<Link>,
    /// Tools that were looked up.
    known: HashMap<&'p str, Known>,
    /// Tools whose missing effects were told.
    told: HashSet<&'p str>,
    /// Tools whose schema was looked at.
    looked: HashSet<&'p str>,
    for_model: bool,
    complete: bool,
    schema_steps: Option<u64>,
    diagnostics: &'d mut Diagnostics,
}

impl<'p> Check<'p, '_> {
    fn step(&mut self, step: &'p Step) {
        let def = self.tool(step, &step.tool);
        if let Some(parameters) = step.parameters.as_ref().filter(|_| self.complete) {
            self.parameters(step, parameters);
        }
        self.arguments(step, step.parameters.as_ref(), &step.tool);
        let mut defs = vec![def];
        for alternative in &step.alternatives {
            let def = self.tool(step, &alternative.tool);
            if let Some(parameters) = alternative.parameters.as_ref().filter(|_| self.complete) {
                self.parameters(step, parameters);
            }
            let own = alternative.parameters.as_ref().or(step.parameters.as_ref());
            self.arguments(step, own, &alternative.tool);
            defs.push(def);
        }
        if self.complete {
            step.depends_on.iter().for_each(|id| self.depends(step, id));
        }
        self.supply(&step.id.value, defs);
    }

    /// A tool by its name, looked up once.
    fn known(&mut self, tool: &'p str) -> Known {
        let (tools, steps) = (self.tools, self.schema_steps.unwrap_or(STEPS));
        let look_up = || {
            let def = tools.def(tool);
            // A schema that is none refuses nothing here; the call says what is wrong with it.
            let schema = def.as_ref().and_then(|def| Schema::new(&def.input_schema, steps).ok());
            (def, schema.map(Arc::new))
        };
        self.known.entry(tool).or_insert_with(look_up).clone()
    }

    /// The tool's definition; findings if there is none, or if it does not say what it does to the world.
    fn tool(&mut self, step: &Step, tool: &'p Spanned<Arc<str>>) -> Option<Arc<ToolDef>> {
        let (Some(def), _) = self.known(&tool.value) else {
            Kind::STEP.no_tool(tool, self.tools, self.for_model, self.diagnostics);
            return None;
        };
        if let Some(steps) = self.schema_steps.filter(|_| self.looked.insert(&tool.value)) {
            Kind::STEP.tool_schema(&def, tool.span, steps, self.diagnostics);
        }
        let own = tool.value == step.tool.value && step.effects.is_some();
        if def.effects.is_none() && !own && self.told.insert(&tool.value) {
            self.diagnostics.push(Kind::STEP.undeclared_effects(&tool.value, tool.span));
        }
        Some(def)
    }

    /// Arguments against the tool's schema (D-15); a call without any is held against it too.
    fn arguments(&mut self, step: &'p Step, parameters: Option<&'p Parameters>, tool: &'p Spanned<Arc<str>>) {
        let (Some(def), Some(schema)) = self.known(&tool.value) else { return };
        let given = parameters.map(|own| Arguments { root: &own.root, template: own.template() });
        let place = |span| parameters.map_or(span, |own| own.place(span));
        let found = arguments::refusals(&def, &schema, given, tool.span, place, self.for_model);
        found.into_iter().for_each(|finding| self.diagnostics.push(finding));
        if let Some(parameters) = parameters.filter(|_| self.complete) {
            self.types(step, &def, parameters);
        }
    }

    /// `depends_on` names a step: one of the list, or one that has run.
    fn depends(&mut self, step: &Step, id: &Spanned<Arc<str>>) {
        match self.ids.get(id.value.as_ref()) {
            Some(&to) => self.link(step.index, to, &|| id.span, || format!("step {}", shown(&id.value))),
            None if self.earlier.contains(id.value.as_ref()) => {}
            None => {
                let message = format!("there is no step {} to depend on", shown(&id.value));
                self.unknown_step(&id.value, id.span, message);
            }
        }
    }

    fn unknown_step(&mut self, id: &str, place: Span, message: String) {
        let finding = Finding::error("D-15", "unknown-step", place, message);
        if self.diagnostics.is_full(Severity::Error, "unknown-step") {
            return self.diagnostics.push(finding);
        }
        let count = self.ids.len() + self.earlier.len();
        if !self.diagnostics.worth_searching("unknown-step", count) {
            return self.diagnostics.push(finding.help("write the `step_id` of an earlier step"));
        }
        let mut known: Vec<&str> = self.ids.keys().chain(&self.earlier).copied().collect();
        known.sort_unstable();
        let help = match meant(id, &known) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None => format!("steps: {}", listed(&known)),
        };
        self.diagnostics.push(finding.help(help));
    }

    /// What a step's result can bring to later placeholders (D-05, D-07): what any of its tools declares.
    fn supply(&mut self, id: &'p str, defs: Vec<Option<Arc<ToolDef>>>) {
        for def in &defs {
            let outputs = def.as_ref().and_then(|def| Some((def, def.output_params.as_ref()?)));
            let Some((def, outputs)) = outputs else {
                self.unknown = true;
                continue;
            };
            // `known` keeps all definitions, so that no other one gets the address.
            if !self.suppliers.insert(Arc::as_ptr(def)) {
                continue;
            }
            for field in outputs.names() {
                let typed = outputs.schema(field).map(|_| (def, field));
                let name = normalized(field);
                match self.supplied.get_mut(&*name) {
                    Some(known) => known.or(typed),
                    None => drop(self.supplied.insert(name.into(), Brought::by(typed))),
                }
            }
        }
        self.results.insert(id, defs);
    }

    /// The tools that declare a name as `<step_id>_<field>` (D-05), each with the field. Nothing is kept for these names:
    /// few of them are ever asked for.
    fn prefixed<'n>(&self, name: &'n str) -> impl Iterator<Item = (&Arc<ToolDef>, &'n str)> {
        name.match_indices('_').flat_map(move |(at, _)| {
            let (id, field) = (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default());
            let tools = self.results.get(id).into_iter().flatten().flatten();
            let declares = move |def: &&Arc<ToolDef>| {
                def.output_params.as_ref().is_some_and(|outputs| outputs.has(field))
            };
            tools.filter(declares).map(move |def| (def, field))
        })
    }
}
