//! Edited messages of a fork: which text or outcome a message came from (C-13).

use super::forkable::Forkable;
use crate::error::Error;
use crate::ways::WayOut;
use selvedge_engine::{Body, EffectId, Event, Outcome, Place};
use selvedge_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many events a message about a wrong number names.
const NAMED: usize = 12;
/// Events that are looked at in one go, at first, and how many times as many each time after that.
const PAGE: u64 = 64;
const MORE: u64 = 4;

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

/// The messages that are to be edited, as the journal has them.
#[derive(Default)]
pub(super) struct Found {
    /// Texts of the document, with their events.
    texts: Vec<(u64, Event, String)>,
    edits: Edits,
}

/// A message that may be edited, or why it may not.
enum Message {
    Text(Event),
    Outcome(EffectId),
    Not(&'static str),
}

/// A journal as it is looked through for messages.
struct Messages<'s> {
    store: &'s Store,
    run: &'s str,
    events: u64,
}

impl Edits {
    /// The last event that a fork at event `at` shares: none at or after the first edited outcome.
    pub(crate) fn last_shared(&self, at: u64) -> u64 {
        self.first.map_or(at, |first| at.min(first.saturating_sub(1)))
    }
}

impl Found {
    /// Looks up the messages that are to be edited, each with the number of its event, in the first `events` of a run, whose document is another
    /// one if it begins `anew`.
    ///
    /// # Errors
    /// A number names no message, or one that can't be edited.
    pub(super) fn of(
        store: &Store,
        run: &str,
        events: u64,
        edited: &[(u64, String)],
        anew: bool,
    ) -> Result<Self, Error> {
        let messages = Messages { store, run, events };
        let mut found = Self::default();
        for (n, text) in edited {
            let n = *n;
            if !(1..=events).contains(&n) {
                let message = format!("run {run} has no event {n}: its last is {events}");
                return Err(Error::usage("C-13", "unknown-event", &message).help(&messages.listed(n)?));
            }
            match messages.get(n)? {
                Message::Text(event) if !anew => found.texts.push((n, event, text.clone())),
                Message::Text(_) => {
                    let message = format!("event {n} is a text of the document, which `--document` replaces");
                    return Err(Error::usage("C-13", "not-editable", &message)
                        .help("edit the text in the new document"));
                }
                Message::Outcome(effect) => found.outcome(&messages, n, effect, text)?,
                Message::Not(why) => return Err(messages.not_editable(n, why)),
            }
        }
        Ok(found)
    }

    fn outcome(
        &mut self,
        messages: &Messages<'_>,
        n: u64,
        effect: EffectId,
        text: &str,
    ) -> Result<(), Error> {
        let Some((came, keeps_calls)) = messages.came(&effect, n)? else {
            let message =
                format!("the call of event {n} was not run: a limit, a schema or a person refused it");
            return Err(Error::usage("C-13", "not-editable", &message)
                .help("edit the reply that made the call, or what refused it"));
        };
        if text.trim().is_empty() && !keeps_calls {
            let message = format!("event {n} is a model's reply, and an empty one is asked for again");
            return Err(Error::usage("C-13", "not-editable", &message).help("give it a text"));
        }
        let first = &mut self.edits.first;
        *first = Some(first.map_or(came, |first| first.min(came)));
        self.edits.outcomes.insert(effect, text.into());
        Ok(())
    }

    /// After which events the run has to be looked at, for a fork at event `at`: where texts of the document stand, which it then begins
    /// anew, and where it leaves the run.
    pub(super) fn moments(&self, at: u64) -> impl Iterator<Item = u64> {
        let leaves = if self.texts.is_empty() { self.edits.last_shared(at) } else { at };
        self.texts.iter().map(|(n, ..)| n.saturating_sub(1)).chain([leaves])
    }

    /// With where the texts stand in the document.
    ///
    /// # Errors
    /// A text stands where it can't be edited.
    pub(super) fn placed(self, run: &Forkable) -> Result<Edits, Error> {
        let mut edits = self.edits;
        for (n, event, text) in self.texts {
            let why = match run.state_at(n.saturating_sub(1))?.place_of(&event) {
                Some(Place::Shared) => {
                    "is a text of the document that each iteration of a loop, or each path over a list, says: edit it in the \
                     document (`--document`)"
                }
                Some(place) => {
                    edits.texts.push((n, place, text));
                    continue;
                }
                None => "is a text without a place",
            };
            let messages = Messages { store: &run.store, run: run.id(), events: run.events };
            return Err(messages.not_editable(n, why));
        }
        Ok(edits)
    }
}

impl Messages<'_> {
    fn get(&self, n: u64) -> Result<Message, Error> {
        let entry = self.store.journal(self.run, n)?.next().transpose()?;
        let event = entry.and_then(|entry| selvedge_runtime::recorded(entry.json.as_bytes()).ok());
        Ok(match event {
            Some(event @ Event::Appended { body: Body::Text(..), .. }) => Message::Text(event),
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

    fn not_editable(&self, n: u64, why: &str) -> Error {
        let message = format!("event {n} of run {} {why}", self.run);
        match self.listed(n) {
            Ok(listed) => Error::usage("C-13", "not-editable", &message).help(&listed),
            Err(error) => error,
        }
    }

    /// The event before event `n` at which an effect's outcome came, and whether it may do without a text: a tool's, or a reply
    /// with calls. Most came right before: it is looked for page by page, from there back.
    fn came(&self, effect: &EffectId, n: u64) -> Result<Option<(u64, bool)>, Error> {
        let name = serde_json::Value::from(&*effect.0).to_string();
        let (mut behind, mut page) = (n, PAGE);
        while behind > 1 {
            let first = behind.saturating_sub(page).max(1);
            let mut found = None;
            for entry in self.store.journal(self.run, first)?.until(behind - 1) {
                let entry = entry?;
                // Cheaper than reading each event.
                if !entry.json.contains(&name) {
                    continue;
                }
                match selvedge_runtime::recorded(entry.json.as_bytes()) {
                    Ok(Event::Completed { effect: of, outcome, .. }) if of == *effect => {
                        let silent = !matches!(&outcome, Outcome::Reply(reply) if reply.calls.is_empty());
                        found = Some((entry.n, silent, None));
                    }
                    Ok(Event::Reused { effect: of, from, .. }) if of == *effect => {
                        found = Some((entry.n, true, Some(from)));
                    }
                    _ => {}
                }
            }
            if let Some((came, silent, from)) = found {
                // The same outcome under another id; where it came from decides nothing about the place.
                let silent = match from {
                    Some(from) => self.came(&from, came)?.is_none_or(|(_, silent)| silent),
                    None => silent,
                };
                return Ok(Some((came, silent)));
            }
            (behind, page) = (first, page.saturating_mul(MORE));
        }
        Ok(None)
    }

    /// The events that are messages and nearest to event `n`.
    fn listed(&self, n: u64) -> Result<String, Error> {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in self.store.journal(self.run, 1)?.until(self.events) {
            let entry = entry?;
            let event: Option<Event> = selvedge_runtime::recorded(entry.json.as_bytes()).ok();
            let edits =
                matches!(&event, Some(Event::Appended { body, .. }) if !matches!(body, Body::Call(_)));
            if edits {
                numbers.push(entry.n);
            }
        }
        let all = numbers.len();
        numbers.sort_by_key(|message| message.abs_diff(n));
        numbers.truncate(NAMED);
        numbers.sort_unstable();
        let near = if all > NAMED { format!(" near event {n}") } else { String::new() };
        let numbers = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let list = WayOut::Events(self.run);
        Ok(format!("messages{near} are the events {numbers}; {list} lists them"))
    }
}
