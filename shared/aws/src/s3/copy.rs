//! Copies objects inside the bucket; S3 moves the bytes.
//!
//! A large object is copied in many parts in parallel, so that the client of a message with
//! an upload gets its response in time. S3 can copy up to 5 GB in one request, but does not
//! say how long that takes.

use super::multipart::Upload;
use super::outcome::{is_missing, is_new, s3_error};
use super::{S3Blobs, notes_of, patient};
use a2a_lambda_model::store::{BlobOwner, StoreError};
use a2a_lambda_model::task::Blob;
use aws_sdk_s3::types::{CompletedPart, MetadataDirective};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

/// Bytes of one part. S3 takes parts of at least 5 MiB and at most 10,000 of them: 80 GB.
pub(super) const PART: u64 = 8 * 1024 * 1024;
/// Parts that are copied at the same time.
const AT_ONCE: usize = 32;

impl S3Blobs {
    /// Copies one object in one request; `false` if the source does not exist.
    pub(super) async fn copy_whole(
        &self,
        owner: &BlobOwner,
        from: &Blob,
        to: &str,
    ) -> Result<bool, StoreError> {
        let result = self
            .client
            .copy_object()
            .bucket(&self.bucket)
            .key(to)
            .copy_source(self.source(from))
            .if_none_match("*")
            // S3 would keep the metadata of the source, which names no task or another one.
            .metadata_directive(MetadataDirective::Replace)
            .set_metadata(Some(notes_of(owner)))
            .customize()
            .config_override(patient())
            .send()
            .await;
        if matches!(&result, Err(error) if is_missing(error)) {
            return Ok(false);
        }
        if !is_new(to, result)? {
            self.is_ours(to, from.size).await?;
        }
        Ok(true)
    }

    /// Copies one object in parts; `false` if the source does not exist.
    pub(super) async fn copy_parts(
        &self,
        owner: &BlobOwner,
        from: &Blob,
        to: &str,
    ) -> Result<bool, StoreError> {
        let mut upload = self.begin(owner, to).await?;
        let result = match upload.copy_all(from).await {
            Ok(true) => upload.join().await.map(|()| true),
            result => result,
        };
        if !matches!(result, Ok(true)) {
            upload.give_up().await;
        }
        result
    }

    fn source(&self, from: &Blob) -> String {
        format!("{}/{}", self.bucket, from.key)
    }
}

impl Upload<'_> {
    async fn copy_all(&mut self, from: &Blob) -> Result<bool, StoreError> {
        let starts = (0..from.size.div_ceil(PART)).map(|part| part * PART);
        let copies = stream::iter(starts.zip(1..))
            .map(|(start, number)| self.copy_part(from, start, number))
            .buffered(AT_ONCE);
        let parts: Vec<Option<CompletedPart>> = copies.try_collect().await?;
        let parts: Option<Vec<CompletedPart>> = parts.into_iter().collect();
        self.size = from.size;
        Ok(parts.map(|parts| self.parts = parts).is_some())
    }

    async fn copy_part(
        &self,
        from: &Blob,
        start: u64,
        number: i32,
    ) -> Result<Option<CompletedPart>, StoreError> {
        let last = from.size.min(start + PART) - 1;
        let result = self
            .store
            .client
            .upload_part_copy()
            .bucket(&self.store.bucket)
            .key(self.key)
            .upload_id(&self.id)
            .part_number(number)
            .copy_source(self.store.source(from))
            .copy_source_range(format!("bytes={start}-{last}"))
            .customize()
            .config_override(patient())
            .send()
            .await;
        let copy = match result {
            Ok(output) => output.copy_part_result.ok_or_else(|| {
                StoreError::Unavailable("S3 returned no result for the copy of a part".to_owned())
            })?,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(s3_error(&error)),
        };
        Ok(Some(
            CompletedPart::builder()
                .part_number(number)
                .set_e_tag(copy.e_tag)
                .set_checksum_crc32(copy.checksum_crc32)
                .set_checksum_crc64_nvme(copy.checksum_crc64_nvme)
                .build(),
        ))
    }
}
