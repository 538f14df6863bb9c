use super::*;

fn proxies(set: &[(&str, &str)]) -> Proxies {
    Proxies::of(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn what_is_meant_is_used() {
    for (text, address) in [
        ("http://proxy:3128", "http://proxy:3128/"),
        ("  http://proxy:3128/ \n", "http://proxy:3128/"),
        ("127.0.0.1:3128/", "http://127.0.0.1:3128/"),
        ("proxy:3128", "http://proxy:3128/"),
        ("proxy", "http://proxy/"),
        ("[::1]:3128", "http://[::1]:3128/"),
        ("https://proxy", "https://proxy/"),
        ("HTTP://u:p@Proxy:1", "http://u:p@proxy:1/"),
        ("http://user:p@ss@proxy:1", "http://user:p%40ss@proxy:1/"),
        ("user:p%2Fss@proxy:1", "http://user:p%2Fss@proxy:1/"),
    ] {
        let found = super::address(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(found.as_str(), address, "{text}");
        // What the library refuses here it would pass over in silence.
        assert!(Proxy::http(found.as_str()).is_ok());
    }
}

#[test]
fn what_can_not_be_used_is_refused_without_a_word_of_it() {
    for text in [
        "::not a url::",
        " ",
        "http://",
        "http://user:pass/secret@proxy:1",
        "http://user:12/secret@proxy:1",
        "http://user:secret#x@proxy:1",
        "http://user:secret@proxy:port",
        "http://proxy:99999",
        "http://proxy:0",
        "http://${PROXY_HOST}:3128",
        "http://pro{x}y:3128",
        "\"http://proxy:3128\"",
        "socks5://proxy:1080",
        "foo://proxy:1",
        "http://proxy:3128/proxy.pac",
        "http://proxy one:3128",
        "http:proxy:3128",
    ] {
        let all = proxies(&[("HTTPS_PROXY", text)]);
        let wrong = all.check(&url("https://example.com")).unwrap_err();
        let said = format!("{wrong}");
        assert!(
            said.contains("HTTPS_PROXY") && said.contains("http://[USER:PASSWORD@]HOST:PORT"),
            "{text}: {said}"
        );
        assert!(!said.contains("secret"), "{said}");
        assert!(all.check(&url("http://example.com")).is_ok(), "nothing is said about http");
    }
}

#[test]
fn the_first_variable_that_is_set_counts() {
    let of = |set: &[(&str, &str)]| -> Vec<(&'static str, &'static str)> {
        proxies(set).in_use().iter().map(|one| (one.variable, one.schemes)).collect()
    };
    assert_eq!(of(&[("HTTPS_PROXY", "a"), ("https_proxy", "b")]), [("HTTPS_PROXY", "https")]);
    assert_eq!(of(&[("HTTPS_PROXY", ""), ("https_proxy", "b")]), [("https_proxy", "https")]);
    assert_eq!(
        of(&[("ALL_PROXY", "a"), ("HTTP_PROXY", "b")]),
        [("ALL_PROXY", "https"), ("HTTP_PROXY", "http")]
    );
    assert_eq!(of(&[("all_proxy", "a")]), [("all_proxy", "all")]);
    // A header of a request that this process answers is nobody's proxy; the others can't be headers.
    let cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "evil"), ("HTTPS_PROXY", "good")];
    assert_eq!(of(&cgi), [("HTTPS_PROXY", "https")]);
    assert!(proxies(&cgi).is_http_proxy_foreign());
    assert_eq!(of(&[("REQUEST_METHOD", "GET"), ("http_proxy", "good")]), [("http_proxy", "http")]);
}

#[test]
fn passwords_are_known_however_they_are_written() {
    for (value, passwords) in [
        ("http://u:p%40ss@h:1", &["p%40ss", "p@ss"][..]),
        ("http://u:p@ss@h:1", &["p@ss", "p%40ss"]),
        ("u:p/ss@h", &["p/ss"]),
        ("http://u@h", &[]),
        ("http://h:1", &[]),
    ] {
        assert_eq!(proxy_passwords(value), passwords, "{value}");
    }
}
