//! The proxies for requests to other machines (C-06): read once, from the variables that other programs read, too. What
//! stands in one of them is used or refused, and never passed over: a request must not go past a proxy unnoticed.

use super::{Misconfigured, shown};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::{ClientBuilder, NoProxy, Proxy, Url};
use std::ffi::OsString;

/// The variables of a proxy. Of each pair the former goes first; those of all addresses come last.
pub const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// A server that answers a request by this program hands it that request's headers: `Proxy:` is `HTTP_PROXY` then, and
/// nobody's setting.
const CGI: &str = "REQUEST_METHOD";

/// What a variable says.
#[derive(Clone)]
struct Route {
    variable: &'static str,
    address: Result<Url, String>,
}

/// The proxies of this process.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Route>,
    https: Option<Route>,
    spared: Option<String>,
    foreign: bool,
}

/// A variable that counts, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyInUse {
    /// Its name.
    pub variable: &'static str,
    /// The address without credentials, and whether it has some; or what is wrong with it.
    pub address: Result<(String, bool), Misconfigured>,
    /// Whether it is for all addresses, `http` and `https`, or for those of the one or the other.
    pub schemes: &'static str,
}

impl Proxies {
    /// What the variables of this process say; an empty one counts as not set.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let cgi = set(CGI).is_some();
        let first = |names: &[&'static str]| {
            let mut names = names.iter().filter(|name| !(cgi && **name == "HTTP_PROXY"));
            let (name, value) = names.find_map(|name| Some((*name, set(name)?)))?;
            let address = value.to_str().ok_or_else(|| "it is no text".to_owned()).and_then(address);
            Some(Route { variable: name, address })
        };
        let [https, https_lower, http, http_lower, all, all_lower] = PROXY_VARIABLES;
        let spared = ["NO_PROXY", "no_proxy"].into_iter().find_map(set);
        Self {
            http: first(&[http, http_lower, all, all_lower]),
            https: first(&[https, https_lower, all, all_lower]),
            spared: spared.map(|hosts| hosts.to_string_lossy().into_owned()),
            foreign: cgi && set("HTTP_PROXY").is_some(),
        }
    }

    fn route(&self, scheme: &str) -> Option<&Route> {
        if scheme == "https" { self.https.as_ref() } else { self.http.as_ref() }
    }

    /// Refuses a variable that a request to `url`, which is on another machine, would need and that is wrong.
    pub(super) fn check(&self, url: &Url) -> Result<(), Misconfigured> {
        self.route(url.scheme()).map_or(Ok(()), Route::check)
    }

    /// A client of these proxies. One that is wrong is left out: [`Proxies::check`] goes before any request to it.
    pub(super) fn of_client(&self, builder: ClientBuilder) -> Result<ClientBuilder, reqwest::Error> {
        let mut builder = builder.no_proxy();
        let spared = self.spared.as_deref().and_then(NoProxy::from_string);
        if let Some(Ok(address)) = self.http.as_ref().map(|route| &route.address) {
            builder = builder.proxy(Proxy::http(address.as_str())?.no_proxy(spared.clone()));
        }
        if let Some(Ok(address)) = self.https.as_ref().map(|route| &route.address) {
            builder = builder.proxy(Proxy::https(address.as_str())?.no_proxy(spared));
        }
        Ok(builder)
    }

    /// The hosts of the proxies, as names are compared.
    pub(super) fn hosts(&self) -> Vec<String> {
        let routes = self.http.iter().chain(&self.https);
        routes
            .filter_map(|route| Some(super::public::plain(route.address.as_ref().ok()?.host_str()?)))
            .collect()
    }

    /// The variables that count, for people.
    pub fn in_use(&self) -> Vec<ProxyInUse> {
        let mut routes = Vec::new();
        let same = self.https.as_ref().map(|r| r.variable) == self.http.as_ref().map(|r| r.variable);
        routes.extend(self.https.as_ref().map(|route| (route, if same { "all" } else { "https" })));
        routes.extend(self.http.as_ref().filter(|_| !same).map(|route| (route, "http")));
        let told = |(route, schemes): (&Route, _)| {
            let address = route.address.as_ref().map_err(|why| route.wrong(why));
            let address =
                address.map(|url| (shown(url), !url.username().is_empty() || url.password().is_some()));
            ProxyInUse { variable: route.variable, address, schemes }
        };
        routes.into_iter().map(told).collect()
    }

    /// The hosts that are asked without a proxy, as they are written.
    pub fn spared(&self) -> Option<&str> {
        self.spared.as_deref()
    }

    /// Whether there is an `HTTP_PROXY` that is not used, as this process answers a request of the web and the variable
    /// may be a header of it.
    pub fn is_http_proxy_foreign(&self) -> bool {
        self.foreign
    }
}

impl Route {
    fn check(&self) -> Result<(), Misconfigured> {
        self.address.as_ref().map(|_| ()).map_err(|why| self.wrong(why))
    }

    fn wrong(&self, why: &str) -> Misconfigured {
        let name = self.variable;
        Misconfigured {
            code: "bad-proxy",
            message: format!("{name} names no proxy that can be used: {why}"),
            help: format!(
                "set {name} to http://[USER:PASSWORD@]HOST:PORT, or unset it for requests without a proxy"
            ),
        }
    }
}

/// The address of a proxy, or what is wrong with it, in words without any of it: a password may stand anywhere in it.
fn address(text: &str) -> Result<Url, String> {
    let text = text.trim();
    let no_sign = |c: char| c.is_whitespace() || c.is_control();
    if text.is_empty() || text.contains(no_sign) {
        return Err("it is white space, or has some within".into());
    }
    // `proxy:3128` would be read as something of the scheme `proxy`.
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| match error.to_string() {
        why if text.contains('@') => format!("{why} (in a user or a password write %2F for / and %40 for @)"),
        why => why,
    })?;
    match url.scheme() {
        "http" | "https" => {}
        socks if socks.starts_with("socks") => return Err("SOCKS is not spoken, only HTTP".into()),
        _ => return Err("it starts neither with http:// nor with https://".into()),
    }
    // What is no host, such as `${HOST}`, is one for the URL standard, and for the client library a reason to use no proxy.
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
    if url.host_str().is_none_or(|host| host.is_empty() || !host.chars().all(is_name)) {
        return Err("its host is no name and no address".into());
    }
    if url.port() == Some(0) {
        return Err("there is no port 0".into());
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err(
            "something stands behind the host and the port (in a password write %2F for /, %3F for ?, \
                    %23 for #)"
                .into(),
        );
    }
    Ok(url)
}

/// The password in a proxy's address, as it is written and as it is meant: `%40` is an `@` (C-06). Of an address that can't be
/// used, too.
pub fn proxy_passwords(value: &str) -> Vec<String> {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest).trim();
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    let Some((_, written)) = user.and_then(|user| user.split_once(':')) else { return Vec::new() };
    passwords(written, address(value).ok().as_ref())
}

/// What is secret in the address of a server (C-06): its password in the ways of [`proxy_passwords`], or a user without one,
/// and the header that is made of both, in base64.
pub fn url_passwords(value: &str) -> Vec<String> {
    let Ok(url) = Url::parse(value.trim()) else { return Vec::new() };
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest).trim();
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return Vec::new() };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (name, mut found) = match user.split_once(':') {
        Some((name, written)) => (name, passwords(written, Some(&url))),
        None => (user, vec![user.to_owned(), decoded(user)]),
    };
    let password = url.password().map(decoded).unwrap_or_default();
    found.push(BASE64_STANDARD.encode(format!("{}:{password}", decoded(name))));
    found
}

/// A password as it is written, as it is sent in an address, and as it is meant.
fn passwords(written: &str, url: Option<&Url>) -> Vec<String> {
    let mut found = vec![written.to_owned()];
    let sent = url.and_then(|url| url.password().map(str::to_owned));
    found.extend(sent.filter(|sent| sent != written));
    let meant = percent_decode_str(written).decode_utf8_lossy().into_owned();
    if !found.contains(&meant) {
        found.push(meant);
    }
    found.retain(|password| !password.is_empty());
    found
}

#[cfg(test)]
mod tests;
