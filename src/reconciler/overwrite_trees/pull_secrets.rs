//! Caches the registry credentials of a Landscaper Context. They come from the pull secrets that the Context names. The
//! controller reads each pull secret by name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use crate::catalog::{Reference, cluster};
use crate::oci::Keyring;
use crate::reconciler::Tools;
use crate::reconciler::kinds::SECRETS;

/// Time to live of cached credentials. A changed pull secret takes effect after this time.
const CACHE_TTL: Duration = Duration::from_secs(60);
/// Maximum number of Contexts whose credentials are cached, to bound the memory of the cache. If it is reached, the
/// cache is emptied.
const MAX_CONTEXTS: usize = 1_000;
/// Maximum number of pull secrets that are read for a Context, because each one is a request to the API server. Further
/// pull secrets are ignored.
const MAX_SECRETS: usize = 20;

/// A cache of registry credentials by namespace and names of pull secrets.
#[derive(Default)]
pub(super) struct PullSecrets(Mutex<HashMap<Names, (Instant, Keyring)>>);

/// A namespace, and the names of Secrets in it.
type Names = (String, Vec<String>);

impl PullSecrets {
    /// Returns the credentials in the pull secrets `names` of a namespace. Logs and skips a missing or invalid secret.
    /// Without its credentials, the registry may deny access.
    pub(super) async fn keyring(&self, namespace: &str, names: &[String], tools: &Tools) -> Keyring {
        if names.is_empty() {
            return Keyring::default();
        }
        let key = (namespace.to_owned(), names.to_vec());
        if let Some(cached) = self.cached(&key) {
            return cached;
        }
        let mut keyring = Keyring::default();
        for name in names.iter().take(MAX_SECRETS) {
            if let Err(why) = add(&mut keyring, namespace, name, tools).await {
                tracing::warn!(namespace, secret = name, why, "a pull secret cannot be used");
            }
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CONTEXTS {
            all.clear();
        }
        all.insert(key, (Instant::now() + CACHE_TTL, keyring.clone()));
        keyring
    }

    fn cached(&self, key: &Names) -> Option<Keyring> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, keyring)| keyring.clone())
    }
}

async fn add(keyring: &mut Keyring, namespace: &str, name: &str, tools: &Tools) -> Result<(), String> {
    let reference = Reference::new(&SECRETS, namespace, name);
    let read = cluster::read(&tools.client, &reference).await.map_err(|error| error.to_string())?;
    let secret = read.ok_or_else(|| "it does not exist".to_owned())?;
    let text = secret.pointer("/data/.dockerconfigjson").and_then(Value::as_str);
    let text = text.ok_or_else(|| "it has no .dockerconfigjson".to_owned())?;
    let config = STANDARD.decode(text).map_err(|error| error.to_string())?;
    keyring.add(&config).map_err(|error| error.to_string())
}
