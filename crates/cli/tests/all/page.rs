//! The page in a real browser, against the real binary (S-20 … S-30): each test is a script that Node runs, with Debian's Chromium.

use crate::support::Place;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a script may take: a browser on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(400);

/// Where what drives a browser was installed.
fn modules(root: &Path) -> PathBuf {
    let done = Command::new("bash").arg(root.join("scripts/test-means.sh")).arg("page").output().unwrap();
    let cache = std::env::var_os("SELVEDGE_TEST_CACHE").map(PathBuf::from).unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache
            .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"))
            .join("selvedge-tests")
    });
    let folders =
        std::fs::read_dir(cache).into_iter().flatten().filter_map(|folder| Some(folder.ok()?.path()));
    let named =
        |folder: &PathBuf| folder.file_name().unwrap_or_default().to_string_lossy().starts_with("page-");
    // Of several, that of the lock as it is.
    let lock = std::fs::read(root.join("crates/cli/tests/page/package-lock.json")).unwrap();
    let is_ready = |folder: &PathBuf| {
        folder.join("ready").exists()
            && std::fs::read(folder.join("package-lock.json")).is_ok_and(|had| had == lock)
    };
    let found = folders.into_iter().filter(named).find(is_ready);
    found.unwrap_or_else(|| {
        let said = String::from_utf8_lossy(&done.stderr);
        panic!(
            "playwright-core and axe-core could not be installed from npm, so the page is not tested: {said}"
        )
    })
}

fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    all.find(|program| program.is_file())
        .expect("there is no Chromium, so the page is not tested: `apt-get install chromium` brings it")
}

/// Runs a script of `tests/page`.
#[track_caller]
fn script(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let modules = modules(&root);
    let world = Place::new();
    let said = world.work().join("said");
    let file = std::fs::File::create(&said).unwrap();
    let mut command = Command::new(modules.join("node-program"));
    command.arg(root.join("crates/cli/tests/page").join(name));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", world.work().join("../home")).env("SELVEDGE_STATE_DIR", world.state());
    command.env("SELVEDGE_TRUST", "1").env("SELVEDGE", env!("CARGO_BIN_EXE_selvedge"));
    command.env("MODULES", &modules).env("CHROMIUM", browser()).env("WORK", world.work());
    command.env("EXAMPLES", root.join("examples"));
    command.process_group(0).stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + PATIENCE;
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if Instant::now() > end {
            // With the browser and the server that it has started.
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-9", "--", &group]).status().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(code, Some(0), "{name}: {}", std::fs::read_to_string(&said).unwrap_or_default());
}

#[test]
fn s21_runs_are_found_and_opened() {
    script("runs.mjs");
}

#[test]
fn s22_the_scrubber_shows_a_run_as_it_was() {
    script("scrub.mjs");
}

#[test]
fn s22_names_and_times_have_room() {
    script("lanes.mjs");
}

#[test]
fn s22_nothing_is_told_before_it_happens() {
    script("moment.mjs");
}

#[test]
fn s22_text_is_shown_as_it_comes() {
    script("stream.mjs");
}

#[test]
fn s23_a_long_thread_is_read() {
    script("threads.mjs");
}

#[test]
fn s24_a_node_shows_what_it_was_sent() {
    script("node.mjs");
}

#[test]
fn s25_questions_are_answered_and_texts_edited() {
    script("answer.mjs");
}

#[test]
fn s26_what_is_required_is_not_sent_empty() {
    script("required.mjs");
}

#[test]
fn s40_a_form_sends_what_it_shows() {
    script("forms.mjs");
}

#[test]
fn s41_a_cancel_is_asked_for_twice() {
    script("cancel.mjs");
}

#[test]
fn e43_an_agent_is_told_something_while_it_works() {
    script("message.mjs");
}

#[test]
fn s26_a_document_is_mended_started_and_watched() {
    script("watch.mjs");
}

#[test]
fn s26_a_message_is_edited_in_a_fork_and_both_runs_compared() {
    script("fork.mjs");
}

#[test]
fn s26_s23_every_iteration_and_every_reader_counts() {
    script("rounds.mjs");
}

#[test]
fn s27_a_tool_has_code_and_versions() {
    script("library.mjs");
}

#[test]
fn s27_an_evolution_has_measures() {
    script("evolution.mjs");
}

#[test]
fn s28_hostile_text_stays_text() {
    script("hostile.mjs");
}

#[test]
fn s29_nobody_is_shut_out() {
    script("everybody.mjs");
}

#[test]
fn s29_no_pointer_is_needed() {
    script("keyboard.mjs");
}

#[test]
fn s30_of_a_large_run_only_what_is_seen_is_there() {
    script("large.mjs");
}

#[test]
fn s30_a_run_that_goes_on_takes_no_memory_for_pictures_of_before() {
    script("growth.mjs");
}

#[test]
fn s20_a_server_that_starts_anew_leaves_no_gap_in_the_page() {
    script("restart.mjs");
}

#[test]
fn s31_a_run_in_one_file_needs_no_server() {
    script("sealed.mjs");
}
