//! Other processes, and processes that are to outlive their call.

use super::{Arena, attack, machine_has, without, world};
use crate::world::{anyone, call, call_within, count, eventually, fault, mark};
use selvedge_engine::FaultKind::{LimitExceeded, Timeout};
use selvedge_sandbox::isolation::Layer::{Cgroups, Identity, Landlock, Namespaces, Seccomp};
use serde_json::json;
use std::process::{Command, Stdio};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_survives_a_call() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    let tools = without(&world, &[]).await;
    let note = mark();
    assert_eq!(attack(&tools, "daemon", &note).await, json!(true));
    assert!(!anyone(&note), "a daemon is gone when its call is");
    let late = call_within(&tools, "attack", json!({"what": "stubborn", "arg": note}), 1.5).await;
    fault(late, Timeout, "tool_execution_timeout");
    assert!(!anyone(&note), "so is who ignores signals");
    let open = without(&world, &[Namespaces, Cgroups]).await;
    assert_eq!(attack(&open, "daemon", &note).await, json!(true));
    assert!(!anyone(&note), "without a namespace, a supervisor ends it");
}

/// Who can't clean up is who is killed: whatever it was running ends all the same (E-13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_survives_selvedge() {
    const MARK: &str = "SELVEDGE_TEST_MARK";
    if !machine_has(&[Namespaces]).await {
        return;
    }
    if let Ok(note) = std::env::var(MARK) {
        // Two calls, by a warm interpreter and by one of its own.
        let (one, other) = (world(), world());
        let (warm, cold) = (without(&one, &[]).await, without(&other, &[Landlock]).await);
        tokio::join!(attack(&warm, "stubborn", &note), attack(&cold, "stubborn", &note));
        return;
    }
    let note = mark();
    let mut selvedge = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::processes::nothing_survives_selvedge"])
        .env(MARK, &note)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Interpreters have to start, on a busy machine.
    for _ in 0..400 {
        assert!(selvedge.try_wait().unwrap().is_none(), "it has not ended by itself");
        if count(&note) == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(count(&note), 2, "both calls run");
    selvedge.kill().unwrap();
    selvedge.wait().unwrap();
    eventually("nothing of them is left", || !anyone(&note)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_processes_are_out_of_reach() {
    if !machine_has(&[Namespaces, Landlock, Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    let victim = || Command::new("/bin/sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    let mut first = victim();
    let pid = first.id().to_string();
    arena.stopped("kill", &pid, &[&[Namespaces], &[Landlock], &[Landlock, Identity]]).await;
    assert!(first.try_wait().unwrap().is_none(), "it lives");
    let got = arena.try_without(&[Namespaces, Landlock, Identity], "kill", &pid).await;
    assert_eq!(got, json!(true));
    assert!(!first.wait().unwrap().success());
    // Memory of this very process.
    let secret = String::from("canary in memory");
    let place = format!("{} {} {}", std::process::id(), secret.as_ptr() as usize, secret.len());
    arena.stopped("memory_of", &place, &[&[Seccomp], &[Namespaces], &[Namespaces, Landlock, Identity]]).await;
    let all = [Namespaces, Landlock, Identity, Seccomp];
    let got = arena.succeeds("memory_of", &place, &all).await;
    assert!(got.is_null() || got == secret.as_str(), "{got}");
    arena.stopped("trace", "", &[&[Namespaces, Landlock, Identity]]).await;
    arena.succeeds("trace", "", &[Seccomp]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_do_not_fill_memory() {
    let world = world();
    let tools = without(&world, &[]).await;
    assert_eq!(attack(&tools, "flood", "1073741824").await, "done", "all of it was written");
    let answer = call(&tools, "attack", json!({"what": "answer", "arg": "1073741824"})).await;
    fault(answer, LimitExceeded, "");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.split_whitespace().next().unwrap().parse().unwrap();
    assert!(most < 400 << 10, "and little of it kept: {most} KiB at most");
}
