//! Group, version and kind of an object.

/// Group, version and kind. In a selector, an empty part matches everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(in crate::kustomize) struct Gvk<'r> {
    /// The API group; empty for the core group.
    pub group: &'r str,
    pub version: &'r str,
    pub kind: &'r str,
}

impl<'r> Gvk<'r> {
    /// Creates group, version and kind from a kind and an apiVersion. Splits the apiVersion at its first slash.
    pub(in crate::kustomize) fn new(api_version: &'r str, kind: &'r str) -> Self {
        let (group, version) = split_at_slash(api_version).unwrap_or(("", api_version));
        Self { group, version, kind }
    }

    /// Returns whether a selector matches this group, version and kind. An empty part of the selector matches
    /// everything.
    pub(in crate::kustomize) fn is_selected(&self, selector: &Gvk<'_>) -> bool {
        let selects = |wanted: &str, own: &str| wanted.is_empty() || wanted == own;
        selects(selector.kind, self.kind)
            && selects(selector.group, self.group)
            && selects(selector.version, self.version)
    }

    /// Returns the apiVersion that consists of the group and the version.
    pub(in crate::kustomize) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Splits a text at its first slash; `None` if there is no slash. For short texts, this is faster than
/// `str::split_once`.
pub(in crate::kustomize) fn split_at_slash(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == b'/')?;
    Some((&text[..at], &text[at + 1..]))
}
