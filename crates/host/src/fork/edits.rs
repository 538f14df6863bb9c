//! Edited messages of a fork: which text or outcome a message came from (C-13).

use crate::error::Error;
use crate::ways::WayOut;
use selvedge_engine::{Body, EffectId, Event, Place};
use selvedge_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many events a message about a wrong number names.
const NAMED: usize = 12;

/// The edited messages of a fork.
#[derive(Default)]
pub(crate) struct Edits {
    /// Texts of the document: the event's number, the place, the new text.
    pub(crate) texts: Vec<(u64, Place, String)>,
    /// What models and tools said.
    pub(crate) outcomes: BTreeMap<EffectId, Arc<str>>,
    /// The earliest event at which one of these came in.
    first: Option<u64>,
}

/// A message that may be edited, or why it may not.
enum Message {
    Text(Place),
    Outcome(EffectId),
    Not(&'static str),
}

/// A journal as it is looked through for messages.
struct Messages<'s> {
    store: &'s Store,
    run: &'s str,
    events: u64,
    /// Where the texts of some events stand in the document.
    places: &'s BTreeMap<u64, Option<Place>>,
}

impl Edits {
    /// Looks up the messages that are to be edited, each with the number of its event, in the first `events` of a run; `places` are those of texts of the
    /// document, unless it is another one (`anew`).
    ///
    /// # Errors
    /// A number names no message, or one that can't be edited.
    pub(super) fn of(
        store: &Store,
        run: &str,
        events: u64,
        edited: &[(u64, String)],
        places: &BTreeMap<u64, Option<Place>>,
        anew: bool,
    ) -> Result<Self, Error> {
        let messages = Messages { store, run, events, places };
        let mut edits = Self::default();
        for (n, text) in edited {
            let n = *n;
            if !(1..=events).contains(&n) {
                let message = format!("run {run} has no event {n}: its last is {events}");
                return Err(Error::usage("C-13", "unknown-event", &message).help(&messages.listed()?));
            }
            match messages.get(n)? {
                Message::Text(place) if !anew => edits.texts.push((n, place, text.clone())),
                Message::Text(_) => {
                    let message = format!("event {n} is a text of the document, which `--document` replaces");
                    return Err(Error::usage("C-13", "not-editable", &message)
                        .help("edit the text in the new document"));
                }
                Message::Outcome(effect) => edits.outcome(&messages, n, effect, text)?,
                Message::Not(why) => {
                    let message = format!("event {n} of run {run} {why}");
                    return Err(Error::usage("C-13", "not-editable", &message).help(&messages.listed()?));
                }
            }
        }
        Ok(edits)
    }

    fn outcome(
        &mut self,
        messages: &Messages<'_>,
        n: u64,
        effect: EffectId,
        text: &str,
    ) -> Result<(), Error> {
        let Some((came, keeps_calls)) = messages.came(&effect)? else {
            let message =
                format!("the call of event {n} was not run: a limit, a schema or a person refused it");
            return Err(Error::usage("C-13", "not-editable", &message)
                .help("edit the reply that made the call, or what refused it"));
        };
        if text.trim().is_empty() && !keeps_calls {
            let message = format!("event {n} is a model's reply, and an empty one is asked for again");
            return Err(Error::usage("C-13", "not-editable", &message).help("give it a text"));
        }
        self.first = Some(self.first.map_or(came, |first| first.min(came)));
        self.outcomes.insert(effect, text.into());
        Ok(())
    }

    /// The last event that a fork at event `at` shares: none at or after the first edited outcome.
    pub(crate) fn last_shared(&self, at: u64) -> u64 {
        self.first.map_or(at, |first| at.min(first.saturating_sub(1)))
    }
}

impl Messages<'_> {
    fn get(&self, n: u64) -> Result<Message, Error> {
        Ok(match self.recorded_event(n)? {
            Some(Event::Appended { body: Body::Text(..), .. }) => {
                match self.places.get(&n).cloned().flatten() {
                    Some(Place::Shared) => Message::Not(
                        "is a text of the document that each iteration of a loop, or each path over a list, says: edit it in the \
                         document (`--document`)",
                    ),
                    Some(place) => Message::Text(place),
                    None => Message::Not("is a text without a place"),
                }
            }
            Some(Event::Appended { body: Body::Reply(effect) | Body::Output(effect), .. }) => {
                Message::Outcome(effect)
            }
            Some(Event::Appended { body: Body::Call(_), .. }) => Message::Not(
                "is the call of a tool that the document fixes: edit its arguments in the document",
            ),
            Some(Event::Published { .. }) => {
                Message::Not("is a result that was published: edit the message that it comes from")
            }
            _ => Message::Not("is no message"),
        })
    }

    fn recorded_event(&self, n: u64) -> Result<Option<Event>, Error> {
        let entry = self.store.journal(self.run, n)?.next().transpose()?;
        Ok(entry.and_then(|entry| selvedge_runtime::recorded(entry.json.as_bytes()).ok()))
    }

    /// The event at which an effect's outcome came, and whether it may do without a text: a tool's, or a reply
    /// with calls.
    fn came(&self, effect: &EffectId) -> Result<Option<(u64, bool)>, Error> {
        let name = serde_json::Value::from(&*effect.0).to_string();
        for entry in self.store.journal(self.run, 1)?.until(self.events) {
            let entry = entry?;
            // Cheaper than reading each event.
            if !entry.json.contains(&name) {
                continue;
            }
            match selvedge_runtime::recorded(entry.json.as_bytes()) {
                Ok(Event::Completed { effect: of, outcome, .. }) if of == *effect => {
                    let silent =
                        !matches!(&outcome, selvedge_engine::Outcome::Reply(reply) if reply.calls.is_empty());
                    return Ok(Some((entry.n, silent)));
                }
                Ok(Event::Reused { effect: of, from, .. }) if of == *effect => {
                    // The same outcome under another id; where it came from decides nothing about the place.
                    let silent = self.came(&from)?.is_none_or(|(_, silent)| silent);
                    return Ok(Some((entry.n, silent)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The events that are messages.
    fn listed(&self) -> Result<String, Error> {
        let mut numbers: Vec<String> = Vec::new();
        for entry in self.store.journal(self.run, 1)?.until(self.events) {
            let entry = entry?;
            let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
            let edits =
                matches!(&event, Some(Event::Appended { body, .. }) if !matches!(body, Body::Call(_)));
            if edits {
                numbers.push(entry.n.to_string());
            }
        }
        let more = if numbers.len() > NAMED { " …" } else { "" };
        numbers.truncate(NAMED);
        let numbers = numbers.join(", ");
        let list = WayOut::Events(self.run);
        Ok(format!("messages are the events {numbers}{more}; {list} lists them"))
    }
}
