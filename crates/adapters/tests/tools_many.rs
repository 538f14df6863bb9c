//! Metadata of many tool files, and of hostile ones: read without running any, bounded, and each named.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod tools_common;

use selvedge_adapters::tools::Catalogue;
use std::time::{Duration, Instant};
use tools_common::{World, source};

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
