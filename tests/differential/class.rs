//! Classifies errors of kustomize by the layer of the analysis that must detect them.

/// The layer that must detect an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The kustomization file by itself.
    File,
    /// What an entry refers to.
    References,
    /// The manifests.
    Objects,
    /// Which object is which.
    Identity,
    /// The content of an object: only a renderer detects all errors.
    Content,
    /// Plugins, Helm, remote resources.
    Outside,
    /// An unclassified error.
    New,
}

use Layer::{Content, File, Identity, New, Objects, Outside, References};

/// Parts of error texts, the most specific first: kustomize wraps errors, and reports for every error about a folder
/// also that it is not a file.
const SIGNS: &[(&str, Layer)] = &[
    ("index out of range [0] with length 0", References),
    ("panic: ", Content),
    // a field specification meets a scalar where a mapping should be
    ("considering field", Content),
    ("is missing for replacement source", Content),
    ("nothing selected by", Content),
    ("multiple matches for selector", Content),
    ("validator shouldn't modify", Content),
    ("found multiple possible referrals", Content),
    ("number of previous names", Content),
    ("error in ", Content),
    ("unable to find field", Content),
    ("unable to find or create field", Content),
    ("operation does not apply", Content),
    ("testing value", Content),
    ("wrong node kind", Content),
    ("not found in corresponding resource", Content),
    ("cannot be mapped to a field", Content),
    ("external plugins disabled", Outside),
    ("not a generator", Outside),
    ("not a transformer", Outside),
    ("unable to load builtin", Outside),
    ("must specify --enable-helm", Outside),
    ("no 'git' program", Outside),
    ("HTTP Error", Outside),
    ("may not add resource with an already registered id", Identity),
    ("exists; can not use behavior", Identity),
    ("does not exist; cannot merge or replace", Identity),
    ("that could accept merge of", Identity),
    ("no matches for Id", Identity),
    ("multiple matches for Id", Identity),
    ("does not match a config with the following GVK", Identity),
    ("namespace transformation produces ID conflict", Identity),
    ("already encountered", Identity),
    ("must specify a target for JSON patch", Identity),
    ("Multiple Strategic-Merge Patches in one", Identity),
    ("must specify one of patch and path", Identity),
    ("patch and path can't be set at the same time", Identity),
    ("unable to parse SM or JSON patch", Identity),
    ("error parsing regexp", Identity),
    ("illegally repeats the key", Identity),
    ("loading KV pairs", Identity),
    ("sortOptions.order", Identity),
    ("legacySortOptions", Identity),
    ("unknown field", File),
    ("invalid Kustomization:", File),
    ("kustomization.yaml is empty", File),
    ("unable to find one of 'kustomization.yaml'", File),
    ("Found multiple kustomization files", File),
    ("OpenAPI version is not built in", File),
    ("kind should be Kustomization or Component", File),
    ("apiVersion for ", File),
    ("expected kind != 'Component'", References),
    ("expected kind 'Component'", References),
    ("cycle detected", References),
    ("new root cannot be empty", References),
    ("cannot be absolute", References),
    ("is ambiguous: resolves to", References),
    ("missing metadata.name in object", Objects),
    ("missing kind in object", Objects),
    ("MalformedYAMLError", Objects),
    ("unsupported type: map[interface", Objects),
    ("invalid map key", Objects),
    ("unable to parse open API definition", Objects),
    ("already defined at line", Objects),
    ("duplicate merge key", Objects),
    ("map merge requires map", Objects),
    ("invalid map merge", Objects),
    ("security; file", References),
    ("evalsymlink failure", References),
    ("not a valid directory", References),
    ("no such file or directory", References),
    ("file is not directory", References),
    ("is a directory", References),
    ("must resolve to a file", References),
    ("trouble configuring builtin", Identity),
];

/// Returns the class of an error: a part of its text, and the layer.
pub fn of(error: &str) -> (&'static str, Layer) {
    let error = error.rsplit_once("recursed accumulation of path").map_or(error, |(_, innermost)| innermost);
    SIGNS.iter().copied().find(|(sign, _)| error.contains(sign)).unwrap_or(("an error that has no class", New))
}

/// Returns the rules that tell of an error of a class: what kustomize meets first is to be marked as the first finding.
/// Nothing where the class is not a help, as an entry that is neither a file nor a folder could be meant as either.
pub fn rules(class: &str) -> &'static [&'static str] {
    match class {
        "expected kind != 'Component'" => &["KZ001"],
        "expected kind 'Component'" => &["KZ002"],
        "cycle detected" => &["KZ009"],
        "Found multiple kustomization files" => &["KZ006"],
        "unable to find one of 'kustomization.yaml'" => &["KZ005"],
        "kind should be Kustomization or Component" | "apiVersion for " => &["KZ007"],
        "kustomization.yaml is empty" | "unknown field" | "invalid Kustomization:" => &["KZ008"],
        "missing metadata.name in object" | "missing kind in object" => &["KZ013", "KZ014"],
        "external plugins disabled" => &["KZ015"],
        "may not add resource with an already registered id"
        | "no matches for Id"
        | "does not match a config with the following GVK"
        | "does not exist; cannot merge or replace"
        | "namespace transformation produces ID conflict" => &["KZ030"],
        _ => &[],
    }
}
