use super::*;
use crate::begun::Begun;
use crate::environment::Environment;
use selvedge_engine::{Event, Request};
use selvedge_runtime::Controls;

const PLAN: &str = r#"{"task": "t {{word}}", "inputs": {"word": {"description": "w", "type": "string"}}, "nodes": [
    {"node_id": "a", "node_type": "llm-first", "node_name": "A", "thread_id": "x", "task_prompt": "one"},
    {"node_id": "b", "node_type": "llm-first", "node_name": "B", "thread_id": "y", "task_prompt": "two"},
    {"node_id": "c", "node_type": "tool-first", "node_name": "C", "thread_id": "x", "initial_tool_name": "read_file",
     "initial_tool_args": {"path": "in.txt"}},
    {"node_id": "d", "node_type": "llm-first", "node_name": "D", "thread_id": "y", "task_prompt": "three {{a.output}}"}]}"#;

async fn driven(mut run: Begun) -> u64 {
    run.drive(&mut Controls::default()).await.unwrap();
    let events = run.state.events();
    run.close().await;
    events
}

/// What follows from a fork until something is asked for, and what that is.
async fn followed(mut fork: Begun) -> (Vec<String>, Vec<String>) {
    let mut events = Vec::new();
    while let Some(event) = fork.state.step() {
        fork.state.apply(&event);
        events.push(serde_json::to_string::<Event>(&event).unwrap());
    }
    let asked = fork.state.pending().keys().map(|effect| match fork.state.request(effect) {
        Some(Request::Model(request)) => format!("{:?}", request.messages.as_slice()),
        other => format!("{other:?}"),
    });
    let asked = asked.collect();
    let store = Arc::clone(&fork.store);
    let own = store.journal(&fork.id, fork.fork.as_ref().unwrap().shared + 1).unwrap();
    let json = own.map(|entry| entry.unwrap().json).collect::<Vec<_>>();
    fork.close().await;
    ([json, events].concat(), asked)
}

/// E-19: a fork of a run that was folded before is the fork that the store gives: at each event, and with each message edited that may be. So
/// it is of a fork.
#[tokio::test]
async fn forks_of_a_folded_run_are_those_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, script) = (folder.path().join("plan.json"), folder.path().join("script.yaml"));
    std::fs::write(&plan, PLAN).unwrap();
    std::fs::write(&script, "- reply: {text: said}\n").unwrap();
    std::fs::write(folder.path().join("in.txt"), "read").unwrap();
    let state = folder.path().join("state");
    let host = Host::new(Environment::new([], folder.path().to_owned())).in_state_dir(Some(&state));
    let options = || RunOptions {
        script: Some(script.clone()),
        cwd: folder.path().to_owned(),
        inputs: Map::from_iter([("word".to_owned(), Value::from("w"))]),
        ..RunOptions::default()
    };
    let first = host.run(&plan, options()).await.unwrap();
    let first = (first.id.clone(), driven(first).await);
    let edited = ForkOptions { at: Some(first.1 / 2), over: options(), ..ForkOptions::default() };
    let fork = host.fork(&first.0, edited).await.unwrap();
    let fork = (fork.id.clone(), driven(fork).await);
    for (run, events) in [first, fork] {
        let (dir, store, id) = host.find(&run).unwrap();
        let known = Arc::new(Forkable::kept(dir, store, &id, 3).unwrap());
        assert_eq!((known.id(), known.events()), (&*run, events));
        let mut asking = 0;
        for at in 1..=events {
            let over = RunOptions { inputs: Map::new(), ..options() };
            let there = ForkOptions { at: Some(at), over: over.clone(), ..ForkOptions::default() };
            let new = vec![(at, "another".to_owned())];
            let edit = ForkOptions { messages: new, over, ..ForkOptions::default() };
            for how in [there, edit] {
                match (host.fork(&run, how.clone()).await, host.fork_of(&known, how).await) {
                    (Ok(stored), Ok(folded)) => {
                        assert_eq!(stored.fork, folded.fork);
                        let (stored, folded) = (followed(stored).await, followed(folded).await);
                        asking += stored.1.len();
                        assert_eq!(stored, folded, "event {at}");
                    }
                    (stored, folded) => {
                        let words = |failed: Result<Begun, Error>| {
                            failed.err().unwrap().diagnostics[0].message.clone()
                        };
                        assert_eq!(words(stored), words(folded), "event {at}");
                    }
                }
            }
        }
        assert!(asking > 0);
        let none = ForkOptions { at: Some(events + 1), ..ForkOptions::default() };
        assert!(host.fork_of(&known, none).await.err().unwrap().is("unknown-event"));
    }
}
