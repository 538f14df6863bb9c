//! What other programs run unasked is not for tools to write, and state folders are not for them to see.

use super::{WRITES, machine_has, ready, world, writer};
use crate::world::{World, call, fault, isolation};
use selvedge_engine::FaultKind::{Denied, ExecutionFailure};
use selvedge_sandbox::isolation::Layer::{Landlock, Namespaces};
use selvedge_tools::CommandTool;
use serde_json::json;
use std::process::Command;

/// What a user has: repositories of several kinds, a work tree and what it leads to, settings that programs run.
const THERE: [&str; 10] = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".hg/hgrc",
    ".jj/repo/config.toml",
    ".envrc",
    ".vscode/tasks.json",
    ".husky/pre-commit",
    "packages/deep/er/.git/config",
    "store/config",
    "store/worktrees/tree/commondir",
];

fn repositories(world: &World) {
    for name in THERE {
        world.write(&format!("document/{name}"), "mine");
    }
    world.write("document/store/worktrees/tree/commondir", "../..\n");
    world.write("document/tree/.git", "gitdir: ../store/worktrees/tree\n");
    world.tool("writes", ", 'write_paths': ['.']", WRITES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_programs_run_stays_as_it_is() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    repositories(&world);
    let mut config = world.config();
    config.permissions.allow_write = vec![".".into()];
    // By a warm interpreter, and by one of its own.
    for off in [&[][..], &[Landlock]] {
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        let before: Vec<String> = THERE.map(|name| read(&world, name)).into();
        let mut attacks: Vec<String> = Vec::new();
        for name in THERE.iter().chain(&["tree/.git"]) {
            attacks.push(format!("open({name:?}, 'a').write('evil')"));
            attacks.push(format!("import os; os.remove({name:?})"));
            attacks.push(format!("import os; open('evil', 'w').close(); os.replace('evil', {name:?})"));
        }
        for folder in [".git", ".husky", "packages", "packages/deep/er", "store", "tree"] {
            attacks.push(format!("import os; os.rename({folder:?}, 'moved')"));
        }
        attacks.push("open('.git/new', 'w').close()".to_owned());
        for how in &attacks {
            let outcome = call(&tools, "writes", json!({"text": how})).await;
            fault(outcome, ExecutionFailure, "tool_execution_error");
        }
        let after: Vec<String> = THERE.map(|name| read(&world, name)).into();
        assert_eq!(before, after, "without {off:?}");
        assert!(!world.path("document/moved").exists() && !world.path("document/.git/new").exists());
        for name in THERE.iter().chain(&["tree/.git", "sub/.git/config", "sub/../.envrc"]) {
            let written = call(&tools, "write_file", json!({"path": name, "content": "evil"})).await;
            let message = fault(written, Denied, "").message;
            assert!(
                message.contains("other programs run unasked") && message.contains("--allow-write"),
                "{message}"
            );
        }
        // What they are for is open: reading, and everything beside them.
        let code =
            "assert open('.git/config').read() == 'mine'; open('packages/deep/er/new', 'w').write('x')";
        assert_eq!(call(&tools, "writes", json!({"text": code})).await.unwrap(), "done");
    }
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("document").join(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_programs_would_run_is_set_aside() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let (world, mut config) = writer();
    let document = world.path("document");
    for off in [&[][..], &[Landlock]] {
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        for (made, how) in [
            (".envrc", "open('.envrc', 'w').write('evil')"),
            (".git", "open('.git', 'w').write('gitdir: sub')"),
            (".vscode", "os.makedirs('.vscode')"),
            ("sub/.husky", "os.makedirs('sub/.husky/_')"),
            ("new/.git", "os.makedirs('new/.git/hooks')"),
        ] {
            let code = format!("import os; {how}");
            for tool in ["writes", "python"] {
                let args = if tool == "python" { json!({"code": code}) } else { json!({"text": code}) };
                let message = fault(call(&tools, tool, args).await, Denied, "").message;
                assert!(message.contains("set-aside") && message.contains(made), "{message}");
                assert!(message.contains("--allow-write"), "{message}");
                assert!(document.join(made).symlink_metadata().is_err(), "{tool} {how}");
                assert!(document.join(format!("{made}.set-aside")).symlink_metadata().is_ok());
            }
        }
        // A clone stays while git runs nothing in it; the next call finds it as it is.
        let clone = "import os; os.makedirs('{}/.git/objects'); open('{}/.git/config', 'w').write('[core]\\n\\tbare = false\\n')";
        call(&tools, "writes", json!({"text": clone.replace("{}", "clone")})).await.unwrap();
        assert!(read(&world, "clone/.git/config").contains("bare"));
        for evil in
            ["open('clone/.git/config', 'a').write('\\tfsmonitor = evil\\n')", "os.mkdir('clone/.git/hooks')"]
        {
            let changed = call(&tools, "writes", json!({"text": format!("import os; {evil}")})).await;
            fault(changed, ExecutionFailure, "tool_execution_error");
        }
        let evil = clone.replace("{}", "evil").replace("bare = false", "fsmonitor = evil");
        fault(call(&tools, "writes", json!({"text": evil})).await, Denied, "");
        for folder in ["clone", "evil"] {
            std::fs::remove_dir_all(document.join(folder)).unwrap();
        }
    }
}

/// git takes a folder for a repository by what lies in it, whatever its name, and runs what its settings name. Shown with
/// git itself; a bare clone stays, and so does a repository that was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_does_not_come_to_be_a_repository_by_what_lies_in_it() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let (world, config) = writer();
    let document = world.path("document");
    let mark = world.path("other/ran");
    let evil = {
        let program = format!("touch {}; false", mark.display());
        format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"{program}\"\n"
        )
    };
    let ran = |folder: &str| {
        let folder = document.join(folder);
        let _ = Command::new("git").args(["-c", "safe.directory=*", "status"]).current_dir(folder).output();
        std::fs::remove_file(&mark).is_ok()
    };
    let has_git = Command::new("git").arg("--version").output().is_ok();

    for (name, text) in
        [("HEAD", "ref: refs/heads/main\n"), ("objects/x", ""), ("refs/x", ""), ("config", &evil)]
    {
        world.write(&format!("document/mine/{name}"), text);
    }
    assert!(!has_git || ran("mine"), "git runs it where nobody has looked");
    let tools = ready(config.clone()).await;
    let make = |folder: &str, config: &str| {
        format!(
            "import os\nos.makedirs('{folder}/objects', exist_ok=True); os.makedirs('{folder}/refs', exist_ok=True)\n\
             open('{folder}/HEAD', 'w').write('ref: refs/heads/main\\n'); open('{folder}/config', 'w').write({config:?})\n"
        )
    };
    let hook = "os.makedirs('a/hooks'); open('a/hooks/post-checkout', 'w').close()";
    let shared = "os.makedirs('a'); open('a/HEAD', 'w').write('ref: refs/heads/main\\n'); open('a/commondir', 'w').write('../b')";
    let aside = make("a/.git", &evil);
    for (folder, code) in [
        ("a", make("a", &evil)),
        ("a/b/c", make("a/b/c", &evil)),
        ("a", make("a", "[core]\n\tbare = true\n") + hook),
        ("a", format!("import os\n{shared}")),
        ("a/.git.set-aside", aside),
    ] {
        for (tool, field) in [("writes", "text"), ("python", "code")] {
            let message = fault(call(&tools, tool, json!({field: code})).await, Denied, "").message;
            assert!(message.contains("set-aside") && message.contains("HEAD"), "{message}");
            assert!(!document.join(folder).join("HEAD").exists() && !ran(folder), "{tool}: {code}");
            std::fs::remove_dir_all(document.join("a")).unwrap();
        }
    }
    // What a call leaves that is none yet is none for the next one to complete.
    let parts = make("a", &evil) + "os.remove('a/HEAD')";
    call(&tools, "writes", json!({"text": parts})).await.unwrap();
    let head = json!({"path": "a/HEAD", "content": "ref: refs/heads/main\n"});
    let message = fault(call(&tools, "write_file", head).await, Denied, "").message;
    assert!(message.contains("repository"), "{message}");
    let head = "open('a/HEAD', 'w').write('ref: refs/heads/main\\n')";
    fault(call(&tools, "writes", json!({"text": head})).await, Denied, "");
    assert!(!document.join("a/HEAD").exists() && !ran("a"));
    // A bare clone may be what the user has asked for, and nothing is written into it; it stays as long as it runs nothing.
    let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
    call(&tools, "writes", json!({"text": make("clone.git", plain)})).await.unwrap();
    for name in ["config", "hooks/post-receive", "HEAD"] {
        let into = json!({"path": format!("clone.git/{name}"), "content": "x"});
        fault(call(&tools, "write_file", into).await, Denied, "");
    }
    call(&tools, "writes", json!({"text": "open('clone.git/refs/main', 'w').write('x')"})).await.unwrap();
    assert!(document.join("clone.git/HEAD").exists());
    let spring = "open('clone.git/config', 'a').write('\\tfsmonitor = evil\\n')";
    fault(call(&tools, "writes", json!({"text": spring})).await, Denied, "");
    assert!(!document.join("clone.git/HEAD").exists());
    // The user's own, with what it runs, as long as that is left alone.
    call(&tools, "writes", json!({"text": "open('mine/refs/main', 'w').write('x')"})).await.unwrap();
    assert!(document.join("mine/HEAD").exists());
    assert!(!has_git || ran("mine"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_other_programs_run_may_be_granted_by_its_name() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    repositories(&world);
    world.tool("commits", ", 'write_paths': ['.', '.git', 'sub/.git', '.envrc']", WRITES);
    std::fs::remove_file(world.path("document/.envrc")).unwrap();
    let mut config = world.config();
    config.permissions.allow_write = [".", ".git", "sub/.git", ".envrc"].map(Into::into).into();
    let tools = ready(config).await;
    let code = "import os
open('.git/config', 'w').write('theirs')
assert not os.path.exists('sub/.git')
os.makedirs('sub/.git/hooks')
open('.envrc', 'w').write('theirs')";
    for (tool, args) in
        [("commits", json!({"text": code})), ("python", json!({"code": code.replace("assert", "0 and")}))]
    {
        call(&tools, tool, args).await.unwrap();
        assert_eq!((read(&world, ".git/config"), read(&world, ".envrc")), ("theirs".into(), "theirs".into()));
        assert!(world.path("document/sub/.git/hooks").is_dir(), "{tool}");
        std::fs::remove_file(world.path("document/.envrc")).unwrap();
        if tool == "commits" {
            std::fs::remove_dir_all(world.path("document/sub/.git")).unwrap();
        }
    }
    for path in [".git/new", ".envrc"] {
        call(&tools, "write_file", json!({"path": path, "content": "x"})).await.unwrap();
    }
    // What is beside it was not meant.
    fault(
        call(&tools, "writes", json!({"text": "open('.hg/hgrc', 'w')"})).await,
        ExecutionFailure,
        "tool_execution_error",
    );
}

/// Also of other projects, and wherever a grant for reading or writing has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_folder_is_out_of_reach() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    for folder in ["document/projects/a/.selvedge", "other/b/.selvedge", "document/.selvedge"] {
        world.write(&format!("{folder}/selvedge.db"), "canary");
        world.write(&format!("{folder}/notes.txt"), "canary");
    }
    world.tool("reads", ", 'write_paths': []", "def run(i): return open(i.text).read()");
    world.tool("writes", ", 'write_paths': ['.']", WRITES);
    let mut config = world.config();
    config.permissions.allow_read = vec![world.path("other")];
    config.permissions.allow_write = vec![".".into()];
    let all = ["projects/a/.selvedge", "../other/b/.selvedge", ".selvedge"];
    for off in [&[][..], &[Landlock], &[Namespaces]] {
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        for folder in all {
            for file in ["selvedge.db", "notes.txt"] {
                let path = format!("{folder}/{file}");
                let outcome = call(&tools, "reads", json!({"text": path})).await;
                fault(outcome, ExecutionFailure, "tool_execution_error");
                fault(call(&tools, "read_file", json!({"path": path})).await, Denied, "");
                fault(call(&tools, "write_file", json!({"path": path, "content": "x"})).await, Denied, "");
                if off.is_empty() {
                    let code = format!("open({path:?}, 'w').write('evil')");
                    assert!(call(&tools, "writes", json!({"text": code})).await.is_err(), "{path}");
                }
            }
        }
        for path in [".", "../other"] {
            let listed = call(&tools, "list_files", json!({"path": path, "glob": "**/*"})).await.unwrap();
            assert!(!listed.to_string().contains("selvedge"), "{listed}");
        }
    }
    assert_eq!(read(&world, "projects/a/.selvedge/selvedge.db"), "canary");
    assert_eq!(read(&world, "projects/a/.selvedge/notes.txt"), "canary");
}

/// an older folder that is given one of the names is one that was made, in the same call or in a later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_folder_does_not_come_to_have_one_of_the_names() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    world.tool("writes", ", 'write_paths': ['out']", WRITES);
    let mut config = world.config();
    config.permissions.allow_write = vec!["out".into()];
    let tools = ready(config).await;
    let repository = "import os
os.makedirs('out/project/sub', exist_ok=True)
for name in ['git', 'code', 'state']:
    os.makedirs(f'out/{name}/hooks', exist_ok=True)
    open(f'out/{name}/config', 'w').write('[core]\\nfsmonitor = evil\\n')";
    assert_eq!(call(&tools, "writes", json!({"text": repository})).await.unwrap(), "done");
    std::thread::sleep(std::time::Duration::from_millis(60));
    for (from, to) in [("git", ".git"), ("code", ".vscode"), ("state", ".selvedge")] {
        let rename = format!("import os; os.rename('out/{from}', 'out/project/sub/{to}')");
        let outcome = call(&tools, "writes", json!({"text": rename})).await;
        assert!(outcome.is_err(), "{to}: {outcome:?}");
        assert!(!world.path(&format!("document/out/project/sub/{to}")).exists(), "{to}");
        assert!(world.path(&format!("document/out/project/sub/{to}.set-aside")).exists(), "{to}");
    }
}

/// a program of the user's that is not there is not a tool's to make.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_run_and_not_there_is_not_made() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let (world, mut config) = writer();
    config.kept = vec![world.path("document/home/selvedge/config.toml")];
    // A program, a script of an interpreter's, and what is neither: an argument, and a program that is looked for on PATH.
    for (name, command) in [
        ("own", &["./bin/own", "data/in.txt"][..]),
        ("script", &["python3", "lib/script.py", "plain.py", "out/report.csv"]),
    ] {
        config.commands.push(CommandTool {
            name: name.into(),
            description: "d".into(),
            command: command.iter().map(ToString::to_string).collect(),
            input_schema: json!({"type": "object"}),
            output_params: None,
            effects: None,
            timeout_s: None,
            env: Vec::new(),
            dir: world.path("document"),
        });
    }
    let tools = ready(config).await;
    for (path, made) in [
        ("bin/own", false),
        ("lib/script.py", false),
        ("data/in.txt", true),
        ("plain.py", true),
        ("out/report.csv", true),
    ] {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let write = format!(
            "import os; {folder:?} and os.makedirs({folder:?}, exist_ok=True); open({path:?}, 'w').write('evil')"
        );
        let outcome = call(&tools, "writes", json!({ "text": write })).await;
        assert_eq!(
            (outcome.is_ok(), world.path("document").join(path).exists()),
            (made, made),
            "{path}: {outcome:?}"
        );
        if !made {
            fault(call(&tools, "write_file", json!({"path": path, "content": "x"})).await, Denied, "");
        }
    }
    let write = "import os; os.makedirs('home/selvedge', exist_ok=True); open('home/selvedge/config.toml', 'w').write('x')";
    let outcome = call(&tools, "writes", json!({"text": write})).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(!world.path("document/home/selvedge/config.toml").exists());
    let written =
        call(&tools, "write_file", json!({"path": "home/selvedge/config.toml", "content": "x"})).await;
    fault(written, Denied, "");
}
