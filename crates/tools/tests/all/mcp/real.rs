//! Servers that others have written, from npm.

use crate::mcp::support::{Place, call, from_npm, over_http, server, watched};
use selvedge_engine::{Effects, FaultKind};
use selvedge_tools::mcp::{Hidden, Reached};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

fn script(modules: &Path, name: &str) -> Hidden {
    Hidden(modules.join("@modelcontextprotocol").join(name).join("dist/index.js").display().to_string())
}

async fn everything(place: &Place, catalogue: selvedge_tools::Catalogue) {
    let _ = place;
    let echo = catalogue.def("e__echo").unwrap();
    assert_eq!((echo.effects, &*echo.source), (Some(Effects::Read), "mcp:e"));
    assert_eq!(call(&catalogue, "e__echo", json!({"message": "héllo"})).await.unwrap(), json!("Echo: héllo"));
    let sum = call(&catalogue, "e__get-sum", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!(sum, json!("The sum of 2 and 3 is 5."));
    // Structured content, with the names that go to the metadata (D-24).
    let weather = catalogue.def("e__get-structured-content").unwrap();
    assert!(
        weather.output_params.as_ref().unwrap().names().iter().any(|name| &**name == "temperature"),
        "{weather:?}"
    );
    let output = call(&catalogue, "e__get-structured-content", json!({"location": "Chicago"})).await.unwrap();
    assert!(output["temperature"].is_number(), "{output}");
    // Images and links are described.
    let image = call(&catalogue, "e__get-tiny-image", json!({})).await.unwrap();
    let image = image.as_array().unwrap().iter().find(|block| block["type"] == "image").unwrap().clone();
    assert!(image["bytes"].as_u64().unwrap() > 100 && image.get("data").is_none(), "{image}");
    let links = call(&catalogue, "e__get-resource-links", json!({"count": 2})).await.unwrap();
    assert!(links.as_array().unwrap().iter().any(|block| block["type"] == "resource_link"), "{links}");
    let failure = call(&catalogue, "e__get-sum", json!({"a": "two", "b": 3})).await.unwrap_err();
    assert!(matches!(failure.fault.kind, FaultKind::ExecutionFailure | FaultKind::InputError), "{failure:?}");
    let args = json!({"duration": 1, "steps": 4});
    let (output, lines) = watched(&catalogue, "e__trigger-long-running-operation", args).await;
    assert!(output.unwrap().as_str().unwrap().contains("completed"));
    assert!(lines.len() >= 3 && lines[0].starts_with("1/4"), "{lines:?}");
    catalogue.close().await;
}

#[tokio::test]
async fn everything_over_stdio() {
    let Some((node, modules)) = from_npm() else { return };
    let place = Place::new();
    let server = server("e", &node, &[script(&modules, "server-everything")], place.dir.path());
    let catalogue = place.catalogue(vec![server], &["e__echo"]).await;
    everything(&place, catalogue).await;
}

#[tokio::test]
async fn everything_over_http() {
    let Some((node, modules)) = from_npm() else { return };
    let place = Place::new();
    let (mut child, port) = serving(&node, &script(&modules, "server-everything"), "streamableHttp", 0).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let catalogue = place.catalogue(vec![over_http("e", &url)], &["e__echo"]).await;
    everything(&place, catalogue).await;
    // Restarted, it knows no session, and says so with a 400.
    let catalogue = place.catalogue(vec![over_http("e", &url)], &["e__echo"]).await;
    assert!(call(&catalogue, "e__echo", json!({"message": "a"})).await.is_ok());
    child.kill().await.unwrap();
    let failure = call(&catalogue, "e__echo", json!({"message": "a"})).await.unwrap_err();
    assert!(failure.transient && failure.unsent, "{failure:?}");
    (child, _) = serving(&node, &script(&modules, "server-everything"), "streamableHttp", port).await;
    let began = std::time::Instant::now();
    assert_eq!(call(&catalogue, "e__echo", json!({"message": "b"})).await.unwrap(), json!("Echo: b"));
    assert!(began.elapsed() < Duration::from_secs(10));
    // A server that is gone is a transient fault that says so.
    let catalogue = place.catalogue(vec![over_http("e", &url)], &["e__echo"]).await;
    child.kill().await.unwrap();
    let failure = call(&catalogue, "e__echo", json!({"message": "a"})).await.unwrap_err();
    assert!(failure.transient && failure.fault.message.contains("`e`"), "{failure:?}");
}

/// The transport of 2024-11-05: where it is named, and where an address is tried as one of streamable HTTP first.
#[tokio::test]
async fn everything_over_sse() {
    let Some((node, modules)) = from_npm() else { return };
    let (mut child, port) = serving(&node, &script(&modules, "server-everything"), "sse", 0).await;
    let url = format!("http://127.0.0.1:{port}/sse");
    for named in [true, false] {
        let place = Place::new();
        let mut server = over_http("e", &url);
        if let Reached::Url { sse, .. } = &mut server.reached {
            *sse = named;
        }
        let catalogue = place.catalogue(vec![server], &["e__echo"]).await;
        everything(&place, catalogue).await;
    }
    let place = Place::new();
    let catalogue = place.catalogue(vec![over_http("e", &url)], &["e__echo"]).await;
    child.kill().await.unwrap();
    let failure = call(&catalogue, "e__echo", json!({"message": "a"})).await.unwrap_err();
    assert!(failure.transient && failure.unsent, "{failure:?}");
    (child, _) = serving(&node, &script(&modules, "server-everything"), "sse", port).await;
    assert_eq!(call(&catalogue, "e__echo", json!({"message": "b"})).await.unwrap(), json!("Echo: b"));
    drop(child);
}

/// The server over HTTP, at a port of its own or at this one.
async fn serving(node: &str, script: &Hidden, transport: &str, at: u16) -> (Child, u16) {
    for _ in 0..5 {
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = if at == 0 { free() } else { at };
        let mut child = Command::new(node)
            .args([&script.0, transport])
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("listening") || line.contains("is running on port") {
                    return true;
                }
            }
            false
        };
        if tokio::time::timeout(Duration::from_secs(30), listening).await == Ok(true) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, port);
        }
    }
    panic!("the server does not listen");
}

#[tokio::test]
async fn files_over_stdio() {
    let Some((node, modules)) = from_npm() else { return };
    let place = Place::new();
    let folder = place.dir.path().canonicalize().unwrap().join("files");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
    let args = [script(&modules, "server-filesystem"), Hidden(folder.display().to_string())];
    let catalogue =
        place.catalogue(vec![server("fs", &node, &args, &folder)], &["write_file_of_nobody"]).await;
    // A bare name of a built-in stays the built-in's; others mean the server's.
    assert_eq!(&*catalogue.def("read_file").unwrap().source, "built-in");
    let write = catalogue.def("fs__write_file").unwrap();
    assert!(matches!(write.effects, Some(Effects::Write | Effects::Idempotent)), "{write:?}");
    let path = |name: &str| folder.join(name).display().to_string();
    let output = call(&catalogue, "fs__read_text_file", json!({"path": path("a.txt")})).await.unwrap();
    let content = match &output {
        Value::Object(fields) => fields["content"].clone(),
        other => other.clone(),
    };
    assert_eq!(content, json!("one\ntwo\n"), "{output}");
    call(&catalogue, "fs__write_file", json!({"path": path("b.txt"), "content": "é"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("b.txt")).unwrap(), "é");
    let failure = call(&catalogue, "fs__read_text_file", json!({"path": "/etc/passwd"})).await.unwrap_err();
    assert!(
        failure.fault.message.contains("denied") || failure.fault.message.contains("outside"),
        "{failure:?}"
    );
}
