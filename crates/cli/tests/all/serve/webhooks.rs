//! Webhooks (S-09), to a receiver on this machine.

use super::http::{PATIENCE, Server, asking, greeting};
use crate::support::Place;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What came.
#[derive(Clone, Debug)]
struct Told {
    path: String,
    id: String,
    body: Value,
}

/// What it answers: of the request of that number; nothing means that it never does.
type Answers = dyn Fn(usize, &Told) -> Option<u16> + Send + Sync;

/// Somebody who is told, and believes only what is signed.
struct Receiver {
    port: u16,
    told: Arc<(Mutex<Vec<Told>>, Condvar)>,
}

impl Receiver {
    fn start(answers: impl Fn(usize, &Told) -> Option<u16> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = Arc::<(Mutex<Vec<Told>>, Condvar)>::default();
        let (kept, answers) = (Arc::clone(&told), Arc::<Answers>::from(Box::new(answers) as Box<Answers>));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, answers) = (Arc::clone(&kept), Arc::clone(&answers));
                std::thread::spawn(move || one(stream.unwrap(), &kept, &*answers));
            }
        });
        Self { port, told }
    }

    /// What has come once it is so much.
    fn wait(&self, count: usize) -> Vec<Told> {
        self.until(|told| told.len() >= count)
    }

    fn until(&self, enough: impl Fn(&[Told]) -> bool) -> Vec<Told> {
        let deadline = Instant::now() + PATIENCE;
        let mut told = self.told.0.lock().unwrap();
        while !enough(&told) {
            assert!(Instant::now() < deadline, "{told:#?}");
            told = self.told.1.wait_timeout(told, Duration::from_millis(100)).unwrap().0;
        }
        told.clone()
    }
}

/// Takes requests of one connection.
fn one(stream: TcpStream, kept: &(Mutex<Vec<Told>>, Condvar), answers: &Answers) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let field = |name: &str| {
            let lines = head.iter().filter_map(|line| line.split_once(": "));
            lines
                .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
                .next()
                .unwrap_or_default()
        };
        let mut body = vec![0; field("content-length").parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        let (id, at, signature) =
            (field("webhook-id"), field("webhook-timestamp"), field("webhook-signature"));
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(&SECRET[6..]).unwrap());
        let tag = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        let signed = [format!("{id}.{at}.").as_bytes(), &body].concat();
        hmac::verify(&key, &signed, &tag).unwrap();
        let path = head[0].split(' ').nth(1).unwrap().to_owned();
        let told = Told { path, id: id.to_owned(), body: serde_json::from_slice(&body).unwrap() };
        let count = {
            let mut kept = kept.0.lock().unwrap();
            kept.push(told.clone());
            kept.len() - 1
        };
        kept.1.notify_all();
        match answers(count, &told) {
            Some(status) => {
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            None => std::thread::sleep(PATIENCE * 2),
        }
    }
}

fn place(port: u16, more: &str) -> Place {
    let place = Place::new();
    place.write("replies.yaml", "- reply: {text: Hello.}\n");
    place.write("broken.yaml", "- reply: {error: {status: 400, message: gone}}\n");
    place.write(
        "selvedge.toml",
        &format!("[[webhooks]]\nurl = \"http://127.0.0.1:{port}/all\"\nsecret_env = \"HOOK_SECRET\"\n{more}"),
    );
    place
}

fn serve(place: &Place, more: &[&str]) -> Server {
    Server::of(place, &[&["--trust"], more].concat(), |command| {
        command.env("HOOK_SECRET", SECRET).stderr(std::process::Stdio::inherit());
    })
}

/// Of `/all`, by run and event: what was told of each run.
fn of<'t>(told: &'t [Told], run: &str) -> Vec<&'t str> {
    let told = told.iter().filter(|told| told.path == "/all" && told.body["data"]["run_id"] == run);
    told.map(|told| told.body["type"].as_str().unwrap()).collect()
}

#[test]
fn s09_receivers_are_told_what_becomes_of_runs() {
    let receiver = Receiver::start(|_, _| Some(204));
    let port = receiver.port;
    let place = place(
        port,
        &format!(
            "[[webhooks]]\nurl = \"http://127.0.0.1:{port}/ends\"\nevents = [\"completed\"]\nsecret_env = \"HOOK_SECRET\"\n"
        ),
    );
    let server = serve(&place, &["--script", "replies.yaml"]);
    let done = server.begin(greeting());
    let waits = server.begin(asking());
    server.wait(&done, "completed");
    server.wait(&waits, "waiting");
    // One that another process drives, and one that is cancelled.
    place.write("plan.json", &greeting().to_string());
    place.run(&["run", "plan.json", "--script", "broken.yaml", "--run-id", "elsewhere"]).exits(1);
    server.ask("POST", &format!("/v1/runs/{waits}/cancel"), None).is(200);
    let told = receiver.wait(5);
    assert_eq!(of(&told, &done), ["run.completed"]);
    assert_eq!(of(&told, "elsewhere"), ["run.failed"]);
    let mut both = of(&told, &waits);
    both.sort_unstable();
    assert_eq!(both, ["run.cancelled", "run.waiting"]);
    let ends: Vec<&Value> =
        told.iter().filter(|told| told.path == "/ends").map(|told| &told.body["data"]["run_id"]).collect();
    assert_eq!(ends, [&json!(done)]);
    let find =
        |kind: &str| told.iter().find(|told| told.body["type"] == kind && told.path == "/all").unwrap();
    let data = &find("run.waiting").body["data"];
    assert_eq!(
        (&data["name"], &data["status"], &data["asks"][0]["kind"]),
        (&json!("Asking"), &json!("waiting"), &json!("answer"))
    );
    assert_eq!(find("run.failed").body["data"]["fault"]["kind"], "provider_error");
    assert_eq!(find("run.completed").body["data"]["usage"]["model_calls"], 1);
    let mut ids: Vec<&str> = told.iter().map(|told| &*told.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5, "{told:#?}");
    let metrics = server.ask("GET", "/metrics", None).is(200).body;
    assert!(metrics.contains("selvedge_webhook_attempts_total{outcome=\"taken\"} "), "{metrics}");
}

/// What the receiver can mend is tried again under the same id; what it refuses is not.
#[test]
fn s09_what_did_not_arrive_is_sent_again() {
    let receiver = Receiver::start(|count, told| match (count, &told.body["type"]) {
        (0, _) => Some(503),
        (1, _) => Some(429),
        (_, kind) if kind == "run.waiting" => Some(404),
        _ => Some(200),
    });
    let place = place(receiver.port, "");
    let server = serve(&place, &["--script", "replies.yaml"]);
    let run = server.begin(greeting());
    let told = receiver.wait(3);
    assert!(told.iter().all(|one| one.id == told[0].id && one.body == told[0].body), "{told:#?}");
    let waits = server.begin(asking());
    receiver.until(|told| !of(told, &waits).is_empty());
    server.ask("POST", &format!("/v1/runs/{waits}/cancel"), None).is(200);
    let told = receiver.until(|told| of(told, &waits).len() > 1);
    assert_eq!(of(&told, &waits), ["run.waiting", "run.cancelled"]);
    assert_eq!(of(&told, &run).len(), 3);
}

/// A server that is killed before a delivery has arrived owes it to its next start, and so does a run that ends while there is none.
#[test]
fn s09_deliveries_outlive_the_server() {
    let receiver = Receiver::start(|count, _| (count > 0).then_some(200));
    let place = place(receiver.port, "");
    let server = serve(&place, &["--script", "replies.yaml"]);
    let run = server.begin(greeting());
    let first = receiver.wait(1).remove(0);
    assert_eq!(first.body["data"]["run_id"], run);
    server.kill();
    place.write("plan.json", &greeting().to_string());
    place.run(&["run", "plan.json", "--script", "replies.yaml", "--run-id", "meanwhile"]).exits(0);

    let server = serve(&place, &["--script", "replies.yaml"]);
    let told = receiver.wait(3);
    let again = told[1..].iter().find(|told| told.body["data"]["run_id"] == run).unwrap();
    assert_eq!((&again.id, &again.body), (&first.id, &first.body));
    assert_eq!(of(&told, "meanwhile"), ["run.completed"]);
    // What has arrived is not owed any more, once that is noted.
    let deadline = Instant::now() + PATIENCE;
    while !server.ask("GET", "/metrics", None).is(200).body.contains("selvedge_webhook_deliveries_owed 0\n") {
        assert!(Instant::now() < deadline, "all have arrived");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill();
    let server = serve(&place, &["--script", "replies.yaml"]);
    let last = server.begin(greeting());
    let told = receiver.until(|told| !of(told, &last).is_empty());
    assert_eq!(told.len(), 4, "{told:#?}");
}

#[test]
fn s09_what_is_wrong_is_said_before_anything_is_served() {
    let place = place(1, "");
    let code = |secret: Option<&str>, more: &[&str]| {
        let mut command = place.command(&[&["serve", "--listen", "127.0.0.1:0", "--json"], more].concat());
        secret.map(|secret| command.env("HOOK_SECRET", secret));
        let done = crate::support::finish(command.spawn().unwrap());
        (done.code, done.error()["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(code(None, &["--trust"]), (4, "no-webhook-secret".to_owned()));
    assert_eq!(code(Some("whsec_short"), &["--trust"]), (4, "bad-webhook-secret".to_owned()));
    for (text, wrong) in [
        ("[[webhooks]]\nurl = \"ftp://x/\"\nsecret_env = \"S\"\n", "bad-webhook"),
        ("[[webhooks]]\nurl = \"http://x/\"\n", "missing-field"),
        ("[[webhooks]]\nurl = \"http://x/\"\nsecret_env = \"S\"\nevents = [\"begun\"]\n", "bad-event"),
        ("webhooks = 3\n", "wrong-type"),
    ] {
        place.write("selvedge.toml", text);
        assert_eq!(code(None, &["--trust"]), (4, wrong.to_owned()), "{text}");
    }
}
