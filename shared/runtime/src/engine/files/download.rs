//! Makes the HTTP headers of a stored file that a client downloads by URL.
//!
//! File names and media types come from clients and skills and are not trusted. A type
//! that a browser could run becomes `application/octet-stream`, and every file is an
//! attachment.

use a2a_lambda_skill::is_invisible;

/// Media types that no browser runs; they are kept.
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

/// The media type of every other file.
const BYTES: &str = "application/octet-stream";

/// The most characters of a file name.
const NAME: usize = 80;
/// The most characters of a file extension that is kept.
const ENDING: usize = 12;

/// The `Content-Type` of a file with the claimed type `media_type`, without parameters.
pub(crate) fn content_type(media_type: &str) -> &'static str {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let safe_type = SAFE.iter().find(|safe| safe.eq_ignore_ascii_case(essence));
    safe_type.copied().unwrap_or(BYTES)
}

/// The `Content-Disposition` of a file with the claimed name `name`: an attachment with a
/// plain ASCII name. If that differs from the name, the whole name follows as RFC 5987
/// encodes it.
pub(crate) fn disposition(name: Option<&str>) -> String {
    let name = tame(name.unwrap_or_default());
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) || c == ' ' { c } else { '_' })
        .collect();
    if plain == name {
        return format!("attachment; filename=\"{plain}\"");
    }
    let mut encoding = String::new();
    for byte in name.bytes() {
        if is_plain(char::from(byte)) {
            encoding.push(char::from(byte));
        } else {
            encoding.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoding}")
}

/// Whether `c` needs no quoting in either form of the name.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The last segment of a path, without invisible and direction-changing characters, cut
/// to [`NAME`] characters with its extension. An empty name becomes `file`.
fn tame(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: Vec<char> = last.chars().filter(|c| !is_invisible(*c)).collect();
    let text: String = visible.iter().collect();
    // Neither `..` nor a hidden file name is left.
    let text = text.trim_matches([' ', '.']);
    if text.is_empty() {
        return "file".to_owned();
    }
    let count = text.chars().count();
    if count <= NAME {
        return text.to_owned();
    }
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let length = ending.chars().count();
    if length == 0 || length > ENDING {
        return text.chars().take(NAME).collect();
    }
    let stem: String = text.chars().take(NAME - length - 1).collect();
    format!("{stem}.{ending}")
}

#[cfg(test)]
mod tests;
