//! `selvedge serve`: the HTTP API and the page (S-01, C-19).

use crate::args::{Common, Exec, count};
use crate::block_on::serving;
use crate::failure::Exit;
use crate::signals::Signals;
use crate::ui::Ui;
use clap::Args;
use selvedge_host::Error;
use selvedge_server::{Options, Server, Token, Tokens};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

const SERVE_HELP: &str = "\
Examples:
  selvedge serve
  selvedge serve --listen 127.0.0.1:8080 --model qwen3 --base-url http://127.0.0.1:8000/v1
  selvedge serve --token-file ./token --viewer-token-file ./viewers
  selvedge serve --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem -v

The URL that it prints holds the token in its fragment: whoever has it may act. The API is told of in docs/api.md. \
-v tells of each request.";

/// `selvedge serve`.
#[derive(Args, Debug)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// Where it listens; of a port that is taken, the next free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7777")]
    pub(crate) listen: SocketAddr,
    /// A file with the token, instead of a new one at each start
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with a token for who may look, and not act
    #[arg(long, value_name = "FILE", conflicts_with = "no_token")]
    pub(crate) viewer_token_file: Option<PathBuf>,
    /// No token: everybody on this machine may act
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// A folder of documents that are run by their names
    #[arg(long, value_name = "DIR")]
    pub(crate) documents: Option<PathBuf>,
    /// Runs that go on at a time
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count::<usize>, allow_negative_numbers = true)]
    pub(crate) max_runs: usize,
    /// Leave what it drove when it died as it is
    #[arg(long)]
    pub(crate) no_resume: bool,
    /// A certificate with its chain, PEM: speak TLS, also beyond loopback
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy with TLS is in front, and looks at host names
    #[arg(long)]
    pub(crate) behind_proxy: bool,
    /// How runs are started where a request says nothing else.
    #[command(flatten)]
    pub(crate) exec: Exec,
}

/// Serves until it is interrupted.
pub(crate) fn serve(args: &ServeArgs, common: &Common, ui: &Ui) -> Result<Exit, Error> {
    let host = ui.host(common)?;
    let defaults = crate::options::for_run(&ui.environment, &args.exec)?;
    let operator = match (&args.token_file, args.no_token) {
        (Some(file), _) => Some(token(file)?),
        (None, true) => None,
        (None, false) => Some(Token::fresh().map_err(|error| {
            Error::environment("S-02", "no-randomness", &format!("no token can be made: {error}"))
        })?),
    };
    let viewer = args.viewer_token_file.as_deref().map(token).transpose()?;
    let tokens = Tokens { operator, viewer };
    let documents = args.documents.as_deref().map(|folder| ui.environment.absolute(folder));
    if let Some(folder) = documents.as_deref().filter(|folder| !folder.is_dir()) {
        let message = format!("there is no folder {}", folder.display());
        return Err(Error::usage("C-12", "file-not-found", &message).help("--documents names a folder"));
    }
    let options = Options {
        listen: args.listen,
        tokens,
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        log: ui.verbose > 0,
        behind_proxy: args.behind_proxy,
        defaults,
        documents,
        max_runs: args.max_runs,
        resume: !args.no_resume,
    };
    raise_open_files();
    serving(async {
        let signals = Signals::listen(ui);
        let server = Server::bind(host, options).await?;
        if server.is_elsewhere() {
            ui.notice(&format!("note: {} is taken; this is {}", args.listen, server.address()));
        }
        // Once, and as it is: it holds the token.
        ui.result(&format!("{}\n", server.url()));
        let ((stop, stopped), (hurry, hurried)) = (watch::channel(false), watch::channel(false));
        let ending = async {
            signals.stop.reached(1).await;
            stop.send_replace(true);
            signals.stop.reached(2).await;
            hurry.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = server.serve(stopped, hurried) => {}
            () = ending => {}
        }
        Ok(Exit::Interrupted)
    })?
}

/// Each connection is an open file, and 1,024 of them, which is what many a system gives a process at first, are as many as there may be
/// connections. What tools may have open is limited where they are started.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const FILES: u64 = 16 * 1024;
    const TABLE: i32 = 4 * 1024 - 1;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |most| most.min(FILES));
    if current.is_some_and(|current| current < wanted) {
        // With fewer it serves fewer.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    // The system's table of them has room from here on: to make it larger later, each time it is full, stops all threads that open one
    // for tens of milliseconds, and there is only this one yet.
    let _ = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), TABLE);
}

fn token(file: impl AsRef<Path>) -> Result<Token, Error> {
    let file = file.as_ref();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::usage(
            "S-02",
            "no-token-file",
            &format!("the token in {} can't be read: {error}", file.display()),
        )
    })?;
    Token::read(&text).ok_or_else(|| {
        let message = format!("{} holds no token", file.display());
        Error::usage("S-02", "bad-token", &message)
            .help("a token is one word of ASCII letters, digits and signs")
    })
}
