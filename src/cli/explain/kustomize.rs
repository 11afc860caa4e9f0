//! `portcullis explain kustomize`: shows the parts of a kustomize root in the order in which kustomize evaluates them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::trees::{folder_path, shown, with_display_paths_of_root};
use super::super::{DENIED, OK, Unusable, pretty, print};
use super::Output;
use crate::kustomize::engine::{Change, Stop, history};
use crate::kustomize::explain::Step;
use crate::kustomize::options::{Options, Profile, Restrictor, Version};
use crate::kustomize::tree::{Tree, TreePath};
use crate::kustomize::{Report, Verdict, analyse};

/// Show the parts of a kustomize root in the order of evaluation.
///
/// Distinguishes Components from Kustomizations, and highlights misplaced ones. Exit code 1: kustomize cannot build the
/// root.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The folder to build
    root: PathBuf,
    /// The system that builds the root: kubectl, flux, argocd, fleet or sveltos
    #[arg(long, default_value = "kubectl")]
    profile: Profile,
    /// The version of kustomize that builds the root
    #[arg(long, value_name = "VERSION", default_value_t = Version::DEFAULT)]
    kustomize_version: Version,
    /// The load restriction of a kustomization: root-only (files in or below its folder) or none (any file); default:
    /// as in the profile
    #[arg(long)]
    load_restrictor: Option<Restrictor>,
    /// Show how a field of this object got its value. KIND/NAME are those of the built object
    #[arg(long, value_name = "KIND/NAME", requires = "field")]
    object: Option<String>,
    /// The field, such as spec.replicas or spec.template.spec.containers.[name=web].image
    #[arg(long, value_name = "PATH", requires = "object")]
    field: Option<String>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::new(error.to_string()))?;
    let mut options = Options::of(args.profile);
    options.version = args.kustomize_version;
    options.restrictor = args.load_restrictor.unwrap_or(options.restrictor);
    options.lone_components = true;
    let root = folder_path(&args.root)?;
    if let (Some(object), Some(field)) = (&args.object, &args.field) {
        return changes(&tree, &root, &options, object, field);
    }
    let report = analyse(&tree, &root, &options);
    let drawing = |draw: fn(&Step) -> String| report.evaluation.as_ref().map(draw).unwrap_or_default();
    let explained = match args.output {
        Output::Text => text(&report),
        Output::Json => pretty(&to_json(&report)),
        Output::Dot => drawing(Step::to_dot),
        Output::Mermaid => drawing(Step::to_mermaid),
        Output::Svg => drawing(Step::to_svg),
    };
    print(&with_display_paths_of_root(&explained, &report.root));
    Ok(if report.verdict == Verdict::Reject { DENIED } else { OK })
}

/// Prints every step of the build that changes the field `field` of the object `object`. For each step, prints the new
/// value of the field.
fn changes(tree: &Tree, root: &TreePath, options: &Options, object: &str, field: &str) -> Result<u8, Unusable> {
    let name = object.split_once('/').ok_or_else(|| Unusable::new(format!("`{object}` is not KIND/NAME")))?;
    let stopped = |stop: Stop| Unusable::new(format!("{} ({})", stop.message(), stop.site()));
    let changes = history(tree, root, options, name, field).map_err(stopped)?;
    let changes = changes.ok_or_else(|| Unusable::new(format!("{object} is not in the output of the build")))?;
    let mut text = format!("{field} of {object}\n");
    for Change { site, step, value } in changes {
        let value = value.unwrap_or_else(|| "(removed)".to_owned()).replace('\n', "\n    ");
        text.push_str(&format!("  {}:{}  {step}\n    {value}\n", shown(&site.file), site.place.line));
    }
    print(&text);
    Ok(OK)
}

fn text(report: &Report) -> String {
    let mut text = report.evaluation.as_ref().map(Step::to_text).unwrap_or_default();
    text.push_str(&format!("\n{}: {}\n", shown(&report.root), report.verdict));
    for reason in &report.reasons {
        text.push_str(&format!("  because {reason}\n"));
    }
    for finding in &report.findings {
        text.push_str(&format!("\n{}\n", finding.paragraph()));
    }
    text
}

fn to_json(report: &Report) -> Value {
    json!({
        "root": shown(&report.root),
        "profile": report.profile.as_str(),
        "verdict": report.verdict.as_str(),
        "reasons": report.reasons,
        "findings": report.findings.iter().map(|finding| finding.paragraph()).collect::<Vec<_>>(),
        "evaluation": report.evaluation.as_ref().map(Step::to_json),
    })
}
