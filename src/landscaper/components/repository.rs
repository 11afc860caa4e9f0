//! Where a component version is in an OCI registry.
//!
//! Source: `MapComponentNameToNamespace` and `toTag` of the Open Component Model's `genericocireg`, and the names of the
//! type in its `ocireg`.

use crate::landscaper::repository_context::RepositoryContext;
use crate::oci::{Repository, digest};

/// The types of repository contexts that are OCI registries; each may have `/v1` behind it.
const TYPES: [&str; 4] = ["ociRegistry", "OCIRegistry", "OCIRepository", "oci"];
/// A tag has at most 128 characters.
const LONGEST_TAG: usize = 128;

/// The repository that holds the versions of a component.
///
/// # Errors
/// Why there is none.
pub fn repository(context: &RepositoryContext, component: &str) -> Result<Repository, String> {
    let type_name = context.type_name();
    if !TYPES.contains(&type_name.strip_suffix("/v1").unwrap_or(type_name)) {
        return Err(format!("a repository context of type {type_name:?} is no OCI registry, and nothing else is read"));
    }
    let text = |name: &str| context.text(name).ok_or_else(|| format!("repositoryContext.{name} is no text"));
    let (base, below, mapping) = (text("baseUrl")?, text("subPath")?, text("componentNameMapping")?);
    if base.is_empty() {
        return Err("repositoryContext.baseUrl is empty".to_owned());
    }
    let name = match mapping.as_str() {
        "" | "urlPath" => format!("{below}/component-descriptors/{component}"),
        "sha256-digest" => format!("{below}/{}", digest::hex(component.as_bytes())),
        other => return Err(format!("{other:?} is no component name mapping; urlPath and sha256-digest are")),
    };
    Repository::new(&base, &name).map_err(|error| error.to_string())
}

/// The tag of a version. Tags have no plus sign, so the model writes `.build-` for it.
///
/// # Errors
/// Why there is none.
pub fn tag(version: &str) -> Result<String, String> {
    let tag = version.replace('+', ".build-");
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_tag = tag.len() <= LONGEST_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte));
    if is_tag { Ok(tag) } else { Err(format!("{version:?} cannot be the tag of an artifact")) }
}

/// The version that a tag stands for.
pub fn version(tag: &str) -> String {
    // The last one stands for the plus sign, of which a version has one at most.
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
    fn names_become_paths_or_digests() {
        let url = json!({"type": "ociRegistry", "baseUrl": "reg.example/a"});
        assert_eq!(address(&url).unwrap(), "reg.example/a/component-descriptors/example.org/db");
        let below = json!({"type": "OCIRegistry/v1", "baseUrl": "https://reg.example", "subPath": "x"});
        assert_eq!(address(&below).unwrap(), "reg.example/x/component-descriptors/example.org/db");
        let hashed =
            json!({"type": "OCIRegistry", "BASEURL": "reg.example/a", "componentNameMapping": "sha256-digest"});
        assert_eq!(address(&hashed).unwrap(), format!("reg.example/a/{}", digest::hex(b"example.org/db")));
    }

    #[test]
    fn what_is_no_registry_is_told() {
        assert!(address(&json!({"type": "local"})).unwrap_err().contains("\"local\" is no OCI registry"));
        assert!(address(&json!({"type": "ociRegistry"})).unwrap_err().contains("baseUrl is empty"));
        let odd = json!({"type": "ociRegistry", "baseUrl": "a.example", "componentNameMapping": "odd"});
        assert!(address(&odd).unwrap_err().contains("urlPath and sha256-digest"));
    }

    #[test]
    fn a_plus_sign_is_written_out() {
        assert_eq!(tag("v1.0.0+abc").unwrap(), "v1.0.0.build-abc");
        assert_eq!(version("v1.0.0.build-abc"), "v1.0.0+abc");
        assert!(tag("../../etc").is_err() && tag("").is_err() && tag("a/b").is_err());
    }
}
