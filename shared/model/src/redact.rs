//! Removes quoted values from the texts of errors, so that a log can have the texts.
//!
//! The errors of serde and of many parsers quote the value that they could not read, and
//! the value may be what a client sent.

use std::str::Chars;

/// What replaces a value.
const CUT: &str = "…";

/// The text with `…` in place of what it quotes: in `"`, in `` ` ``, and in `'` at the
/// start of a word. A name after `missing field` stays, since it is one of the program. A
/// quotation without an end is cut to the end of the text.
///
/// ```
/// use a2a_lambda_model::redact::without_values;
///
/// let text = r#"invalid type: string "a \" secret", expected u64"#;
/// assert_eq!(without_values(text), r#"invalid type: string "…", expected u64"#);
/// ```
#[must_use]
pub fn without_values(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut rest = text.chars();
    let mut before = ' ';
    while let Some(next) = rest.next() {
        output.push(next);
        let opens = match next {
            '"' | '`' => true,
            '\'' => !before.is_alphanumeric(),
            _ => false,
        };
        before = next;
        if !opens {
            continue;
        }
        let is_name = output.ends_with("missing field `");
        let (value, is_closed) = read_quoted(&mut rest, next);
        output.push_str(if is_name { &value } else { CUT });
        if is_closed {
            output.push(next);
        }
    }
    output
}

/// The text up to the next `quote` that no backslash escapes, and whether there is one.
fn read_quoted(rest: &mut Chars<'_>, quote: char) -> (String, bool) {
    let mut value = String::new();
    let mut is_escaped = false;
    for next in rest {
        if next == quote && !is_escaped {
            return (value, true);
        }
        is_escaped = next == '\\' && !is_escaped;
        value.push(next);
    }
    (value, false)
}

#[cfg(test)]
mod tests {
    use super::without_values;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_text_of_serde_keeps_its_category_and_loses_its_value() {
        let rows = [
            (
                r#"invalid type: string "canary", expected u64 at line 1 column 9"#,
                r#"invalid type: string "…", expected u64 at line 1 column 9"#,
            ),
            (
                "invalid value: integer `4711`, expected u8",
                "invalid value: integer `…`, expected u8",
            ),
            (
                "unknown variant `canary`, expected `a` or `b`",
                "unknown variant `…`, expected `…` or `…`",
            ),
            (
                "missing field `city` at line 1 column 2",
                "missing field `city` at line 1 column 2",
            ),
            (
                r#"string "canary \" canary \\" is not"#,
                r#"string "…" is not"#,
            ),
            ("key 'canary' isn't known", "key '…' isn't known"),
            ("the table can't say \"canary", "the table can't say \"…"),
            ("no value", "no value"),
        ];
        each_row(rows, |(text, cut)| {
            assert_eq!(without_values(text), cut);
        });
    }
}
