//! From a request to its answer: who asks, what for, and who knows.

use crate::access::{foreign, token};
use crate::app::App;
use crate::blocking::blocking;
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::{Body, Content, Reply};
use crate::routes::{self, Handler};
use crate::{metrics, openapi, page};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::SET_COOKIE;
use hyper::{Method, Request, Response, StatusCode};
use selvedge_host::text::one_line;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a body may take.
const BODY: Duration = Duration::from_secs(10);
/// Characters of a path that are told of.
const PATH: usize = 500;
/// How long a cookie is kept, in seconds: a server of a new start has a new token anyway.
const COOKIE_S: u32 = 30 * 24 * 3600;

impl App {
    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let begun =
            self.log.then(|| (Instant::now(), request.method().clone(), request.uri().path().to_owned()));
        let response = match Arc::clone(&self).routed(request).await {
            Ok(reply) => reply.response(|json| self.shown(json)),
            Err(problem) => problem.response(|json| self.shown(json)),
        };
        let status = response.status().as_u16();
        self.metrics.answered(status);
        if let Some((begun, method, path)) = begun {
            // Without the query: it may hold what somebody looks for. Of a stream, the time until it begins.
            let (path, ms) = (one_line(&path, PATH), begun.elapsed().as_secs_f64() * 1000.0);
            self.host.observer.note(&format!("{method} {path} {status} {ms:.1} ms"));
        }
        response
    }

    async fn routed(self: Arc<Self>, request: Request<Incoming>) -> Result<Reply, Problem> {
        if let Some(why) = foreign(request.headers(), &self.hosts) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "S-02", "foreign-request", why));
        }
        let path = request.uri().path();
        if path == "/v1/session" {
            return self.session(request).await;
        }
        if let Some(reply) = Arc::clone(&self).operated(&request).await {
            return reply;
        }
        if !path.starts_with("/v1/") {
            return page::file(request.method(), path, request.headers());
        }
        if path == "/v1/openapi.json" && matches!(*request.method(), Method::GET | Method::HEAD) {
            return Ok(Reply::json(openapi::description()));
        }
        let role = self.tokens.role(token(request.headers())).ok_or_else(unauthorised)?;
        let (route, parts) = routes::find(request.method(), path)?;
        if role < route.role {
            let message = "this token is for who looks, and not for who acts";
            return Err(Problem::new(StatusCode::FORBIDDEN, "S-02", "may-not-act", message));
        }
        let (head, body) = request.into_parts();
        let mut call = Call::new(route.query, parts, head.uri.query().unwrap_or_default(), head.headers)?;
        call.body = self.body(body).await?;
        match route.handler {
            Handler::Async(handler) => handler(self, call).await,
            Handler::Blocking(handler) => blocking(move || handler(&self, &call)).await,
        }
    }

    /// What whoever operates the server asks (S-10): whether it is there, whether it can work, and what it has done. The first two take no token:
    /// they tell nothing.
    async fn operated(self: Arc<Self>, request: &Request<Incoming>) -> Option<Result<Reply, Problem>> {
        let text = |kind, text: String| Reply::of(StatusCode::OK, Content::Bytes(kind, text.into()));
        let path = request.uri().path();
        let known = ["/healthz", "/readyz", "/metrics"].contains(&path);
        if known && !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Some(Err(Problem::method(path, "GET", request.method())));
        }
        match path {
            "/healthz" => Some(Ok(text("text/plain", "ok\n".to_owned()))),
            "/readyz" => Some(
                blocking(move || {
                    self.store.counts_of_runs()?;
                    Ok(text("text/plain", "ready\n".to_owned()))
                })
                .await,
            ),
            "/metrics" => {
                if self.tokens.role(token(request.headers())).is_none() {
                    return Some(Err(unauthorised()));
                }
                Some(
                    blocking(move || {
                        Ok(text(metrics::KIND, self.metrics.text(&self.store, self.drives.counts())?))
                    })
                    .await,
                )
            }
            _ => None,
        }
    }

    async fn body(&self, body: Incoming) -> Result<Bytes, Problem> {
        let read = Limited::new(body, self.body_bytes()).collect();
        match tokio::time::timeout(BODY, read).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                let message = format!("the body has more than {} bytes", self.body_bytes());
                Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "S-06", "too-large", &message)
                    .help("the limit is document_bytes under [limits] of selvedge.toml"))
            }
            Ok(Err(_)) => Err(Problem::bad("broken-body", "the body has broken off")),
            Err(_) => {
                let message = "the body has not come within 10 s";
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "S-06", "slow-body", message))
            }
        }
    }

    /// The page trades the token of its address for a cookie (S-02).
    async fn session(&self, request: Request<Incoming>) -> Result<Reply, Problem> {
        let https = if self.hosts.tls { "; Secure" } else { "" };
        let cookie = |token: &str, age: u32| {
            let name = crate::access::COOKIE_NAME;
            format!("{name}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{https}")
        };
        match *request.method() {
            Method::GET => {
                let role = self.tokens.role(token(request.headers())).ok_or_else(unauthorised)?;
                Ok(Reply::json(json!({"role": role, "version": env!("CARGO_PKG_VERSION")})))
            }
            Method::POST => {
                let body = self.body(request.into_body()).await?;
                let given: Value = serde_json::from_slice(&body).unwrap_or_default();
                let given = given.get("token").and_then(Value::as_str);
                let given = given.filter(|given| self.tokens.role(Some(given)).is_some());
                let reply = Reply::of(StatusCode::NO_CONTENT, Content::Nothing);
                match (given, &self.tokens.operator) {
                    (_, None) => Ok(reply),
                    (Some(given), Some(_)) => Ok(reply.header(SET_COOKIE, &cookie(given, COOKIE_S))),
                    (None, Some(_)) => Err(unauthorised()),
                }
            }
            Method::DELETE => {
                Ok(Reply::of(StatusCode::NO_CONTENT, Content::Nothing).header(SET_COOKIE, &cookie("", 0)))
            }
            _ => Err(Problem::method("/v1/session", "GET, POST, DELETE", request.method())),
        }
    }
}

fn unauthorised() -> Problem {
    let role = "the request has no token of this server";
    Problem::new(StatusCode::UNAUTHORIZED, "S-02", "no-token", role).help(
        "send `Authorization: Bearer TOKEN`; `selvedge serve` prints the token in its URL when it starts",
    )
}
