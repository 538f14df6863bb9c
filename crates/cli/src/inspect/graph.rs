//! `selvedge graph`: the compiled graph of a document, or of a run, as a drawing (C-13): threads as lanes, nodes in them, and an
//! arrow for everything that a node waits for or takes over, and for what happens to a step that fails. Of a workflow the paths,
//! loops and inner documents are the lanes, and the arrows are its edges.

mod dot;
mod drawing;
mod fates;
mod flow;
mod mermaid;
mod shapes;

use super::explain::statuses;
use super::{Found, guarded};
use crate::args::{Common, Reading};
use crate::block_on::block_on;
use crate::commands::check;
use crate::failure::Exit;
use crate::status::Words as _;
use crate::ui::Ui;
use clap::{Args, ValueEnum};
use selvedge_dialects::document::near_file;
use selvedge_engine::graph::Control;
use selvedge_host::{Checked, Error, Observer};
use serde_json::{Value, json};
use shapes::Drawing;
use std::path::{Path, PathBuf};

const GRAPH_HELP: &str = "\
Examples:
  selvedge graph plan.json
  selvedge graph plan.json --tools ./tools --format dot > plan.dot
  selvedge graph plans.json --plan report
  selvedge graph @ > run.mmd

Each thread is a lane. Thin arrows: what a node takes over from a thread or reads; thick ones: results sent to \
another thread (data_out); dashed ones: calls that keep their turn, and what stands in for a step that fails. In a workflow each path, \
loop and inner document is a lane, thick arrows end in the join or the end of the loop, and dashed ones are taken after an error. GitHub, GitLab and many editors draw Mermaid in \
Markdown; `dot -Tsvg plan.dot > plan.svg` draws DOT. Of a run, \
colours say which nodes ran, were reused, failed, run, ask a person, wait or were skipped. Exits with 2 if the document has errors.";

/// `selvedge graph`.
#[derive(Args, Debug)]
#[command(after_help = GRAPH_HELP)]
pub(crate) struct GraphArgs {
    /// The document, or a run: its id or enough of its beginning, @ for the latest
    #[arg(value_name = "FILE|RUN")]
    pub(crate) file: PathBuf,
    /// In which language
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// How it is read.
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// The languages of drawings. (Doc comments on them would make a long help of their own.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Mermaid,
    Dot,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Mermaid => "mermaid",
            Format::Dot => "dot",
        }
    }
}

/// Draws a document or a run.
pub(crate) fn graph(args: &GraphArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    if let Some(found) = run(&args.file, common, ui)? {
        return of_run(&found, args.format, &guarded(ui));
    }
    // Tools are known by their metadata.
    let check = check::of_documents(&args.reading, common, ui)?;
    let Checked { findings, graph } = block_on(0, check.document(&args.file))??;
    let Some(graph) = graph else {
        return Err(Error::findings(selvedge_host::prepare::findings::kind_of(&findings), findings));
    };
    let drawing = Drawing::new(&graph);
    if !ui.json {
        Observer::findings(ui, &findings);
    }
    print(&drawing, args.format, json!({"diagnostics": findings}), ui);
    Ok(Exit::Completed)
}

/// The run that is meant, if it is no file.
fn run(file: &Path, common: &Common, ui: &Ui) -> Result<Option<Found>, Error> {
    // A folder is no document, and may well have the name of a run.
    let Some(id) = file.to_str().filter(|_| !file.exists() || file.is_dir()) else { return Ok(None) };
    match Found::new(common, id, ui) {
        Ok(found) => Ok(Some(found)),
        Err(_) if file.is_dir() => Ok(None),
        // Whoever misspells a file is told about files.
        Err(_) if !id.starts_with('@') && id.contains(['.', '/', '\\']) => Ok(None),
        Err(failure) => {
            let first = failure.diagnostics.first().filter(|first| first.code == "unknown-run");
            let Some(first) = first.filter(|_| !id.starts_with('@')) else { return Err(failure) };
            let help = match near_file(file) {
                Some(near) => format!("did you mean `{near}`? Else {}", first.help),
                None => first.help.clone(),
            };
            Err(Error::about_file(
                id,
                "C-12",
                "file-not-found",
                "there is no such file, and no run of that name",
            )
            .help(&help))
        }
    }
}

/// Draws the graph that a run came to, with where its nodes stand.
fn of_run(found: &Found, format: Format, ui: &Ui) -> Result<Exit, Error> {
    let fates = statuses(found)?;
    let mut drawing = Drawing::new(&fates.graph);
    drawing.colour(&fates.nodes);
    let nodes = fates.graph.nodes.values().zip(&fates.nodes);
    let mut nodes: serde_json::Map<String, Value> =
        nodes.map(|(node, (fate, _))| (node.id.to_string(), fate.name().into())).collect();
    if !fates.graph.graphs.is_empty() {
        let (inner, untouched) = fates::inner(found)?;
        nodes.extend(inner.iter().map(|node| (node.name.clone(), node.status.name().into())));
        if fates.graph.control == Control::Flow {
            drawing.colour_inner(inner.into_iter().map(|node| (node.address, node.status)), untouched);
        }
    }
    print(&drawing, format, json!({"diagnostics": [], "run_id": found.run(), "nodes": nodes}), ui);
    Ok(Exit::Completed)
}

/// Prints a drawing; with `--json` as an object with `more` in it.
fn print(drawing: &Drawing, format: Format, more: Value, ui: &Ui) {
    let drawn = match format {
        Format::Mermaid => mermaid::draw(drawing),
        Format::Dot => dot::draw(drawing),
    };
    if ui.json {
        let mut object = json!({"format": format.name(), "graph": drawn});
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        return ui.result(&format!("{object}\n"));
    }
    let (arrows, size) = (drawing.arrows.len(), drawn.len());
    if format == Format::Mermaid && (arrows > mermaid::ARROWS || size > mermaid::CHARACTERS) {
        ui.note(&format!(
            "note: {arrows} arrows in {size} characters; viewers of Mermaid draw {} in {} unless their `maxEdges` and \
             `maxTextSize` are raised; `--format dot` has no such limit",
            mermaid::ARROWS,
            mermaid::CHARACTERS
        ));
    }
    ui.result(&drawn);
}

#[cfg(test)]
mod tests;
