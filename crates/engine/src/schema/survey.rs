//! What can be known of a schema before it is compiled: how large it is, where it refers to, and what looking at a value
//! under it costs that the value itself does not see (E-45).

use super::pattern::{self, Pattern, Size};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// What stands under a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    /// A schema, or a list of them, of the very value that the keyword's own schema is of.
    Same,
    /// Such schemas by name.
    SameByName,
    /// A schema, or a list of them, of parts of the value.
    Part,
    /// Schemas by name that are of parts of the value, or of nothing before they are referred to.
    ByName,
    /// Values that are no schemas.
    Data,
    /// Nobody knows; a reference may point there.
    Unknown,
}

/// What stands under `keyword`, in any draft.
pub(super) fn under(keyword: &str) -> Under {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => Under::Same,
        "dependentSchemas" | "dependencies" => Under::SameByName,
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => Under::Part,
        "properties" | "patternProperties" | "$defs" | "definitions" => Under::ByName,
        "enum" | "const" | "default" | "examples" => Under::Data,
        _ => Under::Unknown,
    }
}

/// Keywords that refer to another schema of the same value.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema that is an object, in the order in which they are found.
pub(super) struct Spot<'s> {
    value: &'s Value,
    /// Those of the same value: inside of it, and then those that it refers to.
    pub(super) same: Vec<usize>,
    /// How many of those stand inside of it, and how many more there are that are `true` or `false`.
    inside: usize,
    flat: u64,
}

impl<'s> Spot<'s> {
    /// Whether it has one of these keywords.
    pub(super) fn has(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.value.get(*keyword).is_some())
    }

    /// Whether it is sure to look at the value first, or is counted where it refers to.
    fn looks(&self) -> bool {
        const LOOKING: [&str; 8] =
            ["const", "enum", "minItems", "minLength", "minProperties", "maxItems", "maxLength", "minimum"];
        let typed = self.value.get("type").is_some_and(Value::is_string);
        typed || self.has(&LOOKING) || self.same.len() > self.inside
    }

    /// What it is known by.
    pub(super) fn address(&self) -> Option<*const Map<String, Value>> {
        self.value.as_object().map(std::ptr::from_ref)
    }
}

/// A pattern that is not checked, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// JSON pointer into the schema.
    pub place: String,
    /// The pattern.
    pub pattern: String,
}

/// What was found.
pub(super) struct Survey<'s> {
    root: &'s Value,
    pub(super) spots: Vec<Spot<'s>>,
    pub(super) found: HashMap<*const Map<String, Value>, usize>,
    /// Spots that are referred to.
    pub(super) targets: BTreeSet<usize>,
    /// Whether parts have names or addresses of their own.
    pub(super) addressed: bool,
    pub(super) unchecked: Vec<Unchecked>,
    /// Patterns that were read: the validator compiles each text once.
    read: HashMap<&'s str, Pattern>,
    /// All patterns together.
    pub(super) patterns: Size,
    /// How many patterns names are held against.
    pub(super) names: u64,
    /// Whether there are formats, which may be matched.
    pub(super) formats: bool,
    /// What reading all of it costs, and what it may cost.
    steps: u64,
    limit: u64,
}

/// Steps of reading one schema.
const SCHEMA: u64 = 100;
/// Keywords that give a schema a name or an address.
const NAMES: [&str; 5] = ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];

impl<'s> Survey<'s> {
    /// Walks through a schema that is nested no deeper than can be walked.
    pub(super) fn of(root: &'s Value, limit: u64) -> Self {
        let mut survey = Self {
            root,
            spots: Vec::new(),
            found: HashMap::new(),
            targets: BTreeSet::new(),
            addressed: false,
            unchecked: Vec::new(),
            read: HashMap::new(),
            patterns: Size::default(),
            names: 0,
            formats: false,
            steps: 0,
            limit,
        };
        survey.schema(root, &mut String::new());
        survey.refer();
        survey
    }

    fn cost(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Whether reading the schema costs more than it may. Nothing more is read then.
    pub(super) fn is_over(&self) -> bool {
        self.steps > self.limit
    }

    /// Notes a schema and all below it.
    fn schema(&mut self, value: &'s Value, place: &mut String) -> Option<usize> {
        self.cost(SCHEMA);
        let schema = value.as_object().filter(|_| !self.is_over())?;
        if let Some(known) = self.found.get(&std::ptr::from_ref(schema)) {
            return Some(*known);
        }
        let at = self.spots.len();
        self.found.insert(schema, at);
        self.spots.push(Spot { value, same: Vec::new(), inside: 0, flat: 0 });
        let (mut same, mut flat) = (Vec::new(), 0_u64);
        for (keyword, value) in schema {
            let kind = under(keyword);
            let mut below = Vec::new();
            let length = descend(place, keyword);
            match (kind, value) {
                (Under::Data, value) => self.data(keyword, value),
                (Under::SameByName | Under::ByName, Value::Object(named)) => {
                    for (name, value) in named {
                        if keyword == "patternProperties" {
                            self.names = self.names.saturating_add(1);
                            let length = descend(place, name);
                            self.pattern(name, place);
                            place.truncate(length);
                        }
                        below.push(self.below(value, name, place));
                    }
                }
                (_, Value::Array(list)) => {
                    for (index, value) in list.iter().enumerate() {
                        below.push(self.below(value, &index.to_string(), place));
                    }
                }
                (_, Value::String(text)) => self.text(keyword, text, place),
                // A boolean is a schema as well.
                (Under::Unknown, Value::Object(_)) | (Under::Same | Under::Part, _) => {
                    below.push(self.schema(value, place));
                }
                _ => {}
            }
            place.truncate(length);
            if matches!(kind, Under::Same | Under::SameByName) {
                for spot in below {
                    flat += u64::from(spot.is_none());
                    same.extend(spot);
                }
            }
        }
        if let Some(spot) = self.spots.get_mut(at) {
            (spot.inside, spot.same, spot.flat) = (same.len(), same, flat);
        }
        Some(at)
    }

    fn below(&mut self, value: &'s Value, name: &str, place: &mut String) -> Option<usize> {
        let length = descend(place, name);
        // Lists of names, as `required` has them, hold no schemas.
        let schema = matches!(value, Value::Object(_) | Value::Bool(_)).then(|| self.schema(value, place));
        place.truncate(length);
        if schema.is_none() {
            self.data("", value);
        }
        schema.flatten()
    }

    fn text(&mut self, keyword: &str, text: &'s str, place: &str) {
        self.cost(text.len() as u64 / 64);
        self.formats |= matches!(keyword, "format" | "contentEncoding" | "contentMediaType");
        if keyword == "pattern" {
            self.pattern(text, place);
        }
    }

    fn pattern(&mut self, text: &'s str, place: &str) {
        let known = self.read.get(text).copied();
        self.cost(if known.is_some() { text.len() as u64 } else { pattern::price(text) });
        if self.is_over() {
            return;
        }
        let read = known.unwrap_or_else(|| pattern::read(text));
        self.read.insert(text, read);
        match read {
            Pattern::Plain(size) => {
                self.patterns = self.patterns.and(size);
                self.cost(if known.is_some() { 0 } else { size.price() });
            }
            Pattern::Beyond => {
                self.unchecked.push(Unchecked { place: place.to_owned(), pattern: text.to_owned() });
            }
            Pattern::Wrong => {}
        }
    }

    fn data(&mut self, keyword: &str, value: &Value) {
        self.cost(size_of(value));
        // Older drafts want all of them to be different, and hold each against each.
        if let ("enum", Value::Array(values)) = (keyword, value) {
            let nested = values.iter().filter(|value| value.is_array() || value.is_object()).count() as u64;
            self.cost(nested.saturating_mul(nested));
        }
    }

    /// Follows all references, also to parts that nobody knew to be schemas.
    fn refer(&mut self) {
        let mut ways = BTreeSet::new();
        loop {
            let known = self.spots.len();
            let named = |spot: &Spot<'_>| spot.has(&NAMES);
            let identified: Vec<usize> =
                (0..known).filter(|at| self.spots.get(*at).is_some_and(named)).collect();
            for at in 0..known {
                let Some(value) = self.spots.get(at).map(|spot| spot.value) else { continue };
                for keyword in REFERENCES {
                    let Some(to) = value.get(keyword).and_then(Value::as_str) else { continue };
                    self.cost(identified.len() as u64 / 4 + 1);
                    if self.is_over() {
                        return;
                    }
                    ways.extend(self.pointed(self.root, to).map(|target| (at, target)));
                    for target in &identified {
                        ways.extend(self.meant(*target, keyword, to).map(|target| (at, target)));
                    }
                }
            }
            // What stands in a part with an address of its own may be referred to from elsewhere.
            self.addressed = identified.iter().any(|at| *at != 0);
            if self.spots.len() == known {
                break;
            }
        }
        for (at, target) in ways {
            self.targets.insert(target);
            if let Some(spot) = self.spots.get_mut(at) {
                spot.same.push(target);
            }
        }
    }

    /// The schema that a pointer into `whole` leads to.
    fn pointed(&mut self, whole: &'s Value, to: &str) -> Option<usize> {
        let pointer = to.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy().into_owned();
        let value = whole.pointer(&pointer)?;
        let mut place = pointer;
        self.schema(value, &mut place)
    }

    /// The schema that a reference by name or address may mean, if it is the one at `at` or in it.
    fn meant(&mut self, at: usize, keyword: &str, to: &str) -> Option<usize> {
        let whole = self.spots.get(at)?.value;
        let said = |name: &str| whole.get(name).and_then(Value::as_str);
        let (address, fragment) = to.split_once('#').unwrap_or((to, ""));
        let is = |id: &str| {
            let id = id.split_once('#').map_or(id, |(id, _)| id);
            let end = address.trim_start_matches(['.', '/']);
            id == address || id.strip_suffix(end).is_some_and(|rest| rest.ends_with(['/', ':']))
        };
        let addressed = address.is_empty() || ["$id", "id"].iter().any(|name| said(name).is_some_and(is));
        if addressed && fragment.starts_with('/') {
            return self.pointed(whole, &format!("#{fragment}"));
        }
        let anchored = ["$anchor", "$dynamicAnchor"].iter().any(|name| said(name) == Some(fragment))
            || ["$id", "id"].iter().any(|name| {
                said(name).and_then(|id| id.strip_suffix(fragment)).is_some_and(|id| id.ends_with('#'))
            });
        let recursive = keyword == "$recursiveRef" && whole.get("$recursiveAnchor").is_some();
        let this = match fragment {
            "" => !address.is_empty() && addressed,
            _ => anchored,
        };
        (this || recursive).then_some(at)
    }

    /// The most schemas of one value inside of a schema that may never look at the value: nothing counts those.
    pub(super) fn silent(&self) -> u64 {
        let mut below = vec![0_u64; self.spots.len()];
        // Whatever stands inside of a schema is found after it.
        for (at, spot) in self.spots.iter().enumerate().rev() {
            let silent = |child: &usize| {
                let child_looks = self.spots.get(*child).is_some_and(Spot::looks);
                below.get(*child).copied().unwrap_or(0).saturating_add(u64::from(!child_looks))
            };
            let all = spot.same.iter().take(spot.inside).map(silent).fold(spot.flat, u64::saturating_add);
            if let Some(below) = below.get_mut(at) {
                *below = all;
            }
        }
        below.into_iter().max().unwrap_or(0)
    }

    /// How many schemas one value is held against at most, from any place on and through all references, and how long
    /// the longest way through them is.
    pub(super) fn spread(&self) -> Spread {
        let mut done: Vec<Option<Spread>> = vec![None; self.spots.len()];
        let mut open = vec![false; self.spots.len()];
        let all = self.spots.len() as u64;
        let mut most = Spread { visits: 0, way: 0, unevaluated: 0 };
        for start in 0..self.spots.len() {
            let mut stack = vec![(start, 0_usize)];
            while let Some((at, next)) = stack.pop() {
                let Some(spot) = self.spots.get(at) else { continue };
                if next == 0 && done.get(at).is_some_and(Option::is_some) {
                    continue;
                }
                if let Some(is) = open.get_mut(at) {
                    *is = true;
                }
                if let Some(child) = spot.same.get(next) {
                    stack.push((at, next + 1));
                    let seen = done.get(*child).is_some_and(Option::is_some);
                    if !seen && open.get(*child) == Some(&false) {
                        stack.push((*child, 0));
                    }
                    continue;
                }
                let mut here = Spread { visits: 1, way: 1, unevaluated: 0 };
                for child in &spot.same {
                    // Whoever is open still is on the way here: round and round.
                    let round = Spread { visits: u64::MAX, way: all, unevaluated: 0 };
                    let below = done.get(*child).copied().flatten().unwrap_or(round);
                    here.visits = here.visits.saturating_add(below.visits);
                    here.way = here.way.max(below.way.saturating_add(1)).min(all);
                }
                if spot.has(&UNEVALUATED) {
                    most.unevaluated = most.unevaluated.saturating_add(here.visits);
                }
                most.visits = most.visits.max(here.visits);
                most.way = most.way.max(here.way);
                if let (Some(open), Some(done)) = (open.get_mut(at), done.get_mut(at)) {
                    (*open, *done) = (false, Some(here));
                }
            }
        }
        most
    }
}

/// Keywords that ask which of all schemas of a value have looked at its parts.
pub(super) const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// How far a schema spreads over one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// Schemas that one value may be held against, each as often as there are ways to it.
    pub(super) visits: u64,
    /// The longest way, in schemas.
    pub(super) way: u64,
    /// The sum of `visits` of all schemas with one of [`UNEVALUATED`].
    pub(super) unevaluated: u64,
}

/// Adds a step to a JSON pointer, and says how long it was before.
fn descend(place: &mut String, step: &str) -> usize {
    let length = place.len();
    place.push('/');
    place.push_str(&step.replace('~', "~0").replace('/', "~1"));
    length
}

fn size_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(items) => items.iter().map(size_of).fold(1, u64::saturating_add),
        Value::Object(fields) => {
            let each = fields.iter().map(|(key, value)| 1 + key.len() as u64 / 64 + size_of(value));
            each.fold(1, u64::saturating_add)
        }
        _ => 1,
    }
}
