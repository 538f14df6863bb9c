//! A coder's file becomes a version of the task's.

use super::bindings::{library_tool, said};
use super::place::{Changing, Task, environment};
use crate::error::Error;
use crate::library::{self, short};
use crate::secrets;
use selvedge_engine::library::{Author, Command, Facts, Stage};
use selvedge_engine::{Failure, ToolDef};
use selvedge_tools::coder::{file_of, of_size};
use selvedge_tools::examine::examine;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

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
}

/// A file that is a tool and may be used here.
struct Valid {
    version: Arc<str>,
    text: Vec<u8>,
    facts: Facts,
    tool: Arc<ToolDef>,
}

/// Takes a coder's file in.
pub(super) async fn draft(task: Arc<Task>) -> Result<Value, Failure> {
    if let Some(answer) = task.answered().await? {
        return Ok(answer);
    }
    let given: Given = task.given()?;
    let file = match (&given.file, &given.reply) {
        (Some(file), _) => of_size(file).map(|()| file.clone()),
        (None, Some(Value::String(reply))) => file_of(reply),
        _ => Err("nothing was written: write the whole tool, one Python file".to_owned()),
    };
    let valid = match file {
        Ok(file) => validated(&task, &given.name, &file).await?,
        Err(why) => Err(vec![why]),
    };
    match valid {
        Ok(valid) => task.once(move |changing| taken(changing, &given, &valid)).await,
        Err(errors) => Ok(refused(&errors)),
    }
}

fn refused(errors: &[String]) -> Value {
    json!({"ok": false, "errors": errors, "version": null, "tool": null})
}

/// What a coder wrote for a tool of that name, examined as A-08 says and held against what is allowed in this run; or what is wrong
/// with it, in words for the coder.
async fn validated(task: &Task, name: &Arc<str>, file: &str) -> Result<Result<Valid, Vec<String>>, Failure> {
    let bench = &task.bench;
    let known = secrets::named(&bench.config);
    if let Err(error) = secrets::refuse_tool(&known, "text", name, file) {
        return Ok(Err(error.diagnostics.into_iter().map(|found| found.message).collect()));
    }
    let unwritable = |error: std::io::Error| environment(&format!("a file can't be looked at: {error}"));
    let folder = tempfile::Builder::new().prefix("selvedge-draft-").tempdir().map_err(unwritable)?;
    let path = folder.path().join(format!("{name}.py"));
    std::fs::write(&path, file).map_err(unwritable)?;
    let mut examined = match examine(bench.catalogue.config(), vec![path]).await {
        Ok(examined) => examined,
        Err(errors) => return Ok(Err(errors.0.iter().map(said).collect())),
    };
    let Some(found) = examined.pop() else {
        return Ok(Err(vec!["this is no tool: it has no `__TOOL_META__`".to_owned()]));
    };
    if *found.metadata.name != **name {
        let own = &found.metadata.name;
        let message = format!("`name` in __TOOL_META__ is \"{own}\": it has to be \"{name}\", as was asked for");
        return Ok(Err(vec![message]));
    }
    Ok(match library_tool(task, name, &found.version).await {
        Ok(tool) => {
            let facts = library::facts(&found);
            Ok(Valid { version: found.version, text: found.text, facts, tool })
        }
        Err(why) => Err(vec![why]),
    })
}

/// The version is the task's; unless it is to mend another one, it is what its name means from here on.
fn taken(changing: &mut Changing<'_>, given: &Given, valid: &Valid) -> Result<Value, Error> {
    let Valid { version, facts, .. } = valid;
    let old = given.replaces.clone().or_else(|| changing.own(&given.name));
    if given.replaces.as_ref() == Some(version) {
        let why = "this is the file that failed, unchanged: find out why it failed, and mend that".to_owned();
        return Ok(refused(&[why]));
    }
    let again = matches!(changing.stage(version), Some(Stage::Retired | Stage::Enhanced));
    if given.replaces.is_some() && again {
        let why = format!(
            "this is version {} again, which was tried before and was not good enough: write another one",
            short(version)
        );
        return Ok(refused(&[why]));
    }
    if matches!(changing.stage(version), None | Some(Stage::Retired)) {
        let parents: Vec<Arc<str>> =
            old.filter(|old| old != version && changing.library().version(old).is_some()).into_iter().collect();
        changing.sure(Command::Draft {
            place: changing.place(),
            version: Arc::clone(version),
            name: Arc::clone(&given.name),
            author: Author::Coder { coder: given.coder.clone(), model: given.model.clone() },
            parents,
            request: given.request.clone(),
        })?;
        changing.keep(valid.text.clone());
    }
    if changing.stage(version) == Some(Stage::Drafted) {
        let (place, version, facts) = (changing.place(), Arc::clone(version), facts.clone());
        changing.sure(Command::Validate { place, version, facts })?;
    }
    if given.replaces.is_none() {
        changing.bind(&given.name, version, false, "built anew")?;
    }
    Ok(json!({"ok": true, "errors": [], "version": version, "tool": *valid.tool}))
}
