//! `portcullis check`: runs the rules on files.

mod objects;
mod rendered;
mod scripts;
mod shared;
mod trees;
mod unused;

use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use super::checkout::{Choice, Known, SourceFolder};
use super::report::{Output, Report};
use super::{DENIED, OK, UNUSABLE, Unusable, print_with, say, walk};
use crate::admission::Level;
use crate::catalog::manifests::Manifests;
use crate::gate::Registry;
use crate::kustomize::options::{Restrictor, Version};

/// Check Kubernetes manifests and kustomize trees in files before you apply them.
///
/// Objects are checked as if all of them were applied together. Every kustomize root is checked. Exit codes: 0 nothing
/// is denied, 1 something is denied, 2 a file cannot be used.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Files and folders to check; `-` is standard input. With --root, folders among them are ignored
    #[arg(required_unless_present = "roots", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Files or folders with the objects that are already in the cluster
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// The namespace of objects that do not set one
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// A folder to check as a kustomize root; may be repeated. Only files that its kustomization uses are read
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// The system that builds the folders: kubectl, flux, argocd, fleet, sveltos, or auto (derived from the files)
    #[arg(long, default_value = "auto")]
    profile: Choice,
    /// A Flux source and the folder that is its root, such as flux-system/apps=.; may be repeated
    #[arg(long = "source", value_name = "NAMESPACE/NAME=DIR")]
    sources: Vec<SourceFolder>,
    /// Report references to objects that are neither in the files nor in --manifests. Implied by --manifests
    #[arg(long)]
    complete: bool,
    /// List every position of each finding, deprecated fields, and the Kustomizations that are built from other
    /// repositories
    #[arg(long, short)]
    verbose: bool,
    /// The version of kustomize that builds the roots
    #[arg(long, value_name = "VERSION", default_value_t = Version::DEFAULT)]
    kustomize_version: Version,
    /// The load restriction of a kustomization: root-only (files in or below its folder) or none (any file); default:
    /// as in the profile
    #[arg(long)]
    load_restrictor: Option<Restrictor>,
    /// Fix kustomization files: move misplaced entries to the right list, and add manifests that no kustomization
    /// lists. All other bytes stay unchanged
    #[arg(long)]
    fix: bool,
    /// The configuration file; default: portcullis.yaml of the repository
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The output format of findings
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Exit with 1 on any finding, including warnings
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    let known = Known::read(args.config.as_deref(), &args.sources, &registry)?;
    let args = &Args { complete: args.complete || known.covers(&args.paths)?, ..args.clone() };
    let mut files = args.files()?;
    let mut trees = trees::Trees::of(args, &known.sources, &mut files)?;
    let policy = known.policy;
    if args.fix {
        say(&trees.fix());
    }
    let mut report = Report { begun: Some(Instant::now()), is_verbose: args.verbose, ..Report::default() };
    trees.judge(&registry, &policy, &mut report);
    let mut manifests = args.read(&files, &registry)?;
    let all = manifests.found.len();
    manifests.found.retain(|manifest| !trees.has_rendered(manifest));
    manifests.passed += all - manifests.found.len();
    rendered::judge(&trees, args, &policy, &mut report)?;
    objects::judge(manifests, args, policy, &mut report)?;
    if report.files == 0 && report.roots.is_empty() && report.errors.is_empty() {
        let paths: Vec<_> = args.paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Unusable::because(paths.join(", "), "no .yaml, .yml or .json file found"));
    }
    print_with(|out| report.write(args.output, &registry, out));
    Ok(args.code(&report))
}

impl Args {
    /// Returns the files to check, including those in folders. If `--root` is set, folders among the paths are ignored.
    fn files(&self) -> Result<Vec<PathBuf>, Unusable> {
        let mut files = Vec::new();
        let is_passed = |path: &&PathBuf| !self.roots.is_empty() && path.is_dir();
        let given = self.paths.iter().filter(|path| path.as_os_str() != "-");
        for path in given.filter(|path| !is_passed(path)) {
            files.extend(walk::manifests(path).map_err(Unusable::new)?);
        }
        Ok(files)
    }

    /// Returns whether one of the path arguments is exactly `file`. A folder that contains the file does not count.
    fn names(&self, file: &str) -> bool {
        self.paths.iter().any(|path| path.as_os_str() == file)
    }

    /// Returns whether rules can assume that the checked files and `--manifests` together contain all objects of the
    /// cluster. If so, rules report references to any other object, because this object does not exist.
    fn is_complete(&self) -> bool {
        self.complete || !self.manifests.is_empty()
    }

    /// Reads the objects in `files`, and also those on standard input if `-` is one of the paths.
    fn read(&self, files: &[PathBuf], registry: &Registry) -> Result<Manifests, Unusable> {
        let mut manifests = objects::read(files, &self.namespace, registry);
        if self.paths.iter().any(|path| path.as_os_str() == "-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| Unusable::because("standard input", error))?;
            manifests.add_text("-", text, &self.namespace);
        }
        Ok(manifests)
    }

    fn code(&self, report: &Report) -> u8 {
        if !report.errors.is_empty() {
            return UNUSABLE;
        }
        let least = if self.strict { Level::Warn } else { Level::Deny };
        let found = report.findings.iter().any(|located| located.level >= least);
        if found { DENIED } else { OK }
    }
}
