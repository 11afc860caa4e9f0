//! Fetches a single Flux artifact, for the command `portcullis plan`. The artifact is not cached, because the command
//! needs it only once.

use std::fmt::Display;

use bytes::Bytes;
use hyper::body::Body;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Limits;
use super::fetch::{self, Digest, FetchError, Target};
use crate::kustomize::delivery::Artifact;
use crate::kustomize::tree::{ArchiveLimits, Tree};

/// Fetches an artifact from its URL, and unpacks it. The URL may have any host. Follows no redirects, and sends no
/// credentials.
///
/// # Errors
///
/// If the host does not send an archive with the digest of the artifact, or if a limit is exceeded.
pub async fn fetch_once(artifact: &Artifact, limits: &Limits) -> Result<Tree, FetchError> {
    let target = Target::of_any_host(artifact)?;
    let arriving = Semaphore::new(usize::try_from(limits.arriving).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS));
    let (packed, _permit) = fetch::fetch(&target, limits, &arriving).await?;
    unpacked(packed, limits).await
}

/// Reads an artifact from the body of an HTTP response, checks its digest, and unpacks it. `host` is used only in error
/// messages.
///
/// # Errors
///
/// If the body is not an archive with the digest of the artifact, or exceeds a limit.
pub async fn receive<B>(artifact: &Artifact, host: &str, body: B, limits: &Limits) -> Result<Tree, FetchError>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let digest = Digest::of(&artifact.digest)?;
    let packed = timeout(limits.fetch, fetch::read(host, &digest, body, limits.packed)).await;
    unpacked(packed.map_err(|_| FetchError::Slow(host.to_owned(), limits.fetch))??, limits).await
}

/// Unpacks an archive within the limits, on a blocking thread.
pub(super) async fn unpacked(packed: Vec<u8>, limits: &Limits) -> Result<Tree, FetchError> {
    let bounds = ArchiveLimits { bytes: limits.unpacked, entries: limits.entries, strict: true };
    let unpack = move || Tree::archive_within(&*packed, "/", bounds);
    Ok(tokio::task::spawn_blocking(unpack).await.map_err(|_| FetchError::Unpacking)??)
}
