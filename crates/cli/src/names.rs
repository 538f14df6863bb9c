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
