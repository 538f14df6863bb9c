//! How many tokens a text has for a model, as OpenAI's encodings count them; for other models that is an estimate.
//!
//! Special tokens such as `<|endoftext|>` are ordinary text here, as they are where a text is sent as a message. Counting takes time that grows with
//! the text and no faster than n log n, whatever is in it: what models and tools say is hostile. Tables are read when they are first needed,
//! which takes a tenth of a second: not where others wait.

mod counts;
mod merge;
mod pieces;
mod tables;

pub use counts::Counts;
use merge::Merging;
use pieces::Pieces;
use tables::Table;

/// How texts are cut into tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `cl100k_base`.
    #[default]
    Cl100kBase,
    /// `o200k_base`.
    O200kBase,
}

impl Encoding {
    /// Their names.
    pub const NAMES: [(&'static str, Self); 2] =
        [("cl100k_base", Self::Cl100kBase), ("o200k_base", Self::O200kBase)];

    /// The encoding of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, encoding)| *encoding)
    }

    /// How many tokens a text has.
    pub fn count(self, text: &str) -> u64 {
        let mut count = 0;
        self.each(text, |_| count += 1);
        count
    }

    /// At most so many tokens of a text from its beginning, in whole characters.
    pub fn head(self, text: &str, tokens: u64) -> &str {
        let (mut left, mut end) = (tokens, 0);
        self.each(text, |bytes| {
            if left > 0 {
                (left, end) = (left - 1, end + bytes);
            }
        });
        text.get(..text.floor_char_boundary(end)).unwrap_or_default()
    }

    /// At most so many tokens of a text before its end, in whole characters.
    pub fn tail(self, text: &str, tokens: u64) -> &str {
        let mut lengths = Vec::new();
        self.each(text, |bytes| lengths.push(bytes));
        let most = usize::try_from(tokens).unwrap_or(usize::MAX);
        let bytes: usize = lengths.iter().rev().take(most).sum();
        let begin = text.ceil_char_boundary(text.len().saturating_sub(bytes));
        text.get(begin..).unwrap_or_default()
    }

    /// The tokens of a text, each by its number of bytes.
    fn each(self, text: &str, mut token: impl FnMut(usize)) {
        let table = Table::of(self);
        let mut merging = Merging::default();
        for piece in Pieces::of(self, text) {
            merging.each(table, piece.as_bytes(), &mut token);
        }
    }
}

#[cfg(test)]
mod tests;
