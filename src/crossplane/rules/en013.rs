//! EN013: patches between environment and composite that violate the composite's schema.

use super::{WRITTEN_COMPOSITIONS_AND_COMPOSITES, is_composite, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::crossplane::composite::claim::Subject;
use crate::crossplane::composite::computed::{computed, live_reads, writes_composite};
use crate::crossplane::composite::write_mode::{WriteMode, writes_are_enabled};
use crate::crossplane::composite::writes::{Refusal, Writable};
use crate::crossplane::composition;
use crate::crossplane::environment::{Action, Patch, PatchType, Profile};
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS,
};
use crate::crossplane::structural::{Field, Structural};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN013.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN013",
        name: "environment-patch-not-in-schema",
        level: Level::Warn,
        summary: "a patch between environment and composite whose field or value the composite's schema does not allow",
        page: include_str!("../../../docs/rules/EN013.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS_AND_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(|request, view| if is_composite(request) { live_reads(request, view) } else { Vec::new() }),
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let findings = if is_composite(request) { of_composite(request, view) } else { of_composition(request, view) };
    findings.into_iter().map(with_help_in_message).collect()
}

/// Returns a finding for each environment patch that writes a value into the composite in the request, if the API
/// server would drop or reject this value.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let writable = Writable::of(request, view);
    let composite = writable.stored(&Subject::of(request.object(), request, view).composite);
    let Some(computed) = computed(&composite, request, view).filter(|computed| !computed.is_uncertain()) else {
        return Vec::new();
    };
    let is_written = match computed.declaration.profile {
        Profile::Native117 => WriteMode::of(request, Profile::Native117, view) != WriteMode::Nothing,
        Profile::Function => WriteMode::of(request, Profile::Function, view) == WriteMode::Composite,
    };
    if !is_written || computed.computation.failure.is_some() {
        return Vec::new();
    }
    let text = computed.composition.shown();
    let refused = writable.writes(&composite, &computed).refused.into_iter();
    let finding = |refused: crate::crossplane::composite::writes::Refused| {
        let message = format!("{text}, {}: it writes {}, but {}", refused.patch, refused.path, refused.why);
        RULE.finding(FieldPath::root(), message).help(refused.why.help())
    };
    refused.map(finding).collect()
}

/// Returns findings about environment patches of a Composition. A patch is reported if the field that it reads or
/// writes in the composite is missing in the composite's schema.
fn of_composition(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let composition = request.object();
    let Some((definition, version)) = kinds::definition_of(composition, view) else { return Vec::new() };
    let Some(schema) = Structural::of(definition.value(), version) else { return Vec::new() };
    let Some(declaration) = composition::declaration(composition) else { return Vec::new() };
    let is_written = declaration.profile == Profile::Native117 || writes_are_enabled(&definition, view);
    let mut findings = Vec::new();
    for step in &declaration.steps {
        let Action::Patch(patches) = &step.action else { continue };
        for (at, patch) in patches.environment.iter().enumerate() {
            let field = step.field.key("environment").key("patches").index(at);
            findings.extend(of_patch(patch, &field, &schema, is_written));
        }
    }
    findings
}

fn of_patch(patch: &Patch, field: &FieldPath, schema: &Structural, is_written: bool) -> Vec<Finding> {
    if writes_composite(patch) {
        let key = if patch.to_field_path.is_some() { "toFieldPath" } else { "fromFieldPath" };
        let path = patch.to_field_path.as_deref().or(patch.from_field_path.as_deref());
        let pruned = path.filter(|_| is_written).and_then(|path| lacking(path, schema));
        let what = "the composite's schema lacks this field, so the API server drops the value";
        return pruned.map(|why| finding(field.key(key), what, &why)).into_iter().collect();
    }
    let what = "the composite's schema lacks this field, so the patch never finds a value";
    let own = patch
        .from_field_path
        .as_deref()
        .filter(|_| !is_combining(patch))
        .map(|path| (field.key("fromFieldPath"), path));
    let combined = patch.combine.iter().flat_map(|combine| combine.variables.iter().enumerate());
    let combined = combined.filter(|_| is_combining(patch)).map(|(at, variable)| {
        let field = field.key("combine").key("variables").index(at).key("fromFieldPath");
        (field, variable.from_field_path.as_str())
    });
    own.into_iter()
        .chain(combined)
        .filter_map(|(field, path)| Some(finding(field, what, &lacking(path, schema)?)))
        .collect()
}

fn is_combining(patch: &Patch) -> bool {
    matches!(patch.kind(), PatchType::CombineFromComposite | PatchType::CombineToComposite)
}

/// Returns the error for a path below `spec` that is missing in the composite's schema. `None` if the schema has the
/// path. Paths outside of `spec`, paths with wildcards and invalid paths are not checked.
fn lacking(path: &str, schema: &Structural) -> Option<Refusal> {
    let path = Path::parse(path).ok().filter(|path| !path.has_wildcard())?;
    let is_of_spec = matches!(path.segments(), [Segment::Field(first), _, ..] if first == "spec");
    match schema.at(&path) {
        Field::Pruned { at, has } if is_of_spec => Some(Refusal::Pruned { at, has }),
        _ => None,
    }
}

fn finding(field: FieldPath, what: &str, why: &Refusal) -> Finding {
    RULE.finding(field, what).help(why.help())
}
