//! `--base-url`: one OpenAI-compatible endpoint for every role, and whose key goes where (C-01, C-06).

use crate::support::{Place, finish, says};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a request said: its line, its Authorization header, its body.
pub(crate) type Seen = Arc<Mutex<Vec<(String, Option<String>, Value)>>>;

/// A server that lists two models and answers every chat with `status` and `body`.
pub(crate) fn serve(status: u16, body: String) -> (String, Seen) {
    serve_each(move |_| (status, body.clone()))
}

/// The same with an answer to each chat's own request.
pub(crate) fn serve_each(answer: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Seen::default();
    let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
            std::thread::spawn(move || serve_one(stream.unwrap(), &*answer, &kept));
        }
    });
    (url, seen)
}

fn serve_one(stream: TcpStream, answer: &dyn Fn(&Value) -> (u16, String), seen: &Seen) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
        let (mut length, mut key) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => key = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut said = vec![0; length];
        reader.read_exact(&mut said).unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap_or_default();
        let answered = answer(&said);
        let list = request.starts_with("GET /v1/models ");
        seen.lock().unwrap().push((request.trim().to_owned(), key, said));
        let (status, body) = if list {
            (200, r#"{"object": "list", "data": [{"id": "first"}, {"id": "second"}]}"#.to_owned())
        } else {
            answered
        };
        let wait = if status == 429 { "Retry-After: 0.5\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{wait}Content-Length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}

pub(crate) fn reply(text: &str) -> String {
    json!({"id": "1", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})
    .to_string()
}

fn place() -> Place {
    let place = Place::new();
    place.plan("plan.json", json!([says("a", "Go")]));
    place
}

#[test]
fn the_first_listed_model_answers_and_a_resume_knows_it() {
    let (url, seen) = serve(200, reply("hello"));
    let place = place();
    let run = place.run(&["run", "plan.json", "--base-url", &url, "--json", "--run-id", "r"]).exits(0).json();
    assert_eq!((&run["output"], &run["scripted"]), (&json!("hello"), &json!(false)));
    assert_eq!((&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]), (&json!(7), &json!(3)));
    let seen = seen.lock().unwrap();
    let lines: Vec<&str> = seen.iter().map(|(line, ..)| line.as_str()).collect();
    assert_eq!(lines, ["GET /v1/models HTTP/1.1", "POST /v1/chat/completions HTTP/1.1"]);
    assert_eq!(seen[1].2["model"], "first");
}

/// E-20: a figure that is none is told where a budget counts tokens; the other one counts.
#[test]
fn a_figure_that_is_none_is_told() {
    for (usage, of, counted) in [
        (r#"{"prompt_tokens": -5, "completion_tokens": 3}"#, "of the prompt is", 3),
        (r#"{"prompt_tokens": 7, "completion_tokens": 1e30}"#, "of the reply is", 7),
        (
            r#"{"prompt_tokens": "seven", "completion_tokens": []}"#,
            "of the prompt and those of the reply is",
            0,
        ),
    ] {
        let mut body: Value = serde_json::from_str(&reply("hello")).unwrap();
        body["usage"] = serde_json::from_str(usage).unwrap();
        let (url, _) = serve(200, body.to_string());
        let args = ["run", "plan.json", "--base-url", &url, "--model", "m", "--json"];
        let run = |more: &[&str]| place().run(&[&args[..], more].concat()).exits(0).json();
        let told = run(&["--budget", "tokens=100"]);
        let warning = &told["warnings"][0];
        assert_eq!(warning["code"], "no-usage", "{told}");
        assert!(warning["message"].as_str().unwrap().contains(of), "{warning}");
        let usage = &told["usage"];
        let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert_eq!(sum, counted, "{told}");
        assert_eq!(run(&[])["warnings"], json!([]));
    }
}

/// E-20: so it is of an attempt that came to nothing; one that says nothing of tokens is not told.
#[test]
fn a_figure_that_is_none_is_told_of_a_failure() {
    for (usage, told) in [(json!({"prompt_tokens": -5, "completion_tokens": 3}), true), (Value::Null, false)]
    {
        let body = json!({"error": {"message": "no", "type": "invalid_request_error"}, "usage": usage});
        let (url, _) = serve(400, body.to_string());
        let args =
            ["run", "plan.json", "--base-url", &url, "--model", "m", "--budget", "tokens=100", "--json"];
        let run = place().run(&args).exits(1).json();
        let codes: Vec<&Value> = run["warnings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
        assert_eq!(codes.contains(&&json!("no-usage")), told, "{run}");
    }
}

#[test]
fn a_named_model_needs_no_list() {
    let (url, seen) = serve(200, reply("hello"));
    let args = ["run", "plan.json", "--base-url", &url, "--model", "other", "--model", "judge=big"];
    place().run(&args).exits(0);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].2["model"], "other");
}

#[test]
fn only_selvedge_s_own_key_goes_to_this_machine() {
    let keys = |variables: &[(&str, &str)]| {
        let (url, seen) = serve(200, reply("hello"));
        let place = place();
        let mut command = place.command(&["run", "plan.json", "--base-url", &url]);
        finish(command.envs(variables.iter().copied()).spawn().unwrap()).exits(0);
        let seen = seen.lock().unwrap();
        seen.iter().map(|(_, key, _)| key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[("OPENAI_API_KEY", "sk-openai-secret")]), [None, None]);
    let own = Some("Bearer sk-selvedge-secret".to_owned());
    let both = [("OPENAI_API_KEY", "sk-openai-secret"), ("SELVEDGE_API_KEY", "sk-selvedge-secret")];
    assert_eq!(keys(&both), [own.clone(), own]);
}

#[test]
fn a_refused_key_is_exit_4_and_is_shown_nowhere() {
    let (url, _) = serve(401, json!({"error": {"message": "wrong key sk-selvedge-secret"}}).to_string());
    let place = place();
    let mut command = place.command(&["run", "plan.json", "--base-url", &url, "--json", "-v"]);
    let done = finish(command.env("SELVEDGE_API_KEY", "sk-selvedge-secret").spawn().unwrap()).exits(4);
    assert_eq!(done.json()["fault"]["kind"], "provider_error");
    // A model that says the key does not get it printed either.
    let (url, _) = serve(200, reply("the key is sk-selvedge-secret"));
    let mut command = place.command(&["run", "plan.json", "--base-url", &url, "-v"]);
    let said = finish(command.env("SELVEDGE_API_KEY", "sk-selvedge-secret").spawn().unwrap()).exits(0);
    assert_eq!(said.stdout, "the key is [redacted]\n");
    for text in [done.stdout, done.stderr, said.stderr] {
        assert!(!text.contains("sk-selvedge-secret"), "{text}");
    }
    for entry in std::fs::read_dir(place.state()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(18).any(|part| part == b"sk-selvedge-secret");
            assert!(!found, "in {}", path.display());
        }
    }
}

#[test]
fn an_endpoint_that_is_not_there_is_exit_4_before_anything_is_recorded() {
    let place = place();
    let done = place.run(&["run", "plan.json", "--base-url", "http://127.0.0.1:9/v1", "--json"]).exits(4);
    assert_eq!(done.stdout, "");
    assert!(!place.state().exists());
    place.run(&["run", "plan.json", "--base-url", "no address", "--model", "m"]).exits(2);
}

/// A workflow that asks a model on each of so many paths at once.
fn many_paths(place: &Place, paths: usize) {
    let each: Vec<usize> = (0..paths).collect();
    let document = json!({
        "inputs": {"each": {"type": "array", "default": each}},
        "nodes": [
            {"id": "start", "type": "START"},
            {"id": "each", "type": "FORK", "config": {"forkStrategy": "parallel", "forEach": "{{inputs.each}}", "childNodeIds": ["ask"]}},
            {"id": "ask", "type": "LLM", "config": {"prompt": "Number {{item}}"}},
            {"id": "all", "type": "JOIN", "config": {"joinStrategy": "ALL_COMPLETED"}},
            {"id": "end", "type": "END"},
        ],
        "edges": [
            {"from": "start", "to": "each"},
            {"from": "ask", "to": "all"},
            {"from": "all", "to": "end"},
        ],
    });
    place.write("many.json", &document.to_string());
}

/// A server that answers one chat at a time, and others with 429.
fn one_at_a_time() -> (String, Seen) {
    let busy = AtomicBool::new(false);
    serve_each(move |_| {
        if busy.swap(true, Ordering::SeqCst) {
            return (429, r#"{"error": {"message": "one at a time"}}"#.to_owned());
        }
        std::thread::sleep(Duration::from_millis(60));
        busy.store(false, Ordering::SeqCst);
        (200, reply("done"))
    })
}

/// E-51: what the server asks of some holds for all, and once it is known that it takes one request at a time, it is sent one at a time.
#[test]
fn many_requests_have_their_turn_at_a_server_that_takes_one() {
    let (url, seen) = one_at_a_time();
    let place = Place::new();
    many_paths(&place, 16);
    let began = Instant::now();
    let run = place.run(&["run", "many.json", "--base-url", &url, "--model", "m", "--json"]).exits(0).json();
    let (sent, took) = (seen.lock().unwrap().len(), began.elapsed());
    assert_eq!(run["usage"]["model_calls"], json!(sent), "each request that was sent counts");
    assert!(
        (16..=36).contains(&sent),
        "{sent} requests: those of the beginning, and one more for each that was refused"
    );
    // A second of work, half a second that the server asks for, and at most as much by chance.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// E-51: with its limit configured no request is refused, and who looks on is told what is waited for.
#[test]
fn a_configured_limit_keeps_requests_from_being_refused() {
    let (url, seen) = one_at_a_time();
    let place = Place::new();
    many_paths(&place, 6);
    let model = format!("[models.m]\nmodel = \"x\"\nbase_url = \"{url}\"\nmax_parallel = 1\n");
    place.write("selvedge.toml", &model);
    let done = place.run(&["run", "many.json", "-v", "--json"]).exits(0);
    assert_eq!(seen.lock().unwrap().len(), 6);
    assert!(done.stderr.contains("waits for its turn at http://127.0.0.1"), "{}", done.stderr);
    let listed = place.run(&["models", "--json"]).exits(0).json();
    assert_eq!(listed["models"][0]["max_parallel"], json!(1));
}
