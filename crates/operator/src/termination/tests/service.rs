//! A metadata service that answers as it is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::termination::metadata::Endpoint;

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Http {
        status: u16,
        headers: String,
        body: Vec<u8>,
    },
    /// Ends the connection without a word.
    Close,
    /// Says nothing, and keeps the connection.
    Silence,
    Raw(Vec<u8>),
}

impl Reply {
    pub(crate) fn ok(text: &str) -> Self {
        Self::bytes(text.as_bytes().to_vec())
    }

    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self::Http { status: 200, headers: String::new(), body }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Http { status, headers: String::new(), body: b"no".to_vec() }
    }

    pub(crate) fn redirect(target: &str) -> Self {
        let headers = format!("location: {target}\r\n");
        Self::Http { status: 302, headers, body: Vec::new() }
    }
}

#[derive(Default)]
struct State {
    items: BTreeMap<String, Reply>,
    token: Option<Reply>,
    given: BTreeSet<String>,
    refuses: bool,
    everything: Option<Reply>,
    requests: Vec<String>,
}

/// The running service. Its tasks end with it.
pub(crate) struct Service {
    state: Arc<Mutex<State>>,
    port: u16,
    #[expect(dead_code, reason = "held for its Drop, which ends the tasks")]
    tasks: JoinSet<()>,
}

impl Service {
    /// One that announces nothing.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        let service = Self { state, port, tasks };
        service.set("events/maintenance/scheduled", Reply::ok("[]"));
        service
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        format!("http://127.0.0.1:{}/base", self.port).parse().unwrap()
    }

    /// What an item below `meta-data` answers; 404 unless told otherwise.
    pub(crate) fn set(&self, item: &str, reply: Reply) {
        self.lock().items.insert(item.to_owned(), reply);
    }

    pub(crate) fn set_token(&self, reply: Reply) {
        self.lock().token = Some(reply);
    }

    /// What everything answers; none ends that.
    pub(crate) fn set_everything(&self, reply: Option<Reply>) {
        self.lock().everything = reply;
    }

    pub(crate) fn forget_tokens(&self) {
        self.lock().given.clear();
    }

    pub(crate) fn refuse_tokens(&self) {
        self.lock().refuses = true;
    }

    /// What was asked, in its order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        stream.readable().await.unwrap();
        let mut part = [0; 1024];
        match stream.try_read(&mut part) {
            Ok(0) => return,
            Ok(length) => head.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    let reply = state.lock().unwrap().answer(&String::from_utf8(head).unwrap());
    match reply {
        Reply::Close => {}
        Reply::Silence => std::future::pending().await,
        Reply::Raw(bytes) => write(&stream, &bytes).await,
        Reply::Http { status, headers, body } => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n");
            write(&stream, &[head.as_bytes(), &body].concat()).await;
        }
    }
}

/// Writes it all, unless the client goes away.
async fn write(stream: &TcpStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        stream.writable().await.unwrap();
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

impl State {
    fn answer(&mut self, head: &str) -> Reply {
        let (line, headers) = head.split_once("\r\n").unwrap();
        let line = line.strip_suffix(" HTTP/1.1").unwrap();
        self.requests.push(line.to_owned());
        let header = |wanted: &str| {
            headers.lines().find_map(|line| line.strip_prefix(wanted)?.strip_prefix(": "))
        };
        if let Some(reply) = &self.everything {
            return reply.clone();
        }
        if line == "PUT /base/latest/api/token" {
            let Some(seconds) = header("x-aws-ec2-metadata-token-ttl-seconds") else {
                return Reply::status(400);
            };
            if let Some(reply) = &self.token {
                return reply.clone();
            }
            let token = format!("token-{}", self.requests.len());
            self.given.insert(token.clone());
            let headers = format!("x-aws-ec2-metadata-token-ttl-seconds: {seconds}\r\n");
            return Reply::Http { status: 200, headers, body: token.into_bytes() };
        }
        let token = header("x-aws-ec2-metadata-token").unwrap_or_default();
        if self.refuses || !self.given.contains(token) {
            return Reply::status(401);
        }
        let item = line.strip_prefix("GET /base/latest/meta-data/").unwrap_or_default();
        self.items.get(item).cloned().unwrap_or_else(|| Reply::status(404))
    }
}
