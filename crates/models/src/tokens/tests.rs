//! Counts, held against `tiktoken-rs`, which has the reference's own algorithm.

use super::*;
use proptest::prelude::*;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

fn reference(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::Cl100kBase => cl100k_base_singleton(),
        Encoding::O200kBase => o200k_base_singleton(),
    }
}

/// The tokens of a text by their bytes are those of the reference.
fn agrees(text: &str) -> Result<(), TestCaseError> {
    for (name, encoding) in Encoding::NAMES {
        let reference = reference(encoding);
        let tokens = reference.encode_ordinary(text);
        let wanted: Vec<usize> =
            tokens.iter().map(|token| reference.decode_bytes(&[*token]).unwrap().len()).collect();
        let mut found = Vec::new();
        encoding.each(text, |bytes| found.push(bytes));
        prop_assert_eq!(found, wanted, "{}: {:?}", name, text);
        prop_assert_eq!(encoding.count(text), tokens.len() as u64);
    }
    Ok(())
}

/// Texts of what patterns are about, in any order.
fn mixed() -> impl Strategy<Value = String> {
    let parts = [
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u{a0}",
        "\u{2003}",
        "a",
        "A",
        "é",
        "e\u{301}",
        "ß",
        "ſ",
        "'s",
        "'LL",
        "'",
        "1",
        "12",
        "²",
        "日本",
        "ا",
        "!",
        "//",
        "<|endoftext|>",
        "👩‍👩‍👧",
        "_",
        "-",
        "hello",
        "World",
        "ABCdef",
        "\u{0}",
        "𝒳",
        "Dž",
        "ʰ",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..40)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a13_tokens_of_random_texts_are_the_references(text in "\\PC{0,60}") {
        agrees(&text)?;
    }

    #[test]
    fn a13_tokens_of_mixed_texts_are_the_references(text in mixed()) {
        agrees(&text)?;
    }

    /// What is cut off is no longer than was said, and joined again nothing is missing.
    #[test]
    fn a11_heads_and_tails_are_cut_between_characters(text in mixed(), tokens in 0_u64..30) {
        for (_, encoding) in Encoding::NAMES {
            let (head, tail) = (encoding.head(&text, tokens), encoding.tail(&text, tokens));
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            if tokens >= encoding.count(&text) {
                prop_assert_eq!((head, tail), (&*text, &*text));
            }
        }
    }
}

#[test]
fn a13_known_texts_have_known_counts() {
    for (text, cl100k, o200k) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        // One that ends a text for a model is text here.
        ("<|endoftext|>", 7, 7),
    ] {
        assert_eq!(Encoding::Cl100kBase.count(text), cl100k, "{text}");
        assert_eq!(Encoding::O200kBase.count(text), o200k, "{text}");
    }
    for text in
        [include_str!("tests.rs"), include_str!("../../data/README.md"), "a \n  ", "a \n  b", "\n\n  \n x   "]
    {
        agrees(text).unwrap();
    }
    assert_eq!(Encoding::named("o200k_base"), Some(Encoding::O200kBase));
    assert_eq!(Encoding::named("gpt2"), None);
}

/// A long piece is not looked at again for each of its tokens: with time that grows with the square of the text, this would not end.
#[test]
fn a13_a_megabyte_of_one_character_is_counted() {
    for part in
        ["a", " ", "\n", "!", "0", "é", "日", "ab", "' s", "\u{300}", "A\u{300}", " \n", "x ", "\u{a0}"]
    {
        agrees(&part.repeat(5000 / part.len())).unwrap();
    }
    let cl100k = Encoding::Cl100kBase;
    for (part, tokens) in [("a", 131_072), (" ", 8192)] {
        let text = part.repeat(1 << 20);
        assert_eq!(cl100k.count(&text), tokens);
        assert!(cl100k.head(&text, 10).len() < 2000);
    }
}

#[test]
fn a13_counts_are_remembered_by_what_a_text_says() {
    let counts = Counts::default();
    for _ in 0..2 {
        assert_eq!(counts.count(Encoding::Cl100kBase, "hello world"), 2);
        assert_eq!(counts.count(Encoding::Cl100kBase, ""), 0);
        assert_eq!(counts.count(Encoding::O200kBase, "<|endoftext|>"), 7);
    }
}
