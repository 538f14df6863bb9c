//! Packages that attack: what is installed from an index runs in the sandbox only, and what a server imports ahead harms nobody.

use super::machine_has;
use crate::world::{World, call};
use selvedge_sandbox::isolation::Layer::{Landlock, Namespaces};
use selvedge_tools::Catalogue;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Makes wheels of packages: `{name: {file: text}}`.
const WHEELS: &str = "
import json, sys, zipfile
for name, files in json.loads(sys.argv[2]).items():
    info = name + '-2.0.dist-info/'
    files[info + 'METADATA'] = 'Metadata-Version: 2.1\\nName: %s\\nVersion: 2.0\\n' % name
    files[info + 'WHEEL'] = 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'
    files[info + 'RECORD'] = ''.join(path + ',,\\n' for path in [*files, info + 'RECORD'])
    with zipfile.ZipFile(sys.argv[1] + '/%s-2.0-py3-none-any.whl' % name, 'w') as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
";

/// As much of pydantic as a tool without fields needs.
const PYDANTIC: &str = "
class ValidationError(Exception): pass
class BaseModel:
    @classmethod
    def model_json_schema(cls): return {'type': 'object', 'properties': {}}
    @classmethod
    def model_validate_json(cls, text): return cls()
    def model_dump(self, mode=None): return {}
";

/// A world with an index of its own; `None` where there is no Python that makes wheels.
fn with_index(packages: &serde_json::Value) -> World {
    let world = World::new();
    let (index, shared) = (world.path("index"), world.path("shared"));
    for folder in [&index, &shared] {
        std::fs::create_dir(folder).unwrap();
    }
    let mut packages = packages.clone();
    packages["pydantic"] = json!({"pydantic.py": PYDANTIC});
    let made =
        Command::new("python3").args(["-c", WHEELS]).arg(&index).arg(packages.to_string()).status().unwrap();
    assert!(made.success());
    let [index, cache] = [index, world.path("uv-cache")].map(|path| path.display().to_string());
    // The `uv` on PATH, or the one that other tests have fetched, which takes packages from there only.
    let fetched = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools-shared/uv/bin/uv");
    let uv = format!(
        "#!/bin/sh\n[ \"$1\" = pip ] && set -- \"$@\" --no-index --find-links '{index}'\n\
         UV_CACHE_DIR='{cache}' exec \"$(command -v uv || echo '{}')\" \"$@\"\n",
        fetched.display()
    );
    std::fs::set_permissions(world.write("bin/uv", &uv), PermissionsExt::from_mode(0o755)).unwrap();
    world
}

async fn ready(world: &World, names: &[&str]) -> Catalogue {
    let mut config = world.config();
    config.shared_cache = world.path("shared");
    config.uv = Some(world.path("bin/uv"));
    let tools = Catalogue::load(config).await.unwrap();
    tools.prepare(names).await.unwrap();
    tools
}

/// The environments that were made.
fn environments(world: &World) -> Vec<PathBuf> {
    let all = std::fs::read_dir(world.path("shared/envs")).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.join("bin/python").exists()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_package_runs_nothing_outside_of_a_sandbox() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let marker = World::new();
    let marker = marker.path("marker");
    std::fs::create_dir_all(marker.parent().unwrap()).unwrap();
    let hook = format!("import os; open({:?}, 'w').close()", marker.display().to_string());
    let world = with_index(&json!({"evil": {
        "evil.py": "value = 7\n",
        "evil.pth": format!("{hook}\n"),
        "evil-2.0.data/scripts/other": "#!/bin/sh\n",
    }}));
    world.tool("t", "", "def run(i):\n    import evil\n    return evil.value");
    let text = std::fs::read_to_string(world.path("tools/t.py")).unwrap();
    world.write("tools/t.py", &text.replace("'dependencies': []", "'dependencies': ['evil']"));
    let tools = ready(&world, &["t"]).await;
    assert_eq!(call(&tools, "t", json!({})).await.unwrap(), json!(7));
    assert!(!marker.exists(), "it ran while it was installed or compiled");
    let all = environments(&world);
    let [environment] = all.as_slice() else { panic!("{all:?}") };
    let library = std::fs::read_dir(environment.join("lib")).unwrap().next().unwrap().unwrap().path();
    let compiled = std::fs::read_dir(library.join("site-packages/__pycache__")).unwrap();
    let compiled = compiled.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(compiled.into_iter().any(|name| name.starts_with("evil.")), "and yet it is compiled");
    // What would have happened: its file `.pth` runs in any interpreter of the environment.
    Command::new(environment.join("bin/python")).args(["-I", "-c", ""]).status().unwrap();
    assert!(marker.exists());
}

/// who may write above the cache does not say where packages come from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_above_the_cache_is_not_read() {
    let world = with_index(&json!({"wanted": {"wanted.py": "value = 7\n"}}));
    for folder in [".", "shared", "shared/envs"] {
        world.write(&format!("{folder}/uv.toml"), "required-version = \"==0.0.1\"\n");
        world.write(
            &format!("{folder}/pyproject.toml"),
            "[project]\nname = \"x\"\nversion = \"1\"\n[tool.uv]\nunheard = [",
        );
    }
    world.tool("t", "", "def run(i):\n    import wanted\n    return wanted.value");
    let text = std::fs::read_to_string(world.path("tools/t.py")).unwrap();
    world.write("tools/t.py", &text.replace("'dependencies': []", "'dependencies': ['wanted']"));
    let tools = ready(&world, &["t"]).await;
    assert_eq!(call(&tools, "t", json!({})).await.unwrap(), json!(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_imported_ahead_harms_no_call() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = with_index(&json!({
        "numpy": {
            "numpy/__init__.py": "from . import random\n",
            "numpy/random.py": "import os\nvalue = None\ndef seed():\n    global value\n    value = os.urandom(8).hex()\n",
        },
        "dies": {"dies.py": "import os\nif os.environ.get('HOME') == '/dev/shm': os._exit(3)\n"},
        "threads": {"threads.py": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"},
    }));
    let tool = |name: &str, package: &str, body: &str| {
        let text = format!(
            "import sys, {package}\nfrom pydantic import BaseModel\n__TOOL_META__ = {{'name': '{name}', \
             'description': 'd', 'dependencies': ['{package}']}}\nclass InputModel(BaseModel): pass\n\
             def run(i):\n    return {body}\n"
        );
        world.write(&format!("tools/{name}.py"), &text);
    };
    tool("drawn", "numpy", "numpy.random.value");
    tool("outlives", "dies", "'dies' in sys.modules");
    tool("alone", "threads", "threads.threading.active_count()");
    let names = ["drawn", "outlives", "alone"];
    let tools = ready(&world, &names).await;
    let one = call(&tools, "drawn", json!({})).await.unwrap();
    let two = call(&tools, "drawn", json!({})).await.unwrap();
    assert!(
        one.is_string() && two.is_string() && one != two,
        "each call draws numbers of its own: {one} {two}"
    );
    assert_eq!(call(&tools, "outlives", json!({})).await.unwrap(), json!(true));
    assert_eq!(call(&tools, "alone", json!({})).await.unwrap(), json!(2), "its thread is there, and lives");
}

/// Tools of one environment share an interpreter: a module of one that can't be imported ahead costs its own calls only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_imported_ahead_does_its_neighbours_no_harm() {
    if !machine_has(&[Namespaces, Landlock]).await {
        return;
    }
    let world = with_index(&json!({
        "quiet": {"quiet.py": "value = 7\n", "calm.py": "value = 8\n"},
        "dies": {"dies.py": "import os\nif os.environ.get('HOME') == '/dev/shm': os._exit(3)\n"},
        "threads": {"threads.py": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"},
    }));
    let tool = |name: &str, modules: &str, body: &str| {
        let text = format!(
            "import sys{modules}\nfrom pydantic import BaseModel\n__TOOL_META__ = {{'name': '{name}', 'description': 'd', \
             'dependencies': ['quiet', 'dies', 'threads']}}\nclass InputModel(BaseModel): pass\n\
             def run(i):\n    return {body}\n"
        );
        world.write(&format!("tools/{name}.py"), &text);
    };
    tool("one", ", quiet", "quiet.value");
    tool("two", ", dies", "'dies' in sys.modules");
    tool("three", ", threads", "threads.threading.active_count()");
    tool("four", ", calm", "calm.value");
    tool("looks", "", "[name in sys.modules for name in ('quiet', 'dies', 'threads', 'calm')]");
    let tools = ready(&world, &["one", "two", "three", "four", "looks"]).await;
    assert_eq!(call(&tools, "one", json!({})).await.unwrap(), json!(7));
    assert_eq!(call(&tools, "two", json!({})).await.unwrap(), json!(true));
    assert_eq!(call(&tools, "three", json!({})).await.unwrap(), json!(2));
    // An interpreter that was begun before the fourth tool was read takes its calls until one that has tried its import is warm.
    let began = Instant::now();
    let imported = loop {
        assert_eq!(call(&tools, "four", json!({})).await.unwrap(), json!(8));
        let imported = call(&tools, "looks", json!({})).await.unwrap();
        if imported == json!([true, false, false, true]) || began.elapsed() > Duration::from_secs(60) {
            break imported;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(imported, json!([true, false, false, true]));
}
