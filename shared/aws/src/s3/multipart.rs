//! Uploads bytes of unknown length.
//!
//! The upload reads one part, sends it and drops it before it reads the next, so a file of
//! any length takes the memory of one part. The object exists once the parts are joined. If
//! an upload fails, its parts are removed immediately. If the process dies, the lifecycle
//! rule of the bucket removes them.

use super::outcome::{is_new, s3_error};
use super::{S3Blobs, notes_of, patient};
use crate::outcome::status;
use a2a_lambda_model::store::{BlobOwner, BlobReader, Measured, SizeError, StoreError, read_up_to};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Bytes of a part. S3 takes parts of at least 5 MiB and at most 10,000 of them.
pub(super) const PART: usize = 8 * 1024 * 1024;

/// An upload in progress.
pub(super) struct Upload<'a> {
    pub(super) store: &'a S3Blobs,
    pub(super) key: &'a str,
    pub(super) id: String,
    pub(super) parts: Vec<CompletedPart>,
    pub(super) size: u64,
}

impl S3Blobs {
    /// Stores `first` and the rest of `source`.
    pub(super) async fn put_parts(
        &self,
        owner: &BlobOwner,
        key: &str,
        first: Bytes,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        let mut upload = self.begin(owner, key).await?;
        let result = match upload.send_all(first, source).await {
            Ok(digest) => upload.join().await.map(|()| digest),
            Err(error) => Err(error),
        };
        if result.is_err() {
            upload.give_up().await;
        }
        result
    }

    /// Starts the upload of the new object `key`.
    pub(super) async fn begin<'a>(
        &'a self,
        owner: &BlobOwner,
        key: &'a str,
    ) -> Result<Upload<'a>, StoreError> {
        let output = self
            .client
            .create_multipart_upload()
            .bucket(&self.bucket)
            .key(key)
            .set_metadata(Some(notes_of(owner)))
            // The SDK sends this kind of checksum with each part. S3 refuses a part with a
            // checksum that the upload has not announced.
            .checksum_algorithm(ChecksumAlgorithm::Crc32)
            .send()
            .await
            .map_err(|error| s3_error(&error))?;
        let id = output
            .upload_id
            .ok_or_else(|| StoreError::Unavailable("S3 returned no upload id".to_owned()))?;
        Ok(Upload {
            store: self,
            key,
            id,
            parts: Vec::new(),
            size: 0,
        })
    }
}

impl Upload<'_> {
    async fn send_all(
        &mut self,
        first: Bytes,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        let (mut part, mut hash) = (first, Sha256::new());
        while !part.is_empty() {
            hash.update(&part);
            self.size += part.len() as u64;
            let last = part.len() < PART;
            self.send(part).await?;
            if last {
                break;
            }
            part = read_up_to(source, PART).await?;
        }
        Ok(Measured {
            size: self.size,
            sha256: hex::encode(hash.finalize()),
        })
    }

    async fn send(&mut self, part: Bytes) -> Result<(), StoreError> {
        let number = i32::try_from(self.parts.len() + 1).map_err(|_| {
            StoreError::TooLarge(SizeError::Other("the upload has too many parts".to_owned()))
        })?;
        let output = self
            .store
            .client
            .upload_part()
            .bucket(&self.store.bucket)
            .key(self.key)
            .upload_id(&self.id)
            .part_number(number)
            .body(ByteStream::from(part))
            .customize()
            .config_override(patient())
            .send()
            .await
            .map_err(|error| s3_error(&error))?;
        // S3 requires the checksum of each part again when the parts are joined.
        self.parts.push(
            CompletedPart::builder()
                .part_number(number)
                .set_e_tag(output.e_tag)
                .set_checksum_crc32(output.checksum_crc32)
                .set_checksum_crc64_nvme(output.checksum_crc64_nvme)
                .build(),
        );
        Ok(())
    }

    /// Joins the parts to the object.
    pub(super) async fn join(&self) -> Result<(), StoreError> {
        let ours = || self.store.is_ours(self.key, self.size);
        let parts = CompletedMultipartUpload::builder()
            .set_parts(Some(self.parts.clone()))
            .build();
        let result = self
            .store
            .client
            .complete_multipart_upload()
            .bucket(&self.store.bucket)
            .key(self.key)
            .upload_id(&self.id)
            .if_none_match("*")
            .multipart_upload(parts)
            .customize()
            .config_override(patient())
            .send()
            .await;
        // If the upload no longer exists, an earlier attempt has joined it and its response
        // was lost. (The embedded S3 answers 403 instead of 404.)
        let is_gone = matches!(&result, Err(error) if matches!(status(error), Some(403 | 404)));
        if is_gone && ours().await.is_ok() {
            return Ok(());
        }
        if !is_new(self.key, result)? {
            ours().await?;
            // The object is from an earlier upload, so the parts of this one are not needed.
            self.give_up().await;
        }
        Ok(())
    }

    /// Aborts the upload, which removes its parts.
    pub(super) async fn give_up(&self) {
        let result = self
            .store
            .client
            .abort_multipart_upload()
            .bucket(&self.store.bucket)
            .key(self.key)
            .upload_id(&self.id)
            .send()
            .await;
        if let Err(error) = result {
            // The lifecycle rule of the bucket removes what is left.
            let why = s3_error(&error);
            tracing::warn!("failed to abort an upload: {why}");
        }
    }
}
