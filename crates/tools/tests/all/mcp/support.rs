//! Catalogues with MCP servers, and calls of their tools.

use selvedge_engine::{EffectId, Failure, ToolRequest};
use selvedge_runtime::ports::{CallContext, Delta, Tools, Watch};
use selvedge_tools::mcp::{EffectsRule, Hidden, McpServer, Reached, Wanted};
use selvedge_tools::{Catalogue, CatalogueConfig, CatalogueErrors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A folder of its own for each test.
pub struct Place {
    pub dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// The file in which the test server notes what happens to it.
    pub fn notes(&self) -> PathBuf {
        self.dir.path().join("notes")
    }

    /// How often the server noted a word.
    pub fn noted(&self, word: &str) -> usize {
        let notes = std::fs::read_to_string(self.notes()).unwrap_or_default();
        notes.split_whitespace().filter(|noted| *noted == word).count()
    }

    /// The test server, called `s`, in one of its modes.
    pub fn server(&self, mode: &str) -> McpServer {
        self.named("s", mode)
    }

    pub fn named(&self, name: &str, mode: &str) -> McpServer {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_servers/server.py");
        let words = [script.display().to_string(), mode.to_owned(), self.notes().display().to_string()];
        server(name, "python3", &words.map(Hidden), self.dir.path())
    }

    pub fn config(&self, servers: Vec<McpServer>, wanted: &[&str]) -> CatalogueConfig {
        let mut config = CatalogueConfig::new(
            self.dir.path(),
            self.dir.path().join("t"),
            self.dir.path().join("c"),
            crate::world::env(),
        );
        config.mcp = servers;
        config.wanted = Wanted::names(wanted.iter().map(|name| Arc::from(*name)));
        config.limits.tool_output_bytes = 1 << 20;
        config
    }

    pub async fn catalogue(&self, servers: Vec<McpServer>, wanted: &[&str]) -> Catalogue {
        let catalogue = Catalogue::load(self.config(servers, wanted)).await.unwrap();
        catalogue.prepare(wanted).await.unwrap_or_else(|errors| panic!("{errors}"));
        catalogue
    }

    /// A catalogue in which something is wrong with a tool that is wanted.
    pub async fn refused(&self, servers: Vec<McpServer>, wanted: &[&str]) -> CatalogueErrors {
        let catalogue = Catalogue::load(self.config(servers, wanted)).await.unwrap();
        catalogue.prepare(wanted).await.unwrap_err()
    }
}

pub fn server(name: &str, program: &str, args: &[Hidden], dir: &Path) -> McpServer {
    McpServer {
        name: name.into(),
        reached: Reached::Command {
            program: program.to_owned(),
            args: args.to_vec(),
            env: BTreeMap::new(),
            dir: dir.to_owned(),
        },
        effects: EffectsRule::default(),
        timeout_s: None,
        max_timeout: McpServer::MAX_TIMEOUT,
        start_timeout: Duration::from_secs(30),
        secrets: Vec::new(),
        given: Vec::new(),
        unset: Vec::new(),
    }
}

pub fn over_http(name: &str, url: &str) -> McpServer {
    let reached = Reached::Url { url: Hidden(url.to_owned()), headers: BTreeMap::new(), sse: false };
    McpServer { reached, ..server(name, "", &[], Path::new(".")) }
}

pub fn request(catalogue: &Catalogue, name: &str, args: Value) -> ToolRequest {
    let tool = catalogue.def(name).unwrap_or_else(|| panic!("no tool `{name}`"));
    ToolRequest { effect: EffectId("n/1".into()), node: "n".into(), tool, args, timeout_s: None }
}

pub async fn call(catalogue: &Catalogue, name: &str, args: Value) -> Result<Value, Failure> {
    run(catalogue, request(catalogue, name, args)).await
}

pub async fn run(catalogue: &Catalogue, request: ToolRequest) -> Result<Value, Failure> {
    catalogue.call(request, CallContext::of("r")).await
}

/// The output of a call, and the lines of progress that a watcher saw.
pub async fn watched(
    catalogue: &Catalogue,
    name: &str,
    args: Value,
) -> (Result<Value, Failure>, Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let watch: Watch = Arc::new(move |delta| {
        if let Delta::Progress(line) = delta {
            kept.lock().unwrap().push(line);
        }
    });
    let context = CallContext { watch: Some(watch), ..CallContext::of("r") };
    let output = catalogue.call(request(catalogue, name, args), context).await;
    let lines = lines.lock().unwrap().clone();
    (output, lines)
}

/// Waits until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never: {what}");
}

/// Node and the folder of servers from npm; nothing where they can't be had, which is said.
pub fn from_npm() -> Option<(String, PathBuf)> {
    let folder = crate::world::from_npm("mcp", "there are no MCP servers from npm here")?;
    Some((folder.join("node-program").display().to_string(), folder.join("node_modules")))
}
