//! Kinds of findings: what they are called, and what can be done about them.

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A join that was decided often and never met.
    JoinNeverMet,
    /// A question without a time that nobody answers: the run waits for ever.
    AskUnanswered,
    /// A limit is reached that no fault explains: a loop without an end.
    LimitReached,
    /// The same outcomes in another order give something else.
    OrderDependent,
    /// After a crash the run comes to another end.
    ResumeDiffers,
    /// A call that may not be made twice was in flight at a crash: a person is asked.
    WriteInDoubt,
    /// A call that may not be made twice is tried again though it may have happened.
    WriteRepeated,
    /// A call that may not be made twice is cut off when a join is decided.
    WriteCutOff,
    /// A bug in Selvedge.
    InternalError,
}

impl Kind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::JoinNeverMet => "join-never-met",
            Self::AskUnanswered => "ask-unanswered",
            Self::LimitReached => "limit-reached",
            Self::OrderDependent => "order-dependent",
            Self::ResumeDiffers => "resume-differs",
            Self::WriteInDoubt => "write-in-doubt",
            Self::WriteRepeated => "write-repeated",
            Self::WriteCutOff => "write-cut-off",
            Self::InternalError => "internal-error",
        }
    }

    /// What can be done about it.
    pub fn way_out(self) -> &'static str {
        match self {
            Self::JoinNeverMet => {
                "mend the path that can't come to what the join asks for, or ask for less: another `joinStrategy`, a lower `threshold`"
            }
            Self::AskUnanswered => {
                "give the question a `timeout`, or the path's join one, and an edge for what then happens"
            }
            Self::LimitReached => {
                "let what is in the loop change what its condition reads, or give the end of the loop an edge with `\"when\": \"error\"`"
            }
            Self::OrderDependent => {
                "let nothing behind the join depend on which path came first (an `output` of the END, `mainPathId`, `exports`), or wait for all of them: `ALL_COMPLETED`"
            }
            Self::ResumeDiffers | Self::InternalError => {
                "this is a bug in Selvedge: please report it with the document and the seed"
            }
            Self::WriteInDoubt => {
                "let the tool find out whether it did the same before and declare it `idempotent`; else somebody has to answer after a crash"
            }
            Self::WriteRepeated => {
                "leave out `retry` of a call that may not be made twice, or let the tool find out whether it did the same before and declare it `idempotent`"
            }
            Self::WriteCutOff => {
                "call it behind the join, or let the join wait for all paths: `ALL_COMPLETED`"
            }
        }
    }
}
