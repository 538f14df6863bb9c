//! Files that coders write: what becomes a tool of the run, and what is refused in which words (A-08, A-28).

use crate::world::{World, context, source};
use selvedge_engine::{EffectId, Effects, ToolRequest};
use selvedge_http::Secret;
use selvedge_runtime::ports::Tools;
use selvedge_tools::coder::{file_of, safe_name};
use selvedge_tools::{Catalogue, Network, NotDrafted};
use serde_json::json;

const RUN: &str = "def run(i): return {'y': i.x + 1}";

#[tokio::test]
async fn a08_a_coders_file_is_a_tool_of_the_run_by_its_version() {
    let world = World::new();
    let catalogue = world.load().await;
    let name = safe_name("../add one").unwrap();
    let text = source(&name, ", 'effects': 'pure', 'output_params': ['y']", RUN);
    let file = file_of(&format!("Here:\n```python\n{text}```\n")).unwrap();
    assert_eq!(file, text);
    let drafted = catalogue.draft(&name, &file).await.unwrap();
    let definition = drafted.definition.clone();
    assert_eq!((&*definition.name, definition.effects), ("add_one", Some(Effects::Pure)));
    assert_eq!(definition.input_schema["properties"]["x"]["default"], 0);
    assert_eq!(drafted.facts.input_schema, definition.input_schema);
    assert_eq!(drafted.facts.metadata["output_params"], json!(["y"]));
    assert_eq!(catalogue.text(&definition.version).await.unwrap(), text.as_bytes());
    // The name means nothing but by what the run binds.
    assert!(!catalogue.contains("add_one"));
    let request = ToolRequest {
        effect: EffectId("main/n/1/1".into()),
        node: "n".into(),
        tool: definition.clone(),
        args: json!({"x": 4}),
        timeout_s: None,
    };
    assert_eq!(catalogue.call(request.clone(), context()).await.unwrap(), json!({"y": 5}));
    // Another process finds it where versions are kept.
    let later = world.load().await;
    assert_eq!(later.call(request, context()).await.unwrap(), json!({"y": 5}));
    assert_eq!(catalogue.draft(&name, &file).await.unwrap(), drafted);
    assert!(world.scratch_is_empty());
}

async fn refused(catalogue: &Catalogue, text: &str) -> Vec<String> {
    let NotDrafted::Wrong(errors) = catalogue.draft("add", text).await.unwrap_err() else {
        panic!("nothing is said of the file")
    };
    for error in &errors {
        assert!(!error.is_empty() && error.len() < 5000 && !error.contains('\n'), "{error}");
    }
    errors
}

#[tokio::test]
async fn a08_what_is_no_tool_is_refused_in_words_that_a_coder_can_act_on() {
    let world = World::new();
    let catalogue = world.load().await;
    let good = source("add", "", RUN);
    let mut wrong = Vec::new();
    for (text, why) in [
        (String::new(), &["the file is empty"][..]),
        ("def run(:".to_owned(), &["line 1"]),
        ("x = 1\n".to_owned(), &["__TOOL_META__", "add __TOOL_META__"]),
        (good.replace("'description': 'd'", "'description': 'd' + str(1)"), &["line 3", "nothing but texts"]),
        (good.replace("'description': 'd', ", ""), &["has no `description`"]),
        (source("sum", "", RUN), &["`name` in __TOOL_META__ is \"sum\", and has to be \"add\""]),
        (source("read_file", "", RUN), &["has to be \"add\""]),
        (source("selvedge__add", "", RUN), &["selvedge__"]),
        (
            good.replace("'dependencies': []", "'dependencies': ['-r /etc/passwd']"),
            &["line 3", "`dependencies`"],
        ),
        (source("add", "", "def other(): pass"), &["no `def run(input_model)`"]),
        (good.replace("BaseModel)", "object)"), &["InputModel"]),
        (source("add", "", &format!("{RUN}\nimport nothing_of_that_name")), &["nothing_of_that_name"]),
        (source("add", "", &format!("{RUN}\nopen('/etc/x', 'w')")), &["cannot be loaded"]),
        (source("add", ", 'effects': 'pure', 'write_paths': ['x']", RUN), &["one of them is wrong"]),
        (
            source("add", ", 'network': True, 'write_paths': ['out'], 'env': ['SERP_KEY']", RUN),
            &["`network: true` and `write_paths: [\"out\"]` and `env: [\"SERP_KEY\"]`", "leave that out"],
        ),
        (source("add", ", 'read_paths': ['/']", RUN), &["the system itself"]),
        ("#".repeat(9 << 20), &["9437184 bytes"]),
        (format!("{good}\n# \u{0}"), &[""]),
    ] {
        let errors = refused(&catalogue, &text).await;
        let said = errors.join("\n");
        for why in why {
            if !said.contains(why) {
                wrong.push(format!("{why}: {said}"));
            }
        }
        // What a sandbox refuses is told to whoever called.
        let refused = said.contains("Read-only");
        for user in ["--allow", "selvedge.toml", "--tools"].iter().filter(|_| !refused) {
            assert!(!said.contains(*user), "what a user would do: {said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // All that is wrong with what it says of itself, at once.
    let errors = refused(&catalogue, &source("sum", ", 'network': True", RUN)).await;
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(world.scratch_is_empty());
}

#[tokio::test]
async fn a08_what_is_allowed_in_the_run_may_be_declared() {
    let world = World::new();
    let mut config = world.config();
    config.permissions.allow_network = Network::Public;
    config.permissions.allow_write = vec![world.path("document")];
    let catalogue = Catalogue::load(config).await.unwrap();
    let text = source("add", ", 'network': True, 'write_paths': ['out']", RUN);
    assert!(catalogue.draft("add", &text).await.is_ok());
}

/// C-06: a canary stands in no file, and in no word about one.
#[tokio::test]
async fn a28_a_key_of_the_runs_is_in_no_coders_file() {
    let world = World::new();
    let mut config = world.config();
    let canary = "sk-canary-0123456789abcdef";
    config.keys = vec![("the value of $SOME_KEY".to_owned(), Secret::new(canary))];
    let catalogue = Catalogue::load(config).await.unwrap();
    let text = source("add", "", &format!("KEY = '{canary}'\n{RUN}"));
    let said = refused(&catalogue, &text).await.join("\n");
    assert!(said.contains("the value of $SOME_KEY") && !said.contains(canary), "{said}");
    let kept = std::fs::read_dir(world.path("state/cache/tools"));
    for file in kept.into_iter().flatten() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(canary));
    }
}

/// A-20: where isolation is required, no file is even looked at without it.
#[tokio::test]
async fn a20_nothing_is_loaded_where_isolation_is_required_and_missing() {
    let world = World::new();
    let mut config = world.config();
    config.isolation = selvedge_sandbox::isolation::Isolation::none();
    config.require_isolation = true;
    let catalogue = Catalogue::load(config).await.unwrap();
    let mark = world.path("document/loaded");
    let text = source("add", "", &format!("{RUN}\nopen({:?}, 'w')", mark.display().to_string()));
    let errors = refused(&catalogue, &text).await;
    assert!(errors[0].contains("isolation is required") && !mark.exists(), "{errors:?}");
}
