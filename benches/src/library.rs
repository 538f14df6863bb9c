//! The tool library as an agent uses it: its operations where it is large, and recorded calls that are repeated.

use crate::Result;
use crate::agents::operations_of;
use crate::measure::{complain, emit, folder, middle, setting};
use crate::runs::runtime;
use crate::tools::{config, missing, write};
use selvedge_dialects::agent::operations;
use selvedge_engine::library::{Author, Call, Event, Facts, Origin, Place as Shelf, Sample};
use selvedge_engine::place::{EffectPlace, FramePath, FrameStep, Instance, Place};
use selvedge_engine::{ToolDef, ToolRequest};
use selvedge_runtime::{CallContext, Operations};
use selvedge_store::{BlobHash, Entry, Mode, Store};
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Recorded calls of each version, and of the one that is tried.
const CALLS: usize = 10;
const TRIED: usize = 100;

pub(crate) fn library(scale: f64) -> Result<()> {
    let versions = ((setting("BENCH_N", 10_000.0) * scale) as usize).max(10);
    runtime()?.block_on(async {
        changes(versions).await?;
        repeated().await
    })
}

/// Who asks operations of a library in a folder.
pub(crate) struct Asking {
    operations: Arc<dyn Operations>,
    asked: usize,
}

impl Asking {
    pub(crate) async fn of(store: &Arc<Store>, config: CatalogueConfig) -> Result<Self> {
        let folder = config.workspace.clone();
        let catalogue = Catalogue::load(config).await?;
        Ok(Self { operations: operations_of(store, catalogue, &folder), asked: 0 })
    }

    /// Asks for an operation that nobody asked for before, for a task of its own or for one: the answer, and milliseconds.
    pub(crate) async fn ask(&mut self, tool: Arc<ToolDef>, task: &str, args: Value) -> Result<(Value, f64)> {
        self.asked += 1;
        let step = FrameStep { node: task.into(), visit: 1, instance: Instance::Sub };
        let (frame, node) = (FramePath::default().with(&step), format!("n{}", self.asked));
        let place = Place { frames: frame.frames(), node: node.into(), visit: 1 };
        let effect = EffectPlace { place, leaf: "call".into(), slot: None, leaf_visit: 1, attempt: 1 }.id();
        let request = ToolRequest { effect, node: "n".into(), tool, args, timeout_s: None };
        let start = Instant::now();
        let done = self.operations.call(request, CallContext::of("run")).await;
        let took = start.elapsed().as_secs_f64() * 1e3;
        Ok((Value::clone(&done.map_err(|failure| failure.fault.message)?.output), took))
    }
}

fn hash(n: usize) -> Arc<str> {
    BlobHash::of(&n.to_le_bytes()).to_string().into()
}

/// A public version, and calls of it.
fn version(n: usize) -> Vec<Event> {
    let (place, version) = (Shelf::Library, hash(n));
    let name: Arc<str> = format!("tool_{n}").into();
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let facts = Facts {
        description: "does something".into(),
        input_schema: schema,
        metadata: json!({"name": name}),
        ..Facts::default()
    };
    let call = |i: usize| Event::CallRecorded {
        version: Arc::clone(&version),
        call: Call {
            sample: hash(n * CALLS + i),
            ok: true,
            origin: Some(Origin {
                run: format!("r{}", n % 1000).into(),
                effect: format!("{n}/{i}").into(),
                folder: None,
            }),
            ..Call::default()
        },
    };
    let mut events = vec![
        Event::Drafted {
            place: place.clone(),
            version: Arc::clone(&version),
            name: Arc::clone(&name),
            author: Author::Person,
            parents: Vec::new(),
            members: Vec::new(),
            request: json!({"description": "something"}),
        },
        Event::Validated { place: place.clone(), version: Arc::clone(&version), facts: Box::new(facts) },
        Event::Published { place, version: Arc::clone(&version), name },
    ];
    events.extend((0..CALLS).map(call));
    events
}

/// What operations take that change a library of so many versions, each of which has some calls.
async fn changes(versions: usize) -> Result<()> {
    let folder = folder()?;
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let events = (0..versions).flat_map(version);
    let entries: Vec<Entry> = (1..)
        .zip(events)
        .map(|(n, event)| Ok(Entry { n, at_ms: 0, json: serde_json::to_string(&event)? }))
        .collect::<Result<_>>()?;
    let all = entries.len();
    store.append_library(entries, Vec::new()).await?;
    std::fs::create_dir_all(folder.path().join("tools"))?;
    let mut asking = Asking::of(&store, config(folder.path())?).await?;
    // The first one folds the library.
    let none = || json!({"depth": 0, "names": []});
    let (_, folded) = asking.ask(operations::bindings(), "t", none()).await?;
    let mut took: [Vec<f64>; 4] = Default::default();
    for n in 0..200 {
        let call = |id: usize| json!({"id": id.to_string(), "tool": format!("tool_{n}"), "version": hash(n % versions), "arguments": {"x": id}, "output": {"x": n}});
        let settle = json!({"depth": 0, "calls": [call(n), call(n + 1)], "looked": {}, "classes": {}});
        took[0].push(asking.ask(operations::settle(), "t", settle).await?.1);
        let retire = json!({"depth": 0, "name": "x", "version": hash(n % versions), "reason": "measured"});
        took[1].push(asking.ask(operations::retire(), &format!("t{n}"), retire).await?.1);
        took[2].push(
            asking.ask(operations::end(), &format!("t{n}"), json!({"depth": 0, "publish": true})).await?.1,
        );
        took[3].push(asking.ask(operations::bindings(), "t", none()).await?.1);
    }
    let [settle, retire, end, bindings] = took.map(middle);
    emit(
        "library",
        json!({"versions": versions, "events": all, "fold_ms": folded, "settle_ms": settle, "retire_ms": retire, "end_ms": end,
               "bindings_ms": bindings}),
    );
    Ok(())
}

/// A hundred recorded calls, repeated with a better version.
async fn repeated() -> Result<()> {
    let folder = folder()?;
    write(folder.path(), "echo", "    return {'x': i.x}")?;
    if let Some(why) = missing(folder.path()).await? {
        complain(&format!("library: repeated calls are left out: {why}"));
        return Ok(());
    }
    let text = |note: &str| -> Result<String> {
        Ok(std::fs::read_to_string(folder.path().join("tools/echo.py"))? + "\n# " + note + "\n")
    };
    let store = Arc::new(Store::open(folder.path(), Mode::ReadWrite)?);
    let mut asking =
        Asking::of(&store, CatalogueConfig { tool_dirs: Vec::new(), ..config(folder.path())? }).await?;
    let draft = |file: String, replaces: Value| json!({"depth": 0, "name": "echo", "file": file, "coder": "model", "replaces": replaces});
    let (first, draft_ms) = asking.ask(operations::draft(), "t", draft(text("1")?, Value::Null)).await?;
    // A version keeps 80 calls with an output and 20 that failed.
    let sample = |x: usize, ok: bool| match ok {
        true => json!({"arguments": {"x": x}, "output": {"x": x}}),
        false => json!({"arguments": {"x": x}, "fault": {"kind": "execution_failure"}}),
    };
    let text_of =
        |answer: &Value| answer.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
    let version: Arc<str> = text_of(&first).into();
    selvedge_host::library::change(&store, |_| {
        let (mut events, mut contents) = (Vec::new(), Vec::new());
        for x in 0..TRIED {
            let ok = x < 80;
            let json =
                serde_json::to_vec(&serde_json::from_value::<Sample>(sample(x, ok)).ok()).unwrap_or_default();
            let call = Call { sample: BlobHash::of(&json).to_string().into(), ok, ..Call::default() };
            events.push(Event::CallRecorded { version: Arc::clone(&version), call });
            contents.push(json);
        }
        Ok(selvedge_host::library::Decided { events, contents, what: () })
    })
    .map_err(|error| format!("{error:?}"))?;
    let mut took = Vec::new();
    for n in 0..setting("BENCH_RUNS", 5.0) as usize {
        let (better, _) = asking
            .ask(operations::draft(), "t", draft(text(&format!("better {n}"))?, json!(version)))
            .await?;
        let of = json!({"depth": 0, "name": "echo", "version": text_of(&better), "replaces": version});
        let (replayed, ms) = asking.ask(operations::replay(), "t", of).await?;
        if replayed.get("passed") != Some(&json!(TRIED)) {
            return Err(format!("not all calls pass: {replayed}").into());
        }
        took.push(ms);
    }
    emit("library-replay", json!({"calls": TRIED, "draft_ms": draft_ms, "replay_ms": middle(took)}));
    Ok(())
}
