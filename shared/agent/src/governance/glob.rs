//! Globs, translated to regular expressions.
//!
//! `*` is any text without `/`, `?` one character without `/`, `**` as a whole segment any
//! number of segments, `{a,b}` one of the words, without `/` in them. Case counts. Everything
//! else is literal, or refused if other programs give it a meaning.

/// The text is no glob. The text is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobFault {
    /// An absolute path, two `/` together, or one at the end.
    #[error("has an empty segment, expected a relative path")]
    EmptySegment,
    /// Normalised paths never have these segments.
    #[error("has the segment `.` or `..`, which no path has")]
    DotSegment,
    /// As in `a**`.
    #[error("has `**` beside other characters, expected it as a whole segment")]
    DoubleStar,
    /// Braces inside braces, an open brace, or one around a `/`.
    #[error("has a brace without its other one in the same segment, or braces in braces")]
    Brace,
    /// Has a meaning in other programs.
    #[error("has the character `{0}`, which is not supported")]
    Character(char),
}

/// The regular expression of a glob, without anchors.
pub(super) fn regex_of(glob: &str) -> Result<String, GlobFault> {
    let mut regex = String::new();
    let mut segments = glob.split('/').peekable();
    if glob.starts_with('!') {
        return Err(GlobFault::Character('!'));
    }
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "" => return Err(GlobFault::EmptySegment),
            "." | ".." => return Err(GlobFault::DotSegment),
            "**" if last => regex.push_str(".+"),
            // The expression has the `/` behind each segment.
            "**" => {
                regex.push_str("(?:[^/]+/)*");
                continue;
            }
            _ if segment.contains("**") => return Err(GlobFault::DoubleStar),
            _ => push_segment(&mut regex, segment)?,
        }
        if !last {
            regex.push('/');
        }
    }
    Ok(regex)
}

fn push_segment(regex: &mut String, segment: &str) -> Result<(), GlobFault> {
    let mut in_braces = false;
    for letter in segment.chars() {
        match letter {
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '{' if !in_braces => {
                in_braces = true;
                regex.push_str("(?:");
            }
            '}' if in_braces => {
                in_braces = false;
                regex.push(')');
            }
            '{' | '}' => return Err(GlobFault::Brace),
            ',' if in_braces => regex.push('|'),
            '[' | ']' | '\\' => return Err(GlobFault::Character(letter)),
            _ => regex.push_str(&regex_lite::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    if in_braces {
        return Err(GlobFault::Brace);
    }
    Ok(())
}
