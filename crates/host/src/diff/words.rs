//! Which words of two texts differ.

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;

/// A comparison by words takes at most so many steps in the worst case; one by lines as many. What is longer is compared as a
/// whole, but for what both begin and end with: a comparison must end, whatever a model or a tool said.
const STEPS: usize = 4_000_000;

/// Whether a part of a text is in both, or in one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// In both.
    Same,
    /// In the first only.
    Removed,
    /// In the second only.
    Added,
}

/// A part of two texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Where it is.
    pub tag: Tag,
    /// What it says.
    pub text: String,
}

/// The parts of two texts: those that are the same or were removed are the first text, those that are the same or were added
/// the second.
pub fn pieces(a: &str, b: &str) -> Vec<Piece> {
    let (before, a, b, after) = trimmed(a, b);
    let mut between = Pieces::default();
    let compared = between.compare(&words(a), &words(b)) || between.compare(&lines(a), &lines(b));
    if !compared || between.is_another_text(a, b) {
        between = Pieces::default();
        between.change(a, b);
    }
    let mut pieces = Pieces::default();
    pieces.add(Tag::Same, before);
    between.0.into_iter().for_each(|piece| pieces.add(piece.tag, &piece.text));
    pieces.add(Tag::Same, after);
    pieces.0
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    /// Whether so little is the same that reading one text after the other is easier.
    fn is_another_text(&self, a: &str, b: &str) -> bool {
        let same = self.0.iter().filter(|piece| piece.tag == Tag::Same).map(|piece| piece.text.len());
        same.sum::<usize>() * 5 < a.len().min(b.len())
    }

    /// Compares the parts of two texts, if that is not too much.
    fn compare(&mut self, a: &[&str], b: &[&str]) -> bool {
        if a.len().saturating_mul(b.len()) > STEPS {
            return false;
        }
        let of = |parts: &[&str], range: Range<usize>| parts.get(range).unwrap_or_default().concat();
        // What is changed, until it is known what comes behind it.
        let (mut removed, mut added) = (String::new(), String::new());
        let ops = capture_diff_slices(Algorithm::Myers, a, b);
        let last = ops.len().saturating_sub(1);
        for (at, op) in ops.iter().enumerate() {
            let old = of(a, op.old_range());
            match op {
                // A blank or a sign between two changes is a part of them.
                DiffOp::Equal { .. }
                    if 0 < at && at < last && !old.contains(char::is_alphanumeric) && old.len() <= 3 =>
                {
                    removed.push_str(&old);
                    added.push_str(&old);
                }
                DiffOp::Equal { .. } => {
                    self.change(&removed, &added);
                    (removed, added) = (String::new(), String::new());
                    self.add(Tag::Same, &old);
                }
                _ => {
                    removed.push_str(&old);
                    added.push_str(&of(b, op.new_range()));
                }
            }
        }
        self.change(&removed, &added);
        true
    }

    fn change(&mut self, removed: &str, added: &str) {
        self.add(Tag::Removed, removed);
        self.add(Tag::Added, added);
    }

    fn add(&mut self, tag: Tag, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.tag == tag => last.text.push_str(text),
            _ => self.0.push(Piece { tag, text: text.to_owned() }),
        }
    }
}

/// What two texts begin with, what is left of each, and what they end with. Words stay whole.
fn trimmed<'t>(a: &'t str, b: &'t str) -> (&'t str, &'t str, &'t str, &'t str) {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let begin = boundary(a, b, same, |text, at| text.get(..at).is_some_and(ends_word));
    let (before, rest_a, rest_b) = (cut(a, 0, begin), cut(a, begin, a.len()), cut(b, begin, b.len()));
    let same = rest_a.bytes().rev().zip(rest_b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let end = boundary(rest_a, rest_b, same, |text, at| {
        text.len().checked_sub(at).and_then(|at| text.get(at..)).is_some_and(begins_word)
    });
    let (to_a, to_b) = (rest_a.len() - end, rest_b.len() - end);
    (before, cut(rest_a, 0, to_a), cut(rest_b, 0, to_b), cut(rest_a, to_a, rest_a.len()))
}

/// The largest length up to `most` at which neither text is cut within a word.
fn boundary(a: &str, b: &str, most: usize, whole: impl Fn(&str, usize) -> bool) -> usize {
    if most == a.len() && most == b.len() {
        return most;
    }
    (0..=most).rev().find(|at| *at == 0 || whole(a, *at) && whole(b, *at)).unwrap_or(0)
}

fn cut(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

fn ends_word(text: &str) -> bool {
    text.chars().next_back().is_none_or(|last| kind(last) != Kind::Word)
}

fn begins_word(text: &str) -> bool {
    text.chars().next().is_none_or(|first| kind(first) != Kind::Word)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Word,
    Space,
    /// A sign, or a character of a script that sets no spaces: each for itself.
    Single,
}

fn kind(character: char) -> Kind {
    match character {
        other if other.is_whitespace() => Kind::Space,
        other if other < '\u{2e80}' && (other.is_alphanumeric() || other == '_') => Kind::Word,
        _ => Kind::Single,
    }
}

/// The words of a text, with what is between them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = kind(first);
        let end = match of {
            Kind::Single => first.len_utf8(),
            _ => rest.find(|other: char| kind(other) != of).unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        words.push(word);
        rest = behind;
    }
    words
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
