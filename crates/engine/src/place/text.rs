//! Places as texts: the only code that writes and reads them.

use super::{AskPlace, CallPlace, EffectPlace, FramePath, FramePathRef, FrameStep, Instance, Place};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::str::FromStr;

/// Characters that are escaped, one bit each: all of them are ASCII.
#[derive(Clone, Copy)]
pub(super) struct Reserved(u128);

/// In the id of a node of the root frame, in ids within frames, and in the name of a leaf.
const ROOT: Reserved = Reserved::new(b"%/~");
pub(super) const NESTED: Reserved = Reserved::new(b"%/~[]#");
const LEAF: Reserved = Reserved::new(b"%/~.");

impl Reserved {
    const fn new(mut bytes: &[u8]) -> Self {
        let mut set = 0;
        while let [first, rest @ ..] = bytes {
            set |= 1 << *first;
            bytes = rest;
        }
        Self(set)
    }

    fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 >> byte & 1 == 1
    }

    /// Whether there is nothing to escape, as mostly.
    fn spares(self, text: &str) -> bool {
        !text.bytes().any(|byte| self.has(byte))
    }
}

fn escape(out: &mut impl Write, text: &str, reserved: Reserved) -> fmt::Result {
    if reserved.spares(text) {
        return out.write_str(text);
    }
    text.chars().try_for_each(|c| match u8::try_from(c) {
        Ok(byte) if reserved.has(byte) => write!(out, "%{byte:02X}"),
        _ => out.write_char(c),
    })
}

/// Whether a node's id stands in every place as it is.
pub(super) fn is_plain(node: &str) -> bool {
    NESTED.spares(node)
}

/// A name as it stands in a place.
pub(super) fn escaped(text: &str, reserved: Reserved) -> Cow<'_, str> {
    if reserved.spares(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let written = escape(&mut out, text, reserved);
    debug_assert!(written.is_ok(), "a text takes what is written to it");
    Cow::Owned(out)
}

/// The character that a code stands for.
fn stands_for(code: &str) -> Option<u8> {
    Some(match code {
        "25" => b'%',
        "2F" => b'/',
        "7E" => b'~',
        "5B" => b'[',
        "5D" => b']',
        "23" => b'#',
        "2E" => b'.',
        _ => return None,
    })
}

/// The name that `escape` wrote as this text.
pub(super) fn unescape(text: &str, reserved: Reserved) -> Option<Cow<'_, str>> {
    if reserved.spares(text) {
        return Some(Cow::Borrowed(text));
    }
    let mut parts = text.split('%');
    let plain = |part: &&str| reserved.spares(part);
    let mut name = parts.next().filter(plain)?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(char::from(stands_for(code).filter(|byte| reserved.has(*byte))?));
        name.push_str(Some(rest).filter(plain)?);
    }
    Some(Cow::Owned(name))
}

/// Splits at the first such byte, which is ASCII. Ids are short, and read for each event of an effect: for them this is several
/// times faster than the search for a pattern.
fn cut(text: &str, at: u8) -> Option<(&str, &str)> {
    split_around(text, text.bytes().position(|byte| byte == at)?)
}

/// Splits at the last such byte.
fn cut_last(text: &str, at: u8) -> Option<(&str, &str)> {
    split_around(text, text.bytes().rposition(|byte| byte == at)?)
}

fn split_around(text: &str, at: usize) -> Option<(&str, &str)> {
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// A number, in the one way that it is written.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// A number behind a separator. Most have one digit.
fn write_number(out: &mut impl Write, separator: char, n: usize) -> fmt::Result {
    out.write_char(separator)?;
    match u8::try_from(n) {
        Ok(digit @ 0..=9) => out.write_char(char::from(b'0' + digit)),
        _ => write!(out, "{n}"),
    }
}

/// A number with a name before it, if there is a dot.
fn numbered(text: &str) -> Option<(&str, Option<usize>)> {
    match cut(text, b'.') {
        Some((name, slot)) => Some((name, Some(number(slot)?))),
        None => Some((text, None)),
    }
}

impl<'a> FramePathRef<'a> {
    /// The path that a text is, if it is one.
    pub fn parse(text: &'a str) -> Option<Self> {
        let sound = text.is_empty() || text.split('/').all(|step| FrameStep::parse(step).is_some());
        sound.then_some(Self(text))
    }

    /// The frames, from the outermost.
    pub fn steps(self) -> impl DoubleEndedIterator<Item = FrameStep<'a>> + use<'a> {
        let steps = (!self.0.is_empty()).then(|| self.0.split('/'));
        steps.into_iter().flatten().filter_map(FrameStep::parse)
    }

    /// The frame around this one, and this one in it; `None` for the root.
    pub fn parent(self) -> Option<(Self, FrameStep<'a>)> {
        let (around, step) = cut_last(self.0, b'/').unwrap_or(("", self.0));
        Some((Self(around), FrameStep::parse(step)?))
    }

    pub(super) fn with(self, step: &FrameStep<'_>) -> String {
        let mut text = String::with_capacity(self.0.len() + step.node.len() + 16);
        let written = self.write(&mut text).and_then(|()| step.write(&mut text));
        debug_assert!(written.is_ok(), "a text takes what is written to it");
        text
    }

    /// The beginning of what is in the frame.
    fn write(self, out: &mut impl Write) -> fmt::Result {
        out.write_str(self.0)?;
        if self.0.is_empty() { Ok(()) } else { out.write_char('/') }
    }

    /// What is escaped in the ids of the nodes of the frame.
    fn reserved(self) -> Reserved {
        if self.0.is_empty() { ROOT } else { NESTED }
    }

    /// The frame of a text, and the rest.
    fn split(text: &'a str) -> Option<(Self, &'a str)> {
        match cut_last(text, b'/') {
            Some((frames, rest)) => Some((Self::parse(frames).filter(|frames| !frames.is_root())?, rest)),
            None => Some((Self::default(), text)),
        }
    }
}

impl<'a> FrameStep<'a> {
    fn write(&self, out: &mut impl Write) -> fmt::Result {
        escape(out, &self.node, NESTED)?;
        write_number(out, '~', self.visit.max(1) as usize)?;
        match &self.instance {
            Instance::Sub => Ok(()),
            Instance::Path(path) => {
                out.write_char('[')?;
                escape(out, path, NESTED)?;
                out.write_char(']')
            }
            Instance::Iteration(n) => write_number(out, '#', *n as usize),
        }
    }

    fn parse(text: &'a str) -> Option<Self> {
        let (node, rest) = cut(text, b'~')?;
        let end = rest.find(['[', '#']).unwrap_or(rest.len());
        let (visit, instance) = rest.split_at_checked(end)?;
        let instance = match (instance.strip_prefix('#'), instance.strip_prefix('[')) {
            (Some(n), _) => Instance::Iteration(number(n)?),
            (_, Some(path)) => Instance::Path(unescape(path.strip_suffix(']')?, NESTED)?),
            _ => Instance::Sub,
        };
        let visit = number(visit).filter(|visit| *visit >= 1)?;
        Some(Self { node: unescape(node, NESTED)?, visit, instance })
    }
}

impl<'a> Place<'a> {
    /// Whether a name, without the frame in which that node is, is the node's. Most can be told at a glance.
    pub(crate) fn is_of(name: &'a str, node: &str) -> bool {
        if is_plain(node) {
            return name == node;
        }
        Self::parse(name).is_some_and(|own| own.frames.is_root() && own.visit == 1 && *own.node == *node)
    }
    /// The place that a text names.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (frames, node) = FramePathRef::split(text)?;
        Self::parse_within(frames, node)
    }

    fn parse_within(frames: FramePathRef<'a>, text: &'a str) -> Option<Self> {
        let (node, visit) = match cut(text, b'~') {
            Some((node, visit)) => (node, number(visit).filter(|visit| *visit >= 2)?),
            None => (text, 1),
        };
        Some(Self { frames, node: unescape(node, frames.reserved())?, visit })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.frames.write(out)?;
        escape(out, &self.node, self.frames.reserved())?;
        if self.visit > 1 { write_number(out, '~', self.visit as usize) } else { Ok(()) }
    }

    /// Its text, in one piece: most events have one, and it is the longer the more frames there are.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.room() + 8);
        let written = self.write(&mut text);
        debug_assert!(written.is_ok(), "a text takes what is written to it");
        text
    }

    pub(super) fn room(&self) -> usize {
        self.frames.0.len() + self.node.len()
    }
}

fn write_leaf(out: &mut impl Write, leaf: &str, slot: Option<usize>) -> fmt::Result {
    out.write_char('/')?;
    escape(out, leaf, LEAF)?;
    slot.map_or(Ok(()), |slot| write_number(out, '.', slot))
}

fn parse_leaf(text: &str) -> Option<(Cow<'_, str>, Option<usize>)> {
    let (leaf, slot) = numbered(text)?;
    Some((unescape(leaf, LEAF)?, slot))
}

impl<'a> EffectPlace<'a> {
    /// Whether an id, without the frame in which that node is, is of an effect of it. Most can be told by how they begin.
    pub(crate) fn is_of(id: &'a str, node: &str) -> bool {
        match id.strip_prefix(node).and_then(|rest| rest.bytes().next()) {
            Some(b'/') if NESTED.spares(node) => true,
            None if NESTED.spares(node) => false,
            _ => Self::parse(id).is_some_and(|own| own.place.frames.is_root() && *own.place.node == *node),
        }
    }
    /// The effect that an id names.
    pub fn parse(id: &'a str) -> Option<Self> {
        Self::parse_with(id, Place::parse)
    }

    fn parse_with(id: &'a str, place_of: impl FnOnce(&'a str) -> Option<Place<'a>>) -> Option<Self> {
        let (rest, attempt) = cut_last(id, b'/')?;
        let (rest, leaf_visit) = cut_last(rest, b'/')?;
        let (place, leaf) = cut_last(rest, b'/')?;
        let (attempt, leaf_visit) = (number(attempt)?, number(leaf_visit)?);
        let (leaf, slot) = parse_leaf(leaf)?;
        Some(Self { place: place_of(place)?, leaf, slot, leaf_visit, attempt })
    }

    pub(super) fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.place.write(out)?;
        write_leaf(out, &self.leaf, self.slot)?;
        write_number(out, '/', self.leaf_visit as usize)?;
        write_number(out, '/', self.attempt as usize)
    }
}

impl<'a> AskPlace<'a> {
    /// The question that an id names: each id of an effect is one too.
    pub fn parse(id: &'a str) -> Option<Self> {
        Self::parse_with(id, Place::parse)
    }

    /// The question that an id names within a frame whose path is known, and need not be read.
    pub(crate) fn parse_within(frames: &'a FramePath, id: &'a str) -> Option<Self> {
        Self::parse_with(frames.within(id)?, |place| {
            Place::parse_within(frames.frames(), place).filter(|_| !place.contains('/'))
        })
    }

    fn parse_with(id: &'a str, place_of: impl Fn(&'a str) -> Option<Place<'a>>) -> Option<Self> {
        if let Some(effect) = EffectPlace::parse_with(id, &place_of) {
            return Some(Self::Call(effect));
        }
        let (place, leaf) = cut_last(id, b'/')?;
        let (place, (leaf, None)) = (place_of(place)?, parse_leaf(leaf)?) else { return None };
        Some(Self::Leaf { place, leaf })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Self::Leaf { place, leaf } => {
                place.write(out)?;
                write_leaf(out, leaf, None)
            }
            Self::Call(effect) => effect.write(out),
        }
    }
}

impl<'a> CallPlace<'a> {
    /// The call that an id names. Models give their calls ids of their own, which may look like one.
    pub fn parse(id: &'a str) -> Option<Self> {
        let (rest, call) = cut_last(id, b'/')?;
        let (place, leaf) = cut_last(rest, b'/')?;
        let ((leaf_visit, nth), (leaf, slot)) = (numbered(call)?, parse_leaf(leaf)?);
        let Place { frames, node, .. } = Place::parse(place).filter(|place| place.visit == 1)?;
        Some(Self { frames, node, leaf, slot, leaf_visit: number(leaf_visit)?, nth })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.frames.write(out)?;
        escape(out, &self.node, self.frames.reserved())?;
        write_leaf(out, &self.leaf, self.slot)?;
        write_number(out, '/', self.leaf_visit as usize)?;
        self.nth.map_or(Ok(()), |nth| write_number(out, '.', nth))
    }
}

macro_rules! display {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.write(f)
            }
        }
    )*};
}

display!(FrameStep, Place, EffectPlace, AskPlace, CallPlace);
