//! How each provider says the same things on the wire, for the tests that hold for all of them.

pub mod anthropic;
pub mod gemini;
pub mod openai;
pub mod responses;

use selvedge_engine::{Cut, Tokens};
use selvedge_models::Provider;

/// A call as a provider streams it: its id if it has one, its tool, and the text of its arguments.
pub type RawCall<'c> = (Option<&'c str>, &'c str, &'c str);

/// An error inside a stream that began well.
#[derive(Clone, Debug)]
pub struct StreamError {
    /// The event, as text of the stream.
    pub event: String,
    /// The status that it stands for, if it says so.
    pub status: Option<u16>,
    /// Whether it may pass.
    pub passes: bool,
    /// The wait that it asks for.
    pub wait_ms: Option<u64>,
}

/// One provider's shapes. Streams are bodies of server-sent events.
pub struct Wire {
    /// Whose.
    pub provider: Provider,
    /// The request line of a call to `test-model` at a server whose base URL ends in `/v1`.
    pub line: &'static str,
    /// The header that carries [`super::KEY`], and its value.
    pub key: (&'static str, String),
    /// The beginning of a stream, which gives the text `half` and goes on.
    pub begun: String,
    /// One event that adds the text `half` to such a stream.
    pub more: String,
    /// What ends it well, with [`Self::tokens`].
    pub rest: String,
    /// One body with the text `half`, the same tokens and the same stop.
    pub body: String,
    /// What both used.
    pub tokens: Tokens,
    /// Why both stopped.
    pub stop: &'static str,
    /// One event whose data is cut JSON.
    pub malformed: String,
    /// Errors inside a stream: at least one of a rate or load, with a wait if the provider can say one.
    pub errors: Vec<StreamError>,
    /// The body of an answer with a status that is not 2xx; it says `why it is so`.
    pub refusal: fn(u16) -> String,
    /// A whole stream of calls without text.
    pub calls: fn(&[RawCall<'_>]) -> String,
    /// Replies without a word, and the field of the fault's cause that says why, with its value.
    pub silent: Vec<(String, &'static str, &'static str)>,
    /// What ends [`Self::begun`] before its time, and why the reply is cut.
    pub cuts: Vec<(String, Cut)>,
    /// Whether odd names of tools go out only after a refusal that names one.
    pub any_names: bool,
    /// The settings that it has no word for, of `seed`, `stop` and `enable_thinking`.
    pub unsent: Vec<&'static str>,
    /// Whether arguments come as text, which may be no JSON, or as JSON.
    pub raw_arguments: bool,
    /// The pages of a list of the models `b` and `a`, with their request lines.
    pub lists: Vec<(&'static str, String)>,
}

/// All providers.
pub fn wires() -> Vec<Wire> {
    vec![openai::wire(), anthropic::wire(), gemini::wire(), responses::wire()]
}

/// An event of a stream without a name.
pub fn data(value: &serde_json::Value) -> String {
    format!("data: {value}\n\n")
}
