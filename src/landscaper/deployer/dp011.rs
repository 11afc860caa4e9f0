//! DP011: a DeployItem of a type that no known deployer serves.

use std::collections::BTreeSet;

use super::configuration::Deployers;
use super::responsibility::{Route, registered};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, ALL, DEPLOY_ITEMS, DEPLOYER_REGISTRATIONS};
use crate::near;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, &[Operation::Create], Outage::Admit)];

/// The row of DP011.
pub(super) static RULE: Rule = Rule {
    id: "DP011",
    name: "type-that-nobody-serves",
    level: Level::Warn,
    summary: "a DeployItem of a type that no known deployer serves",
    scope: &SCOPE,
    looks_up: &[&DEPLOYER_REGISTRATIONS],
    confirm: None,
    check,
    page: Page {
        why: "Nobody picks up a DeployItem whose type no deployer serves: it waits for the pickup timeout, five \
              minutes to an hour, and then fails. The types that are served are those of the configuration \
              (`deployers.identities`) and of the DeployerRegistrations, where Landscaper still has that kind. \
              Where neither says anything, neither does the rule.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployerRegistration
metadata:
  name: my-deployer
spec:
  types: [example.org/my-type]
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: example.org/mytype
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployerRegistration
metadata:
  name: my-deployer
spec:
  types: [example.org/my-type]
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: example.org/my-type
",
        },
        mend: "Spell the type as its deployer does; or install the deployer, and name its types in the \
              configuration.",
    },
};

/// More registrations than anybody has deployers.
const MAX_REGISTRATIONS: usize = 1000;

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let served = served(view);
    let type_name = Route::specified(request.object()).type_name;
    if served.is_empty() || type_name.is_empty() || served.contains(type_name) {
        return Vec::new();
    }
    let near = near::nearest(type_name, served.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let message = format!("no known deployer serves the type {type_name:?}, so that nobody picks this up{near}");
    let help = "spell the type as its deployer does; or name it in the configuration, at deployers.identities";
    let all = served.iter().cloned().collect::<Vec<_>>().join(", ");
    vec![RULE.finding(FieldPath::of(["spec", "type"]), message).found(type_name).allowed(all).help(help)]
}

/// The types that deployers serve, as far as the configuration and the registrations say.
fn served(view: &View<'_>) -> BTreeSet<String> {
    let configured = Deployers::of(view);
    let configured = configured.iter().flat_map(|deployers| &deployers.identities);
    let mut served: BTreeSet<_> = configured.flat_map(|deployer| deployer.types.clone()).collect();
    for registration in view.indexed(&DEPLOYER_REGISTRATIONS, &ALL, "", "", MAX_REGISTRATIONS) {
        served.extend(registered(registration.value()).map(str::to_owned));
    }
    served
}
