//! Work that nobody can see: threads, results and published values that no later node reads.

use super::doc::{NodeKind, PlanDoc, PlanNode};
use super::lower::MAIN;
use crate::diagnostic::shown;
use crate::{Diagnostics, Finding};
use std::collections::{HashMap, HashSet};

/// Warns of what is never read; `read` are the nodes whose result a placeholder reads.
pub(super) fn check(plan: &PlanDoc, read: &HashSet<usize>, diagnostics: &mut Diagnostics) {
    let mut uses = Uses::default();
    for node in &plan.nodes {
        uses.add(node);
    }
    let last = plan.nodes.len().saturating_sub(1);
    for node in &plan.nodes {
        let thread = node.thread.value.as_ref();
        let creates = uses.created.get(thread) == Some(&node.index);
        let silent = node.task_prompt.is_none() && matches!(node.kind, NodeKind::LlmFirst);
        if silent && !creates && !node.data_out {
            let message =
                "this node does nothing: no task_prompt, no data_out, and its thread exists already";
            let finding = Finding::warning("P-12", "empty-node", node.span.opening(), message);
            diagnostics.push(finding.help("write a task_prompt, or remove the node"));
            continue;
        }
        published(node, &uses, diagnostics);
        let heard = thread == MAIN || uses.reads_after(thread, node.index);
        if node.data_out || heard || read.contains(&node.index) || node.index == last {
            continue;
        }
        if creates && silent {
            let message = format!("thread {} is created and never read", shown(thread));
            let finding = Finding::warning("P-03", "unread-thread", node.thread.span, message);
            diagnostics
                .push(finding.help("let a later node run on it or take data_in from it, or remove it"));
        } else {
            let (id, thread) = (shown(&node.id.value), shown(thread));
            let message = format!("the result of node {id} is never used: nobody reads its thread {thread}");
            let finding = Finding::warning("P-17", "unused-result", node.span.opening(), message);
            let help = "set data_out, refer to it with a placeholder, or let a later node read its thread";
            diagnostics.push(finding.help(help));
        }
    }
}

/// A `data_out` to a thread that no later node reads; `main` is what the run leaves behind.
fn published(node: &PlanNode, uses: &Uses<'_>, diagnostics: &mut Diagnostics) {
    let to = node.data_out_thread.value.as_ref();
    let elsewhere = to != MAIN && to != node.thread.value.as_ref();
    if node.data_out && elsewhere && !uses.reads_after(to, node.index) {
        let message = format!("no later node reads thread {}, where this result goes", shown(to));
        let finding = Finding::warning("P-18", "unread-data-out", node.data_out_thread.span, message);
        diagnostics.push(finding.help("send it to a thread that a later node reads, or to main"));
    }
}

#[derive(Default)]
struct Uses<'p> {
    /// The node that creates a thread.
    created: HashMap<&'p str, usize>,
    /// The last node that reads a thread: by running on it, or by opening its own from it.
    last_read: HashMap<&'p str, usize>,
}

impl<'p> Uses<'p> {
    fn add(&mut self, node: &'p PlanNode) {
        let thread = node.thread.value.as_ref();
        let creates = thread != MAIN && !self.created.contains_key(thread);
        if creates {
            self.created.insert(thread, node.index);
            self.last_read.insert(node.data_in_thread.value.as_ref(), node.index);
        }
        self.last_read.insert(thread, node.index);
    }

    fn reads_after(&self, thread: &str, index: usize) -> bool {
        self.last_read.get(thread).is_some_and(|last| *last > index)
    }
}
