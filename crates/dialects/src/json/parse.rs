//! The parser: strict, depth-limited, and complete about duplicate keys.

use std::borrow::Cow;
use std::collections::HashMap;

use super::escape::{BadEscape, read_escape, resolve};
use super::{Kind, Member, Node, Span};
use crate::diagnostic::shown;
use crate::{Diagnostics, DocumentLimits, Finding, Source};

/// Objects of up to this many members are searched for duplicate keys pair by pair, larger ones by a table.
const FEW_MEMBERS: usize = 16;

/// Parses a whole document.
///
/// `None` means that the text is not JSON or nests too deep; the reason is in `diagnostics` (one finding).
/// Duplicate keys (`E-28`) are findings too, each at the later key, but the tree is returned.
pub fn parse<'s>(
    source: &'s Source,
    limits: &DocumentLimits,
    diagnostics: &mut Diagnostics,
) -> Option<Node<'s>> {
    let nesting = limits.nesting_in_force();
    let mut parser = Parser { source, text: source.text(), at: 0, nesting, diagnostics };
    match parser.document() {
        Ok(node) => Some(node),
        Err(finding) => {
            diagnostics.push(*finding);
            None
        }
    }
}

struct Parser<'s, 'd> {
    source: &'s Source,
    text: &'s str,
    at: usize,
    nesting: usize,
    diagnostics: &'d mut Diagnostics,
}

type Parsed<T> = Result<T, Box<Finding>>;

impl<'s> Parser<'s, '_> {
    fn document(&mut self) -> Parsed<Node<'s>> {
        self.skip_space();
        if self.at == self.text.len() {
            return Err(Box::new(
                Finding::error("C-11", "empty-document", Span::new(0, 0), "the document is empty")
                    .help("write a JSON object, such as {\"task\": \"…\", \"nodes\": []}"),
            ));
        }
        let node = self.value(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.wrong(
                "there is more text behind the end of the document",
                "a document is one JSON value: remove what follows it, or check for a bracket too many",
            ));
        }
        Ok(node)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    fn value(&mut self, depth: usize) -> Parsed<Node<'s>> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(self.deeper(depth)?)?),
            Some(b'[') => Kind::Array(self.array(self.deeper(depth)?)?),
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            _ => self.literal()?,
        };
        Ok(Node { span: self.span_from(start), kind })
    }

    /// `E-28`: one level more, unless that is more than `json_nesting`.
    fn deeper(&self, depth: usize) -> Parsed<usize> {
        if depth < self.nesting {
            return Ok(depth + 1);
        }
        let limit = self.nesting;
        let message = format!("objects and arrays are nested more than {limit} levels deep");
        Err(Box::new(
            Finding::error("E-28", "nesting-limit", Span::new(self.at, self.at + 1), message)
                .help("flatten the document, or raise the setting `json_nesting` of `[limits]`"),
        ))
    }

    fn object(&mut self, depth: usize) -> Parsed<Vec<Member<'s>>> {
        let opened = self.at;
        let mut members = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(members);
        }
        loop {
            members.push(self.member(opened, depth)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(b'}') {
                        return Err(self.trailing_comma(comma));
                    }
                }
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(_) => {
                    return Err(self.wrong(
                        "expected `,` or `}` here",
                        "members of an object are separated by commas: is one missing before this place?",
                    ));
                }
                None => return Err(self.unclosed(opened, "object", '}')),
            }
        }
        self.report_duplicates(&members);
        Ok(members)
    }

    fn member(&mut self, opened: usize, depth: usize) -> Parsed<Member<'s>> {
        let key_start = self.at;
        let key = match self.peek() {
            Some(b'"') => self.string()?,
            None => return Err(self.unclosed(opened, "object", '}')),
            Some(_) => {
                return Err(self.wrong(
                    "expected a key in double quotes here",
                    "write keys as \"key\"; comments and keys without quotes are not JSON",
                ));
            }
        };
        let key_span = self.span_from(key_start);
        self.skip_space();
        match self.peek() {
            Some(b':') => self.at += 1,
            None => return Err(self.unclosed(opened, "object", '}')),
            Some(_) => {
                let message = format!("expected `:` behind the key {}", shown(&key));
                return Err(self.wrong(message, "a member of an object is written \"key\": value"));
            }
        }
        self.skip_space();
        if self.peek().is_none() {
            return Err(self.unclosed(opened, "object", '}'));
        }
        let value = self.value(depth)?;
        Ok(Member { key, key_span, value })
    }

    fn array(&mut self, depth: usize) -> Parsed<Vec<Node<'s>>> {
        let opened = self.at;
        let mut elements = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(elements);
        }
        loop {
            if self.peek().is_none() {
                return Err(self.unclosed(opened, "array", ']'));
            }
            elements.push(self.value(depth)?);
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.skip_space();
                    if self.peek() == Some(b']') {
                        return Err(self.trailing_comma(comma));
                    }
                }
                Some(b']') => {
                    self.at += 1;
                    return Ok(elements);
                }
                Some(_) => {
                    return Err(self.wrong(
                        "expected `,` or `]` here",
                        "elements of an array are separated by commas: is one missing before this place?",
                    ));
                }
                None => return Err(self.unclosed(opened, "array", ']')),
            }
        }
    }

    fn string(&mut self) -> Parsed<Cow<'s, str>> {
        let opened = self.at;
        self.at += 1;
        loop {
            let rest = self.rest();
            let stop = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20);
            let Some(stop) = stop else {
                let span = Span::new(opened, opened + 1);
                return Err(syntax(span, "this string is not closed", "end the string with a double quote"));
            };
            self.at += stop;
            match self.peek() {
                Some(b'"') => {
                    let inside = self.text.get(opened + 1..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(resolve(inside));
                }
                Some(b'\\') => {
                    let escape = self.rest();
                    let unit = read_escape(escape).map_err(|why| self.bad_escape(why, escape))?;
                    self.at += unit.written;
                }
                control => return Err(self.control_in_string(opened, control.unwrap_or_default())),
            }
        }
    }

    fn bad_escape(&self, why: BadEscape, escape: &str) -> Box<Finding> {
        let written: String = escape.chars().take(2).collect();
        let (length, message, help) = match why {
            BadEscape::Unknown => (
                written.len(),
                format!("{} is not an escape of JSON", shown(&written)),
                "to write a backslash itself, double it: \\\\",
            ),
            BadEscape::Digits => (
                2,
                "`\\u` must be followed by four hexadecimal digits".to_owned(),
                "write the character itself, or its four digits, such as \\u00e9",
            ),
            BadEscape::Surrogate => (
                6,
                "this escape is one half of a surrogate pair".to_owned(),
                "write the character itself, or both halves, such as \\ud83d\\ude00",
            ),
        };
        syntax(Span::new(self.at, (self.at + length).min(self.text.len())), message, help)
    }

    fn control_in_string(&self, opened: usize, control: u8) -> Box<Finding> {
        match control {
            b'\n' | b'\r' => syntax(
                Span::new(opened, self.at),
                "this string is not closed before the end of the line",
                "end the string with a double quote; a line break inside a string is written \\n",
            ),
            b'\t' => syntax(
                Span::new(self.at, self.at + 1),
                "a tab stands inside a string",
                "a tab inside a string is written \\t",
            ),
            other => syntax(
                Span::new(self.at, self.at + 1),
                format!("the control character U+{other:04X} stands inside a string"),
                format!("inside a string it is written \\u{other:04x}"),
            ),
        }
    }

    fn number(&mut self) -> Parsed<serde_json::Number> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        let mut complete = whole > 0;
        if self.peek() == Some(b'.') {
            self.at += 1;
            complete &= self.digits() > 0;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            complete &= self.digits() > 0;
        }
        let span = self.span_from(start);
        if !complete {
            let help = "a number needs digits before and behind its point, and in its exponent";
            return Err(syntax(span, "this number is not complete", help));
        }
        if leading_zero && whole > 1 {
            let help = "remove the zero, or put the digits in quotes if they are a text";
            return Err(syntax(span, "a number may not start with a zero", help));
        }
        let written = self.text.get(start..self.at).unwrap_or_default();
        written.parse().map_err(|_| {
            let help = "numbers reach from -1.8e308 to 1.8e308; put it in quotes if it is a text";
            syntax(span, "this number is out of range", help)
        })
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn literal(&mut self) -> Parsed<Kind<'s>> {
        let rest = self.rest();
        let word_length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, _) = rest.split_at(word_length);
        let kind = match word {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            _ => return Err(self.no_value(word)),
        };
        self.at += word_length;
        Ok(kind)
    }

    fn no_value(&self, word: &str) -> Box<Finding> {
        let first = self.text.get(..self.at).is_some_and(|before| before.trim().is_empty());
        let help = match word {
            "" if first && self.peek() == Some(b'`') => {
                "this is a block of Markdown: remove the lines with ```, around the JSON"
            }
            // Another format, and not a slip of the pen.
            _ if first && (!word.is_empty() || self.peek() == Some(b'#')) => {
                "JSON is read here, which starts with `{`: no YAML, and no other format"
            }
            "True" => "write true",
            "False" => "write false",
            "None" | "undefined" | "nil" => "write null",
            "NaN" | "Infinity" => "JSON has no such number: write null, or a text in quotes",
            "" => match self.peek() {
                Some(b'\'') => "strings stand in double quotes: \"text\"",
                Some(b'/' | b'#') => "JSON has no comments: remove it",
                Some(b',') => "is there a comma too many?",
                _ => {
                    "a value is an object, an array, a string in double quotes, a number, true, false or null"
                }
            },
            _ => "texts stand in double quotes: \"text\"",
        };
        if word.is_empty() {
            return self.wrong("expected a value here", help);
        }
        let span = Span::new(self.at, self.at + word.len());
        syntax(span, format!("{} is not a JSON value", shown(word)), help)
    }

    fn trailing_comma(&self, comma: usize) -> Box<Finding> {
        let help = "remove the comma, or write what should follow it";
        syntax(Span::new(comma, comma + 1), "nothing follows this comma", help)
    }

    fn unclosed(&self, opened: usize, what: &str, bracket: char) -> Box<Finding> {
        let place = self.source.place(opened);
        let message = format!("the document ends inside an {what}");
        let help = format!(
            "the {what} that starts at line {}, column {} needs its `{bracket}`",
            place.line, place.column
        );
        let end = self.text.trim_end().len();
        syntax(Span::new(end, end), message, help)
    }

    /// A syntax error at the next character.
    fn wrong(&self, message: impl Into<String>, help: &str) -> Box<Finding> {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        syntax(Span::new(self.at, self.at + length), message, help)
    }

    /// `E-28`: duplicate keys in a document are an error.
    fn report_duplicates(&mut self, members: &[Member<'s>]) {
        if members.len() <= FEW_MEMBERS {
            for (index, later) in members.iter().enumerate() {
                if let Some(first) = members.iter().take(index).find(|earlier| earlier.key == later.key) {
                    self.report_duplicate(first, later);
                }
            }
            return;
        }
        let mut seen: HashMap<&str, &Member<'s>> = HashMap::with_capacity(members.len());
        for later in members {
            match seen.get(later.key.as_ref()) {
                Some(first) => self.report_duplicate(first, later),
                None => {
                    seen.insert(&later.key, later);
                }
            }
        }
    }

    fn report_duplicate(&mut self, first: &Member<'_>, later: &Member<'_>) {
        let place = self.source.place(first.key_span.start as usize);
        let message = format!("the key {} occurs twice in this object", shown(&later.key));
        self.diagnostics.push(
            Finding::error("E-28", "duplicate-key", later.key_span, message)
                .help(format!("the first is at line {}, column {}: keep one", place.line, place.column)),
        );
    }
}

fn syntax(span: Span, message: impl Into<String>, help: impl Into<String>) -> Box<Finding> {
    Box::new(Finding::error("C-11", "json-syntax", span, message).help(help))
}
