//! Draws the steps of a kustomize build as a graph, in the formats Graphviz, Mermaid and SVG. SVG needs no external
//! tools.
//!
//! Components are drawn as rounded shapes, and Kustomizations as boxes. An edge is red if it leads to a misplaced file
//! or folder, such as a Component in `resources`, or to a file or folder that the build cannot use.

use super::{Step, StepKind};
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED, Row, quoted};

/// A step of a build in the graph, with the index of its parent and its depth.
struct Node<'s> {
    step: &'s Step,
    parent: Option<usize>,
    depth: usize,
}

impl Step {
    /// Returns the steps of the build as a Graphviz graph.
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

    /// Returns the steps of the build as a Mermaid flowchart.
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

    /// Returns the steps of the build as an SVG drawing, from top to bottom in the order of evaluation.
    pub fn to_svg(&self) -> String {
        let row = |Node { step, parent, depth }: &Node<'_>| Row {
            parent: *parent,
            depth: *depth,
            text: if step.list.is_empty() { step.name() } else { format!("{} · {}", step.list, step.name()) },
            title: format!("{}: {}", step.kind.as_str(), step.adds.join(", ")),
            fill: step.fill(),
            stroke: step.edge(),
            is_round: step.kind == StepKind::Component,
        };
        drawing::outline(&self.nodes().iter().map(row).collect::<Vec<_>>())
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
