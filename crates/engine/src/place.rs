//! Places: where in a run something happens, and the ids made of them (E-35, E-06).
//!
//! A place is frame path / node / visit. Nodes of the document's own graph are in the root frame, whose path is empty;
//! a node that opens another graph opens a frame for it, and the path of that names the node, its visit and the
//! [`Instance`].
//!
//! | id | text |
//! |---|---|
//! | frame | `{node}~{visit}`, a fork's path `{node}~{visit}[{path}]`, an iteration `{node}~{visit}#{n}`, joined by `/` |
//! | place | `{frames}/{node}`, or `{frames}/{node}~{visit}` from the second visit on; in the root frame without `{frames}/` |
//! | effect | `{place}/{leaf}/{leaf visit}/{attempt}`, a model's call `{place}/{leaf}.{slot}/{leaf visit}/{attempt}` |
//! | ask | `{place}/{leaf}`, or the effect's id where a call is asked about |
//! | call | `{place, without the visit}/{leaf}[.{slot}]/{leaf visit}`, with `.{n}` behind it for the n-th of a reply |
//!
//! A `%`, `/` or `~` of a node's id is written `%25`, `%2F`, `%7E`; within frames `[`, `]` and `#` are `%5B`, `%5D`, `%23`
//! too, and a `.` in the name of a leaf is `%2E`. So two places never have one text, whatever their ids hold, and a leaf's
//! question never has the id of an effect. The parsers take what is written here and nothing else: what they read is written
//! again as it was.
//!
//! ```
//! use selvedge_engine::place::{EffectPlace, FramePath, FrameStep, Instance, Place};
//!
//! let each = FrameStep { node: "each".into(), visit: 1, instance: Instance::Iteration(3) };
//! let debate = FrameStep { node: "debate".into(), visit: 2, instance: Instance::Path("pro/con".into()) };
//! let frame = FramePath::default().with(&each).with(&debate);
//! assert_eq!(frame.to_string(), "each~1#3/debate~2[pro%2Fcon]");
//!
//! let place = Place { frames: frame.frames(), node: "speak".into(), visit: 1 };
//! let effect = EffectPlace { place, leaf: "model".into(), slot: None, leaf_visit: 1, attempt: 1 }.id();
//! assert_eq!(effect.to_string(), "each~1#3/debate~2[pro%2Fcon]/speak/model/1/1");
//!
//! let read = EffectPlace::parse(&effect.0).ok_or("no effect id")?;
//! assert_eq!((&*read.place.node, &*read.leaf, read.attempt), ("speak", "model", 1));
//! assert_eq!(read.place.frames.steps().last(), Some(debate));
//! # Ok::<(), &str>(())
//! ```

pub(crate) mod names;
mod text;

pub use names::Names;

#[cfg(test)]
mod tests;

use crate::effect::EffectId;
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

/// Which of the frames that a visit of a node opens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instance<'a> {
    /// The one of a subgraph.
    Sub,
    /// That of a path of a fork, by the path's id.
    Path(Cow<'a, str>),
    /// That of an iteration of a loop.
    Iteration(u32),
}

/// A frame within the frame around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameStep<'a> {
    /// The id of the node that opened it.
    pub node: Cow<'a, str>,
    /// The visit of the node, from 1.
    pub visit: u32,
    /// Which of the visit's frames.
    pub instance: Instance<'a>,
}

/// A frame path. It holds its text, so that a clone, a comparison and an id made of it cost no walk, and a map by frame
/// paths can be asked with a part of an id.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "Arc<str>")]
pub struct FramePath(Arc<str>);

/// A text that is no frame path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no frame path: that is NODE~VISIT, NODE~VISIT[PATH] or NODE~VISIT#ITERATION for each frame, joined by `/`"
)]
pub struct NoFramePath(Arc<str>);

impl FramePath {
    /// The path of a frame that is opened in this one.
    #[must_use]
    pub fn with(&self, step: &FrameStep<'_>) -> Self {
        Self(self.frames().with(step).into())
    }

    /// The path, borrowed.
    pub fn frames(&self) -> FramePathRef<'_> {
        FramePathRef(&self.0)
    }

    /// Whether it is the document's own graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is that of a path of a fork.
    pub(crate) fn is_of_fork(&self) -> bool {
        self.0.ends_with(']')
    }

    /// What an id says below this frame, if it is of a place in it: the rest of its text.
    pub(crate) fn within<'i>(&self, id: &'i str) -> Option<&'i str> {
        match self.is_root() {
            true => Some(id),
            false => id.strip_prefix(&*self.0)?.strip_prefix('/'),
        }
    }

    /// What events call the node of that id in this frame: its first visit's place, whatever the visit is.
    pub(crate) fn name_of(&self, node: &Arc<str>) -> Arc<str> {
        if self.is_root() && text::is_plain(node) {
            return node.clone();
        }
        Place { frames: self.frames(), node: Cow::Borrowed(node), visit: 1 }.text().into()
    }

    /// The path as if every node on it had been visited once: what it has in common with that of a node that began anew.
    #[must_use]
    pub fn without_visits(&self) -> Self {
        let steps = self.frames().steps();
        steps.fold(Self::default(), |path, step| path.with(&FrameStep { visit: 1, ..step }))
    }

    /// The frame around this one, and this one in it; `None` for the root.
    pub fn parent(&self) -> Option<(Self, FrameStep<'_>)> {
        let (around, step) = self.frames().parent()?;
        Some((around.to_path(), step))
    }
}

impl fmt::Display for FramePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<Arc<str>> for FramePath {
    type Error = NoFramePath;
    fn try_from(text: Arc<str>) -> Result<Self, NoFramePath> {
        match FramePathRef::parse(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(NoFramePath(text)),
        }
    }
}

impl std::str::FromStr for FramePath {
    type Err = NoFramePath;
    fn from_str(text: &str) -> Result<Self, NoFramePath> {
        Arc::<str>::from(text).try_into()
    }
}

impl Borrow<str> for FramePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A frame path within a text, such as an effect's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FramePathRef<'a>(&'a str);

impl<'a> FramePathRef<'a> {
    /// The text of the path: [`FramePath`] borrows as this.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether it is the document's own graph.
    pub fn is_root(self) -> bool {
        self.0.is_empty()
    }

    /// The path by itself.
    pub fn to_path(self) -> FramePath {
        FramePath(self.0.into())
    }
}

impl fmt::Display for FramePathRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A visit of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place<'a> {
    /// The frame that the node is in.
    pub frames: FramePathRef<'a>,
    /// The node's id, as the document says it.
    pub node: Cow<'a, str>,
    /// The visit, from 1.
    pub visit: u32,
}

impl<'a> Place<'a> {
    /// The first visit of a node of the document's own graph.
    pub fn root(node: &'a str) -> Self {
        Self { frames: FramePathRef::default(), node: Cow::Borrowed(node), visit: 1 }
    }
}

/// An attempt of an effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectPlace<'a> {
    /// The visit of the node that asks for it.
    pub place: Place<'a>,
    /// The name of the leaf of the node's flow.
    pub leaf: Cow<'a, str>,
    /// Which of the calls of a model's reply, from 0.
    pub slot: Option<usize>,
    /// The visit of the leaf within the node's, from 1.
    pub leaf_visit: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl EffectPlace<'_> {
    /// The effect's id.
    pub fn id(&self) -> EffectId {
        // Room for the numbers too: each request has an id.
        let mut id = String::with_capacity(self.place.room() + self.leaf.len() + 32);
        let written = self.write(&mut id);
        debug_assert!(written.is_ok(), "a text takes what is written to it");
        EffectId(id.into())
    }

    /// The same effect at its first attempt: what all attempts have in common.
    #[must_use]
    pub fn first(self) -> Self {
        Self { attempt: 1, ..self }
    }

    /// The call that the effect makes.
    pub fn call(&self) -> CallPlace<'_> {
        CallPlace {
            frames: self.place.frames,
            node: Cow::Borrowed(&self.place.node),
            leaf: Cow::Borrowed(&self.leaf),
            slot: self.slot,
            leaf_visit: self.leaf_visit,
            nth: None,
        }
    }
}

impl EffectId {
    /// What the id says; `None` for one that no run has made.
    pub fn place(&self) -> Option<EffectPlace<'_>> {
        EffectPlace::parse(&self.0)
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AskPlace<'a> {
    /// Of a leaf that asks.
    Leaf {
        /// The visit of the node.
        place: Place<'a>,
        /// The name of the leaf.
        leaf: Cow<'a, str>,
    },
    /// Whether this call may run: the effect's id is the ask's.
    Call(EffectPlace<'a>),
}

impl<'a> AskPlace<'a> {
    /// The visit of the node that asks.
    pub fn into_place(self) -> Place<'a> {
        match self {
            Self::Leaf { place, .. } => place,
            Self::Call(effect) => effect.place,
        }
    }
}

/// A call in a message. Unlike its effect it names neither the visit of the node nor the attempt: a node that begins anew says
/// the same again, whatever was tried in between (E-29).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPlace<'a> {
    /// The frame that the node is in.
    pub frames: FramePathRef<'a>,
    /// The node's id.
    pub node: Cow<'a, str>,
    /// The name of the leaf.
    pub leaf: Cow<'a, str>,
    /// Which of the calls of a model's reply the effect is, from 0.
    pub slot: Option<usize>,
    /// The visit of the leaf.
    pub leaf_visit: u32,
    /// Which call of the reply that the effect brought, from 0.
    pub nth: Option<usize>,
}
