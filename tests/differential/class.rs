//! Classifies the errors of kustomize. The class of an error determines which layer of Portcullis' analysis must detect
//! the error.

/// A layer of Portcullis' analysis of a kustomize tree. Each error of kustomize has a layer that must detect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The layer that checks the content of a kustomization file, without reading other files.
    File,
    /// The layer that checks the files and folders that entries of a kustomization file refer to.
    References,
    /// The layer that checks manifests: their YAML syntax, and the names and kinds of objects.
    Objects,
    /// The layer that checks the identities of objects. It reports duplicate ids, and patches or generators whose
    /// target object does not exist.
    Identity,
    /// The layer that checks the values of fields in objects, besides names and kinds. Some errors in these values can
    /// be detected only by a complete build.
    Content,
    /// No layer of the analysis. The error concerns plugins, Helm charts or remote resources, which the analysis does
    /// not execute or fetch.
    Outside,
    /// An unknown layer. The error message of kustomize contains none of the texts in `ERROR_PATTERNS`, so it is
    /// unknown which layer must detect the error.
    Unclassified,
}

use Layer::{Content, File, Identity, Objects, Outside, References, Unclassified};

/// Texts that classify the errors of kustomize. An error belongs to the first text that its message contains. This text
/// is the class of the error. The second value is the layer of Portcullis' analysis that must detect the error.
/// Specific texts come first, because kustomize wraps errors: a message about an error in a folder also says that the
/// folder is not a file.
const ERROR_PATTERNS: &[(&str, Layer)] = &[
    ("index out of range [0] with length 0", References),
    ("panic: ", Content),
    // A field specification leads to a scalar instead of a mapping.
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

/// Returns the class and the layer of an error of kustomize. The class is the first text in `ERROR_PATTERNS` that the
/// error message contains.
pub fn of(error: &str) -> (&'static str, Layer) {
    let error = error.rsplit_once("recursed accumulation of path").map_or(error, |(_, innermost)| innermost);
    ERROR_PATTERNS
        .iter()
        .copied()
        .find(|(pattern, _)| error.contains(pattern))
        .unwrap_or(("an error that has no class", Unclassified))
}

/// Returns the rules that report errors of a class. If kustomize fails with an error of the class, the first finding of
/// the analysis must be of one of these rules. Empty if the class does not determine the rules. For example, if an
/// entry is neither a file nor a folder, it is unknown whether the author meant a file or a folder.
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
