//! Tools that are configured where nobody trusts the configuration (C-20): they are not there, and who names one is told why.

use super::gathered::Gathered;
use crate::diag::ToolError;
use crate::mcp::Wanted;
use crate::withheld::Withheld;
use std::sync::Arc;

impl Gathered {
    /// Says of wanted names that mean nothing why that may be.
    pub(super) fn withheld(&mut self, withheld: &Withheld, wanted: &Wanted) {
        for name in &wanted.names {
            let known = self.by_name.contains_key(name) || self.bare.contains_key(name);
            if known || self.broken.contains_key(name) {
                continue;
            }
            if let Some(message) = withheld.reason(name) {
                let error = ToolError::environment("C-20", message).help(withheld.help.as_str());
                self.broken.insert(Arc::clone(name), error);
            }
        }
    }
}
