//! Characters that a person cannot see in a text.

/// Whether `letter` is a control character, has no width or no shape, or changes the direction
/// of the text: Unicode UAX #9 for the direction, and the code points with the property
/// `Default_Ignorable_Code_Point`.
#[must_use]
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}'
        )
}
