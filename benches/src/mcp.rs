//! What a call of an MCP server over stdin and stdout takes beyond the server's own time.
#![allow(clippy::indexing_slicing, reason = "a field that a JSON value lacks is null")]

use crate::Result;
use crate::measure::{cpu_s, emit, folder, middle};
use crate::runs::runtime;
use selvedge_engine::{EffectId, ToolRequest};
use selvedge_runtime::{CallContext, Tools};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_tools::mcp::{EffectsRule, Hidden, McpServer, Reached, Wanted};
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const TOOL: &str = "bench__echo";

/// Calls one after the other, through the catalogue as a run makes them, and once more by hand with nothing around.
pub(crate) fn mcp(scale: f64) -> Result<()> {
    let calls = (5_000.0 * scale) as usize;
    let bare = middle(by_hand(calls)?);
    let folder = folder()?;
    let place = folder.path();
    let env = ProcessEnv::new(std::env::vars_os(), None);
    let mut config = CatalogueConfig::new(place, place.join("tools"), place.join("shared"), env);
    config.mcp = vec![server(place)?];
    config.wanted = Wanted::names([TOOL.into()]);
    runtime()?.block_on(async {
        let catalogue = Catalogue::load(config).await?;
        catalogue.prepare(&[TOOL]).await?;
        call(&catalogue, "warms up").await?;
        let (mut whole, mut own, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
        let before = cpu_s();
        for _ in 0..calls {
            let start = Instant::now();
            let answer = call(&catalogue, "a").await?;
            whole.push(start.elapsed().as_secs_f64() * 1e6);
            // What the server says is of the call before.
            own.push(answer["before_us"].as_f64().unwrap_or_default());
        }
        let spent = (cpu_s() - before) / calls as f64 * 1e6;
        let last = call(&catalogue, "b").await?;
        own.push(last["before_us"].as_f64().unwrap_or_default());
        beyond.extend(whole.iter().zip(own.iter().skip(1)).map(|(whole, own)| whole - own));
        catalogue.close().await;
        emit(
            "mcp",
            json!({"calls": calls, "us_per_call": middle(whole), "server_us": middle(own),
            "beyond_us": middle(beyond), "cpu_us_per_call": spent, "by_hand_us": bare}),
        );
        Ok(())
    })
}

async fn call(catalogue: &Catalogue, text: &str) -> Result<Value> {
    let tool = catalogue.def(TOOL).ok_or("the server has no such tool")?;
    let request = ToolRequest {
        effect: EffectId("n/1".into()),
        node: "n".into(),
        tool,
        args: json!({ "text": text }),
        timeout_s: None,
    };
    let context = CallContext::of("bench");
    catalogue.call(request, context).await.map_err(|failure| format!("{failure:?}").into())
}

/// This program with the word `mcp-server`.
fn server(place: &Path) -> Result<McpServer> {
    Ok(McpServer {
        name: "bench".into(),
        reached: Reached::Command {
            program: std::env::current_exe()?.display().to_string(),
            args: vec![Hidden("mcp-server".into())],
            env: BTreeMap::new(),
            dir: place.to_owned(),
        },
        effects: EffectsRule::default(),
        timeout_s: None,
        max_timeout: McpServer::MAX_TIMEOUT,
        start_timeout: McpServer::START_TIMEOUT,
        secrets: Vec::new(),
        given: Vec::new(),
        unset: Vec::new(),
    })
}

/// The same exchange: a line there, a line back. In microseconds.
fn by_hand(calls: usize) -> Result<Vec<f64>> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("mcp-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = server.stdin.take().zip(server.stdout.take());
    let (mut input, output) = pipes.ok_or("the server has no pipes")?;
    let (mut output, mut line, mut times) = (BufReader::new(output), String::new(), Vec::new());
    for id in 0..calls {
        let params = json!({"name": "echo", "arguments": {"text": "a"}, "_meta": {"progressToken": id}});
        let asked = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let start = Instant::now();
        input.write_all(format!("{asked}\n").as_bytes())?;
        line.clear();
        output.read_line(&mut line)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    drop(input);
    server.wait()?;
    Ok(times)
}

/// An MCP server with the tool `echo`, which says what its call before took the server, from the moment at which the
/// line was there until the answer was written.
pub(crate) fn serve() -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut before_us = 0.0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let start = Instant::now();
        let message: Value = serde_json::from_str(&line)?;
        if message["id"].is_null() {
            continue;
        }
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                json!({"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"}})
            }
            "tools/list" => {
                let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
                json!({"tools": [{"name": "echo", "description": "Echoes.", "inputSchema": schema,
                    "annotations": {"readOnlyHint": true}}]})
            }
            "tools/call" => {
                let text = json!({"text": params["arguments"]["text"], "before_us": before_us}).to_string();
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => Value::Null,
        };
        let answer = match result {
            Value::Null => json!({"jsonrpc": "2.0", "id": message["id"],
                "error": {"code": -32601, "message": "Method not found"}}),
            result => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
        };
        output.write_all(format!("{answer}\n").as_bytes())?;
        output.flush()?;
        before_us = start.elapsed().as_secs_f64() * 1e6;
    }
    Ok(())
}
