use super::*;
use selvedge_engine::Budget;
use selvedge_host::Error;
use selvedge_host::options::{EVERY_ROLE, input_texts};
use selvedge_tools::Network;
use serde_json::{Map, Value};

fn run(edit: impl FnOnce(&mut Exec)) -> RunOptions {
    let mut exec = Exec::default();
    edit(&mut exec);
    from_options(&Environment::default(), &exec).unwrap()
}

#[test]
fn a_script_takes_the_place_of_an_endpoint_and_the_other_way_round() {
    let endpoint = run(|exec| {
        exec.base_url = Some("http://127.0.0.1:1/v1".into());
        exec.model = vec!["small".into(), "judge=big".into()];
    });
    let script = run(|exec| exec.script = Some("/tmp/s.yaml".into()));
    let scripted = endpoint.clone().under(script.clone());
    assert_eq!((&scripted.base_url, scripted.models.len()), (&None, 0));
    assert_eq!(scripted.script, script.script);
    let back = scripted.under(endpoint.clone());
    assert_eq!((back.script, back.base_url), (None, endpoint.base_url));
}

#[test]
fn a_model_alone_keeps_the_endpoint() {
    let endpoint = run(|exec| exec.base_url = Some("http://127.0.0.1:1/v1".into()));
    let model = run(|exec| exec.model = vec!["other".into()]);
    let both = endpoint.under(model);
    assert_eq!(both.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!(both.models[EVERY_ROLE], "other");
}

#[test]
fn a_model_name_may_hold_an_equals_sign() {
    let chosen = run(|exec| exec.model = vec!["mock?latency=50".into(), "judge=mock?tools=1".into()]);
    assert_eq!(chosen.models[EVERY_ROLE], "mock?latency=50");
    assert_eq!(chosen.models["judge"], "mock?tools=1");
}

/// What a run that was begun with `stored` goes on with.
fn resumed(stored: &str, exec: &Exec) -> RunOptions {
    let over = for_resume(&Environment::default(), exec).unwrap();
    RunOptions::read(stored).unwrap().under(over)
}

#[test]
fn options_go_over_what_was_stored_and_permissions_add_up() {
    let stored = run(|exec| {
        exec.from.grants.allow_write = vec!["/a".into()];
        exec.max_parallel = Some(2);
        exec.budget = Some("calls=1,cost=2".into());
    });
    let json = serde_json::to_string(&stored).unwrap();
    let mut exec = Exec { budget: Some("calls=5".into()), ..Exec::default() };
    exec.from.grants.allow_write = vec!["/b".into()];
    let chosen = resumed(&json, &exec);
    assert_eq!(chosen.allow_write, [PathBuf::from("/a"), "/b".into()]);
    assert_eq!(chosen.max_parallel, Some(2));
    assert_eq!((chosen.budget.calls, chosen.budget.cost), (Some(5), Some(2.0)));
}

/// The values of `--input`, without a document.
fn inputs(given: &[String]) -> Result<Map<String, Value>, Error> {
    let mut options = RunOptions { input_texts: input_texts(given)?, ..RunOptions::default() };
    options.read_inputs(None)?;
    Ok(options.inputs)
}

#[test]
fn caps_and_inputs_are_read_as_written_and_refused_with_the_option_s_name() {
    let caps = budget("calls=100, tokens=1e6,cost=2.5", "--budget").unwrap();
    assert_eq!(caps, Budget { calls: Some(100), tokens: Some(1_000_000), cost: Some(2.5) });
    for wrong in ["calls", "calls=x", "money=1", "cost=-1", "cost=nan"] {
        assert!(budget(wrong, "--budget").is_err(), "{wrong}");
    }
    let given = ["a=1", "b=x", "c={\"d\": []}", "e=", "f=a=b"].map(String::from);
    let values = inputs(&given).unwrap();
    let expected = serde_json::json!({"a": 1, "b": "x", "c": {"d": []}, "e": "", "f": "a=b"});
    assert_eq!(Value::Object(values), expected);
    assert!(inputs(&["novalue".into()]).is_err());
    assert_eq!(seconds(Some(0.2), "0.2", "--timeout").unwrap(), 1);
    assert!(seconds(Some(0.0), "0", "--timeout").is_err());
}

#[test]
fn options_of_the_beginning_are_refused_later() {
    let exec = Exec { input: vec!["a=1".into()], ..Exec::default() };
    assert!(for_resume(&Environment::default(), &exec).is_err());
}

#[test]
fn keys_in_an_address_are_not_kept() {
    let chosen = run(|exec| exec.base_url = Some("http://me:pass@127.0.0.1:1/v1?api-key=k".into()));
    let stored = RunOptions::stored(&chosen.to_stored().unwrap());
    assert_eq!(stored.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    let plain = run(|exec| exec.base_url = Some("http://127.0.0.1:1/v1".into()));
    assert_eq!(RunOptions::stored(&plain.to_stored().unwrap()), plain);
}

#[test]
fn what_of_the_network_is_allowed_is_kept_with_the_run_and_adds_up() {
    for (given, json) in
        [(None, "false"), (Some(Network::Public), "true"), (Some(Network::Local), "\"local\"")]
    {
        let stored = serde_json::to_string(&run(|exec| exec.from.grants.allow_network = given)).unwrap();
        assert!(stored.contains(&format!("\"allow_network\":{json}")), "{stored}");
        let again = resumed(&stored, &Exec::default());
        assert_eq!(again.allow_network, given.unwrap_or_default());
        let mut more = Exec::default();
        more.from.grants.allow_network = Some(Network::Public);
        let both = resumed(&stored, &more).allow_network;
        assert_eq!(both, given.unwrap_or_default().max(Network::Public));
    }
}

/// C-01, A-21: nothing that is given is changed or left out silently.
#[test]
fn an_input_is_what_was_written_and_given_once() {
    let given = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        inputs(&texts).map_err(|failure| failure.diagnostics[0].message.clone())
    };
    let read = given(&["a=18446744073709551615", "b=sent", "c={\"d\": [1.5]}", "e={", "f="]).unwrap();
    assert_eq!(
        Value::from(read).to_string(),
        r#"{"a":18446744073709551615,"b":"sent","c":{"d":[1.5]},"e":"{","f":""}"#
    );
    for (texts, part) in [
        (&["a=18446744073709551616"][..], "`--input a=…`: 64 bits can't hold this integer"),
        (&["a={\"b\": 1, \"b\": 2}"], "\"b\" occurs twice"),
        (&["a=1", "b=1", "a=x=2"], "gives \"a\" twice: `a=1` and `a=x=2`"),
    ] {
        let told = given(texts).unwrap_err();
        assert!(told.contains(part), "{told}");
    }
}
