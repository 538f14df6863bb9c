//! Which messages of two threads are the same.

use super::Is;
use selvedge_engine::{Message, ThreadView};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// What all threads of two runs together may take to be compared, in steps of the worst case: beyond it, what stands between the
/// messages that both begin and end with is compared by position.
pub(super) const ROOM: usize = 20_000_000;

/// The messages of two threads, compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Messages {
    /// How the threads stand to each other.
    pub is: Is,
    /// How many messages are the same.
    pub same: usize,
    /// The others, in order.
    pub changes: Vec<Change>,
}

/// A message of one thread, and the one that stands in its place in the other, by position from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// In the first thread.
    pub a: Option<usize>,
    /// In the second.
    pub b: Option<usize>,
}

impl Messages {
    pub(super) fn compare(a: Option<&ThreadView<'_>>, b: Option<&ThreadView<'_>>, room: &mut usize) -> Self {
        let (Some(a), Some(b)) = (a, b) else {
            let is = if a.is_some() { Is::OnlyA } else { Is::OnlyB };
            return Self { is, same: 0, changes: Vec::new() };
        };
        let a: Vec<&Arc<Message>> = a.iter().collect();
        let b: Vec<&Arc<Message>> = b.iter().collect();
        let begin = a.iter().zip(&b).take_while(|(a, b)| same(a, b)).count();
        let (rest_a, rest_b) = (a.get(begin..).unwrap_or_default(), b.get(begin..).unwrap_or_default());
        let end = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(a, b)| same(a, b)).count();
        let rest_a = rest_a.get(..rest_a.len() - end).unwrap_or_default();
        let rest_b = rest_b.get(..rest_b.len() - end).unwrap_or_default();
        let mut compared = Self { is: Is::Differs, same: begin + end, changes: Vec::new() };
        let steps = rest_a.len().saturating_mul(rest_b.len());
        match room.checked_sub(steps) {
            Some(left) => {
                *room = left;
                compared.between(begin, rest_a, rest_b);
            }
            None => compared.replace(
                begin..begin + rest_a.len(),
                begin..begin + rest_b.len(),
                rest_a,
                rest_b,
                begin,
            ),
        }
        if compared.changes.is_empty() {
            compared.is = Is::Same;
        }
        compared
    }

    /// Compares what stands behind the first messages, which are the same.
    fn between(&mut self, begin: usize, a: &[&Arc<Message>], b: &[&Arc<Message>]) {
        let mut known = Known::default();
        let ids_a: Vec<usize> = a.iter().map(|message| known.id(message)).collect();
        let ids_b: Vec<usize> = b.iter().map(|message| known.id(message)).collect();
        for op in capture_diff_slices(Algorithm::Myers, &ids_a, &ids_b) {
            let (old, new) = (op.old_range(), op.new_range());
            match op {
                DiffOp::Equal { len, .. } => self.same += len,
                _ => self.replace(shifted(old, begin), shifted(new, begin), a, b, begin),
            }
        }
    }

    /// Messages that stand for others: the first for the first, and so on. What is said by different roles stands for itself.
    fn replace(
        &mut self,
        old: Range<usize>,
        new: Range<usize>,
        a: &[&Arc<Message>],
        b: &[&Arc<Message>],
        begin: usize,
    ) {
        let most = old.len().max(new.len());
        let of = |range: &Range<usize>, nth: usize| Some(range.start + nth).filter(|at| *at < range.end);
        for nth in 0..most {
            let (at_a, at_b) = (of(&old, nth), of(&new, nth));
            let message_a = at_a.and_then(|at| a.get(at - begin));
            let message_b = at_b.and_then(|at| b.get(at - begin));
            match (message_a, message_b) {
                (Some(a), Some(b)) if same(a, b) => self.same += 1,
                (Some(a), Some(b)) if a.role != b.role => {
                    self.changes.extend([Change { a: at_a, b: None }, Change { a: None, b: at_b }]);
                }
                _ => self.changes.push(Change { a: at_a, b: at_b }),
            }
        }
    }
}

fn shifted(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// What two runs share is not looked at again. Ids of calls are names that a provider or a run gave them, and say nothing.
fn same(a: &Arc<Message>, b: &Arc<Message>) -> bool {
    let calls = || {
        let mut both = a.tool_calls.iter().zip(&b.tool_calls);
        a.tool_calls.len() == b.tool_calls.len()
            && both.all(|(a, b)| a.name == b.name && a.arguments == b.arguments)
    };
    let content = || Arc::ptr_eq(&a.content, &b.content) || a.content == b.content;
    Arc::ptr_eq(a, b) || a.role == b.role && a.name == b.name && content() && calls()
}

/// Equal messages have one number.
#[derive(Default)]
struct Known<'m> {
    by_hash: HashMap<u64, Vec<(usize, &'m Arc<Message>)>>,
    next: usize,
}

impl<'m> Known<'m> {
    fn id(&mut self, message: &'m Arc<Message>) -> usize {
        let mut hash = DefaultHasher::new();
        (message.role, &message.content, &message.name, message.tool_calls.len()).hash(&mut hash);
        let equal = self.by_hash.entry(hash.finish()).or_default();
        if let Some((id, _)) = equal.iter().find(|(_, known)| same(known, message)) {
            return *id;
        }
        equal.push((self.next, message));
        self.next += 1;
        self.next - 1
    }
}
