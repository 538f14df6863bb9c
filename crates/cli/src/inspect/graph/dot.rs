//! DOT, the language of Graphviz.

use super::shapes::{Arrow, Drawing, Kind, Lane, Shape, Why, colours};
use crate::inspect::page::clean;
use crate::status::Words as _;
use selvedge_host::timeline::NodeStatus;
use std::fmt::Write;

/// A drawing as DOT.
pub(super) fn draw(drawing: &Drawing) -> String {
    let mut text = String::new();
    let name = drawing.name.as_deref().unwrap_or("graph");
    let _ = writeln!(text, "digraph {} {{", quoted(&[name]));
    text.push_str(
        "  newrank=true; labeljust=l; fontname=\"Helvetica\"; fontsize=11;\n  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n  \
         edge [fontname=\"Helvetica\", fontsize=9];\n",
    );
    for shape in &drawing.loose {
        let _ = writeln!(text, "  {};", boxed(shape, drawing.fate(&shape.id)));
    }
    let mut lanes = 0;
    for lane in &drawing.lanes {
        draw_lane(&mut text, (drawing, lane), 1, &mut lanes);
    }
    for arrow in &drawing.arrows {
        let _ = writeln!(text, "  {};", line(arrow));
    }
    legend(&mut text, drawing);
    text.push_str("}\n");
    text
}

/// A lane, with those in it; `lanes` counts them.
fn draw_lane(text: &mut String, (drawing, lane): (&Drawing, &Lane), depth: usize, lanes: &mut usize) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}subgraph cluster_{lanes} {{");
    let _ = writeln!(text, "{indent}  label={}; color=gray;", quoted(&[&lane.name]));
    *lanes += 1;
    for shape in &lane.shapes {
        let _ = writeln!(text, "{indent}  {};", boxed(shape, drawing.fate(&shape.id)));
    }
    for inner in &lane.lanes {
        draw_lane(text, (drawing, inner), depth + 1, lanes);
    }
    let _ = writeln!(text, "{indent}}}");
}

/// What the colours of a run's nodes stand for.
fn legend(text: &mut String, drawing: &Drawing) {
    let legend = drawing.legend();
    if legend.is_empty() {
        return;
    }
    text.push_str("  subgraph cluster_legend {\n    label=\"legend\"; color=gray;\n");
    for (fate, words) in legend {
        let _ = writeln!(text, "    k_{} [label={}{}];", fate.name(), quoted(&[&words]), filled(fate, None));
    }
    text.push_str("  }\n");
}

/// The colours of a box, beside a style that it has anyway.
fn filled(fate: NodeStatus, style: Option<&str>) -> String {
    let (inside, border) = colours(fate);
    let style = style.map(|style| format!("{style},")).unwrap_or_default();
    format!(", style=\"{style}filled\", fillcolor=\"{inside}\", color=\"{border}\"")
}

fn boxed(shape: &Shape, fate: Option<NodeStatus>) -> String {
    let looks = match shape.kind {
        Kind::Start | Kind::End => ", shape=oval",
        Kind::Model if fate.is_some() => "",
        Kind::Model => ", style=rounded",
        Kind::Tool => ", peripheries=2",
        Kind::Move => "",
        Kind::Recovery => ", shape=hexagon, style=dashed",
        Kind::Dot => ", shape=point",
        Kind::Person => ", shape=parallelogram",
        Kind::Choice => ", shape=diamond",
        Kind::Fork => ", shape=trapezium",
        Kind::Join => ", shape=invtrapezium",
        Kind::Loop => ", shape=hexagon",
    };
    let lines: Vec<&str> = shape.lines.iter().map(String::as_str).collect();
    let style = (shape.kind == Kind::Model).then_some("rounded");
    let colours = fate.map(|fate| filled(fate, style)).unwrap_or_default();
    format!("{} [label={}{looks}{colours}]", shape.id, quoted(&lines))
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
