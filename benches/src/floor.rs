//! What a workload over HTTP takes without any of ours: plain blocking sockets, a thread for each, one request written
//! before the time begins. Nothing that speaks HTTP to the same server can be much faster.

use crate::Result;
use crate::measure::median;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::time::Instant;

/// The median time of `threads` threads that each send `requests` requests one after the other, and of one request
/// after all of them, in seconds. With `stream` the answers are asked for as streams, as ours are.
pub(crate) fn waves(threads: usize, requests: usize, stream: bool) -> Result<f64> {
    let base = std::env::var("BENCH_BASE_URL")?;
    let address = base.trim_start_matches("http://").trim_end_matches("/v1");
    let messages = [json!({"role": "user", "content": "node 0"})];
    let body = json!({"model": "mock?latency=50", "messages": messages, "stream": stream}).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    median(|| {
        let ready = Barrier::new(threads + 1);
        std::thread::scope(|scope| {
            let run = |requests: usize| -> std::io::Result<()> {
                let mut stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                // Connecting is not what is measured.
                exchange(&mut stream, &request)?;
                ready.wait();
                (0..requests).try_for_each(|_| exchange(&mut stream, &request))
            };
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(move || run(requests))).collect();
            let mut last = TcpStream::connect(address)?;
            exchange(&mut last, &request)?;
            ready.wait();
            let start = Instant::now();
            for thread in all {
                thread.join().map_err(|_| "a thread of the bench panicked")??;
            }
            exchange(&mut last, &request)?;
            Ok(start.elapsed().as_secs_f64())
        })
    })
}

/// One request and its whole answer.
fn exchange(stream: &mut TcpStream, request: &str) -> std::io::Result<()> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend(part.iter().take(count));
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            let whole = match length.and_then(|length| length.trim().parse::<usize>().ok()) {
                Some(length) => body.len() >= length,
                None => body.ends_with("0\r\n\r\n"),
            };
            if whole {
                return Ok(());
            }
        }
    }
}
