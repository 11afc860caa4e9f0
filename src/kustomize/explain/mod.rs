//! The steps of a kustomize build in the order of evaluation, with their effects.

mod graph;
mod text;

use serde_json::{Value, json};

use super::tree::TreePath;

/// The kind of the file or folder that a step of a kustomize build processes, such as a Component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A folder whose kustomization file has the kind Kustomization.
    Kustomization,
    /// A folder whose kustomization file has the kind Component.
    Component,
    /// A file with objects.
    File,
    /// A remote file or folder, which must be fetched.
    Remote,
    /// A file or folder that does not exist, or that the build cannot use.
    Broken,
}

impl StepKind {
    /// Returns the name of the kind in reports, such as `Component`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kustomization => "Kustomization",
            Self::Component => "Component",
            Self::File => "file",
            Self::Remote => "remote",
            Self::Broken => "broken",
        }
    }
}

/// A step of a kustomize build: an entry of a list such as `resources`, or the folder where the build starts. The step
/// contains the file or folder to which the entry refers. For a folder, it also contains the steps of building this
/// folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The list in the kustomization file that contains the entry, such as `resources`. Empty for the folder where the
    /// build starts.
    pub list: &'static str,
    /// The text of the entry that refers to the file or folder of this step, such as `../base`. Empty for the folder
    /// where the build starts, because no entry refers to it.
    pub entry: String,
    /// The file or folder to which the list entry refers; `None` if it does not exist.
    pub path: Option<TreePath>,
    /// The kind of the file or folder to which the list entry refers, such as a Component or a file with objects.
    pub kind: StepKind,
    /// Whether the file or folder is not allowed in the list, such as a Component in `resources`.
    pub misplaced: bool,
    /// Descriptions of the objects and transformations that the step adds to the build, in the order of evaluation.
    /// Examples are `2 objects` and `namePrefix p-`.
    pub adds: Vec<String>,
    /// The inner steps for building the folder in `path`, in the order of evaluation. Empty for a file.
    pub parts: Vec<Step>,
}

impl Step {
    /// Creates a step with the given list, entry, path and kind. It adds nothing to the build and has no inner steps.
    pub(super) fn new(list: &'static str, entry: &str, path: Option<TreePath>, kind: StepKind) -> Self {
        Self { list, entry: entry.to_owned(), path, kind, misplaced: false, adds: Vec::new(), parts: Vec::new() }
    }

    /// Returns the path of the file or folder that the step processes. If it does not exist, returns the text of the
    /// list entry that refers to it.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| self.entry.clone(), ToString::to_string)
    }

    /// Returns the step and its parts as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "list": self.list,
            "entry": self.entry,
            "path": self.path.as_ref().map(ToString::to_string),
            "kind": self.kind.as_str(),
            "misplaced": self.misplaced,
            "adds": self.adds,
            "parts": self.parts.iter().map(Self::to_json).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::super::tree::{Memory, Tree};
    use super::super::{Report, analyse};

    fn report() -> Report {
        let files = Memory::new()
            .file("app/kustomization.yaml", "resources: [../base, ../part]\ncomponents: [../part]\nnamePrefix: p-\n")
            .file("base/kustomization.yaml", "resources: [a.yaml]\n")
            .file("base/a.yaml", "kind: ConfigMap\nmetadata: {name: a}\n")
            .file("part/kustomization.yaml", "kind: Component\nnameSuffix: -s\n");
        analyse(&Tree::new(files, "/"), &"app".into(), &Options::default())
    }

    #[test]
    fn an_evaluation_is_told_in_its_order() {
        let expected = "\
app (Kustomization)  + namePrefix p-
├─ resources: base (Kustomization)
│  └─ resources: base/a.yaml  + ConfigMap a
├─ resources: part (Component)  ✗ misplaced  + nameSuffix -s
└─ components: part (Component)  + nameSuffix -s
";
        assert_eq!(report().evaluation.unwrap().to_text(), expected);
    }

    #[test]
    fn what_is_misplaced_is_red() {
        let evaluation = report().evaluation.unwrap();
        assert!(evaluation.to_dot().contains("n0 -> n3 [label=\"resources\", color=\"#dc2626\"]"));
        assert!(evaluation.to_mermaid().contains("linkStyle 2 stroke:#dc2626"));
        assert!(evaluation.to_svg().contains("rx=\"12\" fill=\"#dcfce7\" stroke=\"#dc2626\""));
        assert_eq!(evaluation.to_json()["parts"][1]["misplaced"], true);
    }
}
