use super::*;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use proptest::prelude::*;

#[test]
fn secrets_do_not_print_and_are_removed() {
    let secret = Secret::new(" sk-1234567890\n");
    assert_eq!(format!("{secret:?}"), "[redacted]");
    assert_eq!(secret.redact("bad key sk-1234567890!"), "bad key [redacted]!");
    assert_eq!(Secret::new("none").redact("none of it"), "none of it");
}

#[test]
fn escapes_of_json_and_urls_do_not_hide_a_secret() {
    let secret = Secret::new("sk-SECRET+/=\"123");
    for written in [
        r#"sk-SECRET+/="123"#,
        r#"sk-SECRET+\/=\"123"#,
        r#"sk-SECRET+\\/=\\\"123"#,
        r"sk-SECRET\u002b\u002F\u003d\u0022123",
        r"sk-SECRET\\u002b/=\\u0022123",
        "sk-SECRET%2B%2F%3D%22123",
        "sk-SECRET%2b/%3d%22123",
        "sk%2DSECRET%2B%2F%3D%22123",
    ] {
        assert_eq!(secret.redact(&format!("ä{written}")), "ä[redacted]", "{written}");
        let twice = format!("a \\ 5% {written}{written}ä{written}.");
        assert_eq!(secret.redact(&twice), "a \\ 5% [redacted][redacted]ä[redacted].", "{written}");
    }
    for other in ["sk-SECRET%2B%2F", r"sk-SECRET+\/=", "sk-SECRET%2C/=%22123", "100 % of \\ ä"] {
        assert!(matches!(secret.redact(other), Cow::Borrowed(same) if same == other), "{other}");
    }
    let slashed = Secret::new(r"aaaa\bbbb\\c");
    assert_eq!(slashed.redact(r"x aaaa\\bbbb\\\\c"), "x [redacted]");
    assert_eq!(slashed.redact(r"x aaaa\bbbb\\c"), "x [redacted]");
}

/// C-06: wherever a key begins in what is encoded, in both alphabets, padded or not, over lines and escaped.
#[test]
fn encodings_do_not_hide_a_secret() {
    let key = "sk-?\u{7f}>~SECRET?>?>-0123456789abcdefghijklmnopqrstuvwxyz";
    let secret = Secret::new(key);
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    for hex in [hex.to_uppercase(), hex] {
        assert_eq!(secret.redact(&format!("a{hex}b")), "a[redacted]b");
    }
    assert_eq!(secret.redact(&BASE64_STANDARD.encode(key)).trim_end_matches('='), "[redacted]");
    for before in ["", "u", "us", "user:", "Authorization: Basic "] {
        for after in ["", ".", "..", "... and more"] {
            for encoded in
                [BASE64_STANDARD, BASE64_URL_SAFE].map(|e| e.encode(format!("{before}{key}{after}")))
            {
                let lines = |width: usize, end: &str| {
                    encoded
                        .as_bytes()
                        .chunks(width)
                        .map(|line| String::from_utf8_lossy(line))
                        .collect::<Vec<_>>()
                        .join(end)
                };
                let texts = [
                    encoded.clone(),
                    lines(20, "\n"),
                    lines(20, "\r\n"),
                    lines(20, "\\n"),
                    lines(20, "\\\\r\\\\n"),
                    lines(20, "\r"),
                    lines(20, "\n    "),
                    lines(20, "\r\n\t "),
                    lines(20, " \n\n  "),
                    lines(20, "\\n\\t"),
                    lines(20, "%0D%0A%20%20"),
                    lines(20, "\n | "),
                    lines(20, " |\n| "),
                    lines(20, "\n> > "),
                    encoded.replace('/', "\\/").replace('+', "\\u002b"),
                    encoded.replace('/', "%2F").replace('+', "%2b").replace('=', "%3D"),
                ];
                for text in texts {
                    let clean = secret.redact(&text);
                    // What is left are the letters that it shares with its neighbours.
                    let left = clean.replace(REDACTED, "").len() as i64;
                    let around = (before.len() + after.len()) as i64 * 4 / 3 + 48;
                    assert!(clean.contains(REDACTED) && left <= around, "{text}: {clean}");
                }
            }
        }
    }
    let other = "c2stPzAxMjM0NTY3ODlhYmNkZWY= 736b2d3f plain\ntext %2F \\u002f";
    assert!(matches!(secret.redact(other), Cow::Borrowed(_)));
}

/// C-06: in hex with something between the bytes, as programs print it that show bytes; also piece by piece.
#[test]
fn separators_in_hex_do_not_hide_a_secret() {
    let key = "sk-0123456789abcdef-XYZ";
    let secret = Secret::new(key);
    let each = |with: &str| key.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(with);
    let grouped = |of: usize| {
        key.as_bytes().chunks(of).map(|part| part.iter().map(|b| format!("{b:02x}")).collect::<String>())
    };
    let groups = |of: usize| grouped(of).collect::<Vec<_>>().join(" ");
    let c = key.bytes().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(", ");
    let escaped = key.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let all = [
        each(" "),
        each(":"),
        each("-"),
        each(", "),
        each(":").to_uppercase(),
        groups(2),
        groups(4),
        each("  "),
        each("\t"),
    ];
    for text in all.into_iter().chain([
        each("\n"),
        each(" ").replace("33 ", "33\n  "),
        each(" ").replace("33 ", "33\\n"),
    ]) {
        assert_eq!(secret.redact(&format!("a {text} b")), "a [redacted] b", "{text}");
    }
    for text in [c, escaped] {
        assert!(!secret.redact(&text).contains("3, 0x") && !secret.redact(&text).contains("33"), "{text}");
    }
    // Where the key begins is no matter, nor whether its characters stand beside it.
    for before in 0..20 {
        let bytes = ["a".repeat(before).as_bytes(), key.as_bytes(), b" and more"].concat();
        let printable = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let hex = |part: &[u8], by: usize| {
            let groups =
                part.chunks(by).map(|group| group.iter().map(|b| format!("{b:02x}")).collect::<String>());
            groups.collect::<Vec<_>>().join(" ")
        };
        let lines = |line: &dyn Fn(usize, &[u8]) -> String| {
            bytes.chunks(16).enumerate().map(|(n, part)| line(n * 16, part)).collect::<String>()
        };
        let dumps = [
            lines(&|at, part| format!("{at:08x}: {:<39}  {}\n", hex(part, 2), printable(part))),
            lines(&|at, part| format!("{at:08x}  {:<48}  |{}|\n", hex(part, 1), printable(part))),
            lines(&|at, part| format!("{at:07o} {}\n", hex(part, 1))),
        ];
        for dump in dumps {
            let clean = secret.redact(&dump);
            for (from, to) in [(0, 6), (9, 15), (17, 23)] {
                let part = &key.as_bytes()[from..to];
                for shown in [hex(part, 1), hex(part, 2), hex(&part[1..], 2), printable(part)] {
                    assert!(!clean.contains(&shown), "{before} {shown}: {dump}{clean}");
                }
            }
            let mut flow = Flow::new(&Secrets::new([&secret]));
            let told: String = dump.chars().map(|c| flow.more(c.to_string())).collect();
            assert_eq!(told + &flow.rest(), clean, "{dump}");
        }
    }
    for other in ["73 6b 2d 30 31 32 33 34 35 36 37 38 39", "00000010: 7374 7475", "12:34:56:78:9a:bc"] {
        assert!(matches!(secret.redact(other), Cow::Borrowed(_)), "{other}");
    }
}

/// C-06: in hex over indented lines; what is behind a margin that is none is another word.
#[test]
fn margins_do_not_hide_a_secret() {
    let secret = Secret::new("sk-#0123456789");
    for text in ["736b2d23\n    3031323334\r\n  3536373839", "sk-\n#0123456789", "sk-#01234 \n # 56789"] {
        assert_eq!(secret.redact(&format!("a {text}\n  b")), "a [redacted]\n  b", "{text}");
    }
    let wide = format!("sk-#0123\n{}456789", " ".repeat(200));
    for text in [wide.as_str(), "sk-#0123 456789", "sk-#0123 | 456789", "sk-#0123\n-456789"] {
        assert!(matches!(secret.redact(text), Cow::Borrowed(_)), "{text}");
    }
}

/// C-06: a key of several lines, as it is and in a text of JSON, also piece by piece.
#[test]
fn keys_of_several_lines_are_removed() {
    let secret = Secret::new("-----BEGIN KEY-----\nMIIEvQ\n\nABCDEFG\n-----END KEY-----\n");
    for key in [
        secret.expose().to_owned(),
        secret.expose().replace('\n', "\\n"),
        secret.expose().replace('\n', "\r\n  "),
    ] {
        let text = format!("a {key} b");
        assert_eq!(secret.redact(&text), "a [redacted] b", "{text}");
        let mut flow = Flow::new(&Secrets::new([&secret]));
        let told: String = text.chars().map(|c| flow.more(c.to_string())).collect();
        assert_eq!(told + &flow.rest(), "a [redacted] b", "{text}");
    }
}

/// What Python's `json.dumps`, `repr` of bytes and `urlencode` make of a key.
#[test]
fn spellings_beyond_ascii_do_not_hide_a_secret() {
    let secret = Secret::new("sk-abcdäöü😀12345678");
    for spelled in [
        r"sk-abcd\u00e4\u00f6\u00fc\ud83d\ude0012345678",
        r"sk-abcd\u00E4\u00F6\u00FC\uD83D\uDE0012345678",
        r"sk-abcd\\u00e4\\u00f6\\u00fc\\ud83d\\ude0012345678",
        r"sk-abcd\xc3\xa4\xc3\xb6\xc3\xbc\xf0\x9f\x98\x8012345678",
    ] {
        assert_eq!(secret.redact(&format!("a {spelled} b")), "a [redacted] b", "{spelled}");
    }
    let secret = Secret::new("correct horse battery+staple");
    for spelled in ["correct+horse+battery%2Bstaple", "correct%20horse%20battery+staple"] {
        assert_eq!(secret.redact(&format!("password={spelled}&x=1")), "password=[redacted]&x=1", "{spelled}");
    }
}

#[test]
fn many_secrets_are_removed_together() {
    let secrets =
        Secrets::new(&["sk-1234567890", "none", "sk-1234567890-more", "pass+word"].map(Secret::new));
    assert_eq!(
        secrets.redact("sk-1234567890 none sk-1234567890-more pass%2bword"),
        "[redacted] none [redacted] [redacted]"
    );
    assert!(Secrets::new(&[Secret::new("none")]).is_empty() && Secrets::default().is_empty());
    assert_eq!(Secrets::default().redact("a%b"), "a%b");
}

#[test]
fn what_may_begin_a_secret_waits() {
    let mut flow = Flow::new(&Secrets::new(&[Secret::new("sk-1234567890")]));
    let told: Vec<String> =
        ["a s", "k", "-12", "x sk-1234", "567890 and s", "o"].map(|piece| flow.more(piece.to_owned())).into();
    assert_eq!(told, ["a ", "", "", "sk-12x ", "[redacted] and ", "so"]);
    assert_eq!(flow.rest(), "");
    assert_eq!(flow.more("sk-12".to_owned()) + &flow.rest(), "sk-12");
}

/// All the ways in which a key may turn up.
fn written_forms(key: &str) -> Vec<String> {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let json = serde_json::to_string(key).unwrap().trim_matches('"').replace('/', "\\/");
    let mut forms = vec![key.to_owned(), hex.to_uppercase(), hex, json];
    if key.contains('/') {
        forms.push(percent);
    }
    for before in ["", "u", "us"] {
        for encoded in [BASE64_STANDARD, BASE64_URL_SAFE].map(|e| e.encode(format!("{before}{key}xx"))) {
            forms.push(encoded.clone());
            forms.push(encoded.replace('/', "\\/"));
            for end in ["\n", " |\r\n | ", "\\n  "] {
                let lines = encoded.as_bytes().chunks(9).map(|l| String::from_utf8_lossy(l));
                forms.push(lines.collect::<Vec<_>>().join(end));
            }
        }
    }
    forms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// C-06: however a text is cut into pieces, they say together what the whole text says, and no piece shows a part of a
    /// key that a whole one follows.
    #[test]
    fn any_split_says_what_the_whole_says(
        parts in prop::collection::vec((0_usize..60, "[ |#a-fk-s0-9\\\\%/\\-\nSé]{0,6}"), 1..6),
        cuts in prop::collection::vec(1_usize..8, 1..20),
    ) {
        let keys = ["sk-0123456789/ab", "sk-0123abcdefgh", "# s-01 |\n| b"];
        let forms: Vec<String> = keys.iter().flat_map(|key| written_forms(key)).collect();
        let secrets = Secrets::new(&keys.map(Secret::new));
        let text: String = parts
            .iter()
            .map(|(form, between)| format!("{}{between} ", forms.get(*form).map_or("sk-01", String::as_str)))
            .collect();
        let mut flow = Flow::new(&secrets);
        let (mut told, mut rest) = (String::new(), text.as_str());
        for cut in cuts.iter().cycle() {
            let at = rest.ceil_char_boundary((*cut).min(rest.len()));
            let (piece, behind) = rest.split_at(at);
            told.push_str(&flow.more(piece.to_owned()));
            let whole = secrets.redact(&text);
            prop_assert!(whole.starts_with(&told), "{:?} of {:?}", told, whole);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        told.push_str(&flow.rest());
        prop_assert_eq!(told, secrets.redact(&text));
    }
}
