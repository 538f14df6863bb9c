//! `selvedge answer`: what a person says to a run (C-13, E-21, E-43).

use crate::args::{AnswerArgs, Common};
use crate::asks;
use crate::commands::driven;
use crate::commands::resume::{LockedRun, go_on};
use crate::failure::Exit;
use crate::output::ask_kind;
use crate::ui::Ui;
use selvedge_engine::{AskKind, Asking, Input, Record, RunStatus as RunState, State, answered, reasoned};
use selvedge_host::Error;
use selvedge_host::config::Config;
use selvedge_host::hints::{command, quoted};
use selvedge_host::options::RunOptions;
use selvedge_host::places;
use selvedge_host::secrets;
use selvedge_host::trust::Gate;
use selvedge_runtime::{Clock, Command, Refusal, SystemClock, load};
use selvedge_store::{Entry, RunStatus, RunUpdate};
use serde_json::Value;
use std::sync::Arc;

/// Records an answer, and goes on with the run unless another process does.
pub(crate) fn answer(args: &AnswerArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let Some(said) = Said::of(args)? else { return Err(nothing_said(args, common, &ui)?) };
    no_key(args, &said, common, &ui)?;
    let alone = || match args.no_continue {
        true => record(args, &said, common, &ui),
        false => {
            go_on(&args.run, &args.exec, common, ui.clone(), |run, state| Ok(Some(said.inputs(run, state)?)))
        }
    };
    let command = |run: &str, state: &State| {
        let [Input::Answer(ask, value)] = &said.inputs(run, state)?[..] else { return Ok(None) };
        Ok(Some(Command::Answer { ask: Arc::clone(ask), value: value.clone() }))
    };
    driven::give(&args.run, common, &ui, command, refused, alone)
}

/// Why the driver of a run did not take an answer.
fn refused(run: &str, state: &State, refusal: &Refusal) -> Error {
    match refusal {
        Refusal::NotOpen { ask } => no_such_ask(ask, run, state),
        Refusal::Misfit { ask, .. } => {
            Error::usage("C-13", "bad-answer", &refusal.to_string()).help(&asks::answers(state, run, ask))
        }
        Refusal::Ended | Refusal::NotDriven | Refusal::Unreadable { .. } => {
            Error::internal(&refusal.to_string())
        }
    }
}

/// There is a run, and no answer: what can be answered.
fn nothing_said(args: &AnswerArgs, common: &Common, ui: &Ui) -> Result<Error, Error> {
    let (_, store) =
        selvedge_host::stores::open_existing(&ui.environment, common.state_dir.as_deref(), &args.run)?;
    let run = selvedge_host::stores::find_run(&store, &args.run)?;
    let state = load(&store, &run, None, None)?.state;
    let open = state.asks().keys().filter(|_| state.ended().is_none());
    let mut ways: Vec<String> = open.map(|id| asks::answers(&state, &run, id)).collect();
    ways.extend(state.declined().map(|(ask, _)| asks::ways_in_line(&run, ask)));
    if ways.is_empty() {
        return Ok(no_such_ask("", &run, &state));
    }
    Ok(Error::usage("C-13", "bad-answer", &format!("the answer to run {run} is missing: VALUE"))
        .help(&ways.join(", or ")))
}

/// An answer is recorded: none holds a key of this environment, or of the configuration that the run began with (C-06).
fn no_key(args: &AnswerArgs, said: &Said<'_>, common: &Common, ui: &Ui) -> Result<(), Error> {
    let (_, store) =
        selvedge_host::stores::open_existing(&ui.environment, common.state_dir.as_deref(), &args.run)?;
    let info = store.run(&selvedge_host::stores::find_run(&store, &args.run)?)?;
    let files = places::config_files(&ui.environment, &RunOptions::stored(&info.options).cwd);
    let mut config = Config::load(&ui.environment, &files, Gate::default(), &())?;
    config.add_options(&RunOptions::stored(&info.options), &())?;
    let named = secrets::named(&config);
    [Some(&*said.value), said.output, said.by, said.why]
        .into_iter()
        .flatten()
        .try_for_each(|text| secrets::refuse_text(&named, "the answer", text))
}

/// What was said, and to which ask.
struct Said<'a> {
    ask: Option<&'a str>,
    /// What was typed, or what it names holds: read once, whoever takes it.
    value: String,
    output: Option<&'a str>,
    by: Option<&'a str>,
    why: Option<&'a str>,
}

impl<'a> Said<'a> {
    /// With one word alone, it is the answer to the only open ask.
    ///
    /// # Errors
    /// Exit 2 for a file that can't be read.
    fn of(args: &'a AnswerArgs) -> Result<Option<Self>, Error> {
        let (ask, value) = match (args.ask.as_deref(), args.value.as_deref()) {
            (ask, Some(value)) => (ask, value),
            (Some(value), None) => (None, value),
            (None, None) => return Ok(None),
        };
        let value = asks::read_text(value).map_err(|why| {
            Error::usage("C-13", "bad-answer", &why)
                .help("a text that begins with @ is written as JSON, in quotes")
        })?;
        let (output, by, why) = (args.output.as_deref(), args.by.as_deref(), args.why.as_deref());
        Ok(Some(Self { ask, value, output, by, why }))
    }

    /// The answer as inputs of the run.
    fn inputs(&self, run: &str, state: &State) -> Result<Vec<Input>, Error> {
        if let Some((ask, declined)) =
            state.declined().filter(|(ask, _)| self.ask.is_none_or(|named| *named == ***ask))
        {
            // The run has failed of a no, which is taken back.
            return match self.to_doubted(run, ask, &declined.call.name, state)? {
                value if value == "no" => Err(self.said_before(run, ask)),
                value => {
                    Ok(vec![Input::Resume(Vec::new()), Input::Answer(ask.clone(), self.reasoned(value))])
                }
            };
        }
        let ask = self.open_ask(run, state)?;
        let Some(asking) = state.asks().get(&ask) else { return Err(no_such_ask(&ask, run, state)) };
        let value = match (asking.kind, state.doubted_call(asking)) {
            (AskKind::Approve, Some(call)) => self.to_doubted(run, &ask, &call.name, state)?,
            (AskKind::Approve, None) => self.to_approval(run, &ask)?,
            _ if self.output.is_some() => return Err(self.no_output()),
            _ => return Ok(vec![Input::Answer(ask.clone(), self.to_question(&ask, asking, state)?)]),
        };
        Ok(vec![Input::Answer(ask, self.reasoned(value))])
    }

    /// With who answers and why, if that is said.
    fn reasoned(&self, value: Value) -> Value {
        reasoned(value, self.by, self.why)
    }

    /// The id of the ask that is meant.
    fn open_ask(&self, run: &str, state: &State) -> Result<Arc<str>, Error> {
        let mut open = state.asks().keys().filter(|_| state.ended().is_none());
        match (self.ask, open.next(), open.next()) {
            (Some(named), ..) => {
                let found = state.asks().get_key_value(named).filter(|_| state.ended().is_none());
                found.map(|(id, _)| id.clone()).ok_or_else(|| no_such_ask(named, run, state))
            }
            (None, Some(only), None) if **only == self.value => {
                let message = format!("the ask {only} is there, and the answer is missing");
                Err(Error::usage("C-13", "bad-answer", &message).help(&asks::answers(state, run, only)))
            }
            (None, Some(only), None) => Ok(only.clone()),
            (None, None, _) => Err(no_such_ask("", run, state)),
            (None, Some(_), Some(_)) => {
                let message =
                    format!("run {run} has {} open asks: say which one is answered", state.asks().len());
                let open = state.asks().keys().map(|id| asks::answers(state, run, id));
                Err(Error::usage("C-13", "which-ask", &message).help(&open.collect::<Vec<_>>().join(", or ")))
            }
        }
    }

    /// Yes or no.
    fn to_approval(&self, run: &str, ask: &str) -> Result<Value, Error> {
        match self.value.trim().to_ascii_lowercase().as_str() {
            answer @ ("yes" | "no") if self.output.is_none() => Ok(Value::from(answer)),
            "yes" | "no" => Err(self.no_output()),
            "done" => {
                let message = format!(
                    "the ask {ask} wants yes or no: only of a call of which nobody knows whether it happened can \
                     somebody say that it is done"
                );
                Err(Error::usage("C-13", "bad-answer", &message)
                    .help(&command(&["answer", run, ask, "yes|no"])))
            }
            _ => {
                let message = format!("the ask {ask} wants yes or no, not {:?}", self.value);
                Err(Error::usage("C-13", "bad-answer", &message)
                    .help(&command(&["answer", run, ask, "yes|no"])))
            }
        }
    }

    /// What a question is answered with: JSON if it is some, else a text (C-13). One that does not fit is refused, and the ask stays open.
    fn to_question(&self, ask: &str, asking: &Asking, state: &State) -> Result<Value, Error> {
        let value = asks::answer_of(&self.value).map_err(|why| {
            Error::usage("C-13", "bad-answer", &format!("the ask {ask} can't take this answer: {why}"))
                .help("the ask stays open; an answer is JSON, or a text as it is")
        })?;
        if let Some(why) = state.answer_misfit(asking, &value) {
            let message = format!("the ask {ask} can't take this answer: {why}");
            let help = "the ask stays open; an answer is JSON, or a text as it is";
            return Err(Error::usage("C-13", "bad-answer", &message).help(help));
        }
        Ok(answered(value, self.by, self.why))
    }

    /// Yes, no, or that it happened with what came back.
    fn to_doubted(&self, run: &str, ask: &str, tool: &str, state: &State) -> Result<Value, Error> {
        match self.value.trim().to_ascii_lowercase().as_str() {
            answer @ ("yes" | "no") if self.output.is_none() => Ok(Value::from(answer)),
            "yes" | "no" => Err(self.no_output()),
            "done" => self.happened(run, ask, tool, state),
            _ => {
                let message = format!("the ask {ask} wants yes, no or done, not {:?}", self.value);
                let help = command(&["answer", run, ask, "yes|no|done"]);
                Err(Error::usage("C-13", "bad-answer", &message).help(&help))
            }
        }
    }

    fn happened(&self, run: &str, ask: &str, tool: &str, state: &State) -> Result<Value, Error> {
        let typed =
            |json: &str| format!("{} --output {}", command(&["answer", run, ask, "done"]), quoted(json));
        // Other options take a file so, and this one what it holds.
        let file = self.output.and_then(|output| output.strip_prefix('@')).filter(|file| !file.is_empty());
        asks::happened(state, tool, self.output, typed).map_err(|unfit| {
            let failure = Error::usage("C-13", "bad-output", &unfit.why);
            match file {
                None => failure.help(&unfit.help),
                Some(file) => failure.help(&format!(
                    "--output takes the JSON itself, {} for example; what a file holds: {} --output \"$(cat {})\"",
                    quoted("{\"id\": 7}"),
                    command(&["answer", run, ask, "done"]),
                    quoted(file)
                )),
            }
        })
    }

    fn no_output(&self) -> Error {
        let message = format!(
            "--output is what came back from a call that is done, and the answer is {:?}",
            self.value
        );
        Error::usage("C-13", "bad-output", &message).help("leave it out, or answer done")
    }

    fn said_before(&self, run: &str, ask: &str) -> Error {
        let message = format!("somebody has said no to the ask {ask}, and run {run} has failed of it");
        Error::usage("C-13", "bad-answer", &message).help(&asks::ways_in_line(run, ask))
    }
}

fn no_such_ask(ask: &str, run: &str, state: &State) -> Error {
    let named = if ask.is_empty() { String::new() } else { format!(" {ask:?}") };
    let message = format!("run {run} has no open ask{named}");
    let open: Vec<String> = match state.ended() {
        Some(_) => Vec::new(),
        None => state.asks().iter().map(|(id, ask)| format!("{id} ({})", ask_kind(ask.kind))).collect(),
    };
    let help = match open.is_empty() {
        true => match state.status() {
            RunState::Completed | RunState::Cancelled => {
                format!("the run has ended: {}", command(&["show", run]))
            }
            RunState::Failed => format!(
                "the run has failed, and waits for nobody: {} goes on with it",
                command(&["resume", run])
            ),
            // Its process has ended before it asked, or before it went on with the answer.
            _ => format!("it waits for nobody now: {} goes on with it", command(&["resume", run])),
        },
        false => format!("its open asks are: {}", open.join(", ")),
    };
    Error::usage("C-13", "unknown-ask", &message).help(&help)
}

/// Only records the answer; the run goes on with the next `resume` (`--no-continue`).
fn record(args: &AnswerArgs, said: &Said<'_>, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let locked_run = LockedRun::take(&ui.environment, common.state_dir.as_deref(), &args.run)?;
    let mut state = load(&locked_run.store, &locked_run.run, None, None)?.state;
    let mut entries = Vec::new();
    for input in said.inputs(&locked_run.run, &state)? {
        let at = state.tick(SystemClock.now_ms());
        let event = state.accept(input).ok_or_else(|| Error::internal("an open ask takes no answer"))?;
        let json = serde_json::to_string(&event).map_err(|error| Error::internal(&error.to_string()))?;
        state.apply_record(&Record { at, event });
        entries.push(Entry { n: state.events(), at_ms: at, json });
    }
    // Other asks may still be open: the run waits for them, unless this answer lets it go on.
    let status = match state.status() {
        RunState::Waiting => RunStatus::Waiting,
        _ => RunStatus::Running,
    };
    let update = RunUpdate { status: Some((status, None)), ..RunUpdate::default() };
    locked_run.store.append_and_update(&locked_run.run, entries, update).wait()?;
    ui.note("the answer is recorded");
    locked_run.print(&state, false, ui)?;
    Ok(Exit::Completed)
}
