//! Which words differ, whatever the texts.

use super::words::{Piece, Tag, pieces};

fn told(a: &str, b: &str) -> String {
    let piece = |Piece { tag, text }: Piece| match tag {
        Tag::Same => text,
        Tag::Removed => format!("[-{text}-]"),
        Tag::Added => format!("{{+{text}+}}"),
    };
    let pieces = pieces(a, b);
    let side =
        |but: Tag| pieces.iter().filter(move |piece| piece.tag != but).map(|piece| piece.text.as_str());
    assert_eq!(side(Tag::Added).collect::<String>(), a);
    assert_eq!(side(Tag::Removed).collect::<String>(), b);
    pieces.into_iter().map(piece).collect()
}

/// C-15: words stay whole, signs and characters of scripts without spaces are told one by one.
#[test]
fn words_differ_as_people_read_them() {
    assert_eq!(told("the quick fox", "the slow fox"), "the [-quick-]{+slow+} fox");
    assert_eq!(told("running", "ranning"), "[-running-]{+ranning+}");
    assert_eq!(told("a b", "a b c"), "a b{+ c+}");
    assert_eq!(told("", "all new"), "{+all new+}");
    assert_eq!(
        told("we are sorry for it all", "we like you for it all"),
        "we [-are sorry-]{+like you+} for it all"
    );
    assert_eq!(told("one two three", "four five six"), "[-one two three-]{+four five six+}");
    assert_eq!(told("今天很好", "今天不好"), "今天[-很-]{+不+}好");
    assert_eq!(told("naïve é", "naïve è"), "naïve [-é-]{+è+}");
    assert_eq!(told("x = f(1)\n", "x = f(2)\n"), "x = f([-1-]{+2+})\n");
    assert_eq!(told("same", "same"), "same");
}

/// However long the texts are, and however little they have in common, the comparison ends.
#[test]
fn long_texts_are_bounded() {
    let text = |word: &str| (0..60_000).map(|n| format!("{word}{n} ")).collect::<String>();
    let (a, b) = (text("a"), text("b"));
    assert_eq!(pieces(&a, &b).len(), 2 + 1, "all but the blank at the end");
    // One word within.
    let edited = a.replace("a30000 ", "other ");
    assert!(told(&a, &edited).contains("[-a30000-]{+other+}"));
    // By lines, where words are too many.
    let lines = |word: &str| {
        (0..1_000).map(|n| format!("{n} {} {word}{}\n", "x ".repeat(50), n % 7)).collect::<String>()
    };
    let (a, b) = (lines("a"), lines("b"));
    assert!(pieces(&a, &b).len() > 2);
}
