//! Git objects in a store of bytes: encoding, and the check of what is read.
//!
//! The store keeps the loose form of git: `<kind> <size>`, a zero byte and the data,
//! compressed with zlib. A bare repository is these bytes under `objects/`.

#[cfg(test)]
mod tests;

use super::error::KnowledgeError;
use a2a_lambda::store::StoreError;
use async_trait::async_trait;
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use gix_hash::ObjectId;
use gix_object::Kind;
use std::io::{Read as _, Write as _};

/// The most bytes of an object without compression: a folder with about 100,000 items.
const OBJECT_MAX: u64 = 8 * 1024 * 1024;
/// The most bytes of the header of an object.
const HEADER_MAX: u64 = 32;

/// The objects of one tenant.
#[async_trait]
pub(crate) trait GitObjects: Send + Sync {
    /// The bytes stored under an id. `None` if there are none.
    async fn get(&self, id: ObjectId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores the bytes under an id. Success without a write if the id has bytes already.
    async fn put_if_absent(&self, id: ObjectId, loose: Vec<u8>) -> Result<(), StoreError>;
}

/// An object in the form in which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LooseObject {
    /// The hash of the object.
    pub(crate) id: ObjectId,
    /// The compressed bytes.
    pub(crate) bytes: Vec<u8>,
}

/// Encodes an object. Equal data has an equal id.
///
/// # Errors
/// [`KnowledgeError`] when the data is too long, or collides with other data under SHA-1.
pub(crate) fn encode(kind: Kind, data: &[u8]) -> Result<LooseObject, KnowledgeError> {
    let size = u64::try_from(data.len()).unwrap_or(u64::MAX);
    if size > OBJECT_MAX {
        return Err(KnowledgeError::Encode(std::io::Error::other(
            "object too large",
        )));
    }
    let id = gix_object::compute_hash(gix_hash::Kind::Sha1, kind, data)
        .map_err(|cause| KnowledgeError::Encode(std::io::Error::other(cause.to_string())))?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let bytes = encoder
        .write_all(&gix_object::encode::loose_header(kind, size))
        .and_then(|()| encoder.write_all(data))
        .and_then(|()| encoder.finish())
        .map_err(KnowledgeError::Encode)?;
    Ok(LooseObject { id, bytes })
}

/// Decodes an object, and checks that it is the one with this id.
pub(crate) fn decode(id: ObjectId, loose: &[u8]) -> Result<(Kind, Vec<u8>), KnowledgeError> {
    let corrupt = |reason| KnowledgeError::Corrupt { id, reason };
    let mut object = inflate(loose).map_err(corrupt)?;
    let (kind, size, header) =
        gix_object::decode::loose_header(&object).map_err(|_| corrupt("the header is damaged"))?;
    let data = object.split_off(header.min(object.len()));
    if u64::try_from(data.len()) != Ok(size) {
        return Err(corrupt("the size differs"));
    }
    match gix_object::compute_hash(gix_hash::Kind::Sha1, kind, &data) {
        Ok(actual) if actual == id => Ok((kind, data)),
        _ => Err(corrupt("the hash differs")),
    }
}

/// Decompresses a whole stream.
fn inflate(loose: &[u8]) -> Result<Vec<u8>, &'static str> {
    // A small object can claim to decompress to any size.
    let most = OBJECT_MAX + HEADER_MAX;
    let mut stream = ZlibDecoder::new(loose);
    let mut object = Vec::new();
    let result = stream.by_ref().take(most + 1).read_to_end(&mut object);
    result.map_err(|_| "the compression is damaged")?;
    if stream.total_out() > most {
        return Err("it is too large");
    }
    if !stream.into_inner().is_empty() {
        return Err("more bytes follow");
    }
    Ok(object)
}

/// Reads an object of this kind.
pub(crate) async fn load(
    objects: &dyn GitObjects,
    id: ObjectId,
    kind: Kind,
) -> Result<Vec<u8>, KnowledgeError> {
    Ok(load_loose(objects, id, kind).await?.1)
}

/// Reads an object of this kind: its bytes as they are stored, and its data.
pub(crate) async fn load_loose(
    objects: &dyn GitObjects,
    id: ObjectId,
    kind: Kind,
) -> Result<(Vec<u8>, Vec<u8>), KnowledgeError> {
    let loose = objects.get(id).await?.ok_or(KnowledgeError::Missing(id))?;
    match decode(id, &loose)? {
        (actual, data) if actual == kind => Ok((loose, data)),
        _ => Err(KnowledgeError::Corrupt {
            id,
            reason: "it has another kind",
        }),
    }
}
