//! What a person says to a run that answers no question (E-43, C-13).

use crate::error::Error;
use crate::give::Given;
use crate::host::Host;
use crate::recorded::RecordedRun;
use crate::ways::WayOut;
use selvedge_engine::{Input, MessageRefusal, PersonMessage, RunStatus, State};
use selvedge_runtime::Refusal;
use std::sync::Arc;

impl Host {
    /// Says something to a run that answers no question: a node that takes messages has it in its conversation before its model is asked
    /// the next time. `run` is its id or enough of its beginning; [`PersonMessage::to`] is a node as people are told that it is (W-03).
    ///
    /// # Errors
    /// There is no such run, it has ended, nobody takes messages, there is no such node, several take them and none is named, or the text is
    /// empty, too long, or holds a key. Nothing of it is recorded then.
    pub async fn message(&self, run: &str, message: &PersonMessage) -> Result<Given, Error> {
        let texts = [Some(&message.text), message.to.as_ref(), message.by.as_ref()];
        self.refuse_key(run, "the message", texts.into_iter().flatten().map(|text| &**text))?;
        let says = |run: &RecordedRun| {
            let message = meant(run.id(), &run.state, message)?;
            let refusal = run.state.message_refusal(&message);
            match refusal {
                Some(refusal) => Err(refused(run.id(), &run.state, message.to.as_deref(), &refusal)),
                None => Ok(vec![Input::PersonMessage(message)]),
            }
        };
        let not_taken = |run: &RecordedRun, refusal: &Refusal| match says(run) {
            Err(error) => error,
            Ok(_) => Error::usage("E-43", "message-refused", &refusal.to_string()),
        };
        self.give(run, &says, &not_taken).await
    }
}

/// The message with its node as events call it.
fn meant(run: &str, state: &State, message: &PersonMessage) -> Result<PersonMessage, Error> {
    if state.ended().is_some() {
        return Err(ended(run, state));
    }
    let mut meant = message.clone();
    if let Some(to) = &message.to {
        let targets = state.message_targets();
        let known = targets.into_iter().find(|name| name == to || state.told_name(name) == **to);
        meant.to = Some(known.unwrap_or_else(|| Arc::clone(to)));
    }
    Ok(meant)
}

fn ended(run: &str, state: &State) -> Error {
    let help = match state.status() {
        RunStatus::Failed => format!("{} goes on with it; then it can be told", WayOut::Resume(run)),
        _ => format!("what was said in it can be changed in a fork: {}", WayOut::Fork { run, at: Some(1) }),
    };
    Error::usage("E-43", "run-ended", &format!("run {run} has ended: nobody hears a message")).help(&help)
}

fn refused(run: &str, state: &State, to: Option<&str>, refusal: &MessageRefusal) -> Error {
    let error = |code, message: &str| Error::usage("E-43", code, message);
    let listed = |names: &[Arc<str>]| {
        names.iter().map(|name| state.told_name(name).into_owned()).collect::<Vec<_>>().join(", ")
    };
    match refusal {
        MessageRefusal::NobodyTakes => {
            let message = format!("nobody in run {run} takes messages");
            error("nobody-takes-messages", &message).help(
                "agents do, between their rounds; other documents ask people what they want to know (E-21)",
            )
        }
        MessageRefusal::NotThere => {
            let to = to.unwrap_or_default();
            let message = format!("{:?} takes no messages now", state.told_name(to));
            let targets = state.message_targets();
            error("no-such-node", &message).help(&match targets.is_empty() {
                true => {
                    "no node does at this moment; without a node the next one that does takes it".to_owned()
                }
                false => format!("these do, with what is in them: {}", listed(&targets)),
            })
        }
        MessageRefusal::Several(names) => {
            let message = format!("several agents go on in run {run}: say which one is meant");
            error("which-node", &message).help(&format!("one of: {}", listed(names)))
        }
        MessageRefusal::Empty => error("empty-message", "the message says nothing")
            .help("give a text, @FILE for what a file holds, or - for what comes on stdin"),
        MessageRefusal::TooLong(why) => error("message-too-long", why).help("say it in fewer words"),
        MessageRefusal::TooMany(most) => {
            let message = format!("{most} messages wait to be taken by run {run} already");
            error("too-many-messages", &message).help("say more once it has taken them")
        }
    }
}
