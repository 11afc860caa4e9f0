//! Tests special cases of deletions by Flux. Usually, Flux deletes the objects that are in the inventory but not in the
//! new revision. In the special cases, Flux deletes other objects, or keeps some. The tests check what Portcullis
//! reports in each case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, objects};
use portcullis::admission::{Operation, Phase};
use portcullis::gate::Policy;
use portcullis::kustomize::analyse;
use portcullis::kustomize::delivery::{Artifact, DeletionLimits, Plan, Sibling, flux_spec};
use portcullis::kustomize::identity::ObjectId;
use portcullis::kustomize::options::{Options, Profile};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use serde_json::{Value, json};

/// A Kustomization, the files of its source, and `siblings`: other Kustomizations with the same source.
struct Root {
    object: Value,
    files: Vec<(&'static str, String)>,
    siblings: Vec<Value>,
}

/// Returns a Kustomization that builds the folder `app`. `files` contains the files of its source, and `inventory` the
/// ids of the objects in its inventory.
fn root(files: &[(&'static str, &str)], inventory: &[&str]) -> Root {
    let entries: Vec<_> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    let mut object = kustomization("app", json!({}));
    object["status"] = json!({"inventory": {"entries": entries}});
    Root { object, files: files.iter().map(|(path, text)| (*path, (*text).to_owned())).collect(), siblings: Vec::new() }
}

fn kustomization(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "flux-system", "uid": "1"},
        "spec": {"path": name, "prune": true, "interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

impl Root {
    fn with(mut self, spec: Value) -> Self {
        self.object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        self
    }

    fn with_sibling(mut self, sibling: Value) -> Self {
        self.siblings.push(sibling);
        self
    }

    fn rendered(&self, object: &Value) -> (Vec<String>, Option<Vec<ObjectId>>) {
        let files = self.files.iter().fold(Memory::new(), |files, (path, text)| files.file(path, text.as_str()));
        let options = Options { flux: flux_spec(&object["spec"]), ..Options::of(Profile::Flux) };
        let path = TreePath::from(object["spec"]["path"].as_str().unwrap());
        let report = analyse(&Tree::new(files, "/"), &path, &options);
        let findings = report.findings.iter().map(|finding| format!("{} {}", finding.rule, finding.message));
        (findings.collect(), report.rendered)
    }

    /// Returns all findings for the Flux Kustomization. First come the findings about its kustomize tree. If the tree
    /// can be built, findings about the objects that Flux would delete from the cluster follow.
    fn findings(&self) -> Vec<String> {
        let (mut findings, rendered) = self.rendered(&self.object);
        let Some(rendered) = rendered else { return findings };
        let artifact = Artifact { url: "http://x".into(), digest: "d".into(), revision: "main@sha1:1".into() };
        let sibling = |object: &Value| Some((Sibling::of(object, &artifact)?, self.rendered(object).1?));
        let siblings: Vec<_> = self.siblings.iter().filter_map(sibling).collect();
        let plan = Plan {
            kustomization: &self.object,
            inventory: ObjectId::of_inventory(&self.object),
            rendered: &rendered,
            siblings: siblings.iter().map(|(sibling, objects)| (sibling, &**objects)).collect(),
            revision: artifact.short_revision(),
            limits: DeletionLimits::default(),
        };
        findings.extend(plan.findings().iter().map(|finding| format!("{} {}", finding.rule, finding.message)));
        findings
    }

    #[track_caller]
    fn assert_findings(&self, expected: &[&str]) {
        let findings = self.findings();
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, words) in findings.iter().zip(expected) {
            assert!(finding.contains(words), "{findings:#?} without {words:?}");
        }
    }
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    let namespace = if namespace.is_empty() { String::new() } else { format!("  namespace: {namespace}\n") };
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}")
}

fn map(name: &str) -> String {
    object("v1", "ConfigMap", "a", name)
}

/// Returns the findings about a request of kustomize-controller to delete the object `deleted`, with the default
/// policy. `stored` contains the objects in the cluster.
fn deletion_findings(stored: &[Value], deleted: Value) -> Vec<String> {
    let case = Case::new(Operation::Delete, deleted).stored(stored.to_vec()).policy(Policy::default());
    let verdict = case.user("system:serviceaccount:flux-system:kustomize-controller").decide(Phase::Validate);
    verdict.findings.iter().map(|finding| format!("{} {} {}", finding.level, finding.rule, finding.message)).collect()
}

fn with_owner_labels(text: &str, owner: &str) -> Value {
    let mut object = objects(text).remove(0);
    object["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": owner,
                                          "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    object
}

/// The number of a case in [`CASES`], and its test.
type PruningCase = (u8, fn());

const CASES: [PruningCase; 30] = [
    (1, || root(&[("app/a.yaml", &map("a"))], &["_n__Namespace"]).with(json!({"prune": false})).assert_findings(&[])),
    (2, || {
        root(&[("app/a.yaml", &map("a"))], &["_n__Namespace"])
            .assert_findings(&["unless it is excluded from pruning", "KZ061"])
    }),
    (3, || {
        let claim = object("v1", "PersistentVolumeClaim", "a", "c");
        let other = deletion_findings(&[kustomization("app", json!({}))], with_owner_labels(&claim, "other"));
        assert_eq!(other, [""; 0], "there is no finding if the owner does not exist");
        assert_eq!(deletion_findings(&[kustomization("app", json!({}))], with_owner_labels(&claim, "app")).len(), 1);
    }),
    (4, || {
        let files = [("app/a.yaml", &*map("a")), ("web/b.yaml", &*map("b"))];
        let app = root(&files, &["a_a__ConfigMap", "a_b__ConfigMap"]).with_sibling(kustomization("web", json!({})));
        app.assert_findings(&["KZ063"]);
    }),
    (5, || {
        let app = || root(&[("app/a.yaml", &map("${name}"))], &["a_x__ConfigMap", "_n__Namespace"]);
        app().with(json!({"postBuild": {"substitute": {"name": "x"}}})).assert_findings(&["KZ060"]);
        let unknown = app().with(json!({"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "s"}]}}));
        assert!(!unknown.findings().iter().any(|finding| finding.starts_with("KZ06")), "the names are unknown");
    }),
    (6, || {
        let generator = "configMapGenerator: [{name: c, namespace: a, literals: ['k=${v}']}]\n";
        let (files, spec) =
            ([("app/kustomization.yaml", generator)], |v| json!({"postBuild": {"substitute": {"v": v}}}));
        let name = |v| root(&files, &[]).with(spec(v)).object;
        let of = |v| root(&files, &[]).rendered(&name(v)).1.unwrap();
        assert_eq!(of("1"), of("2"), "the hash does not change");
    }),
    (7, || {
        let generator = "configMapGenerator: [{name: c, namespace: a, literals: [k=v]}]\n";
        root(&[("app/kustomization.yaml", generator)], &["a_c-2428d88g5t__ConfigMap"]).assert_findings(&[]);
    }),
    (8, || {
        let files = "namespace: a\nresources: [x.yaml]\n";
        let custom = object("example.org/v1", "Cluster", "", "x");
        root(&[("app/kustomization.yaml", files), ("app/x.yaml", &custom)], &["_x_example.org_Cluster"])
            .assert_findings(&[]);
    }),
    (9, || {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}\n";
        root(&[("app/l.yaml", list)], &["a_b__ConfigMap"]).assert_findings(&[]);
    }),
    (10, || {
        let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a__b");
        root(&[("app/r.yaml", &role)], &["_a__b_rbac.authorization.k8s.io_ClusterRole"]).assert_findings(&[]);
    }),
    (11, || {
        let files = [("app/d.yaml", object("apps/v1beta1", "Deployment", "a", "d"))];
        root(&[("app/d.yaml", &files[0].1)], &["a_d_apps_Deployment"]).assert_findings(&[]);
        root(&[("app/d.yaml", &files[0].1)], &["a_d_extensions_Deployment"]).assert_findings(&["KZ061"]);
    }),
    (12, || {
        let namespace = object("v1", "Namespace", "", "develop-test");
        root(&[("app/n.yaml", &namespace)], &[])
            .with(json!({"targetNamespace": "develop"}))
            .assert_findings(&["KZ064"]);
    }),
    (13, || assert_protected_kind("_n__Namespace", "everything in the namespace")),
    (14, || assert_protected_kind("_x.b.c_apiextensions.k8s.io_CustomResourceDefinition", "all objects of its kind")),
    (15, || {
        assert_protected_kind(
            "a_k_kustomize.toolkit.fluxcd.io_Kustomization",
            "the objects that it applied, if it prunes",
        )
    }),
    (16, || assert_protected_kind("a_h_helm.toolkit.fluxcd.io_HelmRelease", "which is uninstalled")),
    (17, || {
        let found = root(&[("app/a.yaml", &map("a"))], &["a_d_apps_Deployment"]).findings();
        assert!(found.len() == 1 && !found[0].contains("ReplicaSet"), "dependents are not reported: {found:?}");
    }),
    (18, || {
        let set = with_owner_labels(&object("apps/v1", "StatefulSet", "a", "s"), "app");
        let found = deletion_findings(&[kustomization("app", json!({"force": true}))], set);
        assert!(
            found.len() == 1 && found[0].starts_with("deny GD001"),
            "the deletion is denied even if the object is rendered: {found:?}"
        );
    }),
    (19, || {
        root(&[("app/README.md", "nothing")], &["a_b__ConfigMap"])
            .assert_findings(&["does not render 1 of the 1 objects"])
    }),
    (20, || {
        for files in
            [vec![("other/a.yaml", map("a"))], vec![("app/kustomization.yaml", "resources: [gone.yaml]\n".into())]]
        {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            let found = root(&files, &["_n__Namespace"]).findings();
            assert!(found.len() == 1 && found[0].starts_with("KZ004"), "nothing is deleted: {found:?}");
        }
    }),
    (21, || root(&[("app/a.yaml", &map("a"))], &[]).assert_findings(&[])),
    (22, || {
        let mut app = root(&[("app/a.yaml", &map("a"))], &["a_a__ConfigMap"]);
        app.object["status"]["lastAppliedRevision"] = "main@sha1:0".into();
        app.assert_findings(&[]);
    }),
    (23, || {
        let refused = root(&[("app/a.yaml", &map("a"))], &["a_a__ConfigMap", "_refused__Namespace"]);
        refused.assert_findings(&["KZ060 revision main@sha1:1 does not render Namespace refused"]);
    }),
    (24, || {
        let disabled = map("a") + "  annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}\n";
        root(&[("app/a.yaml", &disabled)], &["a_a__ConfigMap"]).assert_findings(&[]);
    }),
    (25, || {
        let mut renamed = root(&[], &["a_a__ConfigMap"]).object;
        renamed["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z".into();
        let many: Vec<_> = (0..10).map(|at| json!({"id": format!("a_x{at}__ConfigMap"), "v": "v1"})).collect();
        assert_eq!(deletion_findings(&[renamed.clone()], with_owner_labels(&map("a"), "app")), [""; 0]);
        renamed["status"]["inventory"]["entries"] = many.into();
        let found = deletion_findings(&[renamed.clone()], with_owner_labels(&map("x1"), "app"));
        assert!(found.len() == 1 && found[0].contains("the deletion of Kustomization flux-system/app"), "{found:?}");
        renamed["metadata"]["annotations"] = json!({"portcullis.dev/approve-deletions": "1"});
        assert!(deletion_findings(&[renamed], with_owner_labels(&map("x1"), "app"))[0].starts_with("audit GD001"));
    }),
    (26, || {
        let claim = object("v1", "PersistentVolumeClaim", "a", "c");
        let account = kustomization("app", json!({"serviceAccountName": "deployer"}));
        let case = Case::new(Operation::Delete, with_owner_labels(&claim, "app")).stored(vec![account]);
        let verdict = case.user("system:serviceaccount:flux-system:deployer").decide(Phase::Validate);
        assert!(!verdict.is_allowed(), "the account of the Kustomization");
    }),
    (27, || root(&[("app/a.yaml", &map("a"))], &["a_a__ConfigMap", "a_x_gone.example.org_Gone"]).assert_findings(&[])),
    (28, || {
        let files = [("app/a.yaml", &*map("a")), ("web/b.yaml", &*map("b"))];
        let inventory = ["a_a__ConfigMap", "a_b__ConfigMap"];
        let depends = |on: &str| json!({"dependsOn": [{"name": on}]});
        root(&files, &inventory)
            .with_sibling(kustomization("web", depends("app")))
            .assert_findings(&["depends on this one"]);
        root(&files, &inventory)
            .with(depends("web"))
            .with_sibling(kustomization("web", json!({})))
            .assert_findings(&[]);
    }),
    (29, || {
        let since_then = root(&[("app/a.yaml", &map("a"))], &["a_a__ConfigMap"]);
        since_then.assert_findings(&[]);
    }),
    (30, || {
        let common = json!({"commonMetadata": {"labels": {"kustomize.toolkit.fluxcd.io/prune": "Disabled"}}});
        let verdict = Case::new(Operation::Create, kustomization("app", common)).decide(Phase::Validate);
        assert!(verdict.findings.iter().any(|finding| finding.rule == "KZ065"));
    }),
];

/// Checks that KZ060 reports the deletion of `entry`, the inventory entry of an object of a protected kind. The message
/// of the finding must contain `words`.
fn assert_protected_kind(entry: &str, words: &str) {
    let found = root(&[("app/a.yaml", &map("a"))], &["a_a__ConfigMap", entry]).findings();
    assert!(found.len() == 1 && found[0].starts_with("KZ060") && found[0].contains(words), "{found:?}");
}

#[test]
fn every_case_has_the_expected_findings() {
    assert!(CASES.iter().map(|(number, _)| *number).eq(1..=30));
    for (number, test) in CASES {
        if let Err(report) = std::panic::catch_unwind(test) {
            panic!("case {number}: {report:?}");
        }
    }
}
