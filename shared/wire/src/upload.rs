//! Reads and writes `POST /a2a-lambda/uploads`, an extension of this project that is
//! the same for all generations.

use super::params::{self, FieldCase};
use super::v1::View;
use a2a_lambda_model::task::{A2aError, Part, PartContent, UploadGrant, UploadOrder};
use serde_json::{Map, Value, json};

/// The most characters of a file name or media type.
const TEXT: usize = 1024;

/// Reads `{filename?, mediaType?, size, sha256}`.
///
/// # Errors
/// [`A2aError::InvalidParams`] with every fault.
pub(super) fn decode(params: &Value) -> Result<UploadOrder, A2aError> {
    params::read(params, FieldCase::Json, |order| {
        let text = |name: &str| {
            let text = order.text(name);
            if text.is_some_and(|text| text.chars().count() > TEXT) {
                order.refuse(name, format!("must have at most {TEXT} characters"));
            }
            text.map(str::to_owned)
        };
        let (filename, media_type) = (text("filename"), text("mediaType"));
        if order.member("size").is_none() {
            order.refuse("size", "is required");
        }
        let size = order.integer("size", 1..=i64::MAX as u64);
        let sha256 = order.required_text("sha256").map(str::to_ascii_lowercase);
        let hex = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if sha256.as_ref().is_some_and(|text| !hex(text)) {
            order.refuse("sha256", "must be 64 hexadecimal digits");
        }
        Some(UploadOrder {
            filename,
            media_type,
            size: size?,
            sha256: sha256?,
        })
    })
}

/// Writes how to upload the file, and the part that refers to it afterwards. The
/// part has the format of 1.0; older generations put the reference in `file.uri`.
pub(super) fn encode(grant: &UploadGrant) -> Value {
    let headers: Map<String, Value> = grant
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let part = Part {
        filename: grant.filename.clone(),
        media_type: grant.media_type.clone(),
        ..Part::new(PartContent::Url(grant.reference.clone()))
    };
    json!({
        "method": "PUT",
        "url": grant.url,
        "headers": headers,
        "expiresAt": grant.expires_at.to_rfc3339(),
        "reference": grant.reference,
        "part": View::<true>::Part(&part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(params: &Value) -> Vec<String> {
        match decode(params) {
            Err(A2aError::InvalidParams { violations }) => {
                violations.into_iter().map(|v| v.field).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_upload_order_has_a_size_and_a_digest() {
        let sha = "AB".repeat(32);
        let order = decode(&json!({"size": 5, "sha256": sha, "filename": "a", "x": 1})).unwrap();
        assert_eq!(order.sha256, "ab".repeat(32));
        assert_eq!((order.size, order.filename.as_deref()), (5, Some("a")));
    }

    #[test]
    fn all_faults_of_an_upload_order_are_listed() {
        assert_eq!(fields(&json!({})), ["size", "sha256"]);
        assert_eq!(
            fields(&json!({"size": 0, "sha256": "zz", "filename": 3, "mediaType": ""})),
            ["filename", "mediaType", "size", "sha256"]
        );
        assert_eq!(fields(&json!([])), ["params"]);
        let long = "x".repeat(2000);
        let sha = "0".repeat(64);
        assert_eq!(
            fields(&json!({"size": 1, "sha256": sha, "filename": long})),
            ["filename"]
        );
    }
}
