//! V-09: whatever tools there are and whatever a coder writes, what worked works still, by a reckoning of its own.

use super::*;
use selvedge_world::rng::Rng;
use std::collections::BTreeMap;

/// A tool that multiplies and adds, with a fault of a known kind.
#[derive(Clone, Debug, PartialEq)]
struct Spec {
    times: i64,
    plus: i64,
    /// The fields that it reads, by name.
    fields: Vec<&'static str>,
    /// Below this it raises.
    fails_below: i64,
    /// There it is wrong without saying so.
    wrong_at: Option<i64>,
    /// Whether it gives a text.
    text: bool,
}

impl Spec {
    fn random(rng: &mut Rng, family: i64) -> Self {
        let fields = match rng.below(3) {
            0 => vec!["n"],
            1 => vec!["x", "n"],
            _ => vec!["x"],
        };
        Self {
            times: family % 7 + 2,
            plus: family,
            fields,
            fails_below: if rng.chance(25) { -3 } else { -100 },
            wrong_at: rng.chance(25).then(|| rng.within(-5, 5)),
            text: rng.chance(10),
        }
    }

    /// What it comes to.
    fn of(&self, arguments: &Value) -> Option<Value> {
        let value = self.fields.iter().find_map(|field| arguments.get(field)?.as_i64())?;
        if value < self.fails_below {
            return None;
        }
        let y = if self.wrong_at == Some(value) { 0 } else { self.times * value + self.plus };
        Some(if self.text { json!({"y": y.to_string()}) } else { json!({ "y": y }) })
    }

    fn file(&self, name: &str, comment: &str) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|field| format!("    {field}: int | None = None")).collect();
        let value: Vec<String> = self.fields.iter().map(|field| format!("i.{field}")).collect();
        let wrong =
            self.wrong_at.map_or_else(String::new, |at| format!("\n    if v == {at}:\n        y = 0"));
        let y = if self.text { "str(y)" } else { "y" };
        let body = format!(
            "    # {comment}\n    v = [v for v in ({},) if v is not None][0]\n    if v < {}:\n        raise ValueError('too low')\n    \
             y = {} * v + {}{wrong}\n    return {{'y': {y}}}",
            value.join(", "),
            self.fails_below,
            self.times,
            self.plus
        );
        tool(name, &fields.join("\n"), &body)
    }
}

/// Families of tools, as they are in a library.
#[derive(Default)]
struct Made {
    specs: BTreeMap<Arc<str>, Spec>,
    /// What worked: by which version, with what, and what it gave.
    worked: Vec<(Arc<str>, Value, Value)>,
    /// What a coder writes for each family, attempt by attempt.
    written: Vec<Vec<String>>,
}

impl Made {
    fn family(&mut self, rng: &mut Rng, store: &Store, family: i64) {
        let name = format!("f{family}x");
        let mut first = None;
        for n in 0..2 + rng.below(2) {
            let spec = Spec::random(rng, family);
            let text = spec.file(&name, &"-".repeat(n * 7));
            let mut calls = Vec::new();
            for _ in 0..3 {
                let field = rng.pick(&spec.fields).copied().unwrap();
                let arguments = json!({ field: rng.within(-6, 6) });
                let came = spec.of(&arguments).ok_or("execution_failure");
                calls.push((arguments, came));
            }
            let place = if n == 0 && rng.chance(40) { Place::Library } else { task(&format!("r{n}")) };
            let version = has(store, place, &name, &text, &[], &calls);
            let good = calls
                .into_iter()
                .filter_map(|(arguments, came)| Some((version.clone(), arguments, came.ok()?)));
            self.worked.extend(good);
            self.specs.insert(version, spec.clone());
            first.get_or_insert(spec);
        }
        // What does it all, or something less.
        let attempts = (0..3).map(|n| {
            let mut spec = first.clone().unwrap();
            spec.fields = if rng.chance(70) { vec!["x", "n"] } else { vec!["x"] };
            spec.fails_below = if rng.chance(80) { -100 } else { -1 };
            spec.wrong_at = if rng.chance(70) { None } else { Some(rng.within(-6, 6)) };
            let text = spec.file(&name, &format!("attempt {n}"));
            self.specs.insert(BlobHash::of(text.as_bytes()).to_string().into(), spec);
            text
        });
        self.written.push(attempts.collect());
    }

    fn coder(&self) -> Arc<Said> {
        let (written, turns): (_, Mutex<BTreeMap<usize, usize>>) = (self.written.clone(), Mutex::default());
        Said::by(move |node, told| match node {
            "write" => {
                let (_, told) = told.split_once("<name>\nf").unwrap();
                let family: usize = told.split('x').next().unwrap().parse().unwrap();
                let mut turns = turns.lock().unwrap();
                let turn = turns.entry(family).or_default();
                *turn += 1;
                Some(format!("```python\n{}```", written[family][(*turn - 1) % 3]))
            }
            _ => Some(json!({"equal": false, "reason": "another value"}).to_string()),
        })
    }
}

/// So many families of tools are optimised; how many became one tool, and how many did not.
async fn families(seed: u64, count: i64, how: Optimise) -> (usize, usize) {
    let folder = Folder::new();
    let process = Process::start(&folder, "opt").await;
    let (mut rng, mut made) = (Rng::new(seed), Made::default());
    (0..count).for_each(|family| made.family(&mut rng, &process.store, family));
    let done = optimised(&process, how, &["r0", "r1", "r2"], made.coder()).await;
    let library = process.library();
    let heads: Vec<&Arc<str>> =
        library.names(&Place::Library).filter_map(|name| library.head(&Place::Library, name)).collect();
    let changes = done["changes"].as_array().unwrap();
    for (version, arguments, output) in &made.worked {
        // It is there by itself, or in what has its place.
        let serves = |head: &&Arc<str>| {
            let of = |change: &Value| {
                change["version"].as_str() == Some(&***head)
                    && change["from"].as_array().is_some_and(|from| from.contains(&json!(version)))
            };
            *head == version || changes.iter().any(of)
        };
        let by = heads
            .iter()
            .copied()
            .find(|head| serves(head))
            .unwrap_or_else(|| panic!("seed {seed}: {version} is lost: {done}"));
        let found = made.specs[by].of(arguments);
        assert_eq!(found.as_ref(), Some(output), "seed {seed}: {arguments} of {version} by {by}");
    }
    let merged = changes.iter().filter(|change| change["how"] == "merged").count();
    (merged, done["separate"].as_array().map_or(0, Vec::len))
}

/// `SELVEDGE_MERGES=10000` takes as many families.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v09_random_merges_lose_nothing() {
    let all = std::env::var("SELVEDGE_MERGES").ok().and_then(|all| all.parse().ok()).unwrap_or(40i64);
    let (mut merged, mut separate) = (0, 0);
    for (seed, at) in (0..all).step_by(20).enumerate() {
        let how = if seed % 2 == 0 { WRITTEN } else { NAIVE };
        let came = families(seed as u64 + 1, (all - at).min(20), how).await;
        (merged, separate) = (merged + came.0, separate + came.1);
        println!("{} of {all}: {merged} became one tool, {separate} did not", (at + 20).min(all));
    }
    assert!(merged > 0 && separate > 0, "{merged} became one tool, {separate} did not");
}
