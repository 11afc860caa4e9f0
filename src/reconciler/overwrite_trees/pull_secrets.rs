//! The credentials of a Context: the pull secrets that it names, read by name and kept for a moment.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use crate::catalog::{Kind, Reference, Scope, cluster};
use crate::oci::Keyring;
use crate::reconciler::Tools;

/// How long credentials are kept: a change of them counts after that.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Contexts whose credentials are kept.
const CONTEXTS: usize = 1_000;
/// Pull secrets of a Context that are read.
const SECRETS_OF_ONE: usize = 20;

/// Read by name only: they are not kept in the catalog.
static SECRETS: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    scope: Scope::Namespaced,
    indexes: &[],
    parts: &[],
};

/// Credentials by namespace and names of secrets.
#[derive(Default)]
pub(super) struct PullSecrets(Mutex<HashMap<Names, (Instant, Keyring)>>);

/// A namespace, and the names of Secrets in it.
type Names = (String, Vec<String>);

impl PullSecrets {
    /// The credentials in some secrets of a namespace. One that is missing or cannot be used is left out, and logged:
    /// the registry then says what it does not show.
    pub(super) async fn keyring(&self, namespace: &str, names: &[String], tools: &Tools) -> Keyring {
        if names.is_empty() {
            return Keyring::default();
        }
        let key = (namespace.to_owned(), names.to_vec());
        if let Some(kept) = self.kept(&key) {
            return kept;
        }
        let mut keyring = Keyring::default();
        for name in names.iter().take(SECRETS_OF_ONE) {
            if let Err(why) = add(&mut keyring, namespace, name, tools).await {
                tracing::warn!(namespace, secret = name, why, "a pull secret is of no use");
            }
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CONTEXTS {
            all.clear();
        }
        all.insert(key, (Instant::now() + GOOD_FOR, keyring.clone()));
        keyring
    }

    fn kept(&self, key: &Names) -> Option<Keyring> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, keyring)| keyring.clone())
    }
}

async fn add(keyring: &mut Keyring, namespace: &str, name: &str, tools: &Tools) -> Result<(), String> {
    let reference = Reference::new(&SECRETS, namespace, name);
    let read = cluster::read(&tools.client, &reference).await.map_err(|error| error.to_string())?;
    let secret = read.ok_or_else(|| "there is none of that name".to_owned())?;
    let text = secret.pointer("/data/.dockerconfigjson").and_then(Value::as_str);
    let text = text.ok_or_else(|| "it has no .dockerconfigjson".to_owned())?;
    let config = STANDARD.decode(text).map_err(|error| error.to_string())?;
    keyring.add(&config).map_err(|error| error.to_string())
}
