//! A server, from its address to its end (S-01).

use crate::access::{Hosts, Tokens};
use crate::app::App;
use crate::drives::Drives;
use crate::feed::Feeds;
use crate::http::{self, CONNECTIONS};
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::page;
use crate::reader::Reader;
use crate::tls;
use crate::webhooks::Webhooks;
use selvedge_host::options::RunOptions;
use selvedge_host::{Config, Error, Host, secrets};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Ports that are tried behind one that is taken.
const PORTS: u16 = 100;

/// How a server is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may (S-02).
    pub tokens: Tokens,
    /// The files of a certificate with its chain, and of its key, both PEM: it speaks TLS itself.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether each request is told of (S-10).
    pub log: bool,
    /// Whether what stands in front of it looks at names and has TLS.
    pub behind_proxy: bool,
    /// What runs are started with, where a request says nothing else.
    pub defaults: RunOptions,
    /// The folder of named documents.
    pub documents: Option<PathBuf>,
    /// Runs that may go on at a time.
    pub max_runs: usize,
    /// Whether it goes on with what it drove when it died.
    pub resume: bool,
}

/// A server that is bound to its address, and serves nobody yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    wanted: SocketAddr,
    resume: bool,
    app: Arc<App>,
}

impl Server {
    /// Binds to the address, or to the next free port behind it.
    ///
    /// # Errors
    /// No port is free, the address is none of this machine, or the state folder can't be used.
    pub async fn bind(host: Host, options: Options) -> Result<Self, Error> {
        let wanted = options.listen;
        if !wanted.ip().is_loopback() && !options.behind_proxy && options.tls.is_none() {
            let message = format!(
                "{wanted} is reached from other machines, and nothing would keep what is said secret"
            );
            return Err(Error::usage("S-02", "not-loopback", &message)
                .help("listen on 127.0.0.1, give a certificate (--tls-cert, --tls-key), or say --behind-proxy where a proxy with TLS is in front"));
        }
        if options.tokens.operator.is_none() && !wanted.ip().is_loopback() {
            let message = "without a token anybody could act who reaches this address";
            return Err(Error::usage("S-02", "no-token", message).help("leave --no-token out"));
        }
        let tls = options.tls.as_ref().map(|(chain, key)| tls::acceptor(chain, key)).transpose()?;
        let config = host.config(&options.defaults)?;
        let webhooks = Arc::new(Webhooks::of(&config, &host.environment)?);
        let (listener, address) = bound(wanted)?;
        let store = App::open(&host)?;
        let host = host.sharing(Arc::clone(&store));
        let mut known = secrets::known(&config);
        for secret in secrets::known(&Config::of_keys(&host.environment)) {
            if !known.contains(&secret) {
                known.push(secret);
            }
        }
        let feeds = Arc::new(Feeds::new(Arc::clone(&store), known.clone()));
        let metrics = Arc::<Metrics>::default();
        let drives = Drives::new(
            host.clone(),
            Arc::clone(&store),
            (Arc::clone(&feeds), Arc::clone(&metrics), Arc::clone(&webhooks)),
            options.max_runs,
        );
        let app = App {
            kept: Kept::new(Arc::clone(&store)),
            feeds,
            metrics,
            drives: Arc::new(drives),
            defaults: options.defaults,
            documents: options.documents,
            store,
            hosts: Hosts::of(address.ip(), address.port(), tls.is_some(), options.behind_proxy),
            webhooks,
            reader: Reader::default(),
            cataloguing: tokio::sync::Mutex::default(),
            tls,
            log: options.log,
            tokens: options.tokens,
            secrets: known,
            limits: config.limits.document(),
            host,
        };
        Ok(Self { listener, address, wanted, resume: options.resume, app: Arc::new(app) })
    }

    /// The address that it is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether that is the one that was asked for.
    pub fn is_elsewhere(&self) -> bool {
        self.wanted.port() != 0 && self.wanted != self.address
    }

    /// Where the page is, with the token in its fragment, which no server is sent.
    pub fn url(&self) -> String {
        let token = self.app.tokens.operator.as_ref();
        let token = token.map(|token| format!("#token={}", token.expose())).unwrap_or_default();
        let scheme = if self.app.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/{token}", self.address)
    }

    /// Goes on with what it drove when it died, and serves until `stop` says so. Runs that it drives then come to a stop (C-05); with
    /// `at_once` they have no more time for that.
    pub async fn serve(self, stop: watch::Receiver<bool>, mut at_once: watch::Receiver<bool>) {
        let Self { listener, app, resume, .. } = self;
        // Whoever comes first does not wait for it, nor does anything else.
        tokio::task::spawn_blocking(page::pack);
        let drives = Arc::clone(&app.drives);
        let mut continuing = JoinSet::new();
        if resume {
            continuing.spawn(Arc::clone(&drives).take_up());
            continuing.spawn(Arc::clone(&drives).fire_timers());
        }
        let stopped = stop.clone();
        let winding_down = async {
            let mut stopped = stopped;
            let _ = stopped.wait_for(|stopped| *stopped).await;
            continuing.abort_all();
            drives.wind_down().await;
        };
        let hurry = async {
            if at_once.wait_for(|at_once| *at_once).await.is_err() {
                std::future::pending::<()>().await;
            }
            drives.stop();
            std::future::pending::<()>().await;
        };
        let webhooks = Arc::clone(&app.webhooks);
        let telling = Arc::clone(&app);
        let deliveries = async {
            webhooks.deliver(&telling).await;
            std::future::pending::<()>().await;
        };
        // A task of its own runs on the runtime's workers. This future may not: `block_on` polls it on the thread that called it, which each
        // connection would have to wake.
        let mut connections = JoinSet::new();
        connections.spawn(http::serve(listener, app, stop));
        let served = async {
            // A server that takes no connections any more is none: a panic there ends it.
            if let Some(Err(error)) = connections.join_next().await
                && let Ok(panic) = error.try_into_panic()
            {
                std::panic::resume_unwind(panic);
            }
        };
        let ended = async { tokio::join!(served, winding_down) };
        tokio::select! {
            _ = ended => {}
            () = hurry => {}
            () = deliveries => {}
        }
    }
}

fn bound(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let refused = |error: &std::io::Error| {
        Error::environment("S-01", "no-address", &format!("can't listen on {wanted}: {error}"))
            .help("choose another address with --listen ADDR:PORT")
    };
    let ports = wanted.port()..=wanted.port().saturating_add(if wanted.port() == 0 { 0 } else { PORTS });
    for port in ports {
        match listening(SocketAddr::new(wanted.ip(), port)) {
            Ok(listener) => {
                let address = listener.local_addr().map_err(|error| refused(&error))?;
                return Ok((listener, address));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    Err(refused(&ErrorKind::AddrInUse.into()))
}

/// Listens with room for all that may be served (S-06): of more at once than there is room for, the system has some try again after a second.
fn listening(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A port whose last connections linger may be taken.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(CONNECTIONS)
}
