//! Files outside of what was granted, and more of them than a call may write.

use super::{Arena, attack, machine_has, without, world};
use crate::world::call;
use selvedge_engine::FaultKind;
use selvedge_sandbox::isolation::Layer::{Identity, Landlock, Limits, Namespaces, Seccomp};
use selvedge_tools::Catalogue;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_were_not_granted_are_out_of_reach() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let mut arena = Arena::new();
    let at = |name: &str| arena.world.path(name).display().to_string();
    let state = at("document/.selvedge/selvedge.db");
    let (secret, tool, outside, inside) =
        (at("other/secret.txt"), at("tools/attack.py"), at("other/new"), at("document/new"));
    // The outer layer, the inner one, and both.
    let each = [&[Namespaces][..], &[Landlock]];
    for off in [&[][..], each[0], each[1]] {
        assert_eq!(arena.try_without(off, "read", "data.txt").await, "data", "what was granted: {off:?}");
        assert_eq!(arena.try_without(off, "read", "sub/data.txt").await, "data", "{off:?}");
        let names = arena.try_without(off, "listed", ".").await;
        assert_eq!(names, json!([".selvedge", "data.txt", "sub"]), "{off:?}");
    }
    // What the kept versions of tools are, their files in the cache show.
    let kept = std::fs::read_dir(arena.world.path("state/cache/tools")).unwrap();
    let kept =
        kept.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "py"));
    let kept = kept.unwrap().display().to_string();
    for path in [&secret, &state, &tool, &kept, &"/etc/shadow".to_owned()] {
        arena.stopped("read", path, &each).await;
        arena.succeeds("read", path, &[Namespaces, Landlock]).await;
    }
    assert_eq!(arena.try_without(&[Namespaces, Landlock], "read", &state).await, "canary");
    for path in [&outside, &inside] {
        arena.stopped("write", path, &each).await;
        assert_eq!(arena.try_without(&[Namespaces, Landlock], "write", path).await, json!(true));
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ways_around_names_are_closed() {
    if !machine_has(&[Namespaces, Landlock, Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    let secret = arena.world.path("other/secret.txt").display().to_string();
    arena.stopped("handle", &secret, &[&[Namespaces, Landlock], &[Seccomp, Namespaces]]).await;
    arena.succeeds("handle", &secret, &[Namespaces, Landlock, Seccomp, Identity]).await;
    // A setting of the kernel, which is written as it is.
    let setting = "/proc/sys/vm/swappiness";
    arena.stopped("rewrite", setting, &[&[Namespaces], &[Landlock]]).await;
    arena.succeeds("rewrite", setting, &[Namespaces, Landlock, Identity]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environments_of_other_processes_are_out_of_reach() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let mut arena = Arena::new();
    // The test runner's own variables stand for secrets: in any process, and in the one that runs the tool.
    let parent = format!("/proc/{}/environ", std::process::id());
    for (what, arg) in [("leaked", "CARGO_MANIFEST_DIR"), ("read", &parent)] {
        arena.stopped(what, arg, &[&[Namespaces], &[Landlock]]).await;
        let open = arena.succeeds(what, arg, &[Namespaces, Landlock, Identity]).await;
        assert!(what == "leaked" || open.as_str().is_some_and(|text| text.contains("CARGO_MANIFEST_DIR=")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_are_limited_and_crashes_leave_no_memory() {
    if !machine_has(&[Limits, Identity]).await {
        return;
    }
    let mut arena = Arena::new();
    for (what, arg, got) in [
        ("bomb", "100", json!(100)),
        ("hog", "2000000000", json!(2_000_000_000)),
        ("fill", "3000000", json!(true)),
    ] {
        arena.stopped(what, arg, &[]).await;
        assert_eq!(arena.try_without(&[Limits], what, arg).await, got, "{what}");
    }
    // The next call has all that it may have again.
    assert_eq!(arena.try_without(&[], "bomb", "20").await, json!(20));
    arena.stopped("core", "", &[]).await;
    // Its memory is more than a call's files may be together.
    let mut config = arena.world.config();
    config.isolation = crate::world::isolation().without(&[Limits]);
    config.limits.file_bytes = None;
    let tools = Catalogue::load(config).await.unwrap();
    tools.prepare(&["attack"]).await.unwrap();
    if attack(&tools, "core", "").await.is_null() {
        eprintln!("not shown here: nobody's crash leaves a file");
    }
}

/// The sum of what a call has in its scratch folder has an end too, however it is spread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_files_do_not_fill_the_disk() {
    let world = world();
    // By a warm interpreter, by one of its own, and by one that nothing isolates.
    let all = [Namespaces, Identity, Landlock, Limits, Seccomp];
    for (off, attacks) in [
        (&[][..], &[("fill_many", "400"), ("burrow", "100")][..]),
        (&[Landlock], &[("fill_many", "400")]),
        (&all, &[("fill_many", "400")]),
    ] {
        let tools = without(&world, off).await;
        for (what, arg) in attacks {
            let full = call(&tools, "attack", json!({"what": what, "arg": arg})).await;
            let fault = crate::world::fault(full, FaultKind::LimitExceeded, "");
            assert!(fault.message.contains("4194304 bytes"), "{}", fault.message);
        }
        assert_eq!(attack(&tools, "fill_many", "6").await, "done");
        crate::world::eventually("nothing is left of it", || world.scratch_is_empty()).await;
    }
    // Where files may be of any size, so may they be together.
    let mut config = world.config();
    config.limits.file_bytes = None;
    let tools = Catalogue::load(config).await.unwrap();
    tools.prepare(&["attack"]).await.unwrap();
    assert_eq!(attack(&tools, "fill_many", "40").await, "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_comes_to_run_as_its_owner_or_its_group() {
    if !machine_has(&[Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    arena.stopped("set_ids", "", &[&[Namespaces], &[Landlock]]).await;
    let ways = arena.succeeds("set_ids", "", &[Seccomp]).await;
    for way in ["chmod 4", "fchmod 2", "born 2", "node 4", "nameless 4", "nameless 2"] {
        assert!(ways.as_array().unwrap().contains(&json!(way)), "{ways}");
    }
    assert!(!ways.to_string().contains("mkdir"), "{ways}");
}

/// what a process holds without having it mapped is in no limit of its own: there is none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_memory_is_out_of_its_limits_sight() {
    if !machine_has(&[Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    // More than the limit of one process, in pieces.
    let size = (5u64 << 28).to_string();
    arena.stopped("unseen", &size, &[&[Namespaces], &[Landlock]]).await;
    arena.succeeds("unseen", "4000000", &[Seccomp]).await;
    for what in ["memfd_create", "memfd_secret", "shmget", "semget", "msgget"] {
        arena.stopped("held", what, &[&[Namespaces], &[Landlock]]).await;
        arena.succeeds("held", what, &[Seccomp]).await;
    }
}

/// What a tool writes where it may belongs to who ran it, whatever number the tool had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_writes_belongs_to_the_caller() {
    if !machine_has(&[Namespaces, Identity]).await {
        return;
    }
    let world = world();
    let out = world.path("document/out");
    let body = "def run(i):
    os.makedirs('out/made/deep', exist_ok=True)
    open('out/made/deep/a.txt', 'w').write('a')
    os.symlink('/etc/hostname', 'out/made/link')
    return os.getuid()";
    world.tool("writes", ", 'write_paths': ['out']", body);
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("old.txt"), "old").unwrap();
    let elsewhere = std::fs::metadata("/etc/hostname").map(|meta| (meta.uid(), meta.gid())).ok();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(out.join("old.txt"), Some(12), Some(34)).unwrap();
    }
    let old = std::fs::metadata(out.join("old.txt")).unwrap();
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // By a warm interpreter, by one of its own, and by a built-in.
    for off in [&[][..], &[Landlock]] {
        let mut config = world.config();
        config.isolation = crate::world::isolation().without(off);
        config.permissions.allow_write = vec!["out".into()];
        let tools = Catalogue::load(config).await.unwrap();
        crate::world::prepare_all(&tools).await.unwrap();
        let user = call(&tools, "writes", json!({})).await.unwrap();
        assert_eq!(me.0 == 0, user != json!(0), "root's tools are not root");
        let code = "import os; os.makedirs('out/py'); open('out/py/b.txt', 'w').write('b')";
        call(&tools, "python", json!({"code": code})).await.unwrap();
        for name in ["made", "made/deep", "made/deep/a.txt", "made/link", "py", "py/b.txt"] {
            let meta = out.join(name).symlink_metadata().unwrap();
            assert_eq!((meta.uid(), meta.gid()), me, "{name}, without {off:?}");
            assert_eq!(meta.permissions().mode() & 0o6000, 0, "{name}");
        }
        for name in ["made", "py"] {
            std::fs::remove_dir_all(out.join(name)).unwrap();
        }
    }
    let now = std::fs::metadata(out.join("old.txt")).unwrap();
    assert_eq!((now.uid(), now.gid()), (old.uid(), old.gid()), "what others own stays theirs");
    let now = std::fs::metadata("/etc/hostname").map(|meta| (meta.uid(), meta.gid())).ok();
    assert_eq!(now, elsewhere, "links are not followed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_is_given_up() {
    if !machine_has(&[Identity]).await || !rustix::process::geteuid().is_root() {
        return;
    }
    let world = world();
    let held = attack(&without(&world, &[]).await, "identity", "").await;
    let open = attack(&without(&world, &[Identity]).await, "identity", "").await;
    assert_eq!(open["uid"], 0);
    assert!(held["uid"].as_u64().unwrap() >= 10_000 && held["groups"] == json!([]), "{held}");
    let line = |name: &str| {
        let status = held["status"].as_str().unwrap();
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    assert_eq!(line("NoNewPrivs:"), "1");
    // Only CAP_DAC_READ_SEARCH, in a namespace of its own.
    assert_eq!(line("CapEff:"), "0000000000000004");
    assert_ne!(held["status"], Value::Null);
}

/// Built-ins are not confined by the system: they keep from the state folder by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_ins_keep_out_of_the_state_folder() {
    let world = world();
    world.write("document/.selvedge/cache/tools/a.py", "canary");
    std::os::unix::fs::symlink(".selvedge/selvedge.db", world.path("document/link")).unwrap();
    let mut config = world.config();
    config.hidden = vec![world.path("document/../document/.selvedge")];
    config.permissions.allow_write = vec![".".into(), ".selvedge/selvedge.db".into()];
    config.permissions.allow_read = vec![".selvedge/cache".into()];
    let tools = Catalogue::load(config).await.unwrap();
    for path in
        [".selvedge/selvedge.db", "sub/../.selvedge/selvedge.db", "link", ".selvedge/cache/tools/a.py"]
    {
        let read = call(&tools, "read_file", json!({"path": path})).await.unwrap_err();
        assert_eq!(read.fault.kind, FaultKind::Denied, "{path}: {read:?}");
        let write = call(&tools, "write_file", json!({"path": path, "content": "x"})).await.unwrap_err();
        assert_eq!(write.fault.kind, FaultKind::Denied, "{path}: {write:?}");
    }
    let new = call(&tools, "write_file", json!({"path": ".selvedge/new", "content": "x"})).await;
    assert_eq!(new.unwrap_err().fault.kind, FaultKind::Denied);
    let listed = call(&tools, "list_files", json!({"path": ".selvedge"})).await;
    assert_eq!(listed.unwrap_err().fault.kind, FaultKind::Denied);
    for glob in ["**/*", ".selvedge/*", "*"] {
        let listed =
            call(&tools, "list_files", json!({"path": ".", "glob": glob})).await.unwrap().to_string();
        assert!(!listed.contains("selvedge") && !listed.contains("link"), "{glob}: {listed}");
    }
    assert_eq!(std::fs::read_to_string(world.path("document/.selvedge/selvedge.db")).unwrap(), "canary");
    call(&tools, "write_file", json!({"path": "sub/new", "content": "x"})).await.unwrap();
}

/// A tool writes all of what it declares and may, also where the document lies in it, and what is not there yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_granted_for_writing_can_be_written() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    let root = world.path("").canonicalize().unwrap();
    let body = "def run(i):
    for path in i.text.split():
        open(path, 'w').write('w')
    return sorted(os.listdir('.selvedge'))";
    world.tool("around", &format!(", 'write_paths': [{root:?}]"), body);
    world.tool("missing", ", 'write_paths': ['no/new.txt', 'no2/sub']", body);
    world.tool("system", ", 'write_paths': ['/']", body);
    for off in [&[][..], &[Landlock]] {
        let mut config = world.config();
        config.isolation = crate::world::isolation().without(off);
        config.hidden = vec![world.path("document/.selvedge")];
        config.permissions.allow_write = vec![root.clone(), "/".into()];
        let tools = Catalogue::load(config).await.unwrap();
        tools.prepare(&["around", "missing"]).await.unwrap();
        let inside = call(&tools, "around", json!({"text": "written ../other/written sub/written"})).await;
        assert_eq!(inside.unwrap(), json!([]), "the state folder is empty");
        assert!(call(&tools, "around", json!({"text": ".selvedge/selvedge.db"})).await.is_err());
        call(&tools, "missing", json!({"text": "no/new.txt no2/sub/x"})).await.unwrap();
        assert!(call(&tools, "missing", json!({"text": "no/other.txt"})).await.is_err());
        let refused = tools.prepare(&["system"]).await.unwrap_err().to_string();
        assert!(refused.contains("`write_paths: [\"/\"]`, which is the system itself"), "{refused}");
        for path in ["document/written", "other/written", "document/sub/written", "document/no2/sub/x"] {
            assert_eq!(std::fs::read_to_string(world.path(path)).unwrap(), "w", "{path}");
        }
        std::fs::remove_dir_all(world.path("document/no")).unwrap();
        std::fs::remove_dir_all(world.path("document/no2")).unwrap();
    }
    assert_eq!(std::fs::read_to_string(world.path("document/.selvedge/selvedge.db")).unwrap(), "canary");
}

/// The same of a call that is cancelled, as soon as nothing of it lives any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cancelled_tool_has_written_belongs_to_the_caller() {
    if !machine_has(&[Namespaces, Identity]).await {
        return;
    }
    let world = world();
    let body = "def run(i):
    for number in range(100000):
        open('out/%s-%d' % (i.text, number), 'w').close()
        time.sleep(0.001)";
    world.tool("writes", ", 'write_paths': ['out']", body);
    let out = world.path("document/out");
    std::fs::create_dir(&out).unwrap();
    let me = rustix::process::geteuid().as_raw();
    let owners = |name: &str| {
        let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap());
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(name));
        named.map(|entry| entry.metadata().unwrap().uid()).collect::<Vec<_>>()
    };
    // By a warm interpreter, and by one of its own.
    for (name, off) in [("warm", &[][..]), ("cold", &[Landlock])] {
        let mut config = world.config();
        config.isolation = crate::world::isolation().without(off);
        config.permissions.allow_write = vec!["out".into()];
        let tools = Catalogue::load(config).await.unwrap();
        tools.prepare(&["writes"]).await.unwrap();
        let written = async {
            while owners(name).len() < 20 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            done = call(&tools, "writes", json!({"text": name})) => panic!("{done:?}"),
            () = written => {}
        }
        crate::world::eventually("all is the caller's", || owners(name).iter().all(|uid| *uid == me)).await;
        let count = owners(name).len();
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!((owners(name).len(), owners(name).iter().all(|uid| *uid == me)), (count, true));
    }
}

/// What a call has left whose Selvedge was killed is given to the caller by the next call that may write there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_run_has_left_is_given_back_by_the_next_call() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() || !machine_has(&[Namespaces, Identity]).await {
        return;
    }
    let world = world();
    world.tool("writes", ", 'write_paths': ['out']", "def run(i): open('out/new.txt', 'w').write('n')");
    let out = world.path("document/out");
    std::fs::create_dir(&out).unwrap();
    // A number of tools that nobody runs under, one that somebody does, and one of somebody else.
    let owners = [("left", 0x6000_7001), ("busy", 0x6000_7002), ("other", 1234)];
    for (name, owner) in owners {
        std::fs::write(out.join(name), name).unwrap();
        std::os::unix::fs::chown(out.join(name), Some(owner), Some(owner)).unwrap();
    }
    let mut busy = std::process::Command::new("sleep").arg("60").uid(0x6000_7002).spawn().unwrap();
    let owner = |name: &str| std::fs::metadata(out.join(name)).map(|meta| (meta.uid(), meta.gid())).unwrap();
    let mut owned = Vec::new();
    for off in [&[][..], &[Landlock]] {
        let mut config = world.config();
        config.isolation = crate::world::isolation().without(off);
        config.permissions.allow_write = vec!["out".into()];
        let tools = Catalogue::load(config).await.unwrap();
        crate::world::prepare_all(&tools).await.unwrap();
        call(&tools, "writes", json!({})).await.unwrap();
        owned.push(["new.txt", "left", "busy", "other"].map(owner));
        std::os::unix::fs::chown(out.join("left"), Some(0x6000_7001), Some(0x6000_7001)).unwrap();
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
    if isolation_has_few_numbers() {
        return;
    }
    let me = (0, rustix::process::getegid().as_raw());
    for owned in owned {
        assert_eq!(owned, [me, me, (0x6000_7002, 0x6000_7002), (1234, 1234)]);
    }
}

/// Whether this is a container whose user numbers are too few for tools to have their own range.
fn isolation_has_few_numbers() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    let count = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
    map.lines().map(count).max().unwrap() <= 0x6000_7fff
}
