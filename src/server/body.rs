//! Reads request bodies within limits, or discards them.

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::limits::{DRAIN, DRAIN_FACTOR, Limits, Load};
use super::metrics::Shed;
use super::rejection::Rejection;

/// A complete request body, and the memory reserved for it.
#[derive(Debug)]
pub(super) struct Buffered {
    pub(super) bytes: Bytes,
    _reserved: Option<OwnedSemaphorePermit>,
}

/// Reads a complete request body. Fails if the body is too large, arrives too slowly or is broken, or if the memory for
/// bodies is used up. After an error, the caller can discard the rest with [`drain`].
pub(super) async fn read(body: &mut Body, limits: &Limits, load: &Load) -> Result<Buffered, Rejection> {
    let late = Rejection::SlowBody(limits.body_arrival);
    timeout(limits.body_arrival, collect(body, limits.body, load)).await.unwrap_or(Err(late))
}

/// Reads a request body, and reserves memory for it as its bytes arrive. The size in the header `Content-Length` is not
/// reserved in advance. Otherwise, a few requests that announce large bodies and send nothing could reserve all memory
/// that is available for bodies.
async fn collect(body: &mut Body, limit: usize, load: &Load) -> Result<Buffered, Rejection> {
    let announced = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if announced.is_some_and(|size| size > limit) {
        return Err(Rejection::TooLarge(limit));
    }
    let mut buffer = BytesMut::new();
    let mut reserved: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Rejection::BrokenBody(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - buffer.len() {
            return Err(Rejection::TooLarge(limit));
        }
        let more = load.bytes(data.len()).ok_or(Rejection::Shed(Shed::BufferedBytes))?;
        match &mut reserved {
            Some(reserved) => reserved.merge(more),
            None => reserved = Some(more),
        }
        if announced == Some(data.len()) {
            return Ok(Buffered { bytes: data, _reserved: reserved });
        }
        if buffer.is_empty() {
            buffer.reserve(announced.unwrap_or(data.len()));
        }
        buffer.extend_from_slice(&data);
    }
    Ok(Buffered { bytes: buffer.freeze(), _reserved: reserved })
}

/// Reads and discards the rest of a body, within limits of size and time.
///
/// Closing a socket with unread bytes resets the connection, and the reset may arrive before the response. The client
/// would then see a broken connection instead of 413 or 429.
pub(super) async fn drain(mut body: Body, limits: &Limits) {
    let mut left = limits.body.saturating_mul(DRAIN_FACTOR);
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // After a timeout, the response is sent nevertheless.
    let _ = timeout(DRAIN.min(limits.body_arrival), rest).await;
}
