//! Formats an overview of a repository as text. For each cluster, it shows the Flux Kustomizations as a tree. It also
//! lists the folders that other tools build, and files that no build uses.

use std::collections::{BTreeMap, BTreeSet};

use super::{Builds, ClusterOverview, Entry, Overview};

/// Maximum number of unused paths of each kind that are listed. The kinds are roots, Components and files. All other
/// paths are only counted, to keep the text short.
const MAX_LISTED: usize = 20;

impl Overview {
    /// Returns the overview as text for a terminal.
    pub fn to_text(&self) -> String {
        let mut parts: Vec<String> = self.clusters.iter().map(ClusterOverview::to_text).collect();
        parts.extend(list("Argo CD", &self.applications));
        parts.extend(list("Fleet and Sveltos", &self.others));
        if parts.is_empty() {
            parts.push("found no Flux, Argo CD, Fleet or Sveltos object that builds these files\n".to_owned());
        }
        parts.extend(self.elsewhere_text());
        parts.extend(self.unused_text());
        parts.extend(self.problems.iter().map(|problem| format!("{problem}\n")));
        parts.join("\n")
    }

    fn elsewhere_text(&self) -> Option<String> {
        let repositories = self.elsewhere();
        let line = |(repository, names): (&&str, &BTreeSet<&str>)| {
            let plural = if names.len() == 1 { "" } else { "s" };
            format!("  {repository}  {} Kustomization{plural}\n", names.len())
        };
        let lines = repositories.iter().map(line);
        (!repositories.is_empty()).then(|| format!("built from other repositories:\n{}", lines.collect::<String>()))
    }

    fn unused_text(&self) -> Option<String> {
        let lists =
            [("root", &self.unused.roots), ("Component", &self.unused.components), ("file", &self.unused.files)];
        let mut text = String::new();
        for (kind, paths) in lists {
            for path in paths.iter().take(MAX_LISTED) {
                text += &format!("  {kind:<9}  {path}\n");
            }
            if paths.len() > MAX_LISTED {
                text += &format!("  {kind:<9}  and {} more\n", paths.len() - MAX_LISTED);
            }
        }
        (!text.is_empty()).then(|| format!("not part of any build:\n{text}"))
    }
}

/// Formats a list of objects, such as Argo CD Applications, with the folders that are built for each object. `None` if
/// there are no objects.
fn list(title: &str, objects: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let width = objects.keys().map(|name| name.chars().count()).max()?;
    let line = |(name, roots): (&String, &Vec<String>)| format!("  {name:<width$}  {}\n", roots.join(", "));
    Some(format!("{title}\n{}", objects.iter().map(line).collect::<String>()))
}

impl ClusterOverview {
    fn to_text(&self) -> String {
        let mut text = match &self.folder {
            Some(folder) => format!("cluster {folder}\n"),
            None => "Kustomizations in roots that cannot be built\n".to_owned(),
        };
        let branches: Vec<String> = (0..self.entries.len()).map(|at| self.branch(at)).collect();
        let length = |text: &str| text.chars().count();
        let widths = branches.iter().zip(&self.entries).map(|(branch, entry)| length(branch) + length(&entry.name));
        let width = widths.max().unwrap_or_default();
        for (branch, entry) in branches.iter().zip(&self.entries) {
            let space = " ".repeat(width - length(branch) - length(&entry.name));
            text += &format!("{branch}{}{space}  {}\n", entry.name, entry.description());
        }
        text
    }

    /// Returns the characters that draw the tree in front of the name of a Kustomization, such as `│  └─ `. `at` is the
    /// index of the Kustomization in `entries`.
    fn branch(&self, at: usize) -> String {
        let (mut branch, mut current) = (String::new(), Some(at));
        while let Some(own) = current {
            let parent = self.entries[own].parent;
            let is_last = !self.entries[own + 1..].iter().any(|later| later.parent == parent);
            let part = match (own == at, is_last) {
                (true, true) => "└─ ",
                (true, false) => "├─ ",
                (false, true) => "   ",
                (false, false) => "│  ",
            };
            branch.insert_str(0, part);
            current = parent;
        }
        branch
    }
}

impl Entry {
    /// Returns a text about the Kustomization: what it builds, and for which other Kustomizations it waits.
    pub(super) fn description(&self) -> String {
        let builds = match &self.builds {
            Builds::Folder(folder) => folder.clone(),
            Builds::Elsewhere(repository) | Builds::Composed(repository) => format!("from {repository}"),
            Builds::Unknown(why) => format!("unknown: {why}"),
        };
        let after = match (&*self.depends_on, self.stage) {
            ([], _) => String::new(),
            (names, Some(_)) => format!("  after {}", names.join(", ")),
            (names, None) => format!("  waits forever for {}", names.join(", ")),
        };
        builds + &after
    }
}
