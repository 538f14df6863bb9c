//! What had finished ahead of its turn stands in a fork that changes nothing but messages. Runs of earlier editions begin it anew
//! and take what is recorded (E-42): both have to come to the same.

use super::{Asked, Source, asked, editable};
use crate::driver::Sim;
use crate::plan::SimPlan;
use crate::rng::Rng;
use selvedge_engine::{EDITION, Fork};
use std::collections::BTreeMap;

/// A fork anywhere, with a message edited or without, of a run of today's edition and of the same run of an earlier one: the same end and,
/// unless that is a failure, no other requests and no more events of its own. How many fewer there are, in all.
///
/// # Errors
/// What differs, and where the run was forked.
pub fn stands(plan: &SimPlan, seed: u64) -> Result<usize, String> {
    let mut rng = Rng::new(seed);
    let source = Source::new(plan, rng.bits())?;
    let edits = editable(&source, &source.sim.journal.records()?);
    let mut spared = 0;
    for _ in 0..4 {
        let (mut world, mut fork, mut last) = (BTreeMap::new(), Fork::default(), source.len());
        if rng.chance(50)
            && let Some((came, effect)) = rng.pick(&edits)
            && let Some((at, content)) = source.sim.contents.get(effect)
        {
            let node = plan.nodes.get(*at).map(|def| def.id.clone()).unwrap_or_default();
            let bare = content.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
            world.insert((node, bare), "edited".to_owned());
            fork.texts = [(effect.clone(), "edited".into())].into();
            last = *came;
        }
        let shared = 1 + rng.below(last.min(source.len()));
        let what =
            |error: String| format!("forked at {shared} of {}, {:?}: {error}", source.len(), fork.texts);
        let seed = rng.bits();
        let mut before = source.sim.journal.cut(shared);
        let sides = [EDITION, 5].map(|edition| {
            if let Some(start) = before.lines.first_mut() {
                *start = start.replace(&format!("\"edition\":{EDITION}"), &format!("\"edition\":{edition}"));
            }
            let sim = source.fork_of(&before, &world, seed, fork.clone())?;
            let asked = asked(plan, &sim, shared)?;
            Ok((sim, asked))
        });
        let [now, then]: [Result<(Sim<'_>, Asked), String>; 2] = sides;
        let ((now, asks), (then, asked)) = (now.map_err(what)?, then.map_err(what)?);
        // Who looks at the world again may see something else.
        if asks.impure || asked.impure {
            continue;
        }
        let (end, expected) = (now.observed().without_requests(), then.observed().without_requests());
        expected.same(&end, "standing").map_err(what)?;
        // What need not begin anew lets others get further before a failure ends the run.
        if end.status == "failed" {
            continue;
        }
        // A node that begins anew makes its failed calls again.
        let sent = |content: &str| asked.counts.get(content).map_or(0, |(sent, _)| *sent);
        if let Some((content, (times, _))) =
            asks.counts.iter().find(|(content, (times, _))| *times > sent(content))
        {
            return Err(what(format!("sends {times} times and not {}: {content}", sent(content))));
        }
        match then.journal.len().checked_sub(now.journal.len()) {
            Some(fewer) => spared += fewer,
            None => return Err(what(format!("{} events, not {}", now.journal.len(), then.journal.len()))),
        }
    }
    Ok(spared)
}
