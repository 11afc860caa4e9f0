//! Which entries are far away.
//!
//! Source: `IsRemoteFile` in `api/internal/loader/fileloader.go`, `NewRepoSpecFromURL` in `api/internal/git/repospec.go`.

/// Whether an entry is a file to be fetched: a URL with the scheme `http` or `https`.
pub fn is_http(entry: &str) -> bool {
    let Some((scheme, rest)) = entry.split_once(':') else { return false };
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    known && !entry.chars().any(|c| c.is_ascii_control()) && is_valid_rest(rest)
}

/// What Go's `url.Parse` takes after a scheme.
fn is_valid_rest(rest: &str) -> bool {
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let before_query = rest.split_once('?').map_or(rest, |(path, _)| path);
    let Some(hosted) = before_query.strip_prefix("//") else { return has_valid_escapes(before_query) };
    let (authority, path) = hosted.split_once('/').unwrap_or((hosted, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let bad_host = host.contains([' ', '<', '>', '"', '%', '\\', '^', '`', '{', '|', '}']);
    let bad_port = !host.contains('[') && port.chars().any(|c| !c.is_ascii_digit());
    !bad_host && !bad_port && has_valid_escapes(path)
}

fn has_valid_escapes(text: &str) -> bool {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    text.split('%').skip(1).all(is_escape)
}

/// Whether kustomize takes an entry for a git repository, whatever may stand there in the tree.
pub fn is_git(entry: &str) -> bool {
    if entry.starts_with('/') {
        return false;
    }
    let address = entry.split_once('?').map_or(entry, |(address, _)| address);
    repository_path(address).is_some_and(|(path, all)| is_split(path, all))
}

const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

/// What follows the host, and whether all of it is the repository.
fn repository_path(address: &str) -> Option<(&str, bool)> {
    let address = without(address, "git::").unwrap_or(address);
    let scheme = SCHEMES.into_iter().find(|scheme| without(address, scheme).is_some());
    let after_scheme = scheme.and_then(|scheme| without(address, scheme)).unwrap_or(address);
    if scheme == Some("file://") {
        return Some((after_scheme, true));
    }
    let rest = without_user(after_scheme);
    let is_github = without(rest, "github.com/").is_some() || without(rest, "github.com:").is_some();
    let has_user = rest.len() != after_scheme.len();
    let like_scp = scheme.is_none() && (has_user || is_github);
    if scheme.is_none() && !like_scp {
        return None;
    }
    let host_end = separator(rest, like_scp);
    if rest.is_empty() {
        return None;
    }
    Some((host_end.map_or("", |at| &rest[at + 1..]), false))
}

/// `text` without `prefix`, in any case.
fn without<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// `text` without a user's name and `@` in front.
fn without_user(text: &str) -> &str {
    let Some((user, rest)) = text.split_once('@') else { return text };
    let mut chars = user.chars();
    let begins_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    if begins_well && chars.all(|c| c.is_ascii_alphanumeric() || c == '-') { rest } else { text }
}

fn separator(text: &str, like_scp: bool) -> Option<usize> {
    let slash = text.find('/');
    let colon = text.find(':').filter(|_| like_scp);
    match (slash, colon) {
        (None, colon) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        (slash, _) => slash,
    }
}

/// Whether a path names a repository, and no folder outside of it.
fn is_split(path: &str, all: bool) -> bool {
    split(path, all).is_some_and(|(repository, folder)| !repository.is_empty() && !leads_out(folder))
}

fn split(path: &str, all: bool) -> Option<(&str, &str)> {
    if let Some(at) = path.find("_git/") {
        let after = at + "_git/".len();
        let end = path[after..].find('/').map_or(path.len(), |slash| after + slash);
        return Some((&path[..end], path[end..].strip_prefix('/').unwrap_or("")));
    }
    if let Some((repository, folder)) = path.split_once("//") {
        return Some((repository, folder));
    }
    if let Some(at) = path.find(".git") {
        return Some(path.split_at(at + ".git".len()));
    }
    if all {
        return Some((path, ""));
    }
    let first = path.find('/')?;
    let end = path[first + 1..].find('/').map_or(path.len(), |slash| first + 1 + slash);
    Some((&path[..end], path[end..].strip_prefix('/').unwrap_or("")))
}

/// Whether a folder in a repository is outside of it once `.` and `..` are taken out of its path.
fn leads_out(folder: &str) -> bool {
    // Go strips one slash only; with two the path is absolute, and `..` stays below its root
    let folder = folder.strip_prefix('/').unwrap_or(folder);
    let mut depth = 0_usize;
    for name in folder.split('/') {
        match name {
            "" | "." => {}
            ".." if depth == 0 => return !folder.starts_with('/'),
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_fetched_over_http() {
        for entry in ["http://h/x.yaml", "https:/x", "HTTPS://h/a?b=c", "http:x"] {
            assert!(is_http(entry), "{entry}");
        }
        for entry in ["ftp://h/x", "file:///x", "x.yaml", "http", "http://h/%zz", "http://a b/c", "http://h:port/"] {
            assert!(!is_http(entry), "{entry}");
        }
    }

    #[test]
    fn repositories_are_recognised_by_their_address() {
        let repositories = [
            "https://github.com/org/repo//folder?ref=v1",
            "git@github.com:org/repo.git",
            "github.com/org/repo",
            "GitHub.com/org/repo/a/b",
            "git::https://example.org/org/repo",
            "ssh://git@example.org:2222/org/repo.git/folder",
            "user@host:org/repo",
            "pkg@v1.2/a/b",
            "https://dev.azure.com/org/project/_git/repo/folder",
            "file:///srv/repo.git//folder",
            "file://comp",
            "http://127.0.0.1:9/org/repo?timeout=2",
        ];
        for entry in repositories {
            assert!(is_git(entry), "{entry}");
        }
    }

    #[test]
    fn all_else_is_a_path_in_the_tree() {
        let paths = [
            "../base",
            "./pkg@v1.2/a/b",
            "pkg@v1.2",
            "github.com/foo",
            "http://127.0.0.1:9/x.yaml",
            "oci://registry/org/repo",
            "/org/repo.git",
            "https://github.com/org/repo//../outside",
            "1user@host:org/repo",
            "gitlab.com/org/repo",
            "",
        ];
        for entry in paths {
            assert!(!is_git(entry), "{entry}");
        }
    }
}
