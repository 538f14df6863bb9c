//! Which tools a document may name: whoever has it compiled says so.

use crate::{Finding, Span};
use selvedge_engine::ToolDef;
use std::sync::Arc;

/// The source of tools that come with the program: no document and no folder brings them.
pub(crate) const BUILT_IN: &str = "built-in";

/// Where tool definitions come from.
pub trait ToolSource {
    /// The tool of this bound name.
    fn def(&self, name: &str) -> Option<Arc<ToolDef>>;
    /// Every bound name, for suggestions.
    fn names(&self) -> Vec<String>;
    /// The names of those that a model may choose from where it may choose among all (D-17, D-21).
    fn available(&self) -> Vec<String> {
        self.names()
    }
    /// The names of those that it may not choose, with why (D-17).
    fn withheld(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// Why a name means no tool, where that is known better than that there is none.
    fn trouble(&self, _name: &str) -> Option<NameTrouble> {
        None
    }
}

/// No tools at all.
pub struct NoTools;

impl ToolSource for NoTools {
    fn def(&self, _: &str) -> Option<Arc<ToolDef>> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a name means no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTrouble {
    /// The rule that is broken.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl NameTrouble {
    /// The finding about a place that has the name.
    pub(crate) fn at(self, span: Span) -> Finding {
        let code = if self.rule == "C-20" { "not-trusted" } else { "tool" };
        Finding::error(self.rule, code, span, self.message).help(self.help)
    }
}
