//! Lines of runs with many paths and iterations (C-01).

use crate::support::Place;
use serde_json::json;

/// A fork over so many elements, of which 13 and 113 fail.
fn fork(place: &Place, paths: usize) {
    place.write(
        "flow.json",
        &json!({
            "nodes": [
                {"id": "start", "type": "START"},
                {"id": "list", "type": "VARIABLE", "config": {"name": "items", "value": (0..paths).collect::<Vec<_>>()}},
                {"id": "each", "type": "FORK", "config": {"forkStrategy": "parallel", "forEach": "{{items}}", "childNodeIds": ["ask"]}},
                {"id": "ask", "type": "LLM", "config": {"prompt": "Number {{item}}."}},
                {"id": "all", "type": "JOIN", "config": {"joinStrategy": "SUCCESS_COUNT_THRESHOLD", "threshold": paths - 2}},
                {"id": "end", "type": "END"}],
            "edges": [{"from": "start", "to": "list"}, {"from": "list", "to": "each"}, {"from": "ask", "to": "all"}, {"from": "all", "to": "end"}]
        })
        .to_string(),
    );
    place.write(
        "s.yaml",
        "- {when: {matches: 'Number 1?13[.]'}, reply: {error: {status: 400, message: unlucky}}}\n- {when: {contains: Number}, reply: {text: yes}}\n",
    );
}

/// Of a thousand paths the first have their lines, and what fails; how all of them ended stands in the line of their fork.
#[test]
fn a_thousand_paths_can_be_followed() {
    let place = Place::new();
    fork(&place, 1_000);
    let told = place.run(&["run", "flow.json", "--script", "s.yaml", "--run-id", "r"]).exits(0).stderr;
    let lines = |part: &str| told.lines().filter(|line| line.contains(part)).count();
    assert_eq!((lines(" start each["), lines(" done  each[")), (10, 10), "{told}");
    assert_eq!((lines(" fail  each[13]/ask "), lines(" fail  each[113]/ask ")), (1, 1), "{told}");
    assert!(told.contains(", 1000 paths: 998 done, 2 failed\n"), "{told}");
    assert!(told.lines().count() < 60, "{told}");
    // All of them, where somebody asks for it.
    fork(&place, 100);
    let told = place.run(&["run", "flow.json", "--script", "s.yaml", "-v", "--run-id", "v"]).stderr;
    assert_eq!(told.lines().filter(|line| line.contains(" start each[")).count(), 100, "{told}");
}

/// The same of iterations, of which one that takes long is told; and now and then how far they have come.
#[test]
fn a_loop_tells_how_far_it_has_come() {
    let place = Place::new();
    place.write(
        "flow.json",
        &json!({
            "nodes": [
                {"id": "start", "type": "START"},
                {"id": "round", "type": "LOOP_START", "config": {"count": 100, "limit": 100}},
                {"id": "ask", "type": "LLM", "config": {"prompt": "Round {{index}}."}},
                {"id": "over", "type": "LOOP_END", "config": {"loop": "round"}},
                {"id": "end", "type": "END"}],
            "edges": [{"from": "start", "to": "round"}, {"from": "round", "to": "ask"}, {"from": "ask", "to": "over"}, {"from": "over", "to": "end"}]
        })
        .to_string(),
    );
    place.write(
        "s.yaml",
        "- {when: {contains: 'Round 42.'}, reply: {text: yes, delay_ms: 1200}}\n- {when: {contains: Round}, reply: {text: yes}}\n",
    );
    let told = place.run(&["run", "flow.json", "--script", "s.yaml", "--run-id", "r"]).exits(0).stderr;
    let begun = told.lines().filter(|line| line.contains(" start round#")).count();
    assert_eq!(begun, 10, "{told}");
    assert!(told.contains(" done  round#42/ask  1."), "{told}");
    assert!(told.contains(" going round: 43 of 100 iterations\n"), "{told}");
    assert!(told.contains(", 100 iterations\n") && told.lines().count() < 40, "{told}");
    // So is what `explain` says of it: the chain of nodes goes through all of them.
    let page = place.run(&["explain", "r", "--critical"]).exits(0).stdout;
    assert!(page.contains("… 95 more iterations") && page.contains("… 95 more in round"), "{page}");
    assert!(page.contains("round#42/ask") && page.lines().count() < 40, "{page}");
}
