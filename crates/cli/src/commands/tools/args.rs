//! What `selvedge tools` takes.

use crate::args::{Exec, Grants, Sources, number};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const TOOLS_HELP: &str = "\
Examples:
  selvedge tools list
  selvedge tools import ./my-tools
  selvedge tools test --dir ./my-tools

A state folder has one library. Its public tools can be named by documents, behind the files that --tools and the \
configuration name.";

/// `selvedge tools`.
#[derive(Args, Debug)]
#[command(after_help = TOOLS_HELP)]
pub(crate) struct ToolsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// The commands of the library.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools that a document here could name
    List(ListArgs),
    /// Show a tool: schema, version, what it declares
    Show(ShowArgs),
    /// Run one call of a tool, as a document would make it
    Run(RunArgs),
    /// Show the versions of a library tool, with their authors, causes, tests and calls
    History(HistoryArgs),
    /// Repeat recorded calls in the sandbox and compare
    Test(TestArgs),
    /// Compare the code of two versions of a library tool
    Diff(DiffArgs),
    /// Let a name mean an earlier version again
    Rollback(RollbackArgs),
    /// Take a tool out of use: its name means nothing any more
    Retire(RetireArgs),
    /// Put tools into the library: a folder of Python files, or one file
    Import(ImportArgs),
    /// Write the library into a folder: files, manifest, recorded calls
    Export(ExportArgs),
}

const LIST_HELP: &str = "\
Examples:
  selvedge tools list
  selvedge tools list --tools ./tools --json
  selvedge tools list --all
  selvedge tools list --run 7f3a              # the tools that a run has made

A name means the first tool that has it: of --tools, configured folders, the library, command tools,
built-ins, MCP servers.";

/// `selvedge tools list`.
#[derive(Args, Debug)]
#[command(after_help = LIST_HELP)]
pub(crate) struct ListArgs {
    /// Also what the library has that is not in use: private, merged and retired tools
    #[arg(long)]
    pub(crate) all: bool,
    /// Instead, the versions that a run has made, for itself or for everybody
    #[arg(long, value_name = "RUN", conflicts_with = "all")]
    pub(crate) run: Option<String>,
    /// Where else tools come from.
    #[command(flatten)]
    pub(crate) from: Sources,
}

const SHOW_HELP: &str = "\
Examples:
  selvedge tools show word_count
  selvedge tools show word_count --code
  selvedge tools show word_count --at 3f9a --code";

/// `selvedge tools show`.
#[derive(Args, Debug)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Its code as well
    #[arg(long)]
    pub(crate) code: bool,
    /// Another version of a library tool: its hash, or enough of its beginning
    #[arg(long, value_name = "VERSION")]
    pub(crate) at: Option<String>,
    /// Where else tools come from.
    #[command(flatten)]
    pub(crate) from: Sources,
}

const RUN_HELP: &str = "\
Examples:
  selvedge tools run word_count --args '{\"text\": \"one two\"}'
  selvedge tools run fetch --tools ./tools --args @call.json --allow-network
  selvedge tools run word_count --json

The call is made in the sandbox and under the limits of a run, with paths that start at the current folder, and is recorded \
nowhere. Its output goes to stdout, what the tool prints to stderr. Exits with 1 if the call fails, with 2 if the \
tool's schema refuses the arguments.";

/// `selvedge tools run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Its arguments, a JSON object, or @FILE that has it, @- for stdin; {} if they are not given
    #[arg(long, value_name = "JSON|@FILE|@-")]
    pub(crate) args: Option<String>,
    /// Refuse to run it where it can't be isolated
    #[arg(long)]
    pub(crate) require_isolation: bool,
    /// Seconds the call may take, instead of the tool's own limit
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,
    /// Where else tools come from.
    #[command(flatten)]
    pub(crate) from: Sources,
}

impl RunArgs {
    /// The same as options of commands that run documents.
    pub(crate) fn exec(&self) -> Exec {
        Exec {
            from: self.from.clone(),
            require_isolation: self.require_isolation,
            timeout: self.timeout,
            ..Exec::default()
        }
    }
}

const HISTORY_HELP: &str = "\
Examples:
  selvedge tools history word_count
  selvedge tools history word_count --json

Newest first; `*` is the version that the name means. Times are UTC.";

/// `selvedge tools history`.
#[derive(Args, Debug)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct HistoryArgs {
    /// The tool's name
    pub(crate) tool: String,
}

const TEST_HELP: &str = "\
Examples:
  selvedge tools test                       # all tools of the library
  selvedge tools test word_count
  selvedge tools test --dir examples/tools  # files and their calls, without importing them

Recorded calls are repeated in the sandbox with the network off, whatever is allowed. Tools that write do so in a copy \
of the folder. A call passes if it comes to the same. Calls beside files are in NAME.calls.jsonl, a line each: {\"arguments\": {…}, \
\"output\": …} or {\"arguments\": {…}, \"fault\": {\"kind\": \"execution_failure\"}}, with a \"note\" if you like. \
Exits with 1 if any fails.";

/// `selvedge tools test`.
#[derive(Args, Debug)]
#[command(after_help = TEST_HELP)]
pub(crate) struct TestArgs {
    /// The tools; all if none is named
    #[arg(value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Tools of a folder and the calls beside them, instead of the library's; relative paths in calls start there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// What the tools may reach.
    #[command(flatten)]
    pub(crate) grants: Grants,
}

const DIFF_HELP: &str = "\
Examples:
  selvedge tools diff word_count             # the version before, and the one in use
  selvedge tools diff word_count 3f9a        # that version, and the one in use
  selvedge tools diff word_count 3f9a 77b0";

/// `selvedge tools diff`.
#[derive(Args, Debug)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct DiffArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// A version: its hash, or enough of its beginning
    #[arg(value_name = "A")]
    pub(crate) version_a: Option<String>,
    /// Another one
    #[arg(value_name = "B")]
    pub(crate) version_b: Option<String>,
}

const ROLLBACK_HELP: &str = "\
Example:
  selvedge tools rollback word_count 3f9a

The versions are in `selvedge tools history NAME`. Nothing is lost: a rollback can be taken back the same way. Runs \
that use another version keep it.";

/// `selvedge tools rollback`.
#[derive(Args, Debug)]
#[command(after_help = ROLLBACK_HELP)]
pub(crate) struct RollbackArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// The version: its hash, or enough of its beginning
    pub(crate) version: String,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

const RETIRE_HELP: &str = "\
Example:
  selvedge tools retire word_count --reason \"it counts hyphens wrongly\"

Nothing is lost: `selvedge tools list --all` still has it, and `selvedge tools rollback NAME VERSION` takes it into use again. Runs \
that use it keep it.";

/// `selvedge tools retire`.
#[derive(Args, Debug)]
#[command(after_help = RETIRE_HELP)]
pub(crate) struct RetireArgs {
    /// The tool's name
    pub(crate) tool: String,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

const IMPORT_HELP: &str = "\
Examples:
  selvedge tools import ./my-tools
  selvedge tools import word_count.py --replace

Each file must be a tool: it parses, its metadata is a literal, its dependencies install, its schema loads. All are \
imported, or none. A folder may have a `library.json`, as `selvedge tools export` writes it, and recorded calls.";

/// `selvedge tools import`.
#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportArgs {
    /// A folder of Python files, or a Python file
    #[arg(value_name = "DIR|FILE")]
    pub(crate) path: PathBuf,
    /// Make a new version of a tool whose name is taken
    #[arg(long)]
    pub(crate) replace: bool,
    /// What the tools may reach.
    #[command(flatten)]
    pub(crate) grants: Grants,
}

const EXPORT_HELP: &str = "\
Example:
  selvedge tools export ./library

The folder must not be there yet, or be empty. It can be given to --tools, and to `selvedge tools import`.";

/// `selvedge tools export`.
#[derive(Args, Debug)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportArgs {
    /// The folder to write
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
