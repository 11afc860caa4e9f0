//! `portcullis build`: prints the same bytes as `kustomize build`.

mod all;

use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use super::trees::{folder_path, shown, with_display_paths_of_root};
use super::{OK, Unusable, print, say};
use crate::kustomize::engine::{Built, Reorder, Settings, Step, Stop, build};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::{Options, Restrictor};
use crate::kustomize::tree::{Tree, TreePath};
use crate::kustomize::{Files, analyse_with};
use crate::remotes::Remotes;

/// The exit code of kustomize for a failed build.
const FAILED: u8 = 1;

/// The order of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Sorted by kind, namespace and name
    Legacy,
    /// Not sorted: in the order of the files
    None,
}

/// Build a kustomization.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder, or `-` for a tar archive on standard input
    #[arg(default_value = ".")]
    dir: String,
    /// Build every kustomize root below the folder, and write one file per root into the folder of `--output`
    #[arg(long, requires = "output")]
    all: bool,
    /// Write into this file. If it is an existing folder, write one file per object into it
    #[arg(long, short, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
    /// Add the file and line of each value as a comment
    #[arg(long, conflicts_with = "all")]
    provenance: bool,
    /// Fetch git repositories and files that kustomizations refer to
    #[arg(long)]
    fetch: bool,
    /// The load restriction: LoadRestrictionsRootOnly (files in or below the folder) or LoadRestrictionsNone (any file)
    #[arg(long, value_name = "RESTRICTION", default_value = "LoadRestrictionsRootOnly")]
    load_restrictor: Restrictor,
    /// The order of the objects, unless the kustomization sets it
    #[arg(long, value_enum, default_value = "legacy")]
    reorder: Order,
    /// Add the label app.kubernetes.io/managed-by
    #[arg(long)]
    enable_managedby_label: bool,
    /// Accepted for compatibility; errors always contain their position
    #[arg(long, hide = true)]
    stack_trace: bool,
    #[command(flatten)]
    unsupported: Unsupported,
}

/// Flags of kustomize for external programs, which Portcullis does not run.
#[derive(Debug, clap::Args)]
struct Unsupported {
    /// Not supported: Portcullis does not run helm, which renders charts
    #[arg(long)]
    enable_helm: bool,
    #[arg(long, hide = true)]
    helm_command: Option<String>,
    #[arg(long, hide = true)]
    helm_api_versions: Vec<String>,
    #[arg(long, hide = true)]
    helm_kube_version: Option<String>,
    #[arg(long, hide = true)]
    helm_debug: bool,
    /// Not supported: Portcullis does not run plugins, which are external programs
    #[arg(long)]
    enable_alpha_plugins: bool,
    #[arg(long, hide = true)]
    enable_exec: bool,
    #[arg(long, hide = true)]
    network: bool,
    #[arg(long, hide = true)]
    network_name: Option<String>,
    #[arg(long, hide = true)]
    as_current_user: bool,
    #[arg(long, hide = true)]
    mount: Vec<String>,
    #[arg(long, short, hide = true)]
    env: Vec<String>,
}

impl Unsupported {
    /// Returns the message for the first unsupported flag that is set: the flag, and why it is not supported. `None` if
    /// no such flag is set.
    fn first(&self) -> Option<&'static str> {
        let flags = [
            (self.enable_helm, "--enable-helm: Portcullis does not run helm, which renders charts"),
            (self.enable_alpha_plugins, "--enable-alpha-plugins: Portcullis does not run external plugins"),
            (self.enable_exec, "--enable-exec: functions are external programs, which are not run"),
            (self.network || self.network_name.is_some(), "--network: functions are not run"),
            (self.as_current_user, "--as-current-user: functions are not run"),
            (!self.mount.is_empty(), "--mount: functions are not run"),
            (!self.env.is_empty(), "--env: functions are not run"),
            (self.helm_command.is_some() || self.helm_debug, "--helm-command: charts are not rendered"),
            (
                self.helm_kube_version.is_some() || !self.helm_api_versions.is_empty(),
                "--helm-kube-version: charts are not rendered",
            ),
        ];
        flags.into_iter().find(|(given, _)| *given).map(|(_, words)| words)
    }
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    if let Some(flag) = args.unsupported.first() {
        say(&format!("error: not supported: {flag}\n"));
        return Ok(FAILED);
    }
    let options = Options { restrictor: args.load_restrictor, ..Options::default() };
    let reorder = if args.reorder == Order::None { Reorder::None } else { Reorder::Legacy };
    let settings = Settings { reorder, managed_by_label: args.enable_managedby_label };
    if let (true, Some(output)) = (args.all, &args.output) {
        return all::run(Path::new(&args.dir), files_of_disk(args.fetch)?, output, &options, &settings);
    }
    let (tree, root) = match opened(&args.dir, args.fetch) {
        Ok(opened) => opened,
        Err(unusable) => {
            say(&format!("error: {unusable}\n"));
            return Ok(FAILED);
        }
    };
    // The process ends after the build, so its objects are not freed one by one.
    let files = ManuallyDrop::new(Files::default());
    let built = build(&tree, &root, &options, &settings, &files).map(ManuallyDrop::new);
    match built.and_then(|built| written(&built, args)) {
        Ok(written) => written.map(|()| OK),
        Err(stop) => {
            say(&error_text(&stop, &tree, &root, &options, &files));
            Ok(FAILED)
        }
    }
}

/// Opens the files for a build. If `dir` is `-`, the files come from a tar archive on standard input. Otherwise, they
/// are read from the disk. If `fetches` is true, git repositories and remote files are fetched when the build needs
/// them. Returns the tree of all these files, and the path of the folder to build in the tree.
fn opened(dir: &str, fetches: bool) -> Result<(Tree, TreePath), Unusable> {
    if dir == "-" && fetches {
        return Err(Unusable::because("--fetch", "not supported for an archive on standard input"));
    }
    if dir == "-" {
        let tree = Tree::archive(std::io::stdin().lock(), "/");
        return tree.map(|tree| (tree, TreePath::root())).map_err(|error| Unusable::because("standard input", error));
    }
    let root = folder_path(Path::new(dir))?;
    Ok((files_of_disk(fetches)?, root))
}

/// Opens the whole file system as a kustomize tree, with `/` as the top folder. If `fetches` is true, the tree also
/// fetches remote files and git repositories when the build needs them.
fn files_of_disk(fetches: bool) -> Result<Tree, Unusable> {
    let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::because("/", error))?;
    if !fetches {
        return Ok(tree);
    }
    let remotes = Remotes::of_user().map_err(|error| Unusable::because("--fetch", error))?;
    Ok(tree.with_fetch(remotes))
}

/// Prints the objects, or writes them to the file or folder of `--output`. The outer result fails if the objects cannot
/// be built, and the inner result fails if they cannot be written.
fn written(built: &Built<'_>, args: &Args) -> Step<Result<(), Unusable>> {
    say(&built.warnings());
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| Unusable::because(path.display(), error)
    };
    let text = || if args.provenance { built.text_with_places(&shown) } else { built.text() };
    match args.output.as_deref() {
        None => {
            print(&text()?);
            Ok(Ok(()))
        }
        Some(folder) if folder.is_dir() && args.provenance => {
            Ok(Err(Unusable::because(folder.display(), "--provenance writes a single file, but this is a folder")))
        }
        Some(folder) if folder.is_dir() => {
            let files = built.files()?;
            Ok(files.into_iter().try_for_each(|(name, text)| {
                let path = folder.join(name);
                fs::write(&path, text).map_err(failed(&path))
            }))
        }
        Some(file) => {
            let text = text()?;
            Ok(fs::write(file, text).map_err(failed(file)))
        }
    }
}

/// Formats the error that ended the build of the folder `root`. Appends all other errors in the kustomize tree of this
/// folder.
fn error_text(stop: &Stop, tree: &Tree, root: &TreePath, options: &Options, files: &Files) -> String {
    let first = match stop {
        Stop::Refused(refusal) => format!("error: {}", refusal.finding.paragraph()),
        Stop::Unknown(reason) => {
            format!("cannot be built by portcullis: {}\n  at {}", reason.message, position(&reason.site))
        }
    };
    let report = analyse_with(tree, root, options, files);
    let others = report.findings.iter().filter(|finding| finding.location.refused && !is_of(stop, finding));
    let paragraphs = std::iter::once(first).chain(others.map(|finding| finding.paragraph()));
    with_display_paths_of_root(&paragraphs.map(|paragraph| paragraph + "\n").collect::<String>(), root)
}

fn position(site: &Site) -> String {
    format!("{}:{}:{}", site.file, site.place.line, site.place.column)
}

/// Returns whether `finding` is the error that ended the build. `stop` contains this error.
fn is_of(stop: &Stop, finding: &TreeFinding) -> bool {
    matches!(stop, Stop::Refused(refusal) if refusal.finding.paragraph() == finding.paragraph())
}
