use serde_json::json;

use super::World;
use crate::template::{JsonTemplate, Template, is_name, slips};

fn world() -> World {
    World::new(
        json!({"x": "V", "größe": 1, "a-b": 2, "_1": 3, "数据": 4}),
        json!({}),
        json!({"7": [{"k": "seven"}]}),
    )
}

/// D-06, D-09: every form, with and without spaces.
#[test]
fn forms() {
    for text in [
        "{{{x}}}",
        "{{{ x }}}",
        "{{x}}",
        "{{ x }}",
        "{{  x}}",
        "{{\n\tx\r\n}}",
        "${x}",
        "${ x }",
        "{{metadata.x}}",
    ] {
        assert_eq!(world().text(text), "V", "{text}");
        let template = Template::parse(text).unwrap();
        assert_eq!(template.placeholders().map(|p| &*p.raw).collect::<Vec<_>>(), [text]);
    }
}

/// D-09: text around placeholders, braces that belong to the text, escapes.
#[test]
fn text_around_placeholders() {
    for (text, expected) in [
        ("", ""),
        ("plain", "plain"),
        ("a{{x}}b${x}c{{{x}}}d", "aVbVcVd"),
        ("{{x}}{{x}}", "VV"),
        ("{{x}}}", "V}"),
        ("{{{x}}", "{V"),
        ("{{{x}}}}", "V}"),
        ("{{{{x}}}}", "{V}"),
        ("{{{x} }}", "{{{x} }}"),
        ("${x}}", "V}"),
        ("${{ x }}", "$V"),
        ("${{{ x }}}", "$V"),
        ("$${x}", "$V"),
        ("{${x}}", "{V}"),
        ("{\"k\": {{x}}}", "{\"k\": V}"),
        ("{{ {{x}} }}", "{{ V }}"),
        ("{{#if x}}{{x}}{{/if}}", "{{#if x}}V{{/if}}"),
        ("杭州 {{x}} 🦀", "杭州 V 🦀"),
        // escapes
        (r"\{{", "{{"),
        (r"\${", "${"),
        (r"\{{x}}", "{{x}}"),
        (r"\{{{x}}}", "{{{x}}}"),
        (r"\${x}", "${x}"),
        (r"\\{{x}}", r"\V"),
        (r"\\${x}", r"\V"),
        (r"\\\{{x}}", r"\{{x}}"),
        (r"\\\\{{x}}", r"\\V"),
        (r"\\{{a b}}", r"\{{a b}}"),
        (r"\{{x", "{{x"),
        (r"\${{x}}", "${{x}}"),
        (r"\{{{{x}}", "{{V"),
        // backslashes elsewhere
        (r"\\ \{ \$ \n C:\\dir\", r"\\ \{ \$ \n C:\\dir\"),
        (r"\{x}", r"\{x}"),
    ] {
        assert_eq!(world().text(text), expected, "{text}");
        assert_eq!(Template::parse(text).unwrap().source(), text);
    }
}

/// D-09: what is no path is left alone.
#[test]
fn left_alone() {
    for text in [
        "{{}}",
        "{{ }}",
        "{{a b}}",
        "{{#if x}}",
        "${a:-b}",
        "${}",
        "${1a}",
        "{{1a}}",
        "{{-a}}",
        "{{a.}}",
        "{{.a}}",
        "{{a..b}}",
        "{{a.-b}}",
        "{{a[]}}",
        "{{a[ 0 ]}}",
        "{{a[1.5]}}",
        "{{a[+1]}}",
        "{{a[--1]}}",
        "{{a[x]}}",
        "{{a['k']}}",
        "{{a[\"k]}}",
        "{{a[\"\\x\"]}}",
        "{{a[\"\\ud800\"]}}",
        "{{a [0]}}",
        "{{a. b}}",
        "{{a.b!}}",
        "{{\u{a0}x\u{a0}}}",
        "{{\u{24b6}}}",
        "{{²}}",
        "{{x²}}",
        "{{٣}}",
        "{{🦀}}",
        "$x",
        "{x}",
        "{ {x}}",
        "{{x} }",
        "{{x}\n}!",
        "{{",
        "{{ ",
        "${",
        "{{{",
        "$",
        "{",
        "\\",
        "{{a.",
        "{{a[",
        "{{a[\"b",
        "{{a[0",
        "{{a.b[\"",
        "}}",
        "{{x]]",
    ] {
        let template = Template::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(template.literal(), Some(text));
    }
}

/// D-09: an opening, a path and then the end of the text (spaces aside).
#[test]
fn unfinished() {
    for (text, offset) in [
        ("{{x", 0),
        ("{{ x", 0),
        ("{{x  ", 0),
        ("${x", 0),
        ("${ x ", 0),
        ("{{{x", 1),
        ("é{{a.b[0][\"k\"].2", 2),
        ("{{x}} and {{x", 10),
        (r"\\{{x", 2),
        ("{{a[\"{{b", 5),
    ] {
        let error = Template::parse(text).expect_err(text);
        assert_eq!(error.offset, offset, "{text}");
        assert!(error.message.contains("not closed"), "{}", error.message);
    }
}

/// D-09: closed by one brace is text at the end, too; a run of edition 0 reads what a model wrote as it was then.
#[test]
fn half_closed_at_the_end() {
    for text in ["{{x}", "{{ x }", "{{x} \n", "{{{x}", "é {{x.y}"] {
        assert_eq!(Template::parse(text).unwrap().literal(), Some(text));
        let [found] = &slips(text)[..] else { panic!("{text}") };
        assert!(
            found.is_half_closed
                && found.raw.starts_with("{{")
                && text[found.offset..].starts_with(&*found.raw),
            "{text}"
        );
        let written = serde_json::json!({"a": [text]});
        assert!(JsonTemplate::of_edition(1, &written).is_ok(), "{text}");
        let error = JsonTemplate::of_edition(0, &written).unwrap_err();
        assert!(error.error.message.contains("not closed"), "{error}");
    }
    assert_eq!(Template::parse("{{x}}}").unwrap().placeholders().count(), 1);
}

/// D-09: what is written almost like a placeholder, and the placeholder that is meant.
#[test]
fn almost_placeholders() {
    for (text, meant) in [
        ("{{list.output[0]['path']}}", Some("list.output[0].path")),
        ("{{list.output|x}}", Some("list.output")),
        ("{{ list.output | join(', ') }}", Some("list.output")),
        ("{{list.output.-1}}", Some("list.output[-1]")),
        ("{{ list . output }}", Some("list.output")),
        ("${list[ 0 ].x}", Some("list[0].x")),
        ("{{list?.output[k]}}", Some("list.output.k")),
        ("{{list.output['odd key']}}", Some("list.output[\"odd key\"]")),
        ("{{list.output[*]}}", None),
        ("{{list.output or 'x'}}", None),
        ("${list:-default}", None),
    ] {
        assert_eq!(Template::parse(text).unwrap().literal(), Some(text));
        let found = slips(&format!("é {text} {{{{x}}}}"));
        let [slip] = &found[..] else { panic!("{text}: {found:?}") };
        assert_eq!((&*slip.raw, slip.offset, &*slip.root), (text, 3, "list"));
        assert_eq!(slip.meant.as_ref().map(ToString::to_string).as_deref(), meant, "{text}");
    }
    for text in
        ["{{#if x}}", "{{}}", "{{ 'a' }}", "\\{{a b}}", "{{a b", "{{a b}", "{a b}", "{{ {{x}} }}", "{{a.b}}"]
    {
        assert_eq!(slips(text), [], "{text}");
    }
}

/// D-06: the segments of a path, and where a placeholder stands.
#[test]
fn paths() {
    for (path, canonical) in [
        ("a", "a"),
        ("2.output", "2.output"),
        ("a.b[0].c", "a.b[0].c"),
        ("a.b.0.c", "a.b.0.c"),
        ("a[-1]", "a[-1]"),
        ("a[007]", "a[7]"),
        (r#"a["odd.key"]"#, r#"a["odd.key"]"#),
        (r#"a["plain"]"#, "a.plain"),
        (r#"a["}}"]["\"\u00e9\n"][""]"#, r#"a["}}"]["\"é\n"][""]"#),
        ("größe.数据-1._", "größe.数据-1._"),
        ("x\u{2165}.नाम", "x\u{2165}.नाम"),
        // Decomposed letters are the same name as composed ones.
        ("e\u{301}.e\u{301}", "\u{e9}.\u{e9}"),
        ("a[99999999999999999999]", "a[9223372036854775807]"),
        ("a[-99999999999999999999]", "a[-9223372036854775808]"),
    ] {
        let text = format!("é {{{{ {path} }}}}!");
        let template = Template::parse(&text).unwrap();
        let [placeholder] = template.placeholders().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!(placeholder.path.to_string(), canonical, "{text}");
        assert_eq!((placeholder.offset, &*placeholder.raw), (3, &text[3..text.len() - 1]));
        let again = Template::parse(&format!("{{{{{canonical}}}}}")).unwrap();
        assert_eq!(again.placeholders().next().unwrap().path, placeholder.path);
    }
}

/// D-09: names.
#[test]
fn names() {
    let names = [
        "a",
        "_",
        "a-b",
        "step_1",
        "größe",
        "数据",
        "_1",
        "12",
        "0",
        "ªª",
        "\u{2165}",
        "नाम",
        "ชื่อ",
        "பெயர்",
        "নাম",
    ];
    for name in names.into_iter().chain(["اِسْم", "te\u{302}\u{301}t", "x٣"]) {
        assert!(is_name(name), "{name}");
    }
    // An enclosed letter, a vowel sign and a digit begin no name, and a superscript is in none.
    for name in ["", "1a", "-a", "a.b", "a b", "²", "x²", "\u{24b6}", "\u{93f}", "٣", "é!", "a\u{200b}b"]
    {
        assert!(!is_name(name), "{name}");
    }
    assert_eq!(world().text("{{größe}} {{a-b}} {{_1}} {{数据}} {{7.k}}"), "1 2 3 4 seven");
}

/// Serialized as the source; a template that does not parse is refused on the way in.
#[test]
fn serde_is_the_source() {
    let template = Template::parse(r"\{{a}} {{b}}").unwrap();
    let text = serde_json::to_string(&template).unwrap();
    assert_eq!(text, r#""\\{{a}} {{b}}""#);
    assert_eq!(serde_json::from_str::<Template>(&text).unwrap(), template);
    assert!(serde_json::from_str::<Template>(r#""{{b""#).unwrap_err().to_string().contains("not closed"));
    assert!(Template::default().is_empty() && Template::parse("").unwrap() == Template::default());
}

/// Linear time: texts made to be read over and over by a parser that goes back. Unoptimised, each takes some 30 ms;
/// a parser that reads on to the end from each opening takes some seconds.
#[test]
fn hostile_texts_are_linear() {
    for piece in [
        "{",
        "{{a",
        "{{{a}",
        "{{a[\"",
        "{{a[\"]",
        "{{a[\"][",
        "\"][",
        "\\",
        "{{ ",
        "{{a.b[\"\\",
        "${",
        "{{a[\"x\"]",
        "{{a[9",
        "{{a}}",
        "\\{{",
    ] {
        for opening in ["", "{{a[", "{{a[\"", "{{a "] {
            let text = opening.to_owned() + &piece.repeat(30_000 / piece.len());
            // What is not linear takes minutes each time; a busy machine is not that slow ten times in a row.
            let quick = (0..10).any(|_| {
                let started = std::time::Instant::now();
                let parsed = Template::parse(&text);
                let taken = started.elapsed();
                assert!(parsed.is_err() || parsed.unwrap().source() == text);
                taken.as_millis() < 1_000
            });
            assert!(quick, "{opening}{piece}…");
        }
    }
}
