//! D-06 … D-10 against a second, naive reading of the rules: character by character, trying every possible end.
//!
//! `SELVEDGE_PROPTEST_CASES` sets the number of cases of each property (default 2,000).

use proptest::prelude::*;
use selvedge_engine::template::{JsonTemplate, Layers, OnMissing, Seg, StepView, Template};
use serde_json::{Map, Value, json};

/// What the rules make of a text.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Hole { raw: String, root: String, rest: Vec<Seg>, offset: usize },
}

fn is_name(text: &[char]) -> bool {
    // The letters and numbers among the characters that the texts below are made of.
    let letter = |c: char| c.is_ascii_alphabetic() || "éß杭Ⅵ".contains(c);
    let number = |c: char| c.is_ascii_digit() || "ि٣".contains(c);
    if !text.is_empty() && text.iter().all(char::is_ascii_digit) {
        return true;
    }
    let ok = |(i, &c): (usize, &char)| letter(c) || c == '_' || (i > 0 && (number(c) || c == '-'));
    !text.is_empty() && text.iter().enumerate().all(ok)
}

/// One whole segment, or nothing.
fn seg(text: &[char]) -> Option<Seg> {
    if let ['.', name @ ..] = text {
        return is_name(name).then(|| Seg::Key(name.iter().collect::<String>().into()));
    }
    let ['[', inner @ .., ']'] = text else { return None };
    let inner: String = inner.iter().collect();
    if inner.starts_with('"') {
        // No space around it, and no further token in it, is what `from_str` and the last character make sure of.
        return serde_json::from_str::<String>(&inner)
            .ok()
            .filter(|_| inner.ends_with('"'))
            .map(|k| Seg::Key(k.into()));
    }
    let digits = inner.strip_prefix('-').unwrap_or(&inner);
    let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    number.then(|| Seg::Index(inner.parse().unwrap()))
}

fn segs(text: &[char]) -> Option<Vec<Seg>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    (1..=text.len()).find_map(|end| {
        let first = seg(&text[..end])?;
        let mut rest = segs(&text[end..])?;
        rest.insert(0, first);
        Some(rest)
    })
}

fn path(text: &[char]) -> Option<(String, Vec<Seg>)> {
    (1..=text.len())
        .filter(|&end| is_name(&text[..end]))
        .find_map(|end| Some((text[..end].iter().collect(), segs(&text[end..])?)))
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn trim(mut text: &[char]) -> &[char] {
    while let [first, rest @ ..] = text
        && is_space(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_space(*last)
    {
        text = rest;
    }
    text
}

fn at(text: &[char], i: usize, what: &str) -> bool {
    what.chars().enumerate().all(|(k, c)| text.get(i + k) == Some(&c))
}

fn byte(text: &[char], i: usize) -> usize {
    text[..i].iter().map(|c| c.len_utf8()).sum()
}

/// The pieces, or the byte offset of an unfinished placeholder.
fn reference(text: &str) -> Result<Vec<Piece>, usize> {
    let text: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut i = 0;
    'text: while i < text.len() {
        if text[i] == '\\' {
            let run = text[i..].iter().take_while(|c| **c == '\\').count();
            let opening = at(&text, i + run, "{{") || at(&text, i + run, "${");
            literal.push_str(&"\\".repeat(if opening { run / 2 } else { run }));
            i += run;
            if opening && run % 2 == 1 {
                literal.extend(&text[i..i + 2]);
                i += 2;
            }
            continue;
        }
        for (open, close) in [("{{{", "}}}"), ("{{", "}}"), ("${", "}")] {
            if !at(&text, i, open) {
                continue;
            }
            let start = i + open.len();
            for end in start..text.len() {
                if at(&text, end, close)
                    && let Some((root, rest)) = path(trim(&text[start..end]))
                {
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    }
                    let raw = text[i..end + close.len()].iter().collect();
                    pieces.push(Piece::Hole { raw, root, rest, offset: byte(&text, i) });
                    i = end + close.len();
                    continue 'text;
                }
            }
            if open != "{{{" {
                let left = trim(&text[start..]);
                if path(left).is_some() {
                    return Err(byte(&text, i));
                }
            }
        }
        literal.push(text[i]);
        i += 1;
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    Ok(pieces)
}

/// Every name that begins with a letter is a text: so a bare name is found, and a longer path is missing.
struct Bare(Value);

impl Layers for Bare {
    fn is_step(&self, _: &str) -> bool {
        false
    }
    fn step(&self, _: &str) -> StepView<'_> {
        StepView::NotRun
    }
    fn runtime(&self, name: &str) -> Option<&Value> {
        name.starts_with(char::is_alphabetic).then_some(&self.0)
    }
    fn initial(&self, _: &str) -> Option<&Value> {
        None
    }
    fn fallback(&self, _: &str) -> Option<&Value> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

fn expected_text(pieces: &[Piece], missing: OnMissing) -> String {
    let render = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Hole { root, rest, .. } if rest.is_empty() && root.starts_with(char::is_alphabetic) => {
            "{{a}}".into()
        }
        Piece::Hole { raw, .. } => {
            if missing == OnMissing::Keep {
                raw.clone()
            } else {
                "null".into()
            }
        }
    };
    pieces.iter().map(render).collect()
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let template = match (Template::parse(text), reference(text)) {
        (Err(error), Err(offset)) => {
            prop_assert_eq!(error.offset, offset);
            prop_assert!(text.is_char_boundary(offset));
            return Ok(());
        }
        (Ok(template), Ok(pieces)) => (template, pieces),
        (ours, naive) => return Err(TestCaseError::fail(format!("{text:?}: {ours:?}, not {naive:?}"))),
    };
    let (template, pieces) = template;
    prop_assert_eq!(template.source(), text);
    let holes: Vec<Piece> = template
        .placeholders()
        .map(|p| Piece::Hole {
            raw: p.raw.to_string(),
            root: p.path.root.to_string(),
            rest: p.path.rest.clone(),
            offset: p.offset,
        })
        .collect();
    let layers = Bare(json!("{{a}}"));
    for missing in [OnMissing::Keep, OnMissing::Null] {
        let expected = expected_text(&pieces, missing);
        prop_assert_eq!(template.render_text(&layers, missing).unwrap(), expected.clone());
        let alone = matches!(&*pieces, [Piece::Hole { .. }]);
        let value = template.render_value(&layers, missing).unwrap();
        let expected = if alone && expected == "null" { Value::Null } else { Value::String(expected) };
        prop_assert_eq!(value, expected);
    }
    for placeholder in template.placeholders() {
        prop_assert!(text[placeholder.offset..].starts_with(&*placeholder.raw));
        // A path written out is the same path.
        let again = Template::parse(&format!("{{{{{}}}}}", placeholder.path)).unwrap();
        prop_assert_eq!(&again.placeholders().next().unwrap().path, &placeholder.path);
    }
    let naive: Vec<Piece> = pieces.into_iter().filter(|piece| matches!(piece, Piece::Hole { .. })).collect();
    prop_assert_eq!(holes, naive);
    Ok(())
}

/// Texts of fragments that are likely to stand for something together.
fn nasty() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "{",
        "{{",
        "{{{",
        "}",
        "}}",
        "}}}",
        "$",
        "${",
        "\\",
        "\\\\",
        "a",
        "b-1",
        "output",
        "0",
        "12",
        "_",
        "é",
        "杭",
        "²",
        "Ⅵ",
        "ि",
        "٣",
        "ß",
        ".",
        "..",
        "[",
        "]",
        "[0]",
        "[-1]",
        "[\"k\"]",
        "[\"}}\"]",
        "[\"{{a\"]",
        "[\"",
        "\"]",
        "\"",
        "\\\"",
        " ",
        "\n",
        "-",
        ".a",
        ".0",
        "{{a}}",
        "{{ a.b ",
        "${a",
        "{{{a}}}",
        "\u{a0}",
        "#if",
        ":",
        "🦀",
        "\u{1}",
    ]);
    prop::collection::vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

/// Placeholders that are nearly, or fully, right: opening, path, closing, each at times damaged.
fn nearly_right() -> impl Strategy<Value = String> {
    let open = prop::sample::select(vec!["{{", "{{{", "${", "\\{{", "\\\\${", "${{", "{", "{{{{"]);
    let space = prop::sample::select(vec!["", "", "", " ", " \n", "\u{a0}"]);
    let root = prop::sample::select(vec!["a", "data_1", "12", "a-b", "杭", "1a", "", "a b"]);
    let seg = prop::sample::select(vec![
        ".output",
        ".0",
        ".é",
        "[0]",
        "[-12]",
        "[\"odd.key\"]",
        "[\"\\\"}}\\u00e9\"]",
        "[\"\"]",
        ".",
        "[",
        "[x]",
        ".-1",
    ]);
    let close = prop::sample::select(vec!["}}", "}}}", "}", "}}", "", "} }"]);
    let one = (open, space.clone(), root, prop::collection::vec(seg, 0..3), space, close).prop_map(
        |(open, before, root, segs, after, close)| {
            [open, before, root, &segs.concat(), after, close].concat()
        },
    );
    prop::collection::vec(one, 1..4).prop_map(|all| all.concat())
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("SELVEDGE_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn fragments_read_as_the_rules_say(text in nasty()) {
        check(&text)?;
    }

    #[test]
    fn damaged_placeholders_read_as_the_rules_say(text in nearly_right()) {
        check(&text)?;
    }

    /// No text makes it panic, and none is changed but where the rules say so.
    #[test]
    fn any_text_is_read(text in "\\PC*") {
        if let Ok(template) = Template::parse(&text) {
            prop_assert_eq!(template.source(), &text);
            if !text.contains("{{") && !text.contains("${") {
                prop_assert_eq!(template.literal(), Some(&*text));
            }
        }
    }

    /// A text with its openings escaped renders as itself.
    #[test]
    fn escaped_texts_render_as_themselves(text in nasty()) {
        let mut escaped = String::new();
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            let run = rest.chars().take_while(|c| *c == '\\').count();
            let (slashes, after) = rest.split_at(run);
            if after.starts_with("{{") || after.starts_with("${") {
                escaped.push_str(slashes);
                escaped.push_str(slashes);
                escaped.push('\\');
                escaped.push_str(&after[..2]);
                rest = &after[2..];
            } else if run > 0 {
                escaped.push_str(slashes);
                rest = after;
            } else {
                escaped.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        let template = Template::parse(&escaped).unwrap();
        prop_assert_eq!(template.literal(), Some(&*text), "{}", escaped);
    }

    /// A tree is resolved string by string and key by key, and keeps the order of its members.
    #[test]
    fn trees_are_their_strings(texts in prop::collection::vec(nasty(), 1..6)) {
        let tree = json!([texts, {"k": texts}, texts.iter().map(|t| (t.clone(), json!(t))).collect::<Map<_, _>>()]);
        let layers = Bare(json!("{{a}}"));
        let parsed: Result<Vec<_>, _> = texts.iter().map(|t| Template::parse(t)).collect();
        match (JsonTemplate::parse(&tree), parsed) {
            (Err(error), Err(first)) => prop_assert_eq!(error.error, first),
            (Ok(tree_template), Ok(templates)) => {
                prop_assert_eq!(tree_template.source(), &tree);
                let value = |t: &Template| t.render_value(&layers, OnMissing::Keep).unwrap();
                let values: Vec<Value> = templates.iter().map(value).collect();
                let mut members = Map::new();
                let mut equal = false;
                for (source, template) in tree[2].as_object().unwrap().keys().map(|s| (s, Template::parse(s).unwrap())) {
                    let key = template.render_text(&layers, OnMissing::Keep).unwrap();
                    equal |= members.insert(key, value(&template)).is_some();
                    prop_assert_eq!(template.source(), source);
                }
                match tree_template.resolve(&layers, OnMissing::Keep) {
                    Ok(resolved) => {
                        prop_assert!(!equal);
                        let expected = json!([values, {"k": values}, members]);
                        prop_assert_eq!(resolved.to_string(), expected.to_string());
                    }
                    Err(_) => prop_assert!(equal),
                }
            }
            (ours, theirs) => return Err(TestCaseError::fail(format!("{ours:?} / {theirs:?}"))),
        }
    }
}
