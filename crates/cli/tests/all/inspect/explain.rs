//! `explain` (C-15, P-20): when nodes ran, whom they waited for, whose messages they saw.

use super::world::{completed, driven, end, failed, killed, place, waiting};
use crate::support::{Place, calls, finish, says};
use serde_json::{Value, json};

fn nodes(place: &Place, run: &str) -> Vec<Value> {
    let explained = place.run(&["explain", run, "--json"]).exits(0).json();
    assert_eq!(explained.as_object().unwrap().len(), 1);
    explained["nodes"].as_array().unwrap().clone()
}

/// The time of the last event of a kind at a node.
fn last(place: &Place, run: &str, kind: &str, node: &str) -> Value {
    let events = place.run(&["show", run, "--events", "--json"]).exits(0).json();
    let events = events["events"].as_array().unwrap().iter().rev();
    let mut found = events.filter(|event| event["kind"] == kind && event["node"] == node);
    found.next().map_or(Value::Null, |event| event["at"].clone())
}

#[test]
fn the_shape_is_that_of_the_contract() {
    let place = place();
    completed(&place, "one");
    let nodes = nodes(&place, "one");
    let ids: Vec<&Value> = nodes.iter().map(|node| &node["node"]).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    for node in &nodes {
        let keys: Vec<&str> = node.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys[..6], ["node", "started", "ended", "waited_for", "ran_ahead", "messages_from"]);
        assert_eq!(keys[6..], ["total_ms", "worked_ms", "queued_ms", "waited_ms", "waited"]);
        let id = node["node"].as_str().unwrap();
        assert_eq!(
            node["started"],
            last(&place, "one", "node_started", id),
            "times are those of the journal"
        );
        assert_eq!(node["ended"], last(&place, "one", "node_finished", id));
        assert_eq!(node["ran_ahead"], false);
    }
    assert_eq!(nodes[0]["waited_for"], json!([]));
    let waits = json!([{"node": "a", "why": "continues thread main; reads sum"}]);
    assert_eq!(nodes[1]["waited_for"], waits);
    assert_eq!(nodes[2]["waited_for"], json!([{"node": "b", "why": "continues thread main"}]));
    let from: Vec<&Value> = nodes.iter().map(|node| &node["messages_from"]).collect();
    assert_eq!(from, [&json!([]), &json!(["a"]), &json!(["a", "b"])]);
}

/// P-06, P-18: messages keep who said them, wherever they are taken; who asks no model shows nobody's.
#[test]
fn messages_are_traced_to_who_said_them() {
    let place = Place::new();
    let on = |thread: &str, mut node: Value, more: Value| {
        node["thread_id"] = json!(thread);
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    place.plan(
        "plan.json",
        json!([
            on("sum", says("open", ""), json!({})),
            on("x", says("x", "X"), json!({"data_out": true, "data_out_thread": "sum"})),
            on(
                "y",
                says("y", "Y"),
                json!({"data_out": true, "data_out_thread": "sum", "data_out_description": "Y: "})
            ),
            on("sum", says("meet", "M"), json!({})),
            on("late", says("late", "L"), json!({"data_in_thread": "sum", "data_in_slice": [1, 3]})),
            on("later", says("later", "L"), json!({"data_in_thread": "late", "data_in_slice": [1, null]})),
            on("alone", says("alone", "A"), json!({"data_in_slice": [0, 1]})),
        ]),
    );
    place.write("s.yaml", "- reply: {text: ok, delay_ms: 30}\n");
    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    let nodes = nodes(&place, "r");
    let of = |at: usize, field: &str| nodes[at][field].clone();
    assert_eq!(of(0, "messages_from"), json!([]));
    assert_eq!(of(3, "messages_from"), json!(["x", "y"]));
    assert_eq!(of(4, "messages_from"), json!(["x", "y"]));
    assert_eq!(of(5, "messages_from"), json!(["y", "late"]));
    assert_eq!(of(6, "messages_from"), json!([]), "the task is nobody's");
    let waits: Vec<String> = of(3, "waited_for")
        .as_array()
        .unwrap()
        .iter()
        .map(|waited| format!("{}: {}", waited["node"].as_str().unwrap(), waited["why"].as_str().unwrap()))
        .collect();
    let why = "continues thread sum";
    assert_eq!(waits, [format!("open: {why}"), format!("x: {why}"), format!("y: {why}")]);
    assert_eq!(of(4, "waited_for")[0]["why"], "takes [1, 3] of thread sum");
    let ahead: Vec<bool> = nodes.iter().map(|node| node["ran_ahead"].as_bool().unwrap()).collect();
    assert_eq!(ahead, [false, false, true, false, true, false, true], "{nodes:#?}");

    place.run(&["run", "plan.json", "--script", "s.yaml", "--run-id", "seq", "--sequential", "-q"]).exits(0);
    let nodes = self::nodes(&place, "seq");
    assert!(nodes.iter().all(|node| node["ran_ahead"] == false));
    let why = nodes[6]["waited_for"].clone();
    assert_eq!(why, json!([{"node": "later", "why": "sequential execution"}]));
}

#[test]
fn a_failed_run_and_its_resume() {
    let place = place();
    failed(&place, "two");
    let before = nodes(&place, "two");
    assert!(before[1]["ended"].is_string(), "{before:?}");
    let page = place.run(&["explain", "two"]).exits(0).stdout;
    assert!(
        page.contains("1 node ran, 1 failed") && page.contains("  failed ") && page.contains(" ms "),
        "{page}"
    );
    place.write("ok", "");
    place.run(&["resume", "two", "-q"]).exits(0);
    let after = nodes(&place, "two");
    assert_eq!(after[0], before[0], "what had retired ran once");
    assert_eq!(after[1]["started"], last(&place, "two", "node_started", "b"), "the last visit counts");
    assert!(after[1]["started"].as_str() > before[1]["ended"].as_str(), "{after:?}");
}

#[test]
fn nodes_that_wait_or_never_ran() {
    let place = place();
    waiting(&place, "w");
    let waiting = nodes(&place, "w");
    assert!(waiting[0]["started"].is_string() && waiting[0]["ended"].is_null(), "{waiting:?}");
    assert_eq!(waiting[1]["ran_ahead"], true);
    let page = place.run(&["explain", "w"]).exits(0).stdout;
    assert!(
        page.contains("waiting, 1 node ran, 1 asks a person") && page.contains("asks a person"),
        "{page}"
    );
    assert!(page.contains("» 1 started before an earlier node"), "{page}");

    killed(&place, "k");
    let killed = nodes(&place, "k");
    assert!(killed[0]["ended"].is_string() && killed[1]["ended"].is_null(), "{killed:?}");
    let page = place.run(&["explain", "k"]).exits(0).stdout;
    assert!(page.contains("running (not driven)") && page.contains('▓'), "{page}");

    place.plan("fails.json", json!([calls("a", "may", json!({})), says("b", "B")]));
    place.write("s.yaml", "- reply: {text: ok}\n");
    place.run(&["run", "fails.json", "--script", "s.yaml", "--run-id", "f", "-q"]).exits(1);
    let failed = nodes(&place, "f");
    let never = json!({"node": "b", "started": null, "ended": null, "ran_ahead": false, "messages_from": [],
                       "waited_for": [{"node": "a", "why": "continues thread main"}]});
    assert_eq!(failed[1], never);
    assert!(place.run(&["explain", "f"]).exits(0).stdout.contains("1 not started"));
}

#[test]
fn one_node_has_a_page_of_its_own() {
    let place = place();
    completed(&place, "one");
    let page = place.run(&["explain", "one", "--node", "b"]).exits(0).stdout;
    for part in ["node b", "continues thread main; reads sum", "SAW MESSAGES OF\na", "took"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let one = place.run(&["explain", "one", "--node", "b", "--json"]).exits(0).json();
    // Alone it has each of its model calls, too.
    let mut alone = one["nodes"][0].clone();
    let saw = alone.as_object_mut().unwrap().remove("saw").unwrap();
    assert_eq!(alone, nodes(&place, "one")[1]);
    let saw: Vec<_> = saw.as_array().unwrap().iter().map(|call| (&call["messages"], &call["from"])).collect();
    assert_eq!(saw, [(&json!(4), &json!(["a"])), (&json!(6), &json!(["a"]))]);
    let wrong = place.run(&["explain", "one", "--node", "z", "--json"]).exits(2);
    assert_eq!(wrong.stdout, "");
    assert!(wrong.error()["help"].as_str().unwrap().contains("a, b, c"), "{wrong:?}");
    assert_eq!(place.run(&["explain", "nobody", "--json"]).exits(2).error()["code"], "unknown-run");
    place.plan("empty.json", json!([]));
    place.run(&["run", "empty.json", "--run-id", "e", "-q"]).exits(0);
    assert_eq!(place.run(&["explain", "e", "--json"]).exits(0).json(), json!({"nodes": []}));
    place.run(&["explain", "e"]).exits(0);
}

/// 300 nodes are 300 lines, none wider than the page.
#[test]
fn many_nodes_are_a_line_each() {
    let place = Place::new();
    let node = |at: usize| {
        let mut node = says(&format!("node-with-a-long-name-{at}"), "");
        node["thread_id"] = json!(format!("t{}", at % 100));
        node["data_out"] = json!(true);
        node
    };
    place.plan("many.json", (0..300).map(node).collect());
    place.run(&["run", "many.json", "--run-id", "many", "-q"]).exits(0);
    let page = place.run(&["explain", "many"]).exits(0).stdout;
    assert_eq!(page.lines().filter(|line| line.starts_with("node-with")).count(), 300);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert!(!page.contains('\u{1b}'));
    let explained = nodes(&place, "many");
    assert!(explained.iter().all(|node| node["waited_for"].as_array().unwrap().len() <= 1), "{explained:?}");
}

#[test]
fn it_looks_at_a_run_that_is_driven() {
    let place = place();
    let child = super::world::driven(&place, "live");
    let live = nodes(&place, "live");
    assert!(live[1]["started"].is_string() && live[1]["ended"].is_null(), "{live:?}");
    assert_eq!(live[1]["messages_from"], json!(["a"]));
    end(child);
}

/// P-20: calls keep their turn, also of a node that started long before.
#[test]
fn calls_that_wait_for_their_turn_say_so() {
    let place = Place::new();
    let tool = "description = \"\"\ninput_schema = { type = \"object\" }\noutput_params = []\n";
    place.write(
        "selvedge.toml",
        &format!(
            "[tools.command.put]\ncommand = [\"echo\", \"1\"]\neffects = \"write\"\n{tool}\
             [tools.command.get]\ncommand = [\"echo\", \"1\"]\neffects = \"read\"\n{tool}"
        ),
    );
    let on = |thread: &str, mut node: Value| {
        node["thread_id"] = json!(thread);
        node
    };
    let nodes = json!([
        on("a", says("think", "T")),
        on("b", calls("put", "put", json!({}))),
        on("c", calls("get", "get", json!({}))),
    ]);
    place.plan("turns.json", nodes);
    place.write("s.yaml", "- reply: {text: ok, delay_ms: 50}\n");
    place.run(&["run", "turns.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    let nodes = self::nodes(&place, "r");
    let waits = json!([{"node": "think", "why": "writes only after all earlier nodes"}]);
    assert_eq!((&nodes[1]["waited_for"], &nodes[1]["ran_ahead"]), (&waits, &json!(true)));
    let waits = json!([{"node": "put", "why": "looks only after earlier writes"}]);
    assert_eq!(nodes[2]["waited_for"], waits);
    let page = place.run(&["explain", "r", "--node", "put"]).exits(0).stdout;
    assert!(page.contains(" after  writes only after all earlier nodes"), "{page}");
}

/// C-15: what a node waited is told apart from what it worked, by a clock that nobody sets.
#[test]
fn waiting_is_not_work() {
    let place = Place::new();
    let tool =
        "effects = \"pure\"\ndescription = \"\"\ninput_schema = { type = \"object\" }\noutput_params = []\n";
    let nap = format!("[tools.command.nap]\ncommand = [\"sh\", \"-c\", \"sleep 0.4; echo 1\"]\n{tool}");
    place.write("selvedge.toml", &format!("{nap}[limits]\nconcurrency = 1\n"));
    let on = |thread: &str, mut node: Value| {
        node["thread_id"] = json!(thread);
        node
    };
    let nap = |id: &str| on(id, calls(id, "nap", json!({})));
    place.plan("naps.json", json!([nap("a"), nap("b"), on("c", says("c", "{{b.output}}"))]));
    // A rate limit is waited for, and is no work either.
    place.write(
        "s.yaml",
        "- when: {nth: 1}\n  reply: {error: {status: 429, message: slow down, retry_after_s: 1}}\n- reply: {text: ok}\n",
    );
    place.run(&["run", "naps.json", "--script", "s.yaml", "--run-id", "r", "-q"]).exits(0);
    let explained = nodes(&place, "r");
    let of = |at: usize, field: &str| {
        explained[at][field].as_i64().unwrap_or_else(|| panic!("{field}: {explained:#?}"))
    };
    for at in 0..3 {
        assert_eq!(of(at, "total_ms"), of(at, "worked_ms") + of(at, "queued_ms") + of(at, "waited_ms"));
    }
    let (first, second) = if of(0, "queued_ms") < of(1, "queued_ms") { (0, 1) } else { (1, 0) };
    assert!(of(first, "worked_ms") >= 400 && of(second, "worked_ms") >= 400, "{explained:#?}");
    assert!(of(first, "queued_ms") < 200 && of(second, "queued_ms") >= 350, "{explained:#?}");
    assert!(of(second, "worked_ms") < of(second, "total_ms") - 300, "{explained:#?}");
    assert!(explained[2]["waited"]["retry_ms"].as_i64() >= Some(1_000), "{explained:#?}");
    assert!(of(2, "worked_ms") < 500, "{explained:#?}");

    let page = place.run(&["explain", "r"]).exits(0).stdout;
    for part in ["QUEUED", "WAITED", "░", "·", "█ works"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let slowest = place.run(&["explain", "r", "--slowest", "2", "--json"]).exits(0).json();
    let ids: Vec<&Value> = slowest["nodes"].as_array().unwrap().iter().map(|node| &node["node"]).collect();
    assert!(ids.len() == 2 && !ids.contains(&&json!("c")), "what waited is not slow: {slowest}");

    let critical = place.run(&["explain", "r", "--critical", "--json"]).exits(0).json();
    let steps = critical["critical"].as_array().unwrap();
    let chain: Vec<(&Value, &Value)> = steps.iter().map(|step| (&step["node"], &step["after"])).collect();
    assert_eq!(chain, [(&json!("b"), &Value::Null), (&json!("c"), &json!("b"))]);
    assert_eq!(steps[1]["why"], "reads the result of b");
    let sum: i64 = steps.iter().map(|step| step["total_ms"].as_i64().unwrap()).sum();
    let events = place.run(&["show", "r", "--events", "--json"]).exits(0).json();
    let events = events["events"].as_array().unwrap();
    assert!(
        events.iter().filter(|event| event["kind"] == "completed").all(|event| event["took"].is_object())
    );
    let whole = of(2, "total_ms") + of(1, "total_ms");
    assert!((whole - 50..=whole + 50).contains(&sum), "its parts are the run: {critical}");
    let page = place.run(&["explain", "r", "--critical"]).exits(0).stdout;
    assert!(page.contains("CRITICAL PATH  2 nodes") && page.contains("b (reads the result of b)"), "{page}");
    place.run(&["replay", "r"]).exits(0);
}

/// What has not ended goes on until now where somebody drives it or a person is waited for, and says what it does.
#[test]
fn what_goes_on_says_what_it_does_and_for_how_long() {
    let place = place();
    waiting(&place, "asks");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(nodes(&place, "asks")[0]["waited"]["person_ms"].as_u64().unwrap() >= 300);
    let text = place.run(&["explain", "asks"]).exits(0).stdout;
    assert!(text.contains("asks a person") && text.contains(" so far"), "{text}");
    assert!(!text.contains("call"), "{text}");
    let child = driven(&place, "goes");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let worked = |run: &str| nodes(&place, run)[1]["total_ms"].as_u64().unwrap();
    let before = worked("goes");
    assert!(before >= 300, "{before}");
    let text = place.run(&["explain", "goes"]).exits(0).stdout;
    let time = text.split_once(" running ").and_then(|(_, rest)| rest.split_whitespace().nth(1));
    assert!(matches!(time, Some("ms" | "s")), "{text}");
    end(child);
    let text = place.run(&["explain", "goes"]).exits(0).stdout;
    for part in ["no process drives it any more", " ago, and times", "selvedge resume goes", "stopped"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(worked("goes") < before && !text.contains("so far"), "{text}");
}

/// A narrow page has figures whole, and every line in its width.
#[test]
fn a_narrow_page_has_whole_figures() {
    let place = place();
    completed(&place, "one");
    let page = |columns: &str, more: &[&str]| {
        let mut command = place.command(&[&["explain", "one"], more].concat());
        finish(command.env("COLUMNS", columns).spawn().unwrap()).exits(0).stdout
    };
    let figures = |text: &str| {
        let times = text.lines().filter(|line| line.starts_with(['a', 'b', 'c']));
        let figure = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let unit = words.windows(2).find(|pair| matches!(pair[1], "s" | "ms"))?;
            Some(unit.join(" "))
        };
        times.filter_map(figure).collect::<Vec<_>>()
    };
    let wide = page("120", &[]);
    assert!(wide.contains('█') && figures(&wide).len() == 3, "{wide}");
    // A busy machine makes nodes wait, and the figures of that go before bars where there is little room.
    let waits = wide.contains("WAITED  ");
    for columns in ["40", "50"] {
        let narrow = page(columns, &["--critical"]);
        let widest =
            narrow.lines().filter(|line| !line.contains("selvedge ")).map(|line| line.chars().count());
        assert!(widest.max().unwrap() <= columns.parse().unwrap(), "{columns}: {narrow}");
        assert_eq!(&figures(&narrow)[..3], &figures(&wide)[..], "{narrow}");
        assert!(waits || narrow.contains('█') == (columns == "50"), "{narrow}");
    }
    let error = place.run(&["explain", "one", "--slowest", "0", "--json"]).exits(2).error();
    assert!(error["message"].as_str().unwrap().contains("a whole number from 1 on"), "{error}");
}

/// Three paths over a list, each with a node, a pair of paths and a loop; of twenty more paths one fails.
fn workflow(place: &Place) -> Vec<Value> {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "type": kind, "config": config});
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    let joined = json!({"joinStrategy": "ALL_COMPLETED", "forkPathIds": ["l", "r"]});
    let nodes = json!([
        node("start", "START", json!({})),
        node("list", "VARIABLE", json!({"name": "items", "value": [1, 2, 3]})),
        node(
            "each",
            "FORK",
            json!({"forkStrategy": "parallel", "forEach": "{{items}}", "childNodeIds": ["first"]})
        ),
        node("first", "LLM", json!({"prompt": "Say {{item}}"})),
        node(
            "pair",
            "FORK",
            json!({"forkStrategy": "parallel", "forkPathIds": ["l", "r"], "childNodeIds": ["left", "right"]})
        ),
        node("left", "LLM", json!({"prompt": "Left"})),
        node("right", "LLM", json!({"prompt": "Right {{item}}"})),
        node("paired", "JOIN", joined),
        node("round", "LOOP_START", json!({"count": 3, "limit": 9})),
        node("work", "LLM", json!({"prompt": "Work"})),
        node("around", "LOOP_END", json!({"loop": "round"})),
        node("all", "JOIN", json!({"joinStrategy": "ALL_COMPLETED"})),
        node("many", "VARIABLE", json!({"name": "numbers", "value": (0..20).collect::<Vec<u32>>()})),
        node(
            "wide",
            "FORK",
            json!({"forkStrategy": "parallel", "forEach": "{{numbers}}", "childNodeIds": ["number"]})
        ),
        node("number", "LLM", json!({"prompt": "Number {{item}}."})),
        node("most", "JOIN", json!({"joinStrategy": "SUCCESS_COUNT_THRESHOLD", "threshold": 19})),
        node("end", "END", json!({})),
    ]);
    let edges = json!([
        edge("start", "list"),
        edge("list", "each"),
        edge("first", "pair"),
        edge("left", "paired"),
        edge("right", "paired"),
        edge("paired", "round"),
        edge("round", "work"),
        edge("work", "around"),
        edge("around", "all"),
        edge("all", "many"),
        edge("many", "wide"),
        edge("number", "most"),
        edge("most", "end"),
    ]);
    place.write("flow.json", &json!({"nodes": nodes, "edges": edges}).to_string());
    place.write(
        "flow.yaml",
        "- {when: {contains: 'Right 2'}, reply: {text: slow, delay_ms: 300}}\n\
         - {when: {contains: 'Number 17.'}, reply: {error: {status: 400, message: unlucky}}}\n\
         - {when: {contains: 'Number 5.'}, reply: {text: yes, delay_ms: 200}}\n\
         - {when: {matches: .}, reply: {text: yes}}\n",
    );
    place.run(&["run", "flow.json", "--script", "flow.yaml", "--run-id", "w", "--quiet"]).exits(0);
    nodes_of(&place.run(&["explain", "w", "--json"]).exits(0).json()["nodes"])
}

fn nodes_of(nodes: &Value) -> Vec<Value> {
    nodes.as_array().unwrap().clone()
}

fn names(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().map(|node| node["node"].as_str().unwrap()).collect()
}

/// W-03: what is in frames has its times under the names of the document, behind the node that opened it.
#[test]
fn what_is_in_paths_and_iterations_is_explained() {
    let place = Place::new();
    let all = workflow(&place);
    let names = names(&all);
    let first = names.iter().position(|name| *name == "each[0]/first").unwrap();
    assert_eq!(names[first - 1], "each");
    assert_eq!(
        names[first..first + 8],
        [
            "each[0]/first",
            "each[0]/pair",
            "each[0]/left",
            "each[0]/right",
            "each[0]/round",
            "each[0]/round#0/work",
            "each[0]/round#1/work",
            "each[0]/round#2/work"
        ]
    );
    assert_eq!(names.iter().filter(|name| name.starts_with("wide[")).count(), 20);
    let of = |name: &str| &all[names.iter().position(|known| *known == name).unwrap()];
    assert!(of("each[1]/right")["worked_ms"].as_i64().unwrap() >= 300, "{}", of("each[1]/right"));
    assert_eq!(of("wide[17]/number")["fault"]["kind"], "provider_error");
    assert_eq!(of("each[0]/round#1/work")["waited_for"][0]["node"], "each[0]/round#0/work");
    assert_eq!(of("each[0]/first")["waited_for"][0]["node"], "list");
    assert_eq!(of("many")["waited_for"][0]["node"], "each");
    // One of them, under the name that it has here or in reports.
    for (id, name) in
        [("each[1]/round#0/work", "each[1]/round#0/work"), ("each[1]/work", "each[1]/round#2/work")]
    {
        let one = place.run(&["explain", "w", "--node", id, "--json"]).exits(0).json();
        assert_eq!(one["nodes"][0]["node"], name);
    }
    let slowest = place.run(&["explain", "w", "--slowest", "2", "--json"]).exits(0).json();
    assert_eq!(self::names(&nodes_of(&slowest["nodes"])), ["each[1]/right", "wide[5]/number"]);
}

/// C-15: the chain goes into the path that its join waited for, and its parts follow each other.
#[test]
fn the_critical_path_goes_through_frames() {
    let place = Place::new();
    workflow(&place);
    let explained = place.run(&["explain", "w", "--critical", "--json"]).exits(0).json();
    let steps = nodes_of(&explained["critical"]);
    assert_eq!(
        names(&steps),
        [
            "start",
            "list",
            "each[1]/first",
            "each[1]/right",
            "each[1]/round#0/work",
            "each[1]/round#1/work",
            "each[1]/round#2/work",
            "many",
            "wide[5]/number",
            "end"
        ]
    );
    let events = place.run(&["show", "w", "--events", "--json"]).exits(0).json();
    let events = nodes_of(&events["events"]);
    let total: i64 = steps.iter().map(|step| step["total_ms"].as_i64().unwrap()).sum();
    assert!(total >= 500, "{total} ms: {steps:#?}");
    for (before, step) in steps.iter().zip(&steps[1..]) {
        assert_eq!(step["after"], before["node"]);
    }
    // Both names of a node in a frame: what people are told, and the journal's own.
    let inner = events.iter().find(|event| event["node"] == "each[1]/round#2/work").unwrap();
    assert_eq!(inner["place"], "each~1[1]/round~1#2/work", "{inner}");
    assert!(events.iter().all(|event| event["node"] != "work" && !event["node"].to_string().contains('~')));
    let page = place.run(&["show", "w", "--events"]).exits(0).stdout;
    assert!(page.contains("each[1]/right/model/1/1: slow") && !page.contains('~'), "{page}");
}

/// Of many paths the slowest and those that failed have rows, the others one.
#[test]
fn many_paths_are_folded() {
    let place = Place::new();
    workflow(&place);
    let page = place.run(&["explain", "w"]).exits(0).stdout;
    for part in [
        "  [1]",
        "      [r] right",
        "      #2 work",
        "  [5] number",
        "  [17] number",
        "  … 14 more paths",
        "14 done",
    ] {
        assert!(page.contains(part), "{part:?}: {page}");
    }
    assert!(!page.contains('~'), "{page}");
}

/// A join has its own name, and says what of.
#[test]
fn a_node_is_not_called_twice() {
    let place = Place::new();
    workflow(&place);
    for (node, told) in [
        ("each[0]/paired", "2 paths"),
        ("each[0]/around", "3 iterations"),
        ("most", "20 paths: 19 done, 1 failed"),
    ] {
        let page = place.run(&["show", "w", "--node", node]).exits(0).stdout;
        assert_eq!(page.lines().map(str::trim).collect::<Vec<_>>(), [&format!("node {node}"), told]);
    }
    let one = place.run(&["show", "w", "--node", "all", "--json"]).exits(0).json();
    assert_eq!(one["name"], "all");
}
