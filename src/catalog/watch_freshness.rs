//! Watch freshness: the time since the last event of each kind.
//!
//! A watch without changes looks like a broken one. Bookmarks arrive every minute or so, but kube's watcher does not
//! expose them. So this is a layer of the HTTP client, which sees all bytes of a watch.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::http::{Request, Response};
use bytes::Bytes;
use futures::future::{FutureExt as _, Map};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::{Layer, Service};

use super::Kind;

/// The moments, by the path of a kind. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct WatchFreshness(Arc<RwLock<HashMap<String, Instant>>>);

impl WatchFreshness {
    /// Returns the time since the last event of a kind; `None` without any event. Uses the monotonic clock.
    pub fn silence(&self, kind: &Kind) -> Option<Duration> {
        let moments = self.0.read().unwrap_or_else(PoisonError::into_inner);
        moments.get(&path_of(kind)).map(Instant::elapsed)
    }

    fn note(&self, path: &str) {
        let mut moments = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match moments.get_mut(path) {
            Some(moment) => *moment = Instant::now(),
            // Only requested paths get here, so their number is that of the kinds.
            None => drop(moments.insert(path.to_owned(), Instant::now())),
        }
    }
}

/// Returns the path at which objects of a kind are listed in all namespaces.
fn path_of(kind: &Kind) -> String {
    match kind.group {
        "" => format!("/api/{}/{}", kind.version, kind.plural),
        group => format!("/apis/{group}/{}/{}", kind.version, kind.plural),
    }
}

impl<S> Layer<S> for WatchFreshness {
    type Service = Listening<S>;

    fn layer(&self, service: S) -> Listening<S> {
        Listening { service, freshness: self.clone() }
    }
}

/// A client's service that listens.
#[derive(Debug, Clone)]
pub struct Listening<S> {
    service: S,
    freshness: WatchFreshness,
}

type Listened<F, B, E> = Map<F, Box<dyn FnOnce(Result<Response<B>, E>) -> Result<Response<Body<B>>, E> + Send>>;
type Body<B> = UnsyncBoxBody<Bytes, <B as HttpBody>::Error>;

impl<S, R, B> Service<Request<R>> for Listening<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body<B>>;
    type Error = S::Error;
    type Future = Listened<S::Future, B, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let (freshness, path) = (self.freshness.clone(), request.uri().path().to_owned());
        let listen: Box<dyn FnOnce(_) -> _ + Send> = Box::new(move |answered: Result<Response<B>, S::Error>| {
            answered.map(|response| match response.status().is_success() {
                true => response.map(|body| freshness.listen(path, body)),
                false => response.map(BodyExt::boxed_unsync),
            })
        });
        self.service.call(request).map(listen)
    }
}

impl WatchFreshness {
    /// Records the responses of lists and watches of all namespaces, which are at the path of a kind.
    fn listen<B: HttpBody<Data = Bytes> + Send + 'static>(self, path: String, body: B) -> Body<B> {
        body.map_frame(move |frame| {
            self.note(&path);
            frame
        })
        .boxed_unsync()
    }
}
