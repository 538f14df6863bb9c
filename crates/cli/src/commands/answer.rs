//! `selvedge answer`: what a person says to a run (C-13, E-21, E-43).

use crate::args::{AnswerArgs, Common};
use crate::asks;
use crate::block_on::block_on;
use crate::commands::resume::go_on_or_record;
use crate::failure::Exit;
use crate::ui::Ui;
use selvedge_host::answer::no_such_ask;
use selvedge_host::{Answer, Error, Host};

/// Records an answer, and goes on with the run unless another process does.
pub(crate) fn answer(args: &AnswerArgs, common: &Common, ui: Ui) -> Result<Exit, Error> {
    let over = crate::options::for_resume(&ui.environment, &args.exec)?;
    let host = ui.host(common)?;
    let Some(answer) = said(args)? else { return Err(nothing_said(&host, &args.run)?) };
    let given = block_on(0, host.answer(&args.run, &answer))??;
    go_on_or_record(&host, given, "answer", (args.no_continue, &args.exec, &over), ui)
}

/// What was said, and to which ask; read once, whoever takes it. With one word alone, it is the answer to the only open ask.
fn said(args: &AnswerArgs) -> Result<Option<Answer>, Error> {
    let (ask, said) = match (&args.ask, &args.value) {
        (ask, Some(said)) => (ask.clone(), said),
        (Some(said), None) => (None, said),
        (None, None) => return Ok(None),
    };
    let said = asks::read_text(said).map_err(|why| {
        Error::usage("C-13", "bad-answer", &why)
            .help("a text that begins with @ is written as JSON, in quotes")
    })?;
    let (output, by, why) = (args.output.clone(), args.by.clone(), args.why.clone());
    Ok(Some(Answer { ask, said, output, by, why }))
}

/// There is a run, and no answer: what can be answered.
fn nothing_said(host: &Host, run: &str) -> Result<Error, Error> {
    let run = host.load(run)?;
    let (id, state) = (run.id(), &run.state);
    let open = state.asks().keys().filter(|_| state.ended().is_none());
    let mut ways: Vec<String> = open.map(|ask| asks::answers(state, id, ask)).collect();
    ways.extend(state.declined().map(|(ask, _)| asks::ways_in_line(id, ask)));
    if ways.is_empty() {
        return Ok(no_such_ask("", id, state));
    }
    Ok(Error::usage("C-13", "bad-answer", &format!("the answer to run {id} is missing: VALUE"))
        .help(&ways.join(", or ")))
}
