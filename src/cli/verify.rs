//! `portcullis verify`: whether the API server asks portcullis, and gets an answer.

use std::path::PathBuf;
use std::time::Duration;

use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::families::Families;
use super::{DENIED, OK, Unusable, inputs, print};
use crate::cryptography;
use crate::gate::VERIFY_ANNOTATION;

/// Ask the API server to create an object of each kind in a dry run, and tell whether portcullis answered.
///
/// Nothing is stored. Exit code 1: something that portcullis should be asked about went without its answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster; without, the one around the pod, or the one that kubectl would ask
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of the objects: one that the webhooks are called for, so not portcullis' own
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// Seconds to go on asking until everything is answered
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    #[command(flatten)]
    families: Families,
}

/// How long to wait between two rounds.
const PAUSE: Duration = Duration::from_secs(2);
/// An answer that is longer than this is no object of ours.
const LONGEST_ANSWER: usize = 1 << 20;

/// An object that rules of these families look at when it is created.
struct Probe {
    families: &'static [&'static str],
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    has_namespace: bool,
    content: fn() -> Value,
}

const LANDSCAPER: &str = "landscaper.gardener.cloud/v1alpha1";
/// Of each family the kind of objects that says least.
static PROBES: [Probe; 5] = [
    Probe {
        families: &["KZ"],
        api_version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        has_namespace: true,
        content: || json!({"data": {"kustomization.yaml": "resources: []\n"}}),
    },
    Probe {
        families: &["OW"],
        api_version: LANDSCAPER,
        kind: "Context",
        plural: "contexts",
        has_namespace: true,
        content: || json!({}),
    },
    Probe {
        families: &["DR"],
        api_version: LANDSCAPER,
        kind: "DryRunConfiguration",
        plural: "dryrunconfigurations",
        has_namespace: true,
        content: || json!({"spec": {"exports": []}}),
    },
    Probe {
        families: &["DP", "LS"],
        api_version: LANDSCAPER,
        kind: "Execution",
        plural: "executions",
        has_namespace: true,
        content: || json!({"spec": {"deployItems": []}}),
    },
    Probe {
        families: &["EN"],
        api_version: "apiextensions.crossplane.io/v1beta1",
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        has_namespace: false,
        content: || json!({"data": {}}),
    },
];

/// What came of a probe.
enum Outcome {
    /// Portcullis answered, in these words.
    Answered(String),
    /// The cluster has no such kind.
    Absent,
    /// It did not answer, and this is why as far as one can see.
    Unanswered(String),
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    cryptography::install();
    inputs::runtime()?.block_on(verify(args))
}

async fn verify(args: &Args) -> Result<u8, Unusable> {
    let client = inputs::client(args.kubeconfig.as_deref()).await?;
    let (on, until) = (args.families.on(), Instant::now() + Duration::from_secs(args.within));
    loop {
        let mut outcomes = Vec::new();
        for probe in PROBES.iter().filter(|probe| probe.families.iter().any(|family| on.contains(family))) {
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

impl Probe {
    async fn ask(&self, client: &Client, namespace: &str) -> Outcome {
        let request =
            match Request::post(self.path(namespace)).header("content-type", "application/json").body(self.body()) {
                Ok(request) => request,
                Err(error) => return Outcome::Unanswered(error.to_string()),
            };
        match client.send(request).await {
            Ok(response) => outcome(response).await,
            Err(error) => Outcome::Unanswered(format!("the API server does not answer: {error}")),
        }
    }

    fn path(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let place = if self.has_namespace { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/{root}/{}/{place}{}?dryRun=All", self.api_version, self.plural)
    }

    fn body(&self) -> Body {
        let mut object = (self.content)();
        object["apiVersion"] = json!(self.api_version);
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
            Outcome::Absent => "nothing to ask: the cluster does not have this kind".to_owned(),
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
    let body = http_body_util::Limited::new(response.into_body(), LONGEST_ANSWER);
    let bytes = http_body_util::BodyExt::collect(body).await.map(|body| body.to_bytes()).unwrap_or_default();
    if code.is_success() {
        let why = "the API server took the object and asked nobody; is the namespace excluded, or the CA of the webhooks wrong?";
        return Outcome::Unanswered(why.to_owned());
    }
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or("no reason is given");
    match code.as_u16() {
        404 if status["details"]["kind"] != "namespaces" => Outcome::Absent,
        _ if message.contains(".portcullis.dev\" denied the request") => Outcome::Answered("refused".to_owned()),
        _ => Outcome::Unanswered(format!("{code}: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::PROBES;
    use crate::admission::Operation;
    use crate::gate::Registry;

    /// Whoever switches on one family has its probe answered.
    #[test]
    fn every_family_looks_at_its_probe() {
        for family in Registry::standard().families() {
            let registry = Registry::standard().only(&[family]);
            let rules = registry.rules().iter().flat_map(|rule| rule.scope);
            let scopes: Vec<_> =
                rules.chain(registry.deliveries().iter().flat_map(|delivery| delivery.scope)).collect();
            let mut probes = PROBES.iter().filter(|probe| probe.families.contains(&family));
            let probe = probes.next().expect("there is one");
            let is_its = |scope: &&&crate::rule::Match| {
                scope.plural == probe.plural
                    && scope.kind == probe.kind
                    && scope.operations.contains(&Operation::Create)
            };
            assert!(scopes.iter().any(|scope| is_its(&scope)), "{family}");
            assert!(probes.next().is_none(), "{family}");
        }
    }
}
