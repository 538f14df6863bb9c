//! The end of an attempt to mend a tool.

use super::bindings::library_tool;
use super::given::{Equal, Verdicts};
use super::place::{Changing, Task};
use super::replayed::Replayed;
use super::texts::cut;
use crate::error::Error;
use crate::library::operations::Undone;
use selvedge_engine::library::{Command, Stage};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest reason that the library keeps, in bytes.
const REASON: usize = 300;

/// What [`accept`] is given.
#[derive(Deserialize)]
struct Given {
    name: Arc<str>,
    version: Arc<str>,
    replaces: Arc<str>,
    #[serde(default)]
    replayed: Replayed,
    #[serde(default)]
    equal: Verdicts,
}

/// Takes a better version in, if it is one.
pub(super) async fn accept(task: Arc<Task>) -> Result<Value, Undone> {
    if let Some(answer) = task.answered().await? {
        return Ok(answer);
    }
    let given: Given = task.given()?;
    let mut errors = given.replayed.failing.clone();
    for (index, unsure) in given.replayed.unsure.iter().enumerate() {
        match given.equal.get::<Equal>(index) {
            Some(equal) if equal.equal => {}
            judged => {
                let nobody = || "nobody could say that they are equal".to_owned();
                let why = judged.map_or_else(nobody, |equal| equal.reason);
                errors
                    .push(format!("a call that worked gives something else now: {why}\n{}", unsure.question));
            }
        }
    }
    let tool = match errors.is_empty() {
        true => match library_tool(&task, &given.name, &given.version).await? {
            Ok(tool) => Some(tool),
            Err(why) => {
                errors.push(why);
                None
            }
        },
        false => None,
    };
    task.once(move |changing| match &tool {
        Some(tool) => {
            changing.has(&given.name, &given.replaces)?;
            changing.bind(&given.name, &given.version, true, "a call of it failed")?;
            Ok(json!({"accepted": true, "tool": **tool, "errors": []}))
        }
        None => {
            give_up(changing, &given.version, errors.first().map_or("", String::as_str))?;
            Ok(json!({"accepted": false, "tool": null, "errors": errors}))
        }
    })
    .await
}

/// An attempt that is no better is none of the task's tools.
fn give_up(changing: &mut Changing<'_>, version: &Arc<str>, why: &str) -> Result<(), Error> {
    if !matches!(changing.stage(version), Some(Stage::Drafted | Stage::Validated)) {
        return Ok(());
    }
    let reason = crate::text::one_line(why, REASON);
    changing.sure(Command::Retire { place: changing.place(), version: Arc::clone(version), reason })
}

/// What [`retire`] is given.
#[derive(Deserialize)]
struct Retiring {
    version: Arc<str>,
    #[serde(default)]
    reason: String,
}

/// A tool that could not be mended is not used any more by the task. What is everybody's stays so for others.
pub(super) async fn retire(task: Arc<Task>) -> Result<Value, Undone> {
    let Retiring { version, reason } = task.given()?;
    task.once(move |changing| {
        if changing.library().version(&version).is_none() {
            return Ok(json!({"retired": false}));
        }
        match changing.stage(&version) {
            Some(Stage::Drafted | Stage::Validated | Stage::Private) => {}
            Some(Stage::Retired | Stage::Enhanced) => return Ok(json!({"retired": false})),
            _ => changing.take_in(&version).map_err(|refusal| crate::library::refused(&refusal))?,
        }
        let reason = crate::text::one_line(&cut(&reason, 4 * REASON), REASON);
        changing.sure(Command::Retire { place: changing.place(), version: Arc::clone(&version), reason })?;
        Ok(json!({"retired": true}))
    })
    .await
}
