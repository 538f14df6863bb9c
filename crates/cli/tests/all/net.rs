//! Small servers for tests, on this machine: an endpoint, with or without TLS, and a proxy.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The head of each request that came.
pub(crate) type Heads = Arc<Mutex<Vec<String>>>;

/// Reads one request: its head, or nothing when the other side is gone.
pub(crate) fn request(stream: &mut impl BufRead) -> Option<String> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(head)
}

/// An HTTP answer that ends the connection.
pub(crate) fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// What an endpoint of one model says to a request.
pub(crate) fn endpoint(head: &str) -> String {
    if head.starts_with("GET ") {
        return answer(200, r#"{"object": "list", "data": [{"id": "tiny"}]}"#);
    }
    let reply = json!({"id": "1", "object": "chat.completion", "model": "tiny", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]});
    answer(200, &reply.to_string())
}

/// Serves `answer` of each request's head; the port.
pub(crate) fn serve(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> (u16, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heads, answer) = (Heads::default(), Arc::new(answer));
    let kept = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                // What is no HTTP gets the answer that servers have for it.
                let head = request(&mut stream);
                let said = head.as_deref().map_or_else(|| self::answer(400, ""), |head| answer(head));
                kept.lock().unwrap().extend(head);
                let _ = stream.get_mut().write_all(said.as_bytes());
            });
        }
    });
    (port, heads)
}

/// A certificate with its key, and the PEM text of whoever is to be trusted for it.
pub(crate) struct Shown {
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
    pub(crate) issuer: String,
    /// The certificate itself, and its key, as files have them.
    pub(crate) pem: (String, String),
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Wrong {
    Nothing,
    Expired,
    SelfSigned,
    Authority,
}

/// A certificate for `name`, by an issuer of its own unless it is its own.
pub(crate) fn certificate(name: &str, wrong: Wrong) -> Shown {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if wrong == Wrong::Expired {
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
    }
    if wrong == Wrong::Authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let (own, issuer) = if matches!(wrong, Wrong::SelfSigned | Wrong::Authority) {
        let own = params.self_signed(&key).unwrap();
        let pem = own.pem();
        (own, pem)
    } else {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, format!("issuer of {name}"));
        let authority_key = KeyPair::generate().unwrap();
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        (params.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap(), pem)
    };
    let pem = (own.pem(), key.serialize_pem());
    Shown { chain: vec![own.der().clone()], key: key.serialize_der(), issuer, pem }
}

/// Serves [`endpoint`] over TLS; the port, and how many connections came.
pub(crate) fn serve_tls(shown: Shown) -> (u16, Arc<Mutex<u32>>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(shown.key));
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(shown.chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            *counted.lock().unwrap() += 1;
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).unwrap();
                let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
                if let Some(head) = request(&mut stream) {
                    let _ = stream.get_mut().write_all(endpoint(&head).as_bytes());
                    stream.get_mut().conn.send_close_notify();
                    let _ = stream.get_mut().flush();
                }
            });
        }
    });
    (port, count)
}

/// A proxy that connects every host to `port` of this machine, or refuses with a status; the heads it got.
pub(crate) fn proxy(to: Result<u16, u16>) -> (u16, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Heads::default();
    let kept = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || one(stream.unwrap(), to, &kept));
        }
    });
    (port, heads)
}

fn one(stream: TcpStream, to: Result<u16, u16>, kept: &Heads) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(head) = request(&mut reader) else { return };
    kept.lock().unwrap().push(head.clone());
    let mut stream = stream;
    let port = match to {
        Ok(port) => port,
        Err(status) => {
            let _ = stream.write_all(answer(status, "").as_bytes());
            return;
        }
    };
    if !head.starts_with("CONNECT ") {
        let _ = stream.write_all(endpoint(&head).as_bytes());
        return;
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
    let (mut up, mut down) = (server.try_clone().unwrap(), stream.try_clone().unwrap());
    let back = std::thread::spawn(move || std::io::copy(&mut server, &mut down).map(drop));
    let _ = std::io::copy(&mut stream, &mut up);
    let _ = back.join();
}

/// Reads everything that a folder holds, for what must not be in it.
pub(crate) fn holds(folder: &std::path::Path, secret: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.map_while(Result::ok).any(|entry| {
        let path = entry.path();
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        path.is_dir() && holds(&path, secret)
            || read.is_ok() && bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
    })
}
