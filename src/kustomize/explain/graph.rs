//! Draws an evaluation: Graphviz, Mermaid, and SVG without external tools.
//!
//! Components are rounded, Kustomizations are boxes, and edges to misplaced parts are red.

use super::{Step, StepKind};
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED, escaped, quoted};

/// A step with its number and that of the step it belongs to.
struct Node<'s> {
    step: &'s Step,
    parent: Option<usize>,
    depth: usize,
}

impl Step {
    /// Returns the evaluation for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph kustomize {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
        for (number, node) in self.nodes().iter().enumerate() {
            let style = match node.step.kind {
                StepKind::Component => "filled,rounded",
                StepKind::Remote | StepKind::Broken => "filled,dashed",
                _ => "filled",
            };
            let label = quoted(&node.step.name());
            dot += &format!("  n{number} [label={label}, style=\"{style}\", fillcolor=\"{}\"];\n", node.step.fill());
            if let Some(parent) = node.parent {
                let colour = node.step.edge();
                dot += &format!("  n{parent} -> n{number} [label={}, color=\"{colour}\"];\n", quoted(node.step.list));
            }
        }
        dot + "}\n"
    }

    /// Returns the evaluation for Mermaid.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        let mut red = Vec::new();
        let mut edges = 0;
        for (number, node) in self.nodes().iter().enumerate() {
            let label = drawing::label(&node.step.name());
            let shaped = match node.step.kind {
                StepKind::Component => format!("([\"{label}\"])"),
                _ => format!("[\"{label}\"]"),
            };
            text += &format!("  n{number}{shaped}\n  style n{number} fill:{}\n", node.step.fill());
            if let Some(parent) = node.parent {
                text += &format!("  n{parent} -->|{}| n{number}\n", node.step.list);
                if node.step.is_wrong() {
                    red.push(edges);
                }
                edges += 1;
            }
        }
        red.iter().fold(text, |text, edge| text + &format!("  linkStyle {edge} stroke:{RED}\n"))
    }

    /// Returns the evaluation as an SVG drawing, from top to bottom in the order of evaluation.
    pub fn to_svg(&self) -> String {
        let nodes = self.nodes();
        let width = nodes.iter().map(|node| node.x() + node.width() + 20).max().unwrap_or_default();
        let height = nodes.len() * ROW + 20;
        let mut svg = String::new();
        for (number, node) in nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                svg += &edge(parent, number, node);
            }
        }
        for (number, node) in nodes.iter().enumerate() {
            svg += &node.shape(number);
        }
        drawing::svg(width, height, &svg)
    }

    fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Vec::new();
        self.number(None, 0, &mut nodes);
        nodes
    }

    fn number<'s>(&'s self, parent: Option<usize>, depth: usize, nodes: &mut Vec<Node<'s>>) {
        let own = nodes.len();
        nodes.push(Node { step: self, parent, depth });
        self.parts.iter().for_each(|part| part.number(Some(own), depth + 1, nodes));
    }

    fn fill(&self) -> &'static str {
        match self.kind {
            StepKind::Kustomization => BLUE,
            StepKind::Component => GREEN,
            _ => PALE,
        }
    }

    fn is_wrong(&self) -> bool {
        self.misplaced || self.kind == StepKind::Broken
    }

    fn edge(&self) -> &'static str {
        if self.is_wrong() { RED } else { GREY }
    }
}

/// Height of a row of the drawing, in pixels.
const ROW: usize = 34;
/// Horizontal indentation per level, in pixels.
const STEP: usize = 36;
/// The width of a letter of 13 pixels, on the safe side.
const LETTER: usize = 8;

impl Node<'_> {
    fn x(&self) -> usize {
        10 + self.depth * STEP
    }

    fn label(&self) -> String {
        let name = self.step.name();
        if self.step.list.is_empty() { name } else { format!("{} · {name}", self.step.list) }
    }

    fn width(&self) -> usize {
        self.label().chars().count() * LETTER + 16
    }

    fn shape(&self, number: usize) -> String {
        let (x, y, width) = (self.x(), 10 + number * ROW, self.width());
        let radius = if self.step.kind == StepKind::Component { 12 } else { 2 };
        let (fill, stroke) = (self.step.fill(), self.step.edge());
        let title = escaped(&format!("{}: {}", self.step.kind.as_str(), self.step.adds.join(", ")));
        format!(
            "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"24\" rx=\"{radius}\" \
             fill=\"{fill}\" stroke=\"{stroke}\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
            x + 8,
            y + 17,
            escaped(&self.label())
        )
    }
}

/// Returns a line from a step down and to the right to one of its parts.
fn edge(parent: usize, number: usize, node: &Node<'_>) -> String {
    let (x, from, to) = (node.x() - STEP / 2, 34 + parent * ROW, 22 + number * ROW);
    let stroke = node.step.edge();
    format!("<path d=\"M{x} {from} V{to} H{}\" fill=\"none\" stroke=\"{stroke}\"/>\n", node.x())
}
