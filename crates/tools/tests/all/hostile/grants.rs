//! What is granted is what was checked: nobody grants himself what he reads, and no link that a tool leaves leads further.

use super::{machine_has, ready, world};
use crate::world::{World, call, fault, isolation};
use selvedge_engine::FaultKind::{Denied, ExecutionFailure};
use selvedge_sandbox::isolation::Layer::{Landlock, Namespaces};
use selvedge_tools::{Catalogue, CatalogueConfig};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

const WRITES: &str = "def run(i):
    exec(i.text)
    return 'done'";
const READS: &str = "def run(i): return open(i.text).read()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_grants_itself_what_it_reads() {
    let world = world();
    let secret = world.path("other/secret.txt");
    let reads = |name: &str, paths: &str| world.tool(name, &format!(", 'read_paths': [{paths}]"), READS);
    reads("full", &format!("{secret:?}"));
    reads("up", "'../other'");
    symlink("../other", world.path("document/link")).unwrap();
    reads("link", "'link/secret.txt'");
    reads("inside", "'sub', 'later/not/there'");
    reads("programs", "'/usr/share'");
    reads("system", "'/'");
    let mut config = world.config();
    let tools = Catalogue::load(config.clone()).await.unwrap();
    for (name, path) in [("full", "other/secret.txt"), ("up", "document/../other"), ("link", "document/link")]
    {
        let refused = tools.prepare(&[name]).await.unwrap_err().to_string();
        let option = format!("`--allow-read {}", world.path(path).display());
        assert!(refused.contains("`read_paths: [") && refused.contains(&option), "{refused}");
        assert!(tools.refusal(name).is_some(), "a warning of `check`");
    }
    let refused = tools.prepare(&["system"]).await.unwrap_err().to_string();
    assert!(refused.contains("`read_paths: [\"/\"]`, which is the system itself"), "{refused}");
    tools.prepare(&["inside", "programs"]).await.unwrap();
    let inside = json!({"text": world.path("document/sub/data.txt")});
    assert_eq!(call(&tools, "inside", inside).await.unwrap(), "data");
    // By a warm interpreter, and by one of its own.
    config.permissions.allow_read = vec![world.path("other")];
    for off in [&[][..], &[Landlock]] {
        config.isolation = isolation().without(off);
        let allowed = Catalogue::load(config.clone()).await.unwrap();
        allowed.prepare(&["full", "up", "link"]).await.unwrap();
        for name in ["full", "up", "link"] {
            assert_eq!(call(&allowed, name, json!({"text": secret})).await.unwrap(), "canary", "{name}");
        }
    }
    // A resumed run may be allowed less.
    fault(call(&tools, "full", json!({"text": secret})).await, Denied, "");
}

/// a file that is only looked at has what is allowed, and not what it declares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_looked_at_reads_and_writes_what_is_allowed() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    let world = world();
    let (secret, mark) = (world.path("other/secret.txt"), world.path("other/mark"));
    let load = format!(
        "found = 'nothing'
try:
    found = open({secret:?}).read()
    open({mark:?}, 'w').close()
except OSError as e:
    print(e)
class InputModel(BaseModel):
    x: str = found
def run(i): return 1"
    );
    let paths = format!(", 'read_paths': [{secret:?}], 'write_paths': [{:?}]", world.path("other"));
    world.tool("looks", &paths, &load);
    let mut config = world.config();
    config.replay = true;
    let tools = Catalogue::load(config).await.unwrap();
    tools.prepare(&["looks"]).await.unwrap();
    assert_eq!(tools.def("looks").unwrap().input_schema["properties"]["x"]["default"], "nothing");
    assert!(!mark.exists());
    assert!(tools.unreadable("looks").is_some_and(|error| error.message.contains("read_paths")));
}

/// Everything under the document's folder may be written, and one of its folders by its own name.
fn colluding(world: &World) -> CatalogueConfig {
    world.tool("anywhere", ", 'write_paths': ['.']", WRITES);
    world.tool("out", ", 'write_paths': ['out']", WRITES);
    std::fs::create_dir_all(world.path("document/out/sub")).unwrap();
    let mut config = world.config();
    config.permissions.allow_write = vec![".".into(), "out".into()];
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_the_place_of_a_grant_grants_nothing() {
    if !machine_has(&[Namespaces]).await {
        return;
    }
    for off in [&[][..], &[Landlock], &[Namespaces]] {
        let world = world();
        let mut config = colluding(&world);
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        let swap =
            format!("import os; os.rename('out', 'old'); os.symlink({:?}, 'out')", world.path("other"));
        call(&tools, "anywhere", json!({"text": swap})).await.unwrap();
        let write = json!({"text": "open('out/evil', 'w').write('evil')"});
        fault(call(&tools, "out", write).await, Denied, "");
        let code = json!({"code": "open('out/evil', 'w').write('evil')"});
        let ran = call(&tools, "python", code).await;
        assert!(ran.is_err() || ran.unwrap()["exit_code"] != 0, "without {off:?}");
        fault(call(&tools, "write_file", json!({"path": "out/evil", "content": "evil"})).await, Denied, "");
        assert!(!world.path("other/evil").exists(), "without {off:?}");
    }
}

/// One tool swaps a folder for a link, again and again, while others are being started that may write this folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_mounted_is_what_was_checked() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    const ATTEMPTS: usize = 12;
    // By interpreters of their own, and by warm ones.
    for off in [&[Landlock][..], &[]] {
        let world = world();
        let mut config = colluding(&world);
        config.isolation = isolation().without(off);
        let tools = ready(config.clone()).await;
        // A warm interpreter is started once a catalogue; what is granted is settled when that is made.
        let mut others = vec![tools.clone()];
        while off.is_empty() && others.len() < ATTEMPTS {
            others.push(Catalogue::load(config.clone()).await.unwrap());
        }
        let other = world.path("other");
        let swap = format!(
            "import os, time
end = time.monotonic() + 15
n = 0
while time.monotonic() < end and not os.path.exists('enough'):
    os.rename('out', 'old')
    os.symlink({other:?}, 'out')
    time.sleep(0.001 * (n % 3))
    os.remove('out')
    os.rename('old', 'out')
    time.sleep(0.001 * (n % 3))
    n += 1"
        );
        let swapper = tools.clone();
        let swapping = tokio::spawn(async move { call(&swapper, "anywhere", json!({"text": swap})).await });
        let (began, mut wrote) = (Instant::now(), 0);
        for n in 0..ATTEMPTS {
            if began.elapsed() > Duration::from_secs(14) {
                break;
            }
            let tools = &others[n % others.len()];
            let write = json!({"text": format!("open('out/evil-{n}', 'w').write('evil')")});
            match call(tools, "out", write).await {
                Ok(_) => wrote += 1,
                Err(failed) => {
                    let kind = failed.fault.kind;
                    assert!(matches!(kind, Denied | ExecutionFailure), "{failed:?}");
                }
            }
        }
        std::fs::write(world.path("document/enough"), "").unwrap();
        swapping.await.unwrap().unwrap();
        let evil = |name: &str| {
            let entries =
                std::fs::read_dir(world.path(name)).unwrap().map(|entry| entry.unwrap().file_name());
            entries.filter(|name| name.to_string_lossy().starts_with("evil")).count()
        };
        assert_eq!(evil("other"), 0, "without {off:?}: {wrote} calls wrote");
        assert!(evil("document/out") >= wrote, "without {off:?}");
    }
}
