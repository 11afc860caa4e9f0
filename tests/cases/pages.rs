//! Reads the documentation pages of rules: their headings and examples. An example consists of fenced code blocks.
//! CONTRIBUTING.md describes the kinds of blocks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use portcullis::admission::{Finding, Level, Operation, Phase, Position, Verdict as Decision};
use portcullis::config;
use portcullis::gate::{Policy, Registry};
use portcullis::kustomize::delivery::{
    Artifact, DeletionLimits, Judge, Judging, Outcome, Plan, Root, Sibling, flux_spec, judge,
};
use portcullis::kustomize::engine::Shared;
use portcullis::kustomize::forgotten::Search;
use portcullis::kustomize::identity::ObjectId;
use portcullis::kustomize::options::{Options, Profile};
use portcullis::kustomize::roots::references;
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Files, Report, analyse};
use portcullis::rule::RuleInfo;
use serde_json::Value;

use super::{Case, objects};

/// The required headings of a rule page, in the required order.
pub const HEADINGS: [&str; 7] = [
    "What it does",
    "Why it is bad",
    "Example that is reported",
    "Example that is not reported",
    "How to fix",
    "Configuration",
    "Source",
];

/// The info string of fenced blocks that contain expected findings.
pub const FINDINGS: &str = "text findings";

/// The documentation page of a rule, with its examples.
pub struct Page {
    pub info: &'static RuleInfo,
    /// The configuration for all examples of the page, from its blocks `yaml configuration`.
    pub configuration: String,
    pub reported: Vec<Example>,
    pub not_reported: Vec<Example>,
}

/// An example on a rule page: the objects in the cluster, the files, an action, and the expected findings.
#[derive(Default)]
pub struct Example {
    /// The objects in the cluster, as YAML documents.
    pub stored: &'static str,
    /// The files of a kustomize tree, as pairs of path and content.
    pub files: Vec<(&'static str, &'static str)>,
    pub action: Action,
    pub findings: Option<&'static str>,
}

/// The action that produces the findings of an example on a rule page, such as a request or the build of a kustomize
/// tree.
#[derive(Default)]
pub enum Action {
    #[default]
    Nothing,
    Request {
        operation: Operation,
        object: &'static str,
        user: &'static str,
        subresource: &'static str,
    },
    /// The command `kubectl kustomize <root>`.
    Build {
        root: &'static str,
    },
    /// The command `portcullis check <folder>`. It also reports files that no kustomization refers to.
    Check {
        folder: &'static str,
    },
    /// The build of a Flux Kustomization. `object` is the Kustomization as YAML.
    Flux {
        object: &'static str,
    },
}

/// Returns the fenced blocks of a Markdown text, as pairs of info string and content.
pub fn blocks(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (info, after) = after.split_once('\n').expect("a fence is a line");
        let (content, after) = match after.strip_prefix("```") {
            Some(after) => ("", after),
            None => {
                let (_, end) = after.split_once("\n```").expect("a fenced block ends");
                after.split_at(after.len() - end.len() - "```".len())
            }
        };
        rest = after.strip_prefix("```").unwrap_or(after);
        blocks.push((info, content));
    }
    blocks
}

impl Page {
    pub fn of(info: &'static RuleInfo) -> Self {
        let configuration = blocks(info.section("Configuration")).into_iter();
        let configuration = configuration.filter(|(info, _)| *info == "yaml configuration").map(|(_, text)| text);
        Self {
            info,
            configuration: configuration.collect(),
            reported: examples(info, HEADINGS[2]),
            not_reported: examples(info, HEADINGS[3]),
        }
    }

    /// Returns the pages of all rules.
    pub fn all() -> Vec<Self> {
        Registry::standard().infos().into_iter().map(Self::of).collect()
    }

    /// Returns the examples of the page. Each one has a name for error messages.
    pub fn examples(&self) -> impl Iterator<Item = (String, &Example)> {
        let name = |which: &str, at: usize| format!("{}, {which} example {}", self.info.id, at + 1);
        let reported = self.reported.iter().enumerate().map(move |(at, one)| (name("reported", at), one));
        reported.chain(self.not_reported.iter().enumerate().map(move |(at, one)| (name("unreported", at), one)))
    }

    /// Returns the policy for the examples. It contains the configuration of the page, and enables the rule if the rule
    /// is off by default.
    pub fn policy(&self) -> Policy {
        let parsed = config::parse(&self.configuration, "the page", &Registry::standard());
        let mut policy = parsed.unwrap_or_else(|error| panic!("{}: {error}", self.info.id));
        if self.info.level == Level::Off {
            policy.levels.insert(self.info.id.to_owned(), Level::Deny);
        }
        policy
    }

    /// Returns the admission decision about the request in `example`, with the policy of this page ([`Page::policy`]).
    pub fn decide(&self, example: &Example) -> Decision {
        self.decide_under(example, self.policy())
    }

    /// Returns the admission decision about the request in `example`, with the policy `policy`.
    pub fn decide_under(&self, example: &Example, policy: Policy) -> Decision {
        example.case(policy).expect("the example is a request").decide(Phase::Validate)
    }

    /// Runs an example. Returns the findings as portcullis prints them.
    pub fn run(&self, example: &Example) -> Vec<String> {
        fn lines<Location: Position>(findings: &[Finding<Location>]) -> Vec<String> {
            findings.iter().map(|one| format!("{} {}", one.level, one.paragraph())).collect()
        }
        match example.analyse() {
            Some(report) => [lines(&report.findings), lines(&example.consequences(&report, &self.policy()))].concat(),
            None => lines(&self.decide(example).findings),
        }
    }
}

impl Example {
    /// Returns the object in the request of an example. `None` if the action is not a request.
    pub fn object(&self) -> Option<Value> {
        match self.action {
            Action::Request { object, .. } => Some(objects(object).remove(0)),
            _ => None,
        }
    }

    /// Returns the request of an example, with the objects in the cluster. `None` if the field `action` is not a
    /// request. For an update, the old object is the stored object with the same kind and name.
    pub fn case(&self, policy: Policy) -> Option<Case> {
        let Action::Request { operation, user, subresource, .. } = self.action else { return None };
        let (object, stored) = (self.object()?, objects(self.stored));
        let is_same =
            |old: &&Value| ["/kind", "/metadata/name"].iter().all(|part| old.pointer(part) == object.pointer(part));
        let old = stored.iter().find(is_same).filter(|_| operation == Operation::Update).cloned();
        let case = Case { old, ..Case::new(operation, object) };
        let case = case.stored(stored).policy(policy).for_subresource(subresource).user(user);
        Some(if self.files.is_empty() { case } else { case.with_trees(Arc::new(EveryArtifact(self.tree()))) })
    }

    /// Returns findings about the consequences of a Flux Kustomization for deployed objects, such as deletions. All
    /// sources of an example have the same files. The source of the Kustomization has a fixed revision; the revisions
    /// of other sources come from the status of the stored objects.
    fn consequences(&self, report: &Report, policy: &Policy) -> Vec<Finding> {
        let (Action::Flux { object }, Some(rendered)) = (&self.action, &report.rendered) else { return Vec::new() };
        let (object, stored) = (objects(object).remove(0), objects(self.stored));
        let artifact = Artifact { url: "http://x".into(), digest: "d".into(), revision: "main@sha1:1f3c".into() };
        let sibling = |other: &Value| {
            let own = &other["spec"]["sourceRef"];
            let source = stored.iter().find(|one| one["kind"] == own["kind"] && one["metadata"]["name"] == own["name"]);
            let is_same = *own == object["spec"]["sourceRef"];
            let found = if is_same {
                Sibling::of(other, &artifact)
            } else {
                Sibling::elsewhere(other, &Artifact::of(source?)?)
            };
            Some((found?, self.analyse_flux(other).rendered?))
        };
        let siblings: Vec<(Sibling, Vec<ObjectId>)> = stored.iter().filter_map(sibling).collect();
        let plan = Plan {
            kustomization: &object,
            inventory: ObjectId::of_inventory(&object),
            rendered,
            siblings: siblings.iter().map(|(sibling, objects)| (sibling, &**objects)).collect(),
            revision: artifact.short_revision(),
            limits: DeletionLimits::of(&policy.settings),
        };
        plan.findings()
    }

    /// Builds the tree to which a Flux Kustomization refers, and returns the report.
    fn analyse_flux(&self, object: &Value) -> Report {
        let spec = &object["spec"];
        let options = Options { flux: flux_spec(spec), ..Options::of(Profile::Flux) };
        analyse(&self.tree(), &TreePath::from(spec["path"].as_str().unwrap_or_default()), &options)
    }

    fn tree(&self) -> Arc<Tree> {
        let files = self.files.iter().fold(Memory::new(), |files, (path, content)| files.file(path, *content));
        Arc::new(Tree::new(files, "/srv/tree"))
    }

    /// Builds the kustomize tree of an example, and returns the report. `None` if the field `action` is `Request` or
    /// `Nothing`, because such an example builds no tree.
    pub fn analyse(&self) -> Option<Report> {
        let (root, options) = match self.action {
            Action::Build { root } | Action::Check { folder: root } => (root.to_owned(), Options::default()),
            Action::Flux { object } => return Some(self.analyse_flux(&objects(object).remove(0))),
            _ => return None,
        };
        let (tree, root) = (self.tree(), TreePath::from(root.as_str()));
        let mut report = analyse(&tree, &root, &options);
        if let Action::Check { .. } = self.action {
            let read = Files::default();
            let references = HashMap::from([(root.clone(), references(&tree, &root, &options, &read))]);
            let files: Vec<_> = self.files.iter().map(|(path, _)| TreePath::from(*path)).collect();
            let search = Search { tree: &tree, references: &references, options: &options, read: &read };
            report.findings.extend(search.findings(&files));
        }
        Some(report)
    }
}

/// A [`Judge`] that does not fetch artifacts: it takes the tree of the example as the content of every artifact.
struct EveryArtifact(Arc<Tree>);

impl Judge for EveryArtifact {
    fn judge<'a>(&'a self, root: &'a Root, _: &'a [String], _: Instant) -> Judging<'a> {
        let judged = judge(&self.0, root, (&Files::default(), &Shared::default()));
        std::future::ready(Outcome::Judged(Arc::new(judged))).boxed()
    }

    fn fetch_ahead(&self, _: &Artifact, _: &[String]) {}
}

/// Returns the examples below a heading of a rule page. An example consists of these code blocks, in this order: the
/// stored objects and the files, the action that the test performs, and the expected findings. Only the action is
/// required.
fn examples(info: &'static RuleInfo, heading: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut next = Example::default();
    for (words, text) in blocks(info.section(heading)) {
        let (language, how) = words.split_once(' ').unwrap_or((words, ""));
        match (language, how) {
            ("yaml", "stored") => next.stored = text,
            ("text", "findings") => {
                let last = examples.last_mut().unwrap_or_else(|| panic!("{}: findings without action", info.id));
                assert!(last.findings.replace(text).is_none(), "{}: two blocks of findings", info.id);
            }
            ("sh", "") => {
                let action = match text.trim().rsplit_once(' ') {
                    Some(("kubectl kustomize", root)) => Action::Build { root },
                    Some(("portcullis check", folder)) => Action::Check { folder },
                    _ => panic!("{}: cannot run {text:?}", info.id),
                };
                examples.push(Example { action, ..std::mem::take(&mut next) });
            }
            ("yaml", "flux") => {
                examples.push(Example { action: Action::Flux { object: text }, ..std::mem::take(&mut next) });
            }
            (_, how) if how.starts_with("file=") => next.files.push((&how["file=".len()..], text)),
            ("yaml", how) => {
                examples.push(Example { action: request(info, how, text), ..std::mem::take(&mut next) });
            }
            _ => panic!("{}: a block {words:?} is not known", info.id),
        }
    }
    assert!(next.stored.is_empty() && next.files.is_empty(), "{}: an example without action", info.id);
    examples
}

fn request(info: &RuleInfo, how: &'static str, object: &'static str) -> Action {
    let mut words = how.split(' ');
    let operation = match words.next() {
        Some("create") => Operation::Create,
        Some("update") => Operation::Update,
        Some("delete") => Operation::Delete,
        other => panic!("{}: a block {other:?} is not known", info.id),
    };
    let (mut user, mut subresource) = ("somebody", "");
    for word in words {
        match word.split_once('=') {
            Some(("user", name)) => user = name,
            Some(("subresource", name)) => subresource = name,
            _ => panic!("{}: {word:?} is not known in {how:?}", info.id),
        }
    }
    Action::Request { operation, object, user, subresource }
}
