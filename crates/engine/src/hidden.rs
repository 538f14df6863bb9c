//! Characters that are escaped wherever text of others is shown (C-04).

/// Whether a character is written as an escape where text of others is shown: control characters, which steer a terminal, marks
/// of direction, which reorder what is around them, and what is nothing to see, in which words can hide from a person and not from
/// a model: of no width, fillers, tags, and the selectors behind them. The joiners U+200C and U+200D stay: pictures of several
/// parts are one for them, and words of Persian and of Indian languages are spelled with them. So do the selectors of U+FE0F's
/// block, which choose between a letter and its picture.
pub fn is_hidden(character: char) -> bool {
    let unseen = matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
    );
    let turning = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    let special =
        matches!(character, '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    character.is_control() || unseen || turning || special
}
