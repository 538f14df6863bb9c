//! DOT, the language of Graphviz.

use super::shapes::{Arrow, Drawing, Kind, Shape, Why};
use crate::look::page::clean;
use std::fmt::Write;

/// A drawing as DOT.
pub(super) fn draw(drawing: &Drawing) -> String {
    let mut text = String::new();
    let name = drawing.name.as_deref().unwrap_or("graph");
    let _ = writeln!(text, "digraph {} {{", quoted(&[name]));
    text.push_str(
        "  newrank=true;\n  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n  \
         edge [fontname=\"Helvetica\", fontsize=9];\n",
    );
    for (at, lane) in drawing.lanes.iter().enumerate() {
        let _ = writeln!(text, "  subgraph cluster_{at} {{");
        let _ = writeln!(text, "    label={}; fontname=\"Helvetica\"; color=gray;", quoted(&[&lane.name]));
        for shape in &lane.shapes {
            let _ = writeln!(text, "    {};", boxed(shape));
        }
        text.push_str("  }\n");
    }
    for shape in &drawing.loose {
        let _ = writeln!(text, "  {};", boxed(shape));
    }
    for arrow in &drawing.arrows {
        let _ = writeln!(text, "  {};", line(arrow));
    }
    text.push_str("}\n");
    text
}

fn boxed(shape: &Shape) -> String {
    let looks = match shape.kind {
        Kind::Start | Kind::End => ", shape=oval",
        Kind::Model => ", style=rounded",
        Kind::Tool => ", peripheries=2",
        Kind::Move => "",
        Kind::Recovery => ", shape=hexagon, style=dashed",
        Kind::Dot => ", shape=point",
    };
    let lines: Vec<&str> = shape.lines.iter().map(String::as_str).collect();
    format!("{} [label={}{looks}]", shape.id, quoted(&lines))
}

fn line(arrow: &Arrow) -> String {
    let looks = match arrow.why {
        Why::Takes => "",
        Why::Sent => ", penwidth=2",
        Why::Turn => ", style=dashed",
        Why::Fails => ", style=dotted, color=red",
    };
    format!("{} -> {} [label={}{looks}]", arrow.from, arrow.to, quoted(&[&arrow.label]))
}

/// Lines as one quoted string. `&` begins an entity in DOT, backslashes begin escapes.
fn quoted(lines: &[&str]) -> String {
    let escaped: Vec<String> = lines
        .iter()
        .map(|line| clean(line).replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    format!("\"{}\"", escaped.join("\\n"))
}
