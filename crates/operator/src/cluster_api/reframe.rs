//! How are the events of a watch told apart where the API server spreads each over many lines?
//!
//! kube reads a watch line by line. The API of Kubernetes promises a stream of JSON values and says nothing of lines; the
//! workload API servers of Cluster API's in-memory provider indent theirs. Here each value gets a line of its own.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body as Answer, Bytes, HttpBody};
use futures::TryStreamExt;
use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// For the clients of workload clusters.
#[derive(Clone, Copy, Debug)]
pub struct OneEventEachLine;

impl<S> Layer<S> for OneEventEachLine {
    type Service = Reframed<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Reframed { inner }
    }
}

#[derive(Clone, Debug)]
pub struct Reframed<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for Reframed<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answer>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            Ok(answer.map(|body| if is_watch { reframed(body) } else { Answer::new(body) }))
        })
    }
}

fn reframed<B>(body: B) -> Answer
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut frames = Frames::default();
    let bytes = Answer::new(body).into_data_stream();
    Answer::from_stream(bytes.map_ok(move |bytes| frames.take(&bytes)))
}

/// Where in the stream of values the last bytes ended.
#[derive(Debug, Default)]
struct Frames {
    /// How many objects and lists are open.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Frames {
    /// The same values, each on one line. In JSON no text holds a line break, so each of them may go.
    fn take(&mut self, bytes: &[u8]) -> Bytes {
        let mut framed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if matches!(byte, b'\n' | b'\r') {
                continue;
            }
            framed.push(byte);
            if self.is_in_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        framed.push(b'\n');
                    }
                }
                _ => {}
            }
        }
        framed.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn events() -> Vec<Value> {
        vec![
            json!({"type": "ADDED", "object": {"text": "a \"}\\ b\n{", "list": [[], {}, [1]]}}),
            json!({"type": "BOOKMARK", "object": {}}),
        ]
    }

    proptest! {
        /// However the server indents and wherever the network cuts.
        #[test]
        fn each_event_is_one_line(cuts in proptest::collection::vec(1_usize..40, 1..60), pretty: bool) {
            let written: String = events()
                .iter()
                .map(|event| if pretty { format!("{event:#}") } else { format!("{event}\n") })
                .collect();
            let mut frames = Frames::default();
            let mut framed = Vec::new();
            let mut rest = written.as_bytes();
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                framed.extend_from_slice(&frames.take(now));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let lines = String::from_utf8(framed).unwrap();
            let read: Vec<Value> =
                lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(read, events());
        }
    }
}
