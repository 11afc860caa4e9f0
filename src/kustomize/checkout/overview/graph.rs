//! Draws the folders that Flux, Argo CD, Fleet and Sveltos build from a repository as a graph. The formats are
//! Graphviz, Mermaid and SVG. If a cluster has many Flux Kustomizations, they are grouped by folder.

use std::collections::{BTreeMap, BTreeSet};

use super::{Builds, ClusterOverview, Entry, Overview};
use crate::drawing::{self, BLUE, GREEN, GREY, PALE, RED, Row, quoted};

/// Maximum number of nodes per cluster. A larger graph is unreadable, so Kustomizations are grouped.
const MAX_NODES: usize = 60;

/// A node of the graph. It contains one Kustomization, or a group of Kustomizations with the same parent. The folders
/// of a group have a common prefix.
struct Node<'o> {
    entries: Vec<&'o Entry>,
    /// The common prefix of the folders of the grouped Kustomizations, such as `apps/team-a`.
    prefix: String,
    parent: Option<usize>,
    depth: usize,
}

impl Node<'_> {
    fn label(&self) -> String {
        match &*self.entries {
            [one] => format!("{}: {}", one.name, one.description()),
            many if self.prefix.is_empty() => format!("{} Kustomizations", many.len()),
            many => format!("{}/…: {} Kustomizations", self.prefix, many.len()),
        }
    }

    fn fill(&self) -> &'static str {
        match (&*self.entries, self.depth) {
            ([Entry { builds: Builds::Elsewhere(_) | Builds::Composed(_) | Builds::Unknown(_), .. }], _) => PALE,
            (_, 0) => BLUE,
            _ => GREEN,
        }
    }

    fn stroke(&self) -> &'static str {
        if self.entries.iter().any(|entry| entry.stage.is_none()) { RED } else { GREY }
    }
}

impl ClusterOverview {
    /// Returns a node for each Kustomization. If there are more than [`MAX_NODES`] Kustomizations, groups them by the
    /// first path segments of their folders.
    fn nodes(&self) -> Vec<Node<'_>> {
        let depth = |entry: &Entry| folder(entry).split('/').count();
        let deepest = self.entries.iter().map(depth).max().unwrap_or_default();
        if self.entries.len() <= MAX_NODES {
            return self.grouped(None);
        }
        let mut nodes = Vec::new();
        for parts in (0..deepest).rev() {
            nodes = self.grouped(Some(parts));
            if nodes.len() <= MAX_NODES {
                break;
            }
        }
        nodes
    }

    /// Returns the nodes of the graph. Kustomizations share a node if they have the same parent, render no other
    /// Kustomizations, and build folders whose paths start with the same segments. `parts` is the number of these
    /// segments. If it is `None`, each Kustomization has its own node.
    fn grouped(&self, parts: Option<usize>) -> Vec<Node<'_>> {
        let parents: BTreeSet<usize> = self.entries.iter().filter_map(|entry| entry.parent).collect();
        let (mut nodes, mut of_entry): (Vec<Node<'_>>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut groups: BTreeMap<(Option<usize>, String), usize> = BTreeMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let parent = entry.parent.and_then(|parent| of_entry.get(parent).copied());
            let parts = parts.filter(|_| !parents.contains(&at));
            let prefix = parts.map(|parts| folder(entry).split('/').take(parts).collect::<Vec<_>>().join("/"));
            let known = prefix.clone().and_then(|prefix| groups.get(&(parent, prefix)).copied());
            let own = known.unwrap_or(nodes.len());
            match nodes.get_mut(own) {
                Some(node) => node.entries.push(entry),
                None => {
                    let depth = parent.map_or(0, |parent| nodes[parent].depth + 1);
                    let prefix_of_node = prefix.clone().unwrap_or_default();
                    nodes.push(Node { entries: vec![entry], prefix: prefix_of_node, parent, depth });
                }
            }
            groups.extend(prefix.map(|prefix| ((parent, prefix), own)));
            of_entry.push(own);
        }
        nodes
    }
}

/// Returns the folder that a Kustomization builds. Empty if the folder is unknown or is not in this repository.
fn folder(entry: &Entry) -> &str {
    match &entry.builds {
        Builds::Folder(folder) => folder,
        Builds::Elsewhere(_) | Builds::Composed(_) | Builds::Unknown(_) => "",
    }
}

/// Returns the dependencies between nodes (`dependsOn`) as pairs of indices. The first node must be ready before the
/// second one. A node may contain several Kustomizations, and dependencies within one node are omitted.
fn dependencies(nodes: &[Node<'_>]) -> BTreeSet<(usize, usize)> {
    let names: BTreeMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .flat_map(|(at, node)| node.entries.iter().map(move |entry| (&*entry.name, at)))
        .collect();
    let mut edges = BTreeSet::new();
    for (at, node) in nodes.iter().enumerate() {
        let named = node.entries.iter().flat_map(|entry| &entry.depends_on);
        edges.extend(named.filter_map(|name| names.get(&**name)).filter(|from| **from != at).map(|from| (*from, at)));
    }
    edges
}

impl Overview {
    /// Returns the overview as a Graphviz graph.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph repository {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
        for (number, cluster) in self.clusters.iter().enumerate() {
            let label = quoted(cluster.folder.as_deref().unwrap_or("not rendered"));
            dot += &format!("  subgraph cluster_{number} {{\n    label={label};\n");
            let nodes = cluster.nodes();
            for (at, node) in nodes.iter().enumerate() {
                let (label, fill, stroke) = (quoted(&node.label()), node.fill(), node.stroke());
                dot += &format!("    n{number}_{at} [label={label}, fillcolor=\"{fill}\", color=\"{stroke}\"];\n");
                if let Some(parent) = node.parent {
                    dot += &format!("    n{number}_{parent} -> n{number}_{at};\n");
                }
            }
            for (from, to) in dependencies(&nodes) {
                dot += &format!("    n{number}_{from} -> n{number}_{to} [style=dashed, constraint=false];\n");
            }
            dot += "  }\n";
        }
        for (name, roots) in self.applications.iter().chain(&self.others) {
            for root in roots {
                dot += &format!("  {} -> {};\n", quoted(name), quoted(root));
            }
        }
        dot + "}\n"
    }

    /// Returns the overview as a Mermaid flowchart.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for (number, cluster) in self.clusters.iter().enumerate() {
            let label = drawing::label(cluster.folder.as_deref().unwrap_or("not rendered"));
            text += &format!("  subgraph c{number}[\"{label}\"]\n");
            let nodes = cluster.nodes();
            for (at, node) in nodes.iter().enumerate() {
                let (label, fill) = (drawing::label(&node.label()), node.fill());
                text += &format!(
                    "    n{number}_{at}[\"{label}\"]\n    style n{number}_{at} fill:{fill},stroke:{}\n",
                    node.stroke()
                );
                if let Some(parent) = node.parent {
                    text += &format!("    n{number}_{parent} --> n{number}_{at}\n");
                }
            }
            for (from, to) in dependencies(&nodes) {
                text += &format!("    n{number}_{from} -.-> n{number}_{to}\n");
            }
            text += "  end\n";
        }
        for (number, (name, roots)) in self.applications.iter().chain(&self.others).enumerate() {
            text += &format!("  a{number}[\"{}\"]\n", drawing::label(name));
            for (at, root) in roots.iter().enumerate() {
                text += &format!("  a{number} --> a{number}_{at}[\"{}\"]\n", drawing::label(root));
            }
        }
        text
    }

    /// Returns the overview as an SVG drawing.
    pub fn to_svg(&self) -> String {
        let mut rows = Vec::new();
        for cluster in &self.clusters {
            let top = rows.len();
            let text = cluster.folder.clone().unwrap_or_else(|| "not rendered".to_owned());
            rows.push(Row { text, fill: PALE, ..Row::default() });
            for node in cluster.nodes() {
                let parent = Some(node.parent.map_or(top, |parent| top + 1 + parent));
                let (fill, stroke) = (node.fill(), node.stroke());
                rows.push(Row { parent, depth: node.depth + 1, text: node.label(), fill, stroke, ..Row::default() });
            }
        }
        for (name, roots) in self.applications.iter().chain(&self.others) {
            let top = rows.len();
            rows.push(Row { text: name.clone(), fill: BLUE, ..Row::default() });
            let row =
                |root: &String| Row { parent: Some(top), depth: 1, text: root.clone(), fill: GREEN, ..Row::default() };
            rows.extend(roots.iter().map(row));
        }
        drawing::outline(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, parent: Option<usize>, folder: &str, depends_on: &[&str]) -> Entry {
        let depends_on = depends_on.iter().map(|name| (*name).to_owned()).collect();
        Entry { name: name.to_owned(), parent, builds: Builds::Folder(folder.to_owned()), depends_on, stage: Some(1) }
    }

    /// Returns a cluster with one root Kustomization. The root renders `teams` Kustomizations, and each of these
    /// renders twenty Kustomizations.
    fn cluster(teams: usize) -> ClusterOverview {
        let mut entries = vec![entry("flux", None, "clusters/main", &[])];
        for team in 0..teams {
            let own = entries.len();
            entries.push(entry(&format!("team-{team}"), Some(0), &format!("teams/{team}"), &[]));
            let app = |app| entry(&format!("{team}-{app}"), Some(own), &format!("apps/{team}/{app}/main"), &["flux"]);
            entries.extend((0..20).map(app));
        }
        ClusterOverview { folder: Some("clusters/main".to_owned()), entries }
    }

    #[test]
    fn draws_each_kustomization_of_a_small_cluster() {
        let labels: Vec<_> = cluster(1).nodes().iter().map(Node::label).collect();
        assert_eq!(labels.len(), 22);
        assert_eq!(labels[2], "0-0: apps/0/0/main  after flux");
    }

    #[test]
    fn groups_a_thousand_kustomizations_by_folder() {
        let cluster = cluster(25);
        let nodes = cluster.nodes();
        assert_eq!((cluster.entries.len(), nodes.len()), (526, 51));
        assert_eq!(nodes[2].label(), "apps/0/…: 20 Kustomizations");
        let overview = Overview { clusters: vec![cluster], ..Overview::default() };
        assert_eq!(overview.to_svg().matches("<rect").count(), 52);
        assert!(overview.to_dot().contains("n0_0 -> n0_2 [style=dashed"));
    }
}
