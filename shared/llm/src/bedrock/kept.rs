//! Reasoning, which returns to the model unchanged.

use aws_sdk_bedrockruntime::types::{ReasoningContentBlock, ReasoningTextBlock};
use aws_smithy_types::Blob;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The member that names the API.
const REASONING: &str = "bedrockReasoning";
const TEXT: &str = "text";
const SIGNATURE: &str = "signature";
const REDACTED: &str = "redacted";

/// Reasoning of a model, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    pub(super) text: String,
    pub(super) signature: String,
    pub(super) redacted_content: Vec<u8>,
}

impl Reasoning {
    /// The block that the conversation keeps; `None` if there is nothing.
    pub(super) fn into_block(self) -> Option<Value> {
        let reasoning = if self.redacted_content.is_empty() {
            match (self.text.is_empty(), self.signature.is_empty()) {
                (true, true) => return None,
                (_, true) => json!({ TEXT: self.text }),
                (_, false) => json!({ TEXT: self.text, SIGNATURE: self.signature }),
            }
        } else {
            json!({ REDACTED: STANDARD.encode(self.redacted_content) })
        };
        Some(json!({ REASONING: reasoning }))
    }
}

/// The content of a kept block; `None` for a block of another API.
pub(super) fn content(block: &Value) -> Option<ReasoningContentBlock> {
    let reasoning = block.get(REASONING)?;
    let member = |name| reasoning.get(name).and_then(Value::as_str);
    if let Some(base64) = member(REDACTED) {
        let bytes = STANDARD.decode(base64).ok()?;
        return Some(ReasoningContentBlock::RedactedContent(Blob::new(bytes)));
    }
    let text = ReasoningTextBlock::builder()
        .text(member(TEXT)?)
        .set_signature(member(SIGNATURE).map(str::to_owned))
        .build();
    text.ok().map(ReasoningContentBlock::ReasoningText)
}
