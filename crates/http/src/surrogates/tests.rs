use super::*;
use proptest::prelude::*;

fn parsed(body: &[u8]) -> String {
    let mended = marked(body).unwrap_or_else(|| body.to_vec());
    serde_json::from_slice(&mended).unwrap()
}

/// What a text is whose JSON comes in these pieces, and how many of its characters are lost.
fn joined(pieces: &[&[u8]]) -> (String, u32) {
    let all: String = pieces.iter().map(|piece| parsed(piece)).collect();
    settled(&all).unwrap_or((all, 0))
}

#[test]
fn halves_of_neighbouring_pieces_are_joined() {
    assert_eq!(joined(&[br#""a\ud83d""#, br#""\ude00b""#]), ("a😀b".to_owned(), 0));
    assert_eq!(joined(&[b"\"\xf0\x9f\"", b"\"\x98\x80!\""]), ("😀!".to_owned(), 0));
    assert_eq!(joined(&[b"\"\xed\xa0\xbd\"", b"\"\xed\xb8\x80\""]), ("😀".to_owned(), 0));
    assert_eq!(joined(&[b"\"\xed\xa0\xbd\"", br#""\ude00""#]), ("😀".to_owned(), 0));
}

#[test]
fn what_has_no_other_half_is_lost_and_counted() {
    assert_eq!(joined(&[br#""\ude00\ud83d""#]), ("\u{fffd}\u{fffd}".to_owned(), 2));
    assert_eq!(joined(&[br#""\ud83dx""#, br#""\ude00""#]), ("\u{fffd}x\u{fffd}".to_owned(), 2));
    assert_eq!(joined(&[b"\"\xc3\"", b"\"x\""]), ("\u{fffd}x".to_owned(), 1));
    assert_eq!(joined(&[b"\"\xff\xfe\""]).1, 2);
}

#[test]
fn whole_texts_are_left_alone() {
    for whole in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00e4\"""#, "plain", r"\", r#""\ud8"#] {
        assert_eq!(marked(whole.as_bytes()), None, "{whole}");
    }
    let private = "\u{10ffff}\u{10ffff}a\u{10d800}";
    assert_eq!(settled(private).unwrap(), (private.to_owned(), 0));
}

/// In names and values of arguments, too.
#[test]
fn values_are_settled() {
    let mut json: Value = serde_json::from_slice(&marked(br#"{"\ud83d": ["\ude00x"]}"#).unwrap()).unwrap();
    assert_eq!(value(&mut json), 2);
    assert_eq!(json, serde_json::json!({"\u{fffd}": ["\u{fffd}x"]}));
}

proptest! {
    /// However the code units of a text are cut, it comes together again, and what is said of it piece by piece is it.
    #[test]
    fn any_cut_between_code_units_is_mended(text in "[a😀é𝄞\\\\\"]{0,12}", cuts in prop::collection::vec(any::<bool>(), 32)) {
        let mut pieces = vec![String::new()];
        for (unit, cut) in text.encode_utf16().zip(cuts.iter().cycle()) {
            if *cut {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().push_str(&format!("\\u{unit:04x}"));
        }
        let mut said = Said::default();
        let (mut whole, mut heard) = (String::new(), String::new());
        for piece in &pieces {
            let piece = parsed(format!("\"{piece}\"").as_bytes());
            whole.push_str(&piece);
            heard.push_str(&said.more(piece));
            prop_assert!(!heard.contains(MARK));
        }
        heard.push_str(&said.rest());
        prop_assert_eq!(&settled(&whole).map_or(whole, |(clean, lost)| { assert_eq!(lost, 0); clean }), &text);
        prop_assert_eq!(&heard, &text);
    }
}
