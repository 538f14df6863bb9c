//! Servers that do what they should not.

use crate::mcp::support::{Place, call, over_http, request, run, until, watched};
use selvedge_engine::{Effects, FaultKind};
use selvedge_http::Secret;
use selvedge_runtime::ports::{CallContext, Tools};
use selvedge_tools::mcp::{Hidden, Reached};
use selvedge_tools::{Catalogue, ErrorClass};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

#[tokio::test]
async fn what_belongs_to_no_protocol_is_skipped() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("chatty")], &["s__echo"]).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"));
}

/// Both generations of the protocol, and a server that ends when it is asked which one it speaks.
#[tokio::test]
async fn generations() {
    for mode in ["modern", "plain", "cannot_bear_questions"] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server(mode)], &["s__echo"]).await;
        assert_eq!(call(&catalogue, "s__echo", json!({"text": mode})).await.unwrap(), json!(mode));
        if mode == "cannot_bear_questions" {
            assert_eq!(place.noted("started"), 2);
        }
    }
}

/// E-22, D-17: hints become effects; what the user says goes over them.
#[tokio::test]
async fn effects() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("plain")], &["s__echo"]).await;
    let effects = |catalogue: &Catalogue, name: &str| catalogue.def(name).unwrap().effects;
    assert_eq!(effects(&catalogue, "s__echo"), Some(Effects::Read));
    assert_eq!(effects(&catalogue, "s__again"), Some(Effects::Idempotent));
    assert_eq!(effects(&catalogue, "s__change"), Some(Effects::Write));
    let mut server = place.server("plain");
    server.effects.all = Some(Effects::Write);
    server.effects.by_tool.insert("change".into(), Effects::Pure);
    let other = place.catalogue(vec![server], &["s__echo"]).await;
    assert_eq!(effects(&other, "s__echo"), Some(Effects::Write));
    assert_eq!(effects(&other, "s__change"), Some(Effects::Pure));
    assert_ne!(catalogue.def("s__echo").unwrap().version, other.def("s__echo").unwrap().version);
}

#[tokio::test]
async fn pages_end() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("pages")], &["s__tool4"]).await;
    let found = catalogue.names().filter(|name| name.starts_with("s__")).count();
    assert_eq!(found, 5);
    let errors = place.refused(vec![place.server("endless_pages")], &["s__tool4"]).await;
    assert!(errors.to_string().contains("no last page"), "{errors}");
}

#[tokio::test]
async fn servers_that_do_not_start() {
    let place = Place::new();
    let mut absent = place.server("plain");
    absent.reached = Reached::Command {
        program: "no-such-npx".into(),
        args: Vec::new(),
        env: Default::default(),
        dir: place.dir.path().to_owned(),
    };
    let mut hanging = place.server("hangs");
    hanging.start_timeout = Duration::from_millis(900);
    let mut exiting = place.server("exits");
    exiting.secrets = vec![Secret::new("key-0123456789")];
    if let Reached::Command { env, .. } = &mut exiting.reached {
        env.insert("LICENCE_KEY".into(), Hidden("key-0123456789".into()));
    }
    let mut unset = place.server("plain");
    unset.unset = vec!["MY_TOKEN".into()];
    for (server, words) in [
        (absent, &["`s`", "no `no-such-npx` on PATH", "install"][..]),
        (hanging, &["`s`", "was not ready within 0.9 s", "thinking", "start_timeout_s"]),
        (exiting, &["`s`", "exit code 3", "starting no licence for [redacted]"]),
        (unset, &["`s`", "MY_TOKEN is not set"]),
        (place.server("from_the_future"), &["`s`", "version \"2030-01-01\""]),
        (over_http("s", "http://127.0.0.1:9/mcp"), &["`s`", "can't be reached"]),
        (over_http("s", "ftp://x"), &["`s`", "no http or https address"]),
    ] {
        let errors = place.refused(vec![server], &["s__echo"]).await;
        let text = errors.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(errors.class(), ErrorClass::Environment, "{text}");
    }
}

/// A-18: what was pinned is what is called, or nothing is.
#[tokio::test]
async fn definitions_that_change() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("changes")], &["s__echo"]).await;
    // The news of the change come after the listing.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
    // C-02: it is none of the tools that ran.
    assert!(failure.fault.kind == FaultKind::DefinitionChanged && failure.unsent, "{failure:?}");
    assert_eq!(place.noted("called"), 0);
    // In another process, which knows the version from the cache only.
    std::fs::write(place.notes(), "as it was").unwrap();
    let first = place.catalogue(vec![place.server("changes_between")], &["s__echo"]).await;
    let pinned = request(&first, "s__echo", json!({"text": "a"}));
    let same = place.catalogue(vec![place.server("changes_between")], &[]).await;
    assert_eq!(run(&same, pinned.clone()).await.unwrap(), json!("a"));
    std::fs::write(place.notes(), "as it is").unwrap();
    let later = place.catalogue(vec![place.server("changes_between")], &[]).await;
    let failure = run(&later, pinned).await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::DefinitionChanged, "{failure:?}");
}

/// A-18: a server need not say that a definition is another one. It is looked at again before the first call of a run, and
/// before calls that may change something and waited for a person's word.
#[tokio::test]
async fn definitions_that_change_without_a_word() {
    for (tool, calls_before, wait_ms) in [("s__echo", 0, 0), ("s__write", 0, 0), ("s__write", 2, 1100)] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server("quietly_changes")], &[tool]).await;
        for _ in 0..calls_before {
            call(&catalogue, tool, json!({})).await.unwrap();
        }
        std::fs::write(place.notes(), "changed\n").unwrap();
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        let failure = call(&catalogue, tool, json!({})).await.unwrap_err();
        assert!(failure.fault.kind == FaultKind::DefinitionChanged && failure.unsent, "{tool}: {failure:?}");
        assert_eq!(place.noted("called"), 0, "{tool}");
    }
}

/// To look again costs a question: one at the start, one before the first call, then one a second at most.
#[tokio::test]
async fn definitions_are_not_looked_at_all_the_time() {
    for tool in ["s__echo", "s__change"] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server("counts_lists")], &[tool]).await;
        let began = Instant::now();
        for _ in 0..50 {
            call(&catalogue, tool, json!({"text": "a"})).await.unwrap();
        }
        let most = 2 + usize::try_from(began.elapsed().as_secs()).unwrap();
        assert!((2..=most).contains(&place.noted("listed")), "{tool}: {}", place.noted("listed"));
    }
}

/// E-28: what is nested as deeply as may be arrives; what is deeper is the fault of its call, and the server goes on.
#[tokio::test]
async fn answers_that_are_nested() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("deep")], &["s__echo"]).await;
    for levels in [3, 126, 127] {
        let output = call(&catalogue, "s__echo", json!({"text": levels.to_string()})).await.unwrap();
        assert!(output["a"].is_array(), "{levels}: {output}");
    }
    for levels in [128, 1000, 60_000] {
        let failure = call(&catalogue, "s__echo", json!({"text": levels.to_string()})).await.unwrap_err();
        assert_eq!(failure.fault.kind, FaultKind::LimitExceeded, "{levels}: {failure:?}");
        assert!(failure.fault.message.contains("json_nesting") && !failure.transient, "{failure:?}");
    }
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "0"})).await.unwrap(), json!({"a": 1}));
    assert_eq!(place.noted("began"), 1);
    // The limit is a setting, upwards too.
    let mut config = place.config(vec![place.server("deep")], &["s__echo"]);
    config.limits.json_nesting = 400;
    let catalogue = Catalogue::load(config).await.unwrap();
    assert!(call(&catalogue, "s__echo", json!({"text": "399"})).await.unwrap()["a"].is_array());
    call(&catalogue, "s__echo", json!({"text": "400"})).await.unwrap_err();
}

/// A schema that is nested too deeply has its tool left out, not its server; one that no message may hold, the server.
#[tokio::test]
async fn schemas_that_are_nested() {
    let place = Place::new();
    let server = |levels: &str| {
        let mut server = place.server("deep_schema");
        if let Reached::Command { env, .. } = &mut server.reached {
            env.insert("LEVELS".into(), Hidden(levels.into()));
        }
        server
    };
    // Each level is two objects.
    place.catalogue(vec![server("64")], &["s__echo"]).await;
    let errors = place.refused(vec![server("64")], &["s__deep"]).await;
    assert!(errors.to_string().contains("more than 128 objects and arrays"), "{errors}");
    let errors = place.refused(vec![server("400")], &["s__echo"]).await;
    assert!(errors.to_string().contains("json_nesting"), "{errors}");
}

#[tokio::test]
async fn wrong_definitions_stop_only_who_names_them() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("lies")], &["s__echo"]).await;
    assert!(!catalogue.contains("s__no_schema"));
    for (name, why) in [
        ("s__no_schema", "no JSON Schema"),
        ("s__list_schema", "not \"object\""),
        ("s__none", "none as MCP has it"),
        ("s__twice", "two tools of that name"),
    ] {
        let errors = place.refused(vec![place.server("lies")], &[name]).await;
        assert!(errors.to_string().contains(why), "{errors}");
        assert_eq!(errors.class(), ErrorClass::Document);
    }
    // D-24, and an output that is not what was promised.
    let def = catalogue.def("s__echo").unwrap();
    assert_eq!(def.output_params.as_ref().unwrap().names().join(" "), "n");
    let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
    assert!(failure.fault.message.contains("outputSchema"), "{failure:?}");
}

#[tokio::test]
async fn errors_are_faults() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("errors")], &["s__echo"]).await;
    for (text, kind, words) in [
        ("protocol", FaultKind::ExecutionFailure, "the disk is full"),
        ("arguments", FaultKind::InputError, "text is too short"),
        ("tool", FaultKind::ExecutionFailure, "no such town"),
    ] {
        let failure = call(&catalogue, "s__echo", json!({"text": text})).await.unwrap_err();
        assert_eq!((failure.fault.kind, failure.transient), (kind, false), "{failure:?}");
        assert!(failure.fault.message.contains(words), "{failure:?}");
    }
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("nonsense")], &["s__echo"]).await;
    let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
    assert!(failure.fault.message.contains("no result"), "{failure:?}");
}

/// What a server gets wrong is read where it says what it means. What can't be read is the fault of its call, at once, and
/// shows how it begins; the server goes on.
#[tokio::test]
async fn messages_that_are_not_quite_right() {
    let place = Place::new();
    let mut server = place.server("garbled");
    server.secrets = vec![Secret::new("key-0123456789")];
    if let Reached::Command { env, .. } = &mut server.reached {
        env.insert("LICENCE_KEY".into(), Hidden("key-0123456789".into()));
    }
    let catalogue = place.catalogue(vec![server], &["s__echo"]).await;
    for (mode, output) in [
        ("half", "a\u{fffd} b"),
        ("latin1", "a\u{fffd}"),
        ("pretty", "whole"),
        ("batch", "whole"),
        ("glued", "whole"),
    ] {
        assert_eq!(
            call(&catalogue, "s__echo", json!({"text": mode})).await.unwrap(),
            json!(output),
            "{mode}"
        );
    }
    for (mode, words) in [
        ("boom", "boom"),
        ("nobody", "what?"),
        ("nan", "it begins with: {\"jsonrpc\""),
        ("cut", "\"text\": \"one"),
    ] {
        let began = Instant::now();
        let failure = call(&catalogue, "s__echo", json!({"text": mode})).await.unwrap_err();
        assert!(failure.fault.message.contains(words) && !failure.transient, "{mode}: {failure:?}");
        assert!(!failure.fault.message.contains("key-0123456789"), "{failure:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{mode}");
    }
}

/// D-17: a server that dies under a call is a transient fault, and is there again for the next; a few times.
#[tokio::test]
async fn servers_that_die_are_started_again() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("dies")], &["s__echo"]).await;
    let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
    assert!(failure.transient && failure.fault.kind == FaultKind::ExecutionFailure, "{failure:?}");
    let said = &failure.fault.message;
    assert!(["`s`", "exit code 3", "out of memory"].iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"));

    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("always_dies")], &["s__echo"]).await;
    let mut last = None;
    for _ in 0..6 {
        last = Some(call(&catalogue, "s__echo", json!({})).await.unwrap_err());
    }
    let last = last.unwrap();
    assert!(!last.transient && last.fault.message.contains("not started again"), "{last:?}");
    assert!(last.unsent, "{last:?}");
    assert_eq!(place.noted("called"), 4);
}

/// E-12, E-13: calls that are never answered end in time, and the server is told.
#[tokio::test]
async fn calls_that_are_never_answered() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("never")], &["s__echo"]).await;
    let mut asked = request(&catalogue, "s__echo", json!({}));
    asked.timeout_s = Some(0.3);
    let failure = run(&catalogue, asked.clone()).await.unwrap_err();
    assert!(failure.fault.kind == FaultKind::Timeout && failure.transient, "{failure:?}");
    assert!(!failure.unsent, "{failure:?}");
    until("the server is told", || place.noted("cancelled") == 1).await;
    asked.timeout_s = None;
    let context = CallContext::of("r");
    drop(tokio::time::timeout(Duration::from_millis(200), catalogue.call(asked, context)).await);
    until("the server is told", || place.noted("cancelled") == 2).await;
    // It still lives: nothing was started again.
    assert_eq!(place.noted("called"), 2);
}

/// E-28: whatever a server writes, only so much of it is kept.
#[tokio::test]
async fn servers_that_write_too_much() {
    for (mode, words) in [
        ("huge", "over the limit of 1048576 bytes"),
        ("endless", "a message of more than"),
        ("floods", "floods its stdout"),
    ] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server(mode)], &["s__echo"]).await;
        let began = Instant::now();
        let failure = call(&catalogue, "s__echo", json!({})).await.unwrap_err();
        assert!(failure.fault.message.contains(words), "{mode}: {failure:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{mode}");
    }
}

#[tokio::test]
async fn progress_is_shown() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("progress")], &["s__echo"]).await;
    let (output, lines) = watched(&catalogue, "s__echo", json!({"text": "done"})).await;
    assert_eq!(output.unwrap(), json!("done"));
    assert_eq!(lines, ["0/3 part 0", "1/3 part 1", "2/3 part 2"]);
    // All of it, in its order, and before the answer.
    let catalogue = place.catalogue(vec![place.server("burst")], &["s__echo"]).await;
    let (output, lines) = watched(&catalogue, "s__echo", json!({"text": "2000"})).await;
    assert_eq!(output.unwrap(), json!("2000"));
    assert_eq!(lines, (0..2000).map(|n: i32| n.to_string()).collect::<Vec<_>>());
}

/// E-12: progress extends the time limit, up to another one; what the document says is the limit.
#[tokio::test]
async fn progress_extends_time_limits() {
    let place = Place::new();
    let mut server = place.server("busy");
    (server.timeout_s, server.max_timeout) = (Some(0.8), Duration::from_secs(4));
    let catalogue = place.catalogue(vec![server], &["s__echo"]).await;
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "8"})).await.unwrap(), json!("8"));
    let began = Instant::now();
    let failure = call(&catalogue, "s__echo", json!({"text": "100"})).await.unwrap_err();
    assert_eq!(failure.fault.kind, FaultKind::Timeout, "{failure:?}");
    assert!(failure.fault.message.contains("max_timeout_s"), "{failure:?}");
    assert!(began.elapsed() > Duration::from_secs(3) && began.elapsed() < Duration::from_secs(12));
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("busy")], &["s__echo"]).await;
    let mut asked = request(&catalogue, "s__echo", json!({"text": "100"}));
    asked.timeout_s = Some(0.8);
    let failure = run(&catalogue, asked).await.unwrap_err();
    assert!(failure.fault.message.contains("longer than its 0.8 s ("), "{failure:?}");
}

/// One block of content by itself is a list, too.
#[tokio::test]
async fn one_block_is_a_list() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("object")], &["s__echo"]).await;
    assert_eq!(call(&catalogue, "s__echo", json!({})).await.unwrap(), json!("alone"));
}

/// A tool that can only be called as a task can't be called by us: who names it is told so.
#[tokio::test]
async fn tools_that_are_tasks() {
    let place = Place::new();
    place.catalogue(vec![place.server("tasks")], &["s__echo"]).await;
    let errors = place.refused(vec![place.server("tasks")], &["s__slow"]).await;
    assert!(errors.to_string().contains("taskSupport: required"), "{errors}");
    assert_eq!(errors.class(), ErrorClass::Document);
}

/// What a tool wants in the middle of a call is told as what it is.
#[tokio::test]
async fn what_tools_want_is_told() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("wants")], &["s__echo"]).await;
    for (wants, words) in [
        ("sampling", "asks for a model's reply"),
        ("roots", "asks which folders"),
        ("person", "asks a person"),
    ] {
        let failure = call(&catalogue, "s__echo", json!({"text": wants})).await.unwrap_err();
        assert!(failure.fault.message.contains(words), "{wants}: {failure:?}");
    }
}

/// A-20: what a server gets of our environment holds no key, and what is configured for it is there.
#[tokio::test]
async fn the_environment_is_clean() {
    let place = Place::new();
    let mut server = place.server("environment");
    if let Reached::Command { env, .. } = &mut server.reached {
        env.insert("MINE".into(), Hidden("1".into()));
    }
    let catalogue = place.catalogue(vec![server], &["s__echo"]).await;
    let output = call(&catalogue, "s__echo", json!({})).await.unwrap();
    let names: Vec<&str> = output.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(names.contains(&"MINE") && names.contains(&"PATH"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO") || name.starts_with("NEXTEST")), "{names:?}");
}

/// E-13: nothing of a server is left, neither when it is closed nor when it is dropped.
#[tokio::test]
async fn nothing_is_left_behind() {
    for close in [true, false] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server("child")], &["s__echo"]).await;
        let output = call(&catalogue, "s__echo", json!({})).await.unwrap();
        let child = format!("/proc/{}/stat", output.as_str().unwrap());
        assert!(Path::new(&child).exists());
        if close {
            catalogue.close().await;
        }
        drop(catalogue);
        // A process that nobody waits for stays as a zombie where nobody adopts it.
        let gone = || std::fs::read_to_string(&child).map_or(true, |stat| stat.contains(") Z "));
        until("the server's child is gone", gone).await;
    }
}

/// E-13: a server that is closed is told first what calls are given up, whether or not somebody still waits for them.
#[tokio::test]
async fn calls_are_cancelled_before_a_server_is_closed() {
    for waits in [true, false] {
        let place = Place::new();
        let catalogue = place.catalogue(vec![place.server("never")], &["s__echo"]).await;
        let context = CallContext::of("r");
        let asked = request(&catalogue, "s__echo", json!({}));
        let mut call = Some(Box::pin(catalogue.call(asked, context)));
        let under_way = tokio::time::timeout(Duration::from_millis(500), call.as_mut().unwrap()).await;
        assert!(under_way.is_err() && place.noted("called") == 1);
        if !waits {
            call = None;
        }
        catalogue.close().await;
        assert_eq!(place.noted("cancelled"), 1, "somebody waits: {waits}");
        drop(call);
    }
}

/// C-06: a key that a server repeats in a definition is not taken over.
#[tokio::test]
async fn definitions_hold_no_keys() {
    let place = Place::new();
    let mut server = place.server("tells_keys");
    server.secrets = vec![Secret::new("key-0123456789")];
    if let Reached::Command { env, .. } = &mut server.reached {
        env.insert("LICENCE_KEY".into(), Hidden("key-0123456789".into()));
    }
    let catalogue = place.catalogue(vec![server], &["s__echo"]).await;
    assert_eq!(&*catalogue.def("s__echo").unwrap().description, "Uses [redacted].");
    assert_eq!(call(&catalogue, "s__echo", json!({"text": "a"})).await.unwrap(), json!("a"));
}

/// A server that is let go may end by itself.
#[tokio::test]
async fn servers_are_told_when_they_are_closed() {
    let place = Place::new();
    let catalogue = place.catalogue(vec![place.server("plain")], &["s__echo"]).await;
    catalogue.close().await;
    assert_eq!(place.noted("closed"), 1);
}
