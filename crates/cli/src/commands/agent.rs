//! `selvedge agent`: a document of one query, which is in no file (C-16, A-25).

use crate::args::{AgentArgs, Common};
use crate::commands::tools::import::warm;
use crate::drive;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_engine::template::Template;
use selvedge_host::Error;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Runs an agent.
pub(crate) fn run(args: &AgentArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    if let Some(folder) = &args.library {
        warm(folder, &args.exec.from.grants, common, &ui)?;
    }
    let mut options = crate::options::for_run(&ui.environment, &args.exec)?;
    options.given = Some(document(args).to_string());
    let host = ui.host(common)?;
    let asked = host.read(Path::new("agent.json"), options, args.exec.run_id.as_deref())?;
    drive::begin(&host, asked, ui, |run, ui| ui.note(&format!("run {}", run.id)))
}

/// The document. What is written on a command line is no template.
fn document(args: &AgentArgs) -> Value {
    let mut document = Map::new();
    document.insert("query".to_owned(), json!(Template::exactly(&args.query).source()));
    document.extend(args.agent.fields());
    if args.no_publish {
        document.insert("publish".to_owned(), json!(false));
    }
    Value::Object(document)
}
