//! Runs a pair of revisions on the cluster: waits until Flux has applied the first revision, computes the plans for the
//! second revision, and publishes the second revision.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::kinds::{self, DEFINITIONS, Template};
use super::model::{Edit, Files, Pair};
use super::trace;
use crate::context::has_condition;
use crate::git::Repository;
use crate::testbed::Testbed;
use crate::user::User;

/// Timeout for all Kustomizations to apply a revision.
const DEADLINE: Duration = Duration::from_secs(180);
/// Interval for polling the Kustomizations.
const PAUSE: Duration = Duration::from_millis(300);
/// The field manager with which the tests apply objects.
const MANAGER: &str = "person";

/// The results of running a pair of revisions on the cluster.
pub struct PairOutcome {
    /// The time immediately before the second revision was published.
    pub published: OffsetDateTime,
    /// The plan of each Kustomization for the second revision, as JSON, or an error message.
    pub plans: Vec<Result<Value, String>>,
    /// The output of `portcullis diff` for both revisions, as JSON.
    pub diff: Value,
    /// The identities of the live objects that the test changed between the two revisions.
    pub edited: BTreeSet<String>,
    /// The Kustomization objects after the first revision was applied, and after the second revision was applied.
    pub states: [Vec<Value>; 2],
}

/// A runner that lets Flux apply a pair of revisions on a test cluster.
struct PairRunner<'a> {
    testbed: &'a Testbed,
    pair: &'a Pair,
}

/// Creates the CRDs of the kinds that are not built into Kubernetes.
pub fn define_kinds(testbed: &Testbed) {
    let apply = ["apply", "--server-side", "-f", "-"];
    testbed.cluster.kubectl().args(apply).stdin(DEFINITIONS.to_owned()).run().expect_success();
    testbed.cluster.wait_for_crds();
}

/// Runs a pair of revisions on the cluster. Returns the plans, and the states of the Kustomizations.
///
/// # Errors
///
/// If a request fails, or the Kustomizations do not apply a revision in time.
pub fn run_pair(testbed: &Testbed, pair: &Pair) -> Result<PairOutcome, String> {
    let runner = PairRunner { testbed, pair };
    for namespace in [pair.name.clone(), format!("{}-b", pair.name)] {
        runner.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"))?;
    }
    let repository = testbed.fixtures.git.repository(&pair.name);
    let first = commit(&repository, runner.with_objects(&pair.before, &repository));
    for manifest in pair.manifests(&repository.url) {
        runner.apply(&manifest)?;
    }
    let before = runner.wait_until_applied(&first, &|_| true).map_err(|why| format!("the first revision: {why}"))?;
    let edited = runner.edit(&before)?;
    let second = commit(&repository, runner.with_objects(&pair.after, &repository));
    let plans: Vec<_> = (0..pair.kustomizations.len()).map(|at| runner.plan(at, &repository, &second)).collect();
    let diff = runner.diff(&repository, &first, &second);
    let published = OffsetDateTime::now_utc();
    runner.request_reconciliation()?;
    let builds = |name: &str| {
        let at = name.trim_start_matches('k').parse().ok().and_then(|at: usize| plans.get(at));
        at.is_none_or(|plan| plan.as_ref().is_ok_and(|plan| plan["error"].is_null()))
    };
    let after = runner.wait_until_applied(&second, &builds).map_err(|why| format!("the second revision: {why}"))?;
    Ok(PairOutcome { published, plans, diff, edited, states: [before, after] })
}

fn commit(repository: &Repository, files: Files) -> String {
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    repository.commit("main", &files)
}

fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Returns the API resource of a manifest. Supports only Namespaces, ConfigMaps, GitRepositories and Kustomizations.
fn resource_of(manifest: &Value) -> ApiResource {
    let text = |key: &str| manifest[key].as_str().unwrap_or_default();
    let plural = match text("kind") {
        "GitRepository" => "gitrepositories".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    resource(text("apiVersion"), text("kind"), &plural)
}

impl PairRunner<'_> {
    /// Returns the files of a revision with the folders `folders`. Adds the file `clusters/fleet.yaml` with the
    /// manifests of the Kustomizations and of the objects that they use. No Kustomization builds the folder `clusters`.
    fn with_objects(&self, folders: &[super::model::Folder], repository: &Repository) -> Files {
        let mut files = self.pair.files(folders);
        files.push(("clusters/fleet.yaml".to_owned(), self.pair.manifests(&repository.url).join("---\n")));
        files
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        let client = self.testbed.cluster.client();
        match namespace {
            "" => Api::all_with(client, resource),
            _ => Api::namespaced_with(client, namespace, resource),
        }
    }

    fn apply(&self, manifest: &str) -> Result<(), String> {
        let value: Value = serde_saphyr::from_str(manifest).map_err(|error| format!("{error}: {manifest}"))?;
        let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default();
        let (api, name) = (self.api(&resource_of(&value), namespace), value["metadata"]["name"].as_str());
        let (parameters, patch) = (PatchParams::apply(MANAGER).force(), Patch::Apply(&value));
        let applied = self.testbed.cluster.block_on(api.patch(name.unwrap_or_default(), &parameters, &patch));
        applied.map(drop).map_err(|error| format!("{error}: {manifest}"))
    }

    /// Requests that source-controller immediately checks the GitRepository for a new revision.
    fn request_reconciliation(&self) -> Result<(), String> {
        let api =
            self.api(&resource("source.toolkit.fluxcd.io/v1", "GitRepository", "gitrepositories"), &self.pair.name);
        let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "2"}}});
        let patch = Patch::Merge(&patch);
        let patched = self.testbed.cluster.block_on(api.patch("fleet", &PatchParams::default(), &patch));
        patched.map(drop).map_err(|error| error.to_string())
    }

    fn kustomizations(&self) -> Vec<Value> {
        let resource = resource("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "kustomizations");
        let listed = self.testbed.cluster.block_on(self.api(&resource, &self.pair.name).list(&ListParams::default()));
        let items = listed.map(|list| list.items).unwrap_or_default();
        items.into_iter().filter_map(|item| serde_json::to_value(item).ok()).collect()
    }

    /// Waits until each Kustomization has processed a commit. If `builds` returns false for the name of a
    /// Kustomization, the Kustomization must fail; otherwise, it must apply the commit. Returns the Kustomization
    /// objects.
    fn wait_until_applied(&self, commit: &str, builds: &dyn Fn(&str) -> bool) -> Result<Vec<Value>, String> {
        let begun = Instant::now();
        loop {
            let found = self.kustomizations();
            let has_ended = |object: &Value| {
                if builds(object["metadata"]["name"].as_str().unwrap_or_default()) {
                    let applied = object["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
                    return has_condition(object, "Ready", "True") && applied.ends_with(commit);
                }
                // If the folder does not exist, the controller does not set `lastAttemptedRevision`. So the commit is
                // searched in the whole status.
                has_condition(object, "Ready", "False") && object["status"].to_string().contains(commit)
            };
            if found.len() == self.pair.kustomizations.len() && found.iter().all(has_ended) {
                return Ok(found);
            }
            if begun.elapsed() > DEADLINE {
                let states: Vec<_> = found.iter().filter(|object| !has_ended(object)).map(state).collect();
                return Err(format!("not applied: {}", states.join("\n")));
            }
            self.finalize_namespaces();
            thread::sleep(PAUSE);
        }
    }

    /// Changes live objects between the two revisions, as `self.pair.edits` specifies. Returns the identities of the
    /// changed objects.
    fn edit(&self, kustomizations: &[Value]) -> Result<BTreeSet<String>, String> {
        let entries = kustomizations.iter().filter_map(|one| one["status"]["inventory"]["entries"].as_array());
        let ids: Vec<_> = entries.flatten().filter_map(|entry| entry["id"].as_str()).collect();
        let mut edited = BTreeSet::new();
        for (number, edit) in &self.pair.edits {
            if ids.is_empty() {
                break;
            }
            let (id, template, namespace, name) = parse(ids[(number % ids.len() as u64) as usize])?;
            let resource = resource(&template.api_version(0), template.kind, template.plural);
            self.change(&self.api(&resource, &namespace), &name, *edit)
                .map_err(|why| format!("{edit:?} {id}: {why}"))?;
            edited.insert(id);
        }
        self.finalize_namespaces();
        Ok(edited)
    }

    /// Removes the finalizers of Namespaces that are being deleted. Flux waits until these Namespaces are gone, but the
    /// cluster has no namespace controller.
    fn finalize_namespaces(&self) {
        let api: Api<Namespace> = Api::all(self.testbed.cluster.client());
        let listed = self.testbed.cluster.block_on(api.list(&ListParams::default()));
        let is_deleted = |one: &Namespace| one.metadata.deletion_timestamp.is_some();
        let of_pair = |one: &Namespace| one.metadata.name.as_ref().is_some_and(|name| name.contains(&self.pair.name));
        let parameters = PostParams::default();
        for mut namespace in listed.into_iter().flatten().filter(|one| is_deleted(one) && of_pair(one)) {
            namespace.spec.get_or_insert_default().finalizers = None;
            let name = namespace.metadata.name.clone().unwrap_or_default();
            let finalize = api.replace_subresource("finalize", &name, &parameters, &namespace);
            if let Err(error) = self.testbed.cluster.block_on(finalize) {
                eprintln!("Namespace {name} is tried again: {error}");
            }
        }
    }

    fn change(&self, api: &Api<DynamicObject>, name: &str, edit: Edit) -> Result<(), kube::Error> {
        let patch = |metadata: Value| {
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(json!({"metadata": metadata})));
            self.testbed.cluster.block_on(api.patch(name, &parameters, &patch)).map(drop)
        };
        let result = match edit {
            Edit::Set(place, key, value) => patch(json!({place: {key: value}})),
            Edit::RemoveOwner => patch(json!({"labels": {
                "kustomize.toolkit.fluxcd.io/name": null, "kustomize.toolkit.fluxcd.io/namespace": null}})),
            Edit::Delete => self.testbed.cluster.block_on(api.delete(name, &DeleteParams::default())).map(drop),
        };
        match result {
            // Another edit has deleted the object.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other,
        }
    }

    /// Runs `portcullis plan` for the Kustomization with the index `at`. Returns the plan as JSON, or the error
    /// message.
    fn plan(&self, at: usize, repository: &Repository, commit: &str) -> Result<Value, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["plan", &format!("kustomization/k{at}"), "--namespace", &self.pair.name, "--output", "json"]);
        command.args(["--revision", commit, "--source"]).arg(repository.folder());
        command.arg("--kubeconfig").arg(self.testbed.cluster.kubeconfig(User::Admin));
        run_json(command)
    }

    fn diff(&self, repository: &Repository, first: &str, second: &str) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["diff", "--git", &format!("{first}..{second}"), "--output", "json"]);
        command.current_dir(repository.folder());
        run_json(command).unwrap_or_else(Value::String)
    }
}

/// Runs a command. Returns its standard output as JSON, or its standard error if the output is not JSON.
fn run_json(mut command: Command) -> Result<Value, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns the identities of the objects in the inventory of a Kustomization.
pub fn inventory_ids(kustomization: &Value) -> Vec<String> {
    let entries = kustomization["status"]["inventory"]["entries"].as_array().into_iter().flatten();
    entries.filter_map(|entry| Some(parse(entry["id"].as_str()?).ok()?.0)).collect()
}

/// Parses the `id` of an inventory entry. Returns the identity, kind, namespace and name of the object.
fn parse(entry: &str) -> Result<(String, &'static Template, String, String), String> {
    let parts = || {
        let (namespace, rest) = entry.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        let name = name.replace("__", ":");
        let id = trace::id(group, kind, namespace, &name);
        Some((id, kinds::of_kind(group, kind)?, namespace.to_owned(), name))
    };
    parts().ok_or_else(|| format!("{entry} is no entry of an inventory"))
}

fn state(object: &Value) -> String {
    let status = &object["status"];
    format!(
        "{}: applied {}, attempted {}, conditions {}",
        object["metadata"]["name"],
        status["lastAppliedRevision"],
        status["lastAttemptedRevision"],
        status["conditions"]
    )
}
