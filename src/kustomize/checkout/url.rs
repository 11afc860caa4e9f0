//! Normalizes URLs of git repositories, to compare different spellings.

/// A repository, identified by host and path. The user, port, scheme and suffix `.git` of its URL are ignored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    /// The host, in lower case.
    pub host: String,
    /// The path, in lower case, because hosts such as GitHub do not distinguish names by case.
    pub path: String,
}

/// Pairs of hosts of git services. The first host offers SSH over port 443. The second one is the host in HTTPS URLs of
/// the same service.
const SSH_HOSTS: [(&str, &str); 4] = [
    ("ssh.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
    ("ssh.dev.azure.com", "dev.azure.com"),
];

impl Repository {
    /// Parses a git URL: `https://host/path`, `ssh://user@host:port/path`, or `user@host:path` as for scp. Returns
    /// `None` for a file path, and for a URL without host or path.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url.trim();
        let (authority, path) = match url.split_once("://") {
            Some(("file", _)) => return None,
            Some((_, rest)) => rest.split_once('/')?,
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let host = SSH_HOSTS.iter().find(|(ssh, _)| *ssh == host).map_or(host, |(_, web)| (*web).to_owned());
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).to_ascii_lowercase().replace("%20", " ");
        let path = if host == "dev.azure.com" { azure(&path) } else { path };
        (!host.is_empty() && !path.is_empty()).then_some(Self { host, path })
    }
}

/// Returns the path of an Azure DevOps repository in a form that does not depend on the protocol. The path is different
/// in HTTPS URLs (`org/project/_git/name`) and SSH URLs (`v3/org/project/name`).
fn azure(path: &str) -> String {
    let path = path.strip_prefix("v3/").unwrap_or(path);
    path.replace("/_git/", "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_all_forms_of_one_repository_as_the_same() {
        let one = Repository { host: "github.com".to_owned(), path: "o/r".to_owned() };
        for url in [
            "https://github.com/o/r",
            "https://github.com/o/r.git",
            "https://user:secret@GitHub.com:443/O/r.git/",
            "ssh://git@github.com/o/r",
            "ssh://git@ssh.github.com:443/o/r.git",
            "git@github.com:o/r.git",
            "github.com:o/r",
            "git://github.com./o/r",
        ] {
            assert_eq!(Repository::parse(url), Some(one.clone()), "{url}");
        }
        let azure = Repository::parse("git@ssh.dev.azure.com:v3/org/project/name");
        assert_eq!(azure, Repository::parse("https://org@dev.azure.com/org/project/_git/name"));
        assert!(azure.is_some());
    }

    #[test]
    fn parses_no_path_of_the_file_system() {
        for url in ["", "/srv/git/r.git", "../r", "file:///srv/r", "C:", "https://github.com"] {
            assert_eq!(Repository::parse(url), None, "{url}");
        }
    }
}
