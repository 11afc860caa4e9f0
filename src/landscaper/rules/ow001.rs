//! OW001: a value that Landscaper cannot decode.

use super::WRITES;
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::context::Context;
use crate::landscaper::decode::Problem;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::substitution::Entries;
use crate::rule::{Example, Match, Outage, Page, Rule, Spared};

/// Excludes Contexts without overwrites from failure policy `Fail`. Landscaper's context controller creates a Context
/// `default` in every namespace, and retries a denied write about every 40 ms; such a Context names no overwrites.
static WITHOUT_OVERWRITES: Spared = Spared {
    name: "without-overwrites",
    expression:
        "!has(object.componentVersionOverwrites) && (oldObject == null || !has(oldObject.componentVersionOverwrites)) &&
           (!has(object.repositoryContext) || type(object.repositoryContext) == map)",
};

static SCOPE: [Match; 3] = [
    kinds::matches(&OVERWRITES, WRITES, Outage::Refuse),
    kinds::matches(&CONTEXTS, WRITES, Outage::RefuseUnless(&WITHOUT_OVERWRITES)),
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE),
];

/// The definition of rule OW001.
pub(super) static RULE: Rule = Rule {
    id: "OW001",
    name: "undecodable",
    level: Level::Deny,
    summary: "a repositoryContext that is not an object, or another value that Landscaper cannot decode",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The CRDs of ComponentVersionOverwrites and Context accept any value as `repositoryContext`, but \
              Landscaper decodes it as an object with a `type`. If the value has another type, Landscaper cannot \
              read the whole object, and every Installation that uses the Context fails. The same applies to other \
              values of the wrong type in these objects, and to numbers beyond the range of a 64-bit float, such as \
              `1e999`, which make the request itself unreadable. The API server does not report this when you apply \
              the object: the Installations fail at their next reconcile, with a message about Go types.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: github.com/gardener/landscaper/echo-server
    substitution:
      repositoryContext: example.org/my-own-registry/components
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: github.com/gardener/landscaper/echo-server
    substitution:
      repositoryContext:
        type: ociRegistry
        baseUrl: example.org/my-own-registry/components
",
        },
        mend: "Write an object: `type: ociRegistry` and `baseUrl: …` for a registry.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut problems = Vec::new();
    let object = request.object();
    if kinds::is(&OVERWRITES, request) {
        problems.clone_from(&Entries::of(request).problems);
    } else if kinds::is(&CONTEXTS, request) {
        Context::read(object, &mut problems);
    } else if kinds::is(&INSTALLATIONS, request) {
        installation::component_reference(object, &mut problems);
    }
    problems.into_iter().map(finding).collect()
}

fn finding(problem: Problem) -> Finding {
    let breaks = "Landscaper cannot decode this, and fails every Installation that uses it";
    let message = format!("{} where {} is needed: {breaks}", problem.is, problem.wanted);
    let is_context = problem.wanted == "an object" && problem.field.to_string().ends_with("repositoryContext");
    let finding = RULE.finding(problem.field, message).found(problem.found).allowed(problem.wanted);
    if is_context { finding.help("write an object, such as {type: ociRegistry, baseUrl: …}") } else { finding }
}
