//! Validates `spec.config` of DeployItems as the manifest and the helm deployer do.
//!
//! Source: the decoding and `ValidateProviderConfiguration` in Landscaper's `apis/deployer/{manifest,helm}`. Both
//! deployers run these checks first, and reject a DeployItem without a configuration.

use serde_json::Value;

use crate::admission::{FieldPath, Level, json as wire};

/// The Landscaper release whose helm deployer accepts the arguments in `INSTALL_ARGUMENTS` and `UNINSTALL_ARGUMENTS`.
/// These lists are copied from the source code of this release.
pub(in crate::landscaper) const RELEASE: &str = "v0.152.0";
/// `helmDeploymentConfig` arguments that the helm deployer of the Landscaper release [`RELEASE`] accepts for `install`
/// and `upgrade`.
const INSTALL_ARGUMENTS: &[&str] = &["atomic", "force", "skipSchemaValidation", "takeOwnership", "timeout", "wait"];
/// `helmDeploymentConfig` arguments that the helm deployer of the Landscaper release [`RELEASE`] accepts for
/// `uninstall`.
const UNINSTALL_ARGUMENTS: &[&str] = &["timeout", "wait"];

/// An error in `spec.config` of a DeployItem. The deployer rejects, or may reject, a DeployItem with this error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::landscaper) struct Fault {
    /// The level of the finding that reports this error. It is `Warn` if a newer release of the deployer may accept the
    /// configuration, and `Deny` otherwise.
    pub(in crate::landscaper) level: Level,
    /// The path of the invalid or missing field, relative to `spec.config`.
    pub(in crate::landscaper) field: FieldPath,
    /// A description of the error, for the message of the finding.
    pub(in crate::landscaper) problem: String,
    /// A text for users that says how to fix the error.
    pub(in crate::landscaper) help: String,
}

/// A deployer of the Landscaper project, with the function that checks `spec.config` of its DeployItems.
struct Deployer {
    type_name: &'static str,
    api_versions: &'static [&'static str],
    check: fn(&Value, &mut Faults),
}

static DEPLOYERS: [Deployer; 2] = [
    Deployer {
        type_name: "landscaper.gardener.cloud/kubernetes-manifest",
        api_versions: &[
            "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
            "manifest.deployer.landscaper.gardener.cloud/v1alpha1",
        ],
        check: manifest,
    },
    Deployer {
        type_name: "landscaper.gardener.cloud/helm",
        api_versions: &["helm.deployer.landscaper.gardener.cloud/v1alpha1"],
        check: helm,
    },
];

const KIND: &str = "ProviderConfiguration";

/// Returns the errors in `config`, the `spec.config` of a DeployItem of type `type_name`. If an error has the level
/// `Deny`, the deployer rejects the DeployItem. Returns no errors for types other than manifest and helm.
pub(in crate::landscaper) fn faults(type_name: &str, config: Option<&Value>) -> Vec<Fault> {
    let Some(deployer) = DEPLOYERS.iter().find(|deployer| deployer.type_name == type_name) else { return Vec::new() };
    let mut faults = Faults(Vec::new());
    let Some(config) = config.filter(|config| config.is_object()) else {
        let not_an_object = |config| format!("the configuration is {}, not an object", wire::kind_of(config));
        let problem = config.map_or_else(|| "the configuration is missing".to_owned(), not_an_object);
        faults.add(FieldPath::root(), problem, "write the configuration of the deployer, an object");
        return faults.0;
    };
    one_of(config, "apiVersion", deployer.api_versions, &mut faults);
    one_of(config, "kind", &[KIND], &mut faults);
    // With another apiVersion or kind, the fields are unknown, so they are not checked.
    if faults.0.is_empty() {
        (deployer.check)(config, &mut faults);
    }
    faults.0
}

struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, field: FieldPath, problem: impl Into<String>, help: impl Into<String>) {
        self.0.push(Fault { level: Level::Deny, field, problem: problem.into(), help: help.into() });
    }

    /// Adds an error at level `warn`, because a newer release of the deployer may accept the configuration.
    fn warn(&mut self, field: FieldPath, problem: impl Into<String>, help: impl Into<String>) {
        self.0.push(Fault { level: Level::Warn, field, problem: problem.into(), help: help.into() });
    }

    /// Adds an error if the required string at `key` in `object` is missing or empty. `place` is the field path of
    /// `object`.
    fn require(&mut self, object: &Value, place: &FieldPath, key: &str) {
        let field = place.key(key);
        match object.get(key) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => {
                self.add(field, format!("{key} is missing"), format!("write {key}"))
            }
            Some(other) => {
                self.add(field, format!("{key} is {}, not a string", wire::kind_of(other)), "write a string")
            }
        }
    }
}

fn one_of(config: &Value, key: &str, wanted: &[&str], faults: &mut Faults) {
    let found = config.get(key).and_then(Value::as_str).unwrap_or_default();
    if !wanted.contains(&found) {
        let help = format!("write {}", wanted.join(" or "));
        faults.add(FieldPath::of([key]), format!("this deployer does not support {key} {found:?}"), help);
    }
}

fn manifest(config: &Value, faults: &mut Faults) {
    let is_wrapped =
        config.get("apiVersion").and_then(Value::as_str).is_some_and(|version| version.ends_with("v1alpha2"));
    for (field, entry) in list(config, "manifests", faults) {
        let manifest = if is_wrapped { entry.get("manifest") } else { Some(entry) };
        if manifest.is_none_or(Value::is_null) {
            let help = if is_wrapped { "write {policy: manage, manifest: …}" } else { "write the manifest" };
            faults.add(field, "the manifest is missing", help);
        }
    }
    common(config, faults);
}

fn helm(config: &Value, faults: &mut Faults) {
    let root = FieldPath::root();
    chart(config.get("chart").unwrap_or(&Value::Null), &FieldPath::of(["chart"]), faults);
    faults.require(config, &root, "name");
    faults.require(config, &root, "namespace");
    helm_arguments(config, faults);
    common(config, faults);
}

/// Adds warnings about helm arguments that the helm deployer of the Landscaper release [`RELEASE`] does not accept.
///
/// Source: `ValidateHelmDeploymentConfiguration` in Landscaper's `apis/deployer/helm/v1alpha1/validation`, which
/// compares keys case-sensitively.
fn helm_arguments(config: &Value, faults: &mut Faults) {
    let parts = [("install", INSTALL_ARGUMENTS), ("upgrade", INSTALL_ARGUMENTS), ("uninstall", UNINSTALL_ARGUMENTS)];
    for (part, known) in parts {
        let given = config.get("helmDeploymentConfig").and_then(|parts| parts.get(part)?.as_object());
        for key in given.into_iter().flat_map(|given| given.keys()).filter(|key| !known.contains(&key.as_str())) {
            let problem = format!("the helm deployer of Landscaper {RELEASE} has no argument {key:?} for {part}");
            let help =
                format!("use one of {}, or check that your helm deployer is newer and accepts it", known.join(", "));
            faults.warn(FieldPath::of(["helmDeploymentConfig", part, key]), problem, help);
        }
    }
}

fn chart(chart: &Value, place: &FieldPath, faults: &mut Faults) {
    let has = |key: &str| chart.get(key).is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
    if !["ref", "archive", "fromResource", "helmChartRepo", "resourceRef"].into_iter().any(has) {
        let help = "write one of ref, resourceRef, helmChartRepo, fromResource and archive";
        return faults.add(place.clone(), "the location of the chart is missing", help);
    }
    let part = |key: &str| chart.get(key).filter(|value| !value.is_null()).map(|value| (value, place.key(key)));
    // The deployer uses the first of these fields that is set.
    if let Some((archive, place)) = part("archive") {
        match archive.get("remote").filter(|remote| !remote.is_null()) {
            Some(remote) => faults.require(remote, &place.key("remote"), "url"),
            None => faults.require(archive, &place, "raw"),
        }
    } else if let Some((resource, place)) = part("fromResource") {
        from_resource(resource, &place, faults);
    } else if let Some((repository, place)) = part("helmChartRepo") {
        for key in ["helmChartRepoUrl", "helmChartName", "helmChartVersion"] {
            faults.require(repository, &place, key);
        }
    }
}

fn from_resource(resource: &Value, place: &FieldPath, faults: &mut Faults) {
    faults.require(resource, place, "resourceName");
    let is_set = |key: &str| resource.get(key).is_some_and(|value| !value.is_null());
    if is_set("inline") {
        return;
    }
    if !is_set("ref") {
        return faults.add(place.key("ref"), "ref is missing", "write ref, or an inline component descriptor");
    }
    let reference = resource.get("ref").unwrap_or(&Value::Null);
    if reference.get("repositoryContext").is_none_or(Value::is_null) {
        let field = place.key("ref").key("repositoryContext");
        faults.add(field, "repositoryContext is missing", "write repositoryContext");
    }
    for key in ["componentName", "version"] {
        faults.require(reference, &place.key("ref"), key);
    }
}

/// Checks the fields that the configurations of the manifest and the helm deployer have in common.
fn common(config: &Value, faults: &mut Faults) {
    for (field, group) in list(config, "deletionGroups", faults) {
        let has = |key: &str| group.get(key).is_some_and(|value| !value.is_null());
        if has("predefinedResourceGroup") == has("customResourceGroup") {
            let help = "write one of predefinedResourceGroup and customResourceGroup";
            faults.add(field, "exactly one of predefinedResourceGroup and customResourceGroup is required", help);
        }
    }
}

/// Returns the elements of the list at `key`, each with its field path. A missing list counts as empty. Adds an error
/// if the value is not a list.
fn list<'v>(config: &'v Value, key: &str, faults: &mut Faults) -> Vec<(FieldPath, &'v Value)> {
    let place = FieldPath::of([key]);
    match config.get(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(entries)) => entries.iter().enumerate().map(|(at, entry)| (place.index(at), entry)).collect(),
        Some(other) => {
            faults.add(place, format!("{key} is {}, not a list", wire::kind_of(other)), "write a list");
            Vec::new()
        }
    }
}
