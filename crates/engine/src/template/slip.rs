//! Text that is written almost like a placeholder (D-09), and the placeholder that is probably meant.

use super::name::{is_digits, is_name_char, is_name_start, normalized};
use super::path::{Path, Seg};

/// Longer content between braces is prose or code.
const LONGEST: usize = 200;

/// Text that is almost a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slip {
    /// As written, braces included.
    pub raw: Box<str>,
    /// Byte offset of `raw` in the source text.
    pub offset: usize,
    /// The name that it begins with.
    pub root: Box<str>,
    /// Whether a dot or a bracket follows that name.
    pub goes_on: bool,
    /// The path that is probably meant.
    pub meant: Option<Path>,
    /// Whether all that is wrong is one missing brace at the end.
    pub is_half_closed: bool,
}

impl Slip {
    /// `{{`, a path and one brace.
    pub(super) fn half_closed(raw: &str, path: Path, offset: usize) -> Self {
        let (root, goes_on) = (Box::from(&*path.root), !path.rest.is_empty());
        Self { raw: raw.into(), offset, root, goes_on, meant: Some(path), is_half_closed: true }
    }
}

/// The slip that `text` begins with, if it begins with an opening, a name, something that is no path, and the braces
/// that close it.
pub(super) fn almost(text: &str, offset: usize) -> Option<Slip> {
    let (open, close) = if text.starts_with("{{") { ("{{", "}}") } else { ("${", "}") };
    let inner = text.strip_prefix(open)?;
    let content = inner.get(..inner.find(['{', '}'])?)?;
    if content.len() > LONGEST || !inner.get(content.len()..)?.starts_with(close) {
        return None;
    }
    let path = content.trim();
    let root = path.get(..name_length(path)?)?;
    let goes_on = path.get(root.len()..)?.trim_start().starts_with(['.', '[', '?']);
    Some(Slip {
        raw: text.get(..open.len() + content.len() + close.len())?.into(),
        offset,
        root: normalized(root).into(),
        goes_on,
        meant: lenient_path(path),
        is_half_closed: false,
    })
}

/// The bytes of the name that a text begins with.
fn name_length(text: &str) -> Option<usize> {
    if !text.starts_with(is_name_start) {
        return None;
    }
    Some(text.find(|c| !is_name_char(c)).unwrap_or(text.len()))
}

/// A path as other template languages write it: with spaces, quotes of any kind, `?.`, `.-1`, and filters behind it.
fn lenient_path(text: &str) -> Option<Path> {
    let (root, mut rest) = text.split_at_checked(name_length(text)?)?;
    let mut path = Path { root: normalized(root).into(), rest: Vec::new() };
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('|') {
            return Some(path);
        }
        let (seg, after) = segment(rest)?;
        path.rest.push(seg);
        rest = after;
    }
}

fn segment(text: &str) -> Option<(Seg, &str)> {
    let text = text.strip_prefix('?').unwrap_or(text);
    if let Some(inner) = text.strip_prefix('[') {
        let (content, after) = inner.split_once(']')?;
        let content = content.trim();
        let quoted = |quote: char| content.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        let key = ['\'', '"', '`'].into_iter().find_map(quoted);
        let seg = match key {
            Some(key) => Seg::Key(key.into()),
            None => index(content).or_else(|| key_of(content))?,
        };
        return Some((seg, after));
    }
    let text = text.strip_prefix('.')?.trim_start();
    let sign = usize::from(text.starts_with('-'));
    let digits = text.get(sign..)?.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - sign);
    let length = if digits > 0 { sign + digits } else { name_length(text)? };
    let (name, after) = text.split_at_checked(length)?;
    Some((if sign == 1 { index(name)? } else { Seg::Key(normalized(name).into()) }, after))
}

fn index(text: &str) -> Option<Seg> {
    let is_index = is_digits(text.strip_prefix('-').unwrap_or(text));
    is_index.then(|| text.parse().ok().map(Seg::Index)).flatten()
}

fn key_of(text: &str) -> Option<Seg> {
    (name_length(text) == Some(text.len())).then(|| Seg::Key(text.into()))
}
