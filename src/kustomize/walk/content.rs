//! Files that a field names: patches, data of generators, configurations.

use super::{Layer, Walk};
use crate::kustomize::finding::Site;
use crate::kustomize::references::NoFile;
use crate::kustomize::rules::{kz004, kz010};
use crate::kustomize::tree::{Lost, TreePath};

impl Walk<'_> {
    /// Returns the file that a field names; reports an invalid name.
    pub(super) fn named(&mut self, layer: &Layer<'_>, site: &Site, text: &str) -> Option<TreePath> {
        let entry = super::Entry { text, site: site.clone(), list: "", index: 0 };
        match layer.loader.file(self.tree, text, self.options) {
            Ok(path) => return Some(path),
            Err(NoFile::Http) => self.uncertainty(site, format!("{} \"{text}\" is fetched over HTTP", site.field)),
            Err(NoFile::Other) => self.uncertainty(site, format!("{text} is neither a file nor a folder")),
            Err(NoFile::Folder(path)) => self.report(kz004::folder(site.clone(), text, &path)),
            Err(NoFile::Restricted(path)) => {
                self.report(kz010::restricted(site.clone(), text, &path, layer.loader.root));
            }
            Err(NoFile::Lost(Lost::Outside { above: true })) => self.report(kz010::outside(site.clone(), text)),
            Err(NoFile::Lost(lost)) => self.lost(layer, &entry, &lost),
        }
        None
    }

    /// Returns the text of the file that a field names.
    pub(super) fn named_text(&mut self, layer: &Layer<'_>, site: &Site, text: &str) -> Option<(TreePath, String)> {
        let path = self.named(layer, site, text)?;
        let content = self.text(site, &path)?;
        Some((path, content))
    }
}
