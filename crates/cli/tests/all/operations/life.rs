//! A tool's life in a task: drafted, bound, called, proven, ended.

use super::*;

/// A-08, A-14, A-15, A-19: a tool that a coder wrote is called, found to work, and everybody's at the end.
#[tokio::test]
async fn a19_a_tool_that_was_proven_becomes_public() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let drafted = process.draft("d", "read_date", &file("read_date", "", DATES), json!({})).await;
    assert_eq!((&drafted["ok"], &drafted["errors"]), (&json!(true), &json!([])), "{drafted}");
    assert_eq!(drafted["tool"]["source"], "library");
    assert_eq!(process.stage(&drafted["version"]), Some("private"));
    let listed = process.ask(known::tools(), "t", json!({"depth": 0})).await;
    assert_eq!(
        listed["tools"][0],
        json!({"name": "read_date", "description": "Reads dates", "from": "task"})
    );
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["from"] == "configured"));

    let bound = process
        .ask(known::bindings(), "b", json!({"depth": 0, "names": ["read_date", "read_file", "nowhere"]}))
        .await;
    assert_eq!(bound["tools"]["read_date"], drafted["tool"]);
    assert_eq!(bound["tools"]["read_file"]["source"], "built-in");
    assert_eq!((&bound["missing"], &bound["refused"]), (&json!(["nowhere"]), &json!({})));

    let call = process.call("c1", &drafted["tool"], json!({"text": "1.3.2024"})).await;
    assert_eq!(call["output"], json!({"date": "2024-03-01"}));
    let (looked, settled) = process.settle("1", &[call], "Success").await;
    assert!(looked["ask"][0]["question"].as_str().unwrap().contains("2024-03-01"), "{looked}");
    assert_eq!(settled, json!({"say": "", "proven": ["read_date"], "mend": []}));
    // What is proven is not asked about again.
    let call = process.call("c2", &drafted["tool"], json!({"text": "2.3.2024"})).await;
    let (looked, settled) = process.settle("2", &[call], "Success").await;
    assert_eq!(looked, json!({"ask": [], "failed": [], "misused": [], "keep": ["c2"]}));
    assert_eq!(settled["proven"], json!([]));

    let ended = process.ask(known::end(), "e", json!({"depth": 0, "publish": true})).await;
    let tool = json!({"name": "read_date", "version": drafted["version"], "state": "public", "how": "built"});
    assert_eq!(ended, json!({"tools": [tool]}));
    let library = process.library();
    let public = library.public("read_date").unwrap();
    assert_eq!((&*public.hash, public.calls.len()), (drafted["version"].as_str().unwrap(), 2));
    assert!(library.open_tasks().is_empty());
}

/// A-18: two paths and two runs that make a tool of the same name do not meet, and nobody else sees either.
#[tokio::test]
async fn a18_each_task_has_its_own_tool() {
    let folder = Folder::new();
    let (one, two) = (Process::start(&folder, "r1").await, Process::start(&folder, "r2").await);
    let texts = ["return {'n': 1}", "return {'n': 2}", "return {'n': 3}"]
        .map(|body| file("it", "", &format!("    {body}")));
    let args = |text: &str, depth: u32| json!({"depth": depth, "name": "it", "file": text, "coder": "model", "request": {}});
    let draft = known::draft;
    let a = one.asks(draft(), "fork~1[a]/make~1/it/call/1/1", args(&texts[0], 1)).await.unwrap();
    let b = one.asks(draft(), "fork~1[b]/it/call/1/1", args(&texts[1], 0)).await.unwrap();
    let c = two.asks(draft(), "fork~1[a]/it/call/1/1", args(&texts[2], 0)).await.unwrap();
    for (process, place, made) in [(&one, "fork~1[a]", &a), (&one, "fork~1[b]", &b), (&two, "fork~1[a]", &c)]
    {
        let args = json!({"depth": 0, "names": ["it"]});
        let bound = process.asks(known::bindings(), &format!("{place}/b/call/1/1"), args).await.unwrap();
        assert_eq!(bound["tools"]["it"], made["tool"], "{place}");
    }
    let args = json!({"depth": 0, "names": ["it"]});
    assert_eq!(two.asks(known::bindings(), "b/call/1/1", args).await.unwrap()["missing"], json!(["it"]));
    assert!(two.asks(known::bindings(), "b/call/1/1", json!({"depth": 1, "names": []})).await.is_err());
}

/// A-08, A-28: what is no tool, or not the one that was asked for, is told what is wrong, and leaves nothing.
#[tokio::test]
async fn a28_what_a_coder_gets_wrong_is_told() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let net = file("it", ", 'network': True", "    return {}");
    for (n, (file, why)) in [
        (json!({"file": null, "reply": null}), "nothing was written"),
        (json!({"file": null, "reply": "I can't."}), "no file"),
        (json!({"file": "def run(:"}), "syntax"),
        (json!({"file": "x = 1\n"}), "__TOOL_META__"),
        (json!({"file": file("other", "", "    return {}")}), "has to be \"it\""),
        (json!({"file": net}), "not allowed in this run"),
        (
            json!({"file": file("it", "", "    return {}").replace("import time", "import nothing_there")}),
            "nothing_there",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let drafted = process.draft(&format!("d{n}"), "it", "", file).await;
        let errors = drafted["errors"][0].as_str().unwrap_or_default();
        assert!(
            drafted["ok"] == false && errors.to_lowercase().contains(&why.to_lowercase()),
            "{why}: {drafted}"
        );
        assert!(!errors.contains("selvedge-draft-"), "no place of this machine: {errors}");
    }
    assert!(process.library().is_empty());
    let reply = format!("Here:\n```python\n{}```\n", file("it", "", "    return {}"));
    let drafted = process.draft("d9", "it", "", json!({"file": null, "reply": reply})).await;
    assert_eq!(drafted["ok"], true, "{drafted}");
}

/// A-18, A-23: what a task has drafted is callable in another process, whatever became of the cache.
#[tokio::test]
async fn a18_a_resumed_run_calls_the_same_version() {
    let folder = Folder::new();
    let process = Process::start(&folder, "r1").await;
    let drafted = process.draft("d", "read_date", &file("read_date", "", DATES), json!({})).await;
    drop(process);
    std::fs::remove_dir_all(folder.at("state/cache")).unwrap();
    let process = Process::start(&folder, "r1").await;
    let call = process.call("c1", &drafted["tool"], json!({"text": "1.3.2024"})).await;
    assert_eq!(call["output"], json!({"date": "2024-03-01"}), "{call}");
    let bound = process.ask(known::bindings(), "b", json!({"depth": 0, "names": ["read_date"]})).await;
    assert_eq!(bound["tools"]["read_date"], drafted["tool"]);
}

/// A-22: what the user points at goes before what is everybody's, and a task's own before both.
#[tokio::test]
async fn a22_a_task_s_own_tool_goes_first() {
    let folder = Folder::new();
    std::fs::write(folder.at("tools/it.py"), file("it", "", "    return {'from': 'file'}")).unwrap();
    let process = Process::start(&folder, "r1").await;
    let names = json!({"depth": 0, "names": ["it"]});
    let bound = process.ask(known::bindings(), "b1", names.clone()).await;
    assert!(bound["tools"]["it"]["source"].as_str().unwrap().ends_with("it.py"), "{bound}");
    let drafted = process.draft("d", "it", &file("it", "", "    return {'from': 'task'}"), json!({})).await;
    let bound = process.ask(known::bindings(), "b2", names).await;
    assert_eq!(bound["tools"]["it"], drafted["tool"]);
}
