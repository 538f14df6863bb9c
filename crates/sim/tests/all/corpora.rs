//! Every fuzz corpus as an ordinary test: each file as it is, and seeded mutations of it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use selvedge_sim::fuzz::{TARGETS, Target, canary};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Mutations of one corpus file; `SELVEDGE_FUZZ_ROUNDS` raises it.
fn rounds() -> u64 {
    std::env::var("SELVEDGE_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Cuts, repeats, swaps and replaces pieces.
fn mutate(bytes: &[u8], seed: u64) -> Vec<u8> {
    const PIECES: [&[u8]; 14] =
        [b"{{", b"}}", b"{", b"}", b"[", b"]", b"\"", b"\\", b"null", b"-1", b"1e999", b"\xff", b"\n", b": "];
    let mut random = seed;
    let mut out = bytes.to_vec();
    for _ in 0..=next(&mut random) % 4 {
        let at = usize::try_from(next(&mut random)).unwrap_or(0) % (out.len() + 1);
        let len = usize::try_from(next(&mut random) % 12).unwrap_or(0).min(out.len() - at);
        let piece = PIECES[usize::try_from(next(&mut random)).unwrap_or(0) % PIECES.len()];
        match next(&mut random) % 4 {
            0 => drop(out.drain(at..at + len)),
            1 => {
                let copy = out[at..at + len].to_vec();
                out.splice(at..at, copy);
            }
            2 => drop(out.splice(at..at + len, piece.iter().copied())),
            _ => drop(out.splice(at..at, piece.iter().copied())),
        }
    }
    out
}

/// The first input that makes the target panic.
fn failure(target: Target, corpus: &[Vec<u8>], rounds: u64) -> Option<Vec<u8>> {
    let fails = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| target(input))).is_err();
    for (n, file) in corpus.iter().enumerate() {
        if fails(file) {
            return Some(file.clone());
        }
        for round in 0..rounds {
            let input = mutate(file, (n as u64) << 32 | round);
            if fails(&input) {
                return Some(input);
            }
        }
    }
    None
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no corpus for the target {name}");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn no_target_fails_on_its_corpus() {
    for (name, target) in TARGETS {
        if let Some(input) = failure(target, &corpus(name), rounds()) {
            panic!("target {name} fails on {:?}", String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn every_target_is_registered_with_cargo_fuzz() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml lacks {name}");
    }
}

#[test]
fn the_canary_is_heard() {
    assert!(failure(canary, &[b"a bird".to_vec()], 0).is_some());
    assert!(failure(canary, &[b"a fish".to_vec()], 5).is_none());
}
