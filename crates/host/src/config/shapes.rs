//! What can stand in a configuration file, for its schema.

use super::agent::AGENT;
use super::limits::LIMITS;
use super::mcp::SERVER;
use super::read::{BUDGET, COMMAND, MODEL, PRICE, ROOT, TOOLS};
use super::recovery::RECOVERY;
use super::webhooks::WEBHOOK;

/// The tables of a configuration file that its schema describes, each with its keys.
pub fn shapes() -> [(&'static str, &'static [&'static str]); 11] {
    [
        ("", ROOT.fields),
        ("model", MODEL.fields),
        ("price", PRICE.fields),
        ("tools", TOOLS.fields),
        ("command", COMMAND.fields),
        ("budget", BUDGET.fields),
        ("agent", AGENT.fields),
        ("limits", LIMITS.fields),
        ("recovery", RECOVERY.fields),
        ("used", SERVER.fields),
        ("webhook", WEBHOOK.fields),
    ]
}
