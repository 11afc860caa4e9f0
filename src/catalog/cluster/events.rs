//! Opens a watch of a kind, and reads its events. Each event contains the JSON text of its object.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use kube::api::WatchParams;
use kube::core::{Request, Status};
use kube::{Client, Error};
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

/// Duration of a watch, in seconds. The API server ends the watch after this time, and Portcullis opens a new one.
const WATCH_SECONDS: u32 = 290;
/// Time without received data after which a watch counts as broken. It is longer than the duration of a watch, so that
/// a watch without changes and bookmarks does not count as broken.
const MAX_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// Maximum size of a watch event, in bytes. It is far above 1.5 MiB, the size above which etcd rejects objects by
/// default. When lists are read, each object has the same limit.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// An event of a watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'e> {
    /// The JSON text of a created or changed object.
    Applied(&'e str),
    /// The JSON text of a deleted object.
    Deleted(&'e str),
    /// A bookmark. The API server has sent all changes up to this resourceVersion.
    Bookmark(String),
}

/// An open watch, as a stream of events.
pub(super) struct Events {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    line: Vec<u8>,
}

#[derive(Deserialize)]
struct Raw<'e> {
    #[serde(borrow, rename = "type")]
    what: Cow<'e, str>,
    #[serde(borrow)]
    object: &'e RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: String,
}

impl Events {
    /// Opens a watch of the objects at the list URL `url`, starting at the resourceVersion `version`.
    pub(super) async fn open(client: &Client, url: &str, version: &str) -> Result<Self, Error> {
        let parameters = WatchParams { timeout: Some(WATCH_SECONDS), bookmarks: true, ..WatchParams::default() };
        let request = Request::new(url).watch(&parameters, version).map_err(Error::BuildRequest)?;
        Ok(Self { body: Box::pin(client.request_stream(request).await?), line: Vec::new() })
    }

    /// Returns the next event; `None` at the end of the watch. Fails if the response cannot be read or parsed, or if
    /// the API server sends an error as an event.
    pub(super) async fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if !self.read_line().await.map_err(Error::ReadEvents)? {
            return Ok(None);
        }
        let raw: Raw<'_> = serde_json::from_slice(&self.line).map_err(Error::SerdeError)?;
        match &*raw.what {
            "ADDED" | "MODIFIED" => Ok(Some(Event::Applied(raw.object.get()))),
            "DELETED" => Ok(Some(Event::Deleted(raw.object.get()))),
            "BOOKMARK" => {
                let bookmark: Versioned = serde_json::from_str(raw.object.get()).map_err(Error::SerdeError)?;
                Ok(Some(Event::Bookmark(bookmark.metadata.resource_version)))
            }
            _ => {
                let status: Status = serde_json::from_str(raw.object.get()).map_err(Error::SerdeError)?;
                Err(Error::Api(Box::new(status)))
            }
        }
    }

    /// Reads the next line into `line`, and skips empty lines. Returns false at the end of the response. Fails if no
    /// data arrives in time, or if the line is too long.
    async fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        loop {
            let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "no event was received in time");
            let bytes = timeout(MAX_SILENCE, self.body.fill_buf()).await.map_err(silent)??;
            if bytes.is_empty() {
                return Ok(false);
            }
            let end = memchr(b'\n', bytes);
            let length = end.map_or(bytes.len(), |end| end + 1);
            self.line.extend(bytes.get(..length).unwrap_or_default());
            self.body.as_mut().consume(length);
            if self.line.len() > MAX_EVENT_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an event is too large"));
            }
            match end {
                Some(_) if self.line.trim_ascii().is_empty() => self.line.clear(),
                Some(_) => return Ok(true),
                None => {}
            }
        }
    }
}
