//! Pictures of runs at several sizes.

use super::{Made, many, named};
use selvedge_engine::Input;
use serde_json::json;

/// Three nodes on two threads: one has ended, one streams, one waits for it.
fn three() -> Made {
    let nodes =
        [("open", "open", "main"), ("load", "Fetch the load", "fetch"), ("report", "Summarise", "main")];
    let prompt = |id: &str| json!(if id == "report" { "Use {{load.output}}" } else { "Go" });
    let mut made = Made::with(&nodes, prompt);
    made.began(&["open", "load"]);
    made.later(1_250).replies("open");
    made.later(2_000).says("load", "The load was highest in the evening.\nAll in all, ");
    made.says(
        "load",
        "it was a cold week with a high load, and the coldest day was the one with the highest load of all.",
    );
    made
}

#[test]
fn three_nodes_at_80_200_and_20_columns() {
    let made = three();
    insta::assert_snapshot!("three_80", made.shown(80, 24));
    insta::assert_snapshot!("three_200", made.shown(200, 50));
    insta::assert_snapshot!("three_20", made.shown(20, 24));
}

#[test]
fn three_hundred_nodes_at_80_200_and_20_columns() {
    let nodes = many(300, 100);
    let mut made = Made::new(&named(&nodes));
    for node in 0..40 {
        made.later(20);
        let id = format!("n{node}");
        made.began(&[&id]);
    }
    for node in 0..30 {
        made.later(50).replies(&format!("n{node}"));
    }
    made.says("n35", "text of the 35th");
    insta::assert_snapshot!("many_80", made.shown(80, 24));
    insta::assert_snapshot!("many_200", made.shown(200, 50));
    insta::assert_snapshot!("many_20", made.shown(20, 24));
}

#[test]
fn one_thread_of_three_hundred_nodes_shows_where_it_stands() {
    let nodes = many(300, 1);
    let mut made = Made::new(&named(&nodes));
    for node in 0..123 {
        let id = format!("n{node}");
        made.began(&[&id]);
        made.later(100).replies(&id);
    }
    insta::assert_snapshot!("long_80", made.shown(80, 24));
}

#[test]
fn what_a_node_waits_for_is_said() {
    let mut made = three();
    assert!(made.shown(80, 24).contains("waits for load (reads its result)"), "{}", made.shown(80, 24));
    // A call that is not yet let through, one that is tried again, and the seconds until then.
    let mut two = Made::new(&[("a", "a", "a"), ("b", "b", "b")]);
    two.began(&["a"]);
    assert!(two.shown(80, 24).contains("model queued"), "{}", two.shown(80, 24));
    two.fails("a", true, "status 429\u{1b}[2J: slow down");
    two.later(1_001);
    let shown = two.shown(120, 24);
    assert!(shown.contains("model again in 2 s: status 429") && shown.contains("1 retry"), "{shown}");
    two.later(2_000).began(&["a", "b"]);
    assert!(!two.shown(80, 24).contains("again"), "{}", two.shown(80, 24));
    // What was waited for is over.
    made.began(&["load"]);
    made.replies("load");
    assert!(!made.shown(80, 24).contains("waits for"), "{}", made.shown(80, 24));
}

#[test]
fn winding_down_counts_the_seconds_and_the_calls() {
    let mut made = three();
    made.view.stop(made.now);
    made.view.stop(made.now + 4_000);
    assert!(made.shown(80, 24).contains("stopping: 1 call may end within 5 s"), "{}", made.shown(80, 24));
    made.later(1_500);
    let shown = made.shown(80, 24);
    assert!(shown.contains("within 4 s; Ctrl-C stops at once"), "{shown}");
    assert!(!shown.contains("waits for"), "nothing begins any more: {shown}");
    made.later(60_000);
    assert!(made.shown(80, 24).contains("within 1 s"));
}

/// C-05: what waits for its turn is not said to run, and never begins when the run winds down.
#[test]
fn calls_that_wait_for_their_turn_are_told_apart() {
    let nodes = many(60, 60);
    let mut made = Made::new(&named(&nodes));
    let begun: Vec<String> = (30..50).map(|n| format!("n{n}")).collect();
    made.began(&begun.iter().map(String::as_str).collect::<Vec<_>>());
    made.later(1_000);
    let shown = made.shown(100, 24);
    assert!(shown.contains("0/60 nodes  20 running  40 queued"), "{shown}");
    assert!(
        shown.contains("n30 Node 30") && !shown.contains("model queued"),
        "what runs comes first: {shown}"
    );
    assert!(shown.contains("… and 42 more threads: 2 running, 40 queued"), "{shown}");
    made.view.stop(made.now);
    let shown = made.shown(100, 24);
    assert!(shown.contains("stopping: 20 calls may end within 5 s"), "{shown}");
    assert!(!shown.contains("40 queued  "), "{shown}");
    for id in &begun {
        made.replies(id);
    }
    let shown = made.shown(100, 24);
    assert!(shown.contains("stopping\n") && !shown.contains("model queued"), "{shown}");
}

/// C-03: a node counts where `graph` puts it; what has no room is told in the same words.
#[test]
fn what_waits_is_not_said_to_run() {
    let nodes = many(60, 30);
    let mut made = Made::new(&named(&nodes));
    made.began(&["n0", "n1", "n2"]);
    made.fails("n1", true, "slow down");
    let shown = made.shown(120, 24);
    assert!(shown.contains("0/60 nodes  2 running  1 tries again  27 queued"), "{shown}");
    assert!(shown.contains("1 tries again") && shown.contains("n1 Node 1 "), "{shown}");
    made.fails("n2", true, "slow down");
    assert!(made.shown(120, 24).contains("1 running  2 try again"), "{}", made.shown(120, 24));
    // Its time has come, and others have their turn.
    made.later(3_001);
    assert!(made.shown(120, 24).contains("1 running  29 queued"), "{}", made.shown(120, 24));
    // Threads with nothing that has started.
    let chain: Vec<_> = (0..40).map(|n| (format!("n{n}"), format!("t{n}"))).collect();
    let chain: Vec<_> =
        chain.iter().map(|(id, thread)| (id.as_str(), id.as_str(), thread.as_str())).collect();
    let mut made = Made::with(&chain, |id| json!(if id == "n0" { "Go" } else { "Use {{n0.output}}" }));
    made.began(&["n0"]);
    assert!(made.shown(80, 24).contains("more threads: 22 not started"), "{}", made.shown(80, 24));
}

#[test]
fn names_of_any_script_and_length_stay_in_their_columns() {
    let long = "a name ".repeat(200);
    let nodes = [
        ("一", "日本語の名前がとても長いので切られる", "線路"),
        ("b", "عنوان عربي طويل جدا", "خيط"),
        ("c", "👩‍👩‍👧‍👦 👍🏽 e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}", "🧵🧵🧵🧵🧵🧵🧵🧵🧵🧵🧵🧵"),
        ("d", "\u{1b}[31mred\u{7}\u{202e}evil\r\n", "wild\u{1b}]0;title\u{7}"),
        ("e", long.as_str(), "long"),
    ];
    let mut made = Made::new(&nodes);
    made.says("一", &"ほげ\u{1b}[2Jほげ ".repeat(400));
    for columns in (1..60).chain([80, 120, 200, 500]) {
        for rows in [0, 1, 2, 3, 5, 8, 24, 100] {
            made.shown(columns, rows);
        }
    }
    insta::assert_snapshot!("names_80", made.shown(80, 24));
}

#[test]
fn the_focus_stays_a_second_and_goes_with_its_node() {
    let mut made = Made::new(&[("a", "a", "a"), ("b", "b", "b")]);
    made.began(&["a", "b"]);
    made.says("a", "from a");
    made.later(500).says("b", "from b");
    assert!(made.shown(80, 24).contains("from a"));
    made.later(600).says("b", " more");
    assert!(made.shown(80, 24).contains("from b more"));
    made.replies("b");
    assert!(!made.shown(80, 24).contains("from b"));
    // A stream without an end keeps its end only.
    for _ in 0..2_000 {
        made.says("a", "é words that go on and on ");
    }
    made.says("a", "THE END");
    assert!(made.shown(80, 24).contains("THE END"));
}

#[test]
fn a_failed_run_is_seen_to_be_one_and_a_resumed_one_begins_where_it_is() {
    let mut made = Made::new(&[("a", "a", "t"), ("b", "b", "t")]);
    made.began(&["a"]);
    made.later(10).replies("a");
    made.began(&["b"]);
    made.fails("b", false, "no");
    assert!(made.shown(80, 24).contains("✓✗"), "{}", made.shown(80, 24));
    let summary = super::super::frame::summary(&made.view);
    assert!(summary.starts_with("1 node ran, 1 failed, "), "{summary}");
    made.input(Input::Resume(Vec::new()));
    let shown = made.shown(80, 24);
    assert!(shown.contains("✓▸") && shown.contains("1/2 nodes") && shown.contains("1 queued"), "{shown}");
    // Who looks on from here only sees the same.
    let timeline = super::Timeline::so_far(&made.state, made.now);
    let fresh = super::View::new(
        "made",
        &made.state,
        timeline,
        None,
        super::Now { running: made.now, journal: made.now },
    );
    assert_eq!(
        (
            fresh.progress().done,
            fresh.active.len(),
            fresh.active.values().map(|a| a.flying.len()).sum::<usize>()
        ),
        (1, 1, 1)
    );
}

#[test]
fn secrets_are_shown_nowhere() {
    let mut made = Made::new(&[("sk-secret", "sk-secret", "sk-secret")]);
    made.says("sk-secret", "the key is sk-sec");
    made.says("sk-secret", "ret, and more");
    fn redact(text: &str) -> std::borrow::Cow<'_, str> {
        text.replace("sk-secret", "[redacted]").into()
    }
    let lines = super::frame(&made.view, made.now, 80, 24, &redact);
    assert!(!format!("{lines:?}").contains("sk-secret"), "{lines:?}");
}

#[test]
fn the_record_at_the_end_says_what_was_used() {
    let mut made = three();
    made.replies("load");
    assert_eq!(
        super::super::frame::summary(&made.view),
        "2 nodes ran, 1 stopped, 2 model calls, 2400+68 tokens, cost 0.0050"
    );
}

#[test]
fn a_call_that_has_to_come_after_others_says_so() {
    let node = |id: &str, thread: usize| {
        json!({"id": id, "name": id, "body": {"thread": thread, "leaves": [
            {"name": "call", "act": {"call": {"tool": "save", "args": {}}}}]}})
    };
    let tool = json!({"name": "save", "description": "", "input_schema": {}, "effects": "write", "version": "1", "source": "test"});
    let threads = json!([{"name": "a", "first": "task"}, {"name": "b", "first": "task"}]);
    let graph = json!({"threads": threads, "nodes": [node("a", 0), node("b", 1)], "tools": {"save": tool}});
    let mut made = Made::of(graph);
    let shown = made.shown(80, 24);
    assert!(
        shown.contains("save queued") && shown.contains("holds save back until a is done (writes only"),
        "{shown}"
    );
    made.began(&["a"]);
    made.later(10).returns("a");
    let shown = made.shown(80, 24);
    assert!(!shown.contains("back until") && shown.contains("1/2 nodes  1 queued"), "{shown}");
}

/// E-20: an attempt that came to nothing counts in a lane as in the run, if it has figures.
#[test]
fn what_a_failed_attempt_took_is_shown() {
    let mut made = Made::new(&[("a", "a", "t")]);
    made.began(&["a"]);
    let fault = selvedge_engine::Fault::new(selvedge_engine::FaultKind::ProviderError, "s answered: later")
        .because(json!({"status": 429}));
    let failure = selvedge_engine::Failure {
        transient: true,
        retry_after_ms: Some(3_000),
        tokens: selvedge_engine::Tokens { input: 70, output: 8, ..Default::default() },
        ..selvedge_engine::Failure::of(fault)
    };
    let effect = made.effect("a");
    made.later(10).input(Input::Complete(effect, failure.into(), 0, None, None));
    let shown = made.shown(100, 24);
    assert!(shown.contains("model again in 3 s: rate limit: s answered: later"), "{shown}");
    assert_eq!(shown.matches("70+8 tokens").count(), 2, "of the run and of its node: {shown}");
}

/// C-01: what took nothing of this run's time says where it comes from.
#[test]
fn a_lane_says_that_it_was_reused() {
    let mut made = Made::new(&[("a", "a", "t"), ("b", "b", "u")]);
    made.began(&["a", "b"]);
    made.replies("a");
    made.fails("b", false, "no");
    assert!(!made.shown(80, 24).contains("reused"));
    let graph = std::sync::Arc::clone(made.state.graph());
    let mut recorded = selvedge_engine::State::recording(std::sync::Arc::clone(&graph));
    made.records.iter().for_each(|record| recorded.apply_record(record));
    let fork = selvedge_engine::Fork {
        source: "week".into(),
        events: made.state.events(),
        graph: Some("another".into()),
        past: Some(std::sync::Arc::new(recorded.past())),
        compiled: Some(graph),
        ..selvedge_engine::Fork::default()
    };
    made.input(Input::Fork(Box::new(fork)));
    let shown = made.shown(80, 24);
    assert!(shown.contains("reused from week"), "{shown}");
}

/// E-14: a clock that was set back shows neither in times nor in waits.
#[test]
fn times_go_by_a_clock_that_nobody_sets() {
    let mut made = Made::new(&[("a", "a", "t"), ("b", "b", "t")]);
    made.began(&["a"]);
    made.set_back = 3_600_000;
    made.later(2_000).replies("a");
    made.began(&["b"]);
    made.later(3_000).fails("b", true, "status 503");
    made.later(1_000);
    let shown = made.shown(80, 24);
    assert!(shown.contains("6.0 s") && shown.contains("4.0 s  model again in 2 s: status 503"), "{shown}");
}
