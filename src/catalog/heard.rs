//! When the API server was last heard of each kind.
//!
//! A watch on which nothing changes looks like one that is broken: nothing comes. What does come are bookmarks, every
//! minute or so, and the watcher keeps these to itself. So it is the client that listens, to whatever arrives over a
//! watch.

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
pub struct Heard(Arc<RwLock<HashMap<String, Instant>>>);

impl Heard {
    /// How long ago something of a kind was heard; `None` where nothing ever was. By the monotonic clock.
    pub fn silence(&self, kind: &Kind) -> Option<Duration> {
        let moments = self.0.read().unwrap_or_else(PoisonError::into_inner);
        moments.get(&path_of(kind)).map(Instant::elapsed)
    }

    fn note(&self, path: &str) {
        let mut moments = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match moments.get_mut(path) {
            Some(moment) => *moment = Instant::now(),
            // Only what is asked for gets here: as many paths as there are kinds.
            None => drop(moments.insert(path.to_owned(), Instant::now())),
        }
    }
}

/// Where the objects of a kind are listed, in all namespaces.
fn path_of(kind: &Kind) -> String {
    match kind.group {
        "" => format!("/api/{}/{}", kind.version, kind.plural),
        group => format!("/apis/{group}/{}/{}", kind.version, kind.plural),
    }
}

impl<S> Layer<S> for Heard {
    type Service = Listening<S>;

    fn layer(&self, service: S) -> Listening<S> {
        Listening { service, heard: self.clone() }
    }
}

/// A client's service that listens.
#[derive(Debug, Clone)]
pub struct Listening<S> {
    service: S,
    heard: Heard,
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
        let (heard, path) = (self.heard.clone(), request.uri().path().to_owned());
        let listen: Box<dyn FnOnce(_) -> _ + Send> = Box::new(move |answered: Result<Response<B>, S::Error>| {
            answered.map(|response| match response.status().is_success() {
                true => response.map(|body| heard.listen(path, body)),
                false => response.map(BodyExt::boxed_unsync),
            })
        });
        self.service.call(request).map(listen)
    }
}

impl Heard {
    /// Lists and watches of all namespaces have a kind's path; a list is as good as its watch.
    fn listen<B: HttpBody<Data = Bytes> + Send + 'static>(self, path: String, body: B) -> Body<B> {
        body.map_frame(move |frame| {
            self.note(&path);
            frame
        })
        .boxed_unsync()
    }
}
