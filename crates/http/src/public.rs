//! Requests that are to reach public addresses only: what an address is, and a resolver that hands on no other.
//!
//! It is the address that is connected to that counts: a name whose answers change leads nowhere else.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is that leads nowhere else.
const HERE: &str = "an address of this machine";

/// An address that is not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotPublic {
    /// The host as it was named.
    pub host: String,
    /// What it is, as `127.0.0.1, an address of this machine`.
    pub what: String,
}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what.starts_with(&self.host) {
            true => write!(f, "{}", self.what),
            false => write!(f, "{} is {}", self.host, self.what),
        }
    }
}

impl Error for NotPublic {}

impl NotPublic {
    fn new(host: &str, ip: IpAddr, kind: &str) -> Self {
        Self { host: host.to_owned(), what: format!("{ip}, {kind}") }
    }

    /// The one in what lies behind an error.
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

/// Checks the host of a URL as far as it is an address, or a name of this machine or of one of `proxies`.
pub(super) fn check(url: &Url, proxies: &[String], refused: Refused) -> Result<(), NotPublic> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return refused(ip).map_or(Ok(()), |kind| Err(NotPublic::new(bare, ip, kind)));
    }
    let what = if super::is_loopback(url) {
        "a name of this machine"
    } else if proxies.contains(&plain(bare)) {
        // The resolver lets it pass, for requests that go through it.
        "the proxy itself"
    } else {
        return Ok(());
    };
    Err(NotPublic { host: bare.to_owned(), what: what.to_owned() })
}

/// A name as it is compared.
pub(super) fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// What is wrong with an address.
pub(super) type Refused = fn(IpAddr) -> Option<&'static str>;

/// An address that leads to this machine.
pub(super) fn here(ip: IpAddr) -> Option<&'static str> {
    kind(ip).filter(|kind| *kind == HERE)
}

/// Resolves names to those of their addresses that are not refused.
pub(super) struct Public {
    pub(super) refused: Refused,
    /// Names that are resolved to whatever they mean.
    pub(super) proxies: Vec<String>,
}

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let (any, kind) = (self.proxies.contains(&plain(&host)), self.refused);
        Box::pin(async move {
            let mut all: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let refused = all.iter().find_map(|at| Some(NotPublic::new(&host, at.ip(), kind(at.ip())?)));
            if !any {
                all.retain(|at| kind(at.ip()).is_none());
            }
            match refused {
                Some(refused) if all.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(all.into_iter()) as Addrs),
            }
        })
    }
}

/// What keeps an address from being public, by the registries of special addresses (RFC 6890 and what came after it).
pub(super) fn kind(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => kind_v4(ip),
        IpAddr::V6(ip) => kind_v6(ip),
    }
}

fn kind_v4(ip: Ipv4Addr) -> Option<&'static str> {
    Some(match ip.octets() {
        [0 | 127, ..] => HERE,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "an address of a private network",
        [169, 254, ..] => "a link-local address, as of a cloud's metadata",
        [100, 64..=127, ..] => "an address of a carrier's own network",
        [224..=239, ..] => "a multicast address",
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => "a reserved address",
        _ => return None,
    })
}

fn kind_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let of_v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        kind_v4(Ipv4Addr::new(a, b, c, d))
    };
    Some(match ip.segments() {
        _ if ip.is_loopback() || ip.is_unspecified() => HERE,
        // IPv4 in IPv6: mapped, translated (NAT64), and tunnelled (6to4).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            return of_v4(high, low);
        }
        [0x2002, high, low, ..] => return of_v4(high, low),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => "an address of a private network",
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "a reserved address",
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved address",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_registries_are_not_public() {
        for (text, what) in [
            ("127.0.0.1", "this machine"),
            ("127.9.9.9", "this machine"),
            ("0.0.0.0", "this machine"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("169.254.169.254", "link-local"),
            ("100.64.0.1", "carrier"),
            ("100.127.255.255", "carrier"),
            ("224.0.0.1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("192.0.2.1", "reserved"),
            ("198.18.0.1", "reserved"),
            ("::1", "this machine"),
            ("::", "this machine"),
            ("::ffff:127.0.0.1", "this machine"),
            ("::ffff:169.254.169.254", "link-local"),
            ("64:ff9b::a00:1", "private"),
            ("64:ff9b:1::1", "reserved"),
            ("2002:7f00:1::", "this machine"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("ff02::1", "multicast"),
            ("2001::1", "reserved"),
            ("2001:db8::1", "reserved"),
            ("::7f00:1", "reserved"),
            ("5f00::1", "reserved"),
        ] {
            let found = kind(text.parse().unwrap()).unwrap_or("public");
            assert!(found.contains(what), "{text}: {found}");
        }
        for text in [
            "1.1.1.1",
            "100.63.0.1",
            "172.32.0.1",
            "169.253.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "2a00::1",
        ] {
            assert_eq!(kind(text.parse().unwrap()), None, "{text}");
        }
    }

    #[test]
    fn hosts_are_checked_in_all_their_writings() {
        let proxies = ["proxy.corp".to_owned()];
        for text in [
            "http://127.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://127.0.0.1./",
            "http://[::ffff:7f00:1]/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://Proxy.Corp.:8080/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert!(check(&Url::parse(text).unwrap(), &proxies, kind).is_err(), "{text}");
        }
        assert_eq!(check(&Url::parse("http://example.com/").unwrap(), &proxies, kind), Ok(()));
    }

    #[tokio::test]
    async fn names_are_resolved_to_public_addresses_only() {
        let resolver = Public { proxies: vec!["localhost".into()], refused: kind };
        assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok(), "a proxy's name");
        for refused in [kind, here] {
            let resolver = Public { proxies: Vec::new(), refused };
            let Err(error) = resolver.resolve("localhost".parse().unwrap()).await else {
                panic!("it is resolved")
            };
            let found = NotPublic::find(&*error).unwrap().to_string();
            assert!(found.starts_with("localhost is ") && found.ends_with(HERE), "{found}");
        }
    }

    /// Where a site leads that a private network may have: anywhere but here.
    #[test]
    fn a_private_address_is_not_here() {
        for text in ["http://10.0.0.1/", "http://[fd00::1]/", "http://169.254.169.254/"] {
            assert_eq!(check(&Url::parse(text).unwrap(), &[], here), Ok(()), "{text}");
        }
        for text in [
            "http://127.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://a.localhost/",
        ] {
            assert!(check(&Url::parse(text).unwrap(), &[], here).is_err(), "{text}");
        }
    }
}
