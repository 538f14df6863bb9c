//! A program that embeds Selvedge and asks a person: a run waits, is answered, goes on to its end, and is forked.

#![allow(clippy::print_stdout, reason = "a program that people run")]

use selvedge_host::{Answer, Begun, Environment, ForkOptions, Given, Host, RunOptions};
use selvedge_runtime::{Controls, Halt};
use serde_json::{Map, Value};
use std::error::Error;
use std::path::Path;

const PLAN: &str = r#"{
  "task": "We meet on {{day}}.",
  "inputs": {"day": {"description": "The day.", "type": "string"}},
  "nodes": [
    {"node_id": "send", "node_type": "llm-first", "node_name": "Send", "thread_id": "main",
     "task_prompt": "Tell the team that it is {{day}}.", "require_approval": true}
  ]
}"#;

const REPLIES: &str = r#"
- when: {contains: Friday}
  reply: {text: "Friday!"}
- when: {contains: Thursday}
  reply: {text: "Thursday!"}
"#;

/// The input of the plan.
fn day(day: &str) -> Map<String, Value> {
    Map::from_iter([("day".to_owned(), Value::from(day))])
}

/// Drives a run until it waits for a person, says yes, and drives it to its end: its id and what it came to.
async fn approved(host: &Host, mut run: Begun) -> Result<(String, Value), Box<dyn Error>> {
    let halt = run.drive(&mut Controls::default()).await?;
    if halt != Halt::Waiting {
        return Err(format!("run {} asks nobody: {halt:?}", run.id).into());
    }
    // It waits for as long as it takes: this process might end here, and another one go on.
    let id = run.id.clone();
    run.close().await;
    let mut run = match host.answer(&id, &Answer::new("yes")).await? {
        Given::Alone(waiting) => host.resume(waiting, &RunOptions::default()).await?,
        // Whoever drives a run has heard the answer, and goes on.
        Given::Driven(run) => return Ok((id, run.state.view().output().clone())),
    };
    run.drive(&mut Controls::default()).await?;
    let output = run.state.view().output().clone();
    run.close().await;
    Ok((id, output))
}

/// What the run came to, and what a fork of it came to that has another input.
async fn run(folder: &Path) -> Result<[Value; 2], Box<dyn Error>> {
    let (plan, script) = (folder.join("plan.json"), folder.join("replies.yaml"));
    std::fs::write(&plan, PLAN)?;
    std::fs::write(&script, REPLIES)?;
    let environment = Environment::new([], folder.to_owned());
    let host = Host::new(environment).in_state_dir(Some(&folder.join("state")));
    let (script, cwd, inputs) = (Some(script), folder.to_owned(), day("Thursday"));
    let run = host.run(&plan, RunOptions { script, cwd, inputs, ..RunOptions::default() }).await?;
    let (id, output) = approved(&host, run).await?;
    let over = RunOptions { inputs: day("Friday"), ..RunOptions::default() };
    let fork = host.fork(&id, ForkOptions { over, ..ForkOptions::default() }).await?;
    let (_, forked) = approved(&host, fork).await?;
    Ok([output, forked])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!("{:?}", run(folder.path()).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_waits_is_answered_goes_on_and_is_forked() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(folder.path()).await.unwrap(), ["Thursday!", "Friday!"]);
        let host = Host::new(Environment::new([], folder.path().to_owned()));
        let host = host.in_state_dir(Some(&folder.path().join("state")));
        // Nothing is left to do: it says so, and what to do.
        let ended = host.lock("@").unwrap();
        assert!(!ended.run.can_go_on());
        let refused = host.resume(ended, &RunOptions::default()).await.err().unwrap();
        assert!(refused.is("run-ended"), "{refused}");
        assert!(host.answer("@", &Answer::new("yes")).await.err().unwrap().is("ask-answered"));
    }
}
