//! Control groups: calls as wholes, where this machine lets them be made.

use super::{attack, machine_has, under, world};
use crate::world::{World, anyone, call, context, eventually, isolation, mark, request};
use selvedge_runtime::ports::Tools;
use selvedge_sandbox::isolation::Layer::{Cgroups, Limits, Namespaces};
use selvedge_tools::Catalogue;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tools whose calls have control groups, and whether this machine lets them be made, with or without limits.
async fn grouped(world: &World) -> Option<Catalogue> {
    let isolation = isolation().grouped();
    let missing = isolation.found().await.optional.first().map(|missing| missing.why.clone());
    let tools = under(world, isolation).await;
    let got = attack(&tools, "group", "").await;
    let group =
        got[0].as_str().unwrap().lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    // Seen from inside, as from a group of its own.
    if group.contains("selvedge-") || (missing.is_none() && group == "/") {
        return Some(tools);
    }
    eprintln!("not tested here: cgroups is missing: {}", missing.unwrap());
    None
}

/// Groups of this process, by their names.
fn groups() -> Vec<PathBuf> {
    let mine = format!("-{}-", std::process::id());
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("selvedge-") && name.contains(&mine) {
                found.push(entry.path());
            } else if found.len() < 1000 {
                folders.push(entry.path());
            }
        }
    }
    found
}

fn members(group: &Path) -> usize {
    std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_is_a_group_and_leaves_none() {
    let world = world();
    let Some(tools) = grouped(&world).await else { return };
    world.tool("waits", "", "def run(i):\n    time.sleep(1.5)\n    return open('/proc/self/cgroup').read()");
    let slow = under(&world, isolation().grouped()).await;
    call(&slow, "attack", json!({"what": "group"})).await.unwrap();
    drop(tools);
    let busy: Vec<_> =
        (0..3).map(|_| tokio::spawn(slow.call(request(&slow, "waits", json!({})), context()))).collect();
    tokio::time::sleep(Duration::from_millis(900)).await;
    // Three calls and their server.
    let full = groups().into_iter().filter(|group| members(group) > 0).count();
    assert!(full >= 4, "{:?}", groups());
    let mut seen: Vec<Value> = Vec::new();
    for call in busy {
        let group = call.await.unwrap().unwrap();
        assert!(
            !seen.contains(&group) || group.as_str().unwrap().ends_with("0::/\n"),
            "each its own: {group}"
        );
        seen.push(group);
    }
    // Ever so many calls get ever so many groups.
    for _ in 0..12 {
        attack(&slow, "group", "").await;
    }
    eventually("what is over has no group", || groups().len() <= 4).await;
    drop(slow);
    eventually("and in the end there is none", || groups().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_ends_what_no_namespace_holds() {
    let world = world();
    if grouped(&world).await.is_none() {
        return;
    }
    let note = mark();
    let tools = under(&world, isolation().without(&[Namespaces])).await;
    assert_eq!(attack(&tools, "daemon", &note).await, json!(true));
    eventually("a daemon is gone with its call", || !anyone(&note)).await;
    let open = under(&world, isolation().without(&[Namespaces, Cgroups])).await;
    assert_eq!(attack(&open, "daemon", &note).await, json!(true));
    assert!(!anyone(&note), "without a group, a supervisor ends it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_bounds_all_processes_of_a_call_together() {
    if !machine_has(&[Cgroups, Limits]).await {
        return;
    }
    let world = world();
    // Each process within its own limit, all of them over that of the call.
    let body = "def run(i):
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            held = bytearray(120 << 20)
            time.sleep(1)
            os._exit(0)
        children.append(pid)
    return sum(os.waitpid(pid, 0)[1] == 0 for pid in children)";
    world.tool("together", "", body);
    for (off, all) in [(&[][..], false), (&[Cgroups], true)] {
        let mut config = world.config();
        config.isolation = isolation().without(off);
        config.limits.memory_bytes = Some(300 << 20);
        let tools = Catalogue::load(config).await.unwrap();
        crate::world::prepare_all(&tools).await.unwrap();
        let lived = call(&tools, "together", json!({})).await;
        assert_eq!(lived.is_ok_and(|lived| lived == json!(4)), all, "without {off:?}");
    }
}
