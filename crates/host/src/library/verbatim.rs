//! Files that repeat recorded outputs word for word: they would pass a replay, and do nothing.

use selvedge_engine::library::Sample;
use serde_json::Value;

/// The fewest characters that an output has to be found by: shorter ones may be there by chance.
const SHORTEST: usize = 8;
/// The same where no digit is among them: words are in code for many reasons.
const WORDS: usize = 16;
/// Bytes that are searched for the texts of one output, at most. A larger output is not looked for.
const MOST_WORK: usize = 2 << 30;

/// Which recorded output a file repeats, if it does: all of its texts and numbers stand in it as words of their own. What stands in
/// the call's arguments or in `old`, the file that it is to replace, shows nothing, and neither do `true`, `false` and null.
pub fn repeats<'s>(
    file: &str,
    old: &str,
    calls: impl Iterator<Item = (&'s Sample, &'s Value)>,
) -> Option<String> {
    for (sample, output) in calls {
        let arguments = sample.arguments.to_string();
        let mut own = Vec::new();
        leaves(output, &mut own);
        if own.len().saturating_mul(arguments.len() + old.len() + file.len()) > MOST_WORK {
            continue;
        }
        own.retain(|leaf| !arguments.contains(leaf.as_str()) && !old.contains(leaf.as_str()));
        let long: usize = own.iter().map(|leaf| leaf.chars().count()).sum();
        let digits = own.iter().any(|leaf| leaf.contains(|c: char| c.is_ascii_digit()));
        let telling = long >= if digits { SHORTEST } else { WORDS };
        if telling && own.iter().all(|leaf| stands_in(file, leaf)) {
            return Some(crate::text::one_line(&output.to_string(), 200));
        }
    }
    None
}

/// The texts and numbers of a value.
fn leaves(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| leaves(value, into)),
        _ => {}
    }
}

/// Whether a text stands in a file, and not within a longer word or number.
fn stands_in(file: &str, text: &str) -> bool {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    let forms = if escaped == text { vec![text] } else { vec![text, &escaped] };
    forms.into_iter().any(|form| {
        file.match_indices(form).any(|(at, _)| {
            let before = file.get(..at).and_then(|before| before.chars().next_back());
            let behind = file.get(at + form.len()..).and_then(|behind| behind.chars().next());
            let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !joins(before) && !joins(behind)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(file: &str, old: &str, arguments: Value, output: Value) -> bool {
        let sample = Sample { arguments, output: Some(output.clone()), fault: None, note: None };
        repeats(file, old, [(&sample, &output)].into_iter()).is_some()
    }

    /// a version that repeats outputs is found by them, and one that computes is not.
    #[test]
    fn a15_outputs_are_found_word_for_word() {
        let given = || json!({"text": "1.3."});
        let out = || json!({"date": "2024-03-01", "ok": true});
        assert!(found("return {'date': '2024-03-01', 'ok': True}", "", given(), out()));
        assert!(found("TABLE = {\"1.3.\": \"2024-03-01\"}", "", given(), out()));
        assert!(!found("return {'date': f'{y}-{m}-{d}'}", "", given(), out()));
        // It was in the old file, or in the arguments: then nothing shows that it was taken over.
        assert!(!found("x = '2024-03-01'", "DEFAULT = '2024-03-01'", given(), out()));
        assert!(!found("x = '2024-03-01'", "", json!({"text": "2024-03-01"}), out()));
        // Within another word it is something else.
        assert!(!found("x = '12024-03-01'", "", given(), out()));
    }

    #[test]
    fn a15_what_may_be_there_by_chance_is_no_evidence() {
        for output in
            [json!(0), json!(true), json!("ok"), json!(12), json!({"n": 2024}), json!("not found"), json!([])]
        {
            let file = format!("return {output} # 0 True ok 12 2024 not found");
            assert!(!found(&file, "", json!({}), output.clone()), "{output}");
        }
        // All of an output has to be there.
        let rows = json!({"total": 1234.5, "rows": 17, "name": "first quarter"});
        assert!(!found("x = 1234.5; y = 17", "", json!({}), rows.clone()));
        assert!(found("x = 1234.5; y = 17; z = 'first quarter'", "", json!({}), rows));
        assert!(found("x = 'first\\nquarter 99'", "", json!({}), json!("first\nquarter 99")));
        assert!(found("the whole quarterly report", "", json!({}), json!("the whole quarterly report")));
    }
}
