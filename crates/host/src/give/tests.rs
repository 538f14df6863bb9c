use super::*;
use crate::environment::Environment;
use selvedge_engine::RunStatus;
use selvedge_runtime::{Controls, Halt};
use std::path::Path;

const PLAN: &str = r#"{"task": "t", "nodes": [{"node_id": "a", "node_type": "llm-first", "node_name": "A",
    "thread_id": "main", "task_prompt": "p", "require_approval": true}]}"#;

/// A folder with a run `r` that has begun, and its host.
async fn begun(folder: &Path) -> (Host, Begun) {
    let (plan, script) = (folder.join("plan.json"), folder.join("script.yaml"));
    std::fs::write(&plan, PLAN).unwrap();
    std::fs::write(&script, "- reply: {text: done}\n").unwrap();
    let host = Host::new(Environment::new([], folder.to_owned())).in_state_dir(Some(&folder.join("state")));
    let options = RunOptions { script: Some(script), cwd: folder.to_owned(), ..RunOptions::default() };
    let asked = host.read(&plan, options, Some("r")).unwrap();
    let run = host.begin(host.prepare(asked).await.unwrap()).await.unwrap();
    (host, run)
}

/// E-43: who drives a run hears what is said to it, and goes on; a second answer is none.
#[tokio::test]
async fn a_driver_hears_what_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (host, run) = begun(folder.path()).await;
    let (handle, driven) = run.driven();
    let task = tokio::spawn(driven);
    while host.load("r").unwrap().state.asks().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let Given::Driven(run) = host.answer("r", &Answer::new("yes")).await.unwrap() else {
        panic!("somebody drives it");
    };
    assert!(run.state.asks().is_empty());
    let driven = task.await.unwrap();
    assert_eq!((driven.halt.unwrap(), driven.state.status()), (Halt::Ended, RunStatus::Completed));
    drop(handle);
    assert!(host.answer("r", &Answer::new("yes")).await.err().unwrap().is("ask-answered"));
}

/// C-13: who answers too late, while another process drives the run, is not told to resume it.
#[tokio::test]
async fn a_late_answer_to_a_driven_run_is_not_advised_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let (host, run) = begun(folder.path()).await;
    // The run is locked as a driver has it, and asks nothing yet.
    let error = host.answer("r", &Answer::new("yes")).await.err().unwrap();
    let help = &error.diagnostics[0].help;
    assert!(error.is("unknown-ask") && help.contains("another process drives"), "{help}");
    assert!(!help.contains("resume"), "{help}");
    run.close().await;
    let error = host.answer("r", &Answer::new("yes")).await.err().unwrap();
    assert!(error.diagnostics[0].help.contains("resume r"), "{error:?}");
}

/// C-13: without a driver the run hears it once it goes on, or only records it. What does not fit leaves the ask open.
#[tokio::test]
async fn a_run_that_nobody_drives_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut run) = begun(folder.path()).await;
    assert_eq!(run.drive(&mut Controls::default()).await.unwrap(), Halt::Waiting);
    assert!(host.lock("r").err().unwrap().is("run-driven"));
    run.close().await;
    for (answer, code) in [("perhaps", "bad-answer"), ("done", "bad-answer")] {
        assert!(host.answer("r", &Answer::new(answer)).await.err().unwrap().is(code), "{answer}");
    }
    let other = Answer { ask: Some("b/approve".to_owned()), ..Answer::new("yes") };
    assert!(host.answer("r", &other).await.err().unwrap().is("unknown-ask"));
    let Given::Alone(locked) = host.answer("r", &Answer::new("yes")).await.unwrap() else {
        panic!("nobody drives it");
    };
    assert!(locked.record().await.unwrap().state.asks().is_empty());
    let mut run = host.resume(host.lock("r").unwrap(), &RunOptions::default()).await.unwrap();
    run.drive(&mut Controls::default()).await.unwrap();
    assert_eq!(*run.state.view().output(), "done");
}

/// E-13: who cancels ends a run, once.
#[tokio::test]
async fn a_run_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let (host, run) = begun(folder.path()).await;
    run.close().await;
    let Given::Alone(locked) = host.cancel("r").await.unwrap() else { panic!("nobody drives it") };
    let mut run = locked.cancel().unwrap();
    run.drive(&mut Controls::default()).await.unwrap();
    assert_eq!(run.state.status(), RunStatus::Cancelled);
    run.close().await;
    let Given::Alone(locked) = host.cancel("r").await.unwrap() else { panic!("nobody drives it") };
    assert!(locked.run.state.ended().is_some() && !locked.run.can_go_on());
    assert!(host.resume(locked, &RunOptions::default()).await.err().unwrap().is("run-ended"));
}
