//! `selvedge answer`: what a person says to a waiting run (C-13, E-21).

use crate::args::{AnswerArgs, Common};
use crate::chosen::Chosen;
use crate::commands::resume::{Held, go_on};
use crate::commands::run::now_ms;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::hints::command;
use crate::output::ask_kind;
use crate::places;
use crate::secrets;
use crate::setup;
use crate::trust::Gate;
use crate::ui::Ui;
use selvedge_engine::{AskKind, Input, Record, RunStatus as RunState, State};
use selvedge_runtime::load;
use selvedge_store::{Entry, RunStatus, RunUpdate};
use serde_json::Value;

/// Records an answer and goes on with the run.
pub(crate) fn answer(args: &AnswerArgs, common: &Common, ui: Ui) -> Result<Exit, Failure> {
    no_key(args, common, &ui)?;
    if args.no_continue {
        return record(args, common, &ui);
    }
    go_on(&args.run, &args.exec, common, ui, |state| Ok(vec![input(args, state)?]))
}

/// An answer is recorded: none holds a key of this environment, or of the configuration that the run began with (C-06).
fn no_key(args: &AnswerArgs, common: &Common, ui: &Ui) -> Result<(), Failure> {
    let (_, store) = setup::open_existing(common.state_dir.as_deref(), &args.run)?;
    let info = store.run(&store.find_run(&args.run)?)?;
    let files = places::config_files(&Chosen::stored(&info.options).cwd);
    let quiet = Ui { quiet: true, ..ui.clone() };
    let mut config = Config::load_silently(&files, Gate::default(), &quiet)?;
    config.add_options(&Chosen::stored(&info.options), &quiet)?;
    secrets::refuse_text(&secrets::named(&config), "the answer", &args.value)
}

/// The answer as an input of the run.
fn input(args: &AnswerArgs, state: &State) -> Result<Input, Failure> {
    let open = if state.ended().is_some() { None } else { state.asks().get_key_value(args.ask.as_str()) };
    let Some((id, asking)) = open else { return Err(no_such_ask(args, state)) };
    let value = match (asking.kind, args.value.trim().to_ascii_lowercase().as_str()) {
        (AskKind::Approve, answer @ ("yes" | "no")) => Value::from(answer),
        (AskKind::Approve, _) => {
            let message = format!("the ask {} wants yes or no, not {:?}", args.ask, args.value);
            return Err(Failure::usage("C-13", "bad-answer", &message)
                .help(&command(&["answer", &args.run, &args.ask, "yes|no"])));
        }
        _ => Value::from(args.value.as_str()),
    };
    Ok(Input::Answer(id.clone(), value))
}

fn no_such_ask(args: &AnswerArgs, state: &State) -> Failure {
    let message = format!("run {} has no open ask \"{}\"", args.run, args.ask);
    let open: Vec<String> = match state.ended() {
        Some(_) => Vec::new(),
        None => state.asks().iter().map(|(id, ask)| format!("{id} ({})", ask_kind(ask.kind))).collect(),
    };
    let help = match open.is_empty() {
        true => match state.status() {
            RunState::Completed | RunState::Cancelled => {
                format!("the run has ended: {}", command(&["show", &args.run]))
            }
            RunState::Failed => format!(
                "the run has failed, and waits for nobody: {} goes on with it",
                command(&["resume", &args.run])
            ),
            // Its process has ended before it asked, or before it went on with the answer.
            _ => format!("it waits for nobody now: {} goes on with it", command(&["resume", &args.run])),
        },
        false => format!("its open asks are: {}", open.join(", ")),
    };
    Failure::usage("C-13", "unknown-ask", &message).help(&help)
}

/// Only records the answer; the run goes on with the next `resume` (`--no-continue`).
fn record(args: &AnswerArgs, common: &Common, ui: &Ui) -> Result<Exit, Failure> {
    let held = Held::take(common.state_dir.as_deref(), &args.run)?;
    let mut state = load(&held.store, &held.run, None, None)?.state;
    let input = input(args, &state)?;
    let at = state.tick(now_ms());
    let event = state.accept(input).ok_or_else(|| Failure::internal("an open ask takes no answer"))?;
    let json = serde_json::to_string(&event).map_err(|error| Failure::internal(&error.to_string()))?;
    state.apply_record(&Record { at, event });
    let entry = Entry { n: state.events(), at_ms: at, json };
    // Other asks may still be open: the run waits for them, unless this answer lets it go on.
    let status = match state.status() {
        RunState::Waiting => RunStatus::Waiting,
        _ => RunStatus::Running,
    };
    let update = RunUpdate { status: Some((status, None)), ..RunUpdate::default() };
    held.store.append_and_update(&held.run, vec![entry], update).wait()?;
    held.print(&state, false, ui)?;
    Ok(Exit::Completed)
}
