//! Seeded randomness and content hashes: the same on every machine, so that a seed is a reproduction.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that `seed` determines.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        finish(self.0)
    }
    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        if n == 0 { 0 } else { usize::try_from(self.bits() % n).unwrap_or(0) }
    }
    /// A number in `low..=high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let width = usize::try_from(high - low + 1).unwrap_or(1);
        low + i64::try_from(self.below(width)).unwrap_or(0)
    }
    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    /// One of `items`, or `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
    /// One of `words`; `""` if there is none.
    pub fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        self.pick(words).copied().unwrap_or("")
    }
}

fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of a text under a seed (FNV-1a, finished).
pub fn hash(seed: u64, text: &str) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ finish(seed);
    finish(text.bytes().fold(start, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)))
}
