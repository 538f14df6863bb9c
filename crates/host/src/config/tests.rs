use super::*;
use selvedge_dialects::steps::{Recovery, Siblings};
use selvedge_models::{Price, Provider};
use std::path::PathBuf;

/// Reads one file's text; the errors and warnings as `line:column code`.
fn read(text: &str) -> (Config, Vec<String>) {
    let source = Source::new("selvedge.toml", text);
    let (mut config, mut diagnostics) = (Config::default(), Diagnostics::new());
    if let Some(root) = toml::parse(&source, &mut diagnostics) {
        read::read(&root, Path::new("/project"), &mut config, &mut diagnostics);
    }
    let place = |d: &selvedge_dialects::Diagnostic| {
        format!("{}:{} {} {}", d.line.unwrap(), d.column.unwrap(), d.severity.as_str(), d.code)
    };
    (config, diagnostics.report(&source).iter().map(place).collect())
}

#[test]
fn every_section_of_the_shape_is_read() {
    let text = r#"
[models.small]
provider = "ollama"
model = "qwen3"
context_tokens = 32_768
price = { input_per_mtok = 0.1, output_per_mtok = 2 }
[roles]
judge = "small"
[tools]
dirs = ["tools", "/abs"]
allow_write = ["out"]
allow_network = true
[tools.command.count]
description = "Counts words"
command = ["wc", "-w"]
input_schema = { type = "object", properties = { text = { type = "string" } } }
effects = "pure"
timeout_s = 2.5
[limits]
nodes = 10
tool_timeout_s = 0.5
run_timeout_s = 60
[budget]
calls = 5
tokens = 1e6
"#;
    let (config, findings) = read(text);
    assert_eq!(findings, [""; 0]);
    let model = &config.models["small"];
    assert_eq!((model.provider, model.context_tokens), (Provider::Ollama, Some(32_768)));
    assert_eq!(
        model.price,
        Some(Price { input_per_mtok: 0.1, output_per_mtok: 2.0, cached_input_per_mtok: None })
    );
    assert_eq!(config.roles["judge"], "small");
    assert_eq!(config.tool_dirs, [PathBuf::from("/project/tools"), "/abs".into()]);
    assert_eq!(config.allow_write, [PathBuf::from("/project/out")]);
    assert!(config.allow_network.is_on());
    let tool = &config.commands["count"];
    assert_eq!((tool.command.len(), tool.timeout_s), (2, Some(2.5)));
    assert_eq!(tool.dir, Path::new("/project"));
    assert_eq!(config.limits.document().nodes, 10);
    assert_eq!(config.limits.tools().tool_timeout_s, 0.5);
    assert_eq!(config.limits.driver(None, None).run_timeout_s, Some(60));
    assert_eq!(config.limits.driver(Some(3), Some(9)).run_timeout_s, Some(9));
    assert_eq!((config.budget.calls, config.budget.tokens), (Some(5), Some(1_000_000)));
}

#[test]
fn unknown_keys_are_findings_with_their_place() {
    let (_, findings) = read("[limits]\nnodez = 5\nwhatever = 1\n[toolz]\n");
    assert_eq!(findings, ["2:1 error unknown-field", "3:1 warning unknown-field", "4:2 error unknown-field"]);
}

/// E-28: what is said of a wrong limit is what it can be, whatever is wrong with it.
#[test]
fn a_wrong_limit_is_told_what_it_can_be() {
    let told = |text: &str| {
        let source = Source::new("selvedge.toml", text);
        let (mut config, mut diagnostics) = (Config::default(), Diagnostics::new());
        let root = toml::parse(&source, &mut diagnostics).unwrap();
        read::read(&root, Path::new("/project"), &mut config, &mut diagnostics);
        let findings = diagnostics.report(&source);
        findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    for (key, range) in [
        ("model_request_bytes", "a whole number from 0 on (0 is no limit)"),
        ("nodes", "a whole number from 1 on"),
        ("run_timeout_s", "a whole number from 1 on"),
        ("model_timeout_s", "a number of seconds above 0"),
        ("retry_span_s", "a number of seconds from 0 on (0 waits for nothing)"),
    ] {
        let seconds = range.contains("seconds");
        for (value, found, wrong) in [
            ("-1", "-1", true),
            ("-99999999999999999999", "-100000000000000000000", true),
            ("1.5", "1.5", !seconds),
            ("0", "0", !range.contains("from 0")),
            ("\"x\"", "a string", true),
            ("99999999999999999999", "", false),
        ] {
            let told = told(&format!("[limits]\n{key} = {value}\n"));
            let expected = format!("`{key}` must be {range}, not {found}");
            assert_eq!(told, if wrong { vec![expected] } else { vec![] }, "{value}");
        }
    }
    let (config, _) =
        read("[limits]\nmodel_attempts = 5000000000\nmodel_request_bytes = 99999999999999999999\n");
    let limits = config.limits.machine();
    assert_eq!((limits.model_attempts, limits.model_request_bytes), (u32::MAX, u64::MAX));
}

#[test]
fn wrong_types_and_broken_files_are_errors() {
    let (_, findings) = read("[models.a]\nmodel = 3\n[limits]\nnodes = -1\n[roles]\njudge = 1\n");
    assert_eq!(findings, ["2:9 error wrong-type", "4:9 error bad-limit", "6:9 error wrong-type"]);
    let (_, findings) = read("[models\n");
    assert_eq!(findings.len(), 1);
    assert!(findings[0].contains("bad-toml"), "{findings:?}");
}

/// C-14: each provider by its name and its other name; an unknown one is an error with its place.
#[test]
fn providers_have_names() {
    for (name, provider) in [
        ("openai", Provider::OpenAi),
        ("openai-compatible", Provider::OpenAi),
        ("openai-responses", Provider::OpenAiResponses),
        ("anthropic", Provider::Anthropic),
        ("gemini", Provider::Gemini),
        ("google", Provider::Gemini),
        ("ollama", Provider::Ollama),
    ] {
        let (config, findings) = read(&format!("[models.m]\nprovider = \"{name}\"\nmodel = \"x\"\n"));
        assert_eq!(findings, [""; 0]);
        assert_eq!(config.models["m"].provider, provider);
    }
    let (_, findings) = read("[models.m]\nprovider = \"antropic\"\nmodel = \"x\"\n");
    assert_eq!(findings, ["2:12 error unknown-value"]);
    let priced = "[models.m]\nmodel = \"x\"\nprice = { input_per_mtok = 3, cached_input_per_mtok = 0.3 }\n";
    let price = read(priced).0.models["m"].price.unwrap();
    assert_eq!((price.input_per_mtok, price.cached_input_per_mtok), (3.0, Some(0.3)));
}

#[test]
fn a_later_file_goes_over_an_earlier_one_key_by_key() {
    let source = |text| Source::new("f.toml", text);
    let (mut config, mut diagnostics) = (Config::default(), Diagnostics::new());
    for text in
        ["[roles]\na = \"1\"\nb = \"1\"\n[budget]\ncalls = 1\n", "[roles]\nb = \"2\"\n[budget]\ncost = 3.0\n"]
    {
        let source = source(text);
        let root = toml::parse(&source, &mut diagnostics).unwrap();
        read::read(&root, Path::new("/"), &mut config, &mut diagnostics);
    }
    assert_eq!((config.roles["a"].as_str(), config.roles["b"].as_str()), ("1", "2"));
    assert_eq!((config.budget.calls, config.budget.cost), (Some(1), Some(3.0)));
}

/// C-14, D-19, D-23: every key is read; what is wrong is an error at its place.
#[test]
fn recovery_is_read_strictly() {
    let (config, findings) = read(
        "[recovery]\nmodel = false\nsiblings = \"hold\"\nretries = 0\nrepairs = 2\nreplans = 3\n\
         consecutive_failures = 4\nreflections = 6\n",
    );
    assert_eq!(findings, [""; 0]);
    let expected = Recovery {
        model: Some(false),
        siblings: Some(Siblings::Hold),
        retries: Some(0),
        repairs: Some(2),
        replans: Some(3),
        consecutive_failures: Some(4),
        reflections: Some(6),
    };
    assert_eq!(config.recovery, expected);
    assert_eq!(read("").0.recovery, Recovery::default());
    let (_, findings) = read(
        "[recovery]\nmodel = 1\nsiblings = \"holds\"\nretries = -1\nreplans = 1.5\nconsecutive_failures = 0\n\
         reflexions = 1\nother = 1\n",
    );
    let expected = [
        "2:9 error wrong-type",
        "3:12 error unknown-value",
        "4:11 error bad-limit",
        "5:11 error bad-limit",
        "6:24 error bad-limit",
        "7:1 error unknown-field",
        "8:1 warning unknown-field",
    ];
    assert_eq!(findings, expected);
}

/// A-07, A-11 … A-13, C-20: how agents work; and a program that writes tools, the key that it is given and where that goes are a person's to trust.
#[test]
fn settings_of_agents_are_read_and_codex_is_to_be_trusted() {
    let text = "[agent]\ncoder = \"codex\"\ncontext_tokens = 1e5\ntool_output_tokens = 100\nencoding = \"o200k_base\"\n\
                codex = \"bin/codex\"\ncodex_api_key_env = \"SOME_KEY\"\ncodex_base_url = \"https://a:secret@b.c/v1\"\n";
    let (config, findings) = read(text);
    assert_eq!(findings, [""; 0]);
    let AgentConfig { settings, codex, codex_api_key_env, .. } = &config.agent;
    assert_eq!(
        (settings.coder.name(), settings.context_tokens, settings.tool_output_tokens),
        ("codex", 100_000, 100)
    );
    assert_eq!((&*settings.encoding, codex_api_key_env.as_deref()), ("o200k_base", Some("SOME_KEY")));
    assert_eq!(codex.as_deref(), Some(Path::new("/project/bin/codex")));
    let parts = |text: &str| {
        let source = Source::new("selvedge.toml", text);
        let root = toml::parse(&source, &mut Diagnostics::new()).unwrap();
        parts::of(&Environment::default(), &root, Path::new("/project"), &source)
    };
    let [part] = &parts(text)[..] else { panic!("one part") };
    assert_eq!((&*part.name, part.line), ("agent.codex", 6));
    assert!(
        part.what.contains("bin/codex") && part.what.contains("$SOME_KEY") && part.what.contains("b.c/v1"),
        "{}",
        part.what
    );
    assert!(!part.what.contains("secret"), "{}", part.what);
    assert!(
        parts("[agent]\ncoder = \"codex\"\nencoding = \"o200k_base\"\n").is_empty(),
        "what the machine has is the user's"
    );
    assert_eq!(parts("[agent]\ncodex_base_url = \"http://x/v1\"\n").len(), 1);
    for (text, found) in [
        ("[agent]\ncodex_api_key = \"sk-1234567890abcdef\"\n", "2:1 error key-in-config"),
        ("[agent]\nencoding = \"gpt2\"\n", "2:12 error"),
        ("[agent]\nprompts = \"nowhere\"\n", "2:11 error bad-prompts"),
    ] {
        let (_, findings) = read(text);
        assert!(findings.iter().any(|said| said.starts_with(found)), "{text}: {findings:?}");
    }
}

/// Prompts of a user's own stand in place of the built-in ones; a name that is none, and a placeholder that nothing fills, are errors.
#[test]
fn prompts_of_agents_may_be_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("[agent]\nprompts = {:?}\n", dir.path().display().to_string());
    std::fs::write(dir.path().join("judge.md"), "Judge: {{query}} {{response}}").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "{{other}}").unwrap();
    let (config, findings) = read(&text);
    assert_eq!(findings, [""; 0]);
    assert_eq!(&*config.agent.settings.prompts["judge"], "Judge: {{query}} {{response}}");
    for (name, content) in [("judges.md", "x"), ("manager.md", "{{nothing}}")] {
        std::fs::write(dir.path().join(name), content).unwrap();
        assert_eq!(read(&text).1, ["2:11 error bad-prompts"], "{name}");
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
}
