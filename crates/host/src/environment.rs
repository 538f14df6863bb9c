//! What a process is started with, as it is handed in: nothing in this crate asks the system for it (C-06).

use selvedge_http::Http;
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::launcher::Launcher;
use selvedge_store::Store;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Every variable with what it means.
pub const VARIABLES: [(&str, &str); 30] = [
    ("SELVEDGE_API_KEY", "key for --base-url and for models without a key variable of their own"),
    (
        "OPENAI_API_KEY",
        "the key of OpenAI; with --base-url where SELVEDGE_API_KEY is not set, but never to this machine",
    ),
    ("ANTHROPIC_API_KEY", "the key of Anthropic"),
    ("GEMINI_API_KEY", "the key of Gemini"),
    ("GOOGLE_API_KEY", "the same where GEMINI_API_KEY is not set"),
    ("OLLAMA_HOST", "where Ollama is, instead of 127.0.0.1:11434"),
    ("SELVEDGE_BASE_URL", "like --base-url"),
    ("SELVEDGE_MODEL", "like --model, several separated by commas"),
    ("SELVEDGE_SCRIPT", "like --script"),
    ("SELVEDGE_TOOLS", "like --tools, several separated as in PATH"),
    ("SELVEDGE_STATE_DIR", "like --state-dir"),
    ("SELVEDGE_CONFIG", "the user's configuration file, instead of ~/.config/selvedge/config.toml"),
    ("SELVEDGE_CACHE_DIR", "the folder of tools' environments, instead of ~/.cache/selvedge"),
    ("SELVEDGE_PYTHON", "the Python that runs tools, instead of the first usable one on PATH"),
    ("SELVEDGE_ALLOW_NETWORK", "1 is like --allow-network, local like --allow-network=local"),
    ("SELVEDGE_TRUST", "1 is like --trust"),
    ("SELVEDGE_MAX_PARALLEL", "like --max-parallel"),
    ("SELVEDGE_BUDGET", "like --budget"),
    ("SELVEDGE_TIMEOUT", "like --timeout"),
    ("PAGER", "what shows long pages on a terminal, instead of `less -FRX`"),
    ("NO_PAGER", "like --no-pager"),
    ("VISUAL", "what a value is edited in that a run asks a person to edit; else EDITOR, else vi"),
    ("EDITOR", "the same"),
    (
        "COLUMNS",
        "the width of pages and of lines on a terminal, and of pages in a pipe, which are not wrapped without it",
    ),
    ("HTTPS_PROXY", "the proxy for https addresses of other machines, http://[USER:PASSWORD@]HOST:PORT"),
    ("HTTP_PROXY", "the proxy for http addresses of other machines"),
    ("ALL_PROXY", "the proxy for both"),
    ("NO_PROXY", "hosts that are asked without a proxy, separated by commas"),
    ("SSL_CERT_FILE", "certificates to trust instead of the system's, as a PEM file"),
    ("SSL_CERT_DIR", "the same as folders of PEM files, several separated as in PATH"),
];

/// Variables, the current folder, and what else is this process's own. Cheap to clone.
#[derive(Clone, Default)]
pub struct Environment {
    process: ProcessEnv,
    cwd: PathBuf,
    state_dir: Option<PathBuf>,
    launcher: Option<Launcher>,
    http: Arc<OnceLock<Http>>,
    store: Option<Arc<Store>>,
}

impl Environment {
    /// An environment of these variables, in the folder where relative paths start.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, cwd: PathBuf) -> Self {
        Self { process: ProcessEnv::new(variables, Some(cwd.clone())), cwd, ..Self::default() }
    }

    /// The same where a person has named the state folder, which is trusted then (C-20).
    #[must_use]
    pub fn in_state_dir(self, dir: Option<&Path>) -> Self {
        let state_dir = dir.map(|dir| self.absolute(dir));
        Self { state_dir, ..self }
    }

    /// The same with what starts a confined program. Without it nothing isolates tools.
    #[must_use]
    pub fn with_launcher(self, launcher: Launcher) -> Self {
        Self { launcher: Some(launcher), ..self }
    }

    /// The same with the store of its state folder open.
    #[must_use]
    pub(crate) fn with_store(self, store: Arc<Store>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// The store of its state folder, where it is open.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// What starts a confined program.
    pub fn launcher(&self) -> Option<&Launcher> {
        self.launcher.as_ref()
    }

    /// A variable's value, if it is text; an empty one counts as not set.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.path(name)?.into_os_string().into_string().ok()
    }

    /// A variable that holds a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        debug_assert!(is_listed(name), "{name} is in no table");
        self.process.variable(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Whether a variable is set, be it to nothing.
    pub fn is_set(&self, name: &str) -> bool {
        self.process.variable(name).is_some()
    }

    /// All of it, for those who start programs.
    pub fn process(&self) -> &ProcessEnv {
        &self.process
    }

    /// Clients of requests, with the proxies and certificates that its variables name: the same for all that goes on here, so that runs
    /// share connections, and certificates are read once.
    pub fn http(&self) -> &Http {
        self.http.get_or_init(|| Http::new(|name| self.process.variable(name).map(OsString::from)))
    }

    /// The current folder.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// A path that means the same from everywhere.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        // Without a folder, relative paths stay what they are.
        if path.as_os_str().is_empty() || !self.cwd.is_absolute() && !path.is_absolute() {
            return path.to_owned();
        }
        std::path::absolute(self.cwd.join(path)).unwrap_or_else(|_| path.to_owned())
    }

    /// A path as short as it can be said from here.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }

    /// Whether a person has named this state folder for this process.
    pub fn is_named(&self, dir: &Path) -> bool {
        let named = self.path("SELVEDGE_STATE_DIR").map(|named| self.absolute(&named));
        named.is_some_and(|named| named == dir) || self.state_dir.as_deref() == Some(dir)
    }
}

/// By what it says, and not by what was opened for it.
impl PartialEq for Environment {
    fn eq(&self, other: &Self) -> bool {
        let Self { process, cwd, state_dir, launcher, http: _, store: _ } = self;
        (process, cwd, state_dir, launcher) == (&other.process, &other.cwd, &other.state_dir, &other.launcher)
    }
}

/// Without the values, among which there are keys (C-06).
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Our own variables are read only if the table has them, so that the table is complete.
fn is_listed(name: &str) -> bool {
    VARIABLES.iter().any(|(known, _)| *known == name) || !name.starts_with("SELVEDGE_")
}
