//! A-22: the generation of the protocol without a handshake (2026-07-28), against the server of the crate `rmcp`: this very
//! program, started once more with the test `modern::serves`.
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use selvedge_engine::{EffectId, FaultKind, ToolRequest};
use selvedge_runtime::ports::{CallContext, Tools};
use selvedge_sandbox::env::ProcessEnv;
use selvedge_sandbox::isolation::Isolation;
use selvedge_tools::mcp::{EffectsRule, Hidden, McpServer, Reached, Wanted, survey};
use selvedge_tools::{Catalogue, CatalogueConfig, ToolLimits};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes this program the server, of these versions.
const SERVE: &str = "SELVEDGE_TEST_SERVES";

struct Adder(Vec<ProtocolVersion>);

impl ServerHandler for Adder {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.clone().into()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let object = |schema: serde_json::Value| -> JsonObject { serde_json::from_value(schema).unwrap() };
        let number = json!({"type": "number"});
        let input = object(json!({"type": "object", "properties": {"a": number, "b": number}}));
        let output = object(json!({"type": "object", "properties": {"sum": number}, "required": ["sum"]}));
        let add = Tool::new("add", "Adds.", input).with_raw_output_schema(output.into());
        Ok(ListToolsResult::with_all_items(vec![add]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        match (args.get("a").and_then(|a| a.as_f64()), args.get("b").and_then(|b| b.as_f64())) {
            (Some(a), Some(b)) => Ok(CallToolResult::structured(json!({"sum": a + b})).into()),
            _ => Err(ErrorData::invalid_params("two numbers, please", None)),
        }
    }
}

/// The server where [`SERVE`] is set, else nothing. The test harness writes to stdout, so the way to the client is another one.
#[tokio::test]
async fn serves() {
    let Ok(versions) = std::env::var(SERVE) else { return };
    let versions = serde_json::from_str(&versions).unwrap();
    let to_client = tokio::net::unix::pipe::OpenOptions::new().open_sender("/dev/fd/3").unwrap();
    let running = Adder(versions).serve((tokio::io::stdin(), to_client)).await.unwrap();
    running.waiting().await.unwrap();
}

#[tokio::test]
async fn modern_alone() {
    talks(vec![ProtocolVersion::V_2026_07_28], "2026-07-28").await;
}

#[tokio::test]
async fn both_generations() {
    talks(vec![ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28], "2026-07-28").await;
}

#[tokio::test]
async fn legacy_alone() {
    talks(vec![ProtocolVersion::V_2025_11_25], "2025-11-25").await;
}

async fn talks(versions: Vec<ProtocolVersion>, spoken: &str) {
    let place = tempfile::tempdir().unwrap();
    let launched = r#"exec "$0" --exact modern::serves --nocapture 3>&1 >/dev/null"#;
    let program = std::env::current_exe().unwrap().display().to_string();
    let server = McpServer {
        name: "r".into(),
        reached: Reached::Command {
            program: "sh".into(),
            args: ["-c", launched, &program].map(|arg| Hidden(arg.into())).into(),
            env: BTreeMap::from([(SERVE.to_owned(), Hidden(serde_json::to_string(&versions).unwrap()))]),
            dir: place.path().to_owned(),
        },
        effects: EffectsRule::default(),
        timeout_s: Some(20.0),
        max_timeout: McpServer::MAX_TIMEOUT,
        start_timeout: Duration::from_secs(20),
        secrets: Vec::new(),
        given: Vec::new(),
        unset: Vec::new(),
    };
    let env = ProcessEnv::new(std::env::vars_os(), None);
    let (_, report) =
        survey(vec![server.clone()], &ToolLimits::default(), &Isolation::none(), &env).await.remove(0);
    assert_eq!(report.unwrap().protocol, spoken);
    let mut config =
        CatalogueConfig::new(place.path(), place.path().join("t"), place.path().join("c"), env.clone());
    config.mcp = vec![server];
    config.wanted = Wanted::names(["add".into()]);
    let catalogue = Catalogue::load(config).await.unwrap();
    let tool = catalogue.def("add").expect("the tool");
    assert_eq!(tool.output_params.as_ref().unwrap().names().join(" "), "sum");
    let ask = |args| {
        let tool = tool.clone();
        let request =
            ToolRequest { effect: EffectId("n/1".into()), node: "n".into(), tool, args, timeout_s: None };
        catalogue.call(request, CallContext::of("r"))
    };
    assert_eq!(ask(json!({"a": 2, "b": 0.5})).await.unwrap(), json!({"sum": 2.5}));
    let failure = ask(json!({"a": 2})).await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::InputError, "{failure:?}");
    assert!(failure.fault.message.contains("two numbers, please"), "{failure:?}");
    catalogue.close().await;
}
