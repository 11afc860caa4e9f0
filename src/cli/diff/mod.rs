//! The command `portcullis diff`: shows how a change of files affects the Kubernetes objects that kustomize builds from
//! these files.

mod html;
mod json;
mod limits;
mod markdown;
mod sides;
mod text;
mod unified;

use std::path::PathBuf;

use super::checkout::Choice;
use super::parallel::in_order;
use super::walk::Progress;
use super::{OK, Unusable, pretty, print, say};
use crate::kustomize::changes::{Plan, State, reached, root_change};
use crate::kustomize::options::Restrictor;
use limits::Limits;
use sides::Sides;

/// Exit code if something changes and `--exit-code` is given.
const CHANGED: u8 = 1;
/// Exit code if the changes exceed a limit, such as the maximum number of deletions.
const BROKEN: u8 = 2;
/// Exit code if the change cannot be checked.
const UNKNOWN: u8 = 3;

/// The output format of `portcullis diff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
    /// Markdown for the comment of a pull request, at most 60,000 characters
    Markdown,
    /// Markdown, appended to the job summary of GitHub Actions
    Github,
    /// The differences of the rendered objects, as in `diff -u`
    Unified,
    /// One HTML page with the objects side by side and a filter
    Html,
}

/// Show how a change of files affects the objects that kustomize builds from them.
///
/// Builds every folder with a kustomization that a changed file can affect, before and after the change, in the same
/// way as Flux, Argo CD or kustomize, and compares the objects. Exit codes: 0 success, 1 something changes (with
/// --exit-code), 2 the changes exceed a limit such as --max-deletions, 3 the change cannot be checked, because files
/// cannot be read or the result of a build is unknown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder or tar archive before the change
    #[arg(required_unless_present = "git", conflicts_with = "git", requires = "new")]
    old: Option<PathBuf>,
    /// The folder or tar archive after the change
    new: Option<PathBuf>,
    /// Compare two revisions, A..B, or a revision with the files of the checkout
    #[arg(long, value_name = "REV[..REV]")]
    git: Option<String>,
    /// The folder of the git repository
    #[arg(long, value_name = "DIR", default_value = ".", requires = "git")]
    repository: PathBuf,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Exit with 1 if something changes
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    limits: Limits,
    /// The system that builds the folders: kubectl, flux, argocd, fleet, sveltos, or auto (derived from the files)
    #[arg(long, default_value = "auto")]
    profile: Choice,
    /// Which files a kustomization may load: root-only (files in or below its folder) or none (any file). Does not
    /// apply to folders that an object in the files builds, such as a Flux Kustomization; default: as in the profile
    #[arg(long)]
    load_restrictor: Option<Restrictor>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let plan = match Sides::open(args) {
        Ok(sides) => planned(&sides),
        Err(unusable) => {
            say(&format!("error: {unusable}\n"));
            return Ok(UNKNOWN);
        }
    };
    let broken = args.limits.broken(&plan);
    match args.output {
        Output::Text => print(&text::render(&plan, &broken)),
        Output::Json => print(&pretty(&json::render(&plan, &broken))),
        Output::Markdown => print(&markdown::render(&plan, &broken)),
        Output::Github => summarize(&markdown::render(&plan, &broken))?,
        Output::Unified => print(&unified::render(&plan)),
        Output::Html => print(&html::render(&plan, &broken)),
    }
    Ok(args.code(&plan, &broken))
}

/// Builds the kustomize roots that changed files can affect, before and after the change. Builds several roots in
/// parallel. Returns a plan with the changes of all roots.
fn planned(sides: &Sides) -> Plan {
    let (old, new) = (&sides.old, &sides.new);
    let (roots, untouched) = reached(old, new, Some(&sides.changed));
    let (mut progress, mut changes) = (Progress::new("compared kustomize roots:"), Vec::new());
    in_order(
        &roots,
        |pair| root_change(pair, old, new),
        |number, change| {
            progress.step(number, roots.len());
            changes.push(change);
        },
    );
    Plan::new(changes, untouched)
}

/// Appends a text to the job summary of GitHub Actions. Outside of a GitHub Actions job, prints the text.
fn summarize(text: &str) -> Result<(), Unusable> {
    use std::io::Write as _;
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").map(PathBuf::from) else {
        print(text);
        return Ok(());
    };
    let failed = |error| Unusable::because(path.display(), error);
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

impl Args {
    fn code(&self, plan: &Plan, broken: &[String]) -> u8 {
        let is_unknown = plan.roots.iter().any(|root| matches!(root.state, State::Unknown(_)));
        match () {
            () if !broken.is_empty() => BROKEN,
            () if is_unknown => UNKNOWN,
            () if self.exit_code && !plan.is_empty() => CHANGED,
            () => OK,
        }
    }
}
