//! The table of the protocol extensions that this server offers.

use serde_json::{Value, json};

/// An extension that this project defines (A2A 1.0 §4.4.4). None is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    /// The URI that names it.
    pub uri: &'static str,
    /// What it adds, for people.
    pub description: &'static str,
}

/// The JSON schemas of skills, in the extension's `params`.
pub(super) const SKILL_SCHEMAS: Extension = Extension {
    uri: "urn:a2a-lambda:ext:skill-schemas:1",
    description: "JSON schemas of the data parts each skill reads and writes",
};

/// Signed push deliveries instead of a token in each.
pub(crate) const WEBHOOK_SIGNATURES: Extension = Extension {
    uri: "urn:a2a-lambda:ext:webhook-signatures:1",
    description: "for a push config made with it, each delivery has X-A2A-Signature (HMAC-SHA256 under the config's token) and X-A2A-Timestamp, and no token",
};

/// The extensions of this server. The card lists them, and a response repeats
/// those that the client named.
pub const OFFERED: [Extension; 6] = [
    SKILL_SCHEMAS,
    Extension {
        uri: "urn:a2a-lambda:ext:skill-route:1",
        description: "the message metadata `a2a-lambda/skillId` names the skill that answers",
    },
    Extension {
        uri: "urn:a2a-lambda:ext:uploads:1",
        description: "POST /a2a-lambda/uploads gives a URL for a large file, and a part that names it",
    },
    Extension {
        uri: "urn:a2a-lambda:ext:contexts:1",
        description: "GET /a2a-lambda/contexts lists the conversations of a caller; DELETE below it clears one, and below /a2a-lambda/tasks a task",
    },
    Extension {
        uri: "urn:a2a-lambda:ext:idempotency:1",
        description: "the metadata `a2a-lambda/idempotencyKey`, or the header `Idempotency-Key`, names a send: sent again, it gets the same task or reply",
    },
    WEBHOOK_SIGNATURES,
];

impl Extension {
    /// The extension as a card shows it.
    pub(super) fn declaration(self, params: Option<Value>) -> Value {
        let mut value = json!({"uri": self.uri, "description": self.description});
        if let (Some(params), Value::Object(members)) = (params, &mut value) {
            members.insert("params".to_owned(), params);
        }
        value
    }
}
