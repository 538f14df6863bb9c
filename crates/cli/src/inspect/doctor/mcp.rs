//! MCP servers: whether those that are configured answer. They are started for it, and ended again.

use super::{Report, Verdict};
use selvedge_host::config::Config;
use selvedge_host::text::counted;
use selvedge_tools::mcp::{McpServer, survey};
use std::time::Duration;

/// A report does not wait longer for a server, whatever its own limit is.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts each configured server and says what it is.
pub(super) async fn look(config: &Config, report: &mut Report) {
    let patient = |server: &McpServer| McpServer {
        start_timeout: server.start_timeout.min(PATIENCE),
        ..server.clone()
    };
    let servers: Vec<McpServer> = config.mcp.values().map(patient).collect();
    for (name, answer) in survey(
        servers,
        &config.limits.tools(),
        &selvedge_host::tools::isolation(&config.environment),
        config.environment.process(),
    )
    .await
    {
        match answer {
            Ok(found) => {
                let tools = counted(found.tools, "tool");
                let called = found.called.map(|called| format!(" ({called})")).unwrap_or_default();
                let message = format!("{name}{called}: {tools}, MCP {}", found.protocol);
                report.add("mcp", Verdict::Ok, message);
                for (tool, why) in found.wrong {
                    report.add(
                        "mcp",
                        Verdict::Warning,
                        format!("{name}: the tool `{tool}` is left out: {why}"),
                    );
                    report.help("tell who maintains the server");
                }
            }
            Err(error) => {
                report.add("mcp", Verdict::Broken, error.message);
                report.help(match error.help.is_empty() {
                    true => "correct [mcp.servers], or take the server out".to_owned(),
                    false => error.help,
                });
            }
        }
    }
}
