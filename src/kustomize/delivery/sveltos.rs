//! Checks kustomize trees for Project Sveltos: ConfigMaps and Secrets that contain an archive in the key
//! `kustomize.tar.gz`.
//!
//! The ClusterProfiles that refer to such a ConfigMap or Secret select the folder to build. Portcullis does not read
//! these ClusterProfiles. So it builds every folder with a kustomization file that no other kustomization includes.
//!
//! Source: `handlers_kustomize.go` in addon-controller's `controllers/`.

use serde_json::Value;

use super::carried::{self, ARCHIVE_KEY};
use super::carriers::{NARROWED, label, written};
use super::{At, Delivery, FAMILY, Look, Root};
use crate::admission::{FieldPath, Level, Request};
use crate::kustomize::options::{Options, Profile};
use crate::rule::Match;

static MATCHERS: [Match; 2] = [written("configmaps", "ConfigMap"), written("secrets", "Secret")];

/// The check with the key `sveltos` under `deliveries` in the configuration file. It checks ConfigMaps and Secrets that
/// contain an archive with a kustomize tree, which Project Sveltos builds.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "sveltos",
    family: FAMILY,
    summary: "the trees in ConfigMaps and Secrets that Project Sveltos reads",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: Some(&NARROWED),
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: Vec::new(), roots: root(request).into_iter().collect() },
};

fn root(request: &Request<'_>) -> Option<Root> {
    let object = request.object();
    // ConfigMaps with the label are handled by the check `config-maps`.
    if request.resource.plural == "configmaps" && label(object).is_some() {
        return None;
    }
    let member = if request.resource.plural == "secrets" { "data" } else { "binaryData" };
    let encoded = object.get(member)?.get(ARCHIVE_KEY).and_then(Value::as_str)?;
    let mut options = Options::of(Profile::Sveltos);
    options.lone_components = true;
    Some(Root {
        field: FieldPath::of([member]).key(ARCHIVE_KEY),
        of: None,
        content: carried::archive(encoded),
        at: At::EveryRoot,
        options,
        late: None,
        follows_revision: false,
    })
}
