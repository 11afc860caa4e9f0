//! The tree of folders that contain changed kustomize roots, for the navigation of the HTML page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::super::page::escape;
use crate::kustomize::changes::RootChange;

/// A folder in the tree of folders that contain changed kustomize roots.
#[derive(Default)]
pub(super) struct Folder<'p> {
    folders: BTreeMap<&'p str, Self>,
    /// The changed kustomizations of this folder. Each entry has the index of a kustomization in the list of changed
    /// kustomizations, and its number of changed objects. There are several entries if several objects, such as Flux
    /// Kustomizations, build this folder.
    roots: Vec<(usize, usize)>,
}

impl<'p> Folder<'p> {
    /// Builds the tree of the folders that contain the changed kustomize roots `roots`. Each folder stores the indexes
    /// of its own roots in the slice `roots`.
    pub(super) fn of(roots: &[&'p RootChange]) -> Self {
        let mut top = Self::default();
        for (number, root) in roots.iter().enumerate() {
            let mut folder = &mut top;
            for name in root.root.shown().split('/') {
                folder = folder.folders.entry(name).or_default();
            }
            folder.roots.push((number, root.objects.len()));
        }
        top
    }

    /// Writes the folders below this one as a nested HTML list.
    pub(super) fn write(&self, out: &mut String) {
        if self.folders.is_empty() {
            return;
        }
        out.push_str("<ul>\n");
        for (name, folder) in &self.folders {
            let (name, folder) = folder.joined((*name).to_owned());
            folder.item(out, &escape(&name));
        }
        out.push_str("</ul>\n");
    }

    /// Joins the names of nested folders into one name, such as `clusters/production`. Starts at this folder, whose
    /// name is `name`, and descends while a folder has one child folder and no changed kustomization. Returns the
    /// joined name and the last folder.
    fn joined(&self, name: String) -> (String, &Self) {
        let mut folders = self.folders.iter();
        match (folders.next(), folders.next()) {
            (Some((inner, folder)), None) if self.roots.is_empty() => folder.joined(format!("{name}/{inner}")),
            _ => (name, self),
        }
    }

    fn item(&self, out: &mut String, name: &str) {
        out.push_str("<li>");
        if self.roots.is_empty() {
            out.push_str(name);
        }
        for (number, objects) in &self.roots {
            let _ = write!(out, "<a href=\"#root-{number}\">{name} <small>{objects}</small></a> ");
        }
        self.write(out);
        out.push_str("</li>\n");
    }
}
