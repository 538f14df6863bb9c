//! Where Ollama is on this machine, or where `OLLAMA_HOST` says it is.

use crate::environment::Environment;
use selvedge_models::Provider;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use url::Url;

/// Ollama's own port.
const PORT: u16 = 11434;
/// How long it may take to be found: it is on this machine or near it.
const WAIT: Duration = Duration::from_millis(200);

/// Its base URL: `OLLAMA_HOST`, read as Ollama does (`[SCHEME://]HOST[:PORT]`), else its usual place.
pub fn base_url(environment: &Environment) -> String {
    let usual = || Provider::Ollama.default_base_url().to_owned();
    environment.variable("OLLAMA_HOST").map_or_else(usual, |host| of_host(&host).unwrap_or_else(usual))
}

fn of_host(host: &str) -> Option<String> {
    let host = host.trim().trim_matches(['"', '\'']);
    let (text, bare) = match host.contains("://") {
        true => (host.to_owned(), false),
        false => (
            format!(
                "http://{}",
                if host.starts_with(':') { format!("127.0.0.1{host}") } else { host.to_owned() }
            ),
            true,
        ),
    };
    let mut url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // A bare host has Ollama's port, an address with a scheme has the scheme's.
    let given = text.rsplit(']').next().is_some_and(|rest| rest.trim_start_matches("http://").contains(':'));
    if bare && !given {
        url.set_port(Some(PORT)).ok()?;
    }
    // A server that listens on every address is told so; it is asked on this machine's.
    match url.host_str()? {
        "0.0.0.0" => url.set_host(Some("127.0.0.1")).ok()?,
        "[::]" => url.set_host(Some("[::1]")).ok()?,
        _ => {}
    }
    let below = format!("{}/v1", url.path().trim_end_matches('/'));
    url.set_path(&below);
    Some(url.to_string())
}

/// Its host and port, for people.
pub fn place(environment: &Environment) -> String {
    let url = Url::parse(&base_url(environment)).ok();
    let port = url.as_ref().and_then(Url::port_or_known_default).unwrap_or(PORT);
    format!("{}:{port}", url.as_ref().and_then(Url::host_str).unwrap_or("127.0.0.1"))
}

/// Whether something listens there.
pub fn listens(environment: &Environment) -> bool {
    let Ok(mut addresses) = place(environment).to_socket_addrs() else { return false };
    addresses.any(|address| TcpStream::connect_timeout(&address, WAIT).is_ok())
}

#[cfg(test)]
mod tests {
    use super::of_host;

    #[test]
    fn ollama_host_is_read_as_ollama_reads_it() {
        for (host, url) in [
            ("box", "http://box:11434/v1"),
            ("10.0.0.5:8080", "http://10.0.0.5:8080/v1"),
            (":9000", "http://127.0.0.1:9000/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:80", "http://127.0.0.1/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::]:11500", "http://[::1]:11500/v1"),
            ("https://ollama.example.com", "https://ollama.example.com/v1"),
            ("http://box/ollama/", "http://box/ollama/v1"),
        ] {
            assert_eq!(of_host(host).as_deref(), Some(url), "{host}");
        }
        assert_eq!(of_host("ftp://box"), None);
    }
}
