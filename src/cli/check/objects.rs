//! Objects in the files that are checked.

use std::collections::HashMap;
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::Value;

use super::super::report::{Located, Report};
use super::super::walk::Progress;
use super::super::{Unusable, inputs};
use super::Args;
use crate::admission::{Object, Operation, Phase, Request, Resource, User};
use crate::catalog::manifests::Manifests;
use crate::gate::{Gate, Policy, Registry};

/// What names an object: API version, kind, namespace, name.
type Identity<'v> = [Option<&'v Value>; 4];

fn identity(object: &Value) -> Identity<'_> {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(|part| object.pointer(part))
}

/// Judges every object as the request that applying it would make.
pub(super) fn judge(manifests: Manifests, args: &Args, policy: Policy, report: &mut Report) -> Result<(), Unusable> {
    let registry = Registry::standard();
    let stored = inputs::objects(&args.manifests, &args.namespace)?;
    let given = manifests.found.iter().map(|manifest| manifest.object.clone());
    let catalog = registry.catalog_of(stored.iter().cloned().chain(given).collect());
    let gate = Gate::new(registry, policy, Arc::new(catalog));
    let stored: HashMap<_, _> = stored.iter().map(|object| (identity(object), object)).collect();
    let Manifests { found, errors, files, .. } = manifests;
    report.errors.extend(errors);
    (report.files, report.objects) = (files, found.len());
    let (mut progress, all) = (Progress::new("checked objects:"), found.len());
    for (done, manifest) in found.into_iter().enumerate() {
        progress.step(done, all);
        let old = stored.get(&identity(&manifest.object)).copied();
        let Some(request) = request(&manifest.object, old, &gate) else { continue };
        let verdict = block_on(gate.decide(Phase::Validate, &request));
        let located = |finding| Located::in_manifest(finding, &manifest);
        report.findings.extend(verdict.findings.into_iter().map(located));
    }
    Ok(())
}

/// The request that applying an object would make; `None` for a kind that no rule looks at.
fn request(object: &Value, old: Option<&Value>, gate: &Gate) -> Option<Request<'static>> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let api_version = text("/apiVersion");
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
    let kind = text("/kind");
    let plural = plural(group, &kind, gate)?;
    Some(Request {
        uid: "check".into(),
        resource: Resource {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            plural: plural.into(),
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

/// The plural name of a kind that rules look at.
fn plural(group: &str, kind: &str, gate: &Gate) -> Option<&'static str> {
    let scopes = gate.registry().rules().iter().flat_map(|rule| rule.scope);
    let mut scopes = scopes.filter(|scope| scope.subresource.is_empty());
    let scope = scopes.find(|scope| scope.group == group && scope.kind == kind);
    let declared = || gate.catalog().declared().into_iter().find(|held| held.group == group && held.kind == kind);
    scope.map(|scope| scope.plural).or_else(|| Some(declared()?.plural))
}
