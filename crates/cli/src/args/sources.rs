//! Which tools there are and what they may reach: options of all commands that run, check or look at tools (C-01, C-10).

use clap::Args;
use selvedge_tools::Network;
use std::path::PathBuf;

/// Where tools come from besides the library and the configuration, and what they may reach.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Sources {
    /// A folder of Python tools
    #[arg(long, value_name = "DIR")]
    pub(crate) tools: Vec<PathBuf>,
    /// MCP servers, over those of `selvedge.toml`: a JSON file with `mcpServers`
    #[arg(long, value_name = "CONFIG")]
    pub(crate) mcp: Option<PathBuf>,
    /// What they may reach.
    #[command(flatten)]
    pub(crate) grants: Grants,
}

/// What tools may reach. What an error or a warning advises works on the command that said it.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Grants {
    /// A folder or file that tools may read, besides the document's folder
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// A folder or file that tools may write
    #[arg(long, value_name = "PATH")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Let tools that declare it use the network; with `=local`, `http_get` also reaches this machine and private networks
    #[arg(
        long,
        value_name = "local",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "public",
        value_parser = network
    )]
    pub(crate) allow_network: Option<Network>,
    /// A variable of the environment that tools which declare it are given; its value is treated as a key
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_env: Vec<String>,
}

fn network(word: &str) -> Result<Network, String> {
    Network::named(word).ok_or_else(|| "write --allow-network, or --allow-network=local".to_owned())
}
