//! How large a conversation has become, and what stands for outputs that are too long (A-11 … A-13): the operation `measure`.

use selvedge_engine::{TOKENS_AROUND as AROUND, tool_text};
use selvedge_models::tokens::{Counts, Encoding};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Tokens of the note in the middle of what was cut, and of what may come of cutting there.
const NOTE: u64 = 40;

/// What conversations of this process have come to.
static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

/// `{calls, used, texts, counted?, tool_output_tokens, context_tokens, encoding}` gives `{tokens, long, counted?}`.
///
/// What a provider said is what its last request with the reply came to: since then only the results of calls are new, and of these not those that it was
/// `sent`. Where it said nothing, `texts` are all of the conversation, but for what came to `counted` the last time.
pub(crate) fn measure(args: &Value) -> Value {
    let number = |name: &str| args.get(name).and_then(Value::as_u64);
    let encoding = args.get("encoding").and_then(Value::as_str).and_then(Encoding::named).unwrap_or_default();
    let most = number("tool_output_tokens").unwrap_or(u64::MAX);
    let used = number("used").unwrap_or_default();
    let list = |name: &str| args.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = number("context_tokens").unwrap_or(u64::MAX) / 4 * 3;
    let (mut tokens, mut long) = (used, Vec::new());
    if used == 0 {
        let texts = list("texts").iter().filter_map(Value::as_str);
        tokens = texts
            .map(|text| COUNTS.count(encoding, text).saturating_add(AROUND))
            .fold(number("counted").unwrap_or_default(), u64::saturating_add);
    }
    let counted = (used == 0).then_some(tokens);
    for call in list("calls") {
        let text = said(call);
        let whole = COUNTS.count(encoding, &text);
        let id =
            call.get("id").and_then(Value::as_str).filter(|_| whole > most && call.get("output").is_some());
        let mut stays = whole;
        if let Some(id) = id {
            let cut = shortened(encoding, &text, whole, most);
            stays = encoding.count(&cut).min(whole);
            // What has no more in it than the note of a cut is left as it is.
            if stays < whole {
                let text = if whole > read { shortened(encoding, &text, whole, read).into() } else { text };
                long.push(json!({"id": id, "tokens": whole, "cut": cut, "text": text}));
            }
        }
        // It may be counted already, with the texts or by the provider.
        tokens = if used == 0 || call.get("sent").is_some() {
            tokens.saturating_sub(whole - stays)
        } else {
            tokens.saturating_add(stays + AROUND)
        };
    }
    let mut measured = json!({"tokens": tokens, "long": long});
    if let (Some(counted), Some(fields)) = (counted, measured.as_object_mut()) {
        fields.insert("counted".to_owned(), counted.into());
    }
    measured
}

/// The text of a call's result, as it stands in the conversation.
fn said(call: &Value) -> Cow<'_, str> {
    match (call.get("output"), call.get("error")) {
        (Some(Value::String(text)), _) => text.into(),
        (Some(output), _) => tool_text(output).into(),
        (None, Some(error)) => json!({"error": error}).to_string().into(),
        (None, None) => "".into(),
    }
}

/// The beginning and the end of a text that has too many tokens, with a note of what was left out.
fn shortened(encoding: Encoding, text: &str, whole: u64, most: u64) -> String {
    let mut half = most.saturating_sub(NOTE) / 2;
    loop {
        let (head, tail) = (encoding.head(text, half), encoding.tail(text, half));
        let left = whole.saturating_sub(2 * half);
        let cut = format!("{head}\n[… {left} of {whole} tokens were left out here …]\n{tail}");
        // Where it was cut, a text may have some tokens more than it had within the whole.
        let over = encoding.count(&cut).saturating_sub(most);
        if over == 0 || half == 0 {
            return cut;
        }
        half = half.saturating_sub(over.div_ceil(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> u64 {
        Encoding::Cl100kBase.count(text)
    }

    #[test]
    fn a13_what_a_provider_said_counts_with_what_is_new() {
        let args = json!({
            "used": 1000, "tool_output_tokens": 100, "encoding": "cl100k_base", "texts": [],
            "calls": [{"id": "a", "output": "hello world"}, {"id": "b", "output": {"x": 1}}, {"id": "c", "error": {"type": "timeout", "message": "m"}}],
        });
        let new =
            2 + count(r#"{"x":1}"#) + count(r#"{"error":{"type":"timeout","message":"m"}}"#) + 3 * AROUND;
        assert_eq!(measure(&args), json!({"tokens": 1000 + new, "long": []}));
        // What it was sent is among its figures, until it is shortened.
        let mut args = args;
        args["calls"][0]["sent"] = json!(true);
        assert_eq!(measure(&args)["tokens"], 1000 + new - 2 - AROUND);
        args["calls"][0]["output"] = json!("so it is ".repeat(200));
        let (measured, whole) = (measure(&args), count(&"so it is ".repeat(200)));
        let cut = count(measured["long"][0]["cut"].as_str().unwrap());
        assert_eq!(measured["tokens"], 1000 + new - 2 - AROUND - (whole - cut));
    }

    #[test]
    fn a13_without_a_providers_word_all_texts_are_counted() {
        let args = json!({"used": 0, "texts": ["hello world", "<|endoftext|>"], "calls": [], "tool_output_tokens": 9});
        assert_eq!(measure(&args)["tokens"], 2 + 7 + 2 * AROUND);
        let other = json!({"used": 0, "texts": ["größer 日本"], "calls": [], "encoding": "o200k_base"});
        assert_eq!(measure(&other)["tokens"], Encoding::O200kBase.count("größer 日本") + AROUND);
        for nonsense in [json!(null), json!({}), json!({"calls": 1, "texts": "x", "used": -1, "encoding": 7})]
        {
            assert_eq!(measure(&nonsense), json!({"tokens": 0, "long": [], "counted": 0}));
        }
    }

    /// What was counted is as good as the texts.
    #[test]
    fn a13_only_what_is_new_is_counted() {
        let of = |texts: &[&str], counted: u64, calls: Value| {
            measure(
                &json!({"used": 0, "texts": texts, "counted": counted, "calls": calls, "tool_output_tokens": 60}),
            )
        };
        let long = "so it is ".repeat(200);
        let first = of(&["go", &long], 0, json!([{"id": "a", "output": long}]));
        let counted = first["counted"].as_u64().unwrap();
        assert!(
            first["tokens"].as_u64().unwrap() < counted,
            "it is counted as it stands there, until it is shortened"
        );
        let whole = of(&["go", &long, "and then", "ok"], 0, json!([{"id": "b", "output": "ok"}]));
        assert_eq!(of(&["and then", "ok"], counted, json!([{"id": "b", "output": "ok"}])), whole);
    }

    #[test]
    fn a11_a_long_output_keeps_its_beginning_and_its_end() {
        let words: String = (0..5000).map(|n| format!("word{n} ")).collect();
        let long = [words.clone(), "é".repeat(9000), format!("{}x", " ".repeat(50_000)), "日本".repeat(5000)];
        for most in [0, 1, 50, 100, 1000] {
            for text in &long {
                let texts = json!([text, "hello world"]);
                let call = json!([{"id": "a", "output": text}, {"id": "b", "output": "ok"}]);
                let args = json!({"used": 0, "texts": texts, "calls": call, "tool_output_tokens": most});
                let whole = count(text);
                let measured = measure(&args);
                let Some(cut) = measured["long"][0]["cut"].as_str() else {
                    assert!(whole <= most);
                    continue;
                };
                assert!(cut.contains(&format!("of {whole} tokens were left out here")), "{cut}");
                assert!(count(cut) <= most.max(NOTE), "{most}: {}", count(cut));
                assert_eq!(measured["tokens"], count(cut) + 2 + 2 * AROUND);
                assert_eq!(measured["long"].as_array().unwrap().len(), 1);
                assert_eq!(
                    (&measured["long"][0]["id"], &measured["long"][0]["tokens"]),
                    (&json!("a"), &json!(whole))
                );
                assert_eq!(measured["long"][0]["text"], **text, "a model reads all of it");
            }
        }
        let args = json!({"used": 1, "calls": [{"id": "a", "output": words}], "tool_output_tokens": 100});
        let measured = measure(&args);
        let cut = measured["long"][0]["cut"].as_str().unwrap();
        assert!(cut.starts_with("word0 word1 ") && cut.ends_with("word4999 "), "{cut}");
        assert_eq!(measured["tokens"], 1 + count(cut) + AROUND);
        // What no model can read is cut for it, too.
        let args = json!({"used": 1, "calls": [{"id": "a", "output": words}], "tool_output_tokens": 100, "context_tokens": 1000});
        let measured = measure(&args);
        let text = measured["long"][0]["text"].as_str().unwrap();
        assert!(
            count(text) <= 750 && text.starts_with("word0 word1 ") && text.ends_with("word4999 "),
            "{}",
            count(text)
        );
    }
}
