//! Reads the component descriptor from an OCI artifact. Finds the layer that contains the descriptor, and unpacks this
//! layer.
//!
//! Source: `StateAccess` and the media types of the Open Component Model's `genericocireg`. Registries also contain
//! artifacts with older media types of Gardener.

use std::io::Read;

use serde::Deserialize;
use serde_json::Value;
use tar::Archive;

use super::descriptor::Descriptor;
use crate::oci::Blob;
use crate::yaml;

/// Maximum size of the configuration blob of a component's OCI artifact, in bytes. The blob contains only a reference
/// to the layer with the component descriptor.
pub const MAX_CONFIG_BYTES: usize = 64 << 10;
/// Maximum size of the layer that contains the descriptor, in bytes. A descriptor with a thousand references, each with
/// labels and a digest, needs half of this size.
pub const MAX_LAYER_BYTES: usize = 4 << 20;
/// The file name of the descriptor in an archive.
const FILE: &str = "component-descriptor.yaml";
/// Maximum number of files that are read from an archive. A correct archive contains only the descriptor.
const MAX_FILES: usize = 100;

const CONFIGS: [&str; 3] = [
    "application/vnd.ocm.software.component.config.v1+json",
    "application/vnd.gardener.cloud.cnudie.component.config.v1+json",
    "application/vnd.oci.gardener.cloud.cnudie.component-descriptor-metadata.config.v2+json",
];
const ARCHIVES: [&str; 3] = [
    "application/vnd.ocm.software.component-descriptor.v2+yaml+tar",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml+tar",
    "application/vnd.oci.gardener.cloud.cnudie.component-descriptor.config.v2+yaml+tar",
];
const TEXTS: [&str; 4] = [
    "application/vnd.ocm.software.component-descriptor.v2+yaml",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml",
    "application/vnd.ocm.software.component-descriptor.v2+json",
    "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+json",
];

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "componentDescriptorLayer")]
    layer: Option<Blob>,
}

/// Checks whether an OCI artifact is a component version. This depends on the media type of the artifact's
/// configuration blob, `config`.
///
/// # Errors
///
/// Returns a message with the media type if the artifact is not a component version.
pub fn check(config: &Blob) -> Result<(), String> {
    if CONFIGS.contains(&config.media_type.as_str()) {
        return Ok(());
    }
    Err(format!("the artifact is not a component: its configuration has the media type {:?}", config.media_type))
}

/// Returns the OCI layer that contains the component descriptor. `config` is the content of the artifact's
/// configuration blob.
///
/// # Errors
///
/// Returns a message if the configuration is not valid JSON, or if it does not name a layer.
pub fn layer(config: &[u8]) -> Result<Blob, String> {
    let config: Config =
        serde_json::from_slice(config).map_err(|error| format!("cannot decode its configuration: {error}"))?;
    config.layer.ok_or_else(|| "its configuration has no componentDescriptorLayer".to_owned())
}

/// Reads the component descriptor from the content of an OCI layer.
///
/// # Errors
///
/// Returns a message if `media_type` is not that of a component descriptor, or if the content cannot be read.
pub fn descriptor(media_type: &str, content: &[u8]) -> Result<Descriptor, String> {
    if ARCHIVES.contains(&media_type) {
        return read(&unpacked(content)?);
    }
    if TEXTS.contains(&media_type) {
        return read(content);
    }
    Err(format!("{media_type:?} is not a media type of a component descriptor"))
}

fn unpacked(content: &[u8]) -> Result<Vec<u8>, String> {
    let broken = |error: std::io::Error| format!("cannot read the archive with the descriptor: {error}");
    let mut archive = Archive::new(content);
    for entry in archive.entries().map_err(broken)?.take(MAX_FILES) {
        let mut entry = entry.map_err(broken)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if path.trim_start_matches("./").trim_start_matches('/') == FILE {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(broken)?;
            return Ok(text);
        }
    }
    Err(format!("the archive does not contain {FILE}"))
}

/// Reads a component descriptor from the text of a YAML or JSON file.
fn read(text: &[u8]) -> Result<Descriptor, String> {
    let text = std::str::from_utf8(text).map_err(|_| "the descriptor is not UTF-8".to_owned())?;
    let first = yaml::first(text, &yaml::Limits::default()).map_err(|error| error.to_string())?;
    let value = first.map_or(Value::Null, |document| document.value);
    Descriptor::read(&value).map_err(|error| error.to_string())
}
