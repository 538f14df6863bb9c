//! What a coder is told of tools that one is to be made of (V-08), and whether one can be.

use super::super::beside;
use super::super::place::Task;
use super::super::texts::{cut, fenced, value};
use super::candidate::{Candidate, Cluster};
use super::evidence::{Evidence, Known, evidence};
use crate::error::Error;
use crate::library;
use crate::library::operations::Undone;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// How much a brief has of all files together, and of one call, in bytes.
const FILES: usize = 128 << 10;
const CALL: usize = 1 << 10;
/// Calls of each tool that a brief tells of.
const CALLS: usize = 4;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    cluster: Cluster,
    #[serde(default)]
    merge: String,
}

/// Tells a coder of the members of a cluster, or says why they stay apart.
pub(in super::super) async fn members(task: Arc<Task>) -> Result<Value, Undone> {
    let Given { cluster, merge } = task.given()?;
    beside(move || {
        let evidence = evidence(&task, &cluster)?;
        let apart = apart(&cluster, &evidence);
        let brief = match (&apart, &*merge) {
            (None, "smart") => brief(&task, &cluster, &evidence)?,
            _ => String::new(),
        };
        Ok(json!({"brief": brief, "apart": apart}))
    })
    .await
}

/// Why no one tool can do the work of all.
fn apart(cluster: &Cluster, evidence: &Evidence) -> Option<String> {
    let works = |member: usize| {
        let shows = |call: &Known| call.sample.output.is_some() && call.members.contains(&member);
        evidence.old.contains(&member) || evidence.calls.iter().any(shows)
    };
    let without = cluster.members.iter().enumerate().find(|(member, _)| !works(*member));
    let unknown = |(_, one): (usize, &Candidate)| {
        format!("no call of `{}` that worked is recorded: nothing shows what would be lost", one.name)
    };
    evidence.contradiction.clone().or_else(|| without.map(unknown))
}

fn brief(task: &Task, cluster: &Cluster, evidence: &Evidence) -> Result<String, Error> {
    let mut brief = String::new();
    let most = FILES / cluster.members.len().max(1);
    for (at, one) in cluster.members.iter().enumerate() {
        let text = library::text(&task.bench.store, &one.version)?;
        brief.push_str(&format!("The tool `{}`:\n\n{}\n\n", one.name, fenced("python", &cut(&text, most))));
        brief.push_str("Calls of it:\n");
        for call in evidence.calls.iter().filter(|call| call.members.contains(&at)).take(CALLS) {
            let came = match (&call.sample.output, &call.sample.fault) {
                (Some(output), _) => value(output, CALL),
                (None, Some(fault)) => fault.kind.name().to_owned(),
                (None, None) => String::new(),
            };
            brief.push_str(&format!("- {} gives {came}\n", value(&call.sample.arguments, CALL)));
        }
        brief.push('\n');
    }
    Ok(brief)
}
