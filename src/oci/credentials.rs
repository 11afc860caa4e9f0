//! Credentials for registries, from pull secrets of type `kubernetes.io/dockerconfigjson`. An entry of a pull secret
//! applies to a host, or to a path prefix on that host. The longest matching entry applies.
//!
//! Source: `DockerConfigJSON` in Kubernetes' `pkg/credentialprovider`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Repository, digest};

/// Credentials for a registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// No credentials.
    #[default]
    Anonymous,
    /// User name and password.
    User {
        /// The user name for the registry.
        name: String,
        /// The password for the registry.
        password: String,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::User { name, .. } => write!(f, "User({name})"),
        }
    }
}

impl Credentials {
    /// Returns the value of a basic `Authorization` header; `None` without credentials.
    pub(super) fn basic(&self) -> Option<String> {
        match self {
            Self::Anonymous => None,
            Self::User { name, password } => Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))),
        }
    }

    /// Returns a hash that identifies the credentials without revealing them.
    pub fn fingerprint(&self) -> String {
        match self {
            Self::Anonymous => String::new(),
            Self::User { name, password } => digest::hex(format!("{}:{name}:{password}", name.len()).as_bytes()),
        }
    }
}

/// Credentials for several registries, from pull secrets.
#[derive(Debug, Clone, Default)]
pub struct Keyring(Vec<(String, Credentials)>);

/// The reason why a pull secret is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// The content is not a JSON object with a member `auths`.
    #[error(".dockerconfigjson has no object \"auths\"")]
    NoAuths,
    /// The entry for this registry has neither `auth` nor `username` and `password`.
    #[error("the entry for {0:?} has neither auth nor username and password")]
    NoCredentials(String),
}

impl Keyring {
    /// Adds the entries of a pull secret's `.dockerconfigjson`.
    ///
    /// # Errors
    /// Fails if the content has no object `auths`, or if one of its entries is invalid. Valid entries before the
    /// invalid one are added. Errors never contain credentials.
    pub fn add(&mut self, config: &[u8]) -> Result<(), KeyringError> {
        let config: Value = serde_json::from_slice(config).map_err(|_| KeyringError::NoAuths)?;
        let auths = config.get("auths").and_then(Value::as_object).ok_or(KeyringError::NoAuths)?;
        for (host, entry) in auths {
            let credentials = credentials(entry).ok_or_else(|| KeyringError::NoCredentials(host.clone()))?;
            self.0.push((place(host), credentials));
        }
        Ok(())
    }

    /// Returns the credentials for a repository. An entry applies if its key is the address of the repository or of one
    /// of its parent paths. If several entries apply, the one with the longest key is used. Returns
    /// [`Credentials::Anonymous`] if no entry applies.
    pub fn credentials(&self, repository: &Repository) -> Credentials {
        let address = repository.to_string();
        let fits = |(place, _): &&(String, Credentials)| {
            address.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let best = self.0.iter().filter(fits).max_by_key(|(place, _)| place.len());
        best.map(|(_, credentials)| credentials.clone()).unwrap_or_default()
    }
}

fn credentials(entry: &Value) -> Option<Credentials> {
    let text = |key| entry.get(key).and_then(Value::as_str).filter(|text: &&str| !text.is_empty());
    if let Some(auth) = text("auth") {
        let decoded = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
        let (name, password) = decoded.split_once(':')?;
        return Some(Credentials::User { name: name.to_owned(), password: password.trim_matches('\0').to_owned() });
    }
    Some(Credentials::User { name: text("username")?.to_owned(), password: text("password")?.to_owned() })
}

/// Converts a key of `auths` in a pull secret to a prefix of repository addresses. Examples of keys are
/// `https://index.docker.io/v1/` and `example.org/path/`.
fn place(key: &str) -> String {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest).trim_end_matches('/');
    let key = key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key);
    let (host, path) = key.split_once('/').map_or((key, None), |(host, path)| (host, Some(path)));
    let host = if matches!(host, "docker.io" | "index.docker.io") { "registry-1.docker.io" } else { host };
    path.map_or_else(|| host.to_owned(), |path| format!("{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keyring(auths: Value) -> Keyring {
        let mut keyring = Keyring::default();
        keyring.add(json!({ "auths": auths }).to_string().as_bytes()).unwrap();
        keyring
    }

    #[test]
    fn uses_the_longest_matching_entry() {
        let user = |name: &str| json!({"username": name, "password": "p"});
        let keyring = keyring(json!({"https://example.org/v1/": user("host"), "example.org/a": user("a"),
            "example.org/a/b": {"auth": STANDARD.encode("b:p:q")}, "docker.io": user("hub")}));
        let name = |base: &str, path: &str| match keyring.credentials(&Repository::new(base, path).unwrap()) {
            Credentials::User { name, .. } => name,
            Credentials::Anonymous => "nobody".to_owned(),
        };
        assert_eq!(name("example.org", "x"), "host");
        assert_eq!(name("example.org", "a/c"), "a");
        assert_eq!(name("example.org", "ab"), "host");
        assert_eq!(name("example.org", "a/b/c"), "b");
        assert_eq!(name("docker.io", "x"), "hub");
        assert_eq!(name("example.org:5000", "a"), "nobody");
        assert_eq!(name("example.org.evil.example", "a"), "nobody");
    }

    #[test]
    fn errors_do_not_contain_secrets() {
        let mut keyring = Keyring::default();
        assert_eq!(keyring.add(b"{}"), Err(KeyringError::NoAuths));
        let error = keyring.add(br#"{"auths":{"example.org":{"password":"hidden"}}}"#).unwrap_err();
        assert_eq!(error.to_string(), "the entry for \"example.org\" has neither auth nor username and password");
        let user = Credentials::User { name: "me".into(), password: "hidden".into() };
        assert_eq!(format!("{user:?}"), "User(me)");
    }
}
