#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Ids as documents may hold them: all special characters, what escapes look like, empty ones.
fn id() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("1"),
        Just("/"),
        Just("#"),
        Just("["),
        Just("]"),
        Just("~"),
        Just("%"),
        Just(" "),
        Just("."),
        Just("%2F"),
        Just("%7e"),
        Just("~2"),
        Just("#3"),
        Just("é"),
        Just("\n"),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn instance() -> impl Strategy<Value = Instance<'static>> {
    prop_oneof![
        Just(Instance::Sub),
        id().prop_map(|path| Instance::Path(path.into())),
        (0..12_u32).prop_map(Instance::Iteration),
    ]
}

fn step() -> impl Strategy<Value = FrameStep<'static>> {
    let parts = (id(), 1..12_u32, instance());
    parts.prop_map(|(node, visit, instance)| FrameStep { node: node.into(), visit, instance })
}

fn frame() -> impl Strategy<Value = FramePath> {
    let steps = proptest::collection::vec(step(), 0..4);
    steps.prop_map(|steps| steps.iter().fold(FramePath::default(), |frame, step| frame.with(step)))
}

/// The parts of any id: frame, node, visit, leaf, slot, visit of the leaf, attempt.
type Parts = (FramePath, String, u32, String, Option<usize>, u32, u32);

fn parts() -> impl Strategy<Value = Parts> {
    let slot = proptest::option::of(0..12_usize);
    (frame(), id(), 1..4_u32, prop_oneof![Just("model".to_owned()), id()], slot, 0..3_u32, 0..3_u32)
}

fn effect((frame, node, visit, leaf, slot, leaf_visit, attempt): &Parts) -> EffectPlace<'_> {
    let place = Place { frames: frame.frames(), node: Cow::Borrowed(node), visit: *visit };
    EffectPlace { place, leaf: Cow::Borrowed(leaf), slot: *slot, leaf_visit: *leaf_visit, attempt: *attempt }
}

fn ask(parts: &Parts) -> AskPlace<'_> {
    let EffectPlace { place, leaf, .. } = effect(parts);
    AskPlace::Leaf { place, leaf }
}

fn call(parts: &Parts) -> CallPlace<'_> {
    let frames = parts.0.frames();
    let (node, leaf) = (Cow::Borrowed(&*parts.1), Cow::Borrowed(&*parts.3));
    CallPlace {
        frames,
        node,
        leaf,
        slot: parts.4,
        leaf_visit: parts.5,
        nth: parts.6.checked_sub(1).map(|n| n as usize),
    }
}

/// How ids were made before there were frames: those of the root frame stay what they are.
mod before {
    pub(super) fn path(id: &str, visit: u32) -> String {
        let id = id.replace('%', "%25").replace('/', "%2F").replace('~', "%7E");
        if visit > 1 { format!("{id}~{visit}") } else { id }
    }

    pub(super) fn effect(
        path: &str,
        name: &str,
        slot: Option<usize>,
        leaf_visit: u32,
        attempt: u32,
    ) -> String {
        match slot {
            None => format!("{path}/{name}/{leaf_visit}/{attempt}"),
            Some(slot) => format!("{path}/{name}.{slot}/{leaf_visit}/{attempt}"),
        }
    }

    pub(super) fn call(effect: &str) -> String {
        let (path, rest) = effect.split_once('/').unwrap();
        let id = path.split('~').next().unwrap();
        format!("{id}/{}", rest.rsplit_once('/').unwrap().0)
    }
}

proptest! {
    /// Whose effect it is can be told of an id without reading all of it.
    #[test]
    fn an_effect_is_of_its_own_node_only(parts in parts(), other in id(), deeper in step()) {
        let id = effect(&parts).id();
        let (node, rest) = (&*parts.1, parts.0.within(&id.0).unwrap());
        let plain = !node.contains(|c| "%/~[]#".contains(c));
        prop_assert!(!plain || EffectPlace::is_of(rest, node), "{rest} is of {node}");
        prop_assert!(other == node || !EffectPlace::is_of(rest, &other), "{rest} is not of {other}");
        let within = parts.0.with(&deeper);
        let id = effect(&(within, parts.1.clone(), parts.2, parts.3.clone(), parts.4, parts.5, parts.6)).id();
        let rest = parts.0.within(&id.0).unwrap();
        prop_assert!(!EffectPlace::is_of(rest, node) && !EffectPlace::is_of(rest, &deeper.node), "{rest}");
    }

    /// E-35: what is written is read again as what it was.
    #[test]
    fn ids_say_what_they_were_made_of(parts in parts()) {
        let effect = effect(&parts);
        let id = effect.id();
        prop_assert_eq!(id.to_string(), effect.to_string());
        prop_assert_eq!(id.place(), Some(effect.clone()));
        prop_assert_eq!(AskPlace::parse(&id.0), Some(AskPlace::Call(effect.clone())));
        let place = effect.place.to_string();
        prop_assert_eq!(Place::parse(&place), Some(effect.place.clone()));
        let (asked, called) = (ask(&parts).to_string(), call(&parts).to_string());
        prop_assert_eq!(AskPlace::parse(&asked), Some(ask(&parts)));
        prop_assert_eq!(AskPlace::parse_within(&parts.0, &asked), Some(ask(&parts)));
        prop_assert_eq!(AskPlace::parse_within(&parts.0, &id.0), Some(AskPlace::Call(effect.clone())));
        prop_assert_eq!(CallPlace::parse(&called), Some(call(&parts)));
    }

    #[test]
    fn frame_paths_say_what_they_were_made_of(steps in proptest::collection::vec(step(), 0..5)) {
        let frame = steps.iter().fold(FramePath::default(), |frame, step| frame.with(step));
        prop_assert_eq!(frame.to_string().parse(), Ok(frame.clone()));
        prop_assert_eq!(frame.frames().steps().collect::<Vec<_>>(), steps.clone());
        let json = serde_json::to_string(&frame).unwrap();
        prop_assert_eq!(serde_json::from_str::<FramePath>(&json).unwrap(), frame.clone());
        match (frame.parent(), steps.split_last()) {
            (Some((around, step)), Some((last, _))) => {
                prop_assert_eq!(&step, last);
                prop_assert_eq!(around.with(&step), frame.clone());
            }
            (parent, last) => prop_assert!(parent.is_none() && last.is_none() && frame.is_root()),
        }
    }

    /// E-35: different places have different ids; a question that is about no call never has that of an effect.
    #[test]
    fn ids_never_collide(all in proptest::collection::btree_set(parts(), 2..16)) {
        let effects: BTreeSet<_> = all.iter().map(effect).collect();
        let asks: BTreeSet<_> = all.iter().map(ask).collect();
        let calls: BTreeSet<_> = all.iter().map(call).collect();
        let texts: BTreeSet<String> =
            effects.iter().map(ToString::to_string).chain(asks.iter().map(ToString::to_string)).collect();
        prop_assert_eq!(texts.len(), effects.len() + asks.len());
        let texts: BTreeSet<String> = calls.iter().map(ToString::to_string).collect();
        prop_assert_eq!(texts.len(), calls.len());
    }

    /// Journals hold ids: those of the root frame are what they always were.
    #[test]
    fn ids_of_the_root_frame_stay(node in id(), leaf in "[a-z_]{1,8}", parts in parts()) {
        let parts = (FramePath::default(), node.clone(), parts.2, leaf.clone(), parts.4, parts.5, parts.6);
        let path = before::path(&node, parts.2);
        let effect = effect(&parts);
        let known = before::effect(&path, &leaf, parts.4, parts.5, parts.6);
        prop_assert_eq!(effect.to_string(), known.clone());
        prop_assert_eq!(effect.call().to_string(), before::call(&known));
        prop_assert_eq!(ask(&parts).to_string(), format!("{path}/{leaf}"));
    }

    /// One place has one text.
    #[test]
    fn what_is_read_is_written_as_it_was(text in "[a1/~#%.\\[\\] ]{0,14}", tail in "(/[a1]/1/1|/a|/0/2|)") {
        let text = text + &tail;
        if let Some(effect) = EffectPlace::parse(&text) {
            prop_assert_eq!(effect.to_string(), text.clone());
        }
        if let Some(ask) = AskPlace::parse(&text) {
            prop_assert_eq!(ask.to_string(), text.clone());
        }
        if let Some(call) = CallPlace::parse(&text) {
            prop_assert_eq!(call.to_string(), text.clone());
        }
        if let Some(frames) = FramePathRef::parse(&text) {
            let frame = frames.steps().fold(FramePath::default(), |frame, step| frame.with(&step));
            prop_assert_eq!(frame.to_string(), text);
        }
    }
}

#[test]
fn the_forms() {
    for (id, frames, node, visit) in [
        ("n1/model/1/1", "", "n1", 1),
        ("n1~2/tools.0/1/1", "", "n1", 2),
        ("odd%2F1/model/1/1", "", "odd/1", 1),
        ("odd%252F1/model/1/1", "", "odd%2F1", 1),
        ("a%7E2~3/model/1/1", "", "a~2", 3),
        ("each#3/model/1/1", "", "each#3", 1),
        ("/model/1/1", "", "", 1),
        ("each~1#3/n/model/1/1", "each~1#3", "n", 1),
        ("debate~2[pro]/sub~1/n~2/model/1/1", "debate~2[pro]/sub~1", "n", 2),
        ("a%5Bb%5D%23~1[]/%5B/model/1/1", "a%5Bb%5D%23~1[]", "[", 1),
    ] {
        let EffectPlace { place, .. } = EffectPlace::parse(id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!((place.frames.as_str(), &*place.node, place.visit), (frames, node, visit), "{id}");
    }
}

#[test]
fn texts_that_are_no_effects() {
    for text in [
        "",
        "n1",
        "n1/approve",
        "n1/model/1",
        "n1/model/1/",
        "n1/model/+1/1",
        "n1/model/01/1",
        "n1/model.x/1/1",
        "n1/model.0.1/1/1",
        "n1~1/model/1/1",
        "n1~02/model/1/1",
        "n1~2~3/model/1/1",
        "100%/model/1/1",
        "a%2f/model/1/1",
        "a%23/model/1/1",
        "a%é/model/1/1",
        "/n1/model/1/1",
        "each/n1/model/1/1",
        "each~0/n1/model/1/1",
        "each~1#/n1/model/1/1",
        "each~1[a/n1/model/1/1",
        "each~1[a]b/n1/model/1/1",
        "each~1/n#1/model/1/1",
        "n1/model/1/99999999999",
    ] {
        assert_eq!(EffectPlace::parse(text), None, "{text}");
    }
}

#[test]
fn a_map_by_frames_is_asked_with_a_part_of_an_id() {
    let frame: FramePath = "each~1#3".parse().unwrap();
    let known = std::collections::HashMap::from([(frame, 7)]);
    let effect = EffectPlace::parse("each~1#3/n/model/1/1").unwrap();
    assert_eq!(known.get(effect.place.frames.as_str()), Some(&7));
}
