//! Addresses of repositories in registries.

use std::fmt;

/// The address of a repository in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repository {
    /// Whether the registry is accessed by HTTP without TLS.
    pub is_plain: bool,
    /// The host of the registry, with an optional port.
    pub host: String,
    /// The path of the repository, such as `components/app`.
    pub path: String,
}

/// The reason why a text is not the address of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// The host is missing or invalid.
    #[error("{0:?} does not name a registry")]
    NoHost(String),
    /// The scheme is not `https`, `http` or `oci`.
    #[error("{0:?} is not the address of an OCI registry")]
    Scheme(String),
    /// The path is empty, too long, or has invalid characters.
    #[error("{0:?} is not a valid repository name")]
    Path(String),
}

/// Maximum length of a repository path, in bytes. The OCI Distribution Specification limits host and path together to
/// 255 bytes.
const MAX_LENGTH: usize = 255;

impl Repository {
    /// Parses the address of the repository `name` below the address `base`. Examples of `base` are
    /// `https://example.org/components` and `example.org:5000/components`.
    ///
    /// # Errors
    /// Fails if `base` and `name` do not form the address of a repository.
    pub fn new(base: &str, name: &str) -> Result<Self, RepositoryError> {
        let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
        let is_plain = match scheme {
            "https" | "oci" => false,
            "http" => true,
            _ => return Err(RepositoryError::Scheme(base.to_owned())),
        };
        let (host, below) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_host(host) {
            return Err(RepositoryError::NoHost(base.to_owned()));
        }
        let parts = below.split('/').chain(name.split('/')).filter(|part| !part.is_empty());
        let path = parts.collect::<Vec<_>>().join("/");
        if path.is_empty() || path.len() > MAX_LENGTH || !path.split('/').all(is_part) {
            return Err(RepositoryError::Path(path));
        }
        Ok(Self { is_plain, host: registry_of(host).to_owned(), path })
    }

    /// Returns the URL of the registry, such as `https://example.org:5000`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_plain { "http" } else { "https" };
        format!("{scheme}://{}", self.host)
    }

    /// Returns whether the connection is private: it uses TLS or a loopback address.
    pub fn is_private(&self) -> bool {
        !self.is_plain || is_loopback(&self.host)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

/// Returns the host that serves a registry: `registry-1.docker.io` for `docker.io`, otherwise the same host.
fn registry_of(host: &str) -> &str {
    match host {
        "docker.io" | "index.docker.io" => "registry-1.docker.io",
        host => host,
    }
}

fn is_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_v4 = name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_v4 || name == "localhost" || name == "[::1]"
}

/// Returns whether a text is a valid part of a repository's path: lower-case letters and digits, with separators
/// between them.
fn is_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    part.bytes().all(|byte| is_word(byte) || b"._-".contains(&byte))
        && part.bytes().next().is_some_and(is_word)
        && part.bytes().last().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_base_url_and_name() {
        let address = |base, name| {
            Repository::new(base, name).map(|repository| format!("{}/{}", repository.origin(), repository.path))
        };
        assert_eq!(address("example.org/a/", "b/c").unwrap(), "https://example.org/a/b/c");
        assert_eq!(address("http://127.0.0.1:5000", "b").unwrap(), "http://127.0.0.1:5000/b");
        assert_eq!(address("docker.io/library", "b").unwrap(), "https://registry-1.docker.io/library/b");
        for (base, name) in [
            ("", "a"),
            ("ftp://example.org", "a"),
            ("example.org", ""),
            ("example.org", "../a"),
            ("example.org", "A"),
            ("user@example.org", "a"),
            ("example.org", "a?b"),
        ] {
            assert!(address(base, name).is_err(), "{base} {name}");
        }
    }

    #[test]
    fn only_tls_and_loopback_are_private() {
        let private = |base| Repository::new(base, "a").unwrap().is_private();
        assert!(private("example.org") && private("http://127.0.0.1:5000") && private("http://localhost"));
        assert!(!private("http://example.org") && !private("http://127.example.org:5000"));
    }
}
