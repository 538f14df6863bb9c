//! The tools of a server, asked for page by page.

use super::config::McpServer;
use super::definition::Definition;
use super::error::{ServerError, line};
use super::message::{Reader, UnreadableReply};
use crate::diag::shown;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// The most pages and tools of one server.
const PAGES: usize = 1000;
const TOOLS: usize = 10_000;

/// What a server has.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Its tools, by its own names.
    pub(super) tools: BTreeMap<Arc<str>, Arc<Definition>>,
    /// Those that are wrong, with why.
    pub(super) wrong: BTreeMap<Arc<str>, String>,
}

/// Why a listing failed.
pub(super) enum NoListing {
    /// The question could not be asked, or was refused.
    Service(ServiceError),
    /// The answer can't be taken.
    UnreadableReply(UnreadableReply),
    /// The answers are wrong.
    Wrong(ServerError),
}

impl Listing {
    /// Asks a server for all of its tools; `before` is what it answered last.
    pub(super) async fn of(
        config: &McpServer,
        peer: &Peer<RoleClient>,
        reader: &Reader,
        before: &Self,
        schema_steps: u64,
    ) -> Result<Self, NoListing> {
        let mut listing = Self::default();
        let server = &config.name;
        let mut cursor: Option<String> = None;
        let mut seen = BTreeSet::new();
        for _ in 0..PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = ask(peer, request, reader).await?;
            cursor = listing.add(page, config, before, schema_steps).await.ok_or_else(|| {
                let message = format!("the MCP server `{server}` answers `tools/list` with no list of tools");
                NoListing::Wrong(ServerError::lasting(message))
            })?;
            if listing.tools.len() + listing.wrong.len() > TOOLS {
                let message = format!("the MCP server `{server}` has more than {TOOLS} tools");
                return Err(NoListing::Wrong(ServerError::lasting(message)));
            }
            match &cursor {
                None => return Ok(listing),
                Some(next) if seen.insert(next.clone()) => {}
                Some(_) => break,
            }
        }
        let message = format!("the MCP server `{server}` has no last page of its tools");
        Err(NoListing::Wrong(ServerError::lasting(message)))
    }

    /// Adds a page and returns where the next one begins; `None` if this is no page. (The inner `None`: it is the last.)
    async fn add(
        &mut self,
        page: ServerResult,
        config: &McpServer,
        before: &Self,
        steps: u64,
    ) -> Option<Option<String>> {
        match page {
            ServerResult::ListToolsResult(page) => {
                for tool in page.tools {
                    self.tool(tool, config, before, steps).await;
                }
                Some(page.next_cursor)
            }
            // One tool that is wrong makes the whole page none to the client: each is looked at by itself.
            ServerResult::CustomResult(page) => {
                for tool in page.0.get("tools")?.as_array()? {
                    let tool = clean(tool.clone(), config);
                    if tool.pointer("/execution/taskSupport").is_some_and(|support| support == "required") {
                        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                        let why =
                            "it can only be called as a task (`taskSupport: required`), which is not offered";
                        self.wrong.insert(shown(name).into(), why.to_owned());
                        continue;
                    }
                    match serde_json::from_value::<Tool>(tool.clone()) {
                        Ok(tool) => self.tool(tool, config, before, steps).await,
                        Err(error) => {
                            let name = tool.get("name").and_then(Value::as_str).unwrap_or("(without a name)");
                            self.wrong.entry(shown(name).into()).or_insert_with(|| {
                                format!("its definition is none as MCP has it: {}", line(&error.to_string()))
                            });
                        }
                    }
                }
                Some(page.0.get("nextCursor").and_then(Value::as_str).map(str::to_owned))
            }
            _ => None,
        }
    }

    async fn tool(&mut self, tool: Tool, config: &McpServer, before: &Self, steps: u64) {
        let tool = cleaned(&tool, config).unwrap_or(tool);
        let name: Arc<str> = tool.name.as_ref().into();
        // What is wrong is shown to people, and is called by nobody.
        let own: Arc<str> = shown(&name).into();
        let before = before.tools.get(&name).cloned();
        // Schemas are a stranger's: what is done with them is bounded, and long enough not to hold up others.
        let read = spawn_blocking(move || Definition::read(&tool, before.as_ref(), steps)).await;
        match read.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) {
            // Of two tools with one name nobody can say which one is meant.
            Ok(_) | Err(_) if self.tools.remove(&name).is_some() || self.wrong.contains_key(&own) => {
                self.wrong.insert(own, "the server has two tools of that name".to_owned());
            }
            Ok(definition) => {
                self.tools.insert(name, definition);
            }
            Err(why) => {
                self.wrong.insert(own, line(&why));
            }
        }
    }
}

/// Asked directly: what is compared with a pinned definition must not come from a cache.
async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    reader: &Reader,
) -> Result<ServerResult, NoListing> {
    let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let handle = handle.map_err(NoListing::Service)?;
    let id = handle.id.clone();
    match (handle.await_response().await, reader.fetch(&id)) {
        (Err(ServiceError::McpError(_)), Some(answer)) => answer.map_err(NoListing::UnreadableReply),
        (answer, _) => answer.map_err(NoListing::Service),
    }
}

/// The definition without the keys that the server was given (C-06): it is kept, shown, and sent to models. `None` if it
/// has none of them.
fn cleaned(tool: &Tool, config: &McpServer) -> Option<Tool> {
    if config.secrets.is_empty() {
        return None;
    }
    let said = serde_json::to_value(tool).ok()?;
    let clean = clean(said.clone(), config);
    if clean == said { None } else { serde_json::from_value(clean).ok() }
}

fn clean(said: Value, config: &McpServer) -> Value {
    match said {
        Value::String(text) => Value::String(config.clean(&text)),
        Value::Array(items) => items.into_iter().map(|item| clean(item, config)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, field)| (config.clean(&key), clean(field, config)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}
