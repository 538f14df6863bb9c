//! Certificates, proxies and hosts that are wrong: what is said, how soon, and what never shows (C-01, C-04, C-06, E-14).

use crate::net::{Wrong, answer, certificate, endpoint, holds, proxy, serve, serve_tls};
use crate::support::{Done, Place, calls, finish, says};
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place
}

/// The plan at an address, with these variables.
fn run(place: &Place, url: &str, variables: &[(&str, &str)]) -> Done {
    let mut command =
        place.command(&["run", "plan.json", "--base-url", url, "--model", "tiny", "--json", "-v"]);
    finish(command.envs(variables.iter().copied()).spawn().unwrap())
}

fn message(done: &Done) -> String {
    done.json()["fault"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_certificate_that_is_refused_is_told_at_once_and_not_asked_again() {
    let place = place();
    for (name, wrong, trusted, parts) in [
        ("localhost", Wrong::SelfSigned, false, ["nobody whom this machine trusts", "SSL_CERT_FILE"]),
        ("localhost", Wrong::Nothing, false, ["nobody whom this machine trusts", "SSL_CERT_FILE"]),
        ("localhost", Wrong::Expired, true, ["it has expired", "clock"]),
        ("other.example", Wrong::Nothing, true, ["not for the name localhost", "base_url"]),
        ("localhost", Wrong::Authority, true, ["CA:TRUE", "SSL_CERT_FILE"]),
    ] {
        let shown = certificate(name, wrong);
        let stranger = certificate("stranger", Wrong::Nothing).issuer;
        let file = place.write("ca.pem", if trusted { &shown.issuer } else { &stranger });
        let (port, connections) = serve_tls(shown);
        let started = Instant::now();
        let url = format!("https://localhost:{port}/v1");
        let done = run(&place, &url, &[("SSL_CERT_FILE", file.to_str().unwrap())]).exits(1);
        for part in parts {
            assert!(message(&done).contains(part), "{}", message(&done));
        }
        assert_eq!(*connections.lock().unwrap(), 1, "{done:#?}");
        assert!(started.elapsed() < Duration::from_secs(10));
        // The same from the list of models, before a run begins.
        let mut command = place.command(&["run", "plan.json", "--base-url", &url, "--json"]);
        let early = finish(command.env("SSL_CERT_FILE", &file).spawn().unwrap()).exits(4);
        assert!(early.error()["message"].as_str().unwrap().contains(parts[0]), "{early:#?}");
    }
}

#[test]
fn an_issuer_in_ssl_cert_file_is_trusted() {
    let place = place();
    let shown = certificate("localhost", Wrong::Nothing);
    let file = place.write("ca.pem", &shown.issuer);
    let (port, _) = serve_tls(shown);
    let url = format!("https://localhost:{port}/v1");
    let done = run(&place, &url, &[("SSL_CERT_FILE", file.to_str().unwrap())]).exits(0);
    assert_eq!(done.json()["output"], "hello");
}

#[test]
fn a_server_without_tls_is_told() {
    let (port, _) = serve(endpoint);
    let place = place();
    let file = place.write("ca.pem", &certificate("x", Wrong::Nothing).issuer);
    let url = format!("https://localhost:{port}/v1");
    let done = run(&place, &url, &[("SSL_CERT_FILE", file.to_str().unwrap())]).exits(1);
    assert!(message(&done).contains("http:// instead of https://"), "{}", message(&done));
}

/// Nobody listens, and nobody is there: told in words, after E-14's attempts.
#[test]
fn hosts_that_are_not_there_are_told() {
    let place = place();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = run(&place, &format!("http://{closed}/v1"), &[]).exits(1);
    assert!(message(&done).contains("nothing listens there"), "{}", message(&done));
    let done = run(&place, "http://no-such-host.invalid/v1", &[]).exits(1);
    assert!(message(&done).contains("the name no-such-host.invalid can't be resolved"), "{}", message(&done));
}

/// A host that takes the connection and says nothing is waited for no longer than the settings say.
#[test]
fn a_silent_host_is_bounded() {
    let place = place();
    place.write("selvedge.toml", "[limits]\nfirst_token_timeout_s = 0.3\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let done = run(&place, &url, &[]).exits(1);
    assert!(message(&done).contains("sent no token within 0.3 s"), "{}", message(&done));
}

const PASSWORD: &str = "proxy-secret-4711";

/// Requests to other machines go through the proxy with its credentials, those to this machine never; the
/// credentials are shown nowhere.
#[test]
fn a_proxy_is_for_other_machines_only() {
    let place = place();
    let (port, heads) = proxy(Ok(9));
    let address = format!("http://user:{PASSWORD}@127.0.0.1:{port}");
    let done = run(&place, "http://model.invalid/v1", &[("http_proxy", &address)]).exits(0);
    assert_eq!(done.json()["output"], "hello");
    let seen = std::mem::take(&mut *heads.lock().unwrap());
    assert!(seen[0].starts_with("POST http://model.invalid/v1/chat/completions "), "{seen:?}");
    assert!(seen[0].to_ascii_lowercase().contains("proxy-authorization: basic "), "{seen:?}");

    let (near, _) = serve(endpoint);
    let all = [("HTTP_PROXY", address.as_str()), ("http_proxy", &address), ("ALL_PROXY", &address)];
    run(&place, &format!("http://127.0.0.1:{near}/v1"), &all).exits(0);
    let shown = certificate("localhost", Wrong::Nothing);
    let file = place.write("ca.pem", &shown.issuer);
    let (secure, _) = serve_tls(shown);
    let variables = [("HTTPS_PROXY", address.as_str()), ("SSL_CERT_FILE", file.to_str().unwrap())];
    run(&place, &format!("https://localhost:{secure}/v1"), &variables).exits(0);
    assert!(heads.lock().unwrap().is_empty());

    let spared = [("http_proxy", address.as_str()), ("NO_PROXY", "model.invalid")];
    let failed = run(&place, "http://model.invalid/v1", &spared).exits(1);
    assert!(message(&failed).contains("can't be resolved"), "{}", message(&failed));
    assert!(heads.lock().unwrap().is_empty());
    let mut command = place.command(&["doctor"]);
    let doctor = finish(command.env("http_proxy", &address).spawn().unwrap()).exits(0);
    assert!(
        doctor.stdout.contains(&format!("http_proxy: http://127.0.0.1:{port}, with a user")),
        "{doctor:#?}"
    );
    for text in [done.stdout, done.stderr, failed.stdout, failed.stderr, doctor.stdout, doctor.stderr] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    assert!(!holds(&place.state(), PASSWORD));
}

/// However a proxy is written, requests go through it or are not made (C-06).
#[test]
fn a_proxy_is_used_however_it_is_written() {
    let place = place();
    let (port, heads) = proxy(Ok(9));
    for (name, value, sent) in [
        ("http_proxy", format!("127.0.0.1:{port}/"), None),
        ("HTTP_PROXY", format!("  http://127.0.0.1:{port} "), None),
        // An `@` in a password: base64 of `me:p@ss`.
        ("ALL_PROXY", format!("http://me:p@ss@127.0.0.1:{port}"), Some("basic bwu6cebzcw==")),
    ] {
        run(&place, "http://model.invalid/v1", &[(name, &value)]).exits(0);
        let seen = std::mem::take(&mut *heads.lock().unwrap());
        assert!(seen[0].starts_with("POST http://model.invalid/v1/chat/completions "), "{value}: {seen:?}");
        let head = seen[0].to_ascii_lowercase();
        assert!(sent.is_none_or(|sent| head.contains(&format!("proxy-authorization: {sent}"))), "{head}");
    }
    // One that can't be used does not matter to who needs none.
    let (near, _) = serve(endpoint);
    let wrong = [("HTTP_PROXY", "::not a url::"), ("SSL_CERT_FILE", "/nowhere.pem")];
    run(&place, &format!("http://127.0.0.1:{near}/v1"), &wrong).exits(0);
    let refused = run(&place, "http://model.invalid/v1", &wrong).exits(4);
    assert_eq!(refused.error()["code"], "bad-proxy", "{refused:#?}");
    let refused = run(&place, "https://model.invalid/v1", &wrong).exits(4);
    assert_eq!(refused.error()["code"], "bad-certificates", "{refused:#?}");
    assert!(heads.lock().unwrap().is_empty());
}

/// `0.0.0.0` leads to this machine: no proxy and no key of OpenAI's gets there (C-01).
#[test]
fn the_address_of_no_host_is_this_machine() {
    let place = place();
    let (near, seen) = serve(endpoint);
    let (port, heads) = proxy(Ok(9));
    let proxy = format!("http://127.0.0.1:{port}");
    let variables = [("OPENAI_API_KEY", "sk-secret-4711"), ("HTTP_PROXY", proxy.as_str())];
    run(&place, &format!("http://0.0.0.0:{near}/v1"), &variables).exits(0);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(seen[0].starts_with("POST /v1/chat/completions "), "{seen:?}");
    assert!(!seen[0].to_ascii_lowercase().contains("authorization"), "{seen:?}");
    assert!(heads.lock().unwrap().is_empty());
}

#[test]
fn tls_goes_through_a_proxy() {
    let place = place();
    let shown = certificate("model.invalid", Wrong::Nothing);
    let file = place.write("ca.pem", &shown.issuer);
    let (secure, _) = serve_tls(shown);
    let (port, heads) = proxy(Ok(secure));
    let address = format!("http://127.0.0.1:{port}");
    let variables = [("HTTPS_PROXY", address.as_str()), ("SSL_CERT_FILE", file.to_str().unwrap())];
    let done = run(&place, "https://model.invalid/v1", &variables).exits(0);
    assert_eq!(done.json()["output"], "hello");
    assert!(heads.lock().unwrap()[0].starts_with("CONNECT model.invalid:443 "));
}

#[test]
fn a_proxy_that_refuses_is_told_as_such() {
    let place = place();
    let file = place.write("ca.pem", &certificate("x", Wrong::Nothing).issuer);
    let (port, heads) = proxy(Err(407));
    let address = format!("http://user:{PASSWORD}@127.0.0.1:{port}");
    let variables = [("HTTPS_PROXY", address.as_str()), ("SSL_CERT_FILE", file.to_str().unwrap())];
    let tunnel = run(&place, "https://model.invalid/v1", &variables).exits(1);
    assert!(message(&tunnel).contains("the proxy refuses to connect (407)"), "{}", message(&tunnel));
    assert!(message(&tunnel).contains("HTTPS_PROXY"), "{}", message(&tunnel));
    let plain = run(&place, "http://model.invalid/v1", &[("http_proxy", &address)]).exits(1);
    assert!(message(&plain).contains("HTTP_PROXY"), "{}", message(&plain));
    assert_eq!(heads.lock().unwrap().len(), 2, "each was asked once");
    for text in [tunnel.stdout, tunnel.stderr, plain.stdout, plain.stderr] {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    let (port, _) = proxy(Err(502));
    let address = format!("http://127.0.0.1:{port}");
    let variables = [("HTTPS_PROXY", address.as_str()), ("SSL_CERT_FILE", file.to_str().unwrap())];
    let broken = run(&place, "https://model.invalid/v1", &variables).exits(1);
    assert!(message(&broken).contains("the proxy does not connect"), "{}", message(&broken));
}

/// C-03: a refused key is exit 4 also where the run goes on without the node.
#[test]
fn a_refused_key_is_exit_4_whatever_the_run_makes_of_it() {
    for status in [401, 403] {
        let (port, _) = serve(move |_| answer(status, r#"{"error": {"message": "who are you"}}"#));
        let place = place();
        let mut node = says("a", "Go");
        node["on_error"] = json!("continue");
        place.plan("plan.json", json!([node]));
        let done = run(&place, &format!("http://127.0.0.1:{port}/v1"), &[]).exits(4);
        let run = done.json();
        assert_eq!(
            (&run["status"], &run["results"]["a"]["is_success"]),
            (&json!("completed"), &json!(false))
        );
        let id = run["run_id"].as_str().unwrap().to_owned();
        place.run(&["resume", &id, "--json"]).exits(4);
        place.run(&["show", &id, "--json"]).exits(0);
        let (port, _) = serve(move |_| answer(status, r#"{"error": {"message": "who are you"}}"#));
        let url = format!("http://127.0.0.1:{port}/v1");
        let plain = place.run(&["run", "plan.json", "--base-url", &url, "--model", "m"]).exits(4);
        assert!(plain.stderr.contains("node a") && plain.stderr.contains("who are you"), "{plain:#?}");
    }
}

#[test]
fn a_model_that_is_not_there_is_named_with_the_way_to_the_list() {
    let missing = r#"{"error": {"message": "The model `tiny` does not exist", "code": "model_not_found"}}"#;
    let (port, _) = serve(move |_| answer(404, missing));
    let url = format!("http://127.0.0.1:{port}/v1");
    let done = run(&place(), &url, &[]).exits(1);
    for part in ["tiny", "does not exist", &format!("selvedge models --available --base-url {url}")] {
        assert!(message(&done).contains(part), "{}", message(&done));
    }
}

/// A-22: a site leads `http_get` nowhere on this machine, whether that may be reached otherwise or not.
#[test]
fn a_redirect_to_this_machine_is_not_followed() {
    let place = Place::new();
    let (near, heads) = serve(|_| answer(200, "secret"));
    let location = format!("Location: http://127.0.0.1:{near}/\r\nConnection");
    let (site, asked) = serve(move |_| answer(302, "").replace("Connection", &location));
    let proxy = format!("http://127.0.0.1:{site}");
    place.plan("plan.json", json!([calls("a", "http_get", json!({"url": "http://site.invalid/"}))]));
    for (option, why) in [
        ("--allow-network", "a site redirected to this machine"),
        ("--allow-network=local", "a site redirected to this machine"),
    ] {
        let mut command = place.command(&["run", "plan.json", option, "--json"]);
        let done = finish(command.env("http_proxy", &proxy).spawn().unwrap()).exits(1);
        assert!(message(&done).contains(why), "{}", message(&done));
        assert_eq!(done.json()["fault"]["kind"], "denied");
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()).len(), 1);
    }
    assert!(heads.lock().unwrap().is_empty());
}
