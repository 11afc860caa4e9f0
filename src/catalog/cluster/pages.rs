//! Lists objects in pages, and returns each object as soon as it arrives. So listing a large cluster needs little
//! memory.

use std::io;
use std::pin::Pin;

use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::Request;
use kube::{Client, Error};

use crate::catalog::frames::{Envelope, FrameError, Frames};

/// Number of objects per page, as in client-go and kubectl.
const PAGE: u32 = 500;
/// Maximum number of attempts at a listing. A listing starts over if its continue token expires, which happens after
/// five minutes.
const BEGINNINGS: usize = 3;

/// A listing of objects that requests one page after another from the API server.
pub struct Pages {
    client: Client,
    url: String,
    labels: Option<String>,
    at: At,
    begun: usize,
    left: u64,
    resource_version: String,
}

/// The position in a listing that is requested page by page.
enum At {
    Beginning,
    /// The listing is between two pages. The next request sends this continue token.
    Token(String),
    /// The API server is sending this page. The listing returns the objects of the page one by one.
    Page(Page),
    End,
}

/// A page of an object list, while its HTTP response is being received.
struct Page {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    frames: Frames,
}

/// The result of [`Pages::next`]: the listing begins, or the next object was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'p> {
    /// The listing begins, or begins again. The caller must drop earlier items.
    Beginning,
    /// The JSON text of an object.
    Object(&'p str),
}

impl Pages {
    /// Creates a listing of all objects of `api`.
    pub fn of(api: Api<DynamicObject>) -> Self {
        let (url, client) = (api.resource_url().to_owned(), api.into_client());
        Self { client, url, labels: None, at: At::Beginning, begun: 0, left: 0, resource_version: String::new() }
    }

    /// Restricts the listing to objects that match a label selector.
    #[must_use]
    pub fn labelled(self, labels: &str) -> Self {
        Self { labels: Some(labels.to_owned()), ..self }
    }

    /// Returns the number of objects on the remaining pages. The API server reports this number at the end of each
    /// page. Returns 0 before the end of the first page, or if the API server does not report the number.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns the resourceVersion of the list; empty before the first page is read.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Returns the next item; `None` after the last object.
    ///
    /// # Errors
    ///
    /// If a request fails, if a response is not a list, or if the continue token expired too often.
    pub async fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        loop {
            match &mut self.at {
                At::Beginning => {
                    self.begun += 1;
                    self.ask(None).await?;
                    return Ok(Some(Item::Beginning));
                }
                At::Token(token) => {
                    let token = std::mem::take(token);
                    match self.ask(Some(token)).await {
                        Err(error) if is_forgotten(&error) && self.begun < BEGINNINGS => self.at = At::Beginning,
                        asked => asked?,
                    }
                }
                At::Page(page) => match page.advance().await? {
                    None => break,
                    Some(envelope) => self.turn(envelope),
                },
                At::End => return Ok(None),
            }
        }
        let At::Page(page) = &self.at else { return Ok(None) };
        page.frames.current().map(|object| Some(Item::Object(object))).map_err(broken)
    }

    async fn ask(&mut self, continue_token: Option<String>) -> Result<(), Error> {
        let label_selector = self.labels.clone();
        let parameters = ListParams { limit: Some(PAGE), continue_token, label_selector, ..ListParams::default() };
        let request = Request::new(&self.url).list(&parameters).map_err(Error::BuildRequest)?;
        let body = Box::pin(self.client.request_stream(request).await?);
        self.at = At::Page(Page { body, frames: Frames::default() });
        Ok(())
    }

    /// Ends the current page. `envelope` is the list in the response, without its items. If `envelope` contains a
    /// continue token, the listing continues with the next page. Otherwise, the listing ends.
    fn turn(&mut self, envelope: Envelope) {
        let metadata = envelope.metadata;
        self.left = metadata.remaining_item_count.and_then(|left| u64::try_from(left).ok()).unwrap_or_default();
        // All pages have the resourceVersion of the first.
        self.resource_version = metadata.resource_version;
        self.at = if metadata.r#continue.is_empty() { At::End } else { At::Token(metadata.r#continue) };
    }
}

impl Page {
    /// Advances to the next object of the page, and returns `None`. After the last object, returns the envelope, which
    /// is the list without its items. Fails if the response cannot be read or is not a list.
    async fn advance(&mut self) -> Result<Option<Envelope>, Error> {
        while !self.frames.advance().map_err(broken)? {
            let bytes = self.body.fill_buf().await.map_err(Error::ReadEvents)?;
            let length = bytes.len();
            if length == 0 {
                self.frames.end();
                if !self.frames.advance().map_err(broken)? {
                    let envelope = self.frames.envelope().map_err(broken)?;
                    return if envelope.has_items { Ok(Some(envelope)) } else { Err(broken(FrameError::NoItems)) };
                }
                break;
            }
            self.frames.push(bytes);
            self.body.as_mut().consume(length);
        }
        Ok(None)
    }
}

fn broken(error: FrameError) -> Error {
    Error::ReadEvents(io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns whether the error of a list request is 410 Gone. This status means that the continue token expired.
fn is_forgotten(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 410)
}
