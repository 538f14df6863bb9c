//! Edits of a thread that take something away (E-09).

use crate::message::Role;
use crate::template::JsonTemplate;
use serde::{Deserialize, Serialize};

/// What becomes of the thread of a node. Nothing parts a call from its result (E-10): messages with calls, and the results of these,
/// stay or go together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// Nothing is left of it.
    Clear,
    /// The last so many messages stay, and the calls that the first of them answer.
    Trim {
        /// How many.
        keep: u32,
    },
    /// Messages of these roles stay. A message whose results do not stay loses its calls, and results stay only with it.
    Filter {
        /// Which.
        roles: Vec<Role>,
    },
    /// The last message of the assistant, and all behind it, go. Nothing does where a tool that it called may have
    /// changed the world, or where there is none.
    RollBack,
    /// A user message with the words of the last reply stands for all but the last `keep` messages before it was asked for, and all but
    /// the first `first`.
    Compact {
        /// How many stay at the beginning, which hold no calls.
        #[serde(default, skip_serializing_if = "is_zero")]
        first: u32,
        /// How many stay.
        keep: u32,
        /// How many messages at the end are what was asked, and the reply: they go.
        asked: u32,
    },
    /// The calls with these ids go, with their results: a list.
    Drop(JsonTemplate),
    /// These texts stand for the results of calls, by the ids of the calls: an object. Results that are not there are left out.
    Shorten(JsonTemplate),
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Edit {
    /// What it takes from the data around it.
    pub(crate) fn value(&self) -> Option<&JsonTemplate> {
        match self {
            Self::Drop(value) | Self::Shorten(value) => Some(value),
            Self::Clear | Self::Trim { .. } | Self::Filter { .. } | Self::RollBack | Self::Compact { .. } => {
                None
            }
        }
    }
}
