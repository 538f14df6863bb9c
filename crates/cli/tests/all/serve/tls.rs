//! TLS of the server's own (S-02), and its log (S-10).

use super::http::Server;
use crate::net::{Wrong, certificate};
use crate::support::Place;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;

/// Asks over TLS, trusting one issuer.
fn ask(server: &Server, issuer: &str, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(issuer.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, server.connect());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn s02_it_speaks_tls_itself() {
    let place = Place::new();
    let shown = certificate("localhost", Wrong::Nothing);
    place.write("chain.pem", &shown.pem.0);
    place.write("key.pem", &shown.pem.1);
    // Also beyond loopback, where it has a name that is not its address.
    let args = ["serve", "--listen", "0.0.0.0:0", "--tls-cert", "chain.pem", "--tls-key", "key.pem"];
    let mut child = place.start(&args);
    let mut url = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut url)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(url.starts_with("https://0.0.0.0:"), "{url}");

    let server = Server::start(&place, &args[3..]);
    let request = |path: &str, host: &str, origin: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{origin}\r\n",
            server.token
        )
    };
    let answer =
        ask(&server, &shown.issuer, &request("/v1/runs", "runs.example", "Origin: https://runs.example\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"runs\":[]"), "{answer}");
    let foreign =
        ask(&server, &shown.issuer, &request("/v1/runs", "runs.example", "Origin: http://runs.example\r\n"));
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    let login = format!("{{\"token\": \"{}\"}}", server.token);
    let login = format!(
        "POST /v1/session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{login}",
        login.len()
    );
    let session = ask(&server, &shown.issuer, &login);
    assert!(session.starts_with("HTTP/1.1 204 ") && session.contains("; Secure"), "{session}");

    // Who does not speak it, or stops in the middle, holds up nobody.
    let mut plain = server.connect();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut silent = server.connect();
    silent.write_all(&[22, 3, 1]).unwrap();
    let mut rest = Vec::new();
    plain.read_to_end(&mut rest).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&rest).contains("200"), "{rest:?}");
    rest.clear();
    assert_eq!(silent.read_to_end(&mut rest).unwrap_or_default(), rest.len(), "it ends");
    assert!(ask(&server, &shown.issuer, &request("/healthz", "localhost", "")).contains("ok"));
}

#[test]
fn s02_certificates_that_do_not_fit_are_told() {
    let place = Place::new();
    let (one, other) = (certificate("localhost", Wrong::Nothing), certificate("localhost", Wrong::Nothing));
    place.write("one.pem", &one.pem.0);
    place.write("one-key.pem", &one.pem.1);
    place.write("other-key.pem", &other.pem.1);
    place.write("empty.pem", "");
    place.write("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB");
    for (chain, key) in [
        ("one.pem", "other-key.pem"),
        ("one.pem", "one.pem"),
        ("one-key.pem", "one-key.pem"),
        ("empty.pem", "one-key.pem"),
        ("cut.pem", "one-key.pem"),
        ("none.pem", "one-key.pem"),
    ] {
        let done = place
            .run(&["serve", "--tls-cert", chain, "--tls-key", key, "--listen", "127.0.0.1:0", "--json"])
            .exits(2);
        assert_eq!(done.error()["code"], "bad-certificate", "{chain} {key} {done:#?}");
    }
    place.run(&["serve", "--tls-cert", "one.pem"]).exits(2);
}

/// S-10: with `-v` each request has a line; no token is in it, nor what was looked for.
#[test]
fn s10_each_request_has_a_line_in_the_log() {
    let place = Place::new();
    let log = place.work().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let server = Server::of(&place, &["-v"], |command| {
        command.stderr(file);
    });
    server.get("/v1/runs?text=private");
    server.send("GET", "/v1/runs", &[], None).is(401);
    server.ask("GET", "/v1/runs/a%1B%5B31mb", None).is(404);
    let token = server.token.clone();
    assert_eq!(server.terminate(), Some(130));
    let log = std::fs::read_to_string(log).unwrap();
    for line in ["GET /v1/runs 200 ", "GET /v1/runs 401 ", "GET /v1/runs/a%1B%5B31mb 404 "] {
        assert!(log.lines().any(|known| known.starts_with(line) && known.ends_with(" ms")), "{line}: {log}");
    }
    assert!(!log.contains(&token) && !log.contains("private"), "{log}");
}
