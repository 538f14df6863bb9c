//! C-18: what a search finds in documents with known defects, and that it finds nothing in sound ones.

use selvedge_sim::planted::{Planted, corpus};
use selvedge_world::{Finding, Report, Search, World, one, search};
use std::sync::atomic::AtomicBool;

const PLANTED: &str = include_str!("../../../world/corpus/planted.yaml");
const SOUND: &str = include_str!("../../../world/corpus/sound.yaml");

/// Seeds of each sound document; `SELVEDGE_SIM_SEEDS=1000` for as many as the command takes.
fn seeds() -> u64 {
    std::env::var("SELVEDGE_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(100)
}

fn searched(world: &World, seeds: u64, threads: usize) -> Report {
    let stop = AtomicBool::new(false);
    search(world, &Search { seeds, threads, stop: &stop, progress: &|_| {} })
}

fn told(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|it| format!("{} seed {} {}: {}", it.kind.name(), it.seed, it.node, it.message))
        .collect()
}

fn named<'d>(documents: &'d [Planted], name: &str) -> Option<&'d Planted> {
    documents.iter().find(|document| document.name == name)
}

#[test]
fn c18_defects_are_found() {
    let documents = corpus(PLANTED).unwrap();
    assert_eq!(documents.len(), 50);
    let missed: Vec<String> = documents
        .iter()
        .filter_map(|document| {
            let mut world = document.world().unwrap();
            world.most = 2_000;
            let of_it = |finding: &Finding| Some(finding.kind.name()) == document.kind.as_deref();
            // Most are found at once.
            let found = [40, 200, 1_000]
                .into_iter()
                .find(|seeds| searched(&world, *seeds, 2).findings.iter().any(of_it));
            found.is_none().then(|| document.name.clone())
        })
        .collect();
    assert!(missed.is_empty(), "{} of 50 are missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn c18_sound_documents_are_sound() {
    let documents = corpus(SOUND).unwrap();
    assert_eq!(documents.len(), 50);
    for document in &documents {
        let report = searched(&document.world().unwrap(), seeds(), 2);
        assert!(report.findings.is_empty(), "{}: {:#?}", document.name, told(&report.findings));
        // Who has not run has nothing to say.
        assert!(report.completed > 0, "{}: {} runs failed: {:?}", document.name, report.failed, report.calm);
    }
}

/// The same seed brings the same, whoever searches, and alone as among others.
#[test]
fn c18_a_seed_repeats() {
    let documents = corpus(PLANTED).unwrap();
    for document in documents.iter().step_by(7) {
        let world = document.world().unwrap();
        let (alone, together) = (searched(&world, 200, 1), searched(&world, 200, 3));
        assert_eq!(told(&alone.findings), told(&together.findings), "{}", document.name);
        for (a, b) in alone.findings.iter().zip(&together.findings) {
            assert_eq!((&a.hits, &a.records), (&b.hits, &b.records), "{}", document.name);
        }
        let seed = alone.findings.first().map_or(1, |first| first.seed);
        let stop = AtomicBool::new(false);
        let how = Search { seeds: 64, threads: 1, stop: &stop, progress: &|_| {} };
        let (first, again) = (one(&world, seed, &how), one(&world, seed, &how));
        assert_eq!(first.0.records, again.0.records, "{}", document.name);
        assert_eq!(told(&first.1), told(&again.1), "{}", document.name);
    }
}

/// A finding has no more bad luck than it takes.
#[test]
fn c18_findings_are_small() {
    let documents = corpus(PLANTED).unwrap();
    let takes = |name: &str, kind: &str| {
        let report = searched(&named(&documents, name).unwrap().world().unwrap(), 250, 2);
        let finding = report.findings.iter().find(|it| it.kind.name() == kind);
        let finding = finding.unwrap_or_else(|| panic!("{name}: {:#?}", told(&report.findings)));
        finding.hits.len()
    };
    assert_eq!(takes("a loop while true", "limit-reached"), 0);
    assert_eq!(takes("what comes first is the output", "order-dependent"), 0);
    assert_eq!(takes("a question without a time", "ask-unanswered"), 1);
    assert_eq!(takes("a question behind a fault", "ask-unanswered"), 2);
    assert_eq!(takes("a call that writes", "write-in-doubt"), 1);
    assert_eq!(takes("a call that is tried again", "write-repeated"), 1);
    assert_eq!(takes("a fault that is handled leads into a loop without an end", "limit-reached"), 1);
}

/// The journal of a finding is one of the document: a fold of it is the state that comes with it, and a replay of its inputs gives all
/// of it again.
#[test]
fn c18_findings_replay() {
    use selvedge_engine::{Input, State};
    let documents = corpus(PLANTED).unwrap();
    for document in &documents {
        let world = document.world().unwrap();
        for finding in searched(&world, 60, 2).findings {
            let mut state = State::new(world.graph().clone());
            for (n, record) in finding.records.iter().enumerate() {
                state.tick(record.at);
                let event = match Input::from_event(record.event.clone()) {
                    Some(input) => state.accept(input),
                    None => state.step(),
                };
                assert_eq!(event.as_ref(), Some(&record.event), "{}: event {}", document.name, n + 1);
                state.apply_record(record);
            }
            assert_eq!(state.status(), finding.state.status(), "{}", document.name);
        }
    }
}
