//! `portcullis explain repository`: shows which objects, such as Flux Kustomizations, build which kustomize root of a
//! repository.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::Value;

use super::super::checkout::{self, Known, Scan, SourceFolder};
use super::super::trees::{folder_path, shown, with_display_paths};
use super::super::{OK, Unusable, pretty, print, walk};
use super::Output;
use crate::gate::Registry;
use crate::kustomize::checkout::overview::{Overview, Unused};
use crate::kustomize::checkout::{Cluster, Survey};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::Options;
use crate::kustomize::tree::TreePath;
use crate::yaml::{self, Limits};

/// Show which objects build the kustomizations of a repository, in which order, and which files are in no build.
///
/// If kustomize renders a Flux Kustomization, for example with patches, uses the rendered object. Reads only files, and
/// does not use a network or a cluster.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The repository, or a folder of it
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// A Flux source and the folder that is its root, such as flux-system/apps=.; may be repeated
    #[arg(long = "source", value_name = "NAMESPACE/NAME=DIR")]
    sources: Vec<SourceFolder>,
    /// The configuration file; default: portcullis.yaml of the repository
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    folder_path(&args.folder)?;
    let mut files = walk::manifests(&args.folder).map_err(Unusable::new)?;
    let scan = Scan::of(&mut files, &Options::default())?;
    let sources = Known::read(args.config.as_deref(), &args.sources, &Registry::standard())?.sources;
    let tops = checkout::tops(std::slice::from_ref(&args.folder))?;
    let survey = scan.survey(&checkout::git(&scan.tree, &tops), &tops, &sources);
    let mut overview = Overview::of(&survey, unused(&scan, &survey), &shown);
    overview.problems = overview.problems.into_iter().map(with_display_paths).collect();
    print(&match args.output {
        Output::Text => overview.to_text(),
        Output::Json => pretty(&overview.to_json()),
        Output::Dot => overview.to_dot(),
        Output::Mermaid => overview.to_mermaid(),
        Output::Svg => overview.to_svg(),
    });
    Ok(OK)
}

/// Returns the unused kustomizations and files. No other kustomization refers to them, and no Flux Kustomization, Argo
/// CD Application or similar object builds them.
fn unused(scan: &Scan, survey: &Survey) -> Unused {
    let roots = scan.roots.iter().filter(|root| !survey.reached.contains(root));
    let (components, roots): (Vec<_>, Vec<_>) = roots.partition(|root| is_component(scan, root));
    let listed: HashSet<&TreePath> = scan.references.values().flat_map(|found| &found.files).collect();
    let owners = survey.builds.iter().flat_map(|build| &build.owners);
    let followed: HashSet<&TreePath> =
        survey.clusters.iter().flat_map(Cluster::objects).chain(owners).map(|object| &object.file).collect();
    let is_used =
        |file: &TreePath| survey.reached_files.contains(file) || listed.contains(file) || followed.contains(file);
    let files = scan.manifests.iter().filter(|file| !is_used(file) && holds_objects(scan, file));
    let shown = |paths: Vec<&TreePath>| paths.into_iter().map(shown).collect();
    Unused { roots: shown(roots), components: shown(components), files: shown(files.collect()) }
}

fn is_component(scan: &Scan, folder: &TreePath) -> bool {
    let files = NAMES.into_iter().filter_map(|name| scan.read.kustomization(&scan.tree, &folder.join(name)).ok());
    files.into_iter().any(|file| file.kustomization.is_component())
}

/// Returns whether a YAML file contains Kubernetes objects, and not only data of other tools.
fn holds_objects(scan: &Scan, file: &TreePath) -> bool {
    let Ok(bytes) = scan.tree.read(file) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let is_object = |value: &Value| value["apiVersion"].is_string() && value["kind"].is_string();
    yaml::documents(&text, &Limits::default()).flatten().any(|document| is_object(&document.value))
}
