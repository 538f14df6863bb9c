//! The operations that the graph of an optimisation calls (E-40), besides those of an agent: what they are given and what they answer.
//! Whoever drives a run implements them.
//!
//! A *candidate* is `{"name", "version", "tasks": [id]}`: a tool that everybody has, where `tasks` is empty, or one that these tasks have
//! proved. A *cluster* is `{"name", "members": [candidate], "versions": [version], "ready": [version]}`. `depth` is how many frames the call is
//! below the optimisation's own.

use crate::agent::operations::operation;
use selvedge_engine::ToolDef;
use serde_json::json;
use std::sync::Arc;

operation! {
    /// Which tools there are (V-05): `{depth, runs, cluster, before}` gives `{"candidates": [candidate], "parts": [{"names", "tools"}]}`: public
    /// tools and those that tasks of these runs have proved, each under a name of its own, and what a model is to be told that groups
    /// them, in parts of bounded size (V-06). There are no parts where nobody is to be asked: `cluster` is `naive`, or `before` has clusters.
    collect, Read, "Lists the tools of a library and of tasks.", json!({"runs": {"type": "array"}})
}
operation! {
    /// Which tools do the same (V-06, V-07): `{depth, candidates, parts, answers: {index of part: {"consolidated_tool_clusters"} | null}, merge,
    /// before, kept}` gives `{"merge": [cluster], "single": [candidate]}`. Together they are a partition of the candidates whatever the
    /// answers say. `before` is what this gave in the round before, and then decides; `kept` has versions that are tried first, by the versions that they are made of.
    clusters, Read, "Groups tools that do the same.", json!({"candidates": {"type": "array"}})
}
operation! {
    /// What a coder is told of a cluster: `{depth, cluster, merge}` gives `{"brief": text, "apart": text | null}`. `apart` says why no one tool can do
    /// the work of all: two of them come to something else with the same arguments, or of one nothing is recorded.
    members, Read, "Tells what tools have in common.", json!({"cluster": {"type": "object"}})
}
operation! {
    /// Repeats every recorded call of every member with one version (V-09): `{depth, cluster, version}` gives `{"passed", "skipped", "failing":
    /// [text], "unsure": [{"question"}], "over": text | null, "evidence"}`. `over` says why no other version would do better: of a member no call
    /// could be repeated. `evidence` is told to `publish`: by it that sees whether more has been recorded since.
    regress, Read, "Repeats recorded calls of several tools with one.", json!({"version": {"type": "string"}})
}
operation! {
    /// What came of it: `{replayed, equal: {index of unsure: {"equal", "reason"}}}` gives `{"accepted": bool, "errors": [text], "replayed":
    /// {"passed", "skipped", "evidence"}}`.
    weigh, Pure, "Says whether recorded calls came to the same.", json!({"replayed": {"type": "object"}})
}
operation! {
    /// All of it in one commit (V-05, V-09, V-10): `{depth, clusters, single, merged: {index of cluster: {"version" | null, "why", "replayed"}}, last}`
    /// gives `{"again": bool, "kept", "changes": [{"name", "version", "how": "created" | "enhanced" | "merged", "from", "aliases"}],
    /// "separate": [{"name", "members", "why"}]}`. Where others have changed what a merge was decided on, nothing is changed and it says
    /// `again`, unless this is the last round: then the members of such a merge stay apart.
    publish, Idempotent, "Publishes tools.", json!({"last": {"type": "boolean"}})
}

/// All of them.
pub fn all() -> [Arc<ToolDef>; 6] {
    [collect(), clusters(), members(), regress(), weigh(), publish()]
}
