//! `portcullis audit`: runs the rules on stored objects.

mod table;

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use serde_json::{Value, json};

use super::output::Output;
use super::walk::Progress;
use super::{DENIED, OK, UNUSABLE, Unusable, inputs, pretty, print, say};
use crate::artifacts::{self, Artifacts};
use crate::audit::{Audit, Audited, Chosen, Entry, Outcome, ReportError, Reports};
use crate::cryptography;
use crate::gate::{Gate, Registry};
use crate::process;

/// Run the admission rules on stored objects.
///
/// Each object is checked as an update without changes: a denial means that the next update of the object will be
/// denied. Run a new version before an upgrade to see what the new rules would deny. Exit codes: 0 nothing is denied, 1
/// something is denied, 2 a kind cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kubeconfig of the cluster; default: the pod's cluster, or kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Files or folders used instead of a cluster; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "report"])]
    manifests: Vec<PathBuf>,
    /// Check only objects in this namespace; may be repeated. Default: all objects, also cluster-scoped ones
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Vec<String>,
    /// Run only these rules or families, such as OW or KZ001; may be repeated, or separated by commas
    #[arg(long, value_name = "RULE", value_delimiter = ',', conflicts_with = "report")]
    rules: Vec<String>,
    /// The configuration file, with levels of rules and exemptions from rules
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Has no effect: the kustomize trees of objects such as Flux Kustomizations are always fetched if possible
    #[arg(long, hide = true)]
    #[allow(dead_code, reason = "accepted for compatibility")]
    fetch_trees: bool,
    /// Write policy reports of the API group openreports.io if it is installed, otherwise of wgpolicyk8s.io
    #[arg(long)]
    report: bool,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Exit with 1 on any finding, including warnings
    #[arg(long)]
    strict: bool,
}

/// The result of an audit, and the result of reading and writing policy reports.
struct Outcomes {
    audited: Audited,
    /// The version of Portcullis that wrote the earlier policy reports; `None` if there are none.
    before: Option<String>,
    /// The error of reading or writing the policy reports; `None` if there was no error.
    problem: Option<ReportError>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    args.check(&registry)?;
    let audit = args.audit(registry)?;
    let outcomes = if args.manifests.is_empty() {
        cryptography::install();
        inputs::runtime()?.block_on(args.of_cluster(&audit))?
    } else {
        let mut progress = Progress::new("audited objects:");
        let audited = audit.files(&args.manifests, &inputs::runtime()?, |at| progress.step(at.done, at.all));
        let audited = audited.map_err(inputs::unreadable)?;
        Outcomes { audited, before: None, problem: None }
    };
    print(&match args.output {
        Output::Text => table::text(&outcomes.audited, outcomes.before.as_deref(), audit.gate.registry()),
        Output::Json => pretty(&json(&outcomes)),
    });
    if let Some(problem) = &outcomes.problem {
        say(&format!("warning: {problem}\n"));
    }
    Ok(args.code(&outcomes))
}

impl Args {
    fn check(&self, registry: &Registry) -> Result<(), Unusable> {
        let mut names = registry.families();
        names.extend(registry.ids());
        match self.rules.iter().find(|rule| !names.contains(&rule.as_str())) {
            Some(rule) => Err(Unusable::new(format!("unknown rule {rule:?}; `portcullis rules` lists the rules"))),
            None => Ok(()),
        }
    }

    fn audit(&self, registry: Registry) -> Result<Audit, Unusable> {
        let policy = inputs::policy(self.config.as_deref(), &registry)?;
        let catalog = Arc::new(registry.catalog());
        let metrics = artifacts::Metrics::register(&mut process::registry());
        let trees = Arc::new(Artifacts::new(artifacts::Limits::default(), metrics));
        let gate = Gate::new(registry, policy, catalog).with_trees(trees);
        let chosen = Chosen { rules: self.rules.clone() };
        Ok(Audit { gate: Arc::new(gate), namespaces: self.namespace.clone(), chosen })
    }

    async fn of_cluster(&self, audit: &Audit) -> Result<Outcomes, Unusable> {
        let client = inputs::client(self.kubeconfig.as_deref()).await?;
        let mut progress = Progress::new("audited objects:");
        let audited = audit.cluster(&client, |at| progress.step(at.done, at.all)).await;
        let mut audited = audited.map_err(|error| Unusable::because("the cluster", error))?;
        drop(progress);
        let (before, problem) = self.reported(client, &mut audited, audit.gate.registry()).await?;
        Ok(Outcomes { audited, before, problem })
    }

    /// Sets `is_new` of each finding in `audited`, by comparing the findings with the earlier policy reports in the
    /// cluster. With `--report`, also writes new reports. Returns the version of Portcullis that wrote the earlier
    /// reports, and the reason why the reports could not be read or written. The version is `None` without earlier
    /// reports.
    async fn reported(
        &self,
        client: Client,
        audited: &mut Audited,
        registry: &Registry,
    ) -> Result<(Option<String>, Option<ReportError>), Unusable> {
        let reports = match Reports::read(client).await {
            Ok(reports) => reports,
            Err(error) if self.report => return Err(Unusable::new(error.to_string())),
            Err(error) => return Ok((None, Some(error))),
        };
        reports.compare(audited);
        let before = reports.version();
        if self.report {
            match reports.write(audited, registry, &self.namespace).await {
                Ok(written) => say(&format!("reports: {written}\n")),
                Err(error @ ReportError::NotInstalled) => return Err(Unusable::new(error.to_string())),
                Err(error) => return Ok((before, Some(error))),
            }
        }
        Ok((before, None))
    }

    fn code(&self, outcomes: &Outcomes) -> u8 {
        let audited = &outcomes.audited;
        if !audited.unread.is_empty() || (self.report && outcomes.problem.is_some()) {
            return UNUSABLE;
        }
        let least = if self.strict { Outcome::Warn } else { Outcome::Fail };
        let found = audited.entries.iter().any(|entry| entry.outcome() >= least);
        if found { DENIED } else { OK }
    }
}

fn json(outcomes: &Outcomes) -> Value {
    let audited = &outcomes.audited;
    let unread = audited.unread.iter().map(|unread| json!({"resource": unread.resource, "message": unread.why}));
    json!({
        "findings": audited.entries.iter().map(entry).collect::<Vec<_>>(),
        "objects": audited.objects,
        "passes": audited.passes.values().sum::<usize>(),
        "cut": audited.cut,
        "errors": unread.collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
        "comparedWith": outcomes.before,
    })
}

fn entry(entry: &Entry) -> Value {
    let subject = &entry.subject;
    json!({
        "rule": entry.rule, "level": entry.level, "result": entry.outcome().as_str(), "new": entry.is_new,
        "path": entry.field, "message": entry.message, "help": entry.help,
        "object": {"apiVersion": subject.api_version, "kind": subject.kind, "namespace": subject.namespace,
                   "name": subject.name},
    })
}
