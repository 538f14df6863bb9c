//! Mermaid's flowcharts.

use super::shapes::{Arrow, Drawing, Kind, Lane, Shape, Why, colours};
use crate::inspect::page::clean;
use crate::status::Words as _;
use std::fmt::Write;

/// What viewers draw unless they are configured otherwise; a drawing can't ask for more by itself.
pub(super) const ARROWS: usize = 500;
/// The same in characters.
pub(super) const CHARACTERS: usize = 50_000;

/// A drawing as Mermaid.
pub(super) fn draw(drawing: &Drawing) -> String {
    let mut text = front(drawing);
    let _ = writeln!(text, "flowchart TB");
    // What is named first is drawn higher where arrows go round in a circle, so a loop's beginning stands above what is in it.
    for shape in &drawing.loose {
        let _ = writeln!(text, "  {}", boxed(shape));
    }
    let mut lanes = 0;
    for lane in &drawing.lanes {
        draw_lane(&mut text, lane, 1, &mut lanes);
    }
    for arrow in &drawing.arrows {
        let _ = writeln!(text, "  {}", line(arrow));
    }
    classes(&mut text, drawing);
    text
}

/// What comes before the drawing: its title, and how it is laid out.
fn front(drawing: &Drawing) -> String {
    // A string of JSON is one of YAML.
    let title =
        drawing.name.as_ref().map(|name| format!("title: {}\n", serde_json::Value::from(clean(name))));
    // Arrows come into the lanes of a workflow from above, where the name stands: room for their heads below it.
    let framed = !drawing.inner.is_empty();
    let room = framed.then_some("config: {flowchart: {subGraphTitleMargin: {top: 4, bottom: 14}}}\n");
    match (title, room) {
        (None, None) => String::new(),
        (title, room) => format!("---\n{}{}---\n", title.unwrap_or_default(), room.unwrap_or_default()),
    }
}

/// A lane, with those in it; `lanes` counts them.
fn draw_lane(text: &mut String, lane: &Lane, depth: usize, lanes: &mut usize) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}subgraph t{lanes}[\"{}\"]", filled(escaped(&lane.name)));
    *lanes += 1;
    for shape in &lane.shapes {
        let _ = writeln!(text, "{indent}  {}", boxed(shape));
    }
    for inner in &lane.lanes {
        draw_lane(text, inner, depth + 1, lanes);
    }
    let _ = writeln!(text, "{indent}end");
}

/// The colours of a run's nodes, and a box for each that says what it stands for.
fn classes(text: &mut String, drawing: &Drawing) {
    let legend = drawing.legend();
    if legend.is_empty() {
        return;
    }
    let _ = writeln!(text, "  subgraph legend[\"legend\"]");
    for (fate, words) in &legend {
        let _ = writeln!(text, "    k_{name}[\"{}\"]:::{name}", escaped(words), name = fate.name());
    }
    let _ = writeln!(text, "  end");
    for (fate, _) in &legend {
        let (inside, border) = colours(*fate);
        let nodes = drawing.fates.keys().chain(drawing.ends.keys());
        let nodes = nodes.filter(|id| drawing.fate(id) == Some(*fate)).map(String::as_str);
        let nodes = nodes.collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "  classDef {} fill:{inside},stroke:{border},color:#000", fate.name());
        let _ = writeln!(text, "  class {nodes} {}", fate.name());
    }
}

fn boxed(shape: &Shape) -> String {
    let lines: Vec<String> = shape.lines.iter().map(|line| escaped(line)).collect();
    let (open, close) = match shape.kind {
        Kind::Start | Kind::End => ("([", "])"),
        Kind::Model => ("(", ")"),
        Kind::Tool => ("[[", "]]"),
        Kind::Move => ("[", "]"),
        Kind::Recovery | Kind::Loop => ("{{", "}}"),
        Kind::Person => ("[/", "/]"),
        Kind::Choice => ("{", "}"),
        Kind::Fork => ("[/", "\\]"),
        Kind::Join => ("[\\", "/]"),
        Kind::Dot => ("((", "))"),
    };
    format!("{}{open}\"{}\"{close}", shape.id, filled(lines.join("<br/>")))
}

/// A label that Mermaid can read: an empty one is none.
fn filled(label: String) -> String {
    if label.is_empty() { " ".to_owned() } else { label }
}

fn line(arrow: &Arrow) -> String {
    let drawn = match arrow.why {
        Why::Takes => "-->",
        Why::Sent => "==>",
        Why::Turn | Why::Fails => "-.->",
    };
    let label = escaped(&arrow.label);
    let label = if label.is_empty() { label } else { format!("|\"{label}\"|") };
    format!("{} {drawn}{label} {}", arrow.from, arrow.to)
}

/// Text for a label in quotes. What could mean something to Mermaid, to Markdown or to HTML is written as the
/// number of the character.
fn escaped(text: &str) -> String {
    let mut label = String::with_capacity(text.len());
    // "1. a" and "- a" would be taken for lists.
    let mut digits = true;
    for (at, character) in clean(text).trim().chars().enumerate() {
        let plain = match character {
            '.' => !digits,
            '-' | '+' => at > 0,
            ' ' | '_' | ',' | '/' | '=' | '…' => true,
            other => other.is_alphanumeric() || !other.is_ascii(),
        };
        digits &= character.is_ascii_digit();
        match plain {
            true => label.push(character),
            false => {
                let _ = write!(label, "#{};", u32::from(character));
            }
        }
    }
    label
}
