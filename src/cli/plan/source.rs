//! Opens the files that `portcullis plan` compares with a cluster: a folder, an archive, a git revision, or the current
//! artifact of a Flux source.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::super::{Unusable, inputs, say};
use super::artifact;
use super::cluster::Cluster;
use crate::kustomize::delivery::Artifact;
use crate::kustomize::tree::{GitError, Repository, Tree};

/// Minimum number of characters of an abbreviated commit hash.
const MIN_HASH: usize = 7;

/// The files of the source of a Flux Kustomization, at one revision.
pub(super) struct Source {
    pub(super) tree: Tree,
    /// The revision of the files, such as `main@sha1:3f2c…`. For a folder or archive, which has no revision, it is `of`
    /// and the path, such as `of ./apps`.
    pub(super) revision: String,
    /// The revision as messages show it, with a shortened hash.
    pub(super) shown: String,
}

impl Source {
    /// Opens a folder, a tar archive, or a revision of the git repository in a folder.
    pub(super) fn local(path: &Path, revision: Option<&str>) -> Result<Self, Unusable> {
        let (tree, revision) = match revision {
            Some(revision) => {
                let failed = |error: GitError| Unusable::new(error.to_string());
                let repository = Repository::discover(path).map_err(failed)?;
                (repository.revision(revision).map_err(failed)?.into_tree(), revision.to_owned())
            }
            None => (open(path)?, format!("of {}", path.display())),
        };
        Ok(Self { tree, shown: revision.clone(), revision })
    }

    /// Fetches the current artifact of the source of the Kustomization. Fails if there is no artifact, if it cannot be
    /// fetched, or if it does not have the revision `wanted`.
    pub(super) async fn current(
        cluster: &Cluster,
        kubeconfig: Option<&Path>,
        wanted: Option<&str>,
    ) -> Result<Self, Unusable> {
        let (source, status) = cluster.source().await?;
        let Some(artifact) = Artifact::of(&status) else {
            return Err(Unusable::because(source, "it has no artifact yet; name the files with --source DIR"));
        };
        let Artifact { revision, .. } = &artifact;
        if let Some(wanted) = wanted.filter(|wanted| !is_revision(revision, wanted)) {
            let why = format!(
                "only the current artifact can be fetched, with the revision {revision}, not {wanted}; for another revision, name a \
                 git repository with --source DIR"
            );
            return Err(Unusable::because(source, why));
        }
        let client = inputs::client_without_retries(kubeconfig).await?;
        let fetched = artifact::fetch(&client, &artifact).await;
        let (tree, note) = fetched.map_err(|why| Unusable::because(format!("the artifact of {source}"), why))?;
        if let Some(note) = note {
            say(&format!("note: {note}\n"));
        }
        Ok(Self { tree, shown: artifact.short_revision(), revision: artifact.revision })
    }
}

/// Returns whether `text` identifies the revision of an artifact, such as `main@sha1:3f2c…`. `text` may be the whole
/// revision, the commit hash, or the first characters of the hash.
fn is_revision(revision: &str, text: &str) -> bool {
    let hash = revision.rsplit_once(':').map_or(revision, |(_, hash)| hash);
    revision == text || hash == text || text.len() >= MIN_HASH && hash.starts_with(text)
}

fn open(path: &Path) -> Result<Tree, Unusable> {
    if path.is_dir() {
        return Tree::folder(path).map_err(|error| Unusable::new(error.to_string()));
    }
    let file = File::open(path).map_err(|error| Unusable::because(path.display(), error))?;
    Tree::archive(BufReader::new(file), "/").map_err(|error| Unusable::because(path.display(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_named_by_its_commit() {
        let revision = "main@sha1:3f2c9a1b04de";
        for text in [revision, "3f2c9a1b04de", "3f2c9a1"] {
            assert!(is_revision(revision, text), "{text}");
        }
        for text in ["main", "3f2c", "9a1b04de", "", "main@sha1:3f2c9a1"] {
            assert!(!is_revision(revision, text), "{text}");
        }
    }
}
