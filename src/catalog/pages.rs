//! Listing in pages, so that a cluster of any size is listed in little memory.

use kube::api::{Api, DynamicObject, ListParams};

/// Objects in one page: what client-go and kubectl ask for.
const PAGE: u32 = 500;
/// How often a listing is begun, where the API server no longer knows how far it came: after five minutes it forgets.
const BEGINNINGS: usize = 3;

/// A listing in pages.
pub struct Pages {
    api: Api<DynamicObject>,
    labels: Option<String>,
    at: At,
    begun: usize,
}

/// How far a listing came.
enum At {
    Beginning,
    Token(String),
    End,
}

/// Some of the objects.
pub struct Page {
    /// They.
    pub objects: Vec<DynamicObject>,
    /// Whether the listing begins, perhaps again: then what came before is to be forgotten.
    pub is_first: bool,
    /// How many objects are still to come, as far as the API server says.
    pub left: u64,
}

impl Pages {
    /// All that `api` has.
    pub fn of(api: Api<DynamicObject>) -> Self {
        Self { api, labels: None, at: At::Beginning, begun: 1 }
    }

    /// Only what has these labels.
    #[must_use]
    pub fn labelled(self, labels: &str) -> Self {
        Self { labels: Some(labels.to_owned()), ..self }
    }

    /// The next page; `None` after the last.
    ///
    /// # Errors
    /// When the API server refuses, or forgets too often how far the listing came.
    pub async fn next(&mut self) -> Result<Option<Page>, kube::Error> {
        loop {
            let token = match &self.at {
                At::Beginning => None,
                At::Token(token) => Some(token.clone()),
                At::End => return Ok(None),
            };
            let is_first = token.is_none();
            let label_selector = self.labels.clone();
            let parameters =
                ListParams { limit: Some(PAGE), continue_token: token, label_selector, ..ListParams::default() };
            match self.api.list(&parameters).await {
                Ok(list) => {
                    let left = list.metadata.remaining_item_count.and_then(|left| u64::try_from(left).ok());
                    let token = list.metadata.continue_.filter(|token| !token.is_empty());
                    self.at = token.map_or(At::End, At::Token);
                    return Ok(Some(Page { objects: list.items, is_first, left: left.unwrap_or_default() }));
                }
                Err(error) if is_forgotten(&error) && !is_first && self.begun < BEGINNINGS => {
                    self.begun += 1;
                    self.at = At::Beginning;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// 410 Gone: the token is older than what etcd keeps.
fn is_forgotten(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
