//! What only the whole task can tell (D-15): tools, steps that are named, their order, placeholders.

use super::arguments;
use super::doc::{Parameters, Step};
use crate::compile::ToolSource;
use crate::diagnostic::shown;
use crate::fields::misspelt;
use crate::json::{Span, Spanned, place_in_string, places_in_string};
use crate::{Diagnostics, Finding, Severity, Source};
use jsonschema::Validator;
use selvedge_engine::ToolDef;
use selvedge_engine::template::{Path, Placeholder, Root, Seg, Template, classify};
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What there is besides the steps that are checked.
#[derive(Debug, Default)]
pub(super) struct Scope<'p> {
    /// Names of the first data layer; `None`: nobody knows them all.
    pub(super) names: Option<HashSet<&'p str>>,
    /// Steps that have run, with the tool that gave their result: a replan may refer to them (D-20).
    pub(super) earlier: Vec<(&'p str, Option<&'p str>)>,
    /// Whether a model wrote the steps, and reads what is said about them.
    pub(super) for_model: bool,
}

/// Checks steps that could all be read; `task` is checked as a template of the first data layer.
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
        supplied: HashSet::new(),
        unknown: false,
        links: Vec::new(),
        validators: HashMap::new(),
        told: HashSet::new(),
        for_model: scope.for_model,
        diagnostics,
    };
    if let Some(task) = task {
        check.text(None, task);
    }
    for (id, tool) in scope.earlier {
        let def = tool.and_then(|tool| tools.def(tool));
        check.supply(id, [def]);
    }
    for step in steps {
        check.step(step);
    }
    check.order();
}

/// Finds the place of something, once there is something to say about it.
type Place<'a> = &'a dyn Fn() -> Span;

/// The places of all placeholders in arguments without an unfinished one, in their order.
fn places_of(parameters: &Parameters, document: &str) -> Vec<Span> {
    let mut places = Vec::new();
    parameters.root.each_string(&mut |text, literal| {
        let Ok(template) = Template::parse(text) else { return };
        let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
        places.extend(parameters.parts(document, literal, parts));
    });
    places
}

/// A step that waits for another one; if that is a later one, the place that says so and what it says.
struct Link {
    from: usize,
    to: usize,
    place: Span,
    what: String,
}

struct Check<'p, 'd> {
    steps: &'p [Step],
    source: &'p Source,
    tools: &'p dyn ToolSource,
    ids: HashMap<&'p str, usize>,
    earlier: HashSet<&'p str>,
    /// Names of the first data layer; `None`: not all are known.
    names: Option<HashSet<&'p str>>,
    /// Names that earlier steps' tools declare.
    supplied: HashSet<String>,
    /// Whether an earlier step may bring any name.
    unknown: bool,
    links: Vec<Link>,
    /// What holds arguments against tools' schemas, by the name of the tool.
    validators: HashMap<&'p str, Option<Arc<Validator>>>,
    /// Tools whose missing effects were told.
    told: HashSet<Arc<str>>,
    for_model: bool,
    diagnostics: &'d mut Diagnostics,
}

impl<'p> Check<'p, '_> {
    fn step(&mut self, step: &'p Step) {
        let def = self.tool(step, &step.tool);
        if let Some(parameters) = &step.parameters {
            self.parameters(step, parameters);
        }
        self.arguments(def.as_deref(), step.parameters.as_ref(), &step.tool);
        let mut defs = vec![def];
        for alternative in &step.alternatives {
            let def = self.tool(step, &alternative.tool);
            if let Some(parameters) = &alternative.parameters {
                self.parameters(step, parameters);
            }
            let own = alternative.parameters.as_ref().or(step.parameters.as_ref());
            self.arguments(def.as_deref(), own, &alternative.tool);
            defs.push(def);
        }
        for id in &step.depends_on {
            self.depends(step, id);
        }
        self.supply(&step.id.value, defs);
    }

    /// The tool's definition; findings if there is none, or if it does not say what it does to the world.
    fn tool(&mut self, step: &Step, tool: &Spanned<Arc<str>>) -> Option<Arc<ToolDef>> {
        let Some(def) = self.tools.def(&tool.value) else {
            if let Some(trouble) = self.tools.trouble(&tool.value) {
                self.diagnostics.push(trouble.at(tool.span));
                return None;
            }
            let message = format!("there is no tool {}", shown(&tool.value));
            let finding = Finding::error("D-15", "unknown-tool", tool.span, message);
            let names = if self.for_model { self.tools.available() } else { self.tools.names() };
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let help = match misspelt(&tool.value, &known) {
                Some(near) => format!("did you mean {}?", shown(near)),
                None if self.for_model => format!("the tools are {}", known.join(", ")),
                None => {
                    format!("known tools: {}; a folder of tools is given with --tools DIR", known.join(", "))
                }
            };
            self.diagnostics.push(finding.help(help));
            return None;
        };
        let own = tool.value == step.tool.value && step.effects.is_some();
        if def.effects.is_none() && !own && self.told.insert(tool.value.clone()) {
            let message = format!(
                "tool {} declares no effects and is treated as `write`: its calls wait for all earlier steps",
                shown(&tool.value)
            );
            let finding = Finding::warning("E-22", "undeclared-effects", tool.span, message);
            let help = "declare \"effects\" (pure, read, idempotent or write) in the tool, or at the step";
            self.diagnostics.push(finding.help(help));
        }
        Some(def)
    }

    /// Arguments against the tool's schema (D-15); a call without any is held against it too.
    fn arguments(
        &mut self,
        def: Option<&ToolDef>,
        parameters: Option<&Parameters>,
        tool: &'p Spanned<Arc<str>>,
    ) {
        let Some(def) = def else { return };
        // A schema that is none refuses nothing here; the call says what is wrong with it.
        let made = || jsonschema::validator_for(&def.input_schema).ok().map(Arc::new);
        let Some(validator) = self.validators.entry(&tool.value).or_insert_with(made).clone() else { return };
        for refusal in arguments::refusals(def, &validator, parameters) {
            let place =
                parameters.map_or(tool.span, |given| given.place(refusal.place.unwrap_or(given.root.span)));
            let message = format!("tool {} will refuse {}", shown(&def.name), refusal.why);
            let finding = match refusal.certain {
                true => Finding::error("D-15", "arguments-refused", place, message),
                false => Finding::warning("D-15", "arguments-refused", place, message),
            };
            self.diagnostics.push(finding.help(refusal.help));
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
        let mut known: Vec<&str> = self.ids.keys().chain(&self.earlier).copied().collect();
        known.sort_unstable();
        let help = match misspelt(id, &known) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None => format!("steps: {}", listed(&known)),
        };
        self.diagnostics.push(finding.help(help));
    }

    /// Notes that a step waits for another one of the list; what is wrong with it is told at the end.
    fn link(&mut self, from: usize, to: usize, place: Place<'_>, what: impl FnOnce() -> String) {
        let (place, what) =
            if to >= from { (place(), what()) } else { (Span { start: 0, end: 0 }, String::new()) };
        self.links.push(Link { from, to, place, what });
    }

    fn parameters(&mut self, step: &'p Step, parameters: &'p Parameters) {
        let text = self.source.text();
        let Some(template) = parameters.template() else { return self.broken_parameters(step, parameters) };
        // Found only when there is something to say: in a task that is right nobody asks for them.
        let places = LazyCell::new(|| places_of(parameters, text));
        for (at, (_, placeholder)) in template.placeholders().enumerate() {
            let place = || places.get(at).copied().unwrap_or(parameters.root.span);
            self.placeholder(Some(step), placeholder, &place);
        }
    }

    /// Arguments with at least one placeholder that is unfinished.
    fn broken_parameters(&mut self, step: &'p Step, parameters: &'p Parameters) {
        let mut texts = Vec::new();
        parameters.root.each_string(&mut |text, span| texts.push((text, span)));
        for (text, literal) in texts {
            match Template::parse(text) {
                Err(error) => {
                    let part = error.offset..error.offset + 2;
                    let place = parameters.part(self.source.text(), literal, part);
                    self.unfinished(error.message, place);
                }
                Ok(template) => {
                    let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
                    let places = parameters.parts(self.source.text(), literal, parts);
                    for (placeholder, place) in template.placeholders().zip(places) {
                        self.placeholder(Some(step), placeholder, &|| place);
                    }
                }
            }
        }
    }

    fn text(&mut self, step: Option<&Step>, text: &Spanned<Arc<str>>) {
        match Template::parse(&text.value) {
            Err(error) => {
                let part = error.offset..error.offset + 2;
                let place = place_in_string(self.source.text(), text.span, part);
                self.unfinished(error.message, place);
            }
            Ok(template) => {
                let parts = template.placeholders().map(|p| p.offset..p.offset + p.raw.len());
                let places = places_in_string(self.source.text(), text.span, parts);
                for (placeholder, place) in template.placeholders().zip(places) {
                    self.placeholder(step, placeholder, &|| place);
                }
            }
        }
    }

    fn unfinished(&mut self, message: String, place: Span) {
        let finding = Finding::error("D-09", "unfinished-placeholder", place, message);
        self.diagnostics.push(finding.help("close it, or write \\{{ or \\${ for the characters themselves"));
    }

    /// `step`: where it stands; `None` is the task, which is said before any step has run.
    fn placeholder(&mut self, step: Option<&Step>, placeholder: &Placeholder, place: Place<'_>) {
        let is_step = |id: &str| self.ids.contains_key(id) || self.earlier.contains(id);
        match classify(&placeholder.path, is_step) {
            Root::StepOutput { step: id, .. } => self.output_of(step, id, placeholder, place),
            Root::Inputs { name, .. } => {
                if self.names.as_ref().is_some_and(|names| !names.contains(name)) {
                    self.nothing_supplies(placeholder, name, place());
                }
            }
            Root::Metadata { name, .. } => {
                if !self.may_have(name, step.is_some()) {
                    self.nothing_supplies(placeholder, name, place());
                }
            }
            Root::Name { name, .. } => {
                if means_a_step(&placeholder.path) && !self.has(name) {
                    let message =
                        format!("{} names no step: there is no step {}", placeholder.raw, shown(name));
                    self.unknown_step(name, place(), message);
                } else if !self.may_have(name, step.is_some()) {
                    self.nothing_supplies(placeholder, name, place());
                }
            }
        }
    }

    fn output_of(&mut self, step: Option<&Step>, id: &str, placeholder: &Placeholder, place: Place<'_>) {
        // D-07: the step's id hides a name of metadata.
        if self.names.as_ref().is_some_and(|names| names.contains(id)) {
            let message = format!("step {} hides the metadata of the same name", shown(id));
            let finding = Finding::warning("D-07", "hidden-name", place(), message);
            self.diagnostics.push(finding.help(format!("write {{{{metadata.{id}}}}} for the metadata")));
        }
        match (self.ids.get(id), step) {
            (Some(_), None) => {
                let message =
                    format!("{} in the task: no step has run when the task is said", placeholder.raw);
                let finding = Finding::error("D-15", "later-step", place(), message);
                self.diagnostics.push(finding.help("use metadata or an input there"));
            }
            (Some(&to), Some(step)) => self.link(step.index, to, place, || placeholder.raw.to_string()),
            (None, _) if self.earlier.contains(id) => {}
            (None, _) => {
                let message = format!("{} names no step: there is no step {}", placeholder.raw, shown(id));
                self.unknown_step(id, place(), message);
            }
        }
    }

    /// Whether something is known to bring the name.
    fn has(&self, name: &str) -> bool {
        self.supplied.contains(name) || self.names.as_ref().is_none_or(|names| names.contains(name))
    }

    fn may_have(&self, name: &str, later: bool) -> bool {
        self.has(name) || later && self.unknown
    }

    /// P-25: no metadata, no input, no declared output, and no earlier step whose fields are unknown.
    fn nothing_supplies(&mut self, placeholder: &Placeholder, name: &str, place: Span) {
        let message = format!("nothing can supply {}: there is no {} here", placeholder.raw, shown(name));
        let finding = Finding::error("P-25", "unknown-placeholder", place, message);
        if self.diagnostics.is_full(Severity::Error, "unknown-placeholder") {
            return self.diagnostics.push(finding);
        }
        let mut names: Vec<&str> = self.names.iter().flatten().copied().collect();
        names.extend(self.supplied.iter().map(String::as_str));
        names.extend(self.ids.keys().chain(&self.earlier));
        names.sort_unstable();
        let help = match misspelt(name, &names) {
            Some(near) => format!("did you mean {}?", shown(near)),
            None if self.for_model => "names: ".to_owned() + &listed(&names),
            None => format!(
                "declare it in `inputs` or `metadata`, or write \\{} for the text itself",
                placeholder.raw
            ),
        };
        self.diagnostics.push(finding.help(help));
    }

    /// What a step's result can bring to later placeholders (D-05, D-07): what any of its tools declares.
    fn supply(&mut self, id: &str, defs: impl IntoIterator<Item = Option<Arc<ToolDef>>>) {
        for def in defs {
            match def.and_then(|def| def.output_params.clone()) {
                Some(fields) => {
                    for field in fields {
                        self.supplied.insert(format!("{id}_{field}"));
                        self.supplied.insert(field.to_string());
                    }
                }
                None => self.unknown = true,
            }
        }
    }

    /// Steps that wait for themselves or for later ones (D-15): in a circle, or against the order of the list.
    fn order(&mut self) {
        let links = std::mem::take(&mut self.links);
        if links.iter().all(|link| link.to < link.from) {
            return;
        }
        let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for link in &links {
            if let Some(waits) = waits_for.get_mut(link.from) {
                waits.push(link.to);
            }
        }
        for link in links.iter().filter(|link| link.to >= link.from) {
            let searched = !self.diagnostics.is_full(Severity::Error, "cycle");
            let circle = searched.then(|| way(&waits_for, link.to, link.from)).flatten();
            let finding = match circle {
                Some(way) => self.circle(link, &way),
                None => {
                    let id = self.steps.get(link.to).map_or("", |step| &step.id.value);
                    let message = match link.what.starts_with("step ") {
                        true => format!("{} comes later in the list", link.what),
                        false => format!("{} is the result of a later step", link.what),
                    };
                    let help =
                        format!("move step {} up in the list: list order is the order of meaning", shown(id));
                    Finding::error("D-15", "later-step", link.place, message).help(help)
                }
            };
            self.diagnostics.push(finding);
        }
    }

    fn circle(&self, link: &Link, way: &[usize]) -> Finding {
        const MOST: usize = 8;
        let id = |at: usize| self.steps.get(at).map_or_else(String::new, |step| shown(&step.id.value));
        if link.to == link.from {
            let message = format!("step {} waits for itself: {}", id(link.to), link.what);
            let help = "refer to an earlier step";
            return Finding::error("D-15", "cycle", link.place, message).help(help);
        }
        let mut names = vec![id(link.from)];
        names.extend(way.iter().take(MOST).map(|at| id(*at)));
        let more = if way.len() > MOST { " → …" } else { "" };
        let message = format!("these steps wait for each other: {}{more}", names.join(" → "));
        Finding::error("D-15", "cycle", link.place, message).help("take one of these references out")
    }
}

/// A way from one step to another along what they wait for, both ends included.
fn way(waits_for: &[Vec<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came_from: HashMap<usize, usize> = HashMap::from([(from, from)]);
    let mut todo = std::collections::VecDeque::from([from]);
    while let Some(at) = todo.pop_front() {
        if at == to {
            let mut way = vec![at];
            let mut last = at;
            while let Some(&before) = came_from.get(&last).filter(|before| **before != last) {
                way.push(before);
                last = before;
            }
            way.reverse();
            return Some(way);
        }
        for &next in waits_for.get(at).into_iter().flatten() {
            if let std::collections::hash_map::Entry::Vacant(entry) = came_from.entry(next) {
                entry.insert(at);
                todo.push_back(next);
            }
        }
    }
    None
}

/// `name.output…` and `name.outputs…` can only mean a step, unless something is known to have that name.
fn means_a_step(path: &Path) -> bool {
    matches!(path.rest.first(), Some(Seg::Key(key)) if matches!(key.as_ref(), "output" | "outputs"))
}

fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| shown(name)).collect();
    let more = if names.len() > MOST { ", …" } else { "" };
    match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("{}{more}", shown.join(", ")),
    }
}
