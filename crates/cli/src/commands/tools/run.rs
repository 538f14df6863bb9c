//! `selvedge tools run`: one call, as a document would make it, recorded nowhere (C-15).

use super::args::RunArgs;
use super::list::unknown;
use crate::args::Common;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::output::plain;
use crate::printed::parts;
use crate::signals::Signals;
use crate::ui::Ui;
use crate::words::showing_tool;
use selvedge_dialects::{Diagnostics, Finding, Source, Span, json, unchecked_pattern};
use selvedge_engine::place::{EffectPlace, Place};
use selvedge_engine::schema::Schema;
use selvedge_engine::{Failure as CallFailure, Printed, ToolDef, ToolRequest};
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::ids::fresh_id;
use selvedge_host::options::RunOptions;
use selvedge_host::secrets;
use selvedge_host::text::{harmless, one_line};
use selvedge_http::Secrets;
use selvedge_runtime::CallContext;
use selvedge_tools::mcp::Wanted;
use selvedge_tools::{Catalogue, CatalogueErrors};
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

/// Things that are wrong with the arguments, of which a person is told.
const FINDINGS: usize = 20;
/// Lines of a traceback, and of each stream.
const PRINTED: usize = 500;

/// Runs a tool once.
pub(super) fn run(args: &RunArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let chosen = crate::options::for_run(&ui.environment, &args.exec())?;
    let host = ui.host(common)?;
    let config = host.config(&chosen)?;
    let ui = &ui.guarded();
    let source = written(args.args.as_deref().unwrap_or("{}"))?;
    let state_dir = host.state_dir()?;
    block_on(0, async {
        let signals = Signals::listen(ui);
        tokio::select! {
            biased;
            () = signals.came() => Err(Error::interrupted()),
            done = call(&args.tool, &source, &chosen, &config, &state_dir, ui) => {
                done.map_err(|failure| config.explained(failure))
            }
        }
    })?
}

/// The text of the arguments, under the name that findings about it have.
fn written(given: &str) -> Result<Source, Error> {
    let Some(file) = given.strip_prefix('@') else { return Ok(Source::new("--args", given)) };
    if file == "-" {
        let text = std::io::read_to_string(std::io::stdin());
        let text = text.map_err(|error| {
            let message = format!("`--args @-`: stdin can't be read: {error}");
            Error::usage("C-15", "bad-arguments", &message).help("hand it JSON in UTF-8")
        })?;
        return Ok(Source::new("stdin", &text));
    }
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::usage("C-12", "file-not-found", &format!("`--args @{file}` can't be read: {error}"))
            .help("name a file of JSON, or `@-` for stdin; relative paths start at the current folder")
    })?;
    Ok(Source::new(file, &text))
}

async fn call(
    name: &str,
    source: &Source,
    chosen: &RunOptions,
    config: &Config,
    state_dir: &Path,
    ui: &Ui,
) -> Result<Exit, Error> {
    let wanted = Wanted { names: [Arc::from(name)].into(), any: false };
    let here = ui.environment.absolute(Path::new("."));
    let catalogue =
        selvedge_host::tools::catalogue_of(wanted, chosen, config, state_dir, &here, &ui.observer()).await?;
    let tool = ready(&catalogue, name).await?;
    for warning in catalogue.isolation_warnings(&[name]).await {
        ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), one_line(&warning.message, 4000)));
    }
    let args = arguments(source, &tool, chosen, config, ui)?;
    let known = secrets::known(config);
    let tools = secrets::clean_tools(Arc::new(catalogue.clone()), &Secrets::new(&known));
    let timeout_s = chosen.timeout_s.map(|seconds| std::time::Duration::from_secs(seconds).as_secs_f64());
    // No two calls are the same one.
    let call = fresh_id();
    let place = Place::root(&call);
    let effect = EffectPlace { place, leaf: "call".into(), slot: None, leaf_visit: 1, attempt: 1 }.id();
    let request = ToolRequest { effect, node: "call".into(), tool: Arc::clone(&tool), args, timeout_s };
    let context = CallContext::of("tools-run");
    let printing = context.printing.clone();
    let outcome = tools.call(request, context).await;
    catalogue.close().await;
    Ok(told(&tool, outcome, printing.kept().as_deref(), ui))
}

/// The tool, with all that its call needs.
async fn ready(catalogue: &Catalogue, name: &str) -> Result<Arc<ToolDef>, Error> {
    catalogue.prepare(&[name]).await?;
    if let Some(refusal) = catalogue.refusal(name) {
        return Err(CatalogueErrors(vec![refusal]).into());
    }
    catalogue.def(name).ok_or_else(|| unknown(catalogue, name))
}

/// The arguments, if the tool's schema takes them (D-15).
fn arguments(
    source: &Source,
    tool: &ToolDef,
    chosen: &RunOptions,
    config: &Config,
    ui: &Ui,
) -> Result<Value, Error> {
    let limits = config.limits.document();
    let mut found = Diagnostics::new();
    let node = json::parse_exactly(source, &limits, &mut found);
    if let Some(node) = &node
        && !found.has_errors()
    {
        let value = node.to_value();
        let mut refused = |span: Span, why: &str| {
            let message = format!("the tool `{}` refuses these arguments: {why}", tool.name);
            let help = format!("`{}` shows what it takes", showing_tool(&tool.name, &chosen.tools));
            found.push(Finding::error("D-15", "arguments-refused", span, message).help(help));
        };
        let schema = Schema::new(&tool.input_schema, limits.schema_steps);
        for part in schema.iter().flat_map(Schema::unchecked) {
            let message = unchecked_pattern(&tool.name, part);
            ui.note(&format!("{}: {}", ui.paint("1;33", "warning"), one_line(&message, 4000)));
        }
        let violations = schema.map(|schema| schema.violations(&value, FINDINGS));
        match violations {
            _ if !value.is_object() => refused(node.span, "they are no JSON object"),
            Ok(Ok(violations)) => {
                for violation in violations {
                    let place = node.at(&violation.place).unwrap_or(node);
                    refused(place.span, &one_line(&violation.message, 300));
                }
            }
            Ok(Err(excess)) => refused(node.span, &format!("to hold them against its schema {excess}")),
            Err(unusable) => refused(node.span, &format!("its schema can't be used: {unusable}")),
        }
        if !found.has_errors() {
            return Ok(value);
        }
    }
    let mut report = found.report(source);
    for finding in &mut report {
        // They are read as documents are, and are none.
        finding.message = finding.message.replace("the document", "the JSON");
        if finding.code == "empty-document" {
            finding.help = "write an object, or leave `--args` out for {}".to_owned();
        }
    }
    Err(Error::findings(selvedge_host::ErrorKind::Usage, report))
}

/// Prints what came of it: the output on stdout, the rest on stderr; or one object.
fn told(tool: &ToolDef, outcome: Result<Value, CallFailure>, printed: Option<&Printed>, ui: &Ui) -> Exit {
    let exit = if outcome.is_ok() { Exit::Completed } else { Exit::Failed };
    if ui.json {
        let mut object = Map::new();
        object.insert("tool".to_owned(), json!(tool.name));
        object.insert("version".to_owned(), json!(tool.version));
        match outcome {
            Ok(output) => object.insert("output".to_owned(), output),
            Err(failure) => object.insert("fault".to_owned(), json!(failure.fault)),
        };
        printed.map(|printed| object.insert("printed".to_owned(), json!(printed)));
        ui.result(&format!("{}\n", Value::Object(object)));
        return exit;
    }
    match outcome {
        Ok(output) => {
            if !ui.quiet {
                ui.notice_parts("", &parts(None, printed, PRINTED));
            }
            let text = plain(&output);
            ui.result(&if std::io::stdout().is_terminal() { harmless(&text) } else { text });
        }
        Err(CallFailure { fault, .. }) => {
            let label = ui.paint("1;31", &format!("error[{}]", fault.kind.name()));
            ui.notice(&format!("{label}: {}", one_line(&fault.message, 4000)));
            ui.notice_parts("  ", &parts(Some(&fault), printed, PRINTED));
        }
    }
    exit
}
