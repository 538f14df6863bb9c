//! The placeholder language (D-06 … D-13): `{{step.output.path}}`, `{{{…}}}`, `${…}` in texts and JSON values.
//!
//! A text is parsed once ([`Template`], [`JsonTemplate`]) and rendered as often as needed against what a reader
//! can see ([`Layers`]). Nothing here does I/O, and a resolved value is never scanned again (D-11).
//!
//! # Grammar (D-06, D-09)
//! ```text
//! placeholder = "{{{" sp path sp "}}}" | "{{" sp path sp "}}" | "${" sp path sp "}"
//! path        = name segment*
//! segment     = "." name | "[" "-"? digits "]" | "[" JSON string "]"
//! name        = [\p{XID_Start}_][\p{XID_Continue}-]* | [0-9]+
//! sp          = any number of spaces, tabs, line feeds and carriage returns
//! ```
//! There is no space inside a path. Names are the same if they are so in NFC. A name of digits only is a step id at the root, and an array index or an
//! object key after a dot.
//!
//! # How a text is read
//! From left to right. At each `{` or `$` the three forms are tried in the order above. When none fits, that *one
//! character* is text and reading goes on with the next. This is the only reading of "scanning goes on behind
//! its opening" in which `${{ x }}` is `$` and a value, and it gives the leftmost placeholder that exists:
//!
//! | text | is |
//! |---|---|
//! | `{{x}}}` | the value, `}` |
//! | `{{{x}}` | `{`, the value (the triple form does not close, so the braces are those of the double form) |
//! | `{{{{x}}}}` | `{`, the value, `}` |
//! | `${{ x }}` | `$`, the value |
//! | `{{}}`, `{{a b}}`, `{{#if x}}`, `${a:-b}`, `{{a.}}`, `{{a[ 0 ]}}` | text |
//! | `{{x} y`, `{{a['k']}}`, `{{a \| f}}` | text ([`slips`] finds it) |
//! | `{{x`, `{{ x }`, `${x` at the end of the text | an error: unfinished |
//! | `{{a.`, `{{a["b`, `{{` at the end of the text | text: no path is followed by the end |
//!
//! Backslashes count only directly before `{{` or `${`, whatever follows those: each pair is one backslash, and an
//! odd one makes the two characters text. Behind an escaped opening reading goes on after its two characters.
//!
//! # Time
//! Parsing is linear in the text: an attempt stops at the first character that cannot belong to a path, and of the
//! attempts that read on through a quoted key at most two can be under way over the same characters.
//! Rendering costs one look-up per placeholder and the size of the values it copies (D-13).

mod json;
mod layers;
mod name;
mod parse;
mod path;
mod render;
mod slip;
mod unresolved;

#[cfg(test)]
mod tests;

pub use json::{JsonTemplate, JsonTemplateError, ResolveError};
pub(crate) use layers::start;
pub use layers::{Layers, Miss, StepView, lookup};
pub use name::{NAMES, is_name, normalized};
pub(crate) use name::{is_name_start, member};
pub use parse::{TemplateError, slips};
pub use path::{Path, RESERVED_ROOTS, Root, Seg, classify};
pub use render::{OnMissing, Placeholder, Template};
pub use slip::Slip;
pub(crate) use unresolved::kind;
pub use unresolved::{Unresolved, Why};
