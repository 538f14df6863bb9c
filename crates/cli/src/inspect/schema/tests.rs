//! Every script and every configuration file that is read fits its schema (C-11).

use super::FILES;
use selvedge_engine::schema::{STEPS, Schema};
use selvedge_host::config::{Config, tree_of};
use selvedge_models::scripted::Scripted;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn validator(name: &str) -> Schema {
    let (_, schema) = FILES.iter().find(|(known, _)| *known == name).unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    Schema::new(&schema, STEPS).unwrap()
}

#[track_caller]
fn fits(validator: &Schema, value: &Value, what: &str) {
    let wrong = validator.violations(value, 9).unwrap();
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
}

/// A YAML text as an editor reads it; `None` if it is none.
fn yaml(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).ok()
}

fn reads_script(text: &str) -> bool {
    Scripted::parse("s.yaml", text).is_ok()
}

/// All files below a folder of the repository with this ending.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// The scripts of the cases: those in words, and the files of the command line's.
fn scripts_of_cases() -> Vec<Value> {
    let mut found = Vec::new();
    files(&root("spec/cases"), ".yaml", &mut found);
    let mut scripts = Vec::new();
    for file in found {
        let cases = yaml(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for case in cases.as_array().unwrap() {
            scripts.extend(case.get("script").filter(|script| script.is_array()).cloned());
            for (name, text) in case.get("files").and_then(Value::as_object).into_iter().flatten() {
                let script = name.ends_with(".yaml") || name.ends_with(".yml");
                let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                if script && reads_script(&text) {
                    scripts.extend(yaml(&text));
                }
            }
        }
    }
    scripts
}

#[test]
fn scripts_that_are_read_fit() {
    let validator = validator("script");
    let mut found = Vec::new();
    files(&root("examples"), "script.yaml", &mut found);
    for file in &found {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(reads_script(&text), "{}", file.display());
        fits(&validator, &yaml(&text).unwrap(), &file.display().to_string());
    }
    let cases = scripts_of_cases();
    assert!(found.len() >= 3 && cases.len() > 100, "{} {}", found.len(), cases.len());
    for script in &cases {
        fits(&validator, script, &script.to_string());
    }
}

/// Each field with values of every kind: what the reader takes, the schema takes; and it is no schema of everything.
#[test]
fn fields_of_scripts_are_as_wide_as_the_reader() {
    let validator = validator("script");
    let values = [
        "null",
        "true",
        "no",
        "0",
        "1",
        "-1",
        "2.5",
        "503",
        "\"\"",
        "word",
        "\"3\"",
        "timeout",
        "[]",
        "[a]",
        "{}",
        "{name: t}",
        "[{name: t}]",
        "[{name: t, arguments: {a: 1}, id: c}]",
        "[{arguments: {}}]",
        "{status: 503}",
        "{status: 99}",
        "{status: 503, message: m, retry_after_s: 1}",
        "{input_tokens: 1}",
        "{input: 1, output: 2, cost: 0.5, total_tokens: 3}",
    ];
    let (mut taken, mut refused) = (0, 0);
    let mut look = |text: &str| {
        let Some(value) = yaml(text) else { return };
        match (reads_script(text), validator.fits(&value).unwrap()) {
            (true, false) => panic!("read and refused: {text}"),
            (true, true) => taken += 1,
            (false, false) => refused += 1,
            (false, true) => {}
        }
    };
    for value in values {
        for field in ["role", "thread", "node", "contains", "matches", "nth", "has_tool_result", "other"] {
            look(&format!("- when: {{{field}: {value}}}\n  reply: {{text: x}}"));
        }
        for field in ["text", "tool_calls", "json", "empty", "error", "stop", "usage", "delay_ms", "other"] {
            look(&format!("- reply: {{{field}: {value}}}"));
            look(&format!("- reply: {{text: x, {field}: {value}}}"));
        }
        look(&format!("- when: {value}\n  reply: {{text: x}}"));
        look(&format!("- reply: {value}"));
        look(value);
        look(&format!("- {value}"));
    }
    assert!(taken > 100 && refused > 150, "{taken} {refused}");
}

/// A configuration's text as an editor reads it, if the reader finds no error in it.
fn config(text: &str) -> Option<Value> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Config::default().add(file.path()).ok()?;
    tree_of(text)
}

/// Code in fences of the given kind.
fn fenced(text: &str, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_end() == format!("```{kind}") {
            found.push(
                lines.by_ref().take_while(|line| !line.starts_with("```")).collect::<Vec<_>>().join("\n"),
            );
        }
    }
    found
}

#[test]
fn configurations_that_are_read_fit() {
    let validator = validator("config");
    let mut texts = fenced(&std::fs::read_to_string(root("README.md")).unwrap(), "toml");
    let mut found = Vec::new();
    files(&root("spec/cases/cli"), ".yaml", &mut found);
    for file in found {
        let cases = yaml(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let files =
            cases.as_array().unwrap().iter().filter_map(|case| case.get("files")?.as_object().cloned());
        let files: Vec<_> = files.flatten().filter(|(name, _)| name.ends_with(".toml")).collect();
        texts.extend(files.iter().filter_map(|(_, text)| text.as_str().map(str::to_owned)));
    }
    let read: Vec<Value> = texts.iter().filter_map(|text| config(text)).collect();
    assert!(read.len() > 10, "{} of {}", read.len(), texts.len());
    for value in &read {
        fits(&validator, value, &value.to_string());
    }
}

#[test]
fn fields_of_configurations_are_as_wide_as_the_reader() {
    let validator = validator("config");
    let schema: Value = serde_json::from_str(FILES[1].1).unwrap();
    let values = [
        "true",
        "false",
        "0",
        "1",
        "-1",
        "2.5",
        "1e6",
        "5000",
        "\"\"",
        "\"word\"",
        "\"local\"",
        "\"read\"",
        "\"openai\"",
        "\"Ollama\"",
        "\"finish\"",
        "[]",
        "[\"a\"]",
        "[1]",
        "{}",
        "{a = \"read\"}",
        "{a = 1}",
        "{input_per_mtok = 1}",
        "{type = \"object\"}",
    ];
    let (mut taken, mut refused) = (0, 0);
    let mut look = |text: &str, field: &str, value: &str| {
        let line = format!("{text}{field} = {value}\n");
        match (config(&line), tree_of(&line)) {
            (Some(value), _) => {
                fits(&validator, &value, &line);
                taken += 1;
            }
            (None, Some(value)) => refused += usize::from(!validator.fits(&value).unwrap()),
            (None, None) => {}
        }
    };
    let fields =
        |of: &str| schema["$defs"][of]["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for value in values {
        for (head, of, own) in [
            ("[models.m]\nmodel = \"x\"\n", "model", "model"),
            ("[models.m]\nmodel = \"x\"\n[models.m.price]\n", "price", ""),
            ("[tools]\n", "tools", "command"),
            ("[tools.command.c]\ncommand = [\"wc\"]\ninput_schema = {}\n", "command", "command input_schema"),
            ("[tools.command.c]\ninput_schema = {}\n", "command", "input_schema"),
            ("[limits]\n", "limits", ""),
            ("[budget]\n", "budget", ""),
            ("[recovery]\n", "recovery", ""),
            ("[agent]\n", "agent", ""),
            ("[mcp.servers.s]\ncommand = \"x\"\n", "used", "command url"),
            ("[mcp.servers.s]\n", "used", ""),
            ("[mcp.servers.s]\ndisabled = true\n", "used", "disabled"),
        ] {
            for field in fields(of).iter().filter(|field| !own.split(' ').any(|own| own == *field)) {
                look(head, field, value);
            }
        }
        for field in ["models", "roles", "tools", "limits", "budget", "recovery", "agent", "mcp"] {
            look("", field, value);
        }
        look("[roles]\n", "basic", value);
    }
    assert!(taken > 150 && refused > 300, "{taken} {refused}");
}

/// The schema has the keys of the reader, each with a description.
#[test]
fn every_key_is_described() {
    let schema: Value = serde_json::from_str(FILES[1].1).unwrap();
    for (name, fields) in selvedge_host::config::shapes() {
        let properties = match name {
            "" => schema["properties"].as_object().unwrap(),
            name => schema["$defs"][name]["properties"].as_object().unwrap(),
        };
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(known, fields, "{name}");
        for (key, value) in properties {
            assert!(
                value["description"].is_string() || value["$ref"].is_string(),
                "{name}.{key}: {}",
                json!(value)
            );
        }
    }
}

/// What `help` shows is read.
#[test]
fn the_examples_of_help_are_read() {
    let indented = |text: &str| -> String {
        let lines = text.lines().skip_while(|line| !line.starts_with("  "));
        let lines = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
        lines.map(|line| format!("{}\n", line.get(2..).unwrap_or_default())).collect()
    };
    let script = indented(include_str!("../help/scripts.txt"));
    assert!(reads_script(&script), "{script}");
    fits(&validator("script"), &yaml(&script).unwrap(), &script);
    let text = indented(include_str!("../help/config.txt"));
    let value = config(&text).unwrap_or_else(|| panic!("{text}"));
    fits(&validator("config"), &value, &text);
    for table in ["models", "roles", "tools", "mcp", "limits", "budget", "recovery", "agent"] {
        assert!(value.get(table).is_some(), "{table}");
    }
    let placeholders = include_str!("../help/placeholders.txt");
    assert!(placeholders.lines().count() <= 25 && placeholders.lines().all(|line| line.len() <= 80));
}
