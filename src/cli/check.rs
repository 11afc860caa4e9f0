//! `portcullis check`: the rules over files.

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::Value;

use super::report::{Located, Output, Report};
use super::walk::{self, Progress};
use super::{DENIED, OK, UNUSABLE, Unusable, inputs, print};
use crate::admission::{Level, Object, Operation, Phase, Request, Resource, User};
use crate::catalog::Catalog;
use crate::catalog::manifests::Manifests;
use crate::gate::{Gate, Registry};
use crate::rule::Match;

/// Judge Kubernetes manifests in files, before anything is applied.
///
/// The objects are judged as if they were all applied together. Exit codes: 0 nothing is denied, 1 something is, 2 a file
/// cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files and folders; `-` is standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Files or folders with the objects that are in the cluster already
    #[arg(long, value_name = "PATH")]
    manifests: Vec<PathBuf>,
    /// The namespace of objects that name none
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How findings are written
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Exit with 1 when anything is found, warnings too
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let registry = Registry::standard();
    let policy = inputs::policy(args.config.as_deref(), &registry)?;
    let stored = inputs::objects(&args.manifests, &args.namespace)?;
    let manifests = read(args)?;
    let given = manifests.found.iter().map(|manifest| manifest.object.clone());
    let catalog = Catalog::of(registry.kinds(), stored.iter().cloned().chain(given).collect());
    let gate = Gate::new(registry, policy, Arc::new(catalog));
    let report = judge(manifests, &stored, &gate);
    print(&report.render(args.output, gate.registry()));
    Ok(args.code(&report))
}

fn read(args: &Args) -> Result<Manifests, Unusable> {
    let (standard_input, paths): (Vec<_>, Vec<_>) = args.paths.iter().partition(|path| path.as_os_str() == "-");
    let mut files = Vec::new();
    for path in paths {
        files.extend(walk::manifests(path).map_err(Unusable::new)?);
    }
    let mut manifests = Manifests::load(&files, &args.namespace);
    if !standard_input.is_empty() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| Unusable::because("standard input", error))?;
        manifests.add_text("-", text, &args.namespace);
    }
    if manifests.files == 0 && manifests.errors.is_empty() {
        let paths: Vec<_> = args.paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Unusable::because(paths.join(", "), "no .yaml, .yml or .json file is there"));
    }
    Ok(manifests)
}

/// What names an object: API version, kind, namespace, name.
type Identity<'v> = [Option<&'v Value>; 4];

fn identity(object: &Value) -> Identity<'_> {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(|part| object.pointer(part))
}

fn judge(manifests: Manifests, stored: &[Value], gate: &Gate) -> Report {
    let stored: HashMap<_, _> = stored.iter().map(|object| (identity(object), object)).collect();
    let Manifests { found, errors, files, .. } = manifests;
    let mut report = Report { errors, files, objects: found.len(), ..Report::default() };
    let (mut progress, all) = (Progress::new("checked objects:"), found.len());
    for (done, manifest) in found.into_iter().enumerate() {
        progress.step(done, all);
        let old = stored.get(&identity(&manifest.object)).copied();
        let Some(request) = request(&manifest.object, old, gate.registry()) else { continue };
        let verdict = block_on(gate.decide(Phase::Validate, &request));
        let located = |finding| Located::in_manifest(finding, &manifest);
        report.findings.extend(verdict.findings.into_iter().map(located));
    }
    report
}

/// The request that applying an object would make; `None` for a kind that no rule looks at.
fn request(object: &Value, old: Option<&Value>, registry: &Registry) -> Option<Request<'static>> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let api_version = text("/apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let kind = text("/kind");
    let resource = resource(group, &kind, registry)?;
    Some(Request {
        uid: "check".into(),
        resource: Resource {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            plural: resource.plural.into(),
            kind: kind.into(),
            subresource: "".into(),
        },
        name: text("/metadata/name").into(),
        namespace: text("/metadata/namespace").into(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        user: User::default(),
        dry_run: true,
        object: Object::parsed(object.clone()),
        old_object: old.cloned().map(Object::parsed).unwrap_or_default(),
        deadline: None,
    })
}

/// The main resource that rules look at for a kind.
fn resource(group: &str, kind: &str, registry: &Registry) -> Option<&'static Match> {
    let scopes = registry.rules().iter().flat_map(|rule| rule.scope);
    scopes.filter(|scope| scope.subresource.is_empty()).find(|scope| scope.group == group && scope.kind == kind)
}

impl Args {
    fn code(&self, report: &Report) -> u8 {
        if !report.errors.is_empty() {
            return UNUSABLE;
        }
        let least = if self.strict { Level::Warn } else { Level::Deny };
        let found = report.findings.iter().any(|located| located.level >= least);
        if found { DENIED } else { OK }
    }
}
