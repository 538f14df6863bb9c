//! Finding, naming, checking and pinning tools (A-08, A-18, A-20, A-22, A-23, A-27, E-32).

use crate::world::{World, call, context, fault, isolation, prepare_all, request, source};
use selvedge_engine::{Effects, FaultKind};
use selvedge_runtime::ports::{Operations, Tools};
use selvedge_sandbox::isolation::{Isolation, Layer};
use selvedge_tools::{Catalogue, CatalogueConfig, CommandTool, ErrorClass, Network, OwnOperations};
use serde_json::json;
use std::sync::Arc;

fn command(name: &str, command: &[&str]) -> CommandTool {
    let text = json!({"description": "d", "command": command, "input_schema": {"type": "object"}});
    CommandTool { name: name.into(), ..serde_json::from_value(text).unwrap() }
}

/// The errors of a folder with this one tool file.
async fn errors_of(text: &str) -> String {
    let world = World::new();
    world.write("tools/t.py", text);
    let tools = Catalogue::load(world.config()).await.unwrap();
    // The file's tool is wrong for whoever names it.
    let Err(errors) = tools.prepare(&["t"]).await else { panic!("no error for {text}") };
    assert_eq!(errors.class(), ErrorClass::Document, "{errors}");
    assert!(tools.def("t").is_none() && tools.warnings().iter().any(|w| &*w.code == "tool-left-out"));
    errors.to_string().replace(world.path("tools").to_str().unwrap(), "tools")
}

#[tokio::test]
async fn metadata_is_read_without_running_the_file() {
    let world = World::new();
    let mark = world.path("marks/mark");
    let text = source(
        "quiet",
        ", 'effects': 'idempotent', 'output_params': ['a'], 'timeout': 7, 'write_paths': ['../marks']",
        "def run(i):\n    return 1",
    );
    world.write("tools/t.py", &format!("open({:?}, 'w').write('ran')\n{text}", mark.to_str().unwrap()));
    world.write("tools/_helper.py", "this is no tool");
    world.write("tools/notes.txt", "neither is this");
    std::fs::create_dir(world.path("marks")).unwrap();
    let mut config = world.config();
    config.permissions.allow_write = vec![world.path("marks")];
    let tools = Catalogue::load(config.clone()).await.unwrap();
    let all: Vec<_> = tools.names().map(|name| name.to_string()).collect();
    assert_eq!(all, ["http_get", "list_files", "python", "quiet", "read_file", "shell", "write_file"]);
    assert!(!mark.exists(), "loading must not run the file");
    assert!(
        tools.def("quiet").is_none() && tools.contains("quiet"),
        "its schema needs the file to be loaded"
    );
    let sketch = tools.sketch("quiet").unwrap();
    assert_eq!((sketch.effects, sketch.timeout_s), (Some(Effects::Idempotent), Some(7.0)));
    assert_eq!(sketch.output_params.as_ref().unwrap().names().join(" "), "a");
    assert_eq!(sketch.input_schema, serde_json::json!({"type": "object"}));
    assert!(tools.sketch("unknown").is_none() && tools.sketch("shell").unwrap().approval);
    tools.prepare(&["quiet", "unknown", "read_file"]).await.unwrap();
    assert!(mark.exists());
    let def = tools.def("quiet").unwrap();
    assert_eq!(def.effects, Some(Effects::Idempotent));
    assert_eq!(def.output_params.as_ref().unwrap().names().join(" "), "a");
    assert_eq!((def.timeout_s, def.approval), (Some(7.0), false));
    assert_eq!(def.input_schema["properties"]["x"]["type"], "integer");
    assert!(def.source.ends_with("tools/t.py"));
    // A warm start knows the schema from the cache: nothing of the file's runs, and no interpreter either.
    std::fs::remove_file(&mark).unwrap();
    config.python = Some("/no/python".into());
    config.shared_cache = world.path("elsewhere");
    let warm = Catalogue::load(config).await.unwrap();
    assert_eq!(warm.def("quiet").unwrap(), def);
    assert!(!mark.exists());
}

#[tokio::test]
async fn output_params_may_be_an_object_with_the_names_as_keys() {
    let world = World::new();
    let meta = ", 'output_params': {'b': {'type': 'string'}, 'a': 'the a'}";
    world.write("tools/t.py", &source("named", meta, "def run(i):\n    return {}"));
    let def = world.load().await.sketch("named").unwrap();
    let outputs = def.output_params.as_ref().unwrap();
    assert_eq!(outputs.names().join(" "), "b a");
    assert_eq!(
        outputs.schema("b"),
        Some(&serde_json::json!({"type": "string"})),
        "D-15 holds it against schemas"
    );
    assert_eq!(outputs.schema("a"), None);
}

#[tokio::test]
async fn undeclared_effects_are_reading_only_where_that_is_enforced() {
    let world = World::new();
    world.tool("t", "", "def run(i):\n    return 1");
    world.tool("net", ", 'network': True", "def run(i):\n    return 1");
    world.tool("out", ", 'write_paths': ['.']", "def run(i):\n    return 1");
    world.tool("own", ", 'effects': 'write'", "def run(i):\n    return 1");
    let mut config = world.config();
    config.permissions.allow_network = Network::Public;
    config.permissions.allow_write = vec![".".into()];
    let effects = async |isolation: Isolation| {
        let tools = Catalogue::load(CatalogueConfig { isolation, ..config.clone() }).await.unwrap();
        prepare_all(&tools).await.unwrap();
        ["t", "net", "out", "own"].map(|name| tools.def(name).unwrap().effects)
    };
    let write = Some(Effects::Write);
    assert_eq!(effects(isolation()).await, [Some(Effects::Read), None, None, write]);
    assert_eq!(effects(Isolation::none()).await, [None, None, None, write]);
    assert_eq!(effects(isolation().without(&[Layer::Seccomp])).await, [None, None, None, write]);
}

#[tokio::test]
async fn a_missing_layer_is_named_and_can_be_refused() {
    let world = World::new();
    world.tool("t", "", "def run(i):\n    return 1");
    let mut config = world.config();
    let whole = Catalogue::load(config.clone()).await.unwrap();
    assert_eq!(whole.isolation_warnings(&["t", "shell"]).await, [], "this machine has all layers");
    config.isolation = isolation().without(&[Layer::Landlock, Layer::Namespaces]);
    let partly = Catalogue::load(config.clone()).await.unwrap();
    let warnings = partly.isolation_warnings(&["t"]).await;
    let codes: Vec<_> = warnings.iter().map(|warning| &*warning.code).collect();
    assert!(codes.len() >= 2 && codes.iter().all(|code| *code == "isolation-layer-missing"), "{warnings:?}");
    assert!(warnings[0].message.contains("`namespaces`"), "{warnings:?}");
    assert_eq!(partly.isolation_warnings(&["read_file", "unknown"]).await, [], "only where a tool needs it");
    partly.prepare(&["t"]).await.unwrap();
    config.require_isolation = true;
    let strict = Catalogue::load(config.clone()).await.unwrap();
    for name in ["t", "python", "shell"] {
        let refused = strict.prepare(&[name]).await.unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Environment);
        assert!(refused.to_string().contains("namespaces: ") && refused.to_string().contains("landlock: "));
    }
    strict.prepare(&["read_file"]).await.unwrap();
    config.isolation = isolation();
    Catalogue::load(config).await.unwrap().prepare(&["t", "shell"]).await.unwrap();
}

/// what has a tool's name and can't be read is left out with a warning, like all that is wrong.
#[tokio::test]
async fn files_that_cannot_be_read_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    world.tool("good", "", "def run(i):\n    return 1");
    std::os::unix::fs::symlink(world.path("nowhere.py"), world.path("tools/dangling.py")).unwrap();
    let odd = world.path("tools").join(std::ffi::OsStr::from_bytes(b"odd\xff.py"));
    std::fs::copy(world.path("tools/good.py"), odd).unwrap();
    std::fs::create_dir(world.path("tools/folder.py")).unwrap();
    let tools = world.load().await;
    let left_out: Vec<_> =
        tools.warnings().iter().filter(|w| &*w.code == "tool-left-out").map(|w| w.message.as_str()).collect();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    assert!(
        left_out.iter().any(|m| m.contains("dangling.py") && m.contains("cannot be read")),
        "{left_out:?}"
    );
    assert!(left_out.iter().any(|m| m.contains("odd") && m.contains("Unicode")), "{left_out:?}");
    assert!(tools.contains("good"));
    let refused = tools.prepare(&["dangling"]).await.unwrap_err();
    assert!(refused.to_string().contains("dangling.py"), "{refused}");
}

/// a command that can't be started says why in words that are true.
#[tokio::test]
async fn commands_that_are_no_programs_say_so() {
    let world = World::new();
    let mut config = world.config();
    world.write("document/data.txt", "x");
    config.commands = vec![
        command("nowhere", &["selvedge-no-such-program"]),
        command("missing", &["./missing"]),
        command("data", &["./data.txt"]),
    ];
    let tools = Catalogue::load(config).await.unwrap();
    for (name, why) in [
        ("nowhere", "there is no such program on PATH"),
        ("missing", "there is no "),
        ("data", "no program that may be run"),
    ] {
        let fault = fault(
            call(&tools, name, json!({})).await,
            selvedge_engine::FaultKind::ExecutionFailure,
            "subprocess_execution_error",
        );
        assert!(fault.message.contains(why) && !fault.message.contains("denied"), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_metadata_names_file_line_and_remedy() {
    let good = source("t", "", "def run(i):\n    return 1");
    let meta = |entries: &str| good.replace("'name': 't', 'description': 'd', 'dependencies': []", entries);
    for (text, expected) in [
        ("x = 1\n".to_owned(), vec!["tools/t.py: ", "no __TOOL_META__", "start with `_`"]),
        ("def run(:\n".to_owned(), vec!["tools/t.py:1:9: ", "not valid Python"]),
        ("x = 1\ny = 2 +* 3\n".to_owned(), vec!["tools/t.py:2:8: ", "not valid Python"]),
        // Files are named after tools, and systems limit their names.
        (
            meta(&format!("'name': '{}', 'description': 'd'", "n".repeat(201))),
            vec!["tools/t.py:3: ", "`name`", "201 characters", "200"],
        ),
        (
            meta("'name': 't', 'description': 'd' + 'e', 'dependencies': []"),
            vec!["tools/t.py:3: ", "must be a literal"],
        ),
        (meta("'name': make(), 'description': 'd', 'dependencies': []"), vec!["must be a literal"]),
        (meta("**other"), vec!["must be strings"]),
        (meta("'name': 't', 'name': 'u', 'description': 'd'"), vec!["'name' twice"]),
        (meta("'description': 'd', 'dependencies': []"), vec!["tools/t.py:3: ", "has no `name`"]),
        (meta("'name': 't', 'dependencies': []"), vec!["has no `description`"]),
        (meta("'name': '', 'description': 'd'"), vec!["`name` must not be empty"]),
        (meta("'name': 3, 'description': 'd'"), vec!["`name` must be a string, not 3"]),
        (
            meta("'name': 't',\n  'description': 'd',\n  'effects': 'none'"),
            vec!["tools/t.py:5: ", "\"pure\""],
        ),
        (meta("'name': 't', 'description': 'd', 'dependencies': 'requests'"), vec!["list of strings"]),
        (
            meta("'name': 't', 'description': 'd', 'dependencies': ['-e .']"),
            vec!["`-e .`", "released package"],
        ),
        (meta("'name': 't', 'description': 'd', 'timeout': 0"), vec!["positive number"]),
        (meta("'name': 't', 'description': 'd', 'timeout': 1e999"), vec!["JSON has no place"]),
        (meta("'name': 't', 'description': 'd', 'network': 'yes'"), vec!["True or False"]),
        (meta("'name': 't', 'description': 'd', 'dependancies': []"), vec!["is `dependencies` meant?"]),
        (meta("'name': 't', 'description': b'd'"), vec!["bytes, which JSON has no place for"]),
        (good.replace("class InputModel", "class Other"), vec!["no `class InputModel(BaseModel)`"]),
        (good.replace("def run(i)", "def walk(i)"), vec!["no `def run(input_model)`"]),
        (good.replace("def run(i)", "def run(i, j)"), vec!["tools/t.py:7: ", "must take one argument"]),
        (format!("{good}\n__TOOL_META__['name'] = 'u'\n"), vec!["changed after it was set"]),
        (format!("{good}\n__TOOL_META__ = {{}}\n"), vec!["set twice (first on line 3)"]),
        (format!("__TOOL_META__ = {}1{}", "(".repeat(1000), ")".repeat(1000)), vec!["tools/t.py"]),
        (format!("__TOOL_META__ = {{'a': {}1{}}}", "-".repeat(5000), ""), vec!["tools/t.py"]),
    ] {
        let errors = errors_of(&text).await;
        for part in expected {
            assert!(errors.contains(part), "expected `{part}` in: {errors}");
        }
        assert!(errors.contains("error[A-08]"), "{errors}");
    }
}

/// names of Selvedge's own tools are nobody else's. Any other name will do, also one that no provider takes: it is
/// sent as another one (E-23).
#[tokio::test]
async fn names_are_free_but_for_selvedges_own() {
    let said = errors_of(&source("selvedge__compile", "", "def run(i):\n    return 1")).await;
    assert!(said.contains("tools/t.py:") && said.contains("kept for Selvedge's own tools"), "{said}");
    let wrong = command("selvedge__x", &["true"]).definition(5_000_000).unwrap_err();
    assert!(wrong.to_string().contains("[tools.command.selvedge__x]"), "{wrong}");
    assert!(command("selvedge_x", &["true"]).definition(5_000_000).is_ok());
    let world = World::new();
    world.write("tools/t.py", &source("größe: 1.5", "", "def run(i):\n    return 1"));
    let tools = Catalogue::load(world.config()).await.unwrap();
    assert!(tools.contains("größe: 1.5") && tools.warnings().is_empty(), "{:?}", tools.warnings());
}

#[tokio::test]
async fn a_broken_file_stops_nobody_who_does_not_use_it() {
    let world = World::new();
    world.write("tools/a.py", "def (");
    world.write("tools/read_file.py", "pass");
    world.tool("good", "", "def run(i):\n    return 1");
    let tools = Catalogue::load(world.config()).await.unwrap();
    assert!(tools.contains("good") && !tools.contains("a"));
    tools.prepare(&["list_files"]).await.unwrap();
    let names: Vec<&str> = tools.broken().keys().map(|name| &**name).collect();
    assert_eq!(names, ["a", "read_file"]);
    assert_eq!(tools.warnings().len(), 2, "{:?}", tools.warnings());
    // It does not give way to a tool of lower rank, which may do something else.
    let errors = tools.prepare(&["a", "read_file"]).await.unwrap_err();
    assert_eq!(errors.0.len(), 2, "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_loaded_is_an_error_of_the_document() {
    let world = World::new();
    world.tool("missing", "", "import no_such_module\ndef run(i):\n    return 1");
    world.tool("loops", "", "import sys\nsys.exit(4)\ndef run(i):\n    return 1");
    let schemaless = "from typing import Callable\nclass InputModel(BaseModel):\n    f: Callable[[int], int]\ndef run(i):\n    return 1";
    world.tool("schemaless", "", schemaless);
    let tools = world.load().await;
    let errors = prepare_all(&tools).await.unwrap_err();
    let text = errors.to_string();
    assert_eq!((errors.0.len(), errors.class()), (3, ErrorClass::Document), "{text}");
    assert!(text.contains("No module named 'no_such_module'") && text.contains("sys.exit(4)"), "{text}");
    assert!(text.contains("has no JSON schema") && text.contains("schemaless.py"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_are_of_objects() {
    let world = World::new();
    let tree = "from typing import List\nclass InputModel(BaseModel):\n    below: List['InputModel'] = []\ndef run(i):\n    return len(i.below)";
    world.tool("tree", "", tree);
    let list = "from pydantic import RootModel\nfrom typing import List\nclass InputModel(RootModel[List[int]]):\n    pass\ndef run(i):\n    return 1";
    world.tool("list", "", list);
    let tools = world.load().await;
    tools.prepare(&["tree"]).await.unwrap();
    let schema = tools.def("tree").unwrap().input_schema.clone();
    assert_eq!(schema["type"], "object", "spelled out at the top: {schema}");
    assert!(
        schema["properties"]["below"].is_object() && schema["$defs"]["InputModel"].is_object(),
        "{schema}"
    );
    assert_eq!(call(&tools, "tree", json!({"below": [{}, {"below": []}]})).await.unwrap(), json!(2));
    let errors = tools.prepare(&["list"]).await.unwrap_err();
    assert!(errors.to_string().contains("no object with fields"), "{errors}");
}

#[tokio::test]
async fn ranks_decide_between_equal_names() {
    let world = World::new();
    world.tool("both", "", "def run(i):\n    return 'tools'");
    world.write("configured/both.py", &source("both", "", "def run(i):\n    return 'configured'"));
    world.write("configured/second.py", &source("second", "", "def run(i):\n    return 'configured'"));
    let mut config = world.config();
    config.config_dirs.push(world.path("configured"));
    // Named twice, and by another path: still one folder.
    config.config_dirs.push(world.path("configured/../configured"));
    config.commands = ["both", "second", "shell"].map(|name| command(name, &["echo", "\"command\""])).into();
    let tools = Catalogue::load(config.clone()).await.unwrap();
    prepare_all(&tools).await.unwrap();
    assert_eq!(call(&tools, "both", json!({})).await.unwrap(), json!("tools"));
    assert_eq!(call(&tools, "second", json!({})).await.unwrap(), json!("configured"));
    assert_eq!(call(&tools, "shell", json!({})).await.unwrap(), json!("command"), "before the built-in");
    world.write("tools/again.py", &source("both", ", 'timeout': 1", "def run(i):\n    return 3"));
    let errors = Catalogue::load(config).await.err().unwrap().to_string();
    assert!(
        errors.contains("two tools named `both`")
            && errors.contains("both.py")
            && errors.contains("again.py")
    );
}

#[tokio::test]
async fn a_missing_folder_is_an_error() {
    let world = World::new();
    let mut config = world.config();
    config.tool_dirs = vec![world.path("nowhere")];
    let errors = Catalogue::load(config).await.err().unwrap();
    assert!(errors.to_string().contains("nowhere") && errors.class() == ErrorClass::Document, "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pinned_version_runs_whatever_happens_to_the_file() {
    let world = World::new();
    let path = world.tool("t", "", "def run(i):\n    return 'first'");
    let mut config = world.config();
    config.commands.push(command("c", &["echo", "first"]));
    let before = Catalogue::load(config.clone()).await.unwrap();
    prepare_all(&before).await.unwrap();
    let (pinned, pinned_command) = (request(&before, "t", json!({})), request(&before, "c", json!({})));
    world.tool("t", "", "def run(i):\n    return 'second'");
    assert_eq!(before.call(pinned.clone(), context()).await.unwrap(), json!("first"), "never a silent swap");
    // A later process: the file is another, then gone.
    config.commands[0].command[1] = "second".into();
    let after = Catalogue::load(config.clone()).await.unwrap();
    prepare_all(&after).await.unwrap();
    assert_ne!(after.def("t").unwrap().version, pinned.tool.version);
    assert_eq!(call(&after, "t", json!({})).await.unwrap(), json!("second"));
    assert_eq!(after.call(pinned.clone(), context()).await.unwrap(), json!("first"));
    assert_eq!(after.call(pinned_command, context()).await.unwrap(), json!("first\n"));
    std::fs::remove_file(path).unwrap();
    let gone = world.load().await;
    assert_eq!(gone.call(pinned.clone(), context()).await.unwrap(), json!("first"));
    let def = gone.def_at_version(&pinned.tool.version).await.unwrap();
    assert_eq!((&def.name, &def.input_schema), (&pinned.tool.name, &pinned.tool.input_schema));
    // A copy that was tampered with is not what was pinned.
    let copy = world.path("state/cache/tools").join(format!("{}.py", pinned.tool.version));
    std::fs::write(copy, source("t", "", "def run(i):\n    return 'other'")).unwrap();
    fault(gone.call(pinned.clone(), context()).await, FaultKind::DefinitionChanged, "");
    let later = world.load().await;
    fault(later.call(pinned, context()).await, FaultKind::UnknownTool, "");
}

#[tokio::test]
async fn declarations_need_permission_before_anything_runs() {
    let world = World::new();
    let mark = world.path("mark");
    let body = format!(
        "import sys\nprint('loaded', file=sys.stderr)\ntry:\n    open({:?}, 'w')\nexcept OSError:\n    pass\ndef run(i):\n    return 1",
        mark.to_str().unwrap()
    );
    world.tool("net", ", 'network': True", &body);
    world.tool("out", ", 'write_paths': ['out/data']", &body);
    let tools = world.load().await;
    let refused = tools.prepare(&["net"]).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Document);
    let text = refused.to_string();
    assert!(text.contains("`net` declares `network: true`") && text.contains("`--allow-network`"), "{text}");
    let text = tools.prepare(&["out"]).await.unwrap_err().to_string();
    assert!(text.contains("`out` declares `write_paths: [\"out/data\"]`"), "{text}");
    let option = format!("`--allow-write {}`", world.path("document/out/data").display());
    assert!(text.contains(&option), "{text}");
    assert!(!mark.exists());
    tools.prepare(&["read_file"]).await.unwrap();
    let mut config = world.config();
    config.permissions.allow_network = Network::Public;
    config.permissions.allow_write = vec!["out".into()];
    let allowed = Catalogue::load(config.clone()).await.unwrap();
    allowed.prepare(&["net", "out"]).await.unwrap();
    assert_eq!(call(&allowed, "net", json!({})).await.unwrap(), json!(1));
    // A resumed run without the permission: the call is denied.
    fault(call(&world.load().await, "net", json!({})).await, FaultKind::Denied, "");
    // A link must not lead an allowed path elsewhere, nor `..` out of it.
    world.tool("up", ", 'write_paths': ['out/../elsewhere']", "def run(i):\n    return 1");
    std::os::unix::fs::symlink(world.path("scratch"), world.path("document/link")).unwrap();
    world.tool("link", ", 'write_paths': ['link/x']", "def run(i):\n    return 1");
    let allowed = Catalogue::load(config).await.unwrap();
    for name in ["up", "link"] {
        assert!(allowed.prepare(&[name]).await.is_err(), "{name}");
        assert!(allowed.refusal(name).is_some());
    }
}

#[tokio::test]
async fn command_tools_take_and_give_json() {
    let world = World::new();
    let mut config = world.config();
    let mut plain = command("cat", &["cat"]);
    (plain.effects, plain.timeout_s) = (Some(Effects::Pure), Some(9.0));
    let mut slow = command("slow", &["sleep", "60"]);
    slow.timeout_s = Some(0.3);
    config.commands = vec![
        plain,
        slow,
        command("text", &["printf", "not json"]),
        command("fails", &["sh", "-c", "echo first >&2; echo reason >&2; exit 3"]),
        command("dies", &["sh", "-c", "kill -9 $$"]),
        command("flood", &["sh", "-c", "cat /dev/zero"]),
        command("missing", &["no-such-program-here"]),
        command("env", &["env"]),
        command("binary", &["printf", "\\377\\376"]),
    ];
    let tools = Catalogue::load(config).await.unwrap();
    prepare_all(&tools).await.unwrap();
    let args = json!({"b": 1, "a": ["é", null]});
    assert_eq!(call(&tools, "cat", args.clone()).await.unwrap().to_string(), args.to_string());
    let def = tools.def("cat").unwrap();
    assert_eq!((def.effects, def.timeout_s, &*def.source), (Some(Effects::Pure), Some(9.0), "command"));
    assert_eq!(call(&tools, "text", json!({})).await.unwrap(), json!("not json"));
    let failed = fault(
        call(&tools, "fails", json!({})).await,
        FaultKind::ExecutionFailure,
        "subprocess_execution_error",
    );
    assert!(
        failed.message.contains("exit code 3") && failed.message.contains("reason"),
        "{}",
        failed.message
    );
    assert_eq!(failed.cause.unwrap()["error"]["exit_code"], 3);
    assert!(call(&tools, "dies", json!({})).await.unwrap_err().transient);
    fault(call(&tools, "slow", json!({})).await, FaultKind::Timeout, "tool_execution_timeout");
    let flood = fault(call(&tools, "flood", json!({})).await, FaultKind::LimitExceeded, "");
    assert!(flood.message.contains("tool_output_bytes"));
    fault(
        call(&tools, "missing", json!({})).await,
        FaultKind::ExecutionFailure,
        "subprocess_execution_error",
    );
    fault(call(&tools, "binary", json!({})).await, FaultKind::ExecutionFailure, "parsing_tool_error");
    let env = call(&tools, "env", json!({})).await.unwrap();
    let env = env.as_str().unwrap();
    assert!(env.contains("SELVEDGE_EFFECT_ID=main/n/1/1") && !env.contains("CARGO_"), "{env}");
    // of the user's search path, no more than the folder of the command itself.
    let path = env.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
    assert!(path.ends_with("/usr/local/bin:/usr/bin:/bin") && path.split(':').count() <= 4, "{path}");
}

#[tokio::test]
async fn wrong_command_tools_are_errors() {
    let world = World::new();
    for (change, expected) in [
        (json!({"command": []}), "must name a program"),
        (json!({"input_schema": {"type": "objekt"}}), "no JSON Schema"),
        (json!({"input_schema": true}), "JSON Schema of an object"),
        (json!({"timeout_s": 0}), "positive number"),
    ] {
        let mut text = json!({"description": "d", "command": ["x"], "input_schema": {}});
        text.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let mut config = world.config();
        config.commands.push(CommandTool { name: "c".into(), ..serde_json::from_value(text).unwrap() });
        let errors = Catalogue::load(config).await.err().unwrap().to_string();
        assert!(errors.contains(expected) && errors.contains("[tools.command.c]"), "{errors}");
    }
    let mut config = world.config();
    config.commands = vec![command("c", &["x"]), command("c", &["y"])];
    assert!(Catalogue::load(config).await.is_err());
}

#[test]
fn safe_names_follow_the_seeds_rule() {
    use selvedge_tools::python::meta::safe_name;
    for (name, safe) in
        [("a b--c", "a_b_c"), ("größe", "gr_e"), ("__x__", "__x__"), ("天气 查询", "_"), ("a.", "a_")]
    {
        assert_eq!(safe_name(name), safe, "{name}");
    }
}

/// Not a rule's number, but a guard: a warm start must stay far from starting interpreters (budget: 15 ms in all).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warm_start_is_quick() {
    let world = World::new();
    for index in 0..20 {
        world.tool(&format!("t{index}"), "", "def run(i):\n    return 1");
    }
    world.load().await.prepare(&["t1", "t2"]).await.unwrap();
    let mut best = std::time::Duration::MAX;
    for _ in 0..5 {
        let start = std::time::Instant::now();
        let tools = world.load().await;
        tools.prepare(&["t1", "t2"]).await.unwrap();
        best = best.min(start.elapsed());
    }
    eprintln!("warm start: {best:?}");
    assert!(best < std::time::Duration::from_millis(100), "{best:?}");
}

/// A server drives many runs on many threads: futures of a catalogue must be able to move between them.
#[tokio::test]
async fn futures_can_move_between_threads() {
    fn moves<T: Send>(future: T) -> T {
        future
    }
    let world = World::new();
    let tools = moves(Catalogue::load(world.config())).await.unwrap();
    moves(tools.prepare(&["read_file"])).await.unwrap();
    assert!(moves(tools.def_at_version("no such version")).await.is_none());
}

/// What operations compute holds up no other run, and a bug in one is that of the run that asked (E-40, E-17).
#[tokio::test]
async fn e40_operations_compute_beside_the_tasks() {
    let world = World::new();
    let here = std::thread::current().id();
    let tools = Catalogue::load(world.config()).await.unwrap();
    let operations = OwnOperations::default()
        .with_computed(
            &"selvedge__where".into(),
            Arc::new(move |_| json!(std::thread::current().id() == here)),
        )
        .with_computed(&"selvedge__breaks".into(), Arc::new(|_| panic!("a bug")));
    let asked = |name: &str| {
        let mut request = request(&tools, "read_file", json!({}));
        request.tool = Arc::new(selvedge_engine::ToolDef { name: name.into(), ..(*request.tool).clone() });
        operations.call(request, context())
    };
    assert_eq!(*asked("selvedge__where").await.unwrap().output, json!(false));
    let broken = tokio::spawn(asked("selvedge__breaks")).await;
    assert!(broken.unwrap_err().is_panic());
    let failure = asked("selvedge__other").await.unwrap_err();
    assert_eq!((failure.fault.kind, failure.unsent), (FaultKind::UnknownTool, true));
}
