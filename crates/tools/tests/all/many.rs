//! Metadata of many tool files, and of hostile ones: read without running any, bounded, and each named.

use crate::world::{World, source};
use selvedge_tools::Catalogue;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_files_are_known_in_moments() {
    let world = World::new();
    for number in 0..1000 {
        let body = format!("def helper(a):\n    return [a * {number} for _ in range(3)]\n").repeat(10);
        let body = format!("{body}def run(i):\n    return {number}");
        world.tool(&format!("t{number}"), ", 'effects': 'read', 'network': False", &body);
    }
    let mut times = Vec::new();
    for _ in 0..4 {
        let start = Instant::now();
        let tools = Catalogue::load(world.config()).await.unwrap();
        times.push(start.elapsed());
        assert_eq!(tools.names().filter(|name| name.starts_with('t')).count(), 1000);
        assert_eq!(tools.warnings(), []);
    }
    eprintln!("1,000 files: cold {:?}, warm {:?}", times[0], &times[1..]);
    // Loosely: other tests run at the same time. The numbers to be held are in docs/decisions/0010-environments.md.
    assert!(times[1..].iter().min().unwrap() < &Duration::from_secs(2), "{times:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_are_named_and_stop_nobody() {
    let world = World::new();
    let good = source("t", "", "def run(i):\n    return 1");
    world.tool("good", "", "def run(i):\n    return 1");
    let meta = |name: &str| good.replace("'name': 't'", name);
    for (name, text) in [
        ("nested", format!("x = {}1{}\n{good}", "[".repeat(100_000), "]".repeat(100_000))),
        ("minus", format!("x = {}1\n{good}", "-".repeat(500_000))),
        ("attributes", format!("x = a{}\n{good}", ".a".repeat(300_000))),
        ("sums", format!("x = 1{}\n{good}", "+1".repeat(300_000))),
        ("surrogate", meta("'name': '\\ud800'")),
        ("digits", meta(&format!("'name': 't', 'timeout': {}", "9".repeat(4000)))),
        ("digits2", meta(&format!("'name': 't', 'timeout': {}", "9".repeat(9000)))),
        ("coding", format!("# coding: no-such-coding\n{good}")),
        ("nothing", String::new()),
        ("two_blocks", format!("# /// script\n# a = 1\n# ///\n\n# /// script\n# a = 1\n# ///\n{good}")),
    ] {
        // What some versions of Python can read is a tool with a name of its own.
        let text = text.replace("'name': 't'", &format!("'name': '{name}'"));
        world.write(&format!("tools/{name}.py"), &text);
    }
    std::fs::write(world.path("tools/nul.py"), format!("{good}\0")).unwrap();
    std::fs::write(world.path("tools/latin.py"), [good.as_bytes(), b"y = '\xe9'\n"].concat()).unwrap();
    std::fs::write(world.path("tools/large.py"), vec![b'#'; 10 << 20]).unwrap();
    std::fs::write(
        world.path("tools/utf16.py"),
        good.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    )
    .unwrap();
    // What is no file is no tool: nobody waits for a pipe, and links to folders lead nowhere.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("tools/pipe.py"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("nowhere.py", world.path("tools/dangling.py")).unwrap();
    std::os::unix::fs::symlink("loop.py", world.path("tools/loop.py")).unwrap();
    std::os::unix::fs::symlink("..", world.path("tools/folder.py")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path("tools/zero.py")).unwrap();
    let start = Instant::now();
    let tools = Catalogue::load(world.config()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(100), "{:?}", start.elapsed());
    assert!(tools.contains("good"));
    tools.prepare(&["good"]).await.unwrap();
    for (name, part) in [
        ("nested", "nested"),
        ("surrogate", "surrogate"),
        ("digits", "too large"),
        ("digits2", "valid Python"),
        ("coding", "valid Python"),
        ("nothing", "no __TOOL_META__"),
        ("two_blocks", "two blocks"),
        ("nul", "valid Python"),
        ("latin", "valid Python"),
        ("utf16", "valid Python"),
        ("large", "larger than"),
    ] {
        let error = tools.broken().get(name).unwrap_or_else(|| panic!("{name} is no tool")).to_string();
        assert!(error.contains(part) && error.contains(&format!("{name}.py")), "{name}: {error}");
    }
    for name in ["minus", "attributes", "sums"] {
        let named = tools.broken().get(name).is_some_and(|error| error.to_string().contains("read"));
        assert!(named || tools.contains(name), "{name}: {:?}", tools.broken().get(name));
    }
    for name in ["pipe", "folder", "zero"] {
        assert!(!tools.contains(name) && !tools.broken().contains_key(name), "{name}");
    }
    for name in ["dangling", "loop"] {
        assert!(tools.broken().contains_key(name), "{name} is left out and named");
    }
}

#[tokio::test]
async fn dependencies_may_stand_in_a_block_of_the_file() {
    let world = World::new();
    let file = |name: &str, block: &str, meta: &str| {
        let tool = source(name, "", "def run(i):\n    return 1");
        world.write(
            &format!("tools/{name}.py"),
            &format!("{block}\n{}", tool.replace(", 'dependencies': []", meta)),
        );
    };
    let block =
        "# /// script\n# requires-python = \">=3.9\"\n# dependencies = [\n#   \"Idna>=3\",\n# ]\n# ///\n";
    file("alone", block, "");
    file("equal", block, ", 'dependencies': ['idna >= 3']");
    file("other", block, ", 'dependencies': ['attrs']");
    file("newer", "# /// script\n# requires-python = \">=3.99\"\n# ///\n", "");
    file("path", "# /// script\n# dependencies = [\"x @ file:///etc\"]\n# ///\n", "");
    file("sourced", "# /// script\n# [tool.uv]\n# index-url = \"http://127.0.0.1:1/\"\n# ///\n", "");
    let tools = world.load().await;
    assert!(tools.contains("alone") && tools.contains("equal") && tools.contains("sourced"));
    let broken = |name: &str| tools.broken()[name].to_string();
    let both = broken("other");
    assert!(both.contains("[attrs] in __TOOL_META__ and [Idna>=3] in the block"), "{both}");
    assert!(broken("newer").contains("requires Python >=3.99"), "{}", broken("newer"));
    assert!(broken("path").contains("addresses are not taken"), "{}", broken("path"));
    let ignored: Vec<_> = tools.warnings().iter().filter(|w| &*w.code == "unknown-tool-key").collect();
    assert!(ignored.len() == 1 && ignored[0].message.contains("# /// script: tool"), "{ignored:?}");
}

/// nobody's home is meant by `~`, and nobody is left to think so.
#[tokio::test]
async fn a_tilde_in_a_declared_path_is_told() {
    let world = World::new();
    let tool = source("home", "", "def run(i):\n    return 1");
    let meta = ", 'dependencies': [], 'effects': 'read', 'read_paths': ['~/.ssh', 'data']";
    world.write("tools/home.py", &tool.replace(", 'dependencies': []", meta));
    let tools = world.load().await;
    let told: Vec<_> = tools.warnings().iter().filter(|w| &*w.code == "tilde-in-path").collect();
    assert!(told.len() == 1 && told[0].message.contains("`~/.ssh`"), "{told:?}");
}
