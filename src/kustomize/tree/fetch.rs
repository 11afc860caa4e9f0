//! Fetches remote repositories and files into a kustomize tree, if fetching is enabled.

use std::sync::Arc;

use super::{Tree, TreePath};
use crate::kustomize::remote::Repository;

/// A fetcher of remote repositories and files. It stores them in the same tree as the kustomizations that refer to
/// them.
pub trait Fetch: Send + Sync {
    /// Fetches a repository. Returns its top folder in the tree.
    ///
    /// # Errors
    ///
    /// If the repository cannot be fetched. The error contains the reason.
    fn repository(&self, repository: &Repository) -> Result<TreePath, String>;

    /// Fetches a file. Returns its path in the tree.
    ///
    /// # Errors
    ///
    /// If the file cannot be fetched. The error contains the reason.
    fn file(&self, url: &str) -> Result<TreePath, String>;

    /// Returns the top folder of the fetched repository that contains `folder`, if there is one.
    fn repository_of(&self, folder: &TreePath) -> Option<TreePath>;
}

impl Tree {
    /// Enables fetching of remote repositories and files into the tree.
    #[must_use]
    pub fn with_fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.fetch = Some(Arc::new(fetch));
        self
    }

    /// Returns the fetcher of remote repositories and files, if fetching is enabled.
    pub(in crate::kustomize) fn fetch(&self) -> Option<&dyn Fetch> {
        self.fetch.as_deref()
    }

    /// Returns whether `from` is in a fetched repository, and `to` is not in the same repository.
    pub(in crate::kustomize) fn leaves_repository(&self, from: &TreePath, to: &TreePath) -> bool {
        let top = self.fetch().and_then(|fetch| fetch.repository_of(from));
        top.is_some_and(|top| !to.is_within(&top))
    }
}
