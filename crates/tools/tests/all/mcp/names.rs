//! which servers start, and which names their tools have.

use crate::mcp::support::{Place, call, request, run};
use selvedge_tools::mcp::{McpServer, Reached};
use selvedge_tools::{Catalogue, CommandTool, ErrorClass};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

fn command(name: &str) -> CommandTool {
    CommandTool {
        name: name.into(),
        description: String::new(),
        command: vec!["true".into()],
        input_schema: json!({"type": "object"}),
        output_params: None,
        effects: None,
        timeout_s: None,
        env: Vec::new(),
        dir: PathBuf::new(),
    }
}

/// Only servers that may have a tool that is wanted are started; a start leaves its note.
#[tokio::test]
async fn servers_start_when_they_are_needed() {
    for (wanted, any, started) in [
        (&["http_get"][..], false, [0, 0]),
        (&[], false, [0, 0]),
        (&["a__echo"], false, [1, 0]),
        (&["tool_of_nobody"], false, [1, 1]),
        (&["mine"], false, [0, 0]),
        (&[], true, [1, 1]),
    ] {
        let places = [Place::new(), Place::new()];
        let servers = vec![places[0].named("a", "noted"), places[1].named("b", "noted")];
        let mut config = places[0].config(servers, wanted);
        config.wanted.any = any;
        config.commands = vec![command("mine")];
        let catalogue = Catalogue::load(config).await.unwrap();
        let noted = [0, 1].map(|n| places[n].noted("began"));
        assert_eq!(noted, started, "{wanted:?}");
        catalogue.close().await;
    }
}

#[tokio::test]
async fn names_go_by_rank() {
    let place = Place::new();
    let servers = || vec![place.named("a", "plain"), place.named("b", "pages")];
    // A bare name of one server; the full name always works.
    let catalogue = place.catalogue(servers(), &["echo", "tool3", "a__change"]).await;
    assert_eq!(&*catalogue.def("echo").unwrap().name, "echo");
    assert_eq!(&*catalogue.def("echo").unwrap().source, "mcp:a");
    assert_eq!(&*catalogue.def("tool3").unwrap().source, "mcp:b");
    assert_eq!(call(&catalogue, "echo", json!({"text": "x"})).await.unwrap(), json!("x"));
    assert!(
        catalogue.names().any(|name| &**name == "a__echo")
            && !catalogue.names().any(|name| &**name == "echo")
    );
    // A tool of higher rank has its name first.
    let mut config = place.config(servers(), &["echo", "a__echo"]);
    config.commands = vec![command("echo")];
    let catalogue = Catalogue::load(config).await.unwrap();
    assert_eq!(&*catalogue.def("echo").unwrap().source, "command");
    assert_eq!(&*catalogue.def("a__echo").unwrap().source, "mcp:a");
    // Two of one rank.
    let twice = vec![place.named("a", "plain"), place.named("b", "plain")];
    let errors = place.refused(twice.clone(), &["echo"]).await;
    assert_eq!(errors.class(), ErrorClass::Document);
    assert!(errors.to_string().contains("a__echo, b__echo"), "{errors}");
    place.catalogue(twice, &["b__echo"]).await;
}

/// A server that does not start is an error for who names a tool of it, and a warning where any tool may be chosen.
#[tokio::test]
async fn servers_that_fail_stop_only_who_needs_them() {
    let place = Place::new();
    let servers = || vec![place.named("a", "exits"), place.named("b", "plain")];
    let errors = place.refused(servers(), &["a__echo"]).await;
    assert_eq!(errors.class(), ErrorClass::Environment, "{errors}");
    let mut config = place.config(servers(), &["b__echo"]);
    config.wanted.any = true;
    let catalogue = Catalogue::load(config).await.unwrap();
    catalogue.prepare(&["b__echo"]).await.unwrap();
    assert!(catalogue.warnings().iter().any(|warning| &*warning.code == "mcp-server"));
    // Nobody knows whether the server that failed has it.
    let errors = place.refused(servers(), &["tool_of_a"]).await;
    assert!(errors.to_string().contains("`tool_of_a` can't be looked for"), "{errors}");
    let catalogue = Catalogue::load(place.config(servers(), &["echo"])).await.unwrap();
    assert_eq!(catalogue.def("echo").map(|def| Arc::clone(&def.source)).as_deref(), Some("mcp:b"));
}

/// Two servers can come to the same full name: who writes it has to be asked.
#[tokio::test]
async fn full_names_can_be_of_two() {
    let place = Place::new();
    let servers = || vec![place.named("a", "text__one"), place.named("a__text", "one")];
    let errors = place.refused(servers(), &["a__text__one"]).await;
    assert_eq!(errors.class(), ErrorClass::Document);
    assert!(errors.to_string().contains("`text__one` of `a` and `one` of `a__text`"), "{errors}");
    place.catalogue(servers(), &["one"]).await;
}

/// What would pass for right until it counts is said: effects of no tool.
#[tokio::test]
async fn slips_of_the_pen_are_told() {
    let place = Place::new();
    let mut server = place.named("b", "one");
    server.effects.by_tool.insert("onne".into(), selvedge_engine::Effects::Read);
    server.effects.by_tool.insert("one".into(), selvedge_engine::Effects::Read);
    let catalogue = place.catalogue(vec![server], &["b__one"]).await;
    let said: Vec<&str> = catalogue.warnings().iter().map(|warning| &*warning.message).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("names `onne`"), "{said:?}");
}

/// A-22, E-23: tools may have any name; what a provider can't take is sent to it as another one (models_alike.rs), so
/// nothing is said about it.
#[tokio::test]
async fn any_name_will_do() {
    let place = Place::new();
    let long = "l".repeat(90);
    let names = ["a.b", "two words", "größe/x", &*long];
    let wanted: Vec<String> = names.iter().map(|name| format!("o__{name}")).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let catalogue = place.catalogue(vec![place.named("o", "odd_names")], &wanted).await;
    assert!(catalogue.warnings().is_empty(), "{:?}", catalogue.warnings());
    for name in wanted {
        assert_eq!(&*catalogue.def(name).unwrap().name, name);
        assert_eq!(call(&catalogue, name, json!({"text": "x"})).await.unwrap(), json!("x"));
    }
    let bare = place.catalogue(vec![place.named("o", "odd_names")], &["two words"]).await;
    assert_eq!(call(&bare, "two words", json!({"text": "x"})).await.unwrap(), json!("x"));
}

/// what a bare name would pass for is Selvedge's own; the full name is the server's.
#[tokio::test]
async fn no_bare_name_is_one_of_selvedges_own() {
    let place = Place::new();
    let servers = || vec![place.named("a", "internal")];
    let errors = place.refused(servers(), &["selvedge__compile"]).await;
    assert_eq!(errors.class(), ErrorClass::Document);
    let said = format!("{errors} {}", errors.0[0].help);
    assert!(said.contains("kept for Selvedge's own") && said.contains("`a__selvedge__compile`"), "{said}");
    let catalogue = place.catalogue(servers(), &["a__selvedge__compile"]).await;
    assert!(!catalogue.contains("selvedge__compile") && catalogue.warnings().is_empty());
}

/// Tools that are left out are told to who could come to call them, and to who looks at all.
#[tokio::test]
async fn tools_that_are_left_out_are_told_to_whom_they_concern() {
    let place = Place::new();
    for (wanted, any, told) in [(&["s__echo"][..], false, 0), (&["s__echo"], true, 7), (&[], true, 7)] {
        let mut config = place.config(vec![place.server("lies")], wanted);
        config.wanted.any = any;
        let catalogue = Catalogue::load(config).await.unwrap();
        let left_out = catalogue.warnings().iter().filter(|warning| &*warning.code == "tool-left-out");
        assert_eq!(left_out.count(), told, "{wanted:?}");
        // C-04: what a server calls its tools steers no terminal.
        let said: String = catalogue.warnings().iter().map(|warning| &*warning.message).collect();
        assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said:?}");
        assert_eq!(
            said.contains("`st\\u{1b}[31meers\\nmuch`") && said.contains("`turns\\u{202e}\\u{7}`"),
            any
        );
        assert_eq!(catalogue.broken().is_empty(), !any, "{:?}", catalogue.broken());
    }
    let catalogue = Catalogue::load(place.config(vec![place.server("lies")], &["twice"])).await.unwrap();
    assert!(catalogue.warnings().is_empty());
    assert_eq!(catalogue.broken().keys().map(|name| &**name).collect::<Vec<_>>(), ["twice"]);
}

/// Who names a tool of a server that is switched off is told that it is, and where; nobody else, and it is not started.
#[tokio::test]
async fn servers_that_are_switched_off() {
    let place = Place::new();
    let off = || McpServer {
        reached: Reached::Off { place: "selvedge.toml:3".into() },
        ..place.named("a", "noted")
    };
    let servers = || vec![off(), place.named("b", "plain")];
    let errors = place.refused(servers(), &["a__echo"]).await;
    assert_eq!(errors.class(), ErrorClass::Document);
    let said = errors.to_string();
    assert!(said.contains("`a__echo`") && said.contains("`a` is disabled (selvedge.toml:3)"), "{said}");
    place.catalogue(servers(), &["b__echo"]).await;
    place.catalogue(servers(), &["echo"]).await;
    let catalogue = place.catalogue(servers(), &["tool_of_nobody"]).await;
    assert!(catalogue.broken().is_empty() && catalogue.warnings().is_empty());
    // A run that pinned a tool of it before.
    let on = place.catalogue(vec![place.named("a", "plain")], &["a__echo"]).await;
    let pinned = request(&on, "a__echo", json!({}));
    let failure = run(&place.catalogue(vec![off()], &[]).await, pinned).await.unwrap_err();
    assert!(failure.unsent && failure.fault.message.contains("is disabled (selvedge.toml:3)"), "{failure:?}");
    assert_eq!(place.noted("began"), 0);
}
