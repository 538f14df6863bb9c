//! From a document to what a run needs and can fail: read, tools and models found, compiled. Cheapest first, so that nothing
//! half-runs.

pub mod findings;
pub mod naming;

use crate::config::Config;
use crate::error::{Error, ErrorKind, NOT_TRUSTED, tool_diagnostic};
use crate::models::{self, Models};
use crate::observer::Observer;
use crate::options::RunOptions;
use crate::text::one_line;
use crate::tools::{self, Known, Pins};
use crate::{compose, places, secrets};
use naming::Naming;
use selvedge_dialects::ToolSource;
use selvedge_dialects::compile::{self, Document};
use selvedge_dialects::{Capabilities, Diagnostic, Diagnostics, Dialect, DocumentLimits, Finding, Source};
use selvedge_engine::{Budget, Graph, ToolDef, Warning};
use selvedge_tools::{Catalogue, ErrorClass, Offer, ToolError};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A document that was read and found to be right by itself.
pub struct Read {
    source: Source,
    document: Document,
    initial: Map<String, Value>,
    diagnostics: Diagnostics,
}

impl Read {
    /// Bytes of the document.
    pub fn bytes(&self) -> usize {
        self.source.text().len()
    }

    /// The document, and the other files that it names.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        std::iter::once(&self.source).chain(self.document.others())
    }
}

/// Everything that a run needs and that can fail.
pub struct Prepared {
    /// What the document lowers to.
    pub graph: Arc<Graph>,
    /// Its tools.
    pub catalogue: Catalogue,
    /// Its models.
    pub models: Models,
    /// What the checker and the catalogue said.
    pub warnings: Vec<Warning>,
    /// The values of its metadata.
    pub initial: Map<String, Value>,
    /// The run's name, for people.
    pub name: String,
    /// The document's dialect.
    pub dialect: &'static str,
    /// The document's own caps.
    pub budget: Budget,
}

/// A run's caps: options over the document's over the configuration's (E-20).
pub fn budget(document: Budget, chosen: &RunOptions, config: &Config) -> Budget {
    let by_rank = [chosen.budget, document, config.budget];
    Budget {
        calls: by_rank.iter().find_map(|budget| budget.calls),
        tokens: by_rank.iter().find_map(|budget| budget.tokens),
        cost: by_rank.iter().find_map(|budget| budget.cost),
    }
}

/// The text of a document: of the file, unless it was given where it is in no file.
pub(crate) fn source(
    file: &Path,
    chosen: &RunOptions,
    limits: &DocumentLimits,
) -> Result<Source, Box<Diagnostic>> {
    match chosen.given.clone() {
        Some(text) => {
            let name = file.file_stem().map_or("document".into(), |stem| stem.to_string_lossy());
            selvedge_dialects::document::load(&name, text.into_bytes(), limits)
        }
        None => selvedge_dialects::document::read_file(file, limits),
    }
}

/// Reads the document and its inputs (P-23). `written` are the names of those that this command gives.
pub fn read(
    file: &Path,
    chosen: &mut RunOptions,
    config: &Config,
    written: &[String],
) -> Result<Read, Error> {
    let limits = config.limits.document();
    let source = source(file, chosen, &limits)
        .map_err(|diagnostic| Error::findings(ErrorKind::Usage, vec![*diagnostic]))?;
    secrets::refuse_document(&secrets::named(config), &source, &limits)?;
    let mut diagnostics = Diagnostics::new();
    let choice = findings::choice(chosen.plan.as_deref(), chosen.dialect.as_deref())?;
    let document = compile::read(&source, choice, &limits, &mut diagnostics);
    for other in document.iter().flat_map(|document| document.others()) {
        secrets::refuse_document(&secrets::named(config), other, &limits)?;
    }
    let Some(document) = document.filter(|_| !diagnostics.has_errors()) else {
        return Err(Error::findings(ErrorKind::Usage, diagnostics.report(&source)));
    };
    document.head().unknown_inputs(written.iter(), &mut diagnostics);
    chosen.read_inputs(Some(document.head()))?;
    secrets::refuse_inputs(&secrets::named_with(config, chosen.base_url.as_deref()), &chosen.inputs)?;
    let initial = document.inputs(&chosen.inputs, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(Error::findings(ErrorKind::Usage, diagnostics.report(&source)));
    }
    Ok(Read { source, document, initial, diagnostics })
}

/// Finds tools and models and compiles the document. Tools of `pins` stand in for those that are nowhere else.
pub async fn prepare(
    read: Read,
    pins: &Pins,
    chosen: &mut RunOptions,
    config: &Config,
    state_dir: &Path,
    observer: &Arc<dyn Observer>,
) -> Result<Prepared, Error> {
    let workspace = places::workspace(&config.environment, &chosen.document);
    let mut capabilities = compose::capabilities(&read.document, chosen, config);
    let wanted = tools::wanted(&read.document, &capabilities);
    let catalogue = tools::catalogue_of(wanted, chosen, config, state_dir, &workspace, observer).await?;
    let names = read.document.tools();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let places = Naming::of_tools(&read.source, config.limits.document());
    whole(&read.source, &catalogue, &names, &places)?;
    let mut refused = read.refused(findings::overdeclared(&read.document.tools(), &catalogue, &places));
    // A wrong document is wrong whatever models there are: it is told before they are looked for. Schemas of
    // Python tools may not be known yet; then a sketch of them stands in, and the real ones are checked below.
    let known = names.iter().all(|name| !catalogue.contains(name) || catalogue.def(name).is_some());
    let sketched = !known || capabilities.model;
    let (before, with_model) = (told(&catalogue), capabilities.model);
    let tools = Known { catalogue: &catalogue, pins, environment: &config.environment };
    let compiled = compiled(&read, &tools, &capabilities);
    if let (Ok((graph, _)), false) = (&compiled, refused.is_empty()) {
        // All that is not allowed at once.
        refused.extend(read.denied(graph, &catalogue, config));
        refused.sort_by_key(|found| (found.line, found.column));
    }
    // A tool that is not there may be the one whose file is wrong: that is said first.
    let compiled =
        compiled.map_err(|failure| failure.behind(tools::broken(&catalogue, names.iter().copied()).0));
    let compiled = match compiled {
        Ok(_) if !refused.is_empty() => return Err(Error::findings(findings::kind_of(&refused), refused)),
        Err(failure) => return Err(failure.and(refused)),
        Ok(compiled) => compiled,
    };
    let (models, roles) = find_models(&read, &mut capabilities, chosen, config, observer).await?;
    catalogue.prepare(&names).await?;
    let plans = !read.document.models().is_empty();
    if capabilities.model || plans && read.document.dialect() == Dialect::Steps {
        // Who plans is told all schemas (D-21); who is only asked if a step fails may never be asked (D-17).
        let offer = if plans { Offer::Whole } else { Offer::Light };
        let others = catalogue.offered().into_iter().filter(|name| !names.contains(&&**name));
        tools::offer(&catalogue, others.collect(), offer, observer.as_ref()).await;
    }
    // The compiler is asked again only where it would be told something else.
    let same = !sketched || capabilities.model == with_model && told(&catalogue) == before;
    let (graph, diagnostics) = if same { compiled } else { self::compiled(&read, &tools, &capabilities)? };
    read.allowed(&graph, &catalogue, config)?;
    let mut warnings = findings::warnings(&diagnostics.report(&read.source), &graph);
    let mut others = catalogue.warnings().to_vec();
    let callable: Vec<&str> = graph.tools.keys().map(|name| &**name).collect();
    others.extend(catalogue.isolation_warnings(&callable).await);
    others.extend(models.unsent(&graph));
    if budget(read.document.budget(), chosen, config).cost.is_some() {
        others.extend(models::unpriced(chosen, config, &roles));
    }
    once(&mut others);
    observer.findings(&diagnostics.report(&read.source));
    others.iter().for_each(|warning| observer.warning(&one_line(&warning.message, 4000)));
    warnings.extend(others);
    // It was said when the configuration was read.
    warnings.extend(config.untrusted_warning());
    let document = &read.document;
    let stem = || chosen.document.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = document.name().map(str::to_owned).or_else(stem).unwrap_or_default();
    let (dialect, budget) = (document.dialect().name(), document.budget());
    let initial = read.initial;
    Ok(Prepared { graph: Arc::new(graph), catalogue, models, warnings, initial, name, dialect, budget })
}

/// The models of the roles that the document can't do without, and, unless `capabilities` says otherwise, of those that it can
/// do without (D-17): where those can't be had, it runs as without a model. With the roles that are played.
async fn find_models(
    read: &Read,
    capabilities: &mut Capabilities,
    chosen: &mut RunOptions,
    config: &Config,
    observer: &Arc<dyn Observer>,
) -> Result<(Models, Vec<Arc<str>>), Error> {
    let needed = read.document.models();
    let mut roles = needed.clone();
    if capabilities.model {
        roles.extend(
            read.document.optional_models(capabilities).into_iter().filter(|role| !needed.contains(role)),
        );
    }
    let failure = match models::prepare(chosen, config, &roles, config.environment.http()).await {
        Ok(models) => return Ok((models, roles)),
        Err(failure) => failure,
    };
    if !needed.is_empty() || !capabilities.model {
        return Err(read.placed(failure, chosen, config, &roles));
    }
    capabilities.model = false;
    let models = models::prepare(chosen, config, &needed, config.environment.http()).await?;
    let why = failure.diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
    observer.note(&format!("note: no model can be asked when a step fails: {}", one_line(why, 1000)));
    Ok((models, needed))
}

/// What a catalogue tells a compiler of its tools: their definitions as far as they are known, and which can be chosen.
fn told(catalogue: &Catalogue) -> (Vec<Option<Arc<ToolDef>>>, Vec<Arc<str>>) {
    (catalogue.names().map(|name| catalogue.sketch(name)).collect(), catalogue.offered())
}

/// Leaves out what has been said about a node before; a model node may hold the same request several times.
fn once(warnings: &mut Vec<Warning>) {
    let mut seen = BTreeSet::new();
    warnings.retain(|warning| {
        let about = warning.node.as_deref().unwrap_or(&warning.message);
        seen.insert((warning.code.to_string(), warning.node.is_some(), about.to_owned()))
    });
}

impl Read {
    /// Refuses fixed calls of built-ins that can only be denied, with the places of their names.
    fn allowed(&self, graph: &Graph, catalogue: &Catalogue, config: &Config) -> Result<(), Error> {
        let refused = self.denied(graph, catalogue, config);
        if refused.is_empty() { Ok(()) } else { Err(Error::findings(ErrorKind::Usage, refused)) }
    }

    /// What is said of fixed calls of built-ins that can only be denied.
    fn denied(&self, graph: &Graph, catalogue: &Catalogue, config: &Config) -> Vec<Diagnostic> {
        self.refused(findings::not_allowed(
            graph,
            catalogue,
            &Naming::of_tools(&self.source, config.limits.document()),
        ))
    }

    /// Findings about tools that are not allowed, with their places in the document as far as they are known.
    fn refused(&self, (placed, unplaced): (Vec<Finding>, Vec<ToolError>)) -> Vec<Diagnostic> {
        let mut found = Diagnostics::new();
        placed.into_iter().for_each(|finding| found.push(finding));
        let mut refused = found.report(&self.source);
        refused.extend(unplaced.into_iter().map(tool_diagnostic));
        refused
    }

    /// A failure about a role that no model plays, or whose model is not trusted, at the place in the document that names the role (C-08, C-20).
    fn placed(&self, failure: Error, chosen: &RunOptions, config: &Config, roles: &[Arc<str>]) -> Error {
        let Some(first) = failure.diagnostics.first() else { return failure };
        let role = match first.code {
            "no-model-for-role" => models::unplayed(chosen, config, roles),
            NOT_TRUSTED => models::untrusted(chosen, config, roles),
            _ => None,
        };
        let places = Naming::of_models(&self.source, config.limits.document());
        let Some(span) = role.and_then(|role| places.of(&role).first().copied()) else { return failure };
        let finding = Finding::error(first.rule, first.code, span, first.message.as_str());
        let mut found = Diagnostics::new();
        found.push(finding.help(first.help.as_str()));
        Error::findings(failure.kind, found.report(&self.source))
    }
}

/// Refuses tools whose files are wrong. An error that is in no file has the place at which the document names the tool.
fn whole(source: &Source, catalogue: &Catalogue, names: &[&str], places: &Naming<'_>) -> Result<(), Error> {
    let broken = names.iter().filter_map(|name| Some((*name, catalogue.broken().get(*name)?.clone())));
    let mut broken: Vec<(&str, ToolError)> = broken.collect();
    // Those that are wrong in the document are told at their places by the compiler (C-04).
    let by_compiler = |error: &ToolError| error.file.is_none() && error.class == ErrorClass::Document;
    if broken.iter().any(|(_, error)| by_compiler(error)) {
        broken.retain(|(_, error)| error.file.is_some());
    }
    // A server that does not start is told once, not for each of its tools.
    broken.dedup_by(|(_, a), (_, b)| a.message == b.message);
    if broken.is_empty() {
        return Ok(());
    }
    // An MCP server that does not start is no error of the document (C-03).
    let (names, errors): (Vec<&str>, Vec<ToolError>) = broken.into_iter().unzip();
    let mut failure = Error::from(selvedge_tools::CatalogueErrors(errors));
    for (diagnostic, name) in failure.diagnostics.iter_mut().zip(names) {
        let Some(span) = places.of(name).first().filter(|_| diagnostic.file.is_empty()) else { continue };
        let finding = Finding::error(diagnostic.rule, diagnostic.code, *span, diagnostic.message.as_str());
        let mut found = Diagnostics::new();
        found.push(finding.help(diagnostic.help.as_str()));
        if let Some(placed) = found.report(source).pop() {
            *diagnostic = placed;
        }
    }
    Err(failure)
}

/// Compiles the document with these tools; the findings are those of reading and of compiling.
fn compiled(
    read: &Read,
    tools: &dyn ToolSource,
    capabilities: &Capabilities,
) -> Result<(Graph, Diagnostics), Error> {
    let mut diagnostics = read.diagnostics.clone();
    match read.document.compile(tools, &read.initial, capabilities, &mut diagnostics) {
        Some(graph) if !diagnostics.has_errors() => Ok((graph, diagnostics)),
        _ => Err(Error::findings(ErrorKind::Usage, diagnostics.report(&read.source))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_said_once() {
        let of = |code: &str, message: &str| Warning {
            code: code.into(),
            message: message.to_owned(),
            node: None,
        };
        let said = [of("tool-left-out", "x"), of("tool-left-out", "y")];
        let at = |node: &str| Warning::at("setting-not-sent", &node.into(), "m".to_owned());
        let mut all = [&said[..], &[at("n"), at("m"), at("n")]].concat();
        once(&mut all);
        assert_eq!(all, [&said[..], &[at("n"), at("m")]].concat());
    }
}
