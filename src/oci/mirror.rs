//! Registry mirrors: registries that are used in place of other registries to fetch content.

use std::str::FromStr;

use super::{Repository, RepositoryError};

/// A registry that is used in place of another registry to fetch content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The host of the registry that the mirror replaces, such as `example.org`.
    host: String,
    /// The URL of the mirror. It may contain a path, and the repositories are below that path.
    base: String,
}

impl FromStr for Mirror {
    type Err = String;

    /// Parses a mirror in the form `HOST=URL`, such as `example.org=https://mirror.example/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (host, base) = text.split_once('=').ok_or_else(|| format!("{text:?} is not HOST=URL"))?;
        let mirror = Self { host: host.to_owned(), base: base.to_owned() };
        let check = |base: &str| Repository::new(base, "a").map_err(|error: RepositoryError| error.to_string());
        check(host)?;
        check(base)?;
        Ok(mirror)
    }
}

impl Mirror {
    /// Returns the address of a repository on the mirror of its registry. If the registry has no mirror, returns
    /// `repository` unchanged. Fails if the address on the mirror is invalid, for example too long.
    ///
    /// The credentials of the registry are not used for the mirror. The mirror needs its own credentials.
    pub fn apply(mirrors: &[Self], repository: Repository) -> Result<Repository, RepositoryError> {
        match mirrors.iter().find(|mirror| mirror.host == repository.host) {
            Some(mirror) => Repository::new(&mirror.base, &repository.path),
            None => Ok(repository),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_its_host() {
        let mirrors = ["example.org=http://127.0.0.1:5000/copy".parse().unwrap()];
        let read = |base: &str| Mirror::apply(&mirrors, Repository::new(base, "a").unwrap()).unwrap();
        assert_eq!(read("example.org/x"), Repository::new("http://127.0.0.1:5000", "copy/x/a").unwrap());
        assert_eq!(read("other.example"), Repository::new("other.example", "a").unwrap());
        assert!("example.org".parse::<Mirror>().is_err() && "=x".parse::<Mirror>().is_err());
    }
}
