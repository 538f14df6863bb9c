//! `selvedge explain`: when each node ran, whom it waited for and why, and whose messages it saw (C-15, P-20).

mod again;
mod bars;
mod before;
mod critical;
mod page;
mod seen;
mod statuses;
mod story;
mod table;
mod tree;

pub(super) use statuses::statuses;

use super::out::Out;
use super::{Found, guarded, time};
use crate::args::{Common, count};
use crate::failure::Exit;
use crate::nodes::Tally;
use crate::recovery;
use crate::ui::Ui;
use before::Waited;
use clap::Args;
use critical::Step;
use seen::Seen;
use selvedge_engine::schedule::Schedule;
use selvedge_engine::{Graph, RunStatus, State};
use selvedge_host::Error;
use selvedge_host::report::Said;
use selvedge_host::text::or_meant;
use selvedge_host::timeline::{Activity, Durations, Moment, Rung, Spent, Timeline};
use selvedge_store::RunInfo;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use story::{At, Story};

const EXPLAIN_HELP: &str = "\
Examples:
  selvedge explain 1kq3
  selvedge explain 1kq3 --node report
  selvedge explain @ --slowest 5
  selvedge explain @ --critical
  selvedge explain 1kq3 --json

TOOK is work; what a node waited for its calls' turn (QUEUED), or for a person, another try or other nodes (WAITED), \
stands beside it. What has not ended goes on until now, or until the last event if no process drives the run. A node waits for the earlier nodes that it can observe, and for no others; » marks one that started before an \
earlier node had finished. Of a node that ran several times, after a resume, the last time is shown. Under a fork or a loop \
stands what is in its paths and iterations; of many of them the slowest, and those that failed.";

/// `selvedge explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct ExplainArgs {
    /// The run: its id or enough of its beginning; @ is the latest, @-1 the one before
    #[arg(default_value = "@")]
    pub(crate) run: String,
    /// One node, with its reasons in full
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// Only the N nodes that worked longest, the longest first
    #[arg(long, value_name = "N", value_parser = count::<usize>, conflicts_with = "node", allow_negative_numbers = true)]
    pub(crate) slowest: Option<usize>,
    /// Also the critical path: the chain of nodes and waits that set how long the run took
    #[arg(long, conflicts_with = "node")]
    pub(crate) critical: bool,
}

/// The run that is explained.
struct Subject {
    info: RunInfo,
    driven: bool,
    /// Whether it is none that is recorded, so that no command reaches it.
    simulated: bool,
}

impl Subject {
    fn run(&self) -> &str {
        &self.info.id
    }

    fn title(&self) -> String {
        if self.simulated { self.info.id.clone() } else { format!("run {}", self.info.id) }
    }
}

/// A run, explained.
struct Explained<'s> {
    graph: Arc<Graph>,
    state: &'s State,
    story: Story,
    waits: Vec<Vec<Waited>>,
    /// Where the rungs of each node stand in the story's ladder.
    by_node: HashMap<Arc<str>, Vec<usize>>,
    /// How many nodes have come how far.
    tally: Tally,
    /// Where the run stands, and whether a process drives it.
    status: RunStatus,
    driven: bool,
}

/// Explains a run.
pub(crate) fn explain(args: &ExplainArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let found = Found::new(common, &args.run, ui)?;
    let ui = &guarded(ui);
    let (state, story) = story::read(&found)?;
    let found = Subject { info: found.info, driven: found.driven, simulated: false };
    let explained = Explained::new(&state, story, found.driven);
    let only = args.node.as_deref().map(|id| explained.find(id, found.run())).transpose()?;
    let critical = args.critical.then(|| critical::path(&explained));
    let nodes = match (only, args.slowest) {
        (Some(only), _) => vec![only],
        (None, Some(most)) => explained.slowest(most),
        (None, None) => explained.story.all().collect(),
    };
    match (ui.json, only) {
        (true, only) => explained.print_json(&found, &nodes, only, critical.as_deref(), ui)?,
        (false, Some(node)) => page::one(&explained, &found, node, ui),
        (false, None) => {
            page::all(&explained, &found, args.slowest.map(|_| &*nodes), critical.as_deref(), ui);
        }
    }
    Ok(Exit::Completed)
}

/// Shows a run that is recorded nowhere, as `explain` shows one that is.
pub(crate) fn simulated(info: RunInfo, state: &State, timeline: Timeline, ui: &Ui) {
    let story = Story::new(timeline, state.graph(), None);
    let explained = Explained::new(state, story, false);
    page::all(&explained, &Subject { info, driven: false, simulated: true }, None, None, ui);
}

impl<'s> Explained<'s> {
    fn new(state: &'s State, story: Story, driven: bool) -> Self {
        let graph = Arc::clone(state.graph());
        let schedule = Schedule::derive(&graph, state.start().sequential);
        let waits = before::all(&story, &schedule);
        let mut by_node: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (at, rung) in story.rungs().iter().enumerate() {
            by_node.entry(rung.node.clone()).or_default().push(at);
        }
        let (tally, status) = (Tally::of(state), state.status());
        Self { graph, state, story, waits, by_node, tally, status, driven }
    }

    /// The instance that people are told is called so, or that reports call so (W-03): of several iterations the last.
    fn find(&self, id: &str, run: &str) -> Result<At, Error> {
        let called = |at: &At| {
            let node = self.story.node(*at);
            node.is_some_and(|node| *self.state.report_name(&self.story.timeline.event_name(node)) == *id)
        };
        let told = self.story.root().chain(self.story.all()).find(|at| self.story.name(*at) == id);
        let found = told.or_else(|| self.story.all().rev().find(called));
        found.ok_or_else(|| {
            let ids: Vec<&str> = self.graph.nodes.values().take(20).map(|node| &*node.id).collect();
            let more = if self.graph.nodes.len() > ids.len() { ", …" } else { "" };
            let help = match ids.is_empty() {
                true => "it has no nodes".to_owned(),
                false => format!("its nodes are: {}{more}", ids.join(", ")),
            };
            let known: Vec<&str> = self.graph.nodes.values().map(|node| &*node.id).collect();
            let help = or_meant(id, &known, &help);
            let message = format!("run {run} has no node \"{id}\"");
            Error::usage("C-15", "unknown-node", &message).help(&help)
        })
    }

    /// The nodes that worked longest, the longest first; of equal ones the first in the list. What only waits for what it has opened
    /// is none of them.
    fn slowest(&self, most: usize) -> Vec<At> {
        let started = self.story.all().filter(|at| self.story.started(*at).is_some());
        let own = started.filter(|at| self.story.visit(*at).is_some_and(|visit| visit.frames.is_empty()));
        let mut nodes: Vec<(i64, At)> = own.map(|at| (self.story.durations(at).worked(), at)).collect();
        nodes.sort_by_key(|(worked, at)| (std::cmp::Reverse(*worked), *at));
        nodes.into_iter().take(most).map(|(_, at)| at).collect()
    }

    fn name(&self, at: At) -> &str {
        self.story.name(at)
    }

    fn waits(&self, at: At) -> &[Waited] {
        self.waits.get(at).map_or(&[], |waits| waits)
    }

    /// What was done about a node's faults (D-22).
    fn rungs(&self, at: At) -> impl Iterator<Item = &Rung> {
        let rungs = self.by_node.get(self.name(at)).filter(|_| self.story.root_node(at).is_some());
        rungs.into_iter().flatten().filter_map(|at| self.story.rungs().get(*at))
    }

    /// Prints C-15's object, node by node: the lists of all nodes together can be much longer than the document.
    fn print_json(
        &self,
        found: &Subject,
        nodes: &[At],
        only: Option<At>,
        critical: Option<&[Step]>,
        ui: &Ui,
    ) -> Result<(), Error> {
        let mut out = Out::new(ui);
        let mut seen = Seen::new(&self.story, self.state);
        let mut separator = "{\"nodes\":[";
        for at in nodes {
            let object = self.object(found, *at, only.is_some(), &mut seen);
            if !out.json(separator, &object.to_string(), "")? {
                break;
            }
            separator = ",";
        }
        out.write(if separator == "," { "]" } else { "{\"nodes\":[]" })?;
        // Also of nodes that others have taken the place of (D-20, D-22).
        let id = only.map(|only| self.name(only));
        let rungs = self.story.rungs().iter().filter(|rung| id.is_none_or(|id| *rung.node == *id));
        let rungs: Vec<Value> = rungs.map(recovery::json).collect();
        if !rungs.is_empty() {
            out.json(",\"recovery\":", &Value::from(rungs).to_string(), "")?;
        }
        let roles = self.story.timeline.roles();
        if only.is_none() && roles.len() > 1 {
            let roles: serde_json::Map<String, Value> =
                roles.iter().map(|(role, spent)| (role.to_string(), spent_json(spent))).collect();
            out.json(",\"roles\":", &Value::from(roles).to_string(), "")?;
        }
        if let Some(steps) = critical {
            out.json(",\"critical\":", &critical::json(self, steps).to_string(), "")?;
        }
        out.write("}\n")?;
        out.finish()
    }

    /// C-15's object of a node; with each of its calls if it is the `only` one.
    fn object<'a>(&'a self, found: &Subject, node: At, only: bool, seen: &mut Seen<'a>) -> Value {
        let when = |moment: Option<Moment>| moment.map(|moment| time::rfc3339(moment.at));
        let waited = self.waits(node).iter();
        let waited: Vec<Value> =
            waited.map(|waited| json!({"node": self.name(waited.at), "why": waited.why})).collect();
        let mut object = json!({
            "node": self.name(node),
            "started": when(self.story.started(node)),
            "ended": when(self.story.ended(node)),
            "waited_for": waited,
            "ran_ahead": self.story.ran_ahead(node),
        });
        let Some(fields) = object.as_object_mut() else { return object };
        fields.insert("messages_from".to_owned(), json!(seen.messages_from(node).unwrap_or_default()));
        if only {
            let saw = seen.calls(node);
            let saw = saw
                .iter()
                .map(|saw| json!({"effect": saw.effect, "messages": saw.messages, "from": saw.from}));
            fields.insert("saw".to_owned(), saw.collect());
        }
        let afresh = again::of(self, node);
        if !afresh.is_empty() {
            let name = |node: &str| self.state.told_name(node).into_owned();
            let afresh: Vec<Value> =
                afresh.iter().map(|request| selvedge_host::report::afresh(request, name)).collect();
            fields.insert("afresh".to_owned(), afresh.into());
        }
        if again::edited(self, node) {
            fields.insert("edited".to_owned(), true.into());
        }
        if self.story.started(node).is_some()
            && let Value::Object(figures) = figures(&self.story.durations(node))
        {
            fields.extend(figures);
        }
        if let Some(reused) = self.story.reused(node).filter(|reuse| reuse.whole()) {
            fields.insert("reused_from".to_owned(), reused.from.map_or(found.run(), |from| from).into());
        }
        let rungs: Vec<Value> = self.rungs(node).map(recovery::json).collect();
        if let Some((fault, printed)) = self.story.fault(node) {
            fields.insert("fault".to_owned(), json!(fault));
            printed.map(|printed| fields.insert("printed".to_owned(), json!(printed)));
        }
        if !rungs.is_empty() {
            fields.insert("recovery".to_owned(), Value::from(rungs));
        }
        let answers: Vec<Value> = self.story.answers(node).map(|answer| Said::json(&answer)).collect();
        if !answers.is_empty() {
            fields.insert("answers".to_owned(), answers.into());
        }
        object
    }
}

/// What a role has used.
fn spent_json(spent: &Spent) -> Value {
    json!({
        "model_calls": spent.calls, "input_tokens": spent.tokens.input, "output_tokens": spent.tokens.output,
        "cost": spent.tokens.shown_cost(),
    })
}

/// C-15's figures. What the journal does not tell is null.
fn figures(sums: &Durations) -> Value {
    let known = sums.get(Activity::InFlight) == 0;
    json!({
        "total_ms": sums.total(),
        "worked_ms": known.then(|| sums.worked()),
        "queued_ms": known.then(|| sums.queued()),
        "waited_ms": sums.waited(),
        "waited": {
            "person_ms": sums.get(Activity::Asking),
            "retry_ms": sums.get(Activity::Retrying),
            "other_ms": sums.get(Activity::Other),
        },
    })
}
