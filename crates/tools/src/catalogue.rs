//! All tools of a run: found, named by rank, prepared when a document uses them, run as pinned.

mod bound;
mod confined;
mod drafted;
mod gathered;
mod offered;
mod remote;
mod stored;
mod withheld;

pub use confined::ISOLATION_MISSING;
pub use drafted::{Drafted, NotDrafted};
pub use offered::Offer;

use crate::builtin::{Builtin, BuiltinContext};
use crate::command::{CommandTool, Place};
use crate::config::CatalogueConfig;
use crate::diag::{CatalogueErrors, ToolError, one_line};
use crate::failures::not_allowed;
use crate::mcp::{Call, McpContext, Pinned, Servers};
use crate::native::NativeTool;
use crate::permissions::{Access, Declared, Granted, Reach};
use crate::python::PythonTool;
use crate::python::context::PythonContext;
use crate::store::{is_hash, keep, sha256};
use futures_util::StreamExt;
use gathered::{Gathered, defined};
use selvedge_engine::{Failure, FaultKind, ToolDef, ToolRequest, Warning};
use selvedge_runtime::ports::{CallContext, Pending, Tools};
use selvedge_sandbox::grant::Resolver;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many tools are prepared at the same time.
const PREPARING: usize = 4;

#[derive(Clone)]
enum Kind {
    Python(Arc<PythonTool>),
    Command(Arc<CommandTool>, Arc<ToolDef>),
    Builtin(Builtin, Arc<ToolDef>),
    Native(NativeTool),
    Mcp(Arc<Pinned>, Arc<ToolDef>),
}

impl Kind {
    fn version(&self) -> &Arc<str> {
        match self {
            Self::Python(tool) => &tool.version,
            Self::Command(_, def) | Self::Builtin(_, def) | Self::Mcp(_, def) => &def.version,
            Self::Native(tool) => &tool.def.version,
        }
    }

    fn source(&self) -> String {
        match self {
            Self::Python(tool) => tool.source.display().to_string(),
            Self::Command(_, def) | Self::Builtin(_, def) | Self::Mcp(_, def) => def.source.to_string(),
            Self::Native(tool) => tool.def.source.to_string(),
        }
    }

    fn def(&self) -> Option<Arc<ToolDef>> {
        match self {
            Self::Python(tool) => tool.definition().map(Arc::new),
            Self::Command(_, def) | Self::Builtin(_, def) | Self::Mcp(_, def) => Some(def.clone()),
            Self::Native(tool) => Some(Arc::clone(&tool.def)),
        }
    }
}

struct Inner {
    config: CatalogueConfig,
    shared: PythonContext,
    bench: BuiltinContext,
    by_name: BTreeMap<Arc<str>, Kind>,
    /// Bare names of MCP tools that no tool of higher rank has.
    bare: BTreeMap<Arc<str>, Kind>,
    servers: Servers,
    by_version: Mutex<HashMap<Arc<str>, Kind>>,
    broken: BTreeMap<Arc<str>, ToolError>,
    warnings: Vec<Warning>,
    /// Tools that a model can't choose, as was found out, with why.
    unfit: Mutex<BTreeMap<Arc<str>, ToolError>>,
    require_isolation: bool,
    /// Whether what only a run has recorded is refused.
    only_own: AtomicBool,
}

/// The tools of a run. Cloning shares it.
#[derive(Clone)]
pub struct Catalogue(Arc<Inner>);

impl Catalogue {
    /// Reads the metadata of all tools, running none of them; a warm start reads cache files only. A Python file that
    /// is wrong is left out with a warning, and is an error only for who names it ([`Self::broken`], A-08).
    ///
    /// # Errors
    /// Every folder and command tool that is wrong, and every name that two tools of one rank have: `Document`.
    pub async fn load(config: CatalogueConfig) -> Result<Self, CatalogueErrors> {
        let workspace = config.folder();
        let mut resolver = Resolver::default();
        let granted = Granted::new(&config.permissions, &workspace, &mut resolver);
        let context = McpContext::new(&config.isolation, &config.env);
        let servers = Servers::new(config.mcp.clone(), &config.limits, &context, &config.progress);
        let shared = PythonContext::new(&config, workspace, granted, &mut resolver);
        let reach = Reach::new(&shared.granted, shared.names.clone())
            .without(resolver.settle_all(&config.hidden))
            .keeping(resolver.settle_all(shared.own.iter().chain(&shared.unmade)));
        let bench = BuiltinContext::new(reach, &config, context.http);
        let require_isolation = config.require_isolation;
        let mut gathered = Gathered::default();
        gathered.python(&shared, &config.tool_dirs, "--tools").await;
        gathered.python(&shared, &config.config_dirs, "the configured folders").await;
        gathered.library(&shared, config.library.as_ref()).await;
        gathered.commands(config.commands.clone(), config.limits.schema_steps).await;
        gathered.natives(config.natives.clone());
        gathered.builtins(config.shell_approval);
        gathered.mcp(&servers, &config.wanted).await;
        gathered.withheld(&config.withheld, &config.wanted);
        if !gathered.errors.is_empty() {
            return Err(CatalogueErrors(gathered.errors));
        }
        let Gathered { by_name, bare, by_version, broken, mut warnings, .. } = gathered;
        // They quote names of files, of metadata and of servers' tools.
        warnings.iter_mut().for_each(|warning| warning.message = one_line(&warning.message));
        confined::settle_effects(&shared.isolation, &by_name).await;
        let by_version = Mutex::new(by_version);
        Ok(Self(Arc::new(Inner {
            config,
            shared,
            bench,
            by_name,
            bare,
            servers,
            by_version,
            broken,
            warnings,
            unfit: Mutex::default(),
            require_isolation,
            only_own: AtomicBool::new(false),
        })))
    }

    /// From here on only tools that were found by name are called, as they were found: no version that a run has pinned, and none that claims
    /// other effects, or no need of approval. For runs that came from somebody else (C-20).
    pub fn only_own(&self) {
        self.0.only_own.store(true, Ordering::Relaxed);
    }

    /// Ends what runs on behalf of the tools between calls: MCP servers. It is ended as well when this is dropped, but
    /// then nobody is given the time to end by himself.
    pub async fn close(&self) {
        self.0.servers.close().await;
    }

    /// The names of all tools, sorted; MCP tools under their full names.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.by_name.keys()
    }

    /// Whether there is a tool of that name, prepared or not.
    pub fn contains(&self, name: &str) -> bool {
        self.0.named(name).is_some()
    }

    /// The tool that a name means; `None` if there is none, or if its schema is not known yet ([`Self::prepare`]).
    pub fn def(&self, name: &str) -> Option<Arc<ToolDef>> {
        self.0.named(name).and_then(Kind::def)
    }

    /// [`Self::def`] as far as it is known without preparing anything: a tool whose schema is not known yet has all
    /// that its metadata declares, and a schema that takes any arguments.
    pub fn sketch(&self, name: &str) -> Option<Arc<ToolDef>> {
        match self.0.named(name)? {
            Kind::Python(tool) => Some(Arc::new(tool.sketch())),
            kind => kind.def(),
        }
    }

    /// All tools whose schema is known, by name.
    pub fn defs(&self) -> Vec<Arc<ToolDef>> {
        self.0.by_name.values().filter_map(Kind::def).collect()
    }

    /// A version that a run has pinned, also one that is only in the cache any more.
    pub async fn def_at_version(&self, version: &str) -> Option<Arc<ToolDef>> {
        let kind = self.0.at_version(version).await?;
        if let Kind::Python(tool) = &kind {
            tool.prepare(&self.0.shared).await.ok()?;
        }
        kind.def()
    }

    /// Whether a tool can be called as a run has pinned it, also if its name means nothing any more.
    pub async fn has_pinned(&self, tool: &ToolDef) -> bool {
        match self.0.at_version(&tool.version).await {
            Some(Kind::Mcp(pinned, _)) => self.0.servers.has(&pinned.server),
            found => found.is_some(),
        }
    }

    /// Python files that are wrong, by the name that their tool would have: that of the file. They stand in the way
    /// of tools of lower rank, as the tool itself would.
    pub fn broken(&self) -> &BTreeMap<Arc<str>, ToolError> {
        &self.0.broken
    }

    /// What was found that stops nothing: unknown metadata keys, names that hide others, files left out.
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// Why every call of a tool would be denied: what it declares, or always does, is not allowed, or a variable
    /// that it needs is not set.
    pub fn refusal(&self, name: &str) -> Option<ToolError> {
        let Inner { shared, bench, .. } = &*self.0;
        match self.0.named(name)? {
            // The calls themselves are refused where they would write.
            Kind::Python(_) if shared.replay => None,
            Kind::Python(tool) => {
                let declared = tool.meta.declared();
                let checked = shared.granted.check(name, &declared);
                checked.err().map(|error| error.at(&tool.source, None))
            }
            Kind::Builtin(builtin, _) => bench.refusal(*builtin),
            Kind::Command(command, _) => shared.granted.check(name, &command.declared()).err(),
            Kind::Mcp(..) | Kind::Native(_) => None,
        }
    }

    /// Why a Python tool lacks what it declares to read or to be given, also where its calls are only repeated.
    pub fn unreadable(&self, name: &str) -> Option<ToolError> {
        let Some(Kind::Python(tool)) = self.0.named(name) else { return None };
        let needs = Declared { network: false, write_paths: Vec::new(), ..tool.meta.declared() };
        self.0.shared.granted.check(name, &needs).err()
    }

    /// Makes the named tools ready: permissions first, then environments and schemas, so that
    /// [`Self::def`] knows them. Names that are not here are left to the compiler's own diagnostics.
    ///
    /// # Errors
    /// All that is wrong, in the order of the names. Built-ins without permission are no error here: their calls
    /// are denied, and [`Self::refusal`] says so for static uses.
    pub async fn prepare(&self, names: &[&str]) -> Result<(), CatalogueErrors> {
        let tools: Vec<_> = names.iter().filter_map(|name| self.0.named(name)).collect();
        let declares = |kind: &&Kind| matches!(kind, Kind::Python(_) | Kind::Command(..));
        let refused = names.iter().filter(|name| self.0.named(name).as_ref().is_some_and(declares));
        let broken = names.iter().filter_map(|name| self.0.broken.get(*name).cloned());
        let mut errors: Vec<_> = broken.chain(refused.filter_map(|name| self.refusal(name))).collect();
        errors.extend(self.unconfined(names).await);
        // What keeps a server from starting is said once, not for each of its tools.
        let mut said = Vec::new();
        errors.retain(|error| {
            !said.contains(error) && {
                said.push(error.clone());
                true
            }
        });
        if !errors.is_empty() {
            return Err(CatalogueErrors(errors));
        }
        // Boxed, because the compiler cannot see through futures that borrow from a closure's argument.
        let work = tools.into_iter().cloned().enumerate().map(|(index, kind)| {
            let inner = self.0.clone();
            Box::pin(async move { (index, inner.ready(&kind).await) })
        });
        let done: Vec<_> = futures_util::stream::iter(work).buffer_unordered(PREPARING).collect().await;
        let mut failed: Vec<_> =
            done.into_iter().filter_map(|(index, r)| r.err().map(|e| (index, e))).collect();
        failed.sort_by_key(|(index, _)| *index);
        let mut errors: Vec<ToolError> = failed.into_iter().map(|(_, error)| error).collect();
        // A machine without Python says so once, not for each tool.
        errors.dedup_by(|a, b| a.message == b.message);
        if errors.is_empty() { Ok(()) } else { Err(CatalogueErrors(errors)) }
    }
}

impl Tools for Catalogue {
    fn call(&self, request: ToolRequest, context: CallContext) -> Pending<Value> {
        let catalogue = self.clone();
        Box::pin(async move { catalogue.0.call(&request, context).await })
    }
}

impl Inner {
    async fn ready(&self, kind: &Kind) -> Result<(), ToolError> {
        match kind {
            Kind::Python(tool) => tool.prepare(&self.shared).await,
            Kind::Builtin(Builtin::Python, _) => self.shared.environments.interpreter().await.map(|_| ()),
            Kind::Builtin(..) | Kind::Native(_) => Ok(()),
            Kind::Command(command, def) => {
                let (copy, declaration) = (self.declaration(&def.version), command.declaration());
                self.shared.keys.refuse_definition(&def.name, &declaration)?;
                keep(&copy, &declaration)
                    .map_err(|e| ToolError::environment("A-23", format!("{}: {e}", copy.display())))
            }
            Kind::Mcp(pinned, def) => self.keep_pinned(pinned, &def.version),
        }
    }

    /// What a name means.
    fn named(&self, name: &str) -> Option<&Kind> {
        self.by_name.get(name).or_else(|| self.bare.get(name))
    }

    /// Whether a definition is that of a tool which was found here.
    fn is_own(&self, tool: &ToolDef) -> bool {
        let own = self.named(&tool.name).filter(|kind| *kind.version() == tool.version);
        let same = |def: Arc<ToolDef>| def.effects == tool.effects && def.approval == tool.approval;
        own.is_some_and(|kind| kind.def().is_none_or(same))
    }

    fn declaration(&self, version: &str) -> PathBuf {
        self.shared.cache.join(format!("{version}.command.json"))
    }

    async fn at_version(&self, version: &str) -> Option<Kind> {
        if let Some(kind) = self.by_version.lock().unwrap_or_else(PoisonError::into_inner).get(version) {
            return Some(kind.clone());
        }
        if !is_hash(version) {
            return None;
        }
        let kind = match PythonTool::at_version(&self.shared, version).await.unwrap_or_default() {
            Some(tool) => Kind::Python(Arc::new(tool)),
            None if let Some(pinned) = self.pinned(version).await => {
                let def = Arc::new(pinned.tool());
                Kind::Mcp(Arc::new(pinned), def)
            }
            None => {
                let bytes = tokio::fs::read(self.declaration(version)).await.ok()?;
                if sha256(&bytes) != version {
                    return None;
                }
                let command: CommandTool = serde_json::from_slice(&bytes).ok()?;
                let (command, def) = defined(command, self.shared.limits.schema_steps).await;
                Kind::Command(Arc::new(command), Arc::new(def.ok()?))
            }
        };
        let mut known = self.by_version.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(version.into(), kind.clone());
        Some(kind)
    }

    async fn call(&self, request: &ToolRequest, context: CallContext) -> Result<Value, Failure> {
        let name = &request.tool.name;
        if self.only_own.load(Ordering::Relaxed) && !self.is_own(&request.tool) {
            let message =
                format!("the tool `{name}` came with a run that was imported, and nobody has trusted it");
            return Err(Failure::permanent(FaultKind::Denied, message).unsent());
        }
        // the pinned version runs, whatever the name means by now.
        match self.at_version(&request.tool.version).await {
            Some(Kind::Python(tool)) => tool.call(&self.shared, request, context).await,
            Some(Kind::Native(tool)) => tool.call(request, &self.shared.limits).await,
            Some(Kind::Builtin(builtin, _)) => {
                self.bench.call(builtin, request, &self.shared, &context.printing).await
            }
            Some(Kind::Command(command, _)) => {
                let PythonContext { limits, workspace, granted, process, .. } = &self.shared;
                let env = granted.check(name, &command.declared()).map_err(not_allowed)?.env;
                // The user wrote the command: it may reach what the user allowed.
                let mut policy = limits.closed();
                // Other languages' runtimes reserve far more address space than they use.
                policy.memory_bytes = None;
                Access { read: policy.read, write: policy.write, .. } = granted.all();
                policy.network = granted.network();
                policy.here = self.shared.names.here();
                let scratch_root = self.shared.scratch_folder();
                command.call(request, limits, Place { workspace, process, policy, env, scratch_root, context }).await
            }
            Some(Kind::Mcp(pinned, _)) => {
                self.servers.call(Call { pinned: &pinned, request, watch: context.watch }).await
            }
            None if self.named(name).is_some() => Err(Failure::permanent(
                FaultKind::DefinitionChanged,
                format!(
                    "the version of the tool `{name}` that this run uses ({}) is no longer there; the present one is another",
                    request.tool.version
                ),
            )
            .unsent()),
            None => {
                let message = format!("there is no tool `{name}` any more");
                Err(Failure::permanent(FaultKind::UnknownTool, message).unsent())
            }
        }
    }
}
