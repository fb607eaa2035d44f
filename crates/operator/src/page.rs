//! What do people see of the fleet in a browser, and what may they change?
//!
//! A JSON API under `/api/v1`, a stream of what changes, and the page that shows both. Everything that is
//! shown is computed by core's `overview` out of the stores that the operator has anyway, so every replica
//! can serve it and nothing is listed for it. Who asks is a matter of the API server: a token is reviewed,
//! and so is the right to each thing (`access`). What a person changes is sent on with the person's own token
//! (`writes`), which is kept nowhere.
//!
//! `guard` refuses tricks, `board` computes once for all who may see the same (`audience`, `boards`), `stream` tells
//! what changed, `reads` answers, `document` describes, `files` is the page itself.

mod access;
mod answer;
pub mod args;
mod audience;
mod board;
mod boards;
mod document;
mod files;
mod guard;
mod reads;
mod server;
mod snapshot;
mod stream;
#[cfg(test)]
mod tests;
mod writes;

use std::sync::Arc;

use axum::{Router, body::Body};
use http::{Request, Response};
use kube::Client;

use self::{
    access::{Access, User},
    answer::Refused,
    args::PageArgs,
    board::Board,
    boards::Boards,
};
use crate::{context::Context, engine::supervisor::Spawner};

pub use self::server::PlainServer;

/// Makes a client that acts for the bearer of a token, and for nobody else.
pub type AsUser = Arc<dyn Fn(&str) -> anyhow::Result<Client> + Send + Sync>;

/// What every request is answered from.
struct Page {
    access: Access,
    boards: Arc<Boards>,
    as_user: AsUser,
    /// Whether anything can be changed at all.
    writes: bool,
    /// Other origins than the page's own that writes may come from.
    origins: Vec<String>,
    context: Arc<Context>,
    namespace: String,
    stopping: tokio_util::sync::CancellationToken,
}

impl Page {
    /// What somebody looks at, by the rights that they have now.
    async fn board(&self, user: &User) -> Result<Arc<Board>, Refused> {
        let namespaces = self.boards.namespaces_of_cluster_api();
        let audience = self.access.audience(user, namespaces).await?;
        Ok(self.boards.of(&audience))
    }

    /// A client with the rights of whoever showed the token.
    fn acting_for(&self, token: &str) -> Result<Client, Refused> {
        (self.as_user)(token).map_err(|error| {
            tracing::warn!(%error, "no client can be made for a user");
            Refused::unknown()
        })
    }
}

/// Begins to look, and gives the routes.
pub fn start(
    args: &PageArgs,
    namespace: &str,
    context: &Arc<Context>,
    spawner: &Spawner,
    as_user: AsUser,
) -> Router {
    let boards = Arc::new(Boards::new(context, namespace));
    boards.listen();
    spawner.spawn("page", Arc::clone(&boards).run(spawner.stopping()));
    let page = Arc::new(Page {
        access: Access::new(&context.client, namespace, &context.env),
        boards,
        as_user,
        writes: args.page_writes,
        origins: args.page_origin.clone(),
        context: Arc::clone(context),
        namespace: namespace.to_owned(),
        stopping: spawner.stopping(),
    });
    router(page)
}

/// One way in for every request, so that none can miss the guard.
fn router(page: Arc<Page>) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let page = Arc::clone(&page);
        async move { guard::with_headers(answer(&page, request).await) }
    })
}

async fn answer(page: &Arc<Page>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match guard::path(&path) {
        Err(refused) => refused.into(),
        Ok(guard::Place::File) => files::answer(request.method(), &path, request.headers()),
        Ok(guard::Place::Api(segments)) => match reads::dispatch(page, &segments, request).await {
            Ok(response) => response,
            Err(refused) => refused.into(),
        },
    }
}
