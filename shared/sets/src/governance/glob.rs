//! Globs, translated to regular expressions.
//!
//! `*` is any text without `/`, `?` one character without `/`, `**` as a whole segment any
//! number of segments, `{a,b}` one of the words, without `/` in them. Case counts. Everything
//! else is literal, or refused if other programs give it a meaning.

/// What is wrong with a text that is no glob. The texts are public.
const EMPTY_SEGMENT: &str = "has an empty segment, expected a relative path";
const DOT_SEGMENT: &str = "has the segment `.` or `..`, which no path has";
const DOUBLE_STAR: &str = "has `**` beside other characters, expected it as a whole segment";
const BRACE: &str = "has a brace without its other one in the same segment, or braces in braces";
const CHARACTER: &str = "has one of `!`, `[`, `]` and `\\`, which are not supported";

/// The regular expression of a glob, without anchors.
pub(super) fn regex_of(glob: &str) -> Result<String, &'static str> {
    let mut regex = String::new();
    let mut segments = glob.split('/').peekable();
    if glob.starts_with('!') {
        return Err(CHARACTER);
    }
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "" => return Err(EMPTY_SEGMENT),
            "." | ".." => return Err(DOT_SEGMENT),
            "**" if last => regex.push_str(".+"),
            // The expression has the `/` behind each segment.
            "**" => {
                regex.push_str("(?:[^/]+/)*");
                continue;
            }
            _ if segment.contains("**") => return Err(DOUBLE_STAR),
            _ => push_segment(&mut regex, segment)?,
        }
        if !last {
            regex.push('/');
        }
    }
    Ok(regex)
}

fn push_segment(regex: &mut String, segment: &str) -> Result<(), &'static str> {
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
            '{' | '}' => return Err(BRACE),
            ',' if in_braces => regex.push('|'),
            '[' | ']' | '\\' => return Err(CHARACTER),
            _ => regex.push_str(&regex_lite::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    if in_braces {
        return Err(BRACE);
    }
    Ok(())
}
