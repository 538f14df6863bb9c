//! From text to words: numbers, texts, names and signs.

use super::ExpressionError;
use crate::template::{is_name_start, normalized};
use std::sync::Arc;
use winnow::Parser;
use winnow::ascii::{digit1, hex_digit1};
use winnow::combinator::{alt, opt, preceded};
use winnow::error::EmptyError;
use winnow::token::{one_of, take_while};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A number without a sign: `-9223372036854775808` is one, too.
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Name(Arc<str>),
    /// A name in backquotes, which may stand behind a dot.
    Quoted(Arc<str>),
    Sign(&'static str),
    End,
}

/// A word, and the byte offset at which it begins.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) at: usize,
    pub(super) word: Word,
}

/// Longer ones first.
const SIGNS: [&str; 24] = [
    "<=", ">=", "==", "!=", "&&", "||", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "+", "-", "*", "/",
    "%", "!", "<", ">",
];

type Read<T> = Result<T, EmptyError>;

/// All words of a text, and [`Word::End`] behind them.
pub(super) fn words(text: &str) -> Result<Vec<Placed>, ExpressionError> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = behind_space(rest);
        let at = text.len() - rest.len();
        if rest.is_empty() {
            words.push(Placed { at, word: Word::End });
            return Ok(words);
        }
        let word = word(&mut rest).map_err(|(inside, message)| ExpressionError::new(at + inside, message))?;
        words.push(Placed { at, word });
    }
}

/// Spaces and comments mean nothing.
fn behind_space(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        match text.strip_prefix("//") {
            Some(comment) => text = comment.find('\n').map_or("", |end| comment.split_at(end).1),
            None => return text,
        }
    }
}

/// What is wrong, and how far behind the beginning of the word.
type Wrong = (usize, String);

fn word(rest: &mut &str) -> Result<Word, Wrong> {
    let start = *rest;
    if let Some((raw, after)) = text_prefix(start)? {
        let (text, left) =
            text(after, raw).map_err(|(inside, message)| (start.len() - after.len() + inside, message))?;
        *rest = left;
        return Ok(Word::Text(text.into()));
    }
    if let Ok(number) = number.parse_next(rest) {
        return number.read();
    }
    *rest = start;
    if let Ok(name) = name.parse_next(rest) {
        return Ok(Word::Name(normalized(name).into()));
    }
    *rest = start;
    if let Ok(name) = quoted.parse_next(rest) {
        return Ok(Word::Quoted(name.into()));
    }
    for sign in SIGNS {
        if let Some(after) = start.strip_prefix(sign) {
            *rest = after;
            return Ok(Word::Sign(sign));
        }
    }
    let found = start.chars().next().unwrap_or_default();
    let message = match found {
        '=' => "`=` is no operator; equality is `==`".to_owned(),
        '&' | '|' => format!("`{found}` is no operator; write `{found}{found}`"),
        '$' => "names are written without `$` and braces: `n1.output`".to_owned(),
        '`' => "a name in backquotes stands behind a dot and holds letters, digits, `_`, `.`, `-`, `/` and spaces".to_owned(),
        _ => format!("`{}` does not belong to an expression", found.escape_default()),
    };
    Err((0, message))
}

fn name<'t>(input: &mut &'t str) -> Read<&'t str> {
    (one_of(is_name_start), take_while(0.., unicode_ident::is_xid_continue)).take().parse_next(input)
}

fn quoted<'t>(input: &mut &'t str) -> Read<&'t str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
    winnow::combinator::delimited('`', take_while(1.., inside), '`').parse_next(input)
}

/// A number as it is written.
struct Number<'t> {
    digits: &'t str,
    kind: Numeral,
}

enum Numeral {
    Decimal { unsigned: bool },
    Hex { unsigned: bool },
    Double,
}

fn number<'t>(input: &mut &'t str) -> Read<Number<'t>> {
    let unsigned = || opt(one_of(['u', 'U'])).map(|suffix: Option<char>| suffix.is_some());
    let hex = (preceded(alt(("0x", "0X")), hex_digit1), unsigned())
        .map(|(digits, unsigned)| Number { digits, kind: Numeral::Hex { unsigned } });
    let exponent = || (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1).void();
    let fraction = || ('.', digit1).void();
    let double = alt((
        (digit1, fraction(), opt(exponent())).take(),
        (digit1, exponent()).take(),
        (fraction(), opt(exponent())).take(),
    ))
    .map(|digits| Number { digits, kind: Numeral::Double });
    let decimal =
        (digit1, unsigned()).map(|(digits, unsigned)| Number { digits, kind: Numeral::Decimal { unsigned } });
    alt((hex, double, decimal)).parse_next(input)
}

impl Number<'_> {
    fn read(&self) -> Result<Word, Wrong> {
        let (radix, unsigned) = match self.kind {
            Numeral::Double => {
                let number: Option<f64> = self.digits.parse().ok().filter(|number: &f64| number.is_finite());
                return number.map(Word::Double).ok_or_else(|| too_large(self.digits));
            }
            Numeral::Hex { unsigned } => (16, unsigned),
            Numeral::Decimal { unsigned } => (10, unsigned),
        };
        let number = u64::from_str_radix(self.digits, radix).map_err(|_| too_large(self.digits))?;
        Ok(if unsigned { Word::Uint(number) } else { Word::Int(number) })
    }
}

fn too_large(digits: &str) -> Wrong {
    let shown: String = digits.chars().take(40).collect();
    (0, format!("the number {shown} is too large"))
}

/// If a text begins here: whether it is a raw one, and what follows the prefix.
fn text_prefix(start: &str) -> Result<Option<(bool, &str)>, Wrong> {
    let after = start.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = start.split_at(start.len() - after.len()).0;
    if !after.starts_with(['"', '\'']) {
        return Ok(None);
    }
    match prefix {
        "" => Ok(Some((false, after))),
        "r" | "R" => Ok(Some((true, after))),
        "b" | "B" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB" => {
            Err((0, "bytes are not supported; a text is written without `b`".to_owned()))
        }
        _ => Err((0, format!("`{prefix}` can't stand before a text"))),
    }
}

/// A text from its quotes on, and what follows it.
fn text(source: &str, raw: bool) -> Result<(String, &str), Wrong> {
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let Some((quote, mut rest)) = quotes.iter().find_map(|quote| Some((*quote, source.strip_prefix(quote)?)))
    else {
        return Err((0, "a text begins with a quote".to_owned()));
    };
    let mut text = String::new();
    loop {
        if let Some(after) = rest.strip_prefix(quote) {
            return Ok((text, after));
        }
        let at = source.len() - rest.len();
        let mut chars = rest.chars();
        match chars.next() {
            None => return Err((0, format!("the text is not closed: add {quote}"))),
            Some('\n' | '\r') if quote.len() == 1 => {
                return Err((
                    at,
                    format!("a line ends within a text; write `\\n`, or {0}{0}{0} around it", quote),
                ));
            }
            Some('\\') if !raw => {
                let (found, after) = escape(chars.as_str()).map_err(|message| (at, message))?;
                text.push(found);
                rest = after;
            }
            Some(found) => {
                text.push(found);
                rest = chars.as_str();
            }
        }
    }
}

/// The character that is written behind a backslash, and what follows.
fn escape(rest: &str) -> Result<(char, &str), String> {
    let mut chars = rest.chars();
    let sign = chars.next().unwrap_or_default();
    let after = chars.as_str();
    let plain = match sign {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '?' | '"' | '\'' | '`' => sign,
        'x' | 'X' => return coded(after, 2, 16),
        'u' => return coded(after, 4, 16),
        'U' => return coded(after, 8, 16),
        '0'..='3' => return coded(rest, 3, 8),
        _ => return Err("no such escape; a backslash is written as `\\\\`, or the text as r\"…\"".to_owned()),
    };
    Ok((plain, after))
}

fn coded(rest: &str, length: usize, radix: u32) -> Result<(char, &str), String> {
    let (digits, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
    let all = digits.len() == length && digits.chars().all(|c| c.is_digit(radix));
    let code = if all { u32::from_str_radix(digits, radix).ok() } else { None };
    let found = code.and_then(char::from_u32);
    Ok((found.ok_or_else(|| format!("this escape is {length} digits that say which character"))?, after))
}
