//! What Selvedge reads for itself (its configuration, its state, the code of tools) is not for tools to write.

use super::{WRITES, machine_has, ready, world, writer};
use crate::world::{call, fault, isolation};
use selvedge_engine::FaultKind::{Denied, ExecutionFailure};
use selvedge_sandbox::isolation::Layer::Namespaces;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_configures_selvedge() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let (world, mut config) = writer();
    let tools = ready(config.clone()).await;
    let document = world.path("document");
    std::fs::create_dir_all(document.join("deep/er")).unwrap();
    let file = document.join("selvedge.toml");
    let evil = "open('evil', 'w').write('evil'); ";
    // One that a call makes is set aside, and the call is denied.
    for (made, how) in [
        ("selvedge.toml", "open('selvedge.toml', 'w').write('evil')"),
        ("selvedge.toml", "os.replace('evil', 'selvedge.toml')"),
        ("selvedge.toml", "os.symlink('evil', 'selvedge.toml')"),
        ("selvedge.toml", "os.makedirs('selvedge.toml.set-aside-9/x'); os.replace('evil', 'selvedge.toml')"),
        ("deep/er/selvedge.toml", "os.replace('evil', 'deep/er/selvedge.toml')"),
        ("deep/.selvedge", "os.makedirs('deep/.selvedge/cache/uv')"),
        (
            "shut/selvedge.toml",
            "os.makedirs('shut', exist_ok=True); os.chmod('shut', 0o755); os.replace('evil', 'shut/selvedge.toml'); os.chmod('shut', 0o555)",
        ),
        ("new/.selvedge", "os.makedirs('new/.selvedge/cache/uv')"),
    ] {
        let code = format!("import os; {evil}{how}");
        for tool in ["writes", "python"] {
            let args = if tool == "python" { json!({"code": code}) } else { json!({"text": code}) };
            let fault = fault(call(&tools, tool, args).await, Denied, "");
            assert!(fault.message.contains("set-aside") && fault.message.contains(made), "{}", fault.message);
            assert!(document.join(made).symlink_metadata().is_err(), "{tool} {how}");
            assert!(document.join(format!("{made}.set-aside")).symlink_metadata().is_ok(), "{tool} {how}");
            let _ = std::fs::remove_dir_all(document.join("selvedge.toml.set-aside-9"));
            let _ = std::fs::remove_dir_all(document.join("shut"));
        }
    }
    // The user's own stays as it is.
    std::fs::write(&file, "mine").unwrap();
    for how in [
        "open('selvedge.toml', 'w').write('x')",
        "os.replace('evil', 'selvedge.toml')",
        "os.remove('selvedge.toml')",
    ] {
        let code = format!("import os; {evil}{how}");
        let outcome = call(&tools, "writes", json!({"text": code})).await;
        fault(outcome, ExecutionFailure, "tool_execution_error");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine", "{how}");
        assert_ne!(call(&tools, "python", json!({"code": code})).await.unwrap()["exit_code"], 0);
    }
    assert_eq!(call(&tools, "writes", json!({"text": evil})).await.unwrap(), "done");
    for path in ["selvedge.toml", "deep/selvedge.toml", "deep/.selvedge/selvedge.db"] {
        let written = call(&tools, "write_file", json!({"path": path, "content": "evil"})).await;
        assert!(fault(written, Denied, "").message.contains("Selvedge reads for itself"));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    // A link of the user's is the user's, too.
    std::fs::rename(&file, document.join("real.toml")).unwrap();
    std::os::unix::fs::symlink("real.toml", &file).unwrap();
    let code = format!("import os; {evil}os.replace('evil', 'selvedge.toml')");
    fault(call(&tools, "writes", json!({"text": code})).await, Denied, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    // Without the layer, nothing keeps a tool from the one that is there.
    config.isolation = isolation().without(&[Namespaces]);
    let tools = ready(config).await;
    call(&tools, "writes", json!({"text": "open('selvedge.toml', 'w').write('theirs')"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_changes_the_code_of_tools() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    world.tool("writes", ", 'write_paths': ['.']", WRITES);
    let document = world.path("document");
    std::fs::create_dir_all(document.join("lib/tools")).unwrap();
    std::fs::create_dir_all(document.join("src")).unwrap();
    let code = std::fs::read_to_string(world.path("tools/writes.py")).unwrap().replace("writes", "mine");
    std::fs::write(document.join("src/mine.py"), &code).unwrap();
    std::os::unix::fs::symlink("../../src/mine.py", document.join("lib/tools/mine.py")).unwrap();
    let mut config = world.config();
    config.permissions.allow_write = vec![".".into()];
    config.tool_dirs.push(document.join("lib/tools"));
    let mut changed = Vec::new();
    let attacks = [
        "open('lib/tools/new.py', 'w').write('evil')",
        "open('lib/tools/mine.py', 'w').write('evil')",
        "open('src/mine.py', 'w').write('evil')",
        "import os; os.remove('lib/tools/mine.py')",
        "import os; os.rename('lib/tools', 'other')",
        "import os; os.rename('lib', 'other'); os.makedirs('lib/tools')",
    ];
    for off in [&[][..], &[Namespaces]] {
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        for how in attacks {
            changed.push(call(&tools, "writes", json!({"text": how})).await.is_ok());
            if off.is_empty() {
                assert_eq!(
                    std::fs::read_to_string(document.join("lib/tools/mine.py")).unwrap(),
                    code,
                    "{how}"
                );
                assert_eq!(std::fs::read_dir(document.join("lib/tools")).unwrap().count(), 1, "{how}");
            }
        }
        let written =
            call(&tools, "write_file", json!({"path": "lib/tools/new.py", "content": "evil"})).await;
        fault(written, Denied, "");
        if off.is_empty() {
            let wrote = "open('lib/a', 'w').write('a'); open('src/b', 'w').write('b')";
            assert_eq!(call(&tools, "writes", json!({"text": wrote})).await.unwrap(), "done");
        }
    }
    assert_eq!(changed[..6], [false; 6]);
    assert!(changed[6], "only the layer keeps a tool from them");
}
