//! Estimates the encoded size of a response before it is written.
//!
//! An estimate is never too small. Member names and punctuation are rounded up, since the
//! three protocol generations spell them differently.

use crate::task::{Artifact, Message, Metadata, Part, PartContent};

/// The bytes of the member names, the punctuation and the id of one JSON object.
const FRAME: usize = 256;
/// The bytes of a reference that replaces stored content.
const NAMED: usize = 256;

/// The encoded size of `size` bytes as base64.
pub(super) const fn base64(size: u64) -> usize {
    // The cap keeps the multiplication from overflowing.
    let size = if size > usize::MAX as u64 / 2 {
        usize::MAX / 2
    } else {
        size as usize
    };
    size.div_ceil(3) * 4
}

/// The encoded size of a part; stored bytes count as a reference only.
pub(super) fn part(part: &Part) -> usize {
    let content = match &part.content {
        PartContent::Text(value) | PartContent::Url(value) => text(value),
        PartContent::Raw(bytes) => base64(bytes.len() as u64),
        PartContent::Data(value) => value.to_string().len(),
        PartContent::Stored(_) => NAMED,
    };
    let texts = [&part.filename, &part.media_type];
    let names: usize = texts.into_iter().flatten().map(|name| text(name)).sum();
    FRAME + content + names + members(&part.metadata)
}

/// The encoded size of a message.
pub(super) fn message(message: &Message) -> usize {
    let references = message.reference_task_ids.iter().chain(&message.extensions);
    FRAME
        + text(&message.id)
        + references.map(|name| text(name) + 4).sum::<usize>()
        + message.parts.iter().map(part).sum::<usize>()
        + members(&message.metadata)
}

/// The encoded size of an artifact.
pub(super) fn artifact(artifact: &Artifact) -> usize {
    let texts = [&artifact.name, &artifact.description];
    let names: usize = texts.into_iter().flatten().map(|name| text(name)).sum();
    FRAME + names + artifact.parts.iter().map(part).sum::<usize>() + members(&artifact.metadata)
}

/// The encoded size of metadata.
pub(super) fn members(metadata: &Metadata) -> usize {
    metadata
        .iter()
        .map(|(name, value)| text(name) + value.to_string().len() + 4)
        .sum()
}

/// The encoded size of a text with JSON escapes, without its quotes.
fn text(text: &str) -> usize {
    let encoded_len = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        // `\u001f` has six characters.
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(encoded_len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;
    use serde_json::{Value, json};

    #[test]
    fn estimate_is_never_below_the_encoded_size() {
        let rows = ["", "plain", "\"\\\u{1}\u{7f}\n", "\u{1F600} ü", "</script>"];
        each_row(rows, |content| {
            let written = json!(content).to_string().len();
            assert!(text(content) + 2 >= written, "{content:?}");
        });
        for size in 0..9_u64 {
            let bytes = vec![0_u8; usize::try_from(size).unwrap()];
            let written = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
            assert_eq!(super::base64(size), written.len());
        }
        let mut part = Part::data(json!({"a": [1, "x"], "b": Value::Null}));
        part.metadata.insert("k\n".to_owned(), json!("v"));
        assert!(
            super::part(&part)
                > json!({"data": {"a": [1, "x"], "b": null}})
                    .to_string()
                    .len()
        );
    }

    #[test]
    fn estimate_counts_every_member_of_messages_and_artifacts() {
        let long = "x".repeat(10_000);
        let with = |change: &dyn Fn(&mut Part)| {
            let mut part = Part::text("");
            change(&mut part);
            part
        };
        let along = |metadata: &mut Metadata| {
            metadata.insert(long.clone(), Value::Null);
        };
        for part in [
            with(&|it| it.filename = Some(long.clone())),
            with(&|it| it.media_type = Some(long.clone())),
            with(&|it| along(&mut it.metadata)),
        ] {
            assert!(super::part(&part) > 10_000, "{part:?}");
        }
        let says = |change: &dyn Fn(&mut Message)| {
            let mut message = Message::from_agent("m", Vec::new());
            change(&mut message);
            super::message(&message)
        };
        assert!(says(&|it| it.id.clone_from(&long)) > 10_000);
        assert!(says(&|it| it.reference_task_ids.push(long.clone())) > 10_000);
        assert!(says(&|it| it.extensions.push(long.clone())) > 10_000);
        assert!(says(&|it| along(&mut it.metadata)) > 10_000);
        let made = |change: &dyn Fn(&mut Artifact)| {
            let mut artifact = Artifact {
                chunks_of: None,
                id: "a".to_owned(),
                name: None,
                description: None,
                parts: Vec::new(),
                extensions: Vec::new(),
                metadata: Metadata::new(),
            };
            change(&mut artifact);
            super::artifact(&artifact)
        };
        assert!(made(&|it| it.name = Some(long.clone())) > 10_000);
        assert!(made(&|it| it.description = Some(long.clone())) > 10_000);
        assert!(made(&|it| along(&mut it.metadata)) > 10_000);
    }
}
