//! What a catalogue is made with: where tools come from, and what they may do.

use crate::command::CommandTool;
use crate::library::LibrarySource;
use crate::limits::ToolLimits;
use crate::mcp::{McpServer, Reached, Wanted};
use crate::native::NativeTool;
use crate::permissions::Permissions;
use crate::progress::Progress;
use crate::withheld::Withheld;
use selvedge_http::Secret;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::grant::Resolver;
use selvedge_sandbox::isolation::Isolation;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Where tools come from and what they may do.
#[derive(Clone)]
pub struct CatalogueConfig {
    /// The environment of this process: where programs and proxies are, and what servers are given.
    pub env: ProcessEnv,
    /// Folders of Python tools given with `--tools`: the first rank.
    pub tool_dirs: Vec<PathBuf>,
    /// Folders of Python tools of the configuration: the second rank.
    pub config_dirs: Vec<PathBuf>,
    /// The library: the third rank, and the texts of versions that are in use nowhere else.
    pub library: Option<Arc<dyn LibrarySource>>,
    /// Whether tools are only looked at, or their calls repeated to test them: the network is off whatever a tool
    /// declares, so that to get it ready needs no permission.
    pub replay: bool,
    /// Command tools of the configuration: the fourth rank, before the built-ins.
    pub commands: Vec<CommandTool>,
    /// Tools of the program that this is a part of: the fifth rank, before the built-ins.
    pub natives: Vec<NativeTool>,
    /// MCP servers: the last rank, but for the full names of their tools.
    pub mcp: Vec<McpServer>,
    /// What is configured where it is not trusted (C-20).
    pub withheld: Withheld,
    /// The tools that are needed: a server that has none of them is not started.
    pub wanted: Wanted,
    /// What the user allowed.
    pub permissions: Permissions,
    /// The document's folder: where relative paths start.
    pub workspace: PathBuf,
    /// Keeps versions of tools and what is known about them: belongs to the state folder.
    pub tool_cache: PathBuf,
    /// Keeps environments and `uv`: may be shared by all state folders of a user.
    pub shared_cache: PathBuf,
    /// Limits of calls.
    pub limits: ToolLimits,
    /// The Python to use; `None` takes the first usable one on PATH.
    pub python: Option<PathBuf>,
    /// The `uv` that makes environments; `None` takes the one on PATH, or fetches one.
    pub uv: Option<PathBuf>,
    /// Where scratch folders are made; `None` is the system's folder for such.
    pub scratch_root: Option<PathBuf>,
    /// Whether a person approves each `shell` call; only configuration says no.
    pub shell_approval: bool,
    /// What enforces permissions.
    pub isolation: Isolation,
    /// Whether nothing is to run where a layer of it is missing.
    pub require_isolation: bool,
    /// What stays hidden from tools although it lies in what they may read: the state folder.
    pub hidden: Vec<PathBuf>,
    /// What no tool changes, besides the folders of tools and caches: files of the configuration.
    pub kept: Vec<PathBuf>,
    /// Keys, each with what it is for people: a tool's file that holds one is wrong (C-06).
    pub keys: Vec<(String, Secret)>,
    /// Where lines about slow preparations go.
    pub progress: Progress,
}

impl CatalogueConfig {
    /// The same, where only what this library offers is a tool. It names each field, so that who adds one has to say what becomes of it here.
    #[must_use]
    pub fn of_only(self, library: Arc<dyn LibrarySource>) -> Self {
        let Self {
            env,
            tool_dirs: _,
            config_dirs: _,
            library: _,
            replay,
            commands: _,
            natives: _,
            mcp: _,
            withheld: _,
            wanted: _,
            permissions,
            workspace,
            tool_cache,
            shared_cache,
            limits,
            python,
            uv,
            scratch_root,
            shell_approval,
            isolation,
            require_isolation,
            hidden,
            kept,
            keys,
            progress,
        } = self;
        Self {
            library: Some(library),
            replay,
            permissions,
            limits,
            python,
            uv,
            scratch_root,
            shell_approval,
            isolation,
            require_isolation,
            hidden,
            kept,
            keys,
            progress,
            ..Self::new(workspace, tool_cache, shared_cache, env)
        }
    }

    /// Only the built-ins, nothing allowed: a start for filling in the rest.
    pub fn new(
        workspace: impl Into<PathBuf>,
        tool_cache: impl Into<PathBuf>,
        shared_cache: impl Into<PathBuf>,
        env: ProcessEnv,
    ) -> Self {
        Self {
            env,
            tool_dirs: Vec::new(),
            config_dirs: Vec::new(),
            commands: Vec::new(),
            natives: Vec::new(),
            mcp: Vec::new(),
            withheld: Withheld::default(),
            wanted: Wanted::default(),
            library: None,
            replay: false,
            permissions: Permissions::default(),
            workspace: workspace.into(),
            tool_cache: tool_cache.into(),
            shared_cache: shared_cache.into(),
            limits: ToolLimits::default(),
            python: None,
            uv: None,
            scratch_root: None,
            shell_approval: true,
            isolation: Isolation::none(),
            require_isolation: false,
            hidden: Vec::new(),
            kept: Vec::new(),
            keys: Vec::new(),
            progress: Arc::new(|_| {}),
        }
    }

    /// What Selvedge reads and runs for itself: the code of tools, also where a link in a folder of tools leads to it,
    /// the caches, and what else is kept.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        let folders = self.tool_dirs.iter().chain(&self.config_dirs);
        let entries = folders.clone().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let own = links.map(|entry| entry.path()).chain(folders.cloned()).chain(self.kept.iter().cloned());
        let words =
            self.programs().flat_map(|(dir, words)| words.into_iter().map(move |word| dir.join(word)));
        // Of the words of a command, those that are files.
        let code = words.filter(|path| path.is_file());
        own.chain(code).chain([self.shared_cache.clone(), self.tool_cache.clone()]).collect()
    }

    /// What command tools and servers are started with: the folder where their relative paths start, the program, its arguments.
    fn programs(&self) -> impl Iterator<Item = (&Path, Vec<&str>)> {
        let commands = self.commands.iter().map(|tool| {
            let dir = if tool.dir.as_os_str().is_empty() { &self.workspace } else { &tool.dir };
            (dir.as_path(), tool.command.iter().map(String::as_str).collect())
        });
        let servers = self.mcp.iter().filter_map(|server| match &server.reached {
            Reached::Command { program, args, dir, .. } => {
                let words = std::iter::once(program.as_str()).chain(args.iter().map(|word| word.0.as_str()));
                Some((dir.as_path(), words.collect()))
            }
            _ => None,
        });
        commands.chain(servers)
    }

    /// What Selvedge would read or run, and is not there: configuration that it looks for, and programs and scripts of commands
    /// and servers, by their paths.
    pub(crate) fn unmade(&self, resolver: &mut Resolver) -> Vec<PathBuf> {
        const SCRIPTS: [&str; 10] = ["sh", "bash", "py", "js", "mjs", "ts", "rb", "pl", "php", "jar"];
        let runs = |at: usize, word: &str| {
            let script = Path::new(word).extension().and_then(OsStr::to_str);
            word.contains('/') && (at == 0 || script.is_some_and(|kind| SCRIPTS.contains(&kind)))
        };
        let words = self.programs().flat_map(|(dir, words)| {
            let run = words.into_iter().enumerate().filter(|(at, word)| runs(*at, word));
            run.map(|(_, word)| dir.join(word)).collect::<Vec<_>>()
        });
        let absent = words.chain(self.kept.iter().cloned()).filter(|path| path.symlink_metadata().is_err());
        absent.filter_map(|path| resolver.settle(&path)).collect()
    }
}

impl CatalogueConfig {
    /// The document's folder as a sandbox has it: absolute, and without `..`, which leads through folders that are not there.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = std::path::absolute(&self.workspace).unwrap_or_else(|_| self.workspace.clone());
        let winds = folder.components().any(|part| part == Component::ParentDir);
        let real = winds.then(|| folder.canonicalize().ok()).flatten();
        real.unwrap_or(folder)
    }
}

/// Where a state folder keeps tools, and the shared folder environments, when both live under one folder.
pub fn cache_folders(state: &Path) -> (PathBuf, PathBuf) {
    let cache = state.join("cache");
    (cache.join("tools"), cache)
}
