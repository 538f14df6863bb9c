//! A coder's file becomes a version of the task's.

use super::bindings::said;
use super::place::{Changing, Task};
use super::texts::cut;
use crate::error::Error;
use crate::library::operations::Undone;
use crate::library::short;
use selvedge_engine::ToolDef;
use selvedge_engine::library::{Author, Command, Facts, Stage};
use selvedge_store::BlobHash;
use selvedge_tools::coder::file_of;
use selvedge_tools::{Drafted, ErrorClass, NotDrafted};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a reply that its author does not see again, and how many are shown of it.
const LONG: usize = 64 << 10;
const SHOWN: usize = 2 << 10;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    name: Arc<str>,
    /// A model's words, with the file in them.
    #[serde(default)]
    reply: Option<Value>,
    /// The file.
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    coder: Option<Arc<str>>,
    #[serde(default)]
    model: Option<Arc<str>>,
    #[serde(default)]
    request: Value,
    /// The version that it is to mend.
    #[serde(default)]
    replaces: Option<Arc<str>>,
    /// The versions whose work it is to do, each of them (V-08).
    #[serde(default)]
    members: Vec<Arc<str>>,
}

impl Given {
    /// Whether it is to take the place of others, once it has shown that it can.
    fn makes_another(&self) -> bool {
        self.replaces.is_some() || !self.members.is_empty()
    }
}

impl Given {
    /// The version whose file this is, if it is one of the members.
    fn member(&self, file: &str) -> Option<&Arc<str>> {
        let version = BlobHash::of(file.as_bytes()).to_string();
        self.members.iter().find(|member| ***member == *version)
    }

    fn is_long(&self) -> bool {
        matches!(&self.reply, Some(Value::String(reply)) if reply.len() > LONG)
    }
}

/// A file that is a tool and may be used here.
struct Valid {
    version: Arc<str>,
    text: Vec<u8>,
    facts: Facts,
    tool: Arc<ToolDef>,
}

/// Takes a coder's file in.
pub(super) async fn draft(task: Arc<Task>) -> Result<Value, Undone> {
    if let Some(answer) = task.answered().await? {
        return Ok(answer);
    }
    let given: Given = task.given()?;
    let file = match (&given.file, &given.reply) {
        (Some(file), _) => Ok(file.clone()),
        (None, Some(Value::String(reply))) => file_of(reply),
        _ => Err("nothing was written: write the whole tool, one Python file".to_owned()),
    };
    // One of those whose work it is to do may do the work of all: it is tried like any other file, under its own name (V-08).
    if let Some(member) = file.as_ref().ok().and_then(|file| given.member(file)) {
        return Ok(
            json!({"ok": true, "errors": [], "version": member, "tool": null, "long": given.is_long()}),
        );
    }
    let valid = match file {
        Ok(file) => validated(&task, &given.name, &file).await,
        Err(why) => Err(vec![why].into()),
    };
    match valid {
        Ok(valid) => task.once(move |changing| taken(changing, &given, &valid)).await,
        Err(NotDrafted::Unkept(error)) => Err(Error::from(error).into()),
        Err(NotDrafted::Wrong(mut errors)) => {
            errors.extend(excerpt(&given));
            Ok(refused(&given, &errors))
        }
    }
}

/// Of a reply that is too long to stand before its author again: what there is to be seen of it.
fn excerpt(given: &Given) -> Option<String> {
    let reply = given.reply.as_ref().and_then(Value::as_str).filter(|_| given.is_long())?;
    let shown = cut(reply, SHOWN);
    Some(format!(
        "your answer had {} bytes, and a tool is a short file; this is how it began and ended:\n{shown}",
        reply.len()
    ))
}

fn refused(given: &Given, errors: &[String]) -> Value {
    json!({"ok": false, "errors": errors, "version": null, "tool": null, "long": given.is_long()})
}

/// What a coder wrote for a tool of that name, examined as A-08 says and held against what is allowed in this run; or what is wrong
/// with it.
async fn validated(task: &Task, name: &Arc<str>, file: &str) -> Result<Valid, NotDrafted> {
    let Drafted { definition, facts } = task.bench.workshop.draft(name, file).await?;
    let tool = task.bench.workshop.of_library(name, &definition.version).await.map_err(|error| {
        if error.class == ErrorClass::State { NotDrafted::Unkept(error) } else { vec![said(&error)].into() }
    })?;
    Ok(Valid { version: Arc::clone(&tool.version), text: file.as_bytes().to_vec(), facts, tool })
}

/// The version is the task's; unless it is to mend another one, it is what its name means from here on.
fn taken(changing: &mut Changing<'_>, given: &Given, valid: &Valid) -> Result<Value, Error> {
    let Valid { version, facts, .. } = valid;
    let old = given.replaces.clone().or_else(|| changing.own(&given.name));
    if let Some(why) = no_merge(changing, given, valid)? {
        return Ok(refused(given, &[why]));
    }
    if given.replaces.as_ref() == Some(version) {
        let why = "this is the file that failed, unchanged: find out why it failed, and mend that".to_owned();
        return Ok(refused(given, &[why]));
    }
    let stage = changing.stage(version);
    if stage == Some(Stage::Enhanced) || given.makes_another() && stage == Some(Stage::Retired) {
        let why = format!(
            "this is version {} again, which was tried before and was not good enough: write another one",
            short(version)
        );
        return Ok(refused(given, &[why]));
    }
    if matches!(changing.stage(version), None | Some(Stage::Retired)) {
        let parents: Vec<Arc<str>> = match given.members.is_empty() {
            true => old
                .filter(|old| old != version && changing.library().version(old).is_some())
                .into_iter()
                .collect(),
            false => given.members.clone(),
        };
        changing.sure(Command::Draft {
            place: changing.place(),
            version: Arc::clone(version),
            name: Arc::clone(&given.name),
            author: Author::Coder { coder: given.coder.clone(), model: given.model.clone() },
            parents,
            members: Vec::new(),
            request: given.request.clone(),
        })?;
        changing.keep(valid.text.clone());
    }
    if changing.stage(version) == Some(Stage::Drafted) {
        let (place, version, facts) = (changing.place(), Arc::clone(version), facts.clone());
        changing.sure(Command::Validate { place, version, facts })?;
    }
    if !given.makes_another() {
        changing.bind(&given.name, version, false, "built anew")?;
    }
    Ok(json!({"ok": true, "errors": [], "version": version, "tool": *valid.tool, "long": given.is_long()}))
}

/// Why a file is no merge of the versions that it is to do the work of (V-09).
fn no_merge(changing: &Changing<'_>, given: &Given, valid: &Valid) -> Result<Option<String>, Error> {
    if given.members.is_empty() {
        return Ok(None);
    }
    let mut together = 0;
    for member in &given.members {
        together += changing.text(member)?.len();
    }
    let length = valid.text.len();
    Ok((length > together).then(|| {
        format!(
            "the file has {length} bytes, and all of them together have {together}: write what they have in common once, and no copies"
        )
    }))
}
