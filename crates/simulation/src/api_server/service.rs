//! How does a request of the real client reach the store? As a tower service, below `kube::Client`.

use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::{Body as HttpBody, Frame};
use kube::client::Body;
use tower::{BoxError, Service};

use super::{
    Shared,
    failure::Failure,
    faults::{Loss, RequestFate, RequestOutcome},
    request::ApiRequest,
    store::{Answer, Origin, View},
    stream::WatchStream,
};

/// The server as one client sees it.
#[derive(Clone)]
pub struct ApiService {
    pub(super) shared: Arc<Shared>,
    pub(super) client: Arc<str>,
}

/// The body of an answer.
pub struct ResponseBody(Content);

enum Content {
    Text(Option<Bytes>),
    Watch(Box<WatchStream>),
}

type Answered = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, BoxError>> + Send>>;

impl Service<Request<Body>> for ApiService {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answered {
        let service = self.clone();
        Box::pin(async move { service.answer(request).await })
    }
}

impl ApiService {
    async fn answer(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        if let Some(text) = fixed_answer(parts.uri.path()) {
            return Ok(response(200, None, Content::Text(Some(Bytes::from_static(text)))));
        }
        let request = match ApiRequest::read(&parts, &body) {
            Ok(request) => request,
            Err(failure) => return Ok(refusal(&failure)),
        };
        let user_agent = parts.headers.get(header::USER_AGENT);
        let user_agent = user_agent.and_then(|value| value.to_str().ok()).map(Arc::from);
        let origin = Origin { client: Arc::clone(&self.client), user_agent };

        let RequestFate { delay, outcome, answer_delay } =
            self.shared.fate_of_request(&origin.client, &request);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let answer = match outcome {
            RequestOutcome::Deliver => self.carry_out(&request, &origin, View::Latest),
            RequestOutcome::Stale(age) => {
                let view = View::At(self.shared.resolve(age));
                self.carry_out(&request, &origin, view)
            }
            RequestOutcome::Refuse(failure) => refusal(&failure),
            RequestOutcome::LoseRequest(loss) => lose(loss).await?,
            RequestOutcome::LoseAnswer(loss) => {
                drop(self.carry_out(&request, &origin, View::Latest));
                lose(loss).await?
            }
        };
        if !answer_delay.is_zero() {
            tokio::time::sleep(answer_delay).await;
        }
        Ok(answer)
    }

    fn carry_out(
        &self,
        request: &ApiRequest,
        origin: &Origin,
        view: View,
    ) -> Response<ResponseBody> {
        match self.shared.apply(request, origin, view) {
            Err(failure) => refusal(&failure),
            Ok(Answer::Object { code, object }) => {
                response(code, None, Content::Text(Some(object.text())))
            }
            Ok(Answer::Value { code, value }) => {
                response(code, None, Content::Text(Some(Bytes::from(value.to_string()))))
            }
            Ok(Answer::List(text)) => response(200, None, Content::Text(Some(text))),
            Ok(Answer::Watch(watcher)) => {
                let id = self.shared.lock().add_watch(&origin.client, watcher.kind());
                let shared = Arc::clone(&self.shared);
                let stream = WatchStream::new(id, Arc::clone(&origin.client), shared, *watcher);
                response(200, None, Content::Watch(Box::new(stream)))
            }
        }
    }
}

async fn lose(loss: Loss) -> Result<Response<ResponseBody>, BoxError> {
    match loss {
        Loss::Silence => pending().await,
        Loss::Disconnect => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()),
        Loss::Status(failure) => Ok(refusal(&failure)),
    }
}

/// What is not about objects.
fn fixed_answer(path: &str) -> Option<&'static [u8]> {
    match path {
        "/readyz" | "/livez" | "/healthz" => Some(b"ok"),
        "/version" => Some(
            br#"{"major":"1","minor":"36","gitVersion":"v1.36.3","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":"linux/amd64"}"#,
        ),
        _ => None,
    }
}

fn refusal(failure: &Failure) -> Response<ResponseBody> {
    let text = Bytes::from(failure.status().to_string());
    response(failure.code, failure.retry_after_seconds, Content::Text(Some(text)))
}

fn response(code: u16, retry_after: Option<u32>, content: Content) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody(content));
    // A code that HTTP does not have can only come from a fault; it reads as an internal error.
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Watch(stream) => {
                stream.poll_line(context).map(|line| line.map(|line| Ok(Frame::data(line))))
            }
        }
    }
}
