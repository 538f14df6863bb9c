//! Random workflows.

use super::block::{Block, Cut, Kind, Paths, Rounds, SimWorkflow, Strategy, THREADS, VARIABLES};
use crate::rng::{Rng, hash};

/// The longest list that there is.
pub const LIST: usize = 4;

/// The workflow of a seed.
pub fn workflow(seed: u64) -> SimWorkflow {
    let mut rng = Rng::new(hash(seed, "workflow"));
    let (faults, task, output) = (rng.chance(60), rng.chance(50), rng.chance(30));
    let mut maker = Maker { rng, number: 0 };
    let depth = maker.rng.below(4);
    let blocks = maker.blocks(depth, &VARIABLES);
    SimWorkflow { seed, faults, task, output, blocks }
}

struct Maker {
    rng: Rng,
    /// Of the questions and calls: each is another one.
    number: usize,
}

impl Maker {
    fn blocks(&mut self, depth: usize, seen: &[&'static str]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for _ in 0..=self.rng.below(3) {
            let block = self.block(depth, seen);
            let exports = matches!(&block, Block::Fork { export: Some(_), .. });
            blocks.push(block);
            // What a path that did not complete exports is null, with which nothing can be computed.
            if exports && self.rng.chance(60) {
                blocks.push(Block::Set { name: "x", of: "y", more: 1 });
            }
        }
        blocks
    }

    fn block(&mut self, depth: usize, seen: &[&'static str]) -> Block {
        let handled = self.rng.chance(60);
        let about = self.rng.pick(seen).copied().unwrap_or("x");
        let thread = *self.rng.pick(&THREADS).unwrap_or(&"main");
        let some = self.rng.chance(50).then_some(thread);
        self.number += 1;
        let number = self.number;
        match self.rng.below(if depth == 0 { 10 } else { 17 }) {
            0 | 1 => self.set(seen),
            2..=4 => Block::Ask { thread, about, number, handled },
            5 | 6 => Block::Call { thread: some, about, number, handled },
            7 => Block::Cut { thread, cut: self.cut() },
            8 => {
                let kind =
                    *self.rng.pick(&[Kind::Approve, Kind::Answer, Kind::Edit]).unwrap_or(&Kind::Answer);
                Block::Person { kind, thread: some.filter(|_| kind != Kind::Approve), about, number, handled }
            }
            9 => Block::Plan { about, number, handled },
            10 | 11 => {
                let of = self.rng.word(&["x", "y"]);
                let of = if of == "y" { "y" } else { "x" };
                let (even, odd) = (self.blocks(depth - 1, seen), self.blocks(depth - 1, seen));
                Block::Choose { of, route: self.rng.chance(50), even, odd }
            }
            12 | 13 => self.repeat(depth, seen, handled),
            14 | 15 => self.fork(depth, seen, handled),
            _ => Block::Sub { body: self.blocks(depth - 1, seen), out: self.rng.chance(50), handled },
        }
    }

    fn set(&mut self, seen: &[&'static str]) -> Block {
        let numbers: Vec<&'static str> = seen.iter().copied().filter(|name| *name != "e").collect();
        let name = if self.rng.chance(60) { "x" } else { "y" };
        let of = self.rng.pick(&numbers).copied().unwrap_or("x");
        Block::Set { name, of, more: self.rng.within(0, 4) }
    }

    fn cut(&mut self) -> Cut {
        match self.rng.below(5) {
            0 => Cut::Users { and_models: self.rng.chance(50) },
            1 => Cut::Clear,
            2 => Cut::Summarise(self.rng.below(4)),
            _ => Cut::Trim(self.rng.below(5)),
        }
    }

    fn repeat(&mut self, depth: usize, seen: &[&'static str], handled: bool) -> Block {
        let mut inner = seen.to_vec();
        inner.push("index");
        let rounds = match self.rng.below(3) {
            0 => Rounds::Count(self.rng.below(LIST)),
            1 => {
                inner.push("item");
                Rounds::Over(self.rng.below(LIST + 1))
            }
            _ => Rounds::While { below: self.rng.within(0, 9), limit: 1 + self.rng.below(4) },
        };
        let mut body = self.blocks(depth - 1, &inner);
        if matches!(rounds, Rounds::While { .. }) && self.rng.chance(80) {
            body.push(Block::Set { name: "x", of: "x", more: 3 });
        }
        Block::Repeat { rounds, body, handled }
    }

    fn fork(&mut self, depth: usize, seen: &[&'static str], handled: bool) -> Block {
        let serial = self.rng.chance(50);
        let paths = if self.rng.chance(60) {
            Paths::Listed((0..=self.rng.below(3)).map(|_| self.blocks(depth - 1, seen)).collect())
        } else {
            let mut inner = seen.to_vec();
            inner.extend(["index", "item"]);
            Paths::Each(self.rng.below(LIST + 1), self.blocks(depth - 1, &inner))
        };
        // What comes of the others depends on who is first, where paths run at the same time.
        let strategy = match self.rng.below(if serial { 6 } else { 3 }) {
            0 => Strategy::AllCompleted,
            1 => Strategy::AllFailed,
            2 => Strategy::AllEnded,
            3 => Strategy::AnyCompleted,
            4 => Strategy::AnyFailed,
            _ => Strategy::Threshold(1 + self.rng.below(paths.len().max(1))),
        };
        let listed = matches!(paths, Paths::Listed(_));
        let some = |rng: &mut Rng| if paths.is_empty() { None } else { Some(rng.below(paths.len())) };
        let main = if self.rng.chance(50) { some(&mut self.rng) } else { None };
        let export = if listed && self.rng.chance(70) { some(&mut self.rng) } else { None };
        Block::Fork { serial, strategy, main, export, handled, paths }
    }
}
