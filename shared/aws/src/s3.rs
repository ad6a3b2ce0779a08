//! Stores bytes in an S3 bucket.
//!
//! The server makes all keys and never uses one twice, so every put is conditional. An
//! object that already exists under a key can only be from an earlier attempt of our own.
//!
//! - `copy`: copies of objects inside the bucket
//! - `multipart`: uploads of bytes of unknown length
//! - `outcome`: what a response of S3 means
//! - `presign`: presigned URLs
//! - `versions`: versions of removed objects

mod copy;
mod multipart;
mod outcome;
mod presign;
mod versions;

use crate::outcome::incomplete;
use a2a_lambda_model::store::health::HealthCheck;
use a2a_lambda_model::store::{
    BlobHead, BlobOwner, BlobReader, Blobs, Download, Measured, ReadBlobs, StoreError, UploadTerms,
    UploadUrl, read_up_to,
};
use a2a_lambda_model::task::{Blob, TaskKey, ThreadKey, Timestamp};
use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::error::{BuildError, ProvideErrorMetadata as _};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, Delete as Removal, ObjectIdentifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use outcome::{RetryPut, conflict, is_missing, is_new, racing, s3_error, unread};
use presign::presign_error;
use std::collections::HashMap;
use std::time::Duration;

/// Keys in one list or delete request: the limit of S3.
const KEYS: usize = 1000;
/// A prefix below which there is never an object. The function `ops` may list it alone.
const EMPTY: &str = "health/";
/// The metadata name for the task to which an object belongs.
const TASK_NOTE: &str = "task";
/// The metadata name for the thread to which an object belongs.
const THREAD_NOTE: &str = "thread";
/// Time for a request in which S3 takes many bytes, copies an object or joins its parts.
const SERVER_SIDE: Duration = Duration::from_secs(120);

/// The blobs of one bucket.
#[derive(Debug, Clone)]
pub struct S3Blobs {
    client: Client,
    /// Signs URLs. It adds no headers that a browser would have to send.
    signer: Client,
    bucket: String,
}

impl S3Blobs {
    /// A store in `bucket`. It sends its requests through `client` with the same retry rules. In
    /// addition it repeats writes that only met other writes.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the store builds its own client from this one"
    )]
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        let config = client.config().to_builder();
        Self {
            signer: presign::signer(&client),
            client: Client::from_conf(config.retry_classifier(RetryPut).build()),
            bucket: bucket.into(),
        }
    }

    async fn keep(
        &self,
        key: &str,
        owner: Option<&BlobOwner>,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let request = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .if_none_match("*")
            .set_metadata(owner.map(notes_of))
            .body(ByteStream::from(bytes.clone()));
        let result = match bytes.len() > multipart::PART {
            true => request.customize().config_override(patient()).send().await,
            false => request.send().await,
        };
        if is_new(key, result)? {
            return Ok(());
        }
        match self.get(key).await? {
            Some(object) if object == bytes => Ok(()),
            Some(_) => Err(conflict(key)),
            // Another process deleted the object in between.
            None => Err(racing(key)),
        }
    }

    /// Checks that the object under the key has our length. Only our own writes use the key,
    /// and all of them send the same length.
    async fn is_ours(&self, key: &str, size: u64) -> Result<(), StoreError> {
        match self.head(key).await? {
            Some(head) if head.size == size => Ok(()),
            _ => Err(conflict(key)),
        }
    }
}

/// Creates `bucket` unless it exists; for emulators.
///
/// # Errors
/// [`StoreError`] when the service does not answer or refuses.
pub async fn create_bucket(client: &Client, bucket: &str) -> Result<(), StoreError> {
    let result = client.create_bucket().bucket(bucket).send().await;
    match result {
        Ok(_) => Ok(()),
        Err(error) => match error.code() {
            Some("BucketAlreadyOwnedByYou" | "BucketAlreadyExists") => Ok(()),
            _ => Err(s3_error(&error)),
        },
    }
}

/// The settings for requests in which S3 moves many bytes before it answers.
fn patient() -> aws_sdk_s3::config::Builder {
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(SERVER_SIDE)
        .build();
    aws_sdk_s3::Config::builder().timeout_config(timeouts)
}

#[async_trait]
impl ReadBlobs for S3Blobs {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(body) = self.body(key).await? else {
            return Ok(None);
        };
        body.collect()
            .await
            .map(|data| Some(data.into_bytes()))
            .map_err(|_| StoreError::Unavailable("the response body of S3 was cut off".to_owned()))
    }

    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        let body = self.body(key).await?;
        Ok(body.map(|body| -> BlobReader { Box::pin(body.into_async_read()) }))
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        let result = self
            .client
            .head_object()
            .bucket(&self.bucket)
            .key(key)
            .checksum_mode(ChecksumMode::Enabled)
            .send()
            .await;
        let head = match result {
            Ok(head) => head,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(unread(&error, &self.bucket, key)),
        };
        Ok(Some(BlobHead {
            size: head
                .content_length()
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or_default(),
            // S3 knows the digest only of uploads that sent it, as presigned ones do. A digest
            // over the digests of parts is `<Base64>-<parts>`, which does not decode.
            sha256: head
                .checksum_sha256()
                .and_then(|digest| STANDARD.decode(digest).ok())
                .map(hex::encode),
            owner: head.metadata().and_then(owner_of),
        }))
    }

    async fn read_url(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        let request = self
            .signer
            .get_object()
            .bucket(&self.bucket)
            .key(download.key)
            .response_content_type(download.content_type)
            .response_content_disposition(download.disposition)
            .response_cache_control(presign::UNCACHED)
            .presigned(presign::terms(now, lifetime)?)
            .await
            .map_err(presign_error)?;
        Ok(Some(request.uri().to_owned()))
    }
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, None, bytes).await
    }

    async fn put_for(&self, owner: &BlobOwner, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, Some(owner), bytes).await
    }

    async fn put_from(
        &self,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        let owner = BlobOwner::Task(task.clone());
        let first = read_up_to(source, multipart::PART).await?;
        if first.len() < multipart::PART {
            let digest = Measured::of(&first);
            self.put_for(&owner, key, first).await?;
            return Ok(digest);
        }
        self.put_parts(&owner, key, first, source).await
    }

    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        let owner = BlobOwner::Task(task.clone());
        if from.size > copy::PART {
            return self.copy_parts(&owner, from, to).await;
        }
        self.copy_whole(&owner, from, to).await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let (mut keys, mut next) = (Vec::new(), None);
        // S3 may return fewer keys than requested and say that there are more.
        loop {
            let most = (limit - keys.len()).min(KEYS);
            let page = self.page(prefix, after, next, most).await?;
            let objects = page.contents.unwrap_or_default();
            keys.extend(objects.into_iter().filter_map(|object| object.key));
            next = page.next_continuation_token;
            if keys.len() >= limit || page.is_truncated != Some(true) || next.is_none() {
                return Ok(keys);
            }
        }
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        let objects = keys
            .iter()
            .map(|key| ObjectIdentifier::builder().key(key).build());
        self.delete(objects.collect()).await
    }

    async fn upload_url(
        &self,
        terms: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        let size = i64::try_from(terms.size).map_err(presign_error)?;
        let digest = hex::decode(terms.sha256).map_err(presign_error)?;
        let request = self
            .signer
            .put_object()
            .bucket(&self.bucket)
            .key(terms.key)
            // With this header the URL works once: S3 answers a second PUT with 412.
            .if_none_match("*")
            .content_length(size)
            .content_type("application/octet-stream")
            .checksum_sha256(STANDARD.encode(digest))
            .presigned(presign::terms(now, lifetime)?)
            .await
            .map_err(presign_error)?;
        Ok(Some(UploadUrl {
            url: request.uri().to_owned(),
            headers: presign::headers(&request),
        }))
    }
}

impl S3Blobs {
    /// One page of a list: the first after a key, or the one that a token names.
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        token: Option<String>,
        most: usize,
    ) -> Result<ListObjectsV2Output, StoreError> {
        self.client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_start_after(after.map(str::to_owned))
            .set_continuation_token(token)
            .max_keys(i32::try_from(most).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| s3_error(&error))
    }

    async fn body(&self, key: &str) -> Result<Option<ByteStream>, StoreError> {
        let result = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .send()
            .await;
        match result {
            Ok(object) => Ok(Some(object.body)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(unread(&error, &self.bucket, key)),
        }
    }

    /// Removes objects, or versions of objects.
    async fn delete(
        &self,
        objects: Result<Vec<ObjectIdentifier>, BuildError>,
    ) -> Result<(), StoreError> {
        for chunk in objects.map_err(incomplete)?.chunks(KEYS) {
            let removal = Removal::builder().quiet(true);
            let removal = removal.set_objects(Some(chunk.to_vec())).build();
            let output = self
                .client
                .delete_objects()
                .bucket(&self.bucket)
                .delete(removal.map_err(incomplete)?)
                .send()
                .await
                .map_err(|error| s3_error(&error))?;
            // S3 answers 200 and lists the objects that it did not remove.
            if let Some(fault) = output.errors().first() {
                let code = fault.code().unwrap_or("no code");
                let why = format!("S3 did not remove an object: {code}");
                return Err(StoreError::Unavailable(why));
            }
        }
        Ok(())
    }
}

/// A list of one empty prefix. HEAD of the bucket would cost less, but needs the right to
/// list all keys.
#[async_trait]
impl HealthCheck for S3Blobs {
    async fn check_health(&self) -> Result<(), StoreError> {
        self.page(EMPTY, None, None, 1).await.map(|_| ())
    }
}

/// Encodes an owner as the metadata of an object. No part of it can contain a `/`.
fn notes_of(owner: &BlobOwner) -> HashMap<String, String> {
    let (name, note) = match owner {
        BlobOwner::Task(task) => {
            let (tenant, local) = (task.tenant(), task.local());
            (TASK_NOTE, format!("{tenant}/{local}"))
        }
        BlobOwner::Thread(thread) => {
            let (tenant, subject, context) = (thread.tenant(), thread.subject(), thread.context());
            (THREAD_NOTE, format!("{tenant}/{subject}/{context}"))
        }
    };
    [(name.to_owned(), note)].into()
}

/// The owner in the metadata of an object.
fn owner_of(notes: &HashMap<String, String>) -> Option<BlobOwner> {
    if let Some(note) = notes.get(TASK_NOTE) {
        let (tenant, local) = note.split_once('/')?;
        return TaskKey::from_stored(tenant, local).map(BlobOwner::Task);
    }
    let (tenant, rest) = notes.get(THREAD_NOTE)?.split_once('/')?;
    let (subject, context) = rest.split_once('/')?;
    ThreadKey::from_stored(tenant, subject, context).map(BlobOwner::Thread)
}
