//! Agents over many seeds: forks with edits are held against fresh runs.

use selvedge_sim::agents::SimAgent;
use selvedge_sim::agents::forks::{Met, edited};
use selvedge_sim::workflows::forks::POINTS;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds of agents, each of which is forked several times.
fn seeds(agents: u64) -> std::ops::Range<u64> {
    match number("SELVEDGE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SELVEDGE_SIM_FORKS").map_or(agents, |forks| forks.div_ceil(POINTS as u64)),
    }
}

/// E-29: what was reused is what a fresh run would have said. What the property is about happens in it.
#[test]
fn e29_agents_fork_with_edits() {
    let (mut met, seeds) = (Met::default(), seeds(60));
    let all = seeds.end - seeds.start;
    let mut wrong = Vec::new();
    for seed in seeds {
        let agent = SimAgent::random(seed);
        match edited(&agent, seed) {
            Ok(more) => met += more,
            Err(error) => wrong.push(format!("seed {seed}: {error}\n{:#}", agent.document)),
        }
    }
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} of {all} agents, the shortest: {}", wrong.len(), wrong[0]);
    if all >= 50 {
        let forks = usize::try_from(all).unwrap() * POINTS;
        assert!(met.taken > forks && met.sent > forks, "{met:?} of {forks} forks");
        assert!(met.moved > forks / 5 && met.messages > forks / 5, "{met:?} of {forks} forks");
    }
}
