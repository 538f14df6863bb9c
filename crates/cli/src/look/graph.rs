//! `selvedge graph`: a document's compiled graph as a drawing (C-13): threads as lanes, nodes in them, and an
//! arrow for everything that a node waits for or takes over, and for what happens to a step that fails.

mod dot;
mod drawing;
mod mermaid;
mod shapes;

use crate::args::{Common, Reading};
use crate::commands::check::{self, Check};
use crate::failure::{Exit, Failure};
use crate::setup::block_on;
use crate::ui::Ui;
use clap::{Args, ValueEnum};
use selvedge_dialects::Diagnostic;
use selvedge_engine::Graph;
use serde_json::json;
use shapes::Drawing;
use std::path::PathBuf;

const GRAPH_HELP: &str = "\
Examples:
  selvedge graph plan.json
  selvedge graph plan.json --tools ./tools --format dot > plan.dot
  selvedge graph plans.json --plan report

Each thread is a lane. Thin arrows: what a node takes over from a thread or reads; thick ones: results sent to \
another thread (data_out); dashed ones: calls that keep their turn, and what stands in for a step that fails. GitHub, GitLab and many editors draw Mermaid in \
Markdown; `dot -Tsvg plan.dot > plan.svg` draws DOT. Exits with 2 if the document has errors.";

/// `selvedge graph`.
#[derive(Args, Debug)]
#[command(after_help = GRAPH_HELP)]
pub(crate) struct GraphArgs {
    /// The document
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

/// Draws a document.
pub(crate) fn graph(args: &GraphArgs, common: &Common, ui: &Ui) -> Result<Exit, Failure> {
    let (findings, graph) = compiled(args, common, ui)?;
    let Some(graph) = graph else { return Err(Failure::findings(check::exit_of(&findings), findings)) };
    let drawing = Drawing::new(&graph);
    let drawn = match args.format {
        Format::Mermaid => mermaid::draw(&drawing),
        Format::Dot => dot::draw(&drawing),
    };
    if ui.json {
        let object = json!({"format": args.format.name(), "graph": drawn, "diagnostics": findings});
        ui.result(&format!("{object}\n"));
        return Ok(Exit::Completed);
    }
    check::brief(&findings, ui);
    let (arrows, size) = (drawing.arrows.len(), drawn.len());
    if args.format == Format::Mermaid && (arrows > mermaid::ARROWS || size > mermaid::CHARACTERS) {
        ui.note(&format!(
            "note: {arrows} arrows in {size} characters; viewers of Mermaid draw {} in {} unless their `maxEdges` and \
             `maxTextSize` are raised; `--format dot` has no such limit",
            mermaid::ARROWS,
            mermaid::CHARACTERS
        ));
    }
    ui.result(&drawn);
    Ok(Exit::Completed)
}

/// The findings about the document, and its graph unless there are errors. Tools are known by their metadata.
fn compiled(args: &GraphArgs, common: &Common, ui: &Ui) -> Result<(Vec<Diagnostic>, Option<Graph>), Failure> {
    let check = Check::new(&args.reading, common, ui)?;
    block_on(0, check.one(&args.file))?
}

#[cfg(test)]
mod tests;
