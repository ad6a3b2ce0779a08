//! Stores the objects of the embedded S3 as files.
//!
//! It changes the library in two ways. A PUT with a wrong digest stores nothing, as on
//! S3. Removing an object also removes its side files, whose names contain its key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput,
    CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, GetBucketLocationInput,
    GetBucketLocationOutput, GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput,
    HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput, ListObjectsV2Input,
    ListObjectsV2Output, ListPartsInput, ListPartsOutput, PutObjectInput, PutObjectOutput,
    StreamingBlob, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Objects as files below a folder.
#[derive(Debug)]
pub(crate) struct ObjectFiles {
    library: FileSystem,
    root: PathBuf,
}

/// Why a body ends with an error before the library has stored it.
#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the bytes are not those of the digest")]
    Digest,
    #[error("the body broke off: {0}")]
    Broken(s3s::StdError),
}

impl ObjectFiles {
    /// A store of the objects below `root`.
    ///
    /// # Errors
    /// The library's error text when the folder cannot be used.
    pub(crate) fn below(root: &Path) -> Result<Self, String> {
        Ok(Self {
            library: FileSystem::new(root).map_err(|error| format!("{error:?}"))?,
            root: root.to_owned(),
        })
    }

    /// Removes the side files of an object.
    fn forget(&self, bucket: &str, key: &str) {
        for kind in ["metadata", "internal"] {
            let name = format!("{}.{kind}.json", side_name(bucket, key));
            match fs::remove_file(self.root.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!("failed to remove a side file of an object: {error}"),
            }
        }
    }
}

/// The beginning of the names of an object's side files. The library writes them into
/// the folder above the buckets.
fn side_name(bucket: &str, key: &str) -> String {
    let code = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(".bucket-{}.object-{}", code(bucket), code(key))
}

/// The body. It ends with an error, and sets `mismatch`, unless its SHA-256 in base64 is
/// `checksum`.
fn verify(
    body: StreamingBlob,
    checksum: String,
    mismatch: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + Sync + 'static {
    let state = (body, Sha256::new(), checksum, mismatch);
    stream::try_unfold(state, |(mut body, mut digest, checksum, mismatch)| async {
        match body.next().await {
            Some(Ok(bytes)) => {
                digest.update(&bytes);
                Ok(Some((bytes, (body, digest, checksum, mismatch))))
            }
            Some(Err(error)) => Err(BodyError::Broken(error)),
            None if STANDARD.encode(digest.finalize()) == checksum => Ok(None),
            None => {
                mismatch.store(true, Ordering::Relaxed);
                Err(BodyError::Digest)
            }
        }
    })
}

/// Implements S3: the listed operations call the library, the others are written here.
macro_rules! store {
    ($($call:ident($input:ty) -> $output:ty;)*) => {
        #[async_trait::async_trait]
        impl S3 for ObjectFiles {
            $(async fn $call(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                self.library.$call(request).await
            })*

            async fn put_object(
                &self,
                mut request: S3Request<PutObjectInput>,
            ) -> S3Result<S3Response<PutObjectOutput>> {
                let mismatch = Arc::new(AtomicBool::new(false));
                if let Some(checksum) = request.input.checksum_sha256.clone() {
                    let body = request.input.body.take();
                    request.input.body = body.map(|body| {
                        StreamingBlob::wrap(verify(body, checksum, Arc::clone(&mismatch)))
                    });
                }
                let put = self.library.put_object(request).await;
                // The library reports a body error as its own; S3 reports `BadDigest`.
                if mismatch.load(Ordering::Relaxed) {
                    return Err(S3Error::new(S3ErrorCode::BadDigest));
                }
                put
            }

            async fn delete_object(
                &self,
                request: S3Request<DeleteObjectInput>,
            ) -> S3Result<S3Response<DeleteObjectOutput>> {
                let DeleteObjectInput { bucket, key, .. } = request.input.clone();
                let response = self.library.delete_object(request).await?;
                self.forget(&bucket, &key);
                Ok(response)
            }

            async fn delete_objects(
                &self,
                request: S3Request<DeleteObjectsInput>,
            ) -> S3Result<S3Response<DeleteObjectsOutput>> {
                let DeleteObjectsInput { bucket, delete, .. } = request.input.clone();
                let response = self.library.delete_objects(request).await?;
                for object in delete.objects {
                    self.forget(&bucket, &object.key);
                }
                Ok(response)
            }
        }
    };
}

store! {
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput;
    copy_object(CopyObjectInput) -> CopyObjectOutput;
    create_bucket(CreateBucketInput) -> CreateBucketOutput;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput;
    get_object(GetObjectInput) -> GetObjectOutput;
    head_bucket(HeadBucketInput) -> HeadBucketOutput;
    head_object(HeadObjectInput) -> HeadObjectOutput;
    list_buckets(ListBucketsInput) -> ListBucketsOutput;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output;
    list_parts(ListPartsInput) -> ListPartsOutput;
    upload_part(UploadPartInput) -> UploadPartOutput;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput;
}

/// Removes the traces of removed objects below the folder of a stopped store: their
/// side files, parts of unfinished uploads, and empty folders, whose names are parts of
/// keys.
///
/// # Errors
/// When a file or a folder cannot be read or removed.
pub(crate) fn collect_unreferenced(root: &Path, bucket: &str) -> io::Result<()> {
    let objects = root.join(bucket);
    let side_names: Vec<String> = sweep_folders(&objects)?
        .iter()
        .filter_map(|path| path.strip_prefix(&objects).ok()?.to_str())
        .map(|key| side_name(bucket, key))
        .collect();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let beside = |side: &String| {
            let rest = name.strip_prefix(side.as_str());
            rest.is_some_and(|rest| [".metadata.json", ".internal.json"].contains(&rest))
        };
        if name.starts_with('.') && entry.file_type()?.is_file() && !side_names.iter().any(beside) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the folders below `top` without a file, and returns all files.
fn sweep_folders(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(top)? {
        let path = entry?.path();
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        let below = sweep_folders(&path)?;
        if below.is_empty() {
            fs::remove_dir(&path)?;
        }
        files.extend(below);
    }
    Ok(files)
}
