//! Keys in what a person hands in: a run keeps its inputs, so it is refused before anything is recorded (C-06).

use super::{Known, is_word};
use crate::error::{Error, ErrorKind, IN_TOOL};
use crate::options::RunOptions;
use selvedge_dialects::diagnostic::Excerpt;
use selvedge_dialects::{Diagnostic, Diagnostics, DocumentLimits, Finding, Source, Span};
use selvedge_tools::CommandTool;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::Path;

/// How many places of one key in a document are told.
const PLACES: usize = 10;

const HELP: &str = "leave it out: a run keeps what it is given. Models take their keys from the environment; a tool \
                    that declares one in `env` is given it with --allow-env NAME";

const CHOICE_HELP: &str = "choose another word or path: a run keeps what it was started with. Models take their keys \
                           from the environment";

/// Refuses a text of an option or an argument that holds a key; `what` names it: "the answer".
///
/// # Errors
/// `Usage`, without the key.
pub fn refuse_text(known: &[Known], what: &str, text: &str) -> Result<(), Error> {
    match known.iter().find(|key| key.is_in(text)) {
        Some(key) => Err(refused(what, key)),
        None => Ok(()),
    }
}

/// Refuses a tool that holds a key in `what` a run keeps of it (A-18): its definition, or the text of a version that is not in a file any
/// more, which is refused where it is read.
///
/// # Errors
/// `Usage`, without the key.
pub fn refuse_tool(known: &[Known], what: &str, name: &str, text: &str) -> Result<(), Error> {
    let Some(key) = known.iter().find(|key| key.is_in(text)) else { return Ok(()) };
    let message = format!("the {what} of the tool `{name}` holds {}, which must not be recorded", key.origin);
    Err(Error::usage("C-06", IN_TOOL, &message).help(HELP))
}

/// What a configured command tool holds of keys, for who checks: a run that calls it is refused ([`refuse_tool`]).
pub fn in_command(known: &[Known], tool: &CommandTool) -> Option<Diagnostic> {
    let declaration = tool.declaration();
    let text = String::from_utf8_lossy(&declaration);
    let key = known.iter().find(|key| key.is_in(&text))?;
    let name = &tool.name;
    let message = format!(
        "[tools.command.{name}]: the definition of the tool `{name}` holds {}, which must not be recorded",
        key.origin
    );
    let found = Diagnostic::about_file("", "C-06", IN_TOOL, &message);
    Some(Diagnostic { help: HELP.to_owned(), ..found })
}

/// Refuses `--input` values that hold a key, in a name, a text or a number, however they were written.
///
/// # Errors
/// `Usage`, without the key.
pub fn refuse_inputs(known: &[Known], given: &Map<String, Value>) -> Result<(), Error> {
    for (name, value) in given {
        refuse_text(known, "the name of an `--input`", name)?;
        if let Some(key) = known.iter().find(|key| holds(value, key)) {
            return Err(refused(&format!("the input {name:?}"), key));
        }
    }
    Ok(())
}

/// Refuses choices that hold a key: a run's id, address, models and paths are recorded with it. The current folder is
/// no choice.
///
/// # Errors
/// `Usage`, without the key.
pub fn refuse_choices(known: &[Known], id: Option<&str>, chosen: &RunOptions) -> Result<(), Error> {
    let address = chosen.kept_base_url();
    let texts = [
        ("the run's id", id),
        ("the endpoint's address", address.as_deref()),
        ("the plan's name", chosen.plan.as_deref()),
        ("the dialect's name", chosen.dialect.as_deref()),
    ];
    let texts = texts.into_iter().filter_map(|(what, text)| Some((what, text?.to_owned())));
    let models = chosen.models.iter().flat_map(|(role, name)| [role.clone(), name.clone()]);
    let models = models.map(|name| ("a model's name", name));
    // Where somebody works is not what he hands in, even if a dummy of a key is a word of it.
    let below = |path: &Path| path.strip_prefix(&chosen.cwd).unwrap_or(path).to_string_lossy().into_owned();
    let paths = chosen.paths().map(|(what, path)| (format!("the path of {what}"), below(path)));
    let others = texts.chain(models).map(|(what, text)| (what.to_owned(), text));
    for (what, text) in others.chain(paths) {
        // A dummy such as `lm-studio` is a part of names that mean something else.
        if let Some(key) = known.iter().find(|key| !is_word(key.secret.expose()) && key.is_in(&text)) {
            return Err(refused(&what, key).help(CHOICE_HELP));
        }
    }
    Ok(())
}

fn refused(what: &str, key: &Known) -> Error {
    let message = format!("{what} holds {}, which must not be recorded", key.origin);
    Error::usage("C-06", "secret-in-input", &message).help(HELP)
}

fn holds(value: &Value, key: &Known) -> bool {
    match value {
        Value::String(text) => key.is_in(text),
        Value::Number(number) => key.is_in(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| holds(item, key)),
        Value::Object(fields) => fields.iter().any(|(name, field)| key.is_in(name) || holds(field, key)),
        Value::Null | Value::Bool(_) => false,
    }
}

/// The places of a document where a key stands; the lines that are shown of it don't have it.
pub fn in_document(known: &[Known], source: &Source, limits: &DocumentLimits) -> Vec<Diagnostic> {
    let mut found = Diagnostics::new();
    for key in known {
        let places = source.text().match_indices(key.secret.expose()).take(PLACES);
        for (at, text) in places.filter(|_| key.is_in(source.text())) {
            found.push(finding(key, Span::new(at, at + text.len())));
        }
    }
    let escaped = found.findings().is_empty();
    // Written with escapes it is the same text to whoever reads the document.
    if escaped && may_escape(known, source.text()) {
        let mut ignored = Diagnostics::new();
        if let Some(root) = selvedge_dialects::json::parse(source, limits, &mut ignored) {
            root.each_string(&mut |text, span| {
                known.iter().filter(|key| key.is_in(text)).for_each(|key| found.push(finding(key, span)));
            });
        }
    }
    let mut report = found.report(source);
    for diagnostic in &mut report {
        diagnostic.excerpt = diagnostic.span.filter(|_| !escaped).map(|span| masked(known, source, span));
    }
    report
}

/// Whether a text has escapes that could stand for a part of a key; most have none, and are not parsed once more.
fn may_escape(known: &[Known], text: &str) -> bool {
    let quoted = |key: &Known| key.secret.expose().contains(['"', '\\']);
    let hiding = known.iter().any(|key| !key.secret.expose().is_ascii() || quoted(key));
    !known.is_empty() && ["\\u00", "\\/"].iter().any(|escape| text.contains(escape))
        || hiding && text.contains('\\')
}

/// Refuses a document in which a key stands.
///
/// # Errors
/// `Usage` with its places.
pub fn refuse_document(known: &[Known], source: &Source, limits: &DocumentLimits) -> Result<(), Error> {
    let found = in_document(known, source, limits);
    if found.is_empty() { Ok(()) } else { Err(Error::findings(ErrorKind::Usage, found)) }
}

fn finding(key: &Known, span: Span) -> Finding {
    let message = format!("the document holds {}, which must not be recorded", key.origin);
    Finding::error("C-06", "secret-in-document", span, message).help(HELP)
}

/// The line around a place with [`selvedge_http::REDACTED`] in place of every key. Masked before it is
/// cut: half a key is no longer found.
fn masked(known: &[Known], source: &Source, span: Span) -> Excerpt {
    let clean = |text: &str| {
        known.iter().fold(text.to_owned(), |text, key| match key.secret.redact(&text) {
            Cow::Owned(clean) => clean,
            Cow::Borrowed(_) => text,
        })
    };
    let text = source.text();
    // Only the lines themselves: a document may be large.
    let at = (span.start as usize).min(text.len());
    let begin = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| at + newline);
    let before = clean(text.get(begin..at).unwrap_or_default());
    let line = clean(text.get(begin..end).unwrap_or_default());
    let place = Span::new(before.len(), before.len() + selvedge_http::REDACTED.len());
    Excerpt::around(&Source::new("", &line), place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_dialects::diagnostic::{RenderOptions, render};
    use selvedge_http::Secret;

    fn known() -> Vec<Known> {
        [("$A_KEY", "sk-0123456789"), ("$B_KEY", "90909090"), ("$DUMMY", "none")]
            .map(|(origin, key)| Known { origin: origin.to_owned(), secret: Secret::new(key) })
            .to_vec()
    }

    /// C-06: in names, texts and numbers, at any depth; short dummies are no keys.
    #[test]
    fn inputs_with_keys_are_refused() {
        let refused = |json: &str| {
            let given: Map<String, Value> = serde_json::from_str(json).unwrap();
            refuse_inputs(&known(), &given).err().map(|failure| failure.diagnostics[0].message.clone())
        };
        for input in [
            r#"{"a": "Bearer sk-0123456789"}"#,
            r#"{"a": {"b": [1, {"sk-0123456789": 2}]}}"#,
            r#"{"a": 90909090}"#,
            r#"{"sk-0123456789": 1}"#,
        ] {
            let message = refused(input).unwrap();
            assert!(!message.contains("0123456789") && message.contains("_KEY"), "{message}");
        }
        assert_eq!(refused(r#"{"a": "none", "b": "sk-012345678", "c": 9090909}"#), None);
    }

    /// C-06: wherever it stands in what is recorded of the choices.
    #[test]
    fn choices_with_keys_are_refused() {
        let key = || "x-sk-0123456789".to_owned();
        let path = || Path::new("/a").join(key());
        let all: Vec<RunOptions> = vec![
            RunOptions { base_url: Some(format!("http://h/{}/v1", key())), ..RunOptions::default() },
            RunOptions { models: [("basic".to_owned(), key())].into(), ..RunOptions::default() },
            RunOptions { plan: Some(key()), ..RunOptions::default() },
            RunOptions { document: path(), ..RunOptions::default() },
            RunOptions { mcp: Some(path()), ..RunOptions::default() },
            RunOptions { script: Some(path()), ..RunOptions::default() },
            RunOptions { tools: vec![path()], ..RunOptions::default() },
            RunOptions { allow_read: vec![path()], ..RunOptions::default() },
            RunOptions { allow_write: vec![path()], ..RunOptions::default() },
        ];
        for chosen in &all {
            let failure = refuse_choices(&known(), Some("r"), chosen).unwrap_err();
            let message = &failure.diagnostics[0].message;
            assert!(!message.contains("0123456789") && message.contains("$A_KEY"), "{message}");
        }
        assert!(refuse_choices(&known(), Some("sk-0123456789"), &RunOptions::default()).is_err());
        assert!(refuse_choices(&known(), Some("none"), &RunOptions::default()).is_ok());
        let word = [Known { origin: "$W".to_owned(), secret: Secret::new("lm-studio") }];
        let named = RunOptions {
            models: [("basic".to_owned(), "lm-studio-community/q".to_owned())].into(),
            ..RunOptions::default()
        };
        assert!(refuse_choices(&word, Some("lm-studio"), &named).is_ok());
        let within = RunOptions { cwd: path(), document: path().join("p.json"), ..RunOptions::default() };
        assert!(refuse_choices(&known(), Some("r"), &within).is_ok());
    }

    /// C-06: the place is told, the key is not, in no part and however the line is cut.
    #[test]
    fn documents_with_keys_have_their_places_and_no_key() {
        let places = |text: &str| {
            let source = Source::new("p.json", text);
            let found = in_document(&known(), &source, &DocumentLimits::default());
            for one in &found {
                let shown = render(one, RenderOptions { colour: false, columns: None });
                assert!(!shown.contains("sk-01") && !shown.contains("9090"), "{shown}");
            }
            found.iter().map(|d| (d.line.unwrap(), d.column.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(places("{\"a\": \"x\",\n \"b\": \"sk-0123456789\"}"), [(2, 8)]);
        assert_eq!(places("[\"sk-0123456789 90909090\", \"sk-0123456789\"]"), [(1, 3), (1, 17), (1, 29)]);
        assert_eq!(places(r#"{"a": "sk\u002d0123456789"}"#), [(1, 7)]);
        let long = format!("[\"{}sk-0123456789 {}\"]", "é".repeat(90), "y".repeat(90));
        assert_eq!(places(&long), [(1, 93)]);
        assert_eq!(places(r#"{"a": "none"}"#), []);
    }
}
