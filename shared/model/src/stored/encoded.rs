//! The bytes of stored content. No other module knows them.

use super::MAX_BYTES;
use super::schema::corrupt;
use crate::store::{SizeError, StoreError};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde::{Serialize, de::DeserializeOwned};
use std::borrow::Cow;
use std::io::{Read as _, Write as _};

/// JSON above this many bytes is compressed. Ids, which are most of a shorter one, hardly shrink.
const TEXT_MAX: usize = 512;

/// The level of compression. A higher one takes more time and hardly shrinks a task further.
const LEVEL: Compression = Compression::new(6);

/// The longest JSON. A log repeats the parts of artifacts, which a task counts once.
const JSON_MAX: usize = 2 * MAX_BYTES;

/// The deepest nesting of stored content. The JSON reader refuses 128 levels, and a store must
/// not write what it cannot read back.
const MAX_DEPTH: usize = 120;

/// Content as a store keeps it. The type of the attribute says which of the two it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoded<'a> {
    /// JSON.
    Text(Cow<'a, str>),
    /// Compressed JSON: raw DEFLATE (RFC 1951).
    Deflated(Cow<'a, [u8]>),
}

impl Encoded<'static> {
    /// The stored bytes of this JSON.
    ///
    /// # Errors
    /// [`StoreError::Refused`], which does not happen: the bytes are written to memory.
    pub fn of(json: String) -> Result<Self, StoreError> {
        if json.len() <= TEXT_MAX {
            return Ok(Self::Text(json.into()));
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), LEVEL);
        let result = encoder.write_all(json.as_bytes());
        let bytes = result.and_then(|()| encoder.finish());
        let bytes = bytes.map_err(|error| StoreError::Refused(error.to_string()))?;
        Ok(Self::Deflated(bytes.into()))
    }
}

impl Encoded<'_> {
    /// The number of stored bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Deflated(bytes) => bytes.len(),
        }
    }

    /// The JSON.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the bytes are damaged, or the JSON is too long.
    pub fn json(&self) -> Result<Cow<'_, str>, StoreError> {
        match self {
            Self::Text(text) => Ok(Cow::Borrowed(text)),
            Self::Deflated(bytes) => decompress(bytes).map(Cow::Owned),
        }
    }

    /// The value that the JSON is.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        serde_json::from_str(&self.json()?).map_err(corrupt)
    }
}

/// The stored bytes of `form`.
///
/// # Errors
/// [`StoreError::TooLarge`] for JSON longer than [`JSON_MAX`], or nested more deeply than a
/// reader follows.
pub(super) fn encode(form: &impl Serialize) -> Result<Encoded<'static>, StoreError> {
    Encoded::of(json(form)?)
}

fn decompress(bytes: &[u8]) -> Result<String, StoreError> {
    let mut json = String::new();
    let limit = u64::try_from(JSON_MAX).unwrap_or(u64::MAX);
    let mut decoder = DeflateDecoder::new(bytes).take(limit.saturating_add(1));
    decoder.read_to_string(&mut json).map_err(corrupt)?;
    if json.len() > JSON_MAX {
        return Err(corrupt("the content is longer than a task may be"));
    }
    Ok(json)
}

/// The JSON of `form`.
///
/// # Errors
/// As [`encode`].
pub(super) fn json(form: &impl Serialize) -> Result<String, StoreError> {
    let json =
        serde_json::to_string(form).map_err(|error| StoreError::Refused(error.to_string()))?;
    SizeError::check(json.len(), JSON_MAX)?;
    if depth(&json) > MAX_DEPTH {
        let what = format!("nested more than {MAX_DEPTH} levels deep");
        return Err(StoreError::TooLarge(SizeError::Other(what)));
    }
    Ok(json)
}

/// Whether the stored bytes of `form` are more than `limit`. What cannot be stored is.
pub(super) fn exceeds(form: &impl Serialize, limit: usize) -> bool {
    let Ok(json) = json(form) else {
        return true;
    };
    // Compression makes it shorter, or by some bytes longer.
    json.len() > limit && Encoded::of(json).map_or(usize::MAX, |it| it.size()) > limit
}

/// The length of the JSON of `form`, without building it.
pub(super) fn length(form: &impl Serialize) -> usize {
    struct ByteCount(usize);
    impl std::io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    // Infallible: plain values with text keys are always valid JSON.
    if serde_json::to_writer(&mut count, form).is_err() {
        return usize::MAX;
    }
    count.0
}

/// The deepest nesting of a JSON text.
fn depth(text: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        if is_quoted {
            is_quoted = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => is_quoted = true,
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn long_content_is_compressed_and_reads_back() {
        each_row([0, 510, 511, 5_000, JSON_MAX - 2], |length| {
            let text = "word ".repeat(length.div_ceil(5));
            let text = text.get(..length).unwrap();
            let encoded = encode(&text).unwrap();
            let is_text = matches!(encoded, Encoded::Text(_));
            assert_eq!(is_text, length <= 510, "{length}");
            assert_eq!(encoded.read::<String>().unwrap(), text);
        });
        assert!(encode(&"x".repeat(JSON_MAX)).is_err());
    }

    #[test]
    fn content_that_inflates_beyond_the_limit_is_corrupt() {
        let bomb = Encoded::of(format!("\"{}\"", " ".repeat(JSON_MAX))).unwrap();
        assert!(bomb.size() < 20_000, "{}", bomb.size());
        assert!(matches!(bomb.json(), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn damaged_bytes_are_corrupt() {
        let Encoded::Deflated(bytes) = encode(&"a b c ".repeat(200)).unwrap() else {
            panic!("a text");
        };
        let cut = bytes.get(..bytes.len() / 2).unwrap();
        for damaged in [cut, b"", b"\xff\xff"] {
            let read = Encoded::Deflated(damaged.into()).json().map(drop);
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{damaged:?}");
        }
    }
}
