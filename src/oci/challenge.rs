//! Authentication challenges of registries: the `WWW-Authenticate` header.

use super::Repository;

/// An authentication challenge of a registry, from a response with status 401.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// HTTP basic authentication.
    Basic,
    /// Authentication with a token from the token service at the URL `realm`.
    Bearer {
        /// The URL of the token service.
        realm: String,
        /// The name by which the token service knows the registry.
        service: String,
    },
}

impl Challenge {
    /// Parses the value of a `WWW-Authenticate` header; `None` for an unsupported scheme.
    pub(super) fn read(header: &str) -> Option<Self> {
        let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let value = |name: &str| parameter(parameters, name);
        Some(Self::Bearer { realm: value("realm")?, service: value("service").unwrap_or_default() })
    }
}

/// Returns the value of the parameter `name` in the parameters of a `WWW-Authenticate` challenge, without quotes.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim_matches([',', ' ']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = left;
    }
    None
}

/// Returns whether a token service may receive the credentials of a registry. This is allowed if the host of the token
/// service, `realm_host`, is the host of the registry, or belongs to the registry's domain.
///
/// For example, `auth.docker.io` may receive the credentials of `registry-1.docker.io`. `gitlab.example.org` may
/// receive the credentials of `registry.gitlab.example.org`.
pub(super) fn is_trusted(realm_host: &str, repository: &Repository) -> bool {
    let registry = repository.host.as_str();
    if realm_host == registry {
        return true;
    }
    let bare = |host: &str| host.rsplit_once(':').map_or(host, |(name, _)| name).to_owned();
    let (realm, registry) = (bare(realm_host), bare(registry));
    let domain = registry.split_once('.').map_or("", |(_, domain)| domain);
    let is_domain = domain.contains('.') && !domain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    realm == registry
        || is_domain && (realm == domain || realm.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_basic_and_bearer_challenges() {
        let bearer = |realm: &str, service: &str| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.to_owned() })
        };
        let header = r#"Bearer realm="https://auth.example/token",service="a, b",scope="repository:x:pull""#;
        assert_eq!(Challenge::read(header), bearer("https://auth.example/token", "a, b"));
        assert_eq!(Challenge::read("bearer service=s, realm=https://r"), bearer("https://r", "s"));
        assert_eq!(Challenge::read("Basic realm=\"x\""), Some(Challenge::Basic));
        assert_eq!(Challenge::read("Bearer service=\"x\""), None);
        assert_eq!(Challenge::read("Digest x=y"), None);
    }

    #[test]
    fn trusts_only_the_domain_of_the_registry() {
        let trusted = |realm: &str, host: &str| is_trusted(realm, &Repository::new(host, "a").unwrap());
        assert!(trusted("auth.docker.io", "docker.io"));
        assert!(trusted("gitlab.example.org", "registry.gitlab.example.org"));
        assert!(trusted("127.0.0.1:5001", "http://127.0.0.1:5000"));
        assert!(!trusted("evil.example", "ghcr.io"));
        assert!(!trusted("other.io", "ghcr.io"));
        assert!(!trusted("notdocker.io", "docker.io"));
        assert!(!trusted("10.0.0.2", "10.0.0.1"));
    }
}
