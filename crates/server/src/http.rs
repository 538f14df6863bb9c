//! Connections: how many there are, and how long anybody may keep one waiting (S-06).

use crate::app::App;
use crate::problem::Problem;
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

/// Connections at a time.
pub(crate) const CONNECTIONS: u32 = 1024;
/// How long the head of a request may take, and a connection may be silent between two.
const HEAD: Duration = Duration::from_secs(10);
/// How long somebody may take nothing of what is sent.
const STALLED: Duration = Duration::from_secs(30);
/// Bytes of a head, and headers in it.
const HEAD_BYTES: usize = 32 * 1024;
const HEADERS: usize = 64;
/// How long connections have to end when the server does.
const CLOSING: Duration = Duration::from_secs(2);
/// How long it is waited where the system can't take a connection, as it has no more files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until `stop` says so; then those that are open are ended.
pub(crate) async fn serve(listener: TcpListener, app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            stopped = stop.wait_for(|stopped| *stopped) => {
                drop(stopped);
                break;
            }
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // Small answers go out at once.
        let _ = stream.set_nodelay(true);
        match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => {
                let (app, stop) = (Arc::clone(&app), stop.clone());
                open.spawn(async move {
                    let stream = Timely::new(stream);
                    match app.tls.clone() {
                        None => connection(stream, app, stop).await,
                        // Who does not come to terms in time is nobody to be told. Boxed: connections without it need no room for it.
                        Some(tls) => {
                            Box::pin(async move {
                                if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                                    connection(stream, app, stop).await;
                                }
                            })
                            .await;
                        }
                    }
                    drop(permit);
                });
            }
            // In TLS nobody is told without a handshake, which costs what there is too little of.
            Err(_) if app.tls.is_some() => {}
            Err(_) => refuse(stream),
        }
    }
    drop(listener);
    let all = async { while open.join_next().await.is_some() {} };
    let _ = timeout(CLOSING, all).await;
}

/// Says that there are too many, without waiting for anything.
fn refuse(stream: TcpStream) {
    let message = "there are as many connections as there may be";
    let body = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "S-06", "too-many-connections", message).body();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
        body.len()
    );
    tokio::spawn(async move {
        let mut stream = stream;
        let write = async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await?;
            stream.shutdown().await
        };
        let _ = timeout(Duration::from_secs(1), write).await;
    });
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Arc<App>,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |request| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(app.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // A request that is no HTTP, or a connection that broke off: nobody is there to be told.
        _ = connection.as_mut() => return,
        stopped = stop.wait_for(|stopped| *stopped) => drop(stopped),
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A connection that ends when the other side takes nothing for long.
struct Timely {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Timely {
    fn new(stream: TcpStream) -> Self {
        Self { stream, stalled: None }
    }

    /// What came of a write: one that waits does not wait for ever.
    fn timely<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Timely {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Timely {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.timely(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, bytes);
        this.timely(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
