//! The component descriptor in an OCI artifact: which layer holds it, and how it is packed.
//!
//! Source: `StateAccess` and the media types of the Open Component Model's `genericocireg`; Gardener's older names for
//! them are in use as well.

use std::io::Read;

use serde::Deserialize;
use serde_json::Value;
use tar::Archive;

use super::descriptor::Descriptor;
use crate::oci::Blob;
use crate::yaml;

/// The largest configuration, in bytes: it holds one descriptor of a layer.
pub const LARGEST_CONFIG: usize = 64 << 10;
/// The largest layer with a descriptor, in bytes: a thousand references with labels and digests are half of it.
pub const LARGEST_LAYER: usize = 4 << 20;
/// The name of the descriptor in an archive.
const FILE: &str = "component-descriptor.yaml";
/// An archive with a descriptor holds that alone.
const MOST_FILES: usize = 100;

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

/// Whether an artifact with such a configuration is a component version.
///
/// # Errors
/// What it is instead.
pub fn check(config: &Blob) -> Result<(), String> {
    if CONFIGS.contains(&config.media_type.as_str()) {
        return Ok(());
    }
    Err(format!("the artifact is no component: its configuration is {:?}", config.media_type))
}

/// The layer that holds the descriptor.
///
/// # Errors
/// Why there is none.
pub fn layer(config: &[u8]) -> Result<Blob, String> {
    let config: Config = serde_json::from_slice(config).map_err(|error| format!("its configuration: {error}"))?;
    config.layer.ok_or_else(|| "its configuration names no componentDescriptorLayer".to_owned())
}

/// The descriptor in a layer.
///
/// # Errors
/// What cannot be read.
pub fn descriptor(media_type: &str, content: &[u8]) -> Result<Descriptor, String> {
    if ARCHIVES.contains(&media_type) {
        return read(&unpacked(content)?);
    }
    if TEXTS.contains(&media_type) {
        return read(content);
    }
    Err(format!("{media_type:?} is no media type of a component descriptor"))
}

fn unpacked(content: &[u8]) -> Result<Vec<u8>, String> {
    let broken = |error: std::io::Error| format!("the archive with the descriptor: {error}");
    let mut archive = Archive::new(content);
    for entry in archive.entries().map_err(broken)?.take(MOST_FILES) {
        let mut entry = entry.map_err(broken)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if path.trim_start_matches("./").trim_start_matches('/') == FILE {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(broken)?;
            return Ok(text);
        }
    }
    Err(format!("the archive holds no {FILE}"))
}

/// Reads a descriptor from YAML, of which JSON is a part.
fn read(text: &[u8]) -> Result<Descriptor, String> {
    let text = std::str::from_utf8(text).map_err(|_| "the descriptor is no UTF-8".to_owned())?;
    let first = yaml::first(text, &yaml::Limits::default()).map_err(|error| error.to_string())?;
    let value = first.map_or(Value::Null, |document| document.value);
    Descriptor::read(&value).map_err(|error| error.to_string())
}
