//! Recognizes remote resources in entries of kustomization files: URLs of files and addresses of git repositories.

/// Returns whether an entry of a kustomization file is a file to fetch: a URL with the scheme `http` or `https`.
pub fn is_http(entry: &str) -> bool {
    let Some((scheme, rest)) = entry.split_once(':') else { return false };
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    known && !entry.chars().any(|c| c.is_ascii_control()) && is_valid_rest(rest)
}

/// Returns whether Go's `url.Parse` accepts `rest`, the text after the scheme of a URL.
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

/// Returns whether kustomize treats an entry as the address of a git repository, even if a folder with this path
/// exists.
pub fn is_git(entry: &str) -> bool {
    Repository::of(entry).is_some()
}

/// A git repository that kustomize clones, with the folder in it to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The start of the address, up to the path of the repository, such as `https://github.com/` or `git@host:`.
    pub host: String,
    /// The path of the repository on the host, such as `org/repo`.
    pub path: String,
    /// The folder in the repository that is built; empty for the top folder.
    pub folder: String,
    /// The branch, tag or commit; empty for the default branch.
    pub reference: String,
}

const SCHEMES: [&str; 4] = ["ssh://", "https://", "http://", "file://"];

impl Repository {
    /// Parses an entry of a kustomization file as the address of a git repository. Returns `None` if kustomize does not
    /// treat the entry as such an address.
    pub fn of(entry: &str) -> Option<Self> {
        if entry.starts_with('/') {
            return None;
        }
        let (address, query) = entry.split_once('?').unwrap_or((entry, ""));
        let (host, path, whole) = host(address)?;
        let (path, folder) = split(path, whole)?;
        if path.is_empty() || leads_out(folder) {
            return None;
        }
        let folder = folder.strip_prefix('/').unwrap_or(folder).to_owned();
        Some(Self { host, path: path.to_owned(), folder, reference: reference(query) })
    }
}

/// Splits the address of a git repository into the host, such as `https://github.com/`, and the rest. The boolean is
/// true if the rest is only the path of the repository. It is false if the rest may also contain a folder in the
/// repository. Returns `None` if the address is not that of a git repository.
fn host(address: &str) -> Option<(String, &str, bool)> {
    let address = without(address, "git::").unwrap_or(address);
    let scheme = SCHEMES.into_iter().find(|scheme| without(address, scheme).is_some()).unwrap_or_default();
    let after_scheme = without(address, scheme).unwrap_or(address);
    if scheme == "file://" {
        return Some((scheme.to_owned(), after_scheme, true));
    }
    let rest = without_user(after_scheme);
    let user = &after_scheme[..after_scheme.len() - rest.len()];
    let is_github = without(rest, "github.com/").is_some() || without(rest, "github.com:").is_some();
    let like_scp = scheme.is_empty() && (!user.is_empty() || is_github);
    if (scheme.is_empty() && !like_scp) || rest.is_empty() {
        return None;
    }
    let (host, path) = separator(rest, like_scp).map_or((rest, ""), |at| rest.split_at(at + 1));
    let host = match is_github {
        true if scheme == "ssh://" || !user.is_empty() => format!("{user}github.com:"),
        true => "https://github.com/".to_owned(),
        false => format!("{scheme}{user}{host}"),
    };
    Some((host, path, false))
}

/// Removes `prefix` from the start of a text, ignoring case. Returns `None` if the text does not start with it.
fn without<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Removes a user name at the start of an address, such as `git@`.
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

/// Splits the path of a git URL into the path of the repository and the path of a folder in the repository.
///
/// The first of these rules that applies determines where the path of the repository ends:
///
/// - If `path` contains `_git/`: after the segment that follows `_git/`.
/// - If `path` contains `//`: before `//`.
/// - If `path` contains `.git`: after `.git`.
/// - If `whole` is true: at the end of `path`.
/// - Otherwise: after the second segment. The result is `None` if `path` has only one segment.
fn split(path: &str, whole: bool) -> Option<(&str, &str)> {
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
    if whole {
        return Some((path, ""));
    }
    let first = path.find('/')?;
    let end = path[first + 1..].find('/').map_or(path.len(), |slash| first + 1 + slash);
    Some((&path[..end], path[end..].strip_prefix('/').unwrap_or("")))
}

/// Returns whether a path in a repository leads out of the repository. Resolves `.` and `..` first.
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

/// Returns the parameter `ref` of a URL query, or the parameter `version` if `ref` is missing or empty. Returns an
/// empty string if both are missing, or if the query is invalid in Go.
fn reference(query: &str) -> String {
    let Some(pairs) = pairs(query) else { return String::new() };
    let first = |wanted: &str| pairs.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
    first("ref").filter(|value| !value.is_empty()).or_else(|| first("version")).unwrap_or_default()
}

/// Parses a URL query into pairs of key and value, as Go's `url.ParseQuery` does. Returns `None` if the query is
/// invalid in Go.
fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |text: &str| {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        Some((unescaped(key)?, unescaped(value)?)).filter(|_| !text.contains(';'))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

/// Unescapes a text, as Go's `url.QueryUnescape` does. Invalid UTF-8 becomes U+FFFD. Returns `None` if an escape
/// sequence is invalid.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok().filter(|digits| !digits.contains('+'))?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &after[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
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
