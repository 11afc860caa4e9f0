//! Paths in a kustomize tree, relative to its root.

use std::fmt;
use std::sync::Arc;

/// A normalized path in a tree. It consists of names separated by `/`, without `.` and `..`. Empty for the root.
/// Clones share the text, because a repository has many references to the same files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreePath(Arc<str>);

impl TreePath {
    /// Returns the path of the tree's root folder.
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path from a text that is already normalized.
    pub(super) fn of_cleaned(path: &str) -> Self {
        Self(path.into())
    }

    /// Returns the path with another name appended.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.into()) } else { Self([&self.0, "/", name].concat().into()) }
    }

    /// Returns the parent folder; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        Some(Self(self.0.rsplit_once('/').map_or_else(Arc::default, |(parent, _)| parent.into())))
    }

    /// Returns the last component of the path, which is the name of a file or folder. Empty for the root folder of the
    /// kustomize tree.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.as_str(), |(_, name)| name)
    }

    /// Returns whether the path is `folder`, or is inside it at any depth.
    pub fn is_within(&self, folder: &Self) -> bool {
        match self.0.strip_prefix(folder.as_str()) {
            Some(rest) => folder.0.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Returns the path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path for display: `.` for the root.
    pub fn shown(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }

    /// Returns the path relative to `folder`.
    pub fn relative_to(&self, folder: &Self) -> String {
        let (own, other) = (self.names(), folder.names());
        let shared = own.iter().zip(&other).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n("..", other.len() - shared);
        let steps: Vec<_> = up.chain(own.iter().skip(shared).copied()).collect();
        if steps.is_empty() { ".".to_owned() } else { steps.join("/") }
    }

    fn names(&self) -> Vec<&str> {
        self.0.split('/').filter(|name| !name.is_empty()).collect()
    }
}

impl From<&str> for TreePath {
    /// Parses a path. Removes `.` segments. Resolves `..` segments, but never beyond the root of the tree.
    fn from(text: &str) -> Self {
        if is_clean(text) { Self(text.into()) } else { Self(cleaned(text).split_off(1).into()) }
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

/// Returns whether a relative path has no `.` segments, no `..` segments and no empty segments.
fn is_clean(path: &str) -> bool {
    path.is_empty() || path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Normalizes an absolute path as Go's `filepath.Clean` does. The result contains no `.`, no `..` and no repeated `/`.
pub(super) fn cleaned(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    ["/", &names.join("/")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_only_what_is_in_it() {
        let path = |text: &str| TreePath::from(text);
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("")));
        assert!(!path("a-base").is_within(&path("a")));
    }

    #[test]
    fn a_path_is_normalized_within_the_tree() {
        let cases = [
            ("a/b", "a/b"),
            ("", ""),
            ("/", ""),
            (".", ""),
            ("./a//b/", "a/b"),
            ("a/../../b", "b"),
            ("..a/.b", "..a/.b"),
        ];
        for (text, path) in cases {
            assert_eq!(TreePath::from(text).as_str(), path, "{text}");
        }
    }

    #[test]
    fn a_path_is_written_from_any_folder() {
        let path = |text: &str| TreePath::from(text);
        assert_eq!(path("components/ldap").relative_to(&path("clusters/prod")), "../../components/ldap");
        assert_eq!(path("app").relative_to(&path("app")), ".");
    }
}
