//! A program that embeds Selvedge, with a tool of its own: the document names it as any other, and its calls are in the journal.

#![allow(clippy::print_stdout, reason = "a program that people run")]

use selvedge_engine::Effects;
use selvedge_host::{Environment, Host, NativeTool, RunOptions};
use selvedge_runtime::Controls;
use serde_json::{Value, json};
use std::error::Error;

const TASK: &str = r#"{
  "task": "How long is the word?",
  "steps": [
    {"step_id": "count", "step_name": "Count", "tool_id": "count_letters",
     "parameters": {"word": "selvedge"}}
  ]
}"#;

/// The tool: how many letters a word has.
async fn count_letters(arguments: Value) -> Result<Value, String> {
    let word = arguments.get("word").and_then(Value::as_str).ok_or("a word is missing")?;
    Ok(json!({"letters": word.chars().count()}))
}

/// Runs the task in a folder, and returns what the step came to.
async fn run() -> Result<Value, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("task.json");
    std::fs::write(&document, TASK)?;
    let schema = json!({
        "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"],
        "additionalProperties": false,
    });
    let tool = NativeTool::new("count_letters", "1", "Counts the letters of a word.", schema, count_letters);
    let environment = Environment::new([], folder.path().to_owned());
    let host = Host::new(environment)
        .in_state_dir(Some(&folder.path().join("state")))
        .with_tool(tool.with_effects(Effects::Pure));
    let options = RunOptions { cwd: folder.path().to_owned(), ..RunOptions::default() };
    let mut run = host.run(&document, options).await?;
    run.drive(&mut Controls::default()).await?;
    Ok(run.state.view().result("count").map(|result| json!(result)).unwrap_or_default())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tool_of_the_program_is_called_by_a_document() {
        let result = run().await.unwrap();
        assert!(result.to_string().contains(r#""letters":8"#), "{result}");
    }
}
