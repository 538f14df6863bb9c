//! Which tools are alike enough to be compared at all (V-06): by the words of their names, descriptions and schemas, rare ones before
//! frequent ones.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Tools in a block, at most.
const MOST: usize = 50;
/// Tools that one is compared with, at most: the nearest.
const NEIGHBOURS: usize = 10;
/// From how much on two are alike, of 1.
const ALIKE: f32 = 0.3;
/// Words that more tools than this have tell nothing.
const FREQUENT: usize = 500;
/// Words of a description that count.
const LONGEST: usize = 60;

/// The words of a tool, with their weights.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(BTreeMap<String, f32>);

impl Words {
    /// Names count more than fields, and these more than what is told.
    pub(super) fn of(name: &str, description: &str, schema: &Value) -> Self {
        let mut words = Self::default();
        words.add(name, 3.0, usize::MAX);
        words.add(description, 1.0, LONGEST);
        for field in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|it| it.keys())
        {
            words.add(field, 1.5, usize::MAX);
        }
        words
    }

    fn add(&mut self, text: &str, weight: f32, most: usize) {
        let letter = |c: char| !c.is_alphanumeric();
        for word in text.split(letter).filter(|word| word.chars().nth(1).is_some()).take(most) {
            let word = word.to_lowercase();
            // Of the forms of a word, the beginning is the same.
            let stem: String = word.chars().take(6).collect();
            let known = self.0.entry(stem).or_insert(0.0);
            *known = known.max(weight);
        }
    }
}

/// Divides tools into blocks of those that are alike, each at most so large; the larger part of them is alone.
pub(super) fn blocks(tools: &[Words]) -> Vec<Vec<usize>> {
    let vectors = vectors(tools);
    let mut having: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, vector) in vectors.iter().enumerate() {
        for (word, _) in vector {
            having.entry(*word).or_default().push(at);
        }
    }
    having.retain(|_, tools| tools.len() <= FREQUENT);
    let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
    let mut found: HashMap<usize, f32> = HashMap::new();
    let weights: Vec<HashMap<usize, f32>> =
        vectors.iter().map(|vector| vector.iter().copied().collect()).collect();
    for (at, vector) in vectors.iter().enumerate() {
        found.clear();
        for (word, weight) in vector {
            for other in having.get(word).into_iter().flatten().filter(|other| **other < at) {
                let theirs = weights.get(*other).and_then(|it| it.get(word)).copied().unwrap_or_default();
                *found.entry(*other).or_default() += weight * theirs;
            }
        }
        let mut near: Vec<(f32, usize)> = found
            .iter()
            .filter(|(_, alike)| **alike >= ALIKE)
            .map(|(other, alike)| (*alike, *other))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        pairs.extend(near.into_iter().take(NEIGHBOURS).map(|(alike, other)| (alike, other, at)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut united = United::new(tools.len());
    for (_, a, b) in pairs {
        united.unite(a, b, MOST);
    }
    united.sets()
}

/// The weights of words that more than one tool has, of length 1 a tool.
fn vectors(tools: &[Words]) -> Vec<Vec<(usize, f32)>> {
    let mut numbers: HashMap<&str, (usize, usize)> = HashMap::new();
    for word in tools.iter().flat_map(|tool| tool.0.keys()) {
        let next = numbers.len();
        numbers.entry(word).or_insert((next, 0)).1 += 1;
    }
    let all = tools.len() as f32;
    let weighed = |(word, weight): (&String, &f32)| {
        let (number, having) = numbers.get(word.as_str())?;
        Some((*number, weight * (all / *having as f32).ln_1p()))
    };
    let scaled = |tool: &Words| {
        let vector: Vec<(usize, f32)> = tool.0.iter().filter_map(weighed).collect();
        let length =
            vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.into_iter().map(|(word, weight)| (word, weight / length)).collect()
    };
    tools.iter().map(scaled).collect()
}

/// Sets that are united by and by.
pub(super) struct United {
    parent: Vec<usize>,
    size: Vec<usize>,
}

impl United {
    /// Each alone.
    pub(super) fn new(count: usize) -> Self {
        Self { parent: (0..count).collect(), size: vec![1; count] }
    }

    /// What stands for the set of this one.
    pub(super) fn find(&self, mut at: usize) -> usize {
        while let Some(parent) = self.parent.get(at).filter(|parent| **parent != at) {
            at = *parent;
        }
        at
    }

    /// Makes one set of two, if it has at most so many.
    pub(super) fn unite(&mut self, a: usize, b: usize, most: usize) {
        let (a, b) = (self.find(a), self.find(b));
        let size = |at: usize| self.size.get(at).copied().unwrap_or(0);
        let (small, large) = if size(a) < size(b) { (a, b) } else { (b, a) };
        let both = size(small) + size(large);
        if small == large || both > most {
            return;
        }
        if let (Some(parent), Some(size)) = (self.parent.get_mut(small), self.size.get_mut(large)) {
            (*parent, *size) = (large, both);
        }
    }

    /// The sets, each in order, by their first.
    pub(super) fn sets(&self) -> Vec<Vec<usize>> {
        let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.parent.len() {
            sets.entry(self.find(at)).or_default().push(at);
        }
        let mut sets: Vec<Vec<usize>> = sets.into_values().collect();
        sets.sort();
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str, field: &str) -> Words {
        Words::of(name, description, &json!({"properties": {field: {"type": "string"}}}))
    }

    /// V-06: what does the same by its words comes into one block, also among many others, and no block is larger than a prompt bears.
    #[test]
    fn v06_what_is_alike_is_in_one_block() {
        let (verbs, things) =
            (["read", "count", "join", "draw", "sort"], ["table", "date", "graph", "length", "price"]);
        let mut tools = Vec::new();
        for n in 0..1_000 {
            let (verb, thing) = (verbs[n % 5], things[n / 5 % 5]);
            let about = format!("{verb}s the {thing} of kind k{} and tells m{}", n / 25, n * 7);
            tools.push(tool(&format!("{verb}_{thing}_k{}", n / 25), &about, &format!("f{}", n % 91)));
        }
        let same = tools.len();
        tools.push(tool("parse_invoice", "Reads an invoice and gives its total", "invoice"));
        tools.push(tool("invoice_reader", "Gives the total of invoices that it reads", "invoice"));
        let blocks = blocks(&tools);
        let mut all: Vec<usize> = blocks.concat();
        all.sort_unstable();
        assert_eq!(all, (0..tools.len()).collect::<Vec<_>>(), "each is in one block");
        assert!(blocks.iter().all(|block| block.len() <= MOST));
        assert!(blocks.contains(&vec![same, same + 1]), "{blocks:?}");
    }

    #[test]
    fn v06_nothing_and_tools_without_words_are_blocks_too() {
        assert!(blocks(&[]).is_empty());
        assert_eq!(blocks(&[Words::default(), Words::default()]), [vec![0], vec![1]]);
        let alike: Vec<Words> = (0..300).map(|_| tool("parse_date", "Reads dates", "text")).collect();
        assert!(blocks(&alike).iter().all(|block| block.len() <= MOST));
    }
}
