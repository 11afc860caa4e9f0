//! The command `portcullis plan`. It shows which objects Flux will delete or create in a cluster for one Flux
//! Kustomization, and which objects will move to another Kustomization.
//!
//! By default, the command reads the current artifact of the Flux source, which contains the files that Flux builds.
//! The user can name a folder, an archive or a git revision instead.

mod artifact;
mod cluster;
mod drawing;
mod report;
mod source;

use std::path::PathBuf;

use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use super::{DENIED, OK, Unusable, inputs, pretty, print};
use crate::admission::Metadata;
use crate::cryptography;
use crate::gate::Registry;
use crate::kustomize::Files;
use crate::kustomize::delivery::{Artifact, DeletionLimits, Fate, Judged, Plan, Sibling, judge, owner};
use crate::kustomize::engine::Shared;
use crate::kustomize::identity::ObjectId;
use cluster::Cluster;
use report::{Live, Presence, Report};
use source::Source;

/// Maximum number of objects that are read from the cluster at the same time, to limit the load on the API server.
const MAX_READS: usize = 8;

/// Show which objects Flux will delete, create or move for a Kustomization of a cluster.
///
/// Compares the inventory of the Kustomization with the objects that it renders from the current artifact of its
/// source, or from local files. Reads the live objects, and says why Flux keeps some of them. Exit codes: 0 success, 1
/// objects are deleted (with --exit-code) or the tree cannot be built, 2 the plan cannot be made.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The Kustomization: kustomization/NAME, or NAME
    #[arg(value_name = "KUSTOMIZATION")]
    name: String,
    /// The namespace of the Kustomization
    #[arg(long, short, default_value = "flux-system")]
    namespace: String,
    /// The folder or tar archive with the files of the Flux source; default: the current artifact of the source
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// The git revision to read from the repository in --source, instead of its files. Without --source, the command
    /// fails if the current artifact has another revision
    #[arg(long, value_name = "REV")]
    revision: Option<String>,
    /// The kubeconfig of the cluster; default: kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The configuration file, with the limits on how many objects may be deleted
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Exit with 1 if an object is deleted
    #[arg(long)]
    exit_code: bool,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
    /// A drawing of the deleted, moved, kept and created objects
    Svg,
    /// One HTML page with a filter
    Html,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let name = match args.name.split_once('/') {
        None => args.name.as_str(),
        Some(("kustomization" | "kustomizations" | "ks", name)) => name,
        Some((kind, _)) => return Err(Unusable::because(kind, "only Flux Kustomizations are supported")),
    };
    let policy = inputs::policy(args.config.as_deref(), &Registry::standard())?;
    let revision = args.revision.as_deref();
    let local = args.source.as_deref().map(|path| Source::local(path, revision)).transpose()?;
    cryptography::install();
    let report = inputs::runtime()?.block_on(async {
        let cluster = Cluster::open(args.kubeconfig.as_deref(), &args.namespace, name).await?;
        let source = match local {
            Some(source) => source,
            None => Source::current(&cluster, args.kubeconfig.as_deref(), revision).await?,
        };
        planned(&cluster, &source, DeletionLimits::of(&policy.settings)).await
    })?;
    match args.output {
        Output::Text => print(&report.text()),
        Output::Json => print(&pretty(&report.json())),
        Output::Svg => print(&report.svg()),
        Output::Html => print(&report.html()),
    }
    let fails = report.broken.is_some() || args.exit_code && report.deletes();
    Ok(if fails { DENIED } else { OK })
}

/// Returns a report about what Flux will do with the objects of one Kustomization, [`Cluster::kustomization`]. `limits`
/// contains the limits for deletions.
///
/// Builds this Kustomization and the other Kustomizations of the same source from the files in `source`, and reads the
/// live objects.
async fn planned(cluster: &Cluster, source: &Source, limits: DeletionLimits) -> Result<Report, Unusable> {
    let Source { tree, revision, shown } = source;
    let artifact = Artifact { url: String::new(), digest: String::new(), revision: revision.clone() };
    let object = cluster.kustomization();
    let metadata = Metadata::of(object);
    let (namespace, name) = (metadata.namespace(), metadata.name());
    let (files, shared) = (Files::default(), Shared::default());
    let title = format!("Kustomization {namespace}/{name}, revision {revision}");
    let Some(own) = cluster.build(object, &artifact).await else {
        return Err(Unusable::because(
            format!("{namespace}/{name}"),
            "it is suspended, or its fields contain variables",
        ));
    };
    let mut judged = judge(tree, &own.root, (&files, &shared));
    if let Some(broken) = broken(&judged) {
        return Ok(Report::broken(title, broken));
    }
    let Some(rendered) = judged.rendered.take() else {
        return Err(Unusable::because(title, "the names of its objects depend on unknown values"));
    };
    let rendered = cluster.stored(rendered).await;
    let mut siblings: Vec<(Sibling, Vec<ObjectId>)> = Vec::new();
    for other in cluster.siblings() {
        let Some(sibling) = cluster.build(other, &artifact).await else { continue };
        if let Some(objects) = judge(tree, &sibling.root, (&files, &shared)).rendered {
            siblings.push((sibling, cluster.stored(objects).await));
        }
    }
    let plan = Plan {
        kustomization: object,
        inventory: ObjectId::of_inventory(object),
        rendered: &rendered,
        siblings: siblings.iter().map(|(sibling, objects)| (sibling, &**objects)).collect(),
        revision: shown.clone(),
        limits,
    };
    let live = live(cluster, &plan, (namespace, name)).await;
    Ok(Report::of(title, &plan, &judged.excluded, &live))
}

/// Reads the live state of some objects from the cluster: the objects that the new revision renders, and the objects
/// that it no longer renders. `own` is the namespace and name of the Kustomization.
async fn live(cluster: &Cluster, plan: &Plan<'_>, own: (&str, &str)) -> Live {
    let replaced = plan.replaced();
    let dropped = plan.stale().into_iter().chain(replaced.iter().map(|(old, _)| *old));
    let fates = dropped.map(async |id| {
        let live = cluster.live(id).await;
        (id.clone(), Fate::of(live.as_ref().map(Option::as_ref).map_err(Clone::clone), own))
    });
    let presence = plan.rendered.iter().map(async |id| (id.clone(), Presence::of(cluster.live(id).await)));
    Live {
        fates: stream::iter(fates).buffer_unordered(MAX_READS).collect().await,
        presence: stream::iter(presence).buffer_unordered(MAX_READS).collect().await,
    }
}

impl Presence {
    /// Converts the result of reading an object from the cluster to the object's presence: it exists, does not exist,
    /// or could not be read.
    fn of(live: Result<Option<Value>, String>) -> Self {
        let live = match live {
            Ok(Some(live)) => live,
            Ok(None) => return Self::Absent,
            Err(why) => return Self::Unknown(why),
        };
        Self::Exists(match owner(&live) {
            Some((namespace, name)) => format!("it exists, and its labels name {namespace}/{name} as the owner"),
            None => "it exists, and has no owner".to_owned(),
        })
    }
}

/// Returns the text of the error that stops the build of a kustomize root. `None` if the build succeeds.
fn broken(judged: &Judged) -> Option<String> {
    judged.findings.iter().find(|finding| finding.location.refused).map(|finding| finding.paragraph())
}
