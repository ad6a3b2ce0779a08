//! Bytes in an S3 bucket.
//!
//! Keys are server-made and never used twice, so a put is conditional: what
//! already stands under its key can only be our own earlier try.
//!
//! - `copy`: objects made of others
//! - `multipart`: bytes whose length is not known when they begin
//! - `presign`: URLs, made without asking anybody

mod copy;
mod multipart;
mod presign;

use super::aws::broke_off;
use super::blobs::read_up_to;
use super::{
    BlobHead, BlobReader, Blobs, Download, Measured, StoreError, UploadTerms, UploadUrl, blobs,
};
use crate::task::{Blob, TaskKey, ThreadKey, Timestamp};
use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, Delete as Removal, ObjectIdentifier};
use aws_smithy_runtime_api::client::interceptors::context::InterceptorContext;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::time::Duration;

/// Keys of one list or removal.
const KEYS: usize = 1000;
/// The name of the note which says for which task bytes are kept.
const TASK_NOTE: &str = "task";
/// The same for a conversation.
const THREAD_NOTE: &str = "thread";
/// Time for S3 to copy an object, or to join its parts, by itself.
const SERVER_SIDE: Duration = Duration::from_secs(120);

/// The blobs of one bucket.
#[derive(Debug, Clone)]
pub struct S3Blobs {
    client: Client,
    /// For URLs: asks for no header that a browser would have to send.
    signer: Client,
    bucket: String,
}

/// What one try of a put came to.
enum Put {
    Stored,
    /// Something stands under the key.
    Taken,
    /// Another put of the key still runs: nothing is decided.
    Racing,
}

/// Tells the SDK what else it is to repeat: a put that meets another put of its
/// key, which can only be an earlier attempt of our own, and what was answered
/// without an answer.
#[derive(Debug)]
struct Repeats;

impl ClassifyRetry for Repeats {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let racing = context
            .response()
            .is_some_and(|response| response.status().as_u16() == 409);
        if racing || broke_off(context) {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "writes that decided nothing"
    }
}

impl S3Blobs {
    /// The blobs of `bucket`. Requests are those of `client`, repeated by the same
    /// rules, and also where they have only met other writes.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the client is made over into one of the store's own"
    )]
    pub fn new(client: Client, bucket: impl Into<String>) -> Self {
        let config = client.config().to_builder();
        Self {
            signer: presign::signer(&client),
            client: Client::from_conf(config.retry_classifier(Repeats).build()),
            bucket: bucket.into(),
        }
    }

    async fn try_put(
        &self,
        key: &str,
        note: Option<Note>,
        bytes: Bytes,
    ) -> Result<Put, StoreError> {
        let sent = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .if_none_match("*")
            .set_metadata(note.map(|(name, text)| [(name.to_owned(), text)].into()))
            .body(ByteStream::from(bytes))
            .send()
            .await;
        put_of(sent)
    }

    async fn keep(&self, key: &str, note: Option<Note>, bytes: Bytes) -> Result<(), StoreError> {
        match self.try_put(key, note, bytes.clone()).await? {
            Put::Stored => Ok(()),
            Put::Taken => match self.get(key).await? {
                Some(stored) if stored == bytes => Ok(()),
                Some(_) => Err(taken(key)),
                // Deleted in between.
                None => Err(racing(key)),
            },
            Put::Racing => Err(racing(key)),
        }
    }

    /// Whether what stands under the key is of our length: the key is ours
    /// alone, and no other length was ever sent there.
    async fn is_ours(&self, key: &str, size: u64) -> Result<(), StoreError> {
        match self.head(key).await? {
            Some(head) if head.size == size => Ok(()),
            _ => Err(taken(key)),
        }
    }
}

/// Makes `bucket`, unless it is there already: for emulators.
///
/// # Errors
/// [`StoreError`] when the service does not answer or refuses.
pub async fn create_bucket(client: &Client, bucket: &str) -> Result<(), StoreError> {
    let made = client.create_bucket().bucket(bucket).send().await;
    match made {
        Ok(_) => Ok(()),
        Err(error) => match error.code() {
            Some("BucketAlreadyOwnedByYou" | "BucketAlreadyExists") => Ok(()),
            _ => Err(failed(status(&error), &error)),
        },
    }
}

/// What a conditional write came to.
fn put_of<T, E: ProvideErrorMetadata>(sent: Result<T, SdkError<E>>) -> Result<Put, StoreError> {
    match sent {
        Ok(_) => Ok(Put::Stored),
        Err(error) => match status(&error) {
            Some(412) => Ok(Put::Taken),
            Some(409) => Ok(Put::Racing),
            status => Err(failed(status, &error)),
        },
    }
}

fn racing(key: &str) -> StoreError {
    StoreError::Unavailable(format!("puts of `{key}` kept racing"))
}

fn taken(key: &str) -> StoreError {
    StoreError::Refused(format!("other bytes stand under `{key}`"))
}

fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error
        .raw_response()
        .map(|response| response.status().as_u16())
}

/// The error of a call that S3 did not carry out.
fn failed<E: ProvideErrorMetadata>(status: Option<u16>, error: &SdkError<E>) -> StoreError {
    let code = error.code().unwrap_or("no code");
    match status {
        Some(status @ 400..=499) if !matches!(status, 408 | 429) => {
            StoreError::Refused(format!("S3 answered {status}: {code}"))
        }
        Some(status) => StoreError::Unavailable(format!("S3 answered {status}: {code}")),
        None => StoreError::Unavailable("S3 did not answer".to_owned()),
    }
}

/// The name and the text of a note beside an object.
type Note = (&'static str, String);

/// A task as the note of an object. Neither half can hold a `/`.
fn note(task: &TaskKey) -> String {
    format!("{}/{}", task.tenant().as_str(), task.local())
}

fn note_of(task: &TaskKey) -> Note {
    (TASK_NOTE, note(task))
}

/// A conversation as the note of an object; no part of it can hold a `/`.
fn note_of_thread(thread: &ThreadKey) -> Note {
    let (tenant, subject, context) = (thread.tenant(), thread.subject(), thread.context());
    (THREAD_NOTE, format!("{tenant}/{subject}/{context}"))
}

fn thread_of_note(note: &str) -> Option<ThreadKey> {
    let (tenant, rest) = note.split_once('/')?;
    let (subject, context) = rest.split_once('/')?;
    ThreadKey::stored(tenant, subject, context)
}

fn task_of_note(note: &str) -> Option<TaskKey> {
    let (tenant, local) = note.split_once('/')?;
    TaskKey::stored(tenant, local)
}

/// Time for calls in which many bytes are moved before S3 answers.
fn patient() -> aws_sdk_s3::config::Builder {
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(SERVER_SIDE)
        .build();
    aws_sdk_s3::Config::builder().timeout_config(timeouts)
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, None, bytes).await
    }

    async fn put_for(&self, task: &TaskKey, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        self.keep(key, Some(note_of(task)), bytes).await
    }

    async fn put_for_thread(
        &self,
        thread: &ThreadKey,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        self.keep(key, Some(note_of_thread(thread)), bytes).await
    }

    async fn put_from(
        &self,
        task: &TaskKey,
        key: &str,
        source: &mut BlobReader,
    ) -> Result<Measured, StoreError> {
        let first = read_up_to(source, multipart::PART).await?;
        if first.len() < multipart::PART {
            let measured = blobs::measured(&first);
            self.keep(key, Some(note_of(task)), first).await?;
            return Ok(measured);
        }
        self.put_parts(task, key, first, source).await
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let Some(body) = self.body(key).await? else {
            return Ok(None);
        };
        body.collect()
            .await
            .map(|data| Some(data.into_bytes()))
            .map_err(|_| StoreError::Unavailable("S3 broke off".to_owned()))
    }

    async fn open(&self, key: &str) -> Result<Option<BlobReader>, StoreError> {
        let body = self.body(key).await?;
        Ok(body.map(|body| -> BlobReader { Box::pin(body.into_async_read()) }))
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        let asked = self
            .client
            .head_object()
            .bucket(&self.bucket)
            .key(key)
            .checksum_mode(ChecksumMode::Enabled)
            .send()
            .await;
        let head = match asked {
            Ok(head) => head,
            // A HEAD has no body to say `NoSuchKey` in.
            Err(error) if status(&error) == Some(404) => return Ok(None),
            Err(error) => return Err(failed(status(&error), &error)),
        };
        let noted = |name| head.metadata().and_then(|notes| notes.get(name));
        Ok(Some(BlobHead {
            size: head
                .content_length()
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or_default(),
            // The digest of an object that came in parts is one of digests.
            sha256: head
                .checksum_sha256()
                .and_then(|digest| STANDARD.decode(digest).ok())
                .map(hex::encode),
            task: noted(TASK_NOTE).and_then(|note| task_of_note(note)),
            thread: noted(THREAD_NOTE).and_then(|note| thread_of_note(note)),
        }))
    }

    async fn copy(&self, task: &TaskKey, from: &Blob, to: &str) -> Result<bool, StoreError> {
        if Self::in_parts(from) {
            return self.copy_parts(task, from, to).await;
        }
        self.copy_whole(task, from, to).await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let (mut keys, mut next) = (Vec::new(), None);
        // S3 may give less than was asked for, and say that there is more.
        loop {
            let most = (limit - keys.len()).min(KEYS);
            let page = self.page(prefix, after, next, most).await?;
            let found = page.contents.unwrap_or_default();
            keys.extend(found.into_iter().filter_map(|object| object.key));
            next = page.next_continuation_token;
            if keys.len() >= limit || page.is_truncated != Some(true) || next.is_none() {
                return Ok(keys);
            }
        }
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        for chunk in keys.chunks(KEYS) {
            self.delete_some(chunk).await?;
        }
        Ok(())
    }

    async fn read_url(
        &self,
        download: &Download<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        self.sign_read(download, now, lifetime).await.map(Some)
    }

    async fn upload_url(
        &self,
        terms: &UploadTerms<'_>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        self.sign_upload(terms, now, lifetime).await.map(Some)
    }
}

impl S3Blobs {
    /// One page of a list: the first after a key, or the one a token names.
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
            .map_err(|error| failed(status(&error), &error))
    }

    async fn body(&self, key: &str) -> Result<Option<ByteStream>, StoreError> {
        let found = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key)
            .send()
            .await;
        match found {
            Ok(object) => Ok(Some(object.body)),
            Err(error) if error.code() == Some("NoSuchKey") => Ok(None),
            Err(error) => Err(failed(status(&error), &error)),
        }
    }

    async fn delete_some(&self, keys: &[String]) -> Result<(), StoreError> {
        let broken = |error: aws_sdk_s3::error::BuildError| StoreError::Refused(error.to_string());
        let mut removal = Removal::builder().quiet(true);
        for key in keys {
            let named = ObjectIdentifier::builder().key(key).build();
            removal = removal.objects(named.map_err(broken)?);
        }
        let done = self
            .client
            .delete_objects()
            .bucket(&self.bucket)
            .delete(removal.build().map_err(broken)?)
            .send()
            .await
            .map_err(|error| failed(status(&error), &error))?;
        // It answers 200 with a list of what it has not removed.
        match done.errors().first() {
            None => Ok(()),
            Some(left) => Err(StoreError::Unavailable(format!(
                "S3 has not removed an object: {}",
                left.code().unwrap_or("no code")
            ))),
        }
    }
}
