//! `selvedge schema`: the JSON Schema of a document, a script or a configuration file, for editors (C-11).

use crate::failure::Exit;
use crate::ui::Ui;
use clap::Args;
use selvedge_dialects::{Dialect, schema as dialect_schema};
use selvedge_host::Error;
use selvedge_host::text::or_meant;

const SCHEMA_HELP: &str = "\
Examples:
  selvedge schema plan > plan.schema.json
  selvedge schema config > selvedge.schema.json

A document whose first field is \"$schema\": \"./plan.schema.json\" then gets completion, descriptions and checks \
in editors that know JSON Schema; a script and a selvedge.toml name theirs in a comment, as the editor wants it. `selvedge check` finds more: what no schema can say.";

/// `selvedge schema`.
#[derive(Args, Debug)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaArgs {
    /// Of what: plan, steps, workflow or agent, a script of a scripted model, or config, selvedge.toml
    #[arg(value_name = "OF")]
    pub(crate) dialect: String,
}

/// Files that are no documents.
const FILES: [(&str, &str); 2] =
    [("script", include_str!("schema/script.json")), ("config", include_str!("schema/config.json"))];

/// What there are schemas of.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    dialect_schema::available().map(Dialect::name).chain(FILES.iter().map(|(name, _)| *name))
}

/// Prints a schema.
pub(crate) fn schema(args: &SchemaArgs, ui: &Ui) -> Result<Exit, Error> {
    let of_file = || FILES.iter().find(|(name, _)| *name == args.dialect).map(|(_, schema)| *schema);
    let Some(schema) = Dialect::from_name(&args.dialect).and_then(dialect_schema::of).or_else(of_file) else {
        let message = format!("there is no schema of `{}`", args.dialect);
        let names: Vec<&str> = names().collect();
        let known = format!("there are schemas of: {}", names.join(", "));
        let help = match args.dialect.as_str() {
            "task" | "tasks" | "step" => format!("a step task's is `selvedge schema steps`; {known}"),
            other => or_meant(other, &names, &known),
        };
        return Err(Error::usage("C-11", "unknown-dialect", &message).help(&help));
    };
    ui.result(schema);
    Ok(Exit::Completed)
}

#[cfg(test)]
mod tests;
