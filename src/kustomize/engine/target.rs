//! A kustomization that is being built, and the entries in its lists.
//!
//! Source: kustomize's `api/internal/target/kusttarget.go`.

use super::lost::Lost;
use super::origin::OriginNote;
use crate::admission::FieldPath;
use crate::kustomize::argo;
use crate::kustomize::file::SharedFile;
use crate::kustomize::finding::Site;
use crate::kustomize::flux;
use crate::kustomize::node::Origin;
use crate::kustomize::references::Loader;

/// A record of which fields of a kustomization file come from the Flux Kustomization or Argo CD Application that builds
/// the folder. The other fields come from the user.
pub(super) enum Own {
    /// The fields of the kustomization file that Flux has copied from the spec of the Flux Kustomization. Findings
    /// about these fields name the field in the spec.
    Flux(flux::Own),
    /// The fields of the kustomization file that Argo CD has copied from the Application. Findings about these fields
    /// name the field of the Application.
    Argo(argo::Own),
}

impl Own {
    /// Returns the field of the Flux Kustomization or Argo CD Application that sets a field of the kustomization file.
    /// `None` if the user sets the field in the kustomization file.
    fn in_spec(&self, field: &FieldPath) -> Option<FieldPath> {
        match self {
            Self::Flux(own) => own.in_spec(field),
            Self::Argo(own) => own.in_spec(field),
        }
    }
}

/// A kustomization that is being built.
pub(super) struct Target<'t> {
    /// The folder of the kustomization, and the folders through which the build reached it, such as the overlay that
    /// refers to a base.
    pub(super) loader: Loader<'t>,
    pub(super) file: SharedFile,
    /// A record of which fields of the kustomization file come from a Flux Kustomization or an Argo CD Application.
    /// `None` if neither of them sets fields in this file.
    pub(super) own: Option<Own>,
    /// The number of the kustomization file in [`Sources`](super::Sources), the list of files of the build.
    pub(super) source: u32,
    /// The origin to record in annotations of objects from this folder; `None` if the build does not record origins.
    pub(super) note: Option<OriginNote>,
    /// The nesting depth of the kustomization: 0 for the kustomization that the user builds, 1 for its bases.
    pub(super) depth: usize,
}

impl Target<'_> {
    /// Returns the position of a field of the kustomization file. If a Flux or Argo CD object sets the field, the
    /// position consists of the path of the field in that object and the path of the kustomization file, without a line
    /// number.
    pub(super) fn site(&self, field: FieldPath) -> Site {
        if let Some(field) = self.own.as_ref().and_then(|own| own.in_spec(&field)) {
            return Site { field, ..Site::of_file(self.file.path.clone()) };
        }
        Site::new(self.file.path.clone(), self.file.place(&field), field)
    }

    /// Returns the position of the entry at `index` in a list of the kustomization file. `list` is the name of the
    /// list, such as `patches`.
    pub(super) fn entry(&self, list: &str, index: usize) -> Site {
        self.site(FieldPath::of([list]).index(index))
    }

    /// Returns an `Entry` for one item of a list in the kustomization file, such as `resources`. `text` is the item,
    /// which is the path or URL of a file or folder. `index` is its index in the list. The result also contains the
    /// position of the item.
    pub(super) fn list_entry<'e>(&self, list: &'static str, index: usize, text: &'e str) -> Entry<'e> {
        Entry { list, index, text, site: self.entry(list, index) }
    }

    /// Returns the file and line to record in new YAML nodes that a transformer or generator creates. `site` is the
    /// position of the kustomization entry that configures the transformer or generator.
    pub(super) fn origin(&self, site: &Site) -> Origin {
        Origin { source: self.source, line: site.place.line }
    }
}

/// An entry of a list such as `resources`. The entry names a file or a folder.
#[derive(Debug, Clone)]
pub(super) struct Entry<'e> {
    pub list: &'static str,
    /// The index of this entry in the list `list` of the kustomization file, starting at 0.
    pub index: usize,
    /// The value of the list entry in the kustomization file, such as `../base`.
    pub text: &'e str,
    /// The position of the entry in the kustomization file.
    pub site: Site,
}

impl Entry<'_> {
    /// Returns the kind of data that is missing from the build if this list entry is skipped because of an error. An
    /// entry of `components` changes existing objects, so these changes are missing. An entry of any other list, such
    /// as `resources`, adds objects, so whole objects are missing.
    pub(super) fn loss(&self) -> Lost {
        if self.list == "components" { Lost::Changes } else { Lost::Objects }
    }
}
