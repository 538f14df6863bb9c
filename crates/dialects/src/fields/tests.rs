use super::*;
use crate::{DocumentLimits, Severity, Source, json};

const SHAPE: Shape =
    Shape { what: "a thing", fields: &["id", "max_rounds", "model", "name", "seed", "task_prompt", "tools"] };

#[test]
fn e32_names_one_or_two_letters_away_are_misspelt() {
    let known = ["task_prompt", "thread_id", "tools", "seed", "id", "x", "top_p"];
    let cases = [
        ("task_promt", Some("task_prompt")),
        ("task_prmpot", Some("task_prompt")),
        ("taskPrompt", Some("task_prompt")),
        ("thraed_id", Some("thread_id")),
        ("tool", Some("tools")),
        ("toolss", Some("tools")),
        ("sede", Some("seed")),
        ("topp", Some("top_p")),
        ("sed", Some("seed")),
        // Known names of fewer than four letters, `id` and `x`, are too short to tell.
        ("ids", None),
        ("xx", None),
        // Three letters away.
        ("task_pro", None),
        ("colour", None),
        // Not misspelt at all.
        ("tools", None),
    ];
    for (name, expected) in cases {
        assert_eq!(misspelt(name, &known), expected, "for {name}");
    }
    assert_eq!(misspelt(&"t".repeat(1_000_000), &known), None);
    assert_eq!(misspelt("Ключи", &["ключ", "ключи"]), Some("ключи"));
}

#[test]
fn short_names_are_meant_where_one_slip_tells() {
    for (name, known, expected) in [
        ("rr", &["r", "value"][..], Some("r")),
        ("R", &["r"], Some("r")),
        ("ids", &["id", "count"], Some("id")),
        ("di", &["id"], Some("id")),
        ("sm", &["sum"], Some("sum")),
        ("summ", &["sum", "number"], Some("sum")),
        // Another letter makes another name, and so does one more of one.
        ("x", &["y"], None),
        ("ab", &["a"], None),
        ("rrr", &["r"], None),
        ("idx", &["id", "ide"], Some("id")),
        ("min", &["max", "mean"], Some("mean")),
        // Two are as near.
        ("aab", &["ab", "aa"], None),
        // The nearer one, however short.
        ("idd", &["id", "iddqd"], Some("id")),
        ("tool", &["tools", "too"], Some("tools")),
        ("", &["r", "id"], None),
    ] {
        assert_eq!(meant(name, known), expected, "for {name}");
    }
    assert_eq!(meant(&"r".repeat(1_000_000), &["r"]), None);
}

#[test]
fn e32_unknown_fields_are_warnings_unless_misspelt() {
    let text = r#"{"nmae": "x", "colour": 1, "sed": 2, "taskprompt_": 1, "MaxRounds": 3}"#;
    let source = Source::new("f", text);
    let mut diagnostics = Diagnostics::new();
    let node = json::parse(&source, &DocumentLimits::default(), &mut diagnostics).expect("valid");
    let fields = Fields::open(&node, &SHAPE, "P-01", &mut diagnostics).expect("an object");
    assert!(fields.required("name", "P-01", "help", &mut diagnostics).is_none());
    let found: Vec<_> =
        diagnostics.report(&source).into_iter().map(|d| (d.severity, d.message, d.help)).collect();
    let ignored = "it is ignored; remove it, or check its name".to_owned();
    assert_eq!(
        found,
        [
            (Severity::Error, "a thing has no field \"nmae\"".into(), "did you mean `name`?".into()),
            (Severity::Warning, "a thing has no field \"colour\"".into(), ignored),
            (Severity::Error, "a thing has no field \"sed\"".into(), "did you mean `seed`?".into()),
            (
                Severity::Error,
                "a thing has no field \"taskprompt_\"".into(),
                "did you mean `task_prompt`?".into()
            ),
            (
                Severity::Warning,
                "a thing has no field \"MaxRounds\"".into(),
                "it is ignored; did you mean `max_rounds`?".into()
            ),
        ],
        "and the missing field that a misspelt one means is not reported again"
    );
}

#[test]
fn null_on_an_optional_field_is_leaving_it_out() {
    let source = Source::new("f", r#"{"name": null, "tools": null, "seed": null}"#);
    let mut diagnostics = Diagnostics::new();
    let node = json::parse(&source, &DocumentLimits::default(), &mut diagnostics).expect("valid");
    let fields = Fields::open(&node, &SHAPE, "P-01", &mut diagnostics).expect("an object");
    assert!(fields.text("name", "P-01", &mut diagnostics).is_none());
    assert!(fields.boolean("tools", "P-01", &mut diagnostics).is_none());
    assert!(fields.seconds("seed", "P-01", false, &mut diagnostics).is_none());
    assert!(diagnostics.findings().is_empty());
    assert!(fields.required_text("name", "P-01", "help", &mut diagnostics).is_none());
    assert_eq!(diagnostics.findings()[0].message, "`name` must be a string, not null");
}

#[test]
fn times_are_seconds_that_a_clock_can_hold() {
    let read = |text: &str, zero| {
        let source = Source::new("f", &format!("{{\"seed\": {text}}}"));
        let mut diagnostics = Diagnostics::new();
        let node = json::parse(&source, &DocumentLimits::default(), &mut diagnostics).expect("valid");
        let fields = Fields::open(&node, &SHAPE, "P-24", &mut diagnostics).expect("an object");
        let time = fields.seconds("seed", "P-24", zero, &mut diagnostics);
        assert_eq!(time.is_none(), diagnostics.has_errors());
        time.map(|time| time.value.as_millis())
    };
    assert_eq!(read("1.5", false), Some(1500));
    assert_eq!(read("0", true), Some(0));
    for (text, zero) in [("0", false), ("-1", true), ("1e300", false), ("\"3\"", false)] {
        assert_eq!(read(text, zero), None);
    }
}
