//! Draws the components that an Installation refers to as a tree. The output formats are Graphviz, Mermaid and SVG. SVG
//! needs no external tool.
//!
//! Each node is a reference to a component. A node is green if a ComponentVersionOverwrites object changes the
//! reference. The border of a node is red if the component could not be loaded.

use super::Tree;
use super::text::line;
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED, Row, quoted};
use crate::landscaper::components::closure::{Step, Target};

/// A node of the component graph. It represents one reference to a component.
struct Node<'t> {
    step: &'t Step,
    /// Index of the parent node. `None` for the component reference of an Installation, because it is the top of a
    /// tree.
    parent: Option<usize>,
}

/// Returns the nodes of all component trees. Parents come before their children.
fn nodes(trees: &[Tree]) -> Vec<Node<'_>> {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for tree in trees {
        let offset = nodes.len();
        for step in &tree.closure.steps {
            let component = step.from.and_then(|from| tree.closure.components.get(from));
            nodes.push(Node { step, parent: component.map(|component| offset + component.step) });
        }
    }
    nodes
}

impl Node<'_> {
    fn is_gap(&self) -> bool {
        matches!(self.step.to, Target::Gap(_))
    }

    fn is_overwritten(&self) -> bool {
        self.step.substitution.changed().next().is_some()
    }

    fn fill(&self) -> &'static str {
        match self.parent {
            _ if self.is_overwritten() => GREEN,
            None => BLUE,
            Some(_) => PALE,
        }
    }

    fn stroke(&self) -> &'static str {
        if self.is_gap() { RED } else { GREY }
    }

    fn label(&self) -> String {
        let result = &self.step.substitution.result;
        format!("{} {}", result.component_name, result.version)
    }
}

/// Returns the component trees as a Graphviz graph.
pub(super) fn dot(trees: &[Tree]) -> String {
    let mut dot = String::from("digraph components {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
    for (number, node) in nodes(trees).iter().enumerate() {
        let (label, tip, fill) = (quoted(&node.label()), quoted(&line(node.step)), node.fill());
        let style = if node.is_gap() { "filled,dashed" } else { "filled" };
        dot += &format!(
            "  n{number} [label={label}, tooltip={tip}, style=\"{style}\", fillcolor=\"{fill}\", color=\"{}\"];\n",
            node.stroke()
        );
        if let Some(parent) = node.parent {
            dot += &format!(
                "  n{parent} -> n{number} [label={}, color=\"{}\"];\n",
                quoted(&node.step.name),
                node.stroke()
            );
        }
    }
    dot + "}\n"
}

/// Returns the component trees as a Mermaid graph.
pub(super) fn mermaid(trees: &[Tree]) -> String {
    let mut text = String::from("flowchart LR\n");
    for (number, node) in nodes(trees).iter().enumerate() {
        let dashes = if node.is_gap() { ",stroke-dasharray:4" } else { "" };
        let (label, fill, stroke) = (drawing::label(&node.label()), node.fill(), node.stroke());
        text += &format!("  n{number}[\"{label}\"]\n  style n{number} fill:{fill},stroke:{stroke}{dashes}\n");
        if let Some(parent) = node.parent {
            text += &format!("  n{parent} -->|\"{}\"| n{number}\n", drawing::label(&node.step.name));
        }
    }
    text
}

/// Draws the component trees as SVG, from top to bottom in Landscaper's order of resolution.
pub(super) fn svg(trees: &[Tree]) -> String {
    let row = |node: &Node<'_>| Row {
        parent: node.parent,
        depth: node.step.depth,
        text: line(node.step),
        fill: node.fill(),
        stroke: node.stroke(),
        ..Row::default()
    };
    drawing::outline(&nodes(trees).iter().map(row).collect::<Vec<_>>())
}
