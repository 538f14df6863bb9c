//! E-38: what a losing path does ends as the join is decided, to the last child process.

use crate::race::{Race, run};
use crate::world::{World, anyone, count, mark};
use selvedge_tools::{Catalogue, CommandTool};
use serde_json::{Value, json};
use std::sync::Arc;

/// A race in which the losing path calls a tool whose two processes have this mark.
fn calls(tools: &Catalogue, name: &str, args: &Value, mark: &str) -> Race {
    let (first, second) = (mark.to_owned(), mark.to_owned());
    Race {
        act: json!({"call": {"tool": name, "args": args}}),
        tools: vec![tools.def(name).unwrap()],
        begun: Box::new(move || count(&first) == 2),
        over: Box::new(move || !anyone(&second)),
        model: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_ends_with_its_children() {
    for shell in ["sleep MARK & sleep MARK", "trap '' TERM HUP INT; sleep MARK & sleep MARK; true"] {
        let (world, mark) = (World::new(), mark());
        let mut config = world.config();
        let command = json!({"description": "d", "command": ["sh", "-c", shell.replace("MARK", &mark)],
                             "input_schema": {"type": "object"}, "effects": "write"});
        config.commands =
            vec![CommandTool { name: "two".into(), ..serde_json::from_value(command).unwrap() }];
        let tools = Catalogue::load(config).await.unwrap();
        tools.prepare(&["two"]).await.unwrap();
        let race = calls(&tools, "two", &json!({}), &mark);
        run(race, Arc::new(tools)).await.check(shell, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_tool_ends_with_its_children() {
    let (world, mark) = (World::new(), mark());
    let body = "def run(i):
    import subprocess
    subprocess.Popen(['sleep', i.text], start_new_session=True)
    subprocess.run(['sleep', i.text])";
    world.tool("two", "", body);
    let tools = world.ready().await;
    let race = calls(&tools, "two", &json!({"text": mark}), &mark);
    run(race, Arc::new(tools)).await.check("python", 0);
}
