//! Small typed indices and the table they index.
//!
//! [`Table`] is the engine's only indexed storage. An index that is not in its table is a bug of the
//! engine, never of a document: it panics, and the driver turns the panic into a poisoned run (E-17).

use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// An index into one kind of [`Table`].
pub trait Ix: Copy + Ord {
    /// The index of the `n`-th row, from 0.
    fn new(n: usize) -> Self;
    /// The row's number, from 0.
    fn get(self) -> usize;
}

macro_rules! index {
    ($(#[$doc:meta] $name:ident),* $(,)?) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);
        impl Ix for $name {
            fn new(n: usize) -> Self { Self(u32::try_from(n).unwrap_or(u32::MAX)) }
            fn get(self) -> usize { self.0 as usize }
        }
    )*};
}

index! {
    /// A node of a dataflow graph, in list order.
    NodeIx,
    /// A leaf of a flow graph.
    LeafIx,
    /// Leaves that flows of a graph share.
    TailIx,
    /// A named thread of a graph.
    ThreadIx,
    /// A message of a run, in journal order.
    MessageIx,
    /// An order of nodes (see [`crate::schedule::Order`]).
    OrderIx,
    /// A graph that others open frames of.
    GraphIx,
    /// A frame of a run (E-34). Numbers of frames that have ended are given again.
    FrameIx,
}

/// The frame that a run begins with.
pub const ROOT: FrameIx = FrameIx(0);

/// A node of a frame of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef {
    /// The frame.
    pub frame: FrameIx,
    /// The node of the frame's graph.
    pub node: NodeIx,
}

impl NodeRef {
    /// A node of the run's first frame.
    pub const fn root(node: NodeIx) -> Self {
        Self { frame: ROOT, node }
    }
    /// Another node of the same frame.
    #[must_use]
    pub const fn sibling(self, node: NodeIx) -> Self {
        Self { frame: self.frame, node }
    }
}

/// A growing list indexed by its own kind of index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table<I, T> {
    rows: Vec<T>,
    #[serde(skip)]
    index: PhantomData<I>,
}

impl<I: Ix, T> Table<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { rows: Vec::new(), index: PhantomData }
    }
    /// An empty table with room for exactly `rows` rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), index: PhantomData }
    }
    /// Appends a row and returns its index.
    pub fn push(&mut self, row: T) -> I {
        self.rows.push(row);
        I::new(self.rows.len() - 1)
    }
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// The row at `ix`, if there is one.
    pub fn get(&self, ix: I) -> Option<&T> {
        self.rows.get(ix.get())
    }
    /// The row at `ix`, if there is one, to change.
    pub fn get_mut(&mut self, ix: I) -> Option<&mut T> {
        self.rows.get_mut(ix.get())
    }
    /// The rows with their indices, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(n, row)| (I::new(n), row))
    }
    /// The rows, in order.
    pub fn values(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }
    /// The rows, in order, to change.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.rows.iter_mut()
    }
    /// The indices, in order.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.rows.len()).map(I::new)
    }
}

impl<I: Ix, T> Default for Table<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Ix, T> FromIterator<T> for Table<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(rows: A) -> Self {
        Self { rows: rows.into_iter().collect(), index: PhantomData }
    }
}

impl<I: Ix, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, ix: I) -> &T {
        &self.rows[ix.get()]
    }
}

impl<I: Ix, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, ix: I) -> &mut T {
        &mut self.rows[ix.get()]
    }
}

/// An index into what grows that is not there: a bug, which poisons the run (E-17).
#[cold]
#[allow(clippy::panic, reason = "a bug of the engine, which the driver turns into a poisoned run (E-17)")]
pub(crate) fn not_there(what: &str, ix: impl Ix) -> ! {
    panic!("{what} is not there: number {}", ix.get())
}
