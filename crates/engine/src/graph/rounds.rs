//! The loop of a model and the tools that it calls (E-30): one part of a flow, with parameters.

use super::{Act, Edit, Guard, Infer, Loop, Retry, Times};
use crate::ids::GraphIx;
use crate::template::{JsonTemplate, Template};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What becomes of an empty reply: one without text and calls (E-27).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEmpty {
    /// The same is asked twice more.
    #[default]
    AskAgain,
    /// The last round goes, and the model is asked what it was asked before that: so often at most in a visit of the node.
    /// A round goes only if the visit made it and none of its tools may have changed the world.
    RollBack(u32),
}

impl OnEmpty {
    pub(super) fn asks_again(&self) -> bool {
        *self == Self::AskAgain
    }
}

/// The loop: [`Rounds::leaves`].
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Asks the model, which is offered the flow's tools. What becomes of an empty reply is part of it.
    pub model: Infer,
    /// How often a transient fault of a tool is tried again.
    pub retry: Retry,
    /// Seconds a call may take.
    pub timeout_s: Option<f64>,
    /// What happens when the flow's rounds, or the calls of all of its tools, are used up.
    pub at_limit: AtLimit,
    /// What happens between rounds, if something does.
    pub between: Option<Between>,
    /// Whether what people say at any moment is said to the model: behind the results of the round in which it came, or behind the last reply,
    /// which then is not the last (E-43).
    pub takes_messages: bool,
}

/// What happens at the limit.
#[derive(Clone, Debug)]
pub enum AtLimit {
    /// The model is asked once more, without tools (P-14).
    Conclude,
    /// A model sums up, which is the node's result, and all that is left of the thread.
    HandOver {
        /// What it is told.
        ask: Template,
        /// The model.
        model: Box<Infer>,
        /// A variable of the flow that is set then, for who goes on.
        note: Option<(Arc<str>, JsonTemplate)>,
    },
}

/// What happens between rounds: a graph works on the node's thread.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// After so many rounds each time, and after the last reply if there was a round since.
    pub every: u16,
    /// And after each round with which the thread may be larger than this.
    pub over: Option<Over>,
    /// The graph.
    pub graph: GraphIx,
}

/// How large a thread is when somebody has to look how large it is. Nobody has, as long as what is known of it and the bytes that have come
/// since are not more: each token has one byte at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// It may have more than so many tokens.
    pub tokens: u32,
    /// More than so many bytes of it have come since its tokens were known.
    pub new: u32,
}

/// A leaf by name, and where its edges lead, by name.
pub type Draft = (&'static str, Act, Vec<(Guard, &'static str)>);

const MODEL: &str = "model";
const TOOLS: &str = "tools";
const MESSAGES: &str = "messages";

impl Rounds {
    /// The edges of whatever stands before the loop.
    pub fn entry(&self) -> Vec<(Guard, &'static str)> {
        let limit = match self.at_limit {
            AtLimit::Conclude => "conclude",
            AtLimit::HandOver { .. } => "hand_over",
        };
        self.messages().into_iter().chain([(Guard::Exhausted, limit), (Guard::Always, MODEL)]).collect()
    }

    /// The edge to what people have said.
    fn messages(&self) -> Option<(Guard, &'static str)> {
        self.takes_messages.then_some((Guard::Messages, MESSAGES))
    }

    /// The leaves, the model's first. When the loop ends it goes on at `out`.
    pub fn leaves(self, out: &'static str) -> Vec<Draft> {
        let (entry, messages) = (self.entry(), self.messages());
        let Self { model, retry, timeout_s, at_limit, between, takes_messages } = self;
        let every = between.map(|between| Guard::Every(between.every));
        let end: Vec<_> = match every {
            Some(every) => vec![(every, out), (Guard::Always, "between_last")],
            None => vec![(Guard::Always, out)],
        };
        let after = |first: Guard, to, more: Option<_>| {
            [(first, to)].into_iter().chain(more).chain(end.clone()).collect::<Vec<_>>()
        };
        let over = between.and_then(|between| between.over).map(Guard::Outgrown);
        let round = every.into_iter().chain(over).map(|guard| (guard, "between")).chain(entry.clone());
        let mut leaves = vec![
            (MODEL, Act::Infer(Box::new(model.clone())), after(Guard::Calls, TOOLS, messages)),
            (TOOLS, Act::Answer { run: true, retry, timeout_s }, round.collect()),
        ];
        match at_limit {
            AtLimit::Conclude => {
                let conclude = Infer { offer_tools: false, ..model };
                leaves.push((
                    "conclude",
                    Act::Infer(Box::new(conclude)),
                    after(Guard::Calls, "refuse", None),
                ));
                leaves.push(("refuse", Act::Answer { run: false, retry, timeout_s }, end));
            }
            AtLimit::HandOver { ask, model, note } => {
                let summary = Infer { offer_tools: false, only_words: true, ..*model };
                let edit = Act::Edit(Edit::Compact { first: 0, keep: 0, asked: 2 });
                leaves.push(("hand_over", Act::AppendText(ask), vec![(Guard::Always, "summary")]));
                leaves.push(("summary", Act::Infer(Box::new(summary)), vec![(Guard::Always, "handed_over")]));
                match note {
                    Some((name, value)) => {
                        leaves.push(("handed_over", edit, vec![(Guard::Always, "note")]));
                        leaves.push(("note", Act::Set(name, value), end));
                    }
                    None => leaves.push(("handed_over", edit, end)),
                }
            }
        }
        if let Some(Between { graph, .. }) = between {
            let aside = |last| {
                Act::Loop(Box::new(Loop {
                    graph,
                    times: Times::Aside { last },
                    limit: 1,
                    timeout_s: None,
                    until: None,
                }))
            };
            leaves.push(("between", aside(false), entry.clone()));
            let last = messages.into_iter().chain([(Guard::Always, out)]).collect();
            leaves.push(("between_last", aside(true), last));
        }
        if takes_messages {
            // It takes all there are, so that it never leads to itself.
            let on = entry.into_iter().filter(|(guard, _)| *guard != Guard::Messages);
            leaves.push((MESSAGES, Act::TakeMessages, on.collect()));
        }
        leaves
    }
}
