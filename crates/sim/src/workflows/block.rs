//! A workflow in neutral form: blocks within blocks, from which both the document and the reference's reading follow.

/// The variables that every workflow begins with: two numbers and a text.
pub const VARIABLES: [&str; 3] = ["x", "y", "e"];

/// The threads.
pub const THREADS: [&str; 2] = ["main", "side"];

/// A random workflow.
#[derive(Clone, Debug)]
pub struct SimWorkflow {
    /// What the outside's answers follow from.
    pub seed: u64,
    /// Whether models and tools fail, and people refuse.
    pub faults: bool,
    /// Whether `main` begins with a task.
    pub task: bool,
    /// Whether `END` says what the output is.
    pub output: bool,
    /// What it does.
    pub blocks: Vec<Block>,
}

/// What a workflow is made of. `handled`: a fault is caught by an edge, behind which `e` is its kind.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "what a variant does says what its fields are")]
pub enum Block {
    /// `name` becomes `of + more`.
    Set { name: &'static str, of: &'static str, more: i64 },
    /// Asks the model about a variable.
    Ask { thread: &'static str, about: &'static str, number: usize, handled: bool },
    /// Calls a tool with a variable.
    Call { thread: Option<&'static str>, about: &'static str, number: usize, handled: bool },
    /// Takes messages away.
    Cut { thread: &'static str, cut: Cut },
    /// Asks a person about a variable.
    Person { kind: Kind, thread: Option<&'static str>, about: &'static str, number: usize, handled: bool },
    /// On whether a variable is even; as a `ROUTE`, or by the edges of a node.
    Choose { of: &'static str, route: bool, even: Vec<Block>, odd: Vec<Block> },
    /// A loop.
    Repeat { rounds: Rounds, body: Vec<Block>, handled: bool },
    /// A fork and its join.
    Fork {
        paths: Paths,
        serial: bool,
        strategy: Strategy,
        main: Option<usize>,
        export: Option<usize>,
        handled: bool,
    },
    /// Another workflow, whose `x` becomes `y` here if `out`.
    Sub { body: Vec<Block>, out: bool, handled: bool },
    /// A plan of a tool and a question.
    Plan { about: &'static str, number: usize, handled: bool },
}

/// What is taken away from a thread.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// All but the last messages.
    Trim(usize),
    /// All but those of users, and with it of models.
    Users {
        /// Those stay.
        and_models: bool,
    },
    /// Everything.
    Clear,
    /// All but the last messages, with a model's summary in their place.
    Summarise(usize),
}

/// What a person is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Yes or no.
    Approve,
    /// A value.
    Answer,
    /// A changed value.
    Edit,
}

/// How often a loop goes round.
#[derive(Clone, Copy, Debug)]
pub enum Rounds {
    /// So often.
    Count(usize),
    /// Over the first so many of a list.
    Over(usize),
    /// While `x` is below a number.
    While {
        /// The number.
        below: i64,
        /// So often at most.
        limit: usize,
    },
}

/// The paths of a fork.
#[derive(Clone, Debug)]
pub enum Paths {
    /// Each with blocks of its own.
    Listed(Vec<Vec<Block>>),
    /// One for each of the first so many of a list.
    Each(usize, Vec<Block>),
}

impl Paths {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Listed(paths) => paths.len(),
            Self::Each(count, _) => *count,
        }
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// What one of them does.
    pub fn body(&self, at: usize) -> &[Block] {
        match self {
            Self::Listed(paths) => paths.get(at).map_or(&[], Vec::as_slice),
            Self::Each(_, body) => body,
        }
    }
}

/// W-06.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Strategy {
    /// `ALL_COMPLETED`.
    AllCompleted,
    /// `ANY_COMPLETED`.
    AnyCompleted,
    /// `ALL_FAILED`.
    AllFailed,
    /// `ANY_FAILED`.
    AnyFailed,
    /// `SUCCESS_COUNT_THRESHOLD`.
    Threshold(usize),
    /// `ALL_ENDED`.
    AllEnded,
}

impl Strategy {
    /// As documents say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllCompleted => "ALL_COMPLETED",
            Self::AnyCompleted => "ANY_COMPLETED",
            Self::AllFailed => "ALL_FAILED",
            Self::AnyFailed => "ANY_FAILED",
            Self::Threshold(_) => "SUCCESS_COUNT_THRESHOLD",
            Self::AllEnded => "ALL_ENDED",
        }
    }
}
