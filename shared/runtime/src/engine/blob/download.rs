//! How a stored file is handed to whoever follows its URL.
//!
//! A file name and a media type come from clients and skills and are data
//! only: what a browser could run comes as bytes of no type, and everything
//! comes as a file to save.

/// Types that no browser runs, handed over as they are.
const SAFE: [&str; 24] = [
    "application/gzip",
    "application/json",
    "application/msword",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/x-ndjson",
    "application/zip",
    "audio/flac",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "audio/webm",
    "image/avif",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/plain",
    "video/mp4",
    "video/webm",
];

/// The type of everything else.
const BYTES: &str = "application/octet-stream";

/// Characters of a file name that are handed on.
const NAME: usize = 80;
/// Characters of them that may be the ending.
const ENDING: usize = 12;

/// The `Content-Type` of a file whose media type is said to be `media_type`.
/// Parameters are dropped.
pub(crate) fn content_type(media_type: &str) -> &'static str {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let known = SAFE.iter().find(|safe| safe.eq_ignore_ascii_case(essence));
    known.copied().unwrap_or(BYTES)
}

/// The `Content-Disposition` of a file that is said to be called `name`: to be
/// saved, under a plain name, and as RFC 5987 has it under its whole one.
pub(crate) fn disposition(name: Option<&str>) -> String {
    let name = tame(name.unwrap_or_default());
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) || c == ' ' { c } else { '_' })
        .collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    let mut whole = String::new();
    for byte in name.bytes() {
        if is_plain(char::from(byte)) {
            whole.push(char::from(byte));
        } else {
            whole.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}")
}

/// Characters which need no quoting in any of the two forms.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The last part of a path, without what is not seen or turns text around, and
/// not too long.
fn tame(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let seen: Vec<char> = last.chars().filter(|c| !is_hidden(*c)).collect();
    let text: String = seen.iter().collect();
    let text = text.trim_matches([' ', '.']);
    if text.is_empty() {
        return "file".to_owned();
    }
    let count = text.chars().count();
    if count <= NAME {
        return text.to_owned();
    }
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let kept = ending.chars().count();
    if kept == 0 || kept > ENDING {
        return text.chars().take(NAME).collect();
    }
    let stem: String = text.chars().take(NAME - kept - 1).collect();
    format!("{stem}.{ending}")
}

/// Control characters, and those that change the direction of a text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests;
