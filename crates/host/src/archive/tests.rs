use super::*;
use crate::begun::Begun;
use crate::environment::Environment;
use crate::fork::ForkOptions;
use crate::host::Host;
use crate::options::RunOptions;
use selvedge_runtime::{Controls, Reading, replay};
use selvedge_store::{Entry, Mode, Store};

const PLAN: &str = r#"{"task": "t", "nodes": [
    {"node_id": "a", "node_type": "llm-first", "node_name": "A", "thread_id": "x", "task_prompt": "one"},
    {"node_id": "b", "node_type": "llm-first", "node_name": "B", "thread_id": "y", "task_prompt": "two"},
    {"node_id": "c", "node_type": "llm-first", "node_name": "C", "thread_id": "x", "task_prompt": "three {{b.output}}"}]}"#;

async fn driven(mut run: Begun) -> (String, u64) {
    run.drive(&mut Controls::default()).await.unwrap();
    let driven = (run.id.clone(), run.state.events());
    run.close().await;
    driven
}

fn journal(store: &Store, run: &str) -> Vec<Entry> {
    store.journal(run, 1).unwrap().map(Result::unwrap).collect()
}

/// C-14, E-19: forks of forks are taken in with what each took from its source, wherever it left it: at its end, amid what is its own, or in what
/// that had from its own source.
#[tokio::test]
async fn a_chain_of_forks_is_taken_in_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, script) = (folder.path().join("plan.json"), folder.path().join("script.yaml"));
    std::fs::write(&plan, PLAN).unwrap();
    std::fs::write(&script, "- reply: {text: said}\n").unwrap();
    let environment = Environment::new([], folder.path().to_owned());
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let host = Host::new(environment.clone()).in_state_dir(Some(&here));
    let options = || RunOptions {
        script: Some(script.clone()),
        cwd: folder.path().to_owned(),
        ..RunOptions::default()
    };
    let (mut last, mut events) = driven(host.run(&plan, options()).await.unwrap()).await;
    let mut runs = vec![last.clone()];
    let ends = |events: u64| Some(events);
    let before = |most: u64| move |events: u64| Some(events.min(most));
    let places: [&dyn Fn(u64) -> Option<u64>; 9] = [
        &ends,
        &ends,
        &before(20),
        &|events| Some(events - 2),
        &before(12),
        &before(12),
        &ends,
        &before(5),
        &before(9),
    ];
    for at in places {
        let fork = ForkOptions { at: at(events), over: options(), ..ForkOptions::default() };
        (last, events) = driven(host.fork(&last, fork).await.unwrap()).await;
        runs.push(last.clone());
    }
    let file = folder.path().join("run.tar");
    let store = crate::stores::open(&here).unwrap().unwrap();
    let config = host.config(&options()).unwrap();
    export(&store, &config, &last, &file).unwrap();
    let imported = import(&environment, &there, &file).unwrap();
    let came: Vec<&str> = imported.runs.iter().map(|(run, _)| &*run.id).collect();
    assert_eq!(came, runs);
    let other = Store::open(&there, Mode::ReadOnly).unwrap();
    for (run, found) in &imported.runs {
        assert_eq!(*found, Found::New);
        let (was, is) = (journal(&store, &run.id), journal(&other, &run.id));
        assert_eq!(was.get(..is.len()), Some(&*is), "run {}", run.id);
        let mut reading = Reading::open(&other, &run.id).unwrap();
        let replayed = replay(&mut reading).unwrap();
        assert!(replayed.diverged.is_none() && replayed.events == is.len() as u64);
        let info = other.run(&run.id).unwrap();
        let stands = selvedge_runtime::standing(&replayed.state, 0);
        assert_eq!(Some(info.status), stands.status.map(|(status, _)| status));
        assert_eq!(Some(info.usage), stands.usage);
    }
}
