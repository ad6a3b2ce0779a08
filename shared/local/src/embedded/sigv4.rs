//! Checks the signature of a request to the embedded DynamoDB: AWS Signature Version 4, in the
//! `Authorization` header. (The library of the embedded S3 checks its own.)

use a2a_lambda::store::aws::EmulatorKeys;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The headers that a signature must cover: the host, the time and the operation.
const COVERED: [&str; 3] = ["host", "x-amz-date", "x-amz-target"];

/// The content of the `Authorization` header, which is read before the body.
#[derive(Debug)]
pub(crate) struct Claim<'r> {
    /// Day, region, service and the fixed word `aws4_request`.
    scope: [&'r str; 4],
    signed_headers: &'r str,
    signature: Vec<u8>,
}

impl<'r> Claim<'r> {
    /// Reads the header of a request; `None` if it is missing, not readable, or does not name
    /// the id of `keys`.
    pub(crate) fn of(headers: &'r HeaderMap, keys: &EmulatorKeys) -> Option<Self> {
        let mut all = headers.get_all(AUTHORIZATION).iter();
        // A second header could name other keys, so only one is accepted.
        let (Some(one), None) = (all.next(), all.next()) else {
            return None;
        };
        let (id, claim) = Self::read(one.to_str().ok()?)?;
        (id == keys.id).then_some(claim)
    }

    fn read(text: &'r str) -> Option<(&'r str, Self)> {
        let (algorithm, fields) = text.split_once(' ')?;
        let field = |name: &str| {
            let mut fields = fields.split(',').map(str::trim);
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let credential: Vec<&str> = field("Credential")?.split('/').collect();
        let [id, day, region, service, end] = credential.try_into().ok()?;
        let claim = Self {
            scope: [day, region, service, end],
            signed_headers: field("SignedHeaders")?,
            signature: hex::decode(field("Signature")?).ok()?,
        };
        (algorithm == ALGORITHM).then_some((id, claim))
    }

    /// Whether a holder of `keys` signed this request.
    pub(crate) fn is_proven(&self, head: &Parts, body: &[u8], keys: &EmulatorKeys) -> bool {
        let is_covered = |name: &&str| self.signed_headers.split(';').any(|header| header == *name);
        COVERED.iter().all(is_covered) && self.proven(head, body, keys) == Some(true)
    }

    fn proven(&self, head: &Parts, body: &[u8], keys: &EmulatorKeys) -> Option<bool> {
        let time = head.headers.get("x-amz-date")?.to_str().ok()?;
        let request = hex::encode(Sha256::digest(self.canonical(head, body)?));
        let scope = self.scope.join("/");
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{request}");
        let mut key = format!("AWS4{}", keys.secret).into_bytes();
        for step in self.scope {
            key = mac(&key, step.as_bytes())?.finalize().into_bytes().to_vec();
        }
        let code = mac(&key, text.as_bytes())?;
        Some(code.verify_slice(&self.signature).is_ok())
    }

    /// The canonical request of Signature Version 4. A request of the AWS JSON protocol has no query.
    fn canonical(&self, head: &Parts, body: &[u8]) -> Option<String> {
        let mut headers = String::new();
        for name in self.signed_headers.split(';') {
            let values = head.headers.get_all(name).iter();
            let values: Result<Vec<String>, _> =
                values.map(|value| value.to_str().map(one_space)).collect();
            headers.push_str(&format!("{name}:{}\n", values.ok()?.join(",")));
        }
        Some(format!(
            "{}\n{}\n\n{headers}\n{}\n{}",
            head.method,
            head.uri.path(),
            self.signed_headers,
            hex::encode(Sha256::digest(body)),
        ))
    }
}

/// The HMAC-SHA256 of `text` under `key`. Never `None`, since HMAC takes keys of any
/// length.
fn mac(key: &[u8], text: &[u8]) -> Option<Hmac<Sha256>> {
    let code = Hmac::<Sha256>::new_from_slice(key).ok()?;
    Some(code.chain_update(text))
}

/// The value without spaces at its ends, and with single spaces inside.
fn one_space(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}
