//! Whether a prediction is the answer (V-04).

use serde_json::Value;

/// Whether they say the same: but for capitals, spaces, and marks around and behind them; and numbers as [`numeric`] reads them, without a
/// tolerance.
pub fn exact(prediction: &Value, answer: &Value) -> bool {
    let (prediction, answer) = (text(prediction), text(answer));
    if normal(&prediction) == normal(&answer) {
        return true;
    }
    match (plain(&prediction), plain(&answer)) {
        (Some((a, unit_a)), Some((b, unit_b))) => a == b && unit_a == unit_b,
        _ => false,
    }
}

/// Whether both are the same number, within what the answer's own digits say: half a unit of its last one, and a billionth of it. Units and
/// percent signs are read: where both have one, it has to be the same, but `0.12` is `12 %`.
pub fn numeric(prediction: &Value, answer: &Value) -> bool {
    let (prediction, answer) = (text(prediction), text(answer));
    let Some((wanted, unit)) = plain(&answer) else { return exact_text(&prediction, &answer) };
    let Some((found, found_unit)) = plain(&prediction).or_else(|| only_number(&prediction)) else {
        return false;
    };
    let near = |a: f64, b: f64, step: f64| (a - b).abs() <= step / 2.0 + b.abs() * 1e-9;
    let step = last_digit(&answer);
    match (unit.as_str(), found_unit.as_str()) {
        (a, b) if a == b || a.is_empty() || b.is_empty() => {
            near(found, wanted, step)
                || a != b && (a == "%" && near(found * 100.0, wanted, step))
                || a != b && (b == "%" && near(found / 100.0, wanted, step))
        }
        _ => false,
    }
}

fn exact_text(prediction: &str, answer: &str) -> bool {
    normal(prediction) == normal(answer)
}

/// What a value says as a text: a number as JSON writes it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A text without what only its looks are: capitals, runs of spaces, and marks around it.
fn normal(text: &str) -> String {
    let marks = |c: char| {
        c.is_whitespace()
            || matches!(c, '.' | ',' | ';' | ':' | '!' | '"' | '\'' | '`' | '*' | '“' | '”' | '„' | '«' | '»')
    };
    let words: Vec<String> = text.trim_matches(marks).split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// A text that is a number, with a unit behind it or before it.
fn plain(text: &str) -> Option<(f64, String)> {
    let text = normal(text);
    let is_number = |c: char| c.is_ascii_digit();
    let first = text.find(is_number)?;
    let end = text.rfind(is_number)? + 1;
    // A sign and a point before the first digit are part of it.
    let head = text.get(..first)?;
    let begin = head.trim_end_matches(['-', '+', '−', '.']).len();
    let (before, number, after) = (text.get(..begin)?.trim(), text.get(begin..end)?, text.get(end..)?.trim());
    let number = read(number)?;
    if !before.is_empty() && !after.is_empty() {
        return None;
    }
    let unit = if before.is_empty() { after } else { before };
    // Words around a number are no unit.
    let is_unit = unit.split_whitespace().count() <= 1 && !unit.chars().any(|c| c.is_ascii_digit());
    is_unit.then(|| (number, unit.to_owned()))
}

/// A number as people write it: `1,000`, `1 000.5`, `-3e-4`. Groups have three digits.
fn read(text: &str) -> Option<f64> {
    let text = text.replace('−', "-").replace(['\u{a0}', '\u{202f}', '_'], " ");
    let (whole, rest) = match text.find(['.', 'e']) {
        Some(at) => (text.get(..at)?, text.get(at..)?),
        None => (text.as_str(), ""),
    };
    let mut groups = whole.split([',', ' ', '\'']);
    let first = groups.next()?;
    let mut digits = first.to_owned();
    let mut grouped = false;
    for group in groups {
        if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        grouped = true;
        digits.push_str(group);
    }
    if grouped && !(1..=3).contains(&first.trim_start_matches(['-', '+']).len()) {
        return None;
    }
    let number: f64 = format!("{digits}{rest}").parse().ok()?;
    number.is_finite().then_some(number)
}

/// The only number that stands in a text of words.
fn only_number(text: &str) -> Option<(f64, String)> {
    let normal = normal(text);
    let mut found = normal.split_whitespace().filter_map(plain);
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// What one in the last digit of a number is worth: that of `3.14` is a hundredth. Of a whole number nothing is left open.
fn last_digit(text: &str) -> f64 {
    let normal = normal(text);
    let Some((_, decimals)) = normal.split_once('.') else { return 0.0 };
    let digits = decimals.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { 0.0 } else { 10f64.powi(-i32::try_from(digits).unwrap_or(i32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn v04_exact_is_the_same_text_but_for_its_looks() {
        for (prediction, answer) in [
            ("Paris", "paris"),
            ("  New\n York. ", "new york"),
            ("\"ok\"", "OK"),
            ("1,000", "1000"),
            ("42", "42.0"),
        ] {
            assert!(exact(&json!(prediction), &json!(answer)), "{prediction} {answer}");
        }
        assert!(exact(&json!("7"), &json!(7)) && exact(&json!(true), &json!("True")));
        for (prediction, answer) in
            [("Paris, France", "Paris"), ("", "0"), ("1,00", "100"), ("12 km", "12 m"), ("-3", "3")]
        {
            assert!(!exact(&json!(prediction), &json!(answer)), "{prediction} {answer}");
        }
    }

    #[test]
    fn v04_numbers_are_read_as_people_write_them() {
        for (prediction, answer) in [
            ("1,000", json!(1000)),
            ("1 000 km", json!("1000 km")),
            ("12 %", json!("0.12")),
            ("0.12", json!("12 %")),
            ("12", json!("12 %")),
            ("3.27159", json!(3.27)),
            ("$1,250.50", json!("1250.50")),
            ("The total is 17.", json!(17)),
            ("−5", json!(-5)),
            ("1e3", json!(1000)),
            ("0.30000000000000004", json!(0.3)),
        ] {
            assert!(numeric(&json!(prediction), &answer), "{prediction} {answer}");
        }
        for (prediction, answer) in [
            ("1001", json!(1000)),
            ("3.28", json!(3.27)),
            ("5 km", json!("5 m")),
            ("17 or 18", json!(17)),
            ("nan", json!(1)),
            ("NaN", json!("NaN.")),
            ("inf", json!(1)),
            ("", json!(0)),
            ("1,00,000", json!(100_000)),
        ] {
            // Two texts that are no numbers are held against each other as texts.
            let texts = answer.as_str().is_some_and(|answer| answer.starts_with('N'));
            assert_eq!(numeric(&json!(prediction), &answer), texts, "{prediction} {answer}");
        }
        // Of a unit that only one has, nothing is known.
        assert!(numeric(&json!("5 km"), &json!(5)));
    }
}
