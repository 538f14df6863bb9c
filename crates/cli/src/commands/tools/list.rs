//! `selvedge tools list` and `selvedge tools show`: what names mean here (A-22, C-15).

use super::args::{ListArgs, ShowArgs};
use super::history::{author, why};
use crate::args::Common;
use crate::block_on::block_on;
use crate::commands::check;
use crate::failure::Exit;
use crate::inspect::page::{BOLD, CYAN, DIM, GREEN, MAGENTA, Page, RED, Table, YELLOW};
use crate::ui::Ui;
use selvedge_engine::ToolDef;
use selvedge_engine::library::{Facts, Library, Stage, Version};
use selvedge_host::Environment;
use selvedge_host::library::{self, short};
use selvedge_host::report::lives;
use selvedge_host::tools::{Listed, effects, relative};
use selvedge_host::{Check, Error};
use selvedge_store::Store;
use selvedge_tools::Catalogue;
use selvedge_tools::library::LIBRARY;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Lists tools.
pub(super) fn list(args: &ListArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let check = check::of_tools(&args.from, common, ui)?;
    let ui = &ui.guarded_by(&check.config);
    let (store, library) = library::open(&check.state_dir)?;
    if let Some(run) = &args.run {
        return super::made::list(run, store.as_ref(), &library, ui);
    }
    let mut rows = block_on(0, async {
        let catalogue = check.catalogue(&[]).await?;
        for warning in catalogue.warnings() {
            ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), warning.message));
        }
        Ok::<_, Error>(Listed::all(&ui.environment, &catalogue, &library))
    })??;
    if args.all {
        let shown = |version: &&Version| !rows.iter().any(|row| row.version == version.hash);
        let others: Vec<Listed> = library.versions().filter(shown).map(Listed::unused).collect();
        rows.extend(others);
        rows.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if ui.json {
        let tools: Vec<Value> = rows.iter().map(Listed::json).collect();
        ui.result(&format!("{}\n", json!({ "tools": tools })));
        return Ok(Exit::Completed);
    }
    let mut table = Table::new(&["NAME", "STATE", "EFFECTS", "VERSION", "SOURCE", "DESCRIPTION"], 5);
    table.spare = vec![3, 1];
    for row in &rows {
        let state = row.state.unwrap_or_default();
        table.row([
            (row.name.to_string(), BOLD),
            (state.to_owned(), style(row.state)),
            (row.effects.map_or("undeclared", effects).to_owned(), ""),
            (short(&row.version).to_owned(), DIM),
            (row.source.to_string(), DIM),
            (row.description.to_string(), ""),
        ]);
    }
    let mut page = Page::new();
    page.table(&table);
    page.print(ui);
    Ok(Exit::Completed)
}

/// The style of a state.
pub(super) fn style(state: Option<&str>) -> &'static str {
    match state {
        Some("public") => GREEN,
        Some("private") => CYAN,
        Some("retired") => RED,
        Some("merged" | "enhanced") => MAGENTA,
        Some("rolled_back") => YELLOW,
        _ => DIM,
    }
}

/// Everything that is known of one tool.
struct Sheet {
    tool: ToolDef,
    metadata: Value,
    state: Option<&'static str>,
    code: Option<String>,
    /// The library's version, if it is one.
    version: Option<Version>,
}

/// Shows a tool.
pub(super) fn show(args: &ShowArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let check = check::of_tools(&args.from, common, ui)?;
    let (store, library) = library::open(&check.state_dir)?;
    let sheet = match &args.at {
        Some(prefix) => of_version(library::find(&library, &args.tool, prefix)?, &args.tool, store.as_ref())?,
        None => match block_on(0, of_name(&check, &library, &args.tool))?? {
            Some(sheet) => sheet,
            // One that only tasks have, or nobody any more.
            None => {
                let versions = library::of_name(&library, &args.tool)?;
                let last = versions.last().ok_or_else(|| Error::internal("a name without a version"))?;
                of_version(last, &args.tool, store.as_ref())?
            }
        },
    };
    let ui = ui.guarded_by(&check.config);
    if ui.json {
        ui.result(&format!("{}\n", sheet.object(args.code, &ui.environment)));
    } else {
        sheet.print(args.code, &ui);
    }
    Ok(Exit::Completed)
}

/// There is no tool of that name.
pub(super) fn unknown(catalogue: &Catalogue, name: &str) -> Error {
    let names: Vec<&str> = catalogue.names().map(|name| &**name).collect();
    let near = names.iter().find(|known| strsim::levenshtein(known, name) <= 2);
    let help = near.map(|near| format!("is `{near}` meant?"));
    Error::usage("A-22", "unknown-tool", &format!("there is no tool `{name}` here"))
        .help(&help.unwrap_or_else(|| "`selvedge tools list` lists the tools".to_owned()))
}

/// What a name means here; `None` where it means nothing, and the library has versions of that name all the same.
async fn of_name(check: &Check, library: &Library, name: &str) -> Result<Option<Sheet>, Error> {
    let catalogue = check.catalogue(&[name]).await?;
    catalogue.prepare(&[name]).await?;
    if !catalogue.contains(name) && library.versions().any(|version| *version.name == *name) {
        return Ok(None);
    }
    let tool = catalogue.def(name).ok_or_else(|| unknown(&catalogue, name))?;
    let shelved = if &*tool.source == LIBRARY { library.public(name) } else { None };
    let code = catalogue.text(&tool.version).await.map(|text| String::from_utf8_lossy(&text).into_owned());
    let metadata = catalogue.metadata(name).and_then(|metadata| serde_json::to_value(metadata).ok());
    Ok(Some(Sheet {
        metadata: metadata.unwrap_or_default(),
        state: shelved.map(|_| Stage::Public.name()),
        version: shelved.cloned(),
        tool: (*tool).clone(),
        code,
    }))
}

fn of_version(version: &Version, name: &str, store: Option<&Store>) -> Result<Sheet, Error> {
    let facts = version.facts.clone().unwrap_or_else(|| Arc::new(Facts::default()));
    let field = |name: &str| facts.metadata.get(name).cloned();
    let tool = ToolDef {
        name: name.into(),
        description: Arc::clone(&facts.description),
        input_schema: facts.input_schema.clone(),
        output_params: field("output_params").and_then(|names| serde_json::from_value(names).ok()),
        effects: facts.effects,
        version: Arc::clone(&version.hash),
        source: LIBRARY.into(),
        timeout_s: field("timeout").and_then(|seconds| seconds.as_f64()),
        approval: false,
    };
    let code = store.map(|store| library::text(store, &version.hash)).transpose()?;
    let (metadata, state) = (facts.metadata.clone(), Some(version.shown().stage.name()));
    Ok(Sheet { tool, metadata, state, code, version: Some(version.clone()) })
}

/// How many calls are recorded, and how many of them failed.
pub(super) fn counted(version: &Version) -> (usize, usize) {
    (version.calls.len(), version.calls.iter().filter(|call| !call.ok).count())
}

impl Sheet {
    fn object(&self, code: bool, environment: &Environment) -> Value {
        let tool = &self.tool;
        let mut object = json!({
            "name": tool.name,
            "version": tool.version,
            "source": relative(&tool.source, environment),
            "state": self.state,
            "effects": tool.effects.map(effects),
            "description": tool.description,
            "input_schema": tool.input_schema,
            "output_params": tool.output_params,
            "timeout_s": tool.timeout_s,
        });
        if let Some(fields) = object.as_object_mut() {
            for name in ["dependencies", "network", "read_paths", "write_paths", "env"] {
                if let Some(value) = self.metadata.get(name) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
            if let Some(version) = &self.version {
                let (calls, failing) = counted(version);
                fields.insert("calls".to_owned(), json!({"recorded": calls, "failing": failing}));
                fields.insert("author".to_owned(), json!(version.author));
                fields.insert("parents".to_owned(), json!(version.parents));
                fields.insert("request".to_owned(), version.request.clone());
                fields.insert("lives".to_owned(), lives(version).into());
            }
            if let Some(text) = self.code.as_ref().filter(|_| code) {
                fields.insert("code".to_owned(), text.as_str().into());
            }
        }
        object
    }

    fn print(&self, code: bool, ui: &Ui) {
        const INDENT: usize = 14;
        let tool = &self.tool;
        let mut page = Page::new();
        page.line(&page.paint(BOLD, &tool.name));
        let mut field = |label: &str, text: &str| {
            if !text.is_empty() {
                page.labelled(&format!("  {label}"), DIM, INDENT, text, 20);
            }
        };
        field("does", &tool.description);
        field("version", &tool.version);
        field("source", &relative(&tool.source, &ui.environment));
        field("state", self.state.unwrap_or_default());
        field("effects", tool.effects.map_or("undeclared: counts as write (E-22)", effects));
        field(
            "outputs",
            &tool.output_params.as_ref().map(|outputs| outputs.names().join(", ")).unwrap_or_default(),
        );
        let list = |name: &str| {
            let items = self.metadata.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        };
        field("needs", &list("dependencies"));
        field("reads", &list("read_paths"));
        field("writes", &list("write_paths"));
        field("variables", &list("env"));
        field("network", if self.metadata.get("network") == Some(&Value::Bool(true)) { "yes" } else { "" });
        field("time limit", &tool.timeout_s.map(|seconds| format!("{seconds} s")).unwrap_or_default());
        if let Some(version) = &self.version {
            let (calls, failing) = counted(version);
            field("by", &author(&version.author));
            field("why", &why(version));
            field(
                "made of",
                &version.parents.iter().map(|parent| short(parent)).collect::<Vec<_>>().join(", "),
            );
            let failed = if failing > 0 { format!(", {failing} of them failed") } else { String::new() };
            field("calls", &format!("{calls} recorded{failed}"));
        }
        page.line(&page.paint(DIM, "  input"));
        for line in inputs(&tool.input_schema) {
            page.line(&format!("    {line}"));
        }
        if let Some(text) = self.code.as_ref().filter(|_| code) {
            page.gap();
            text.lines().for_each(|line| page.line(&selvedge_host::text::harmless(line)));
        } else if code {
            page.gap();
            page.line("(no code: it is no Python file)");
        }
        page.print(ui);
    }
}

/// The fields of an input, a line each: name, type, default, what it is.
fn inputs(schema: &Value) -> Vec<String> {
    let none = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if fields.is_empty() {
        return vec!["(none)".to_owned()];
    }
    let width = fields.keys().map(String::len).max().unwrap_or_default().min(30);
    let line = |(name, field): (&String, &Value)| {
        let default = match (required.contains(&name.as_str()), field.get("default")) {
            (true, _) => ", required".to_owned(),
            (false, Some(default)) => format!(", default {default}"),
            (false, None) => String::new(),
        };
        let about = field.get("description").and_then(Value::as_str).map(|text| format!("  {text}"));
        let text = format!("{name:width$}  {}{default}{}", kind(field), about.unwrap_or_default());
        crate::inspect::page::clean(&text)
    };
    fields.iter().map(line).collect()
}

/// The type of a field in a word or two.
fn kind(field: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(kind) = field.get("type").and_then(text) {
        let items = field.get("items").filter(|_| kind == "array").map(kind_of_items);
        return items.map_or(kind, |items| format!("array of {items}"));
    }
    let either = field.get("anyOf").or_else(|| field.get("oneOf")).and_then(Value::as_array);
    if let Some(all) = either {
        return all.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let name = field.get("$ref").and_then(text).and_then(|path| Some(path.rsplit('/').next()?.to_owned()));
    name.or_else(|| field.get("enum").or_else(|| field.get("const")).map(ToString::to_string))
        .unwrap_or_else(|| "any".to_owned())
}

fn kind_of_items(items: &Value) -> String {
    kind(items)
}
