//! Signs cards: JWS over their canonical form (A2A 1.0 §8.4).
//!
//! The operator signs with `a2a-local sign-card`, where the key is, and gives the
//! signatures to the functions as a setting. A function has no key and verifies
//! no signature. Each signature names the hash of the bytes it is made over, and is
//! served with that card alone.
//!
//! One card can have two canonical forms, with a signature over each:
//!
//! - The document as served, without `signatures`. This is the form that the
//!   specification describes, and the only one that covers the members of older
//!   generations.
//! - The members that a reader of 1.0 keeps. The official SDKs canonicalize the
//!   card *after* they read it into their types. Those types drop unknown members
//!   and empty values.
//!
//! A card is authentic if one of its signatures is (A2A 1.0 §8.4.3).

use super::jcs;
use crate::payload::keep;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The protected header parameter with the SHA-256 of the payload, in
/// hexadecimal digits.
const PAYLOAD_HASH: &str = "a2a-lambda/sha256";

/// A signature of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardSignature {
    /// The protected header, base64url.
    protected: String,
    /// The signature, base64url.
    signature: String,
    /// The hash of the bytes that are signed.
    payload: String,
}

/// The text is not a signature of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a detached JWS as `a2a-local sign-card` makes it")]
pub struct SignatureError;

impl CardSignature {
    /// The signature as a member of the card (A2A 1.0 §4.4.7).
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"protected": self.protected, "signature": self.signature})
    }

    /// Whether the signature is over a canonical form of `card`.
    #[must_use]
    pub fn is_of(&self, card: &Value) -> bool {
        signing_payloads(card)
            .iter()
            .any(|payload| hash(payload) == self.payload)
    }
}

impl FromStr for CardSignature {
    type Err = SignatureError;

    /// Reads a compact JWS with its payload left out (RFC 7515, appendix F).
    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let (protected, signature) = text.split_once("..").ok_or(SignatureError)?;
        let header = URL_SAFE_NO_PAD
            .decode(protected)
            .map_err(|_| SignatureError)?;
        let header: Value = serde_json::from_slice(&header).map_err(|_| SignatureError)?;
        // RFC 7518 §3.4: an ES256 signature is two numbers in 64 bytes.
        let bytes = URL_SAFE_NO_PAD.decode(signature);
        let member = |name: &str| header.get(name).and_then(Value::as_str);
        let es256 = bytes.is_ok_and(|bytes| bytes.len() == 64) && member("alg") == Some("ES256");
        let payload = member(PAYLOAD_HASH).ok_or(SignatureError)?;
        if !es256 {
            return Err(SignatureError);
        }
        Ok(Self {
            protected: protected.to_owned(),
            signature: signature.to_owned(),
            payload: payload.to_owned(),
        })
    }
}

impl fmt::Display for CardSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.protected, self.signature)
    }
}

/// A header and payload to sign; a key makes a [`CardSignature`] of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsigned {
    protected: String,
    payload: String,
}

impl Unsigned {
    /// What is to be signed of `card`, one entry per canonical form. `kid` is the
    /// id of the key, `jku` the URL of its public half.
    #[must_use]
    pub fn of(card: &Value, kid: &str, jku: Option<&str>) -> Vec<Self> {
        let payloads = signing_payloads(card).into_iter();
        payloads
            .map(|payload| {
                // A2A 1.0 §8.4.2: `alg`, `kid` and `typ`; `jku` is optional.
                let mut header = json!({
                    "alg": "ES256",
                    "kid": kid,
                    "typ": "JOSE",
                    PAYLOAD_HASH: hash(&payload),
                });
                if let (Some(jku), Value::Object(members)) = (jku, &mut header) {
                    members.insert("jku".to_owned(), jku.into());
                }
                Self {
                    protected: URL_SAFE_NO_PAD.encode(header.to_string()),
                    payload,
                }
            })
            .collect()
    }

    /// The bytes a key signs (RFC 7515 §5.1).
    #[must_use]
    pub fn signing_input(&self) -> String {
        format!(
            "{}.{}",
            self.protected,
            URL_SAFE_NO_PAD.encode(&self.payload)
        )
    }

    /// The finished signature; `signature` is the two numbers of ES256.
    #[must_use]
    pub fn with_signature(self, signature: [u8; 64]) -> CardSignature {
        CardSignature {
            protected: self.protected,
            signature: URL_SAFE_NO_PAD.encode(signature),
            payload: hash(&self.payload),
        }
    }
}

/// The one or two canonical forms of a card, without repetition.
fn signing_payloads(card: &Value) -> Vec<String> {
    let mut content = card.clone();
    // A2A 1.0 §8.4.1: `signatures` is not part of the signed content.
    if let Value::Object(members) = &mut content {
        members.remove("signatures");
    }
    let mut payloads = vec![jcs::canonical(&content)];
    let read = jcs::canonical(&as_read(&content));
    if !payloads.contains(&read) {
        payloads.push(read);
    }
    payloads
}

fn hash(payload: &str) -> String {
    hex::encode(Sha256::digest(payload))
}

/// The members of an `AgentCard` (A2A 1.0 §4.4.1), without its signatures.
const CARD: &str = "capabilities defaultInputModes defaultOutputModes description \
    documentationUrl iconUrl name provider securityRequirements securitySchemes skills \
    supportedInterfaces version";

/// The members of `AgentCapabilities` (A2A 1.0 §4.4.3).
const CAPABILITIES: &str = "extendedAgentCard extensions pushNotifications streaming";

/// The part of a card that a reader of 1.0 keeps: its 1.0 members, without empty
/// values and defaults. Names are filtered only where the generations differ, as
/// this server's cards have only 1.0 members elsewhere.
fn as_read(card: &Value) -> Value {
    let mut card = card.clone();
    let Value::Object(members) = &mut card else {
        return card;
    };
    keep(members, CARD);
    if let Some(Value::Object(capabilities)) = members.get_mut("capabilities") {
        keep(capabilities, CAPABILITIES);
        if let Some(Value::Array(extensions)) = capabilities.get_mut("extensions") {
            let extensions = extensions.iter_mut().filter_map(Value::as_object_mut);
            // A2A 1.0 §8.4.1: `required` is not `optional` in the proto, so its default
            // `false` is left out.
            extensions.for_each(|one| one.retain(|name, it| name != "required" || *it == true));
        }
    }
    if let Some(Value::Object(schemes)) = members.get_mut("securitySchemes") {
        let schemes = schemes.values_mut().filter_map(Value::as_object_mut);
        schemes.for_each(|scheme| scheme.retain(|name, _| name.ends_with("SecurityScheme")));
    }
    drop_empty(card).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The value without its empty values; `None` if nothing remains.
fn drop_empty(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(drop_empty).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(members) => {
            let members: Map<String, Value> = members
                .into_iter()
                .filter_map(|(name, value)| Some((name, drop_empty(value)?)))
                .collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        value @ (Value::Bool(_) | Value::Number(_)) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    fn card() -> Value {
        json!({
            "name": "Echo", "description": "", "protocolVersion": "0.3.0",
            "capabilities": {
                "streaming": false, "stateTransitionHistory": true,
                "extensions": [{"uri": "urn:x", "required": false, "params": {"a": {}, "b": 0}}],
            },
            "securitySchemes": {"bearer": {
                "type": "http", "scheme": "bearer",
                "httpAuthSecurityScheme": {"scheme": "bearer"},
            }},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "skills": [{"id": "echo", "tags": []}],
            "signatures": [{"protected": "x", "signature": "y"}],
        })
    }

    fn signed(card: &Value) -> Vec<CardSignature> {
        Unsigned::of(card, "key-1", None)
            .into_iter()
            .map(|unsigned| unsigned.with_signature([7; 64]))
            .collect()
    }

    #[test]
    fn both_canonical_forms_of_a_card_are_signed() {
        let payloads = signing_payloads(&card());
        assert_eq!(payloads.len(), 2);
        assert!(payloads[0].contains("protocolVersion") && !payloads[0].contains("signatures"));
        assert_eq!(
            payloads[1],
            concat!(
                r#"{"capabilities":{"extensions":[{"params":{"b":0},"uri":"urn:x"}],"#,
                r#""streaming":false},"name":"Echo","#,
                r#""securitySchemes":{"bearer":{"httpAuthSecurityScheme":{"scheme":"bearer"}}},"#,
                r#""skills":[{"id":"echo"}]}"#
            )
        );
        // Without empty or older members, the two forms are equal.
        assert_eq!(signing_payloads(&json!({"name": "Echo"})).len(), 1);
    }

    #[test]
    fn a_signature_belongs_only_to_its_card() {
        for signature in signed(&card()) {
            assert!(signature.is_of(&card()));
            let mut other = card();
            other["name"] = json!("Echo.");
            assert!(!signature.is_of(&other));
            // The member `signatures` does not change what a signature belongs to.
            let mut carrying = card();
            carrying["signatures"] = json!([signature.to_json()]);
            assert!(signature.is_of(&carrying));
        }
    }

    #[test]
    fn a_signature_is_written_without_its_payload_and_read_back() {
        for signature in signed(&card()) {
            let text = signature.to_string();
            assert_eq!(text.parse(), Ok(signature));
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            );
            let rows = [
                "",
                "..",
                "x..y",
                &text.replace("..", "."),
                &format!("{text}AA"),
                &format!("e30{text}"),
            ];
            each_row(rows, |bad| {
                assert_eq!(bad.parse::<CardSignature>(), Err(SignatureError), "{bad}");
            });
        }
    }

    #[test]
    fn the_protected_header_names_algorithm_key_and_key_set() {
        let unsigned = Unsigned::of(&card(), "key-1", Some("https://agent.example/jwks.json"));
        let input = unsigned[0].signing_input();
        let (protected, payload) = input.split_once('.').unwrap();
        let header: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(protected).unwrap()).unwrap();
        assert_eq!(header["alg"], "ES256");
        assert_eq!(header["typ"], "JOSE");
        assert_eq!(header["kid"], "key-1");
        assert_eq!(header["jku"], "https://agent.example/jwks.json");
        let payload = URL_SAFE_NO_PAD.decode(payload).unwrap();
        assert_eq!(header[PAYLOAD_HASH], hex::encode(Sha256::digest(payload)));
    }
}
