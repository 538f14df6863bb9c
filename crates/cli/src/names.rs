//! What people are told that things in a run are (W-03).

use selvedge_engine::place::Place;
use selvedge_engine::{AskPlace, EffectId, State};
use std::borrow::Cow;

/// An effect: its id, in which its node is called as people are told that it is.
pub(crate) fn effect<'a>(state: &State, effect: &'a EffectId) -> Cow<'a, str> {
    call(state, &effect.0)
}

/// The same of the id of an effect or of an ask.
pub(crate) fn call<'a>(state: &State, id: &'a str) -> Cow<'a, str> {
    let Some(place) = AskPlace::parse(id).map(AskPlace::into_place).filter(|place| !place.frames.is_root())
    else {
        return Cow::Borrowed(id);
    };
    let (before, visit) = (place.to_string(), place.visit);
    let Some(rest) = id.strip_prefix(&*before) else { return Cow::Borrowed(id) };
    let name = Place { visit: 1, ..place }.to_string();
    let again = if visit > 1 { format!("~{visit}") } else { String::new() };
    Cow::Owned(format!("{}{again}{rest}", state.told_name(&name)))
}

/// The node that the id of an effect or an ask belongs to (E-35).
pub(crate) fn node_of(id: &str) -> Cow<'_, str> {
    AskPlace::parse(id).map_or(Cow::Borrowed(id), |ask| ask.into_place().node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_name_their_node() {
        for (effect, node) in [
            ("n1/ask/1/1", "n1"),
            ("n1~2/ask.0/1/1", "n1"),
            ("odd%2F1/ask/1/1", "odd/1"),
            ("odd%252F1/ask/1/1", "odd%2F1"),
            ("a%7E2~3/ask/1/1", "a~2"),
            ("a%7E2~3/approve", "a~2"),
            ("each~1#2/n1/ask/1/1", "n1"),
        ] {
            assert_eq!(node_of(effect), node);
        }
    }
}
