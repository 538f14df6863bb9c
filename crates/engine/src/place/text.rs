//! Places as texts: the only code that writes and reads them.

use super::{AskPlace, CallPlace, EffectPlace, FramePathRef, FrameStep, Instance, Place};
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::str::FromStr;

/// What is escaped in the id of a node of the root frame, in ids within frames, and in the name of a leaf.
const ROOT: &[char] = &['%', '/', '~'];
const NESTED: &[char] = &['%', '/', '~', '[', ']', '#'];
const LEAF: &[char] = &['%', '/', '~', '.'];

fn escape(out: &mut impl Write, text: &str, reserved: &[char]) -> fmt::Result {
    for part in text.split_inclusive(reserved) {
        match part.char_indices().next_back() {
            Some((at, last)) if reserved.contains(&last) => {
                out.write_str(part.split_at(at).0)?;
                write!(out, "%{:02X}", u32::from(last))?;
            }
            _ => out.write_str(part)?,
        }
    }
    Ok(())
}

/// The character that a code stands for.
fn escaped(code: &str) -> Option<char> {
    Some(match code {
        "25" => '%',
        "2F" => '/',
        "7E" => '~',
        "5B" => '[',
        "5D" => ']',
        "23" => '#',
        "2E" => '.',
        _ => return None,
    })
}

/// The name that `escape` wrote as this text.
fn unescape<'a>(text: &'a str, reserved: &[char]) -> Option<Cow<'a, str>> {
    if !text.contains(reserved) {
        return Some(Cow::Borrowed(text));
    }
    let mut parts = text.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        name.push(escaped(code).filter(|c| reserved.contains(c))?);
        name.push_str(rest);
    }
    // Each of them was an escape.
    let bare = text.chars().filter(|c| *c != '%' && reserved.contains(c)).count();
    (bare == 0).then_some(Cow::Owned(name))
}

/// A number, in the one way that it is written.
fn number<N: FromStr>(text: &str) -> Option<N> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// A number with a name before it, if there is a dot.
fn numbered(text: &str) -> Option<(&str, Option<usize>)> {
    match text.split_once('.') {
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
        let (around, step) = self.0.rsplit_once('/').unwrap_or(("", self.0));
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
    fn reserved(self) -> &'static [char] {
        if self.0.is_empty() { ROOT } else { NESTED }
    }

    /// The frame of a text, and the rest.
    fn split(text: &'a str) -> Option<(Self, &'a str)> {
        match text.rsplit_once('/') {
            Some((frames, rest)) => Some((Self::parse(frames).filter(|frames| !frames.is_root())?, rest)),
            None => Some((Self::default(), text)),
        }
    }
}

impl<'a> FrameStep<'a> {
    fn write(&self, out: &mut impl Write) -> fmt::Result {
        escape(out, &self.node, NESTED)?;
        write!(out, "~{}", self.visit.max(1))?;
        match &self.instance {
            Instance::Sub => Ok(()),
            Instance::Path(path) => {
                out.write_char('[')?;
                escape(out, path, NESTED)?;
                out.write_char(']')
            }
            Instance::Iteration(n) => write!(out, "#{n}"),
        }
    }

    fn parse(text: &'a str) -> Option<Self> {
        let (node, rest) = text.split_once('~')?;
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
    /// The place that a text names.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (frames, node) = FramePathRef::split(text)?;
        let (node, visit) = match node.split_once('~') {
            Some((node, visit)) => (node, number(visit).filter(|visit| *visit >= 2)?),
            None => (node, 1),
        };
        Some(Self { frames, node: unescape(node, frames.reserved())?, visit })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.frames.write(out)?;
        escape(out, &self.node, self.frames.reserved())?;
        if self.visit > 1 { write!(out, "~{}", self.visit) } else { Ok(()) }
    }

    pub(super) fn room(&self) -> usize {
        self.frames.0.len() + self.node.len()
    }
}

fn write_leaf(out: &mut impl Write, leaf: &str, slot: Option<usize>) -> fmt::Result {
    out.write_char('/')?;
    escape(out, leaf, LEAF)?;
    slot.map_or(Ok(()), |slot| write!(out, ".{slot}"))
}

fn parse_leaf(text: &str) -> Option<(Cow<'_, str>, Option<usize>)> {
    let (leaf, slot) = numbered(text)?;
    Some((unescape(leaf, LEAF)?, slot))
}

impl<'a> EffectPlace<'a> {
    /// The effect that an id names.
    pub fn parse(id: &'a str) -> Option<Self> {
        let mut parts = id.rsplitn(4, '/');
        let attempt = number(parts.next()?)?;
        let leaf_visit = number(parts.next()?)?;
        let (leaf, slot) = parse_leaf(parts.next()?)?;
        Some(Self { place: Place::parse(parts.next()?)?, leaf, slot, leaf_visit, attempt })
    }

    pub(super) fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.place.write(out)?;
        write_leaf(out, &self.leaf, self.slot)?;
        write!(out, "/{}/{}", self.leaf_visit, self.attempt)
    }
}

impl<'a> AskPlace<'a> {
    /// The question that an id names: each id of an effect is one too.
    pub fn parse(id: &'a str) -> Option<Self> {
        if let Some(effect) = EffectPlace::parse(id) {
            return Some(Self::Call(effect));
        }
        let (place, leaf) = id.rsplit_once('/')?;
        let (place, (leaf, None)) = (Place::parse(place)?, parse_leaf(leaf)?) else { return None };
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
        let mut parts = id.rsplitn(3, '/');
        let (leaf_visit, nth) = numbered(parts.next()?)?;
        let (leaf, slot) = parse_leaf(parts.next()?)?;
        let Place { frames, node, .. } = Place::parse(parts.next()?).filter(|place| place.visit == 1)?;
        Some(Self { frames, node, leaf, slot, leaf_visit: number(leaf_visit)?, nth })
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        self.frames.write(out)?;
        escape(out, &self.node, self.frames.reserved())?;
        write_leaf(out, &self.leaf, self.slot)?;
        write!(out, "/{}", self.leaf_visit)?;
        self.nth.map_or(Ok(()), |nth| write!(out, ".{nth}"))
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
