//! D-06 … D-08, D-10: whole texts resolved against three layers, and a naive reading of the same rules beside it.
//!
//! `SELVEDGE_PROPTEST_CASES` sets the number of cases (default 10,000).

use proptest::prelude::*;
use selvedge_engine::template::{Layers, OnMissing, StepView, Template};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The three layers, and how far each step has come.
#[derive(Clone, Debug)]
struct World {
    initial: Map<String, Value>,
    runtime: Map<String, Value>,
    /// In list order: the output, `None` after a failure, or nothing at all before it has run.
    steps: Vec<(String, Option<Option<Value>>)>,
}

impl Layers for World {
    fn is_step(&self, id: &str) -> bool {
        self.steps.iter().any(|(known, _)| known == id)
    }
    fn step(&self, id: &str) -> StepView<'_> {
        match self.steps.iter().find(|(known, _)| known == id).and_then(|(_, state)| state.as_ref()) {
            None => StepView::NotRun,
            Some(None) => StepView::Failed(&Value::Null),
            Some(Some(output)) => StepView::Output(output),
        }
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        self.runtime.get(name)
    }
    fn initial(&self, name: &str) -> Option<&Value> {
        self.initial.get(name)
    }
    fn fallback(&self, name: &str) -> Option<&Value> {
        self.steps.iter().rev().find_map(|(_, state)| state.as_ref()?.as_ref()?.as_object()?.get(name))
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// One step of a path, as it is written.
#[derive(Clone, Debug)]
enum Seg {
    Dot(&'static str),
    Quoted(&'static str),
    Index(i64),
}

/// A piece of a text.
#[derive(Clone, Debug)]
enum Piece {
    Text(&'static str),
    Hole { form: usize, spaces: (usize, usize), root: &'static str, segs: Vec<Seg> },
}

const FORMS: [(&str, &str); 3] = [("{{", "}}"), ("{{{", "}}}"), ("${", "}")];

impl Piece {
    fn written(&self) -> String {
        let Piece::Hole { form, spaces, root, segs } = self else {
            let Piece::Text(text) = self else { return String::new() };
            return (*text).to_owned();
        };
        let path: String = segs
            .iter()
            .map(|seg| match seg {
                Seg::Dot(key) => format!(".{key}"),
                Seg::Quoted(key) => format!("[{}]", json!(key)),
                Seg::Index(at) => format!("[{at}]"),
            })
            .collect();
        let (open, close) = FORMS[*form];
        format!("{open}{}{root}{path}{}{close}", " ".repeat(spaces.0), " ".repeat(spaces.1))
    }

    /// The value by the words of D-07, looked up from the beginning each time.
    fn value(&self, world: &World) -> Option<Value> {
        let Piece::Hole { root, segs, .. } = self else { return None };
        let key = |seg: &Seg| match seg {
            Seg::Dot(key) | Seg::Quoted(key) => Some(*key),
            Seg::Index(_) => None,
        };
        let first = segs.first().and_then(key);
        let runtime = |name: &str| world.runtime.get(name).cloned();
        let initial = |name: &str| world.initial.get(name).cloned();
        let (start, rest) = match (*root, first) {
            ("metadata", Some(name)) => (runtime(name).or_else(|| initial(name)), &segs[1..]),
            ("inputs", Some(name)) => (initial(name), &segs[1..]),
            (root, _) if world.steps.iter().any(|(id, _)| id == root) => {
                let state =
                    world.steps.iter().find(|(id, _)| id == root).and_then(|(_, state)| state.clone());
                let whole = matches!(first, Some("output" | "outputs"));
                (state.flatten(), if whole { &segs[1..] } else { &segs[..] })
            }
            (root, _) if root.bytes().all(|byte| byte.is_ascii_digit()) => (None, &segs[..]),
            (root, _) => {
                let mut found = runtime(root).or_else(|| initial(root));
                for (_, state) in world.steps.iter().rev() {
                    if let (None, Some(Some(Value::Object(output)))) = (&found, state) {
                        found = output.get(root).cloned();
                    }
                }
                (found, &segs[..])
            }
        };
        let mut value = start?;
        for seg in rest {
            value = match (value, seg) {
                (Value::Object(object), Seg::Dot(key) | Seg::Quoted(key)) => object.get(*key)?.clone(),
                (Value::Array(items), Seg::Dot(key) | Seg::Quoted(key)) => {
                    items.get(key.parse::<usize>().ok().filter(|_| !key.starts_with('+'))?)?.clone()
                }
                (Value::Array(items), Seg::Index(at)) => {
                    let length = i64::try_from(items.len()).unwrap();
                    let at = if *at < 0 { length + at } else { *at };
                    items.get(usize::try_from(at).ok()?)?.clone()
                }
                _ => return None,
            };
        }
        Some(value)
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-3),
        json!(2.5),
        json!("text"),
        json!("{{a}}"),
        json!("{\"a\": 1}"),
        json!(""),
        json!("杭州"),
    ])
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            object(inner).prop_map(Value::Object),
        ]
    })
}

const KEYS: [&str; 7] = ["a", "b", "output", "outputs", "0", "odd key", "step_1_a"];

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::btree_map(prop::sample::select(KEYS.to_vec()), inner, 0..5)
        .prop_map(|map: BTreeMap<&str, Value>| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn world() -> impl Strategy<Value = World> {
    let state = prop_oneof![
        6 => value().prop_map(|output| Some(Some(output))),
        1 => Just(Some(None)),
        1 => Just(None),
    ];
    let ids = ["step_1", "2", "b", "step-3"];
    let steps = (prop::collection::vec(state, 4), 0..=4_usize);
    (object(value()), object(value()), steps).prop_map(move |(initial, runtime, (states, count))| {
        let steps = ids.iter().map(|id| (*id).to_owned()).zip(states).take(count).collect();
        World { initial, runtime, steps }
    })
}

fn piece() -> impl Strategy<Value = Piece> {
    let seg = prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "output", "outputs", "0", "1"]).prop_map(Seg::Dot),
        2 => prop::sample::select(KEYS.to_vec()).prop_map(Seg::Quoted),
        2 => (-3_i64..4).prop_map(Seg::Index),
    ];
    let roots = vec!["step_1", "2", "b", "step-3", "a", "metadata", "inputs", "step_1_a", "output", "7"];
    let hole =
        (0..3_usize, (0..2_usize, 0..2_usize), prop::sample::select(roots), prop::collection::vec(seg, 0..4));
    prop_oneof![
        1 => prop::sample::select(vec![" ", "x", ": ", "é", ","]).prop_map(Piece::Text),
        3 => hole.prop_map(|(form, spaces, root, segs)| Piece::Hole { form, spaces, root, segs }),
    ]
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("SELVEDGE_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn texts_resolve_as_the_rules_say(world in world(), pieces in prop::collection::vec(piece(), 1..4)) {
        let text: String = pieces.iter().map(Piece::written).collect();
        let template = Template::parse(&text).unwrap();
        let holes = pieces.iter().filter(|piece| matches!(piece, Piece::Hole { .. }));
        let missing = holes.clone().find(|piece| piece.value(&world).is_none());
        match (template.render_value(&world, OnMissing::Fault), missing) {
            (Err(error), Some(piece)) => prop_assert_eq!(&*error.placeholder, piece.written()),
            (Ok(_), None) => {}
            (ours, naive) => return Err(TestCaseError::fail(format!("{text}: {ours:?}, not {naive:?}"))),
        }
        let alone = pieces.len() == 1 && holes.count() == 1;
        for on_missing in [OnMissing::Null, OnMissing::Keep] {
            let one = |piece: &Piece| match (piece, piece.value(&world)) {
                (Piece::Text(text), _) => json!(text),
                (_, Some(value)) => value,
                (_, None) if on_missing == OnMissing::Null => Value::Null,
                (piece, None) => json!(piece.written()),
            };
            let expected = if alone {
                one(&pieces[0])
            } else {
                let shown = |piece: &Piece| match one(piece) {
                    Value::String(text) => text,
                    value => value.to_string(),
                };
                pieces.iter().map(shown).collect::<String>().into()
            };
            prop_assert_eq!(template.render_value(&world, on_missing).unwrap(), expected, "{}", text);
        }
    }
}
