//! System calls that attacks on the kernel, the machine and the sandbox itself begin with.

use super::{Arena, machine_has};
use selvedge_sandbox::isolation::Layer::{Identity, Landlock, Namespaces, Seccomp};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dangerous_system_calls_are_refused() {
    if !machine_has(&[Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    for what in ["namespace", "io_uring", "fault", "keys"] {
        // By seccomp alone.
        arena.stopped(what, "", &[&[Namespaces, Landlock, Identity]]).await;
        arena.succeeds(what, "", &[Seccomp]).await;
    }
    assert_eq!(
        arena.try_without(&[Seccomp], "namespace", "").await,
        json!(true),
        "the test's own means work"
    );
    if cfg!(target_arch = "x86_64") {
        arena.stopped("keys_again", "", &[]).await;
    }
    // These take root's rights besides.
    for what in ["bpf", "clock"] {
        arena.stopped(what, "", &[&[Seccomp], &[Namespaces, Landlock, Identity]]).await;
        arena.succeeds(what, "", &[Seccomp, Namespaces, Identity]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mounts_stay_as_they_are() {
    if !machine_has(&[Seccomp, Landlock]).await {
        return;
    }
    let mut arena = Arena::new();
    for what in ["mount", "umount", "pivot"] {
        arena.stopped(what, "", &[&[Namespaces, Landlock, Identity], &[Seccomp]]).await;
        arena.succeeds(what, "", &[Seccomp, Landlock]).await;
    }
    for what in ["chroot", "filesystem"] {
        arena.stopped(what, "", &[&[Namespaces, Landlock, Identity]]).await;
        arena.succeeds(what, "", &[Seccomp, Landlock]).await;
    }
}
