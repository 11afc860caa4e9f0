//! Maps component versions to repositories and tags in an OCI registry.
//!
//! Source: `MapComponentNameToNamespace` and `toTag` of the Open Component Model's `genericocireg`, and the type
//! names in its `ocireg`.

use crate::landscaper::repository_context::RepositoryContext;
use crate::oci::{Repository, digest};

/// The types of repository contexts for OCI registries; each may have the suffix `/v1`.
const TYPES: [&str; 4] = ["ociRegistry", "OCIRegistry", "OCIRepository", "oci"];
/// Maximum length of a tag in the OCI distribution specification.
const MAX_TAG_LENGTH: usize = 128;

/// Returns the OCI repository that contains the versions of a component.
///
/// # Errors
/// Returns a message if the repository context is not a valid OCI registry, or if the repository context and the
/// component name do not form a valid repository name.
pub fn repository(context: &RepositoryContext, component: &str) -> Result<Repository, String> {
    let type_name = context.type_name();
    if !TYPES.contains(&type_name.strip_suffix("/v1").unwrap_or(type_name)) {
        return Err(format!(
            "a repository context of type {type_name:?} is not an OCI registry; no other type is supported"
        ));
    }
    let text = |name: &str| context.text(name).ok_or_else(|| format!("repositoryContext.{name} is not a string"));
    let (base, below, mapping) = (text("baseUrl")?, text("subPath")?, text("componentNameMapping")?);
    if base.is_empty() {
        return Err("repositoryContext.baseUrl is empty".to_owned());
    }
    let name = match mapping.as_str() {
        "" | "urlPath" => format!("{below}/component-descriptors/{component}"),
        "sha256-digest" => format!("{below}/{}", digest::hex(component.as_bytes())),
        other => return Err(format!("{other:?} is not a component name mapping; use urlPath or sha256-digest")),
    };
    Repository::new(&base, &name).map_err(|error| error.to_string())
}

/// Returns the OCI tag of a component version. A tag cannot contain a plus sign, so the Open Component Model replaces
/// it with `.build-`.
///
/// # Errors
/// Returns a message if the version cannot be written as a tag.
pub fn tag(version: &str) -> Result<String, String> {
    let tag = version.replace('+', ".build-");
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_tag = tag.len() <= MAX_TAG_LENGTH
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte));
    if is_tag { Ok(tag) } else { Err(format!("{version:?} cannot be the tag of an artifact")) }
}

/// Returns the component version of an OCI tag. This is the inverse of [`tag`].
pub fn version(tag: &str) -> String {
    // A version has at most one plus sign, so only the last `.build-` is replaced.
    match tag.rsplit_once(".build-") {
        Some((before, after)) => format!("{before}+{after}"),
        None => tag.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::FieldPath;

    fn address(context: &Value) -> Result<String, String> {
        let context = RepositoryContext::of(context, &FieldPath::root()).unwrap().unwrap();
        repository(&context, "example.org/db").map(|repository| repository.to_string())
    }

    #[test]
    fn maps_component_names_to_paths_or_digests() {
        let url = json!({"type": "ociRegistry", "baseUrl": "reg.example/a"});
        assert_eq!(address(&url).unwrap(), "reg.example/a/component-descriptors/example.org/db");
        let below = json!({"type": "OCIRegistry/v1", "baseUrl": "https://reg.example", "subPath": "x"});
        assert_eq!(address(&below).unwrap(), "reg.example/x/component-descriptors/example.org/db");
        let hashed =
            json!({"type": "OCIRegistry", "BASEURL": "reg.example/a", "componentNameMapping": "sha256-digest"});
        assert_eq!(address(&hashed).unwrap(), format!("reg.example/a/{}", digest::hex(b"example.org/db")));
    }

    #[test]
    fn rejects_contexts_that_are_not_oci_registries() {
        assert!(address(&json!({"type": "local"})).unwrap_err().contains("\"local\" is not an OCI registry"));
        assert!(address(&json!({"type": "ociRegistry"})).unwrap_err().contains("baseUrl is empty"));
        let odd = json!({"type": "ociRegistry", "baseUrl": "a.example", "componentNameMapping": "odd"});
        assert!(address(&odd).unwrap_err().contains("urlPath or sha256-digest"));
    }

    #[test]
    fn replaces_the_plus_sign_in_tags() {
        assert_eq!(tag("v1.0.0+abc").unwrap(), "v1.0.0.build-abc");
        assert_eq!(version("v1.0.0.build-abc"), "v1.0.0+abc");
        assert!(tag("../../etc").is_err() && tag("").is_err() && tag("a/b").is_err());
    }
}
