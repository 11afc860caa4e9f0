//! Predicts whether kustomize can build a kustomization, and collects the findings about it.

use std::fmt;

use super::engine::{self, Shared};
use super::explain::Step;
use super::files::Files;
use super::finding::TreeFinding;
use super::flux::Excluded;
use super::identity::ObjectId;
use super::options::{Options, Profile};
use super::tree::{Tree, TreePath};

/// The prediction of whether kustomize can build a kustomization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// kustomize can build the kustomization.
    Accept,
    /// kustomize cannot build the kustomization.
    Reject,
    /// It is unknown whether kustomize can build the kustomization. For example, the result depends on a remote
    /// resource, a Helm chart or an external plugin, which the analysis does not fetch or run.
    Unknown,
}

impl Verdict {
    /// Returns the name of the verdict in reports, such as `accept`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The result of the analysis of a kustomization.
#[derive(Debug, Clone)]
pub struct Report {
    /// The folder of the kustomization in the tree.
    pub root: TreePath,
    /// The system that builds the kustomization, such as Flux.
    pub profile: Profile,
    /// Whether kustomize can build the kustomization.
    pub verdict: Verdict,
    /// The reasons why the result of the build is unknown, such as a remote resource. If there is a reason, the verdict
    /// is not `Accept`.
    pub reasons: Vec<String>,
    /// The findings, in the order in which kustomize processes the files.
    pub findings: Vec<TreeFinding>,
    /// The steps of the build in their order, such as the bases and transformers. `None` if the kustomization cannot be
    /// read, or if the report comes from [`analyse_shared`], which does not record steps.
    pub evaluation: Option<Step>,
    /// The identities of all rendered objects, if Flux builds the kustomization. `None` if another tool builds it, such
    /// as Argo CD. Also `None` if kustomize cannot build it, or if an identity cannot be determined.
    pub rendered: Option<Vec<ObjectId>>,
    /// The rendered objects that Flux does not apply, because a label or annotation excludes them.
    pub excluded: Vec<Excluded>,
}

/// Predicts whether kustomize can build the folder `root` of a tree, and collects the findings.
pub fn analyse(tree: &Tree, root: &TreePath, options: &Options) -> Report {
    analyse_with(tree, root, options, &Files::default())
}

/// Analyzes the kustomization in the folder `root`, like [`analyse`]. `files` is a cache of parsed kustomization files.
/// All calls with the same `files` must use trees with the same kustomization files, because the key of the cache is
/// only the path.
pub fn analyse_with(tree: &Tree, root: &TreePath, options: &Options, files: &Files) -> Report {
    reported(root, options, engine::report(tree, root, options, files, None))
}

/// Analyzes the kustomization in the folder `root`, like [`analyse`], but with caches that several calls share. `files`
/// caches parsed kustomization files. `shared` caches built bases and parsed patches. All calls with the same `shared`
/// must have the same `tree` and the same `options`, except for options that affect only the folder `root`, such as
/// `flux`. The report does not contain the steps of the build.
pub fn analyse_shared(tree: &Tree, root: &TreePath, options: &Options, (files, shared): (&Files, &Shared)) -> Report {
    reported(root, options, engine::report(tree, root, options, files, Some(shared)))
}

fn reported(root: &TreePath, options: &Options, reported: engine::Reported) -> Report {
    let engine::Reported { mut findings, reasons, evaluation, rendered, excluded } = reported;
    let first = findings.iter_mut().find(|finding| finding.location.refused);
    let verdict = match (first, reasons.is_empty()) {
        (Some(first), _) => {
            first.location.first = true;
            Verdict::Reject
        }
        (None, true) => Verdict::Accept,
        (None, false) => Verdict::Unknown,
    };
    let rendered = rendered.filter(|_| verdict != Verdict::Reject);
    let (root, profile) = (root.clone(), options.profile);
    Report { root, profile, verdict, reasons, findings, evaluation, rendered, excluded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::options::Profile;
    use crate::kustomize::tree::Memory;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::new(files.iter().fold(Memory::new(), |memory, (path, text)| memory.file(path, *text)), "/")
    }

    fn rules(files: &[(&str, &str)]) -> Vec<String> {
        let report = analyse(&tree(files), &"app".into(), &Options::default());
        report.findings.iter().map(|finding| format!("{} {}", finding.rule, finding.field)).collect()
    }

    const OBJECTS: &str = "kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\n";

    #[test]
    fn every_independent_error_is_reported() {
        let file = "resources: [o.yaml, gone.yaml, o.yaml]\npatches:\n- path: gone.yaml\n- {patch: '{', path: o.yaml}\n\
                    configMapGenerator:\n- {name: c, literals: [x], files: [a=b=c]}\n- literals: [k=v]\n";
        let expected = [
            "KZ004 resources[1]",
            "KZ030 resources[2]",
            "KZ016 configMapGenerator[0].literals[0]",
            "KZ016 configMapGenerator[0].files[0]",
            "KZ016 configMapGenerator[1]",
            "KZ004 patches[0].path",
            "KZ014 patches[1]",
        ];
        let found = rules(&[("app/kustomization.yaml", file), ("app/o.yaml", OBJECTS)]);
        // each of the two objects of the file is a duplicate, with a finding of its own
        let (_, found) = found.iter().fold((None, Vec::new()), |(last, mut all), rule| {
            if last != Some(rule) {
                all.push(rule.as_str());
            }
            (Some(rule), all)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn every_failing_patch_is_reported_once() {
        let remove = r#"patch: '[{"op": "remove", "path": "/x"}]'"#;
        let file = format!(
            "resources: [o.yaml]\npatches:\n- {{target: {{kind: A}}, {remove}}}\n- {{target: {{kind: A}}, {remove}}}\n\
             - {{target: {{kind: B}}, {remove}}}\n"
        );
        let found = rules(&[("app/kustomization.yaml", &file), ("app/o.yaml", OBJECTS)]);
        assert_eq!(found, ["KZ014 patches[0]", "KZ014 patches[2]"], "the second may be a consequence of the first");
    }

    #[test]
    fn consequences_of_a_missing_part_are_not_reported() {
        let file = |base: &str| {
            format!(
                "resources: [o.yaml{base}]\nreplicas: [{{name: z, count: 1}}]\npatches:\n\
                 - patch: '{{kind: Z, metadata: {{name: z}}}}'\n- {{target: {{kind: Z}}, patch: '{{kind: Z, metadata: {{name: z}}}}'}}\n\
                 configMapGenerator:\n- {{name: z, behavior: merge}}\n"
            )
        };
        let complete = rules(&[("app/kustomization.yaml", &file("")), ("app/o.yaml", OBJECTS)]);
        assert_eq!(
            complete,
            ["KZ030 configMapGenerator[0]", "KZ030 patches[0]", "KZ025 patches[1].target", "KZ030 replicas[0]"]
        );
        let without = rules(&[("app/kustomization.yaml", &file(", gone")), ("app/o.yaml", OBJECTS)]);
        assert_eq!(without, ["KZ004 resources[1]"]);
    }

    #[test]
    fn an_error_that_a_remote_part_cannot_cause_is_reported() {
        let file = "resources: [o.yaml, 'https://example.org/o.yaml']\npatches:\n\
                    - {target: {kind: A}, patch: '[{\"op\": \"remove\", \"path\": \"/x\"}]'}\n";
        let report = analyse(
            &tree(&[("app/kustomization.yaml", file), ("app/o.yaml", OBJECTS)]),
            &"app".into(),
            &Options::default(),
        );
        assert_eq!((report.verdict, report.reasons.len()), (Verdict::Reject, 1));
        let with_component = file.replace("patches:", "components: ['https://example.org/a/b']\npatches:");
        let files = [("app/kustomization.yaml", with_component.as_str()), ("app/o.yaml", OBJECTS)];
        let report = analyse(&tree(&files), &"app".into(), &Options::default());
        assert_eq!(report.verdict, Verdict::Unknown, "the component may add the field");
    }

    #[test]
    fn findings_in_a_shared_base_belong_to_every_root() {
        let tree = tree(&[
            ("a/kustomization.yaml", "resources: [../base]\n"),
            ("b/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "bases: [../inner]\n"),
            ("inner/kustomization.yaml", "resources: [o.yaml]\ncommonLabels: {a: b}\n"),
            ("inner/o.yaml", OBJECTS),
        ]);
        for profile in [Profile::Kubectl, Profile::ArgoCd] {
            let (options, files, shared) = (Options::of(profile), Files::default(), Shared::default());
            let found = |root: &str| {
                let report = analyse_shared(&tree, &root.into(), &options, (&files, &shared));
                assert_eq!(report.verdict, Verdict::Accept);
                report.findings.iter().map(|finding| finding.headline()).collect::<Vec<_>>()
            };
            let first = found("a");
            assert_eq!(first.len(), 2);
            assert_eq!(first, found("b"));
        }
    }

    #[test]
    fn the_files_of_a_shared_base_count_as_input_of_every_root() {
        let object =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n", "x".repeat(5 << 20));
        let tree = tree(&[
            ("a/kustomization.yaml", "resources: [../twice]\n"),
            ("b/kustomization.yaml", "resources: [../twice]\n"),
            ("twice/kustomization.yaml", "resources: [../one, ../two]\n"),
            ("one/kustomization.yaml", "resources: [../base]\nnamePrefix: one-\n"),
            ("two/kustomization.yaml", "resources: [../base]\nnamePrefix: two-\n"),
            ("base/kustomization.yaml", "resources: [o.yaml]\n"),
            ("base/o.yaml", &object),
        ]);
        let (options, files, shared) = (Options::default(), Files::default(), Shared::default());
        for root in ["a", "b"] {
            let report = analyse_shared(&tree, &root.into(), &options, (&files, &shared));
            assert_eq!((report.verdict, report.reasons), (Verdict::Accept, Vec::new()), "{root}");
        }
    }
}
