//! How does a page learn what changes? By a stream of events that can be resumed.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures::stream;
use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Page,
    access::{Right, User},
    answer::Refused,
    board::{Board, Listening, Missed},
};

/// Something is sent at least this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a token that expired, or a right that was taken away, is still good for.
const RIGHTS_AGAIN: Duration = Duration::from_secs(30);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Versions of ours are shorter.
const ID_MAX: usize = 64;

struct Stream {
    page: Arc<Page>,
    board: Arc<Board>,
    token: String,
    listening: Listening,
    /// The version up to which everything was sent.
    seen: String,
    ready: VecDeque<Bytes>,
    rights_at: Instant,
    is_over: bool,
}

/// Begins a stream for somebody who may list machines.
pub(super) async fn answer(
    page: &Arc<Page>,
    user: &User,
    token: String,
    headers: &HeaderMap,
) -> Result<Response<Body>, Refused> {
    let board = page.board(user).await?;
    let shown = board.current().await?;
    let Some(listening) = board.join() else {
        let message = "too many listen already";
        return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "TooMany", message)
            .hinted("close other pages"));
    };
    let last = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let last = last.filter(|id| !id.is_empty() && id.len() <= ID_MAX);
    let hello = json!({
        "version": shown.version, "asOf": shown.now, "heartbeatSeconds": HEARTBEAT.as_secs(),
    });
    let mut stream = Stream {
        rights_at: page.context.env.instant() + RIGHTS_AGAIN,
        page: Arc::clone(page),
        board,
        token,
        listening,
        seen: last.map_or_else(|| shown.version.clone(), str::to_owned),
        ready: VecDeque::from([event("hello", None, &hello.to_string())]),
        is_over: false,
    };
    stream.catch_up(&shown.version);
    let events = stream::unfold(stream, |mut stream| async move {
        let next = stream.next().await?;
        Some((Ok::<_, Infallible>(next), stream))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that gathers answers would keep the news back.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

fn event(name: &str, id: Option<&str>, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("event: {name}\n{id}data: {data}\n\n"))
}

impl Stream {
    /// The next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            if self.is_over {
                return None;
            }
            let env = self.page.context.env.clone();
            let until_rights = self.rights_at.saturating_duration_since(env.instant());
            let stopping = self.page.stopping.clone();
            tokio::select! {
                biased;
                () = stopping.cancelled() => self.end("Stopping", "this process ends; come back"),
                () = env.sleep(until_rights) => self.check_rights().await,
                heard = self.listening.news.changed() => match heard {
                    Ok(_) => {
                        let newest = self.seen.clone();
                        self.catch_up(&newest);
                    }
                    Err(_) => self.end("Stopping", "this process ends; come back"),
                },
                () = env.sleep(HEARTBEAT) => {
                    let beat = json!({ "asOf": env.now() }).to_string();
                    self.ready.push_back(event("beat", None, &beat));
                }
            }
        }
    }

    /// Sends what came since, or says that it is too much. Nothing is gathered for somebody who reads slowly:
    /// all read what is kept for all.
    fn catch_up(&mut self, newest: &str) {
        match self.board.since(&self.seen) {
            Missed::These(changes) => {
                for (version, text) in changes {
                    self.ready.push_back(event("change", Some(&version), &text));
                    self.seen = version;
                }
            }
            Missed::TooMuch => {
                let newest = self.board.newest().unwrap_or_else(|| newest.to_owned());
                let why = "more has changed than is kept: ask for everything again";
                let reset = json!({ "version": newest, "why": why }).to_string();
                self.ready.push_back(event("reset", Some(&newest), &reset));
                self.seen = newest;
            }
        }
    }

    /// A token may have expired, and rights may have been taken away.
    async fn check_rights(&mut self) {
        self.rights_at = self.page.context.env.instant() + RIGHTS_AGAIN;
        let checked = async {
            let user = self.page.access.who(&self.token).await?;
            self.page.access.require(&user, Right::ListMachines).await?;
            self.page.board(&user).await
        };
        match checked.await {
            Ok(board) if board.audience() == self.board.audience() => {}
            Ok(_) => self.end("OtherRights", "you may see other machines than before; come back"),
            // Whoever cannot be asked says nothing against anybody.
            Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {}
            Err(refused) => self.end(refused.body.error.code, &refused.body.error.message),
        }
    }

    fn end(&mut self, code: &str, message: &str) {
        let bye = json!({ "code": code, "message": message }).to_string();
        self.ready.push_back(event("bye", None, &bye));
        self.is_over = true;
    }
}
