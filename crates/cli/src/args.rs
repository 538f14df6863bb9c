//! What commands take: the options that several share, and those of the commands that drive runs.

mod sources;

pub(crate) use self::sources::{Grants, Sources};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What every command takes (C-10).
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// The folder that keeps runs: else `.selvedge/` found upwards, else the user's data folder
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state_dir: Option<PathBuf>,
    /// Machine output: one JSON object on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress, no notes (but that a scripted model answers)
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Show each tool call, retry and value as well
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print long pages as they are, and not with PAGER
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Trust what `selvedge.toml` starts and sends, for this command (`selvedge trust` asks, and keeps it)
    #[arg(long, global = true)]
    pub(crate) trust: bool,
}

const RUN_HELP: &str = "\
Examples:
  selvedge run plan.json --model qwen3 --base-url http://127.0.0.1:8000/v1
  selvedge run plan.json --script replies.yaml --json
  selvedge run plans.json --plan report --tools ./tools --budget cost=2.5
  selvedge run task.json --tools ./tools -v

A plan has nodes on threads; a step task has steps, each a call of one tool, or none at all: then a model plans them;
a workflow has nodes that lead to each other, and paths that fork and join.
Without --model and --base-url, models come from `selvedge.toml` or the environment.";

/// `selvedge run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// The document: a plan, a step task or a workflow
    pub(crate) file: PathBuf,
    /// How it is run.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

/// The options of `run`, which every command that executes takes (C-01, C-10).
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Exec {
    /// Which plan, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out: plan, steps, workflow or agent
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// A value of the document's metadata; JSON if it parses, else text
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) input: Vec<String>,
    /// The model, of one role or of all
    #[arg(long, value_name = "[ROLE=]NAME")]
    pub(crate) model: Vec<String>,
    /// An OpenAI-compatible endpoint for every role, version part included
    #[arg(long, value_name = "URL", conflicts_with = "script")]
    pub(crate) base_url: Option<String>,
    /// Scripted replies instead of a model: a YAML file of rules
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Which tools there are.
    #[command(flatten)]
    pub(crate) from: Sources,
    /// Refuse to run where tools can't be isolated
    #[arg(long)]
    pub(crate) require_isolation: bool,
    /// One node after the other
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Model calls at a time
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) max_parallel: Option<u32>,
    /// Caps of the run: calls=100,tokens=1e6,cost=2.5
    #[arg(long, value_name = "CAPS")]
    pub(crate) budget: Option<String>,
    /// Seconds the run may take; parts of a second count as a whole one
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,
    /// The run's id, never used before
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
}

impl Exec {
    /// The options that are given of those that may be given again for a run that is there.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--model", !self.model.is_empty()),
            ("--base-url", self.base_url.is_some()),
            ("--script", self.script.is_some()),
            ("--tools", !self.from.tools.is_empty()),
            ("--mcp", self.from.mcp.is_some()),
            ("--allow-read", !self.from.grants.allow_read.is_empty()),
            ("--allow-write", !self.from.grants.allow_write.is_empty()),
            ("--allow-network", self.from.grants.allow_network.is_some()),
            ("--allow-env", !self.from.grants.allow_env.is_empty()),
            ("--require-isolation", self.require_isolation),
            ("--sequential", self.sequential),
            ("--max-parallel", self.max_parallel.is_some()),
            ("--budget", self.budget.is_some()),
            ("--timeout", self.timeout.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(option, _)| option).collect()
    }
}

/// A whole number from 1 on.
pub(crate) fn count<N: TryFrom<u64>>(text: &str) -> Result<N, &'static str> {
    let number = text.trim().parse().ok().filter(|number: &u64| *number > 0);
    number.and_then(|number| N::try_from(number).ok()).ok_or("it has to be a whole number from 1 on")
}

/// A number of seconds; which of them are taken is said where it is known what for.
pub(crate) fn number(text: &str) -> Result<f64, &'static str> {
    text.trim().parse().map_err(|_| "it has to be a number of seconds")
}

const AGENT_HELP: &str = "\
Examples:
  selvedge agent \"What is the total of each quarter in these CSV files?\" --model gpt-5
  selvedge agent \"…\" --coder codex --max-task-executions 2 --budget cost=1
  selvedge agent \"…\" --tool read_file --tools ./tools --no-publish
  selvedge agent \"…\" --library ./library       # as `selvedge tools export ./library` wrote it

A model decides which tools the task needs; what is missing, a coder writes, as a Python file that runs in a sandbox. What fails is
mended, and what is proven goes to the tool library (`selvedge tools list`). The same as a file: {\"query\": \"…\"}, with `run`.";

/// How agents work: that of a query, and those of a data set's tasks.
#[derive(Args, Debug)]
pub(crate) struct AgentOptions {
    /// A tool besides those of the library, by name
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Who writes tools: the model of the role `coder`, or the codex CLI
    #[arg(long, value_name = "CODER", value_parser = ["model", "codex"])]
    pub(crate) coder: Option<String>,
    /// Rounds of manager and executor at most
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) max_task_executions: Option<u32>,
    /// Rounds of tool calls in each
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) max_steps: Option<u32>,
    /// After how many of these the tools are looked at
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    pub(crate) tool_enhance_interval: Option<u32>,
}

impl AgentOptions {
    /// The fields of an agent's document that say so.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let counts = [
            ("max_task_executions", self.max_task_executions),
            ("max_steps", self.max_steps),
            ("tool_enhance_interval", self.tool_enhance_interval),
        ];
        let mut fields: Map<String, Value> =
            counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), json!(count?)))).collect();
        fields.extend(self.coder.as_ref().map(|coder| ("coder".to_owned(), json!(coder))));
        if !self.tool.is_empty() {
            fields.insert("tools".to_owned(), json!(self.tool));
        }
        fields
    }
}

/// `selvedge agent` (C-16).
#[derive(Args, Debug)]
#[command(after_help = AGENT_HELP)]
pub(crate) struct AgentArgs {
    /// What is to be done
    pub(crate) query: String,
    /// How it works.
    #[command(flatten)]
    pub(crate) agent: AgentOptions,
    /// Begin with the tools of a folder: what the library does not have of it yet is imported first
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Option<std::path::PathBuf>,
    /// Keep the tools that it has made to this run
    #[arg(long)]
    pub(crate) no_publish: bool,
    /// How it is run.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const CHECK_HELP: &str = "\
Examples:
  selvedge check plan.json
  selvedge check plans/*.json --tools ./tools --json
  selvedge check plan.json --allow-write out      # as `run` would be allowed

Exits with 0 if there are only warnings, with 2 if there are errors.";

/// `selvedge check`.
#[derive(Args, Debug)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// The documents
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// How it is read.
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// The options of commands that compile a document without running it (C-10).
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Which tools there are.
    #[command(flatten)]
    pub(crate) from: Sources,
    /// Which plan, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub(crate) plan: Option<String>,
    /// The dialect, instead of finding out: plan, steps, workflow or agent
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
}

/// An option that only means something where a run begins: it is refused in the middle of one, and not shown (C-10).
fn begins(option: clap::Arg) -> clap::Arg {
    option.hide(true)
}

const RESUME_HELP: &str = "\
Examples:
  selvedge resume 1kq3
  selvedge resume 1kq3 --allow-network --json

What the run was started with holds, unless an option says otherwise.
Finished work is not done again; a failed run takes tools as they are now.";

/// `selvedge resume`.
#[derive(Args, Debug)]
#[command(after_help = RESUME_HELP, mut_arg("plan", begins), mut_arg("dialect", begins), mut_arg("input", begins), mut_arg("run_id", begins))]
pub(crate) struct ResumeArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    #[arg(default_value = "@")]
    pub(crate) run: String,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const ANSWER_HELP: &str = "\
Examples:
  selvedge answer 1kq3 sure yes                     # the node that asks
  selvedge answer 1kq3 n2/approve yes
  selvedge answer @ yes                            # the only open ask of the latest run
  selvedge answer 1kq3 n2/approve no --no-continue
  selvedge answer 1kq3 n4/call/1/1 done --output '{\"id\": 7}'
  selvedge answer 1kq3 n4/call/1/1 done --output \"$(cat came-back.json)\"

The open asks of a run are in `selvedge show RUN`; ASK is an id, or a node that does nothing but ask, and may be left out if only one is open. For an approval VALUE is \
yes or no. For a call of which nobody knows whether it happened yes runs it again, no is a fault, and done says that \
it happened; --output is what came back, as JSON (else null). Who said no to such a call may say yes or done later. \
A run that another process drives is told there, and goes on there.";

/// `selvedge answer`.
#[derive(Args, Debug)]
#[command(after_help = ANSWER_HELP, override_usage = "selvedge answer [OPTIONS] <RUN> [ASK] <VALUE>", mut_arg("plan", begins), mut_arg("dialect", begins), mut_arg("input", begins), mut_arg("run_id", begins))]
pub(crate) struct AnswerArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
    /// The ask's id, or the node that asks; it may be left out if only one is open
    pub(crate) ask: Option<String>,
    /// The answer: yes or no, of a call in doubt also done
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: Option<String>,
    /// With done: what came back from the call, as JSON: an object, or a text in quotes
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) output: Option<String>,
    /// Who answers, for the record
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) why: Option<String>,
    /// Only record the answer
    #[arg(long)]
    pub(crate) no_continue: bool,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const MESSAGE_HELP: &str = "\
Examples:
  selvedge message 1kq3 'The file of March is wrong; take April.'
  selvedge message @ --to research 'Only sources after 2020.'
  selvedge message 1kq3 @notes.md --by ada

An agent has it in its conversation before its model is asked the next time, behind the results of the calls that are under way; if it was about to \
end, it goes on. --to is needed where several agents go on at once. A run that another process drives is told there, and goes on there.";

/// `selvedge message`.
#[derive(Args, Debug)]
#[command(after_help = MESSAGE_HELP, mut_arg("plan", begins), mut_arg("dialect", begins), mut_arg("input", begins), mut_arg("run_id", begins))]
pub(crate) struct MessageArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
    /// What is said; @FILE is what a file holds, - what comes on stdin
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// The node that is meant, or that the agent is in
    #[arg(long, value_name = "NODE")]
    pub(crate) to: Option<String>,
    /// Who says it, for the record
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Only record the message
    #[arg(long)]
    pub(crate) no_continue: bool,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const FORK_HELP: &str = "\
Examples:
  selvedge fork 1kq3                               # its end once more
  selvedge fork 1kq3 --at 24 --model qwen3         # another model from there on
  selvedge fork 1kq3 --set-message 31='Thursday.'  # as if that had been said
  selvedge fork 1kq3 --document edited.json        # another document
  selvedge fork 1kq3 --document edited.json --dry-run

Events are those of `selvedge show RUN --events`. The run itself is not changed, and may still go on. Whatever the \
edits leave as it was is taken from the run; only the rest is asked again. A node that had finished by event N \
while an earlier one of the list had not starts anew: it takes its recorded answers too, unless its model changed.";

/// `selvedge fork`.
#[derive(Args, Debug)]
#[command(after_help = FORK_HELP)]
pub(crate) struct ForkArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
    /// The last event that the fork shares with the run; without it the run's last one
    #[arg(long, value_name = "EVENT", value_parser = count::<u64>, allow_negative_numbers = true)]
    pub(crate) at: Option<u64>,
    /// Another document in place of the run's
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Option<PathBuf>,
    /// Another text for the message that event N appended
    #[arg(long, value_name = "N=TEXT", allow_hyphen_values = true)]
    pub(crate) set_message: Vec<String>,
    /// Only say what would be taken from the run and what would run, and why: nothing is recorded, asked or called
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How it is run from here on.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

const CANCEL_HELP: &str = "\
Example:
  selvedge cancel 1kq3

A run that another process drives ends there.";

/// `selvedge cancel`.
#[derive(Args, Debug)]
#[command(after_help = CANCEL_HELP)]
pub(crate) struct CancelArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    pub(crate) run: String,
    /// Do not ask first: a terminal asks
    #[arg(long)]
    pub(crate) yes: bool,
}

const MIGRATE_HELP: &str = "\
Examples:
  selvedge migrate flow.json                       # prints the new form; the file stays as it is
  selvedge migrate flow.json --write

Older forms are `forkId` and `forkPaths` of forks and joins in workflows: `forkPathIds` and `childNodeIds` stand in their \
place. Order, layout and everything else in the file stay as they are, and what the document means does. Files that a workflow names are documents of \
their own.";

/// `selvedge migrate`.
#[derive(Args, Debug)]
#[command(after_help = MIGRATE_HELP)]
pub(crate) struct MigrateArgs {
    /// The document
    pub(crate) file: PathBuf,
    /// Change the file, all at once, in place of printing
    #[arg(long)]
    pub(crate) write: bool,
}
