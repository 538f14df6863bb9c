//! A model endpoint on loopback that records what it is sent and answers byte for byte as it is told.

// Each test file uses a part of this.
#![allow(dead_code, unreachable_pub)]

pub mod wires;

use selvedge_engine::{
    EffectId, Failure, Message, ModelReply, ModelRequest, ModelSettings, Role, ToolCall, ToolDef,
};
use selvedge_http::{Http, Secret};
use selvedge_models::{CallLimits, Endpoint, Provider, ProviderConfig};
use selvedge_runtime::ports::{CallContext, Delta, Model};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One thing the server does in an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Write these bytes and flush them.
    Bytes(Vec<u8>),
    /// Wait.
    Pause(u64),
    /// Wait until the client goes away.
    Hang,
    /// Reset the connection (RST).
    Reset,
    /// Close the connection.
    Close,
    /// Write so many bytes of `x`, in pieces of 64 KiB, as long as the client takes them.
    Flood(usize),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

#[derive(Default)]
struct Shared {
    requests: Mutex<Vec<Recorded>>,
    connections: AtomicUsize,
    flooded: AtomicUsize,
    gone: Notify,
    hung_up: AtomicUsize,
}

pub struct Server {
    pub url: String,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers the first request with the first answer, and so on; the last answer stays.
    pub async fn start(answers: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let state = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, state.clone(), answers.clone()));
            }
        });
        Self { url, shared, task }
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
    /// How many clients went away during [`Step::Hang`].
    pub fn hung_up(&self) -> usize {
        self.shared.hung_up.load(Ordering::SeqCst)
    }
    pub fn flooded(&self) -> usize {
        self.shared.flooded.load(Ordering::SeqCst)
    }
    /// Waits until a client went away during [`Step::Hang`].
    pub async fn gone(&self) {
        tokio::time::timeout(Duration::from_secs(5), self.shared.gone.notified())
            .await
            .expect("the client went away");
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, answers: Vec<Vec<Step>>) {
    // Pieces go out as they are written.
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some(request) = receive(&mut stream, &mut buffer).await {
        let number = {
            let mut requests = shared.requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        let answer = answers[number.min(answers.len() - 1)].clone();
        for step in answer {
            match step {
                Step::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Pause(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Step::Close => return,
                Step::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
                Step::Hang => {
                    let mut byte = [0_u8; 1];
                    let _ = stream.read(&mut byte).await;
                    shared.hung_up.fetch_add(1, Ordering::SeqCst);
                    shared.gone.notify_one();
                    return;
                }
                Step::Flood(total) => {
                    let piece = vec![b'x'; 64 << 10];
                    for _ in 0..total / piece.len() {
                        if stream.write_all(&piece).await.is_err() {
                            return;
                        }
                        shared.flooded.fetch_add(piece.len(), Ordering::SeqCst);
                    }
                }
            }
        }
    }
}

async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Recorded> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        })
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse::<usize>().unwrap());
    let whole = end + 4 + length;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = buffer[end + 4..whole].to_vec();
    buffer.drain(..whole);
    Some(Recorded { line, headers, body })
}

/// A whole answer with a length.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let mut text = format!("HTTP/1.1 {status} Told\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(body);
    vec![Step::Bytes(text.into_bytes())]
}

pub fn json(body: &str) -> Vec<Step> {
    answer(200, &[("content-type", "application/json")], body)
}

/// The head of a chunked event stream.
pub fn stream_head() -> Step {
    Step::Bytes(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One chunk of a chunked body.
pub fn chunk(bytes: &[u8]) -> Step {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    Step::Bytes(framed)
}

pub fn stream_end() -> Step {
    Step::Bytes(b"0\r\n\r\n".to_vec())
}

/// An event stream whose body is `body`, sent in pieces of `piece` bytes.
pub fn stream(body: &str, piece: usize) -> Vec<Step> {
    let mut steps = vec![stream_head()];
    steps.extend(body.as_bytes().chunks(piece).map(chunk));
    steps.push(stream_end());
    steps
}

/// An event stream that breaks after `body`.
pub fn cut(body: &str, last: Step) -> Vec<Step> {
    vec![stream_head(), chunk(body.as_bytes()), Step::Pause(20), last]
}

pub fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::text(Role::User, text))
}

pub fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments }
}

pub fn tool(name: &str) -> Arc<ToolDef> {
    Arc::new(ToolDef {
        name: name.into(),
        description: "Looks things up.".into(),
        input_schema: serde_json::json!({"type": "object", "properties": {"q": {"type": "string"}}}),
        output_params: None,
        effects: None,
        version: "v".into(),
        source: "built-in".into(),
        timeout_s: None,
        approval: false,
    })
}

/// Every setting there is, one that only some providers know among them.
pub fn settings() -> ModelSettings {
    ModelSettings {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_tokens: Some(77),
        seed: Some(-3),
        stop: vec!["END".to_owned()],
        extra: [("enable_thinking".to_owned(), Value::Bool(true))].into_iter().collect(),
        ..ModelSettings::default()
    }
}

pub fn request(messages: Vec<Arc<Message>>) -> ModelRequest {
    ModelRequest {
        effect: EffectId("main/n1/1/1".into()),
        node: "n1".into(),
        thread: "main".into(),
        role: "basic".into(),
        messages: messages.into(),
        tools: Vec::new(),
        known: Vec::new(),
        schema: None,
        settings: ModelSettings::default(),
        timeout_s: None,
    }
}

pub fn context() -> CallContext {
    CallContext::of("r1")
}

/// A context, and what it hears.
pub fn listening() -> (CallContext, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = heard.clone();
    let watch = Arc::new(move |delta: Delta| {
        if let Delta::Text(text) = delta {
            ears.lock().unwrap().push(text);
        }
    });
    (CallContext { watch: Some(watch), ..CallContext::of("r1") }, heard)
}

pub const KEY: &str = "sk-test-0123456789abcdef";

pub fn limits() -> CallLimits {
    CallLimits {
        model_timeout: Duration::from_secs(20),
        first_token_timeout: Duration::from_secs(10),
        message_bytes: 16 << 20,
        rate_limit_wait: Duration::from_secs(60),
    }
}

pub fn model(server: &Server) -> Endpoint {
    model_with(server, |_| {})
}

pub fn model_with(server: &Server, change: impl FnOnce(&mut ProviderConfig)) -> Endpoint {
    let mut config = ProviderConfig::new(Provider::OpenAi, "test-model").at(server.url.clone());
    config.key = Some(Secret::new(KEY));
    config.limits = limits();
    change(&mut config);
    Endpoint::new(config, &Http::new(|_| None)).unwrap()
}

/// One call of a server that answers with `steps`.
pub async fn ask(steps: Vec<Step>) -> Result<ModelReply, Failure> {
    let server = Server::start(vec![steps]).await;
    model(&server).call(request(vec![user("hello")]), context()).await
}
