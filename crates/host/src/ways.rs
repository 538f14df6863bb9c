//! Ways out: what somebody can do next, as errors and warnings of this crate say it. They are values here. How people do it is
//! a matter of the program, which hands in its words for them ([`worded_by`]), as it hands in its environment.

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Something that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayOut<'a> {
    /// Looking at a run, as it was at an event if one is named.
    Show {
        /// The run's id.
        run: &'a str,
        /// The event's number.
        at: Option<u64>,
    },
    /// Looking at a run's events.
    Events(&'a str),
    /// Having a run's events as they are stored.
    Export(&'a str),
    /// Going on with a run.
    Resume(&'a str),
    /// Ending a run.
    Cancel(&'a str),
    /// Going on from an event of a run, or with another document.
    Fork {
        /// The run's id.
        run: &'a str,
        /// The event's number; without one another document is meant.
        at: Option<u64>,
    },
    /// Answering an ask.
    Answer {
        /// The run's id.
        run: &'a str,
        /// The ask's id.
        ask: &'a str,
        /// The answer, or the answers that there are: `yes|no`.
        said: &'a str,
        /// What came back from a call that is said to have happened.
        output: Output<'a>,
    },
    /// Seeing which runs there are.
    Runs,
    /// Looking at a tool, which is perhaps in these folders only.
    ShowTool {
        /// Its name.
        name: &'a str,
        /// The folders that were named.
        folders: &'a [PathBuf],
    },
    /// Seeing which versions of a tool there are.
    ToolVersions(&'a str),
    /// Seeing which tools there are, whatever became of them.
    AllTools,
    /// Seeing which models there are, at an address if that is named.
    Models(Option<&'a str>),
    /// Trusting a folder; without one the folder that is the current one.
    Trust(Option<&'a str>),
    /// Seeing what is there on this machine.
    Doctor,
}

/// What came back from a call that happened, as it is to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// It need not be given.
    None,
    /// Any JSON.
    Any,
    /// This JSON.
    Json(&'a str),
    /// What a file holds.
    OfFile(&'a str),
}

type Words = fn(&WayOut<'_>) -> String;

static WORDS: OnceLock<Words> = OnceLock::new();

/// Takes the words in which this program tells its people what they can do, for the whole process: the first ones count. A
/// program without words of its own tells of operations by their names.
pub fn worded_by(words: Words) {
    WORDS.get_or_init(|| words);
}

impl fmt::Display for WayOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WORDS.get() {
            Some(words) => f.write_str(&words(self)),
            None => self.by_name(f),
        }
    }
}

impl WayOut<'_> {
    fn by_name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Show { run, at: None } => write!(f, "show {run}"),
            Self::Show { run, at: Some(at) } => write!(f, "show {run} at event {at}"),
            Self::Events(run) => write!(f, "events of {run}"),
            Self::Export(run) => write!(f, "export {run}"),
            Self::Resume(run) => write!(f, "resume {run}"),
            Self::Cancel(run) => write!(f, "cancel {run}"),
            Self::Fork { run, at: Some(at) } => write!(f, "fork {run} at event {at}"),
            Self::Fork { run, at: None } => write!(f, "fork {run} with another document"),
            Self::Answer { run, ask, said, output } => {
                write!(f, "answer {run} {ask} {said}")?;
                match output {
                    Output::None => Ok(()),
                    Output::Any => f.write_str(" with JSON"),
                    Output::Json(json) => write!(f, " with {json}"),
                    Output::OfFile(file) => write!(f, " with what {file} holds"),
                }
            }
            Self::Runs => f.write_str("list runs"),
            Self::ShowTool { name, .. } => write!(f, "show tool {name}"),
            Self::ToolVersions(name) => write!(f, "list versions of {name}"),
            Self::AllTools => f.write_str("list all tools"),
            Self::Models(None) => f.write_str("list models"),
            Self::Models(Some(url)) => write!(f, "list models of {url}"),
            Self::Trust(None) => f.write_str("trust this folder"),
            Self::Trust(Some(folder)) => write!(f, "trust {folder}"),
            Self::Doctor => f.write_str("look at this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who embeds this crate and has no words of his own reads of no command that his program lacks.
    #[test]
    fn operations_have_names() {
        let sent = Output::Json("{}");
        for (way, name) in [
            (WayOut::Show { run: "r", at: Some(3) }, "show r at event 3"),
            (WayOut::Answer { run: "r", ask: "n", said: "done", output: sent }, "answer r n done with {}"),
            (WayOut::Models(None), "list models"),
        ] {
            assert_eq!(way.to_string(), name);
        }
    }
}
