//! Checks the kustomize roots in the checked files, and fixes some of their problems.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::super::Unusable;
use super::super::checkout::{self, Choice, Scan, Sources};
use super::super::last_uses::LastUses;
use super::super::parallel::in_order;
use super::super::report::{Located, Report, Root};
use super::super::trees::{folder_path, reason_with_display_path, shown, tree_path, with_display_paths};
use super::super::walk::Progress;
use super::Args;
use super::scripts::{self, Scripts};
use super::shared::{SharedFindings, folders};
use super::unused::{self, Used};
use crate::admission::Level;
use crate::catalog::manifests::{Manifest, Source};
use crate::gate::{Policy, Registry};
use crate::kustomize::checkout::{
    Build, Git, Object, Survey, is_flux_kustomization, without_generated, without_submodules,
};
use crate::kustomize::engine::Shared;
use crate::kustomize::finding::{Fix, InTree, TreeFinding};
use crate::kustomize::forgotten::Search;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::tree::{Tree, TreePath};
use crate::kustomize::{self, Files, Verdict, analyse_shared, fix};

/// Maximum number of fixes in one kustomize root, which is a folder that is built. A fix moves one misplaced entry of a
/// kustomization file to the right list. The limit exists because the root is checked again after each fix.
const MAX_FIXES: usize = 1000;

/// The kustomizations in the checked files. Also contains the objects that refer to them, such as Flux Kustomizations.
pub(super) struct Trees {
    scan: Scan,
    builds: Vec<Build>,
    pub(super) survey: Survey,
    git: Git,
    /// The kustomize options that the command line arguments select, such as the version of kustomize. Used to search
    /// for manifests that no kustomization lists.
    options: Options,
    pub(super) used: Used,
    /// Whether the check reads the scripts and `.gitignore` files of the repository. Scripts show with which options
    /// kustomize is called. A missing file is not an error if a script or `.gitignore` file shows that the file is
    /// generated before a build.
    reads_scripts: bool,
    scripts: OnceLock<Scripts>,
}

impl Trees {
    /// Finds the kustomizations in `files`. Also removes kustomization files, patches and data files from `files`,
    /// because only kustomize reads them.
    pub(super) fn of(args: &Args, sources: &Sources, files: &mut Vec<PathBuf>) -> Result<Self, Unusable> {
        let options = args.options();
        let mut scan = Scan::of(files, &options)?;
        if !args.roots.is_empty() {
            scan.roots = args.roots.iter().map(|root| folder_path(root)).collect::<Result<_, _>>()?;
        }
        let tops = checkout::tops(&args.paths)?;
        let git = checkout::git(&scan.tree, &tops);
        let is_auto = args.profile == Choice::Auto && args.roots.is_empty() && !tops.is_empty();
        let survey = if is_auto { scan.survey(&git, &tops, sources) } else { Survey::default() };
        let mut builds = survey.builds.clone();
        builds.iter_mut().for_each(|build| build.options = args.applied(build.options.clone()));
        let rest = scan.roots.iter().filter(|root| !survey.reached.contains(root)).cloned();
        // If the checkout has Flux Kustomizations, but none of them names a root, then usually a Flux Kustomization in
        // another repository builds this root, and not kubectl.
        let unnamed =
            if survey.clusters.is_empty() { options.clone() } else { args.applied(Options::of(Profile::Flux)) };
        let unnamed = Options { lone_components: true, ..unnamed };
        let build = |root| Build {
            tree: Arc::clone(&scan.tree),
            root,
            options: unnamed.clone(),
            owners: Vec::new(),
            is_used: false,
        };
        builds.extend(rest.map(build));
        let used = Used::of(&scan, &survey, &mut builds);
        let reads_scripts = is_auto && args.load_restrictor.is_none();
        Ok(Self { scan, builds, survey, used, git, options, reads_scripts, scripts: OnceLock::new() })
    }

    /// Returns whether `manifest` is a Flux Kustomization that is also in the output of a kustomize build. If so, the
    /// object in the output is checked, and `manifest` is not.
    pub(super) fn has_rendered(&self, manifest: &Manifest) -> bool {
        let is_kustomization = || is_flux_kustomization(&manifest.object);
        let path = || tree_path(Path::new(&manifest.source.name)).ok();
        !self.survey.rendered.is_empty()
            && is_kustomization()
            && path().is_some_and(|path| self.survey.rendered.contains(&path))
    }

    /// Checks every kustomize root, and adds the findings to `report`. Findings that several roots share are reported
    /// once. Also reports manifests that no kustomization lists.
    pub(super) fn judge(&self, registry: &Registry, policy: &Policy, report: &mut Report) {
        let mut progress = Progress::new("checked kustomize roots:");
        let sources = self.sources(registry, policy);
        let mut collected = Collected { sources, reported: HashMap::new(), shared: SharedFindings::default() };
        // Roots with the same tree and profile (the system that builds them) share the results of bases.
        let groups: Vec<_> =
            self.builds.iter().map(|build| (Arc::as_ptr(&build.tree), build.options.profile)).collect();
        // Each group has two caches. The second one is for roots that are checked again with options from scripts.
        let caches: HashMap<_, _> = groups.iter().map(|group| (*group, <[Shared; 2]>::default())).collect();
        let shared: Vec<(&Build, &[Shared; 2])> =
            self.builds.iter().zip(&groups).filter_map(|(build, group)| Some((build, caches.get(group)?))).collect();
        let used = self.builds.iter().map(|build| folders(&self.scan, build));
        let mut last_uses = LastUses::of(used, &self.scan.references);
        let judge = |(build, shared): &(&Build, &[Shared; 2])| self.analysed(build, shared);
        in_order(&shared, judge, |number, (judged, assumed)| {
            progress.step(number, self.builds.len());
            last_uses.release(number, &self.scan.read, caches.values().flatten());
            report.assumptions.extend(assumed);
            collected.add(&self.builds[number], judged, report);
        });
        let Collected { mut sources, shared: shared_findings, .. } = collected;
        shared_findings.lower(&self.scan, &self.builds, report);
        let forgotten = self.forgotten();
        let forgotten = forgotten.iter().map(|finding| {
            let located = sources.locate(finding);
            let is_unused = self.used.excludes(&finding.location.file);
            Rc::new(if is_unused { unused::lowered(located) } else { located })
        });
        report.findings.extend(forgotten.filter(|located| located.level != Level::Off));
        self.add_survey(report);
    }

    /// Returns a finding for each forgotten manifest. A manifest is forgotten if it is checked, but no kustomization
    /// lists it and no script mentions it.
    fn forgotten(&self) -> Vec<TreeFinding> {
        let mut findings = self.search().findings(&self.scan.files);
        let Some(scripts) = self.scripts_for(!findings.is_empty()) else { return findings };
        let short = |file: TreePath| Some(format!("{}/{}", file.parent()?.name(), file.name()));
        let path = |finding: &TreeFinding| forgotten_file(finding).and_then(short);
        let mentioned = scripts.mentioned(&findings.iter().filter_map(path).collect::<Vec<_>>());
        findings.retain(|finding| path(finding).is_none_or(|path| !mentioned.contains(&path)));
        findings
    }

    fn search(&self) -> Search<'_> {
        let Scan { tree, references, read, .. } = &self.scan;
        let options = &self.options;
        Search { tree, references, options, read }
    }

    /// Checks the kustomize root `build`, and returns the result. Scripts in the repository may use kustomize options,
    /// such as `--enable-helm`. If these options can prevent errors in the result, checks the root a second time with
    /// the options. Then also returns a message with the positions of the options in the scripts.
    ///
    /// `shared` contains the caches for the first check, and `of_scripts` those for the second check.
    fn analysed(&self, build: &Build, [shared, of_scripts]: &[Shared; 2]) -> (kustomize::Report, Option<String>) {
        let judged = analyse_shared(&build.tree, &build.root, &build.options, (&self.scan.read, shared));
        let (judged, assumed) = self.as_scripts_build(build, of_scripts, judged);
        let judged = without_submodules(&self.scan.tree, &self.git, judged);
        let written_by = |name: &str| self.scripts()?.writes(name);
        let judged = match build.owners.is_empty() && self.reads_scripts {
            true => without_generated(&self.scan.tree, &self.git, judged, written_by),
            false => judged,
        };
        let findings = judged.findings.into_iter().map(|finding| build.located(&self.scan.tree, finding)).collect();
        // The order of evaluation is not needed here.
        (kustomize::Report { evaluation: None, findings, ..judged }, assumed)
    }

    /// Returns the scripts of the git repository, such as Makefiles. The first call reads them from disk. Returns
    /// `None` if `reads_scripts` is false.
    fn scripts(&self) -> Option<&Scripts> {
        let read = || Scripts::read(&Path::new("/").join(self.git.top.as_str()));
        self.reads_scripts.then(|| self.scripts.get_or_init(read))
    }

    /// Repeats the check of `build` with the kustomize options that scripts in the repository use, such as
    /// `--enable-helm`. Does this only if the first result, `judged`, has errors that such an option can prevent.
    /// Builds by Flux are not repeated, because Flux has no such options. Returns the new result, and a message with
    /// the positions of the options in the scripts. If the check is not repeated, returns `judged` and `None`.
    fn as_scripts_build(
        &self,
        build: &Build,
        shared: &Shared,
        judged: kustomize::Report,
    ) -> (kustomize::Report, Option<String>) {
        let refused = |rule: &str| judged.findings.iter().any(|one| one.location.refused && one.rule == rule);
        let [of_loading, of_plugins] = scripts::RULES.map(refused);
        let is_of_flux = build.options.profile == Profile::Flux && !build.owners.is_empty();
        let is_affected = of_loading || of_plugins;
        let Some(scripts) = self.scripts_for(is_affected && !is_of_flux) else { return (judged, None) };
        // Sets all options, so that the roots of a checkout have the same options and share bases.
        let mut options = build.options.clone();
        let places = scripts::RULES.map(|rule| scripts.set(rule, &mut options));
        let places = places.into_iter().zip([of_loading, of_plugins]).filter(|(_, is_affected)| *is_affected);
        let places: Vec<_> = places.filter_map(|(place, _)| place).collect();
        if places.is_empty() {
            return (judged, None);
        }
        let judged = analyse_shared(&build.tree, &build.root, &options, (&self.scan.read, shared));
        let assumed =
            format!("{} is checked with the kustomize options in {}", shown(&build.root), places.join(" and "));
        (judged, Some(assumed))
    }

    fn scripts_for(&self, is_needed: bool) -> Option<&Scripts> {
        if is_needed { self.scripts() } else { None }
    }

    /// Adds information about the whole repository to the report:
    ///
    /// - Flux Kustomizations that are built from another repository or from an ExternalArtifact
    /// - Flux Kustomizations whose path or source is unknown
    /// - errors that concern the whole repository, such as an exceeded limit
    /// - the number of findings whose level was lowered because no Flux Kustomization or similar object uses their
    ///   files
    fn add_survey(&self, report: &mut Report) {
        let elsewhere = self.survey.elsewhere.iter().map(|(object, from)| (object.title(), from.clone()));
        report.elsewhere = elsewhere.collect::<BTreeSet<_>>().into_iter().collect();
        let composed = self.survey.composed.iter().map(|(object, from)| (object.title(), from.clone()));
        report.composed = composed.collect::<BTreeSet<_>>().into_iter().collect();
        report.unused = unused::count(&report.findings);
        report.problems = self.survey.problems.iter().cloned().map(with_display_paths).collect();
        let of_git = self.git.problem.clone().filter(|_| !self.survey.clusters.is_empty()).map(with_display_paths);
        report.problems.extend(of_git.map(|why| format!("the remotes of the checkout are unknown: {why}")));
        let unknown = self.survey.unknown.iter().map(|(object, why)| Root {
            root: object.value.pointer("/spec/path").and_then(Value::as_str).unwrap_or(".").to_owned(),
            profile: Profile::Flux.as_str(),
            verdict: Verdict::Unknown.as_str(),
            reasons: vec![format!("{}:{}: {why}", shown(&object.file), object.line)],
            owners: vec![object.title()],
            is_unused: false,
            findings: Vec::new(),
        });
        report.roots.extend(unknown);
    }

    /// Fixes kustomization files. Moves misplaced entries to the right list, and adds manifests that no kustomization
    /// lists. Returns a description of the changes.
    pub(super) fn fix(&mut self) -> String {
        self.scan.read = Files::default();
        let mut reported = String::new();
        for build in &self.builds {
            for _ in 0..MAX_FIXES {
                match fix_one(build) {
                    Some(line) => reported.push_str(&line),
                    None => break,
                }
            }
        }
        for file in self.forgotten().iter().filter_map(forgotten_file) {
            self.scan.read = Files::default();
            // Computes the finding again, because the manifest may conflict with one that was added before.
            reported.extend(self.search().finding(&file).and_then(|finding| apply(&finding)));
        }
        self.scan.read = Files::default();
        reported
    }

    /// Creates an empty cache for the texts of files that have findings. The cache reads a file when it is first
    /// needed.
    pub(super) fn sources<'t>(&'t self, registry: &'t Registry, policy: &'t Policy) -> Texts<'t> {
        Texts { tree: &self.scan.tree, registry, policy, read: BTreeMap::new() }
    }
}

fn fix_one(build: &Build) -> Option<String> {
    let report = kustomize::analyse(&build.tree, &build.root, &build.options);
    report.findings.iter().find_map(apply)
}

/// Writes the fix of a finding to its file, and returns a description of the fix. `None` if there is no fix, or if the
/// file cannot be written.
fn apply(finding: &TreeFinding) -> Option<String> {
    let entry_fix = finding.location.fix.as_ref()?;
    let path = Path::new("/").join(finding.location.file.as_str());
    let text = std::fs::read_to_string(&path).ok()?;
    std::fs::write(&path, fix(&text, std::slice::from_ref(entry_fix))?).ok()?;
    let change = match entry_fix {
        Fix::MoveEntry { from, index, to } => format!("{from}[{index}] is now in {to}"),
        Fix::AddEntry { list, entry } => format!("{entry} is now in {list}"),
    };
    Some(format!("fixed {}: {change}\n", shown(&finding.location.file)))
}

/// Returns the path of the manifest that the fix of a finding adds to a kustomization file. Only findings about
/// manifests that no kustomization lists have such a fix. Returns `None` for other findings.
fn forgotten_file(finding: &TreeFinding) -> Option<TreePath> {
    match &finding.location.fix {
        Some(Fix::AddEntry { entry, .. }) => Some(finding.location.file.parent()?.join(entry)),
        _ => None,
    }
}

impl Args {
    /// Returns the kustomize options of the tool that `--profile` names, such as `flux`. If `--profile` is `auto`,
    /// returns those of kubectl. Other arguments can override the version of kustomize and the load restrictor.
    fn options(&self) -> Options {
        let profile = match self.profile {
            Choice::Auto => Profile::Kubectl,
            Choice::One(profile) => profile,
        };
        self.applied(Options::of(profile))
    }

    /// Applies the command line arguments to `options`: the version of kustomize and, if it is set, the load
    /// restrictor.
    fn applied(&self, options: Options) -> Options {
        let restrictor = self.load_restrictor.unwrap_or(options.restrictor);
        Options { version: self.kustomize_version, restrictor, ..options }
    }
}

/// The findings of all kustomizations that have been checked so far. A finding that several kustomizations share is
/// stored only once.
struct Collected<'t> {
    sources: Texts<'t>,
    /// The reported findings by rule, file, position and message.
    reported: HashMap<(&'static str, TreePath, usize, String), Rc<Located>>,
    shared: SharedFindings,
}

impl Collected<'_> {
    /// Adds `judged`, the result of checking one kustomization, to `report`. A finding that several kustomizations
    /// share appears only once in the list of all findings.
    fn add(&mut self, build: &Build, judged: kustomize::Report, report: &mut Report) {
        let findings = judged.findings.iter().map(|finding| self.located(build, finding, report)).collect();
        report.roots.push(Root {
            root: shown(&judged.root),
            profile: judged.profile.as_str(),
            verdict: judged.verdict.as_str(),
            reasons: judged.reasons.iter().map(|reason| reason_with_display_path(reason)).collect(),
            owners: build.owners.iter().map(Object::title).collect(),
            is_unused: !build.is_used,
            findings,
        });
    }

    fn located(&mut self, build: &Build, finding: &TreeFinding, report: &mut Report) -> Rc<Located> {
        let InTree { file, place, .. } = &finding.location;
        let key = (finding.rule, file.clone(), place.start, finding.message.clone());
        let located = self.reported.entry(key).or_insert_with(|| {
            let located = self.sources.locate(finding);
            let located = Rc::new(if build.is_used { located } else { unused::lowered(located) });
            if located.level != Level::Off {
                report.findings.push(Rc::clone(&located));
            }
            located
        });
        self.shared.count(finding, located);
        Rc::clone(located)
    }
}

/// A cache for the texts of files that have findings. The texts are needed to locate the findings in their files.
pub(super) struct Texts<'t> {
    tree: &'t Tree,
    registry: &'t Registry,
    policy: &'t Policy,
    read: BTreeMap<TreePath, Arc<Source>>,
}

impl<'t> Texts<'t> {
    /// Returns the text of a file, with its name for display. The text is empty if the file cannot be read.
    pub(super) fn get(&mut self, file: &TreePath) -> Arc<Source> {
        let read = || {
            let bytes = self.tree.read(file).unwrap_or_else(|_| [].into());
            Arc::new(Source { name: shown(file), text: String::from_utf8_lossy(&bytes).into_owned() })
        };
        Arc::clone(self.read.entry(file.clone()).or_insert_with(read))
    }

    /// Returns the file tree from which this cache reads. It contains the whole file system, from `/`.
    pub(super) fn tree(&self) -> &'t Tree {
        self.tree
    }

    fn locate(&mut self, finding: &TreeFinding) -> Located {
        let info = self.registry.info(finding.rule);
        let level = info.map_or(finding.level, |info| self.policy.level_in_files(info, finding.level));
        let TreeFinding { rule, field, location, message, found, allowed, help, .. } = finding.clone();
        let InTree { file, place, .. } = location;
        let (source, path) = (self.get(&file), field.to_string());
        let (message, help) = (with_display_paths(message), help.map(with_display_paths));
        Located {
            rule,
            level,
            source,
            place,
            path,
            message,
            found,
            allowed,
            help,
            object: Value::Null,
            is_unused: false,
        }
    }
}
