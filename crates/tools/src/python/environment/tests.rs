use super::kept::{Keep, mark, sweep};
use super::{Dependencies, Environments, Stored, stored};
use crate::diag::ErrorClass;
use crate::progress::Progress;
use selvedge_sandbox::env::ProcessEnv;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

fn listed(entries: &[&str]) -> Result<Dependencies, super::Refused> {
    Dependencies::new(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>())
}

#[test]
fn equal_sets_written_differently_are_one_environment() {
    let one = listed(&["Typing_Extensions >= 4, <5", "httpx[http2, Brotli]"]).unwrap();
    for other in [
        ["httpx[http2,brotli]", " typing-extensions<5,>=4 ", "typing.extensions>=4,<5"],
        ["HTTPX [brotli,http2]", "typing--extensions (>=4, <5)", "pydantic>=2"],
    ] {
        assert_eq!(listed(&other).unwrap(), one, "{other:?}");
    }
    assert_ne!(listed(&["httpx"]).unwrap(), listed(&["httpx[http2]"]).unwrap());
}

#[test]
fn only_names_with_versions_are_dependencies() {
    for (entry, why) in [
        ("--index-url http://127.0.0.1/", "options"),
        ("-e .", "options"),
        ("-r other.txt", "options"),
        ("./local", "paths"),
        ("/abs/path", "paths"),
        ("../up", "paths"),
        ("c:\\x", "paths"),
        ("pkg @ https://example.org/x.whl", "addresses"),
        ("git+https://example.org/x", "addresses"),
        ("pkg@1", "addresses"),
        ("tomli; python_version < '3.11'", "conditions"),
        ("ok\n--pre", "control characters"),
        ("a b", "no version"),
        ("name # comment", "no version"),
        ("name>=", "no version"),
        ("name>=1 --hash=sha256:00", "no version"),
        ("name[x", "no version"),
        ("name[x y]", "no extras"),
        ("file:x", "no version"),
        ("-", "options"),
        ("a-", "no name"),
        ("café", "no version"),
        ("", "empty"),
    ] {
        let refused = listed(&[entry]).unwrap_err();
        assert!(refused.why.contains(why), "{entry:?}: {refused}");
        assert!(!refused.to_string().contains('\n'), "{refused:?}");
    }
    assert!(listed(&["a".repeat(400).as_str()]).unwrap_err().to_string().len() < 500);
    assert!(listed(&vec!["a"; 1000]).unwrap_err().why.contains("200 packages"));
}

/// A folder with environments made by a `uv` that does as this shell script says; `$log` is its log.
struct Fake {
    root: tempfile::TempDir,
    environments: Environments,
}

const USUAL: &str = r#"
echo "$@" >> "$log"
for last; do :; done
case "$1 $2" in
  "pip compile") cat > /dev/null; echo "x==1 --hash=sha256:00" ;;
  "venv "*) mkdir -p "$last/bin" && ln -s /bin/sh "$last/bin/python" ;;
esac
"#;

impl Fake {
    fn new(script: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let environments = Self::at(root.path(), script);
        Self { root, environments }
    }

    fn at(root: &Path, script: &str) -> Environments {
        let uv = root.join("uv");
        let log = root.join("log");
        std::fs::write(&uv, format!("#!/bin/sh\nlog={}\n{script}", log.display())).unwrap();
        std::fs::set_permissions(&uv, PermissionsExt::from_mode(0o755)).unwrap();
        let env = ProcessEnv::new(std::env::vars_os(), None);
        let mut environments = Environments::new(&root.join("shared"), None, Some(uv), env);
        environments.resolving = Duration::from_secs(20);
        environments
    }

    fn log(&self, part: &str) -> usize {
        let log = std::fs::read_to_string(self.root.path().join("log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(part)).count()
    }
}

fn quiet() -> Progress {
    Arc::new(|_| {})
}

#[tokio::test]
async fn versions_are_resolved_once_and_installed_by_hash() {
    let fake = Fake::new(USUAL);
    let set = listed(&["x"]).unwrap();
    let python = fake.environments.python(&set, &quiet()).await.unwrap();
    assert!(python.exists());
    assert_eq!(fake.environments.python(&set, &quiet()).await.unwrap(), python);
    assert_eq!((fake.log("pip compile"), fake.log("--generate-hashes"), fake.log("pip sync")), (1, 1, 1));
    assert_eq!(fake.log("--require-hashes"), 1);
    assert_eq!(
        (fake.log("--only-binary :all:"), fake.log("--offline")),
        (2, 1),
        "tried without network first"
    );
    // Another process finds the lock, whatever happened to the environment.
    std::fs::remove_dir_all(python.parent().unwrap().parent().unwrap()).unwrap();
    let other = Fake::at(fake.root.path(), USUAL);
    other.python(&set, &quiet()).await.unwrap();
    assert_eq!((fake.log("pip compile"), fake.log("pip sync")), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_at_once_make_one_environment() {
    let slow = USUAL.replace("cat >", "sleep 0.2; cat >");
    let fake = Fake::new(&slow);
    let others: Vec<_> = (0..4).map(|_| Fake::at(fake.root.path(), &slow)).collect();
    let set = listed(&["x"]).unwrap();
    let all = others.iter().chain([&fake.environments, &fake.environments]);
    let made =
        futures_util::future::join_all(all.map(|one| async { one.python(&set, &quiet()).await.unwrap() }));
    let made = made.await;
    assert!(made.iter().all(|python| *python == made[0] && python.exists()));
    assert_eq!((fake.log("pip compile"), fake.log("pip sync")), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_resolved_is_said_and_not_tried_again() {
    let fake = Fake::new("echo tried >> \"$log\"; echo 'no solution: x needs y' >&2; exit 1");
    let set = listed(&["x"]).unwrap();
    for _ in 0..3 {
        let error = fake.environments.python(&set, &quiet()).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Document);
        assert!(
            error.message.contains("pydantic>=2, x cannot be resolved: no solution: x needs y"),
            "{error}"
        );
    }
    assert_eq!(fake.log("tried"), 1);
}

/// C-04: what `uv` draws over many lines is said in one.
#[tokio::test]
async fn what_uv_says_is_said_in_one_line() {
    let script = "printf '  \\303\\227 No solution found:\\n  \\342\\225\\260\\342\\224\\200\\342\\226\\266 Because x needs y\\n      and y needs z.\\n\\n      hint: use z\\n' >&2; exit 1";
    let fake = Fake::new(script);
    let error = fake.environments.python(&listed(&["x"]).unwrap(), &quiet()).await.unwrap_err();
    let said = "cannot be resolved: No solution found: Because x needs y and y needs z. hint: use z";
    assert!(error.message.ends_with(said), "{error}");
}

#[tokio::test]
async fn a_search_without_end_is_ended_with_its_processes() {
    let mark = format!("78.{}", std::process::id());
    let mut fake = Fake::new(&format!("echo tried >> \"$log\"; sleep {mark} & sleep {mark}"));
    fake.environments.resolving = Duration::from_millis(400);
    let start = Instant::now();
    let error = fake.environments.python(&listed(&["x"]).unwrap(), &quiet()).await.unwrap_err();
    assert!(
        start.elapsed() < Duration::from_secs(15) && error.message.contains("longer than 0.4 s"),
        "{error}"
    );
    let living = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(&mark))
    });
    assert!(!living);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_was_cut_off_leaves_nothing_that_looks_whole() {
    let fake = Fake::new(&USUAL.replace("esac", "  \"pip sync\") touch \"$log.sync\"; sleep 30 ;;\nesac"));
    let set = listed(&["x"]).unwrap();
    let root = fake.root.path().to_owned();
    {
        let (work, said) = (quiet(), root.join("log.sync"));
        let building = fake.environments.python(&set, &work);
        let begun = async {
            while !said.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = building => panic!("it takes longer"),
            () = begun => {}
        }
    }
    assert_eq!(stored(&root.join("shared")).count, 0);
    let again = Fake::at(&root, USUAL);
    assert!(again.python(&set, &quiet()).await.unwrap().exists());
    assert_eq!(stored(&root.join("shared")).count, 1);
}

/// An environment of some bytes that was last used some days ago.
fn environment(envs: &Path, digit: char, bytes: usize, days: u64) -> PathBuf {
    let place = envs.join(digit.to_string().repeat(32));
    std::fs::create_dir_all(place.join("lib")).unwrap();
    std::fs::write(place.join("lib/file"), vec![0; bytes]).unwrap();
    let used = File::create(place.with_extension("use")).unwrap();
    used.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
    place
}

#[test]
fn what_nobody_uses_any_more_is_removed_once_a_day() {
    let root = tempfile::tempdir().unwrap();
    let envs = root.path().join("envs");
    let keep = Keep { unused: Duration::from_secs(30 * 86_400), bytes: 1000 };
    let old = environment(&envs, 'a', 10, 40);
    let held = environment(&envs, 'b', 10, 50);
    let built = environment(&envs, 'c', 10, 60);
    let new = environment(&envs, 'd', 10, 1);
    assert_eq!(stored(root.path()), Stored { count: 4, bytes: 40 });
    // As other processes hold them: one works with it, one builds it anew.
    let using = File::open(held.with_extension("use")).unwrap();
    using.lock_shared().unwrap();
    let building = File::create(built.with_extension("lock")).unwrap();
    building.lock().unwrap();
    sweep(&envs, keep);
    assert!(!old.exists() && held.exists() && built.exists() && new.exists());
    drop((using, building));
    sweep(&envs, keep);
    assert!(held.exists() && built.exists(), "not twice a day");
    std::fs::remove_file(envs.join(".swept")).unwrap();
    sweep(&envs, keep);
    assert!(!held.exists() && !built.exists() && new.exists());
    assert_eq!(stored(root.path()).count, 1);
    assert!(
        std::fs::read_dir(&envs).unwrap().all(|e| !e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".old-"))
    );
}

#[test]
fn over_the_size_those_go_that_were_not_used_for_the_longest_time() {
    let root = tempfile::tempdir().unwrap();
    let envs = root.path().join("envs");
    let [first, second, third] =
        [('a', 3), ('b', 2), ('c', 1)].map(|(digit, days)| environment(&envs, digit, 400, days));
    // Being used makes it the latest.
    let _mark = mark(&first).unwrap();
    sweep(&envs, Keep { unused: Duration::from_secs(30 * 86_400), bytes: 1000 });
    assert!(first.exists() && !second.exists() && third.exists());
}
