//! `portcullis verify`: checks that the API server calls portcullis.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::families::Families;
use super::{DENIED, OK, Unusable, check_config, inputs, print};
use crate::cryptography;
use crate::gate::VERIFY_ANNOTATION;

/// Ask the API server to create an object of each kind in a dry run, and report whether portcullis answered.
///
/// Nothing is stored. Exit code 1: portcullis did not answer for a registered kind or, with --families, for a kind of
/// these families.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kubeconfig of the cluster; default: the pod's cluster, or kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of the created objects. The webhooks must not exclude it; they exclude the namespace of portcullis
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Maximum number of seconds to retry until portcullis answers every request
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    /// A configuration file to check first; if it is invalid, the webhooks are not tested
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    families: Families,
}

/// Pause before the next round of probes, if a probe was not answered.
const PAUSE: Duration = Duration::from_secs(2);
/// Maximum size of a response of the API server to a dry-run creation, in bytes. The created objects are smaller.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Maximum size of a list of webhook configurations, in bytes. Each configuration has a few kilobytes.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A test object for `portcullis verify`. The command creates it in a dry run, to find out whether the API server calls
/// Portcullis. `families` contains the rule families, such as `KZ`, that check objects of this kind.
struct Probe {
    families: &'static [&'static str],
    /// The API versions to try for the object. The first version that the cluster serves is used.
    api_versions: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
    has_namespace: bool,
    content: fn() -> Value,
}

const LANDSCAPER: &str = "landscaper.gardener.cloud/v1alpha1";
/// The minimal objects that `portcullis verify` creates in a dry run, to test whether the API server calls Portcullis.
/// The array contains an object for each rule family that checks new objects, such as `KZ` for kustomize files. The
/// family `GD` has no object here, because it checks deletions and new revisions of Flux sources.
static PROBES: [Probe; 5] = [
    Probe {
        families: &["KZ"],
        api_versions: &["v1"],
        kind: "ConfigMap",
        plural: "configmaps",
        has_namespace: true,
        content: || json!({"data": {"kustomization.yaml": "resources: []\n"}}),
    },
    Probe {
        families: &["OW"],
        api_versions: &[LANDSCAPER],
        kind: "Context",
        plural: "contexts",
        has_namespace: true,
        content: || json!({}),
    },
    Probe {
        families: &["DR"],
        api_versions: &[LANDSCAPER],
        kind: "DryRunConfiguration",
        plural: "dryrunconfigurations",
        has_namespace: true,
        content: || json!({"spec": {"exports": []}}),
    },
    Probe {
        families: &["DP", "LS"],
        api_versions: &[LANDSCAPER],
        kind: "Execution",
        plural: "executions",
        has_namespace: true,
        content: || json!({"spec": {"deployItems": []}}),
    },
    Probe {
        families: &["EN"],
        api_versions: &["apiextensions.crossplane.io/v1beta1", "apiextensions.crossplane.io/v1alpha1"],
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        has_namespace: false,
        content: || json!({"data": {}}),
    },
];

/// The outcome of creating one probe object in a dry run.
enum Outcome {
    /// Portcullis answered the dry-run request with this text.
    Answered(String),
    /// The cluster does not serve the kind.
    Absent,
    /// Portcullis did not answer the dry-run request. Contains the likely reason.
    Unanswered(String),
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    if let Some(config) = &args.config {
        let code = check_config::file(config)?;
        if code != OK {
            return Ok(code);
        }
    }
    cryptography::install();
    inputs::runtime()?.block_on(verify(args))
}

async fn verify(args: &Args) -> Result<u8, Unusable> {
    let client = inputs::client(args.kubeconfig.as_deref()).await?;
    let (on, until) = (args.families.on(), Instant::now() + Duration::from_secs(args.within));
    let is_on = |probe: &&Probe| probe.families.iter().any(|family| on.contains(family));
    // With --families, portcullis must answer the probes of these families. By default, it must answer the probes of
    // all registered resources, if the webhook configurations can be read.
    let registered = if args.families.are_default() { registered(&client).await } else { None };
    let is_asked = |probe: &&Probe| registered.as_ref().is_none_or(|plurals| plurals.contains(probe.plural));
    let is_any = PROBES.iter().filter(is_on).any(|probe| is_asked(&probe));
    for probe in PROBES.iter().filter(is_on).filter(|probe| is_any && !is_asked(probe)) {
        print(&format!("{} ({}): not registered\n", probe.plural, probe.families.join(", ")));
    }
    loop {
        let mut outcomes = Vec::new();
        for probe in PROBES.iter().filter(is_on).filter(|probe| !is_any || is_asked(probe)) {
            outcomes.push((probe, probe.ask(&client, &args.namespace).await));
        }
        let is_settled = !outcomes.iter().any(|(_, outcome)| matches!(outcome, Outcome::Unanswered(_)));
        if is_settled || Instant::now() >= until {
            outcomes.iter().for_each(|(probe, outcome)| print(&probe.line(outcome)));
            return Ok(if is_settled { OK } else { DENIED });
        }
        sleep(PAUSE).await;
    }
}

/// Returns the resources that are registered for webhooks of Portcullis. `None` if the webhook configurations cannot be
/// read.
async fn registered(client: &Client) -> Option<BTreeSet<String>> {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let request = Request::get(PATH).body(Body::empty()).ok()?;
    let response = client.send(request).await.ok().filter(|response| response.status().is_success())?;
    let body = http_body_util::Limited::new(response.into_body(), MAX_LIST_BYTES);
    let bytes = http_body_util::BodyExt::collect(body).await.ok()?.to_bytes();
    Some(resources(&serde_json::from_slice(&bytes).ok()?))
}

/// Returns the plural names of the resources that are registered for webhooks of Portcullis, such as `deployitems`.
/// `list` is a list of webhook configurations.
fn resources(list: &Value) -> BTreeSet<String> {
    let items = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let webhooks = items(list, "items").into_iter().flat_map(|item| items(&item, "webhooks"));
    let ours =
        webhooks.filter(|webhook| webhook["name"].as_str().is_some_and(|name| name.ends_with(".portcullis.dev")));
    let rules = ours.flat_map(|webhook| items(&webhook, "rules"));
    let names = rules.flat_map(|rule| items(&rule, "resources"));
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

impl Probe {
    async fn ask(&self, client: &Client, namespace: &str) -> Outcome {
        for api_version in self.api_versions {
            match self.ask_version(client, namespace, api_version).await {
                Outcome::Absent => {}
                outcome => return outcome,
            }
        }
        Outcome::Absent
    }

    async fn ask_version(&self, client: &Client, namespace: &str, api_version: &str) -> Outcome {
        let request = Request::post(self.path(namespace, api_version)).header("content-type", "application/json");
        let request = match request.body(self.body(api_version)) {
            Ok(request) => request,
            Err(error) => return Outcome::Unanswered(error.to_string()),
        };
        match client.send(request).await {
            Ok(response) => outcome(response).await,
            Err(error) => Outcome::Unanswered(format!("the API server does not answer: {error}")),
        }
    }

    fn path(&self, namespace: &str, api_version: &str) -> String {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let place = if self.has_namespace { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/{root}/{api_version}/{place}{}?dryRun=All", self.plural)
    }

    fn body(&self, api_version: &str) -> Body {
        let mut object = (self.content)();
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({
            "generateName": "portcullis-verify-",
            "annotations": {VERIFY_ANNOTATION: "true"},
            "labels": {"portcullis.dev/kustomize-tree": "kubectl"},
        });
        Body::from(object.to_string().into_bytes())
    }

    fn line(&self, outcome: &Outcome) -> String {
        let what = match outcome {
            Outcome::Answered(words) => words.clone(),
            Outcome::Absent => "skipped: the cluster does not have this kind".to_owned(),
            Outcome::Unanswered(why) => format!("NOT ANSWERED: {why}"),
        };
        format!("{} ({}): {what}\n", self.plural, self.families.join(", "))
    }
}

async fn outcome(response: Response<Body>) -> Outcome {
    let warnings = response.headers().get_all("warning").iter().filter_map(|value| value.to_str().ok());
    let answer = warnings.filter_map(|warning| warning.split('"').nth(1)).find(|text| text.ends_with(" answers"));
    if let Some(answer) = answer {
        return Outcome::Answered(answer.to_owned());
    }
    let code = response.status();
    let body = http_body_util::Limited::new(response.into_body(), MAX_ANSWER_BYTES);
    let bytes = http_body_util::BodyExt::collect(body).await.map(|body| body.to_bytes()).unwrap_or_default();
    if code.is_success() {
        let why = "the API server admitted the object without calling portcullis; is the namespace excluded, or the CA of the webhooks wrong?";
        return Outcome::Unanswered(why.to_owned());
    }
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or("no reason given");
    match code.as_u16() {
        404 if status["details"]["kind"] != "namespaces" => Outcome::Absent,
        _ if message.contains(".portcullis.dev\" denied the request") => Outcome::Answered("refused".to_owned()),
        _ => Outcome::Unanswered(format!("{code}: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PROBES, resources};
    use crate::admission::Operation;
    use crate::gate::Registry;

    /// Checks that `resources` returns only resources for which webhooks of Portcullis are registered. Also checks that
    /// `portcullis verify` can create its test EnvironmentConfig as v1alpha1, the only version that Crossplane 1.17
    /// serves.
    #[test]
    fn probes_only_registered_kinds_in_a_served_version() {
        let list = json!({"items": [
            {"webhooks": [{"name": "validate.portcullis.dev", "rules": [{"resources": ["environmentconfigs"]}]}]},
            {"webhooks": [{"name": "other.example.org", "rules": [{"resources": ["configmaps"]}]}, {"name": "advise.portcullis.dev"}]},
        ]});
        assert_eq!(resources(&list).into_iter().collect::<Vec<_>>(), ["environmentconfigs"]);
        let probe = PROBES.iter().find(|probe| probe.families.contains(&"EN")).unwrap();
        assert_eq!(probe.api_versions.last(), Some(&"apiextensions.crossplane.io/v1alpha1"));
    }

    /// Checks that `PROBES` contains exactly one test object for each rule family that is enabled by default, such as
    /// `KZ`. Also checks that the rules of the family apply to the creation of this object.
    #[test]
    fn every_family_matches_its_probe() {
        for family in Registry::standard().default_families() {
            let registry = Registry::standard().only(&[family]);
            let rules = registry.rules().iter().flat_map(|rule| rule.matchers);
            let matchers: Vec<_> =
                rules.chain(registry.deliveries().iter().flat_map(|delivery| delivery.matchers)).collect();
            let mut probes = PROBES.iter().filter(|probe| probe.families.contains(&family));
            let probe = probes.next().expect("there is one");
            let is_its = |matcher: &&&crate::rule::Match| {
                matcher.plural == probe.plural
                    && matcher.kind == probe.kind
                    && matcher.operations.contains(&Operation::Create)
            };
            assert!(matchers.iter().any(|matcher| is_its(&matcher)), "{family}");
            assert!(probes.next().is_none(), "{family}");
        }
    }
}
