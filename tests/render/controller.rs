//! Compares the results of `check` for Flux Kustomizations of public repositories with the results of
//! kustomize-controller's libraries. Uses every Kustomization that is built from the same repository in which it is
//! stored. `check` must accept and reject the same Kustomizations as the libraries, unless its verdict is unknown.
//! `check` must also find all Kustomizations that the libraries render.
//!
//! The checkouts are those of [`repositories`](crate::repositories). The Go program in `tests/repositories/controller`
//! creates the artifact of each source, and builds from it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;

use portcullis::catalog::manifests::is_manifest;
use portcullis::kustomize::checkout::{Checkout, Git, Survey, is_flux_kustomization, survey, without_submodules};
use portcullis::kustomize::engine::Shared;
use portcullis::kustomize::file::NAMES;
use portcullis::kustomize::options::{Options, Restrictor};
use portcullis::kustomize::roots;
use portcullis::kustomize::tree::{Tree, TreePath};
use portcullis::kustomize::{Files, Report, Verdict, analyse_shared};
use portcullis::yaml::{self, Limits};
use serde_json::{Value, json};

use crate::oracle;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/repositories/controller");
const FILES: [&str; 6] = [
    include_str!("../repositories/controller/main.go"),
    include_str!("../repositories/controller/build.go"),
    include_str!("../repositories/controller/variables.go"),
    include_str!("../repositories/controller/artifact.go"),
    include_str!("../repositories/controller/go.mod"),
    include_str!("../repositories/controller/go.sum"),
];

/// The number of compared Kustomizations for each result, and descriptions of the differences.
#[derive(Default)]
struct Counts {
    accepted: usize,
    rejected: usize,
    /// The number of unknown verdicts by reason.
    unknown: BTreeMap<String, usize>,
    rendered: usize,
    differences: Vec<String>,
}

/// A checkout, and the result of searching it for Flux Kustomizations.
struct Surveyed {
    tree: Arc<Tree>,
    git: Git,
    survey: Survey,
    /// The value of `spec.ignore` of each GitRepository in the files of the checkout. The key is the name of the
    /// GitRepository.
    ignored: BTreeMap<String, String>,
}

/// A Flux Kustomization that is built from the checkout.
struct Entry<'a> {
    cluster: usize,
    object: &'a Value,
    title: String,
    build: usize,
}

/// Builds each Flux Kustomization of all checkouts with portcullis and with the code of Flux's kustomize-controller,
/// and compares the results. `checkouts` contains the name and the path of each checkout.
pub fn run(checkouts: &[(&str, PathBuf)]) -> ExitCode {
    let program = oracle::program("controller", SOURCE, &FILES, &[]);
    let mut total = 0;
    let mut differs = false;
    for (name, folder) in checkouts {
        let surveyed = Surveyed::of(&folder.canonicalize().expect("the checkout exists"));
        let entries = surveyed.entries();
        if entries.is_empty() {
            continue;
        }
        let answers = run_program(&program, &surveyed, &entries);
        let mut counts = Counts::default();
        compare(&surveyed, &entries, &answers, &mut counts);
        compare_rendered(&surveyed, &entries, &answers, &mut counts);
        total += entries.len();
        differs |= !counts.differences.is_empty();
        counts.print(name, entries.len());
    }
    println!("{total} Kustomizations");
    if total > 0 && !differs { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Counts {
    fn print(&self, name: &str, entries: usize) {
        let Self { accepted, rejected, unknown, rendered, differences } = self;
        println!(
            "{name}: {entries} Kustomizations: {accepted} accepted by both, {rejected} rejected by both, {} unknown; {rendered} \
             rendered by both; {} differences",
            unknown.values().sum::<usize>(),
            differences.len()
        );
        unknown.iter().for_each(|(reason, count)| println!("  unknown {count} times: {reason}"));
        differences.iter().for_each(|difference| println!("  {difference}"));
    }
}

impl Surveyed {
    /// Searches the checkout in `folder` for Flux Kustomizations, in the same way as `portcullis check`.
    fn of(folder: &Path) -> Self {
        let tree = Arc::new(Tree::folder(Path::new("/")).expect("the root of the file system can be read"));
        let path = |path: &Path| TreePath::from(path.to_str().expect("a path is UTF-8").trim_start_matches('/'));
        let mut walk = ignore::WalkBuilder::new(folder);
        walk.require_git(false).git_global(false);
        let entries = walk.build().map(|entry| entry.expect("a checkout can be read").into_path());
        let mut paths: Vec<_> = entries.filter(|path| path.is_file()).collect();
        paths.sort();
        let is_kustomization =
            |path: &PathBuf| NAMES.iter().any(|name| path.file_name().is_some_and(|own| own == *name));
        let (kustomizations, rest): (Vec<_>, Vec<_>) = paths.into_iter().partition(is_kustomization);
        let folders: BTreeSet<_> = kustomizations.iter().filter_map(|file| file.parent().map(path)).collect();
        let folders: Vec<_> = folders.into_iter().collect();
        let files = Files::default();
        let any = Options { restrictor: Restrictor::None, ..Options::default() };
        let parts: BTreeSet<_> =
            folders.iter().flat_map(|folder| roots::references(&tree, folder, &any, &files).parts).collect();
        let manifests = rest.iter().filter(|file| is_manifest(file)).map(|file| path(file));
        let manifests: Vec<_> = manifests.filter(|file| !parts.contains(file)).collect();
        let git = Git::find(&tree, &path(folder)).expect("the folder is a git checkout");
        let (tops, sources) = ([path(folder)], BTreeMap::new());
        let checkout = Checkout {
            tree: &tree,
            files: &files,
            git: &git,
            tops: &tops,
            folders: &folders,
            manifests: &manifests,
            sources: &sources,
        };
        let survey = survey(&checkout);
        let ignored = ignored(&tree, &manifests);
        Self { tree, git, survey, ignored }
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        let clusters = self.survey.clusters.iter().enumerate();
        let members =
            clusters.flat_map(|(cluster, members)| members.members.iter().map(move |member| (cluster, member)));
        let built = members.filter_map(|(cluster, member)| {
            let (object, title) = (&member.object.value, member.object.qualified_name());
            Some(Entry { cluster, object, title, build: member.build? })
        });
        built.collect()
    }

    /// Returns the request for one Kustomization, as JSON. The Go program of this test reads it.
    fn request(&self, entry: &Entry<'_>) -> Value {
        let text = |pointer: &str| entry.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = [text("/spec/sourceRef/namespace"), text("/metadata/namespace")];
        let namespace = namespace.into_iter().find(|namespace| !namespace.is_empty()).unwrap_or_default();
        let name = text("/spec/sourceRef/name");
        let post_build = self.survey.builds[entry.build].options.flux.post_build.as_ref();
        json!({
            "ignore": self.ignored.get(&name),
            "top": format!("/{}", self.survey.sources[&(namespace, name)]),
            "cluster": entry.cluster.to_string(),
            "strict": post_build.is_none_or(|post_build| !post_build.is_lenient),
            "object": entry.object,
        })
    }

    fn judge(&self, build: usize, shared: &Shared, files: &Files) -> Report {
        let build = &self.survey.builds[build];
        let report = analyse_shared(&build.tree, &build.root, &build.options, (files, shared));
        without_submodules(&self.tree, &self.git, report)
    }
}

/// Returns the value of `spec.ignore` of each GitRepository in the files `manifests`. The key is the name of the
/// GitRepository.
fn ignored(tree: &Tree, manifests: &[TreePath]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in manifests {
        let bytes = tree.read(file).unwrap_or_else(|_| [].into());
        let text = String::from_utf8_lossy(&bytes);
        if !text.contains("source.toolkit.fluxcd.io") {
            continue;
        }
        for document in yaml::documents(&text, &Limits::default()).flatten() {
            let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let is_repository = text("/kind").is_some_and(|kind| kind == "GitRepository");
            if let Some((name, ignore)) = text("/metadata/name").zip(text("/spec/ignore")).filter(|_| is_repository) {
                found.insert(name, ignore);
            }
        }
    }
    found
}

/// Runs `program`, the Go program that builds Kustomizations with kustomize-controller's libraries. It has no network.
/// Returns its answers, one for each entry of `entries`.
fn run_program(program: &Path, surveyed: &Surveyed, entries: &[Entry<'_>]) -> Vec<Value> {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/nonexistent").env("GOGC", "400");
    command.envs(["HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, "http://127.0.0.1:1")));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("the standard input is piped");
    let requests: Vec<Value> = entries.iter().map(|entry| surveyed.request(entry)).collect();
    let write = thread::spawn(move || {
        requests.iter().for_each(|request| writeln!(input, "{request}").expect("the program reads its input"))
    });
    let output = child.wait_with_output().expect("the program runs");
    write.join().expect("the program reads its input");
    assert!(output.status.success(), "the program ends with {}", output.status);
    let lines = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    let answers: Vec<Value> = lines.map(|answer| answer.expect("the program writes JSON")).collect();
    assert_eq!(answers.len(), entries.len(), "the program must write one answer for each entry");
    answers
}

/// Compares the verdict of `check` about each Kustomization with the result of kustomize-controller's libraries, and
/// counts the results. `answers` contains the results of these libraries, in the order of `entries`.
fn compare(surveyed: &Surveyed, entries: &[Entry<'_>], answers: &[Value], counts: &mut Counts) {
    let (shared, files) = (Shared::default(), Files::default());
    let mut reports: BTreeMap<usize, Report> = BTreeMap::new();
    for (entry, answer) in entries.iter().zip(answers) {
        let report = reports.entry(entry.build).or_insert_with(|| surveyed.judge(entry.build, &shared, &files));
        let error = answer["error"].as_str().unwrap_or_default();
        match (report.verdict, error.is_empty()) {
            (Verdict::Accept, true) => counts.accepted += 1,
            (Verdict::Reject, false) => counts.rejected += 1,
            (Verdict::Unknown, _) => {
                let reason = report.reasons.first().map_or("", |reason| reason);
                let reason = reason.split('"').step_by(2).collect::<Vec<_>>().join("…");
                let reason = reason.rsplit(": ").next().unwrap_or_default().to_owned();
                let which = if error.is_empty() { "builds" } else { "does not build offline" };
                *counts.unknown.entry(format!("{reason} ({which})")).or_default() += 1;
            }
            (verdict, _) => {
                let findings: Vec<_> = report.findings.iter().filter(|finding| finding.location.refused).collect();
                let findings: Vec<_> =
                    findings.iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect();
                counts.differences.push(format!(
                    "{} of {}: ours {} {findings:?}, the controller: {error:?}, missing {}",
                    entry.title,
                    report.root,
                    verdict.as_str(),
                    answer["missing"]
                ));
            }
        }
    }
}

/// Checks that `portcullis check` finds all Flux Kustomizations that kustomize-controller's libraries render. Compares
/// them separately for each cluster in `surveyed`. `answers` contains the output of the libraries for each element of
/// `entries`. Skips the output of builds in which the value of a variable is unknown.
fn compare_rendered(surveyed: &Surveyed, entries: &[Entry<'_>], answers: &[Value], counts: &mut Counts) {
    for (at, cluster) in surveyed.survey.clusters.iter().enumerate() {
        let members = cluster.objects().map(|object| &object.value).filter(|object| is_flux_kustomization(object));
        let ours: HashSet<&Value> = members.collect();
        let own = entries.iter().zip(answers).filter(|(entry, _)| entry.cluster == at);
        for (entry, answer) in own.filter(|(_, answer)| answer["missing"].is_null()) {
            for object in answer["kustomizations"].as_array().into_iter().flatten() {
                if ours.contains(object) {
                    counts.rendered += 1;
                } else {
                    counts.differences.push(format!("{} renders {object}, which is not ours", entry.title));
                }
            }
        }
    }
}
