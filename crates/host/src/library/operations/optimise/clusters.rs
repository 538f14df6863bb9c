//! Which tools do the same (V-06, V-07): a partition of all there are, whatever a model has said.

use super::super::beside;
use super::super::given::Verdicts;
use super::super::place::Task;
use super::blocks::United;
use super::candidate::{Candidate, Cluster, base_name, descends};
use super::collect::Part;
use crate::error::Error;
use crate::library;
use crate::library::operations::Undone;
use selvedge_engine::library::{Library, Place};
use selvedge_store::Store;
use selvedge_tools::coder::safe_name;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Members of one cluster, at most: a model that says more has said nothing.
const MOST: usize = 24;
/// Members that are tried one after the other where nothing is written (V-09).
const TRIED: usize = 3;

/// What it is given.
#[derive(Deserialize)]
struct Given {
    candidates: Vec<Candidate>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    answers: Verdicts,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    merge: String,
    #[serde(default)]
    before: Option<Before>,
    #[serde(default)]
    kept: Map<String, Value>,
}

/// What came of the round before.
#[derive(Deserialize)]
struct Before {
    #[serde(default)]
    merge: Vec<Cluster>,
}

/// What a model says of a part.
#[derive(Deserialize)]
struct Answer {
    consolidated_tool_clusters: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    suggested_master_tool_name: String,
    #[serde(default)]
    tool_names: Vec<String>,
}

/// A group of candidates, by their index, and the name that was suggested.
type Grouped = (Option<String>, Vec<usize>);

/// Groups tools that do the same.
pub(in super::super) async fn clusters(task: Arc<Task>) -> Result<Value, Undone> {
    let given: Given = task.given()?;
    beside(move || {
        let groups = match (&given.before, &*given.cluster) {
            (Some(before), _) => again(&given.candidates, before),
            (None, "naive") => by_name(&given.candidates, (0..given.candidates.len()).collect()),
            (None, _) => answered(&given.candidates, &given.parts, &given.answers),
        };
        let store = Arc::clone(&task.bench.store);
        task.look(|library| clustered(library, &store, &given, groups))?
    })
    .await
}

/// V-07: one group for each name without its numbers.
fn by_name(candidates: &[Candidate], among: Vec<usize>) -> Vec<Grouped> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in among {
        if let Some(one) = candidates.get(at) {
            groups.entry(base_name(&one.name)).or_default().push(at);
        }
    }
    groups.into_iter().map(|(name, members)| (Some(name.to_owned()), members)).collect()
}

/// V-06: what a model said, as far as it is a partition: who is named twice is where it is named first, who is not named is alone, and
/// names that no tool has mean nothing. Of a part that no model could say anything of, names say it.
fn answered(candidates: &[Candidate], parts: &[Part], answers: &Verdicts) -> Vec<Grouped> {
    let at: HashMap<&str, usize> = candidates.iter().enumerate().map(|(at, one)| (&*one.name, at)).collect();
    let mut left: HashSet<usize> = (0..candidates.len()).collect();
    let mut groups = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        let own: Vec<usize> = part.names.iter().filter_map(|name| at.get(&**name).copied()).collect();
        let Some(answer) = answers.get::<Answer>(n) else {
            for one in &own {
                left.remove(one);
            }
            groups.extend(by_name(candidates, own));
            continue;
        };
        for Group { suggested_master_tool_name, tool_names } in answer.consolidated_tool_clusters {
            let known = tool_names.iter().filter_map(|name| at.get(name.as_str()).copied());
            let members: Vec<usize> = known.filter(|one| own.contains(one) && left.remove(one)).collect();
            match members.len() {
                0 => {}
                1..=MOST => groups.push((Some(suggested_master_tool_name), members)),
                _ => groups.extend(by_name(candidates, members)),
            }
        }
    }
    let mut left: Vec<usize> = left.into_iter().collect();
    left.sort_unstable();
    groups.extend(left.into_iter().map(|one| (None, vec![one])));
    groups
}

/// The clusters of the round before, of what there is now.
fn again(candidates: &[Candidate], before: &Before) -> Vec<Grouped> {
    let mut left: HashSet<usize> = (0..candidates.len()).collect();
    let mut groups = Vec::new();
    for cluster in &before.merge {
        let same = |then: &Candidate, now: &Candidate| match then.is_public() {
            true => now.is_public() && now.name == then.name,
            false => now.version == then.version,
        };
        let now = cluster.members.iter().filter_map(|then| candidates.iter().position(|now| same(then, now)));
        let members: Vec<usize> = now.filter(|one| left.remove(one)).collect();
        groups.push((Some(cluster.name.to_string()), members));
    }
    let mut left: Vec<usize> = left.into_iter().collect();
    left.sort_unstable();
    groups.extend(left.into_iter().map(|one| (None, vec![one])));
    groups
}

/// The clusters that come of groups, and who is alone.
fn clustered(library: &Library, store: &Store, given: &Given, groups: Vec<Grouped>) -> Result<Value, Error> {
    let tried = tried(library);
    let (mut merge, mut single) = (Vec::new(), Vec::new());
    for (suggested, members) in with_kin(library, &given.candidates, groups) {
        let mut members: Vec<Candidate> =
            members.into_iter().filter_map(|at| given.candidates.get(at).cloned()).collect();
        let versions: Vec<Arc<str>> = members.iter().map(|one| Arc::clone(&one.version)).collect();
        let known = members.iter().all(Candidate::is_public) && tried.contains(&Cluster::key(&versions));
        if members.len() < 2 || known {
            single.append(&mut members);
            continue;
        }
        let name = name_of(suggested.as_deref(), &members);
        let kept = given.kept.get(&Cluster::key(&versions)).and_then(Value::as_str).map(Arc::from);
        let mut ready: Vec<Arc<str>> = kept.into_iter().collect();
        ready.extend(if given.merge == "naive" {
            smallest(library, store, &members)?
        } else {
            newest(library, &members)
        });
        merge.push(Cluster { name, members, versions, ready });
    }
    Ok(json!({"merge": merge, "single": single}))
}

/// The same with one group for a version and what it was made of: a better version does the same by its making.
fn with_kin(library: &Library, candidates: &[Candidate], groups: Vec<Grouped>) -> Vec<Grouped> {
    let of: HashMap<&str, usize> =
        candidates.iter().enumerate().map(|(at, one)| (&*one.version, at)).collect();
    let mut united = United::new(candidates.len());
    let mut names: HashMap<usize, String> = HashMap::new();
    for (name, members) in &groups {
        for pair in members.windows(2) {
            if let [a, b] = pair {
                united.unite(*a, *b, usize::MAX);
            }
        }
        for member in members {
            names.extend(name.clone().map(|name| (*member, name)));
        }
    }
    for (at, one) in candidates.iter().enumerate() {
        let old = library.lineage(&one.version).into_iter().skip(1).filter_map(|known| of.get(&*known.hash));
        old.for_each(|old| united.unite(at, *old, usize::MAX));
    }
    let named = |members: Vec<usize>| {
        let name = members.iter().find_map(|member| names.get(member).cloned());
        (name, members)
    };
    united.sets().into_iter().map(named).collect()
}

/// What the tool of a cluster is called: as was suggested, if that is a name, else as its first member without numbers.
fn name_of(suggested: Option<&str>, members: &[Candidate]) -> Arc<str> {
    let first = members.first().map(|one| &*one.name).unwrap_or_default();
    let names = [suggested, Some(base_name(first)), Some(first)];
    let safe = names.into_iter().flatten().find_map(|name| safe_name(name).ok());
    safe.unwrap_or_else(|| first.to_owned()).into()
}

/// Members by size, smallest first; what was made of another member before that (V-08).
fn smallest(library: &Library, store: &Store, members: &[Candidate]) -> Result<Vec<Arc<str>>, Error> {
    let mut sized = Vec::with_capacity(members.len());
    for one in members {
        let old = members.iter().any(|other| descends(library, &other.version, &one.version));
        sized.push((
            old,
            library::text(store, &one.version)?.len(),
            Arc::clone(&one.name),
            Arc::clone(&one.version),
        ));
    }
    sized.sort();
    Ok(sized.into_iter().take(TRIED).map(|(.., version)| version).collect())
}

/// The member that was made of all others, if there is one.
fn newest(library: &Library, members: &[Candidate]) -> Vec<Arc<str>> {
    let made_of = |one: &&Candidate| {
        let others = || members.iter().filter(|other| other.version != one.version);
        others().all(|other| descends(library, &one.version, &other.version))
    };
    members.iter().find(made_of).map(|one| Arc::clone(&one.version)).into_iter().collect()
}

/// Which versions a coder has tried to make one of, and nothing came of it.
fn tried(library: &Library) -> HashSet<String> {
    let unmade = library.versions().filter(|known| known.stage(&Place::Library).is_none());
    let of = unmade.filter_map(|known| known.request.get("merges").and_then(Value::as_array));
    let key = |of: &Vec<Value>| {
        let versions: Vec<Arc<str>> = of.iter().filter_map(Value::as_str).map(Arc::from).collect();
        Cluster::key(&versions)
    };
    of.map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(names: &[&str]) -> Vec<Candidate> {
        let one = |name: &&str| Candidate {
            name: (*name).into(),
            version: format!("v-{name}").into(),
            tasks: vec!["t".into()],
        };
        names.iter().map(one).collect()
    }

    /// The groups that come of an answer, as names.
    fn of(names: &[&str], answer: Value) -> Vec<(Option<String>, Vec<String>)> {
        let candidates = candidates(names);
        let part = json!([{"names": names, "tools": ""}]);
        let parts: Vec<Part> = serde_json::from_value(part).unwrap();
        let answers: Verdicts = serde_json::from_value(json!({ "0": answer })).unwrap();
        let groups = answered(&candidates, &parts, &answers);
        let mut seen: Vec<usize> = groups.iter().flat_map(|(_, members)| members.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..names.len()).collect::<Vec<_>>(), "it is a partition");
        let named =
            |members: Vec<usize>| members.into_iter().map(|at| candidates[at].name.to_string()).collect();
        groups.into_iter().map(|(name, members)| (name, named(members))).collect()
    }

    fn group(name: &str, members: &[&str]) -> (Option<String>, Vec<String>) {
        (Some(name.to_owned()), members.iter().map(|name| (*name).to_owned()).collect())
    }

    fn alone(name: &str) -> (Option<String>, Vec<String>) {
        (None, vec![name.to_owned()])
    }

    /// V-06: whatever a model answers, each tool is in one group.
    #[test]
    fn v06_any_answer_becomes_a_partition() {
        let said = |groups: Value| json!({"consolidated_tool_clusters": groups});
        let names = ["a", "b", "c", "d"];
        let two = json!([{"suggested_master_tool_name": "x", "tool_names": ["b", "a"]},
                         {"suggested_master_tool_name": "y", "tool_names": ["a", "c", "zzz", "c"]}]);
        assert_eq!(of(&names, said(two)), [group("x", &["b", "a"]), group("y", &["c"]), alone("d")]);
        let unknown =
            json!([{"suggested_master_tool_name": "../../x", "tool_names": ["../a", "/etc/passwd", ""]}]);
        assert_eq!(of(&names, said(unknown)), names.map(alone));
        assert_eq!(of(&names, said(json!([]))), names.map(alone));
        let all = json!([{"suggested_master_tool_name": "x", "tool_names": names}]);
        assert_eq!(of(&names, said(all)), [group("x", &names)]);
        // What says nothing is grouped by name.
        for nothing in [json!(null), json!("no"), json!({"consolidated_tool_clusters": 3})] {
            assert_eq!(of(&["a_1", "b", "a_2"], nothing), [group("a", &["a_1", "a_2"]), group("b", &["b"])]);
        }
        // So is what would put all in one.
        let many: Vec<String> = (0..30).map(|n| format!("t{}_{n}", n % 3)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let all = json!([{"suggested_master_tool_name": "x", "tool_names": many}]);
        assert_eq!(of(&many, said(all)).len(), 3);
    }

    /// V-06, A-08: a suggested name is one that a tool may have.
    #[test]
    fn v06_names_of_clusters_are_safe() {
        let members = candidates(&["parse_2", "other"]);
        for (suggested, name) in [
            (Some("Parse Date"), "Parse_Date"),
            (Some("../../etc"), "etc"),
            (Some("read_file"), "parse"),
            (Some("selvedge__end"), "parse"),
            (Some(""), "parse"),
            (None, "parse"),
        ] {
            assert_eq!(&*name_of(suggested, &members), name, "{suggested:?}");
        }
    }
}
