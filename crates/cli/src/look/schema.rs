//! `selvedge schema`: the JSON Schema of a document, for editors (C-11).

use crate::failure::{Exit, Failure};
use crate::ui::Ui;
use clap::Args;
use selvedge_dialects::{Dialect, schema as dialect_schema};

const SCHEMA_HELP: &str = "\
Example:
  selvedge schema plan > plan.schema.json

A document whose first field is \"$schema\": \"./plan.schema.json\" then gets completion, descriptions and checks \
in editors that know JSON Schema. `selvedge check` finds more: what no schema can say.";

/// `selvedge schema`.
#[derive(Args, Debug)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaArgs {
    /// The dialect of the document: plan or steps
    pub(crate) dialect: String,
}

/// Prints a schema.
pub(crate) fn schema(args: &SchemaArgs, ui: &Ui) -> Result<Exit, Failure> {
    let Some(schema) = Dialect::from_name(&args.dialect).and_then(dialect_schema::of) else {
        let available: Vec<&str> = dialect_schema::available().map(Dialect::name).collect();
        let message = format!("there is no schema of a dialect `{}`", args.dialect);
        let help = format!("there are schemas of: {}", available.join(", "));
        return Err(Failure::usage("C-11", "unknown-dialect", &message).help(&help));
    };
    ui.result(schema);
    Ok(Exit::Completed)
}
