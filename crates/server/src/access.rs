//! Who may do what (S-02): tokens, the page's cookie, and requests that other sites' pages make.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::IpAddr;

/// The cookie that the page has for its token.
pub(crate) const COOKIE_NAME: &str = "selvedge";

/// Bytes of a token that is made here.
const BYTES: usize = 32;

/// What somebody has to know. It is compared by its digest, so that how long that takes tells nothing of it, and shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// That of a file: what is in it, but for white space around it; `None` if that is nothing that a header can carry.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';');
        fits.then(|| Self(text.to_owned()))
    }

    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn fresh() -> std::io::Result<Self> {
        use std::io::Read;
        let mut bytes = [0; BYTES];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token, to be shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

/// Without the token.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Look.
    Viewer,
    /// Look and act.
    Operator,
}

/// The tokens of a server.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// Of who may act; without one everybody may, which is for loopback only.
    pub operator: Option<Token>,
    /// Of who may only look.
    pub viewer: Option<Token>,
}

impl Tokens {
    /// What somebody with this token may do, if it is one.
    pub(crate) fn role(&self, given: Option<&str>) -> Option<Role> {
        let Some(operator) = &self.operator else { return Some(Role::Operator) };
        // All of them are compared, whichever it is.
        let given: [u8; 32] = Sha256::digest(given?.as_bytes()).into();
        let is = |token: &Token| same(&token.digest(), &given);
        let (operator, viewer) = (is(operator), self.viewer.as_ref().is_some_and(is));
        if operator { Some(Role::Operator) } else { viewer.then_some(Role::Viewer) }
    }
}

/// Whether two digests are the same, in a time that does not depend on where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differs = a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b));
    std::hint::black_box(differs) == 0
}

/// The token that a request brings.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    if let Some(given) = headers.get(AUTHORIZATION) {
        let (scheme, token) = given.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
}

/// Why a request is not for this server, or of another site's page.
pub(crate) fn foreign(headers: &HeaderMap, hosts: &Hosts) -> Option<&'static str> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !hosts.has(host) {
        return Some("the Host of the request is another one than this server's");
    }
    let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let own = |origin: &str| {
        let scheme = if hosts.tls { "https" } else { "http" };
        let behind_proxy = hosts.any
            && !hosts.tls
            && origin.split_once("://").is_some_and(|(_, authority)| authority == host);
        behind_proxy || origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) == Some(host)
    };
    match origin {
        Some(origin) if !own(origin) => Some("the request was made by a page of another origin"),
        _ => None,
    }
}

/// The names under which a server is reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// Whether a proxy in front has looked at the name.
    pub(crate) any: bool,
    /// Whether it speaks TLS itself.
    pub(crate) tls: bool,
}

impl Hosts {
    /// Of a server on this address.
    pub(crate) fn of(ip: IpAddr, port: u16, tls: bool, any: bool) -> Self {
        let mut names = vec![with_port(&ip, port)];
        if ip.is_loopback() || ip.is_unspecified() {
            names.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
        }
        Self { names, any: any || ip.is_unspecified() || tls, tls }
    }

    fn has(&self, host: &str) -> bool {
        self.any && !host.is_empty() || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

fn with_port(ip: &IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(*ip, port).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(pairs: &[(hyper::header::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    /// S-02: each token gives its role, and nothing else does.
    #[test]
    fn tokens_give_roles() {
        let tokens = Tokens { operator: Token::read("one"), viewer: Token::read(" two\n") };
        for (given, role) in [
            (Some("one"), Some(Role::Operator)),
            (Some("two"), Some(Role::Viewer)),
            (Some("on"), None),
            (Some(""), None),
            (None, None),
        ] {
            assert_eq!(tokens.role(given), role, "{given:?}");
        }
        assert_eq!(Tokens::default().role(None), Some(Role::Operator));
        assert_eq!(Token::read("a b"), None);
        assert_ne!(Token::fresh().unwrap().expose(), Token::fresh().unwrap().expose());
        assert!(!format!("{tokens:?}").contains("one"));
    }

    /// S-02: a header, else the cookie.
    #[test]
    fn tokens_are_in_a_header_or_a_cookie() {
        for (name, value, found) in [
            (AUTHORIZATION, "Bearer x", Some("x")),
            (AUTHORIZATION, "bearer  x", Some("x")),
            (AUTHORIZATION, "Basic x", None),
            (COOKIE, "a=b; selvedge=x; c=d", Some("x")),
            (COOKIE, "unselvedge=x", None),
        ] {
            assert_eq!(token(&headers(&[(name, value)])), found, "{value}");
        }
    }

    /// S-02: what speaks TLS itself knows of which scheme its own pages are.
    #[test]
    fn pages_without_tls_are_foreign_to_who_has_it() {
        let own = Hosts::of(IpAddr::from([0, 0, 0, 0]), 8443, true, false);
        for (origin, is_foreign) in
            [("https://runs.example", false), ("http://runs.example", true), ("https://other.example", true)]
        {
            let given = headers(&[(HOST, "runs.example"), (ORIGIN, origin)]);
            assert_eq!(foreign(&given, &own).is_some(), is_foreign, "{origin}");
        }
    }

    /// S-02: no rebinding, and no other site's page.
    #[test]
    fn other_hosts_and_origins_are_foreign() {
        let own = Hosts::of(IpAddr::from([127, 0, 0, 1]), 7777, false, false);
        for (host, origin, is_foreign) in [
            ("127.0.0.1:7777", None, false),
            ("localhost:7777", Some("http://localhost:7777"), false),
            ("LOCALHOST:7777", None, false),
            ("evil.example:7777", None, true),
            ("", None, true),
            ("127.0.0.1:7777", Some("http://evil.example"), true),
            ("127.0.0.1:7777", Some("https://127.0.0.1:7777"), true),
            ("127.0.0.1:7777", Some("http://127.0.0.1:7778"), true),
            ("127.0.0.1:7777", Some("null"), true),
        ] {
            let mut given = headers(&[(HOST, host)]);
            given.extend(origin.map(|origin| (Some(ORIGIN), HeaderValue::from_static(origin))));
            assert_eq!(foreign(&given, &own).is_some(), is_foreign, "{host} {origin:?}");
        }
    }
}
