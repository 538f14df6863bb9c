//! Variables that tools are given (A-20, C-06): the process of the tool that declares one has its value, and nobody else.

use super::isolation::{holding, python, shared};
use crate::support::{Done, Place, calls, finish};
use serde_json::{Value, json};
use std::process::Command;

const KEY: &str = "serp-7f3a91c2d4e5";

/// Has the key, gives it to a program of its own, and takes its time.
const HOLDS: &str = r#"
import os, subprocess, time
from pydantic import BaseModel
__TOOL_META__ = {"name": "holds", "description": "d", "dependencies": [], "effects": "read", "env": ["SERP_KEY"]}
AT_START = os.environ["SERP_KEY"]
class InputModel(BaseModel):
    pass
def run(i):
    key = os.environ["SERP_KEY"]
    child = subprocess.run(["sh", "-c", "printf %s \"$SERP_KEY\""], capture_output=True, text=True).stdout
    print("it is", key, flush=True)
    time.sleep(1)
    return {"key": key, "length": len(key), "same": child == key == AT_START, "kinds": sorted(os.environ)}
"#;

/// Looks for the key, which it is told backwards, in what the system tells of all processes, and in its own memory, where a
/// call before it may have left something. The key is put together nowhere.
const SPIES: &str = r#"
import glob, os, time
from pydantic import BaseModel
__TOOL_META__ = {"name": "spies", "description": "d", "dependencies": [], "effects": "read"}
class InputModel(BaseModel):
    backwards: str
def has(data, first, second):
    at = data.find(first)
    while at >= 0:
        if data[at + len(first):at + len(first) + len(second)] == second:
            return True
        at = data.find(first, at + 1)
    return False
def memory(process):
    for line in open("/proc/%s/maps" % process):
        place, rights = line.split()[:2]
        if rights[0] != "r" or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
            continue
        begin, end = (int(part, 16) for part in place.split("-"))
        with open("/proc/%s/mem" % process, "rb", buffering=0) as file:
            file.seek(begin)
            yield file.read(end - begin)
def run(i):
    first, second = i.backwards[-1:-9:-1].encode(), i.backwards[-9::-1].encode()
    found, seen = [], 0
    def look(what, data):
        if has(data, first, second):
            found.append(what)
    for data in memory("self"):
        seen += len(data)
        look("own memory", data)
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        for folder in glob.glob("/proc/[0-9]*"):
            for name in ("environ", "cmdline", "fd/0"):
                try:
                    fd = os.open(folder + "/" + name, os.O_RDONLY | os.O_NONBLOCK)
                    look(folder + "/" + name, os.read(fd, 1 << 20))
                    os.close(fd)
                except OSError:
                    pass
            if folder != "/proc/%d" % os.getpid():
                try:
                    for data in memory(folder[6:]):
                        look(folder + "/mem", data)
                except OSError:
                    pass
        time.sleep(0.02)
    return {"found": found, "seen": seen, "has": "SERP_KEY" in os.environ}
"#;

fn done(mut command: Command) -> Done {
    finish(command.env("SERP_KEY", KEY).spawn().unwrap())
}

/// The attack: another tool, at the same time and after it, in an interpreter that came from the same warm one.
#[test]
fn nobody_but_the_tool_that_declares_it_has_the_key() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    place.write("tools/holds.py", HOLDS);
    place.write("tools/spies.py", SPIES);
    let backwards: String = KEY.chars().rev().collect();
    let spy = json!({"backwards": backwards});
    let on = |thread: &str, mut node: Value| {
        node["thread_id"] = json!(thread);
        node
    };
    place.plan(
        "plan.json",
        json!([
            on("a", calls("key", "holds", json!({}))),
            on("b", calls("meanwhile", "spies", spy.clone())),
            on("a", calls("after", "spies", spy)),
            on("a", calls("again", "holds", json!({}))),
        ]),
    );
    let run = ["run", "plan.json", "--tools", "tools", "--allow-env", "SERP_KEY", "--json", "-v"];
    let done = done(shared(&place, &run)).exits(0);
    assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY), "{done:#?}");
    let json = done.json();
    for node in ["key", "again"] {
        let output = &json["results"][node]["output"];
        assert_eq!((&output["key"], &output["same"]), (&json!("[redacted]"), &json!(true)), "{output}");
        assert_eq!(output["length"], json!(KEY.len()));
    }
    for node in ["meanwhile", "after"] {
        let output = &json["results"][node]["output"];
        assert_eq!((&output["found"], &output["has"]), (&json!([]), &json!(false)), "{output}");
        assert!(output["seen"].as_u64().unwrap() > 1 << 20, "it has looked: {output}");
    }
    assert_eq!(holding(&place.state(), KEY), Vec::<std::path::PathBuf>::new());
}

/// E-05: what a run was allowed it is allowed when it goes on; what is not set any more is told before anything runs.
#[test]
fn a_run_that_goes_on_has_its_variables_or_says_which_is_missing() {
    if python().is_none() {
        return;
    }
    let place = Place::new();
    let code = HOLDS.replace("time.sleep(1)", "open('in.txt').read()");
    place.write("tools/holds.py", &code);
    place.plan("plan.json", json!([calls("key", "holds", json!({}))]));
    let run = ["run", "plan.json", "--tools", "tools", "--allow-env", "SERP_KEY", "--run-id", "r", "--json"];
    done(shared(&place, &run)).exits(1);
    place.write("in.txt", "x");
    let unset = finish(shared(&place, &["resume", "r", "--json"]).spawn().unwrap()).exits(4);
    let error = unset.error();
    assert!(error["message"].as_str().unwrap().contains("`SERP_KEY`"), "{error}");
    let json = done(shared(&place, &["resume", "r", "--json"])).exits(0).json();
    assert_eq!(json["results"]["key"]["output"]["key"], json!("[redacted]"));
}
