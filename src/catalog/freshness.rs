//! Tracks when the API server last sent data about each kind.
//!
//! A watch without changes looks like a broken watch. The only difference is that a working watch receives a bookmark
//! about every minute. So a layer of the client records when data of a response arrives, including bookmarks.

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

/// The time at which the API server last sent data about each kind. The key is the URL path that lists all objects of
/// the kind. All clones of a `Freshness` share the same times.
#[derive(Debug, Clone, Default)]
pub struct Freshness(Arc<RwLock<HashMap<String, Instant>>>);

impl Freshness {
    /// Returns the time since the API server last sent data about a kind, measured with the monotonic clock. `None` if
    /// it has sent none yet.
    pub fn age(&self, kind: &Kind) -> Option<Duration> {
        let events = self.0.read().unwrap_or_else(PoisonError::into_inner);
        events.get(&path_of(kind)).map(Instant::elapsed)
    }

    fn note(&self, path: &str) {
        let mut events = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match events.get_mut(path) {
            Some(event) => *event = Instant::now(),
            None => drop(events.insert(path.to_owned(), Instant::now())),
        }
    }

    /// Wraps a response body, and records the time whenever data of the body arrives. The time is recorded under
    /// `path`, the URL path of the request. Lists and watches of a kind in all namespaces use the same path, so this
    /// path identifies the kind.
    fn observe<B: HttpBody<Data = Bytes> + Send + 'static>(self, path: String, body: B) -> Body<B> {
        body.map_frame(move |frame| {
            self.note(&path);
            frame
        })
        .boxed_unsync()
    }
}

/// Returns the URL path at which the API server lists the objects of a kind in all namespaces.
fn path_of(kind: &Kind) -> String {
    match kind.group {
        "" => format!("/api/{}/{}", kind.version, kind.plural),
        group => format!("/apis/{group}/{}/{}", kind.version, kind.plural),
    }
}

/// Returns whether a URL path lists or watches all objects of a kind in all namespaces. [`Freshness`] records the time
/// of the last response data only for these paths. Live reads use the same client, so the map of times would otherwise
/// grow with every object that is read by name.
fn lists_a_kind(path: &str) -> bool {
    matches!(path.split('/').skip(1).collect::<Vec<_>>()[..], ["api", _, _] | ["apis", _, _, _])
}

impl<S> Layer<S> for Freshness {
    type Service = Observed<S>;

    fn layer(&self, service: S) -> Observed<S> {
        Observed { service, freshness: self.clone() }
    }
}

/// An HTTP client service that wraps another service, and records when data of the responses arrives.
#[derive(Debug, Clone)]
pub struct Observed<S> {
    service: S,
    freshness: Freshness,
}

type Answering<F, B, E> = Map<F, Box<dyn FnOnce(Result<Response<B>, E>) -> Result<Response<Body<B>>, E> + Send>>;
type Body<B> = UnsyncBoxBody<Bytes, <B as HttpBody>::Error>;

impl<S, R, B> Service<Request<R>> for Observed<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body<B>>;
    type Error = S::Error;
    type Future = Answering<S::Future, B, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let (freshness, path) = (self.freshness.clone(), request.uri().path().to_owned());
        let observe: Box<dyn FnOnce(_) -> _ + Send> = Box::new(move |answered: Result<Response<B>, S::Error>| {
            answered.map(|response| match response.status().is_success() && lists_a_kind(&path) {
                true => response.map(|body| freshness.observe(path, body)),
                false => response.map(BodyExt::boxed_unsync),
            })
        });
        self.service.call(request).map(observe)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::Full;

    use super::super::kind::NAMESPACES;
    use super::*;

    #[tokio::test]
    async fn only_lists_of_a_kind_are_recorded() {
        let freshness = Freshness::default();
        let answer = |_: Request<()>| async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("{}")))) };
        let mut service = freshness.layer(tower::service_fn(answer));
        let of_objects = ["/api/v1/namespaces/a", "/api/v1/namespaces/a/secrets/b", "/apis/g/v1/things/b"];
        for path in of_objects.into_iter().chain(["/api/v1/namespaces", "/apis/g/v1/things"]) {
            let response = service.call(Request::builder().uri(path).body(()).unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap();
        }
        assert!(freshness.age(&NAMESPACES).is_some());
        let mut paths: Vec<_> = freshness.0.read().unwrap().keys().cloned().collect();
        paths.sort();
        assert_eq!(paths, ["/api/v1/namespaces", "/apis/g/v1/things"]);
    }
}
