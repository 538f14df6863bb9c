//! Sentences for people, out of what servers say.

use crate::text::bounded;

/// Bytes of a provider's own words that a fault's message repeats.
const WORDS_KEPT: usize = 400;
/// Bytes of a web page's words that it repeats.
const PAGE_KEPT: usize = 200;

/// What happened, what the provider says about it, and what to do: one text without a full stop at its end, since
/// more may follow.
pub(super) fn sentence(head: &str, words: &str, help: &str) -> String {
    let mut text = head.to_owned();
    if !words.is_empty() {
        text.push_str(": ");
        text.push_str(words);
    }
    let mut letters = help.chars();
    if let Some(first) = letters.next() {
        if text.ends_with(['.', '!', '?']) {
            text.push(' ');
            text.extend(first.to_uppercase());
        } else {
            text.push_str(": ");
            text.push(first);
        }
        text.push_str(letters.as_str());
    }
    text.truncate(text.trim_end_matches('.').len());
    text
}

/// A text in one line, for a message.
pub(super) fn plain(text: &str) -> String {
    bounded(&in_line(text), WORDS_KEPT)
}

/// A body in one line: of a web page, what a reader of it would see first.
pub(super) fn told(body: &str) -> String {
    page(body).unwrap_or_else(|| plain(body))
}

/// The title of a web page, else its first words; `None` for what is no page.
pub(super) fn page(body: &str) -> Option<String> {
    let text = body.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return None;
    }
    // Keeps every offset.
    let lower = text.to_ascii_lowercase();
    let title = || {
        let from = lower.find("<title")?;
        let to = from + lower.get(from..)?.find("</title")?;
        text.get(from..to)?.split_once('>').map(|(_, title)| in_line(title)).filter(|title| !title.is_empty())
    };
    let words = title().unwrap_or_else(|| in_line(&without_tags(text, &lower)));
    let words = bounded(&words, PAGE_KEPT);
    Some(if words.is_empty() { "a web page".to_owned() } else { format!("a web page, `{words}`") })
}

/// The text between tags; what scripts and styles hold is none.
fn without_tags(text: &str, lower: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    while let Some(rest) = text.get(at..).filter(|_| out.len() < 4 * PAGE_KEPT) {
        let Some(open) = rest.find('<') else {
            out.push_str(rest);
            break;
        };
        out.push_str(rest.get(..open).unwrap_or_default());
        out.push(' ');
        let from = at + open;
        let tag = lower.get(from..).unwrap_or_default();
        let hidden =
            ["script", "style"].iter().find(|name| tag.get(1..).is_some_and(|tag| tag.starts_with(**name)));
        let closed = hidden.and_then(|name| tag.find(&format!("</{name}"))).unwrap_or(0);
        match tag.get(closed..).and_then(|tag| tag.find('>')) {
            Some(end) => at = from + closed + end + 1,
            None => break,
        }
    }
    out
}

fn in_line(text: &str) -> String {
    text.split_whitespace().take(200).collect::<Vec<_>>().join(" ")
}
