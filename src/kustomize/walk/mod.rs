//! Walks through a tree in the order in which kustomize evaluates it.
//!
//! kustomize stops at the first error. The walk reports a finding and continues without the invalid part; the objects
//! are then incomplete, and checks that depend on the missing part are skipped.
//!
//! Source: `KustTarget.accumulateTarget` in kustomize's `api/internal/target/kusttarget.go`.

mod content;
mod directory;
mod generate;
mod growth;
mod identity;
mod load;
mod patches;
mod plugins;
mod prepare;
mod replace;
mod resources;
mod root;
mod settings;
mod transform;

use std::collections::HashSet;

use super::accumulate::Accumulator;
use super::explain::Step;
use super::file::{Kustomization, KustomizationFile};
use super::files::Files;
use super::finding::{Site, TreeFinding};
use super::flux::{Own, RootFile};
use super::options::{Options, Version};
use super::references::Loader;
use super::rules::kz040;
use super::tree::{Tree, TreePath};
use crate::admission::FieldPath;

/// Maximum number of errors, and of other findings, per root. Only a malicious root has more.
const MOST_FINDINGS: usize = 1_000;
/// A root has more entries that are files only if it is hostile.
const MOST_ENTRIES: usize = 100_000;
/// Maximum number of visits. A base is evaluated on every visit, so ten folders that each name the next one twice cause
/// a thousand visits.
const MOST_VISITS: usize = 20_000;
/// Each visit is some frames of the stack.
const DEEPEST: usize = 100;

/// The state of a walk.
pub(super) struct Walk<'a> {
    tree: &'a Tree,
    options: &'a Options,
    files: &'a Files,
    pub(super) findings: Vec<TreeFinding>,
    pub(super) reasons: Vec<String>,
    /// The steps being evaluated, the innermost folder last.
    steps: Vec<Step>,
    visits: usize,
    entries: usize,
    /// Bytes that patches added; see `growth`.
    added: u64,
    /// Number of uncertainties, including repeated ones.
    uncertainties: usize,
    /// Whether objects get an annotation with their origin.
    origins: bool,
    /// Whether a custom schema may define cluster-scoped kinds.
    own_schema: bool,
    loaded: HashSet<super::tree::TreePath>,
    /// How many values the objects have because of anchors and aliases.
    aliased: usize,
    /// The folder that is built and, for Flux, its file with the spec merged in.
    pub(super) built: Option<(TreePath, Option<RootFile>)>,
    /// Number of reasons and findings about the build itself; later ones are about Flux's steps after it.
    pub(super) of_build: Option<(usize, usize)>,
}

/// A kustomization on the way from the root that is built.
struct Layer<'a> {
    loader: Loader<'a>,
    file: &'a KustomizationFile,
    /// What of it is the file's own; the rest comes from a Flux Kustomization.
    own: Own,
    depth: usize,
}

/// An entry of a list.
struct Entry<'k> {
    text: &'k str,
    site: Site,
    list: &'static str,
    index: usize,
}

impl Layer<'_> {
    fn kustomization(&self) -> &Kustomization {
        &self.file.kustomization
    }

    fn site(&self, field: FieldPath) -> Site {
        match self.own.in_spec(&field) {
            Some(field) => Site { field, ..Site::of_file(self.file.path.clone()) },
            None => Site::new(self.file.path.clone(), self.file.place(&field), field),
        }
    }

    fn entries<'k>(&self, list: &'static str, texts: &'k [String]) -> impl Iterator<Item = Entry<'k>> {
        texts.iter().enumerate().map(move |(index, text)| {
            let site = self.site(FieldPath::of([list]).index(index));
            Entry { text, site, list, index }
        })
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(tree: &'a Tree, options: &'a Options, files: &'a Files) -> Self {
        Self {
            tree,
            options,
            files,
            findings: Vec::new(),
            reasons: Vec::new(),
            steps: Vec::new(),
            visits: 0,
            entries: 0,
            added: 0,
            uncertainties: 0,
            origins: false,
            own_schema: false,
            loaded: HashSet::new(),
            aliased: 0,
            built: None,
            of_build: None,
        }
    }

    /// Writes down a finding, unless it is known already.
    fn report(&mut self, finding: TreeFinding) {
        let refused = finding.refused;
        let alike = self.findings.iter().filter(|old| old.refused == refused);
        let known =
            |old: &TreeFinding| old.rule == finding.rule && old.site == finding.site && old.message == finding.message;
        if alike.clone().count() < MOST_FINDINGS && !self.findings.iter().any(known) {
            let first = refused && alike.count() == 0;
            self.findings.push(TreeFinding { first, ..finding });
        }
    }

    /// Writes down why the verdict cannot be Accept.
    fn uncertainty(&mut self, site: &Site, reason: impl Into<String>) {
        self.uncertainties += 1;
        if self.reasons.len() >= MOST_FINDINGS {
            return;
        }
        let reason = reason.into();
        let text = format!("{site}: {reason}");
        if !self.reasons.contains(&text) {
            self.reasons.push(text);
        }
        self.report(kz040::found(site.clone(), &reason));
    }

    /// Evaluates a kustomization on top of the accumulator (`accumulateTarget`).
    fn target(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let kustomization = layer.kustomization();
        let components_first = self.options.version <= Version::NEWEST_WITH_COMPONENTS_FIRST;
        for (list, texts) in [("resources", &kustomization.resources), ("bases", &kustomization.bases)] {
            for entry in layer.entries(list, texts) {
                self.resource(layer, &entry, acc);
            }
        }
        if components_first {
            self.components(layer, acc);
        }
        self.configurations(layer, acc);
        self.crds(layer, acc);
        self.generators(layer, acc);
        if !components_first {
            self.components(layer, acc);
        }
        self.transformers(layer, acc);
        self.validators(layer);
        self.vars(layer, acc);
    }

    fn components(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        for entry in layer.entries("components", &layer.kustomization().components) {
            self.component(layer, &entry, acc);
        }
    }
}
