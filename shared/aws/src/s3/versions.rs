//! Removes versions of objects, in a bucket with versioning.
//!
//! A removal adds a delete marker on top of the versions of an object. An erasure,
//! which an operator starts, removes the versions too.

use super::outcome::{failed, status};
use super::{KEYS, S3Blobs};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::TenantId;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::types::ObjectIdentifier;

/// The position at which the next page of a list of versions begins.
#[derive(Debug, Default)]
struct VersionMarker {
    key: Option<String>,
    version: Option<String>,
}

impl S3Blobs {
    /// Removes every version of every object of `tenant`, and the delete markers, and returns
    /// how many. A service without versions has none to remove.
    ///
    /// # Errors
    /// [`StoreError`] when the bucket does not answer or refuses. The call can be
    /// repeated.
    pub async fn purge_tenant(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let mut count = 0;
        for root in ["v1", "up"] {
            let below = format!("{root}/{}/", tenant.folder());
            count += self.purge_below(&below).await?;
        }
        Ok(count)
    }

    /// The same for the objects whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`S3Blobs::purge_tenant`].
    pub(crate) async fn purge_below(&self, prefix: &str) -> Result<u64, StoreError> {
        let (mut count, mut marker) = (0, VersionMarker::default());
        while let Some(page) = self.versions(prefix, &marker).await? {
            let old = page.versions().iter();
            let old = old.map(|it| (it.key.clone(), it.version_id.clone()));
            let markers = page.delete_markers().iter();
            let markers = markers.map(|it| (it.key.clone(), it.version_id.clone()));
            let mut versions = Vec::new();
            for (key, version) in old.chain(markers) {
                let object = ObjectIdentifier::builder()
                    .set_key(key)
                    .set_version_id(version);
                let build_error =
                    |error: aws_sdk_s3::error::BuildError| StoreError::Refused(error.to_string());
                versions.push(object.build().map_err(build_error)?);
            }
            count += versions.len() as u64;
            for chunk in versions.chunks(KEYS) {
                self.delete_named(chunk.to_vec()).await?;
            }
            if page.is_truncated != Some(true) {
                break;
            }
            marker = VersionMarker {
                key: page.next_key_marker,
                version: page.next_version_id_marker,
            };
        }
        Ok(count)
    }

    /// A page of the versions below `prefix`; `None` if the service has no versions.
    async fn versions(
        &self,
        prefix: &str,
        marker: &VersionMarker,
    ) -> Result<Option<ListObjectVersionsOutput>, StoreError> {
        let result = self
            .client
            .list_object_versions()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_key_marker(marker.key.clone())
            .set_version_id_marker(marker.version.clone())
            .send()
            .await;
        match result {
            Ok(page) => Ok(Some(page)),
            // The embedded S3 has no versions.
            Err(error) if error.code() == Some("NotImplemented") => Ok(None),
            Err(error) => Err(failed(status(&error), &error)),
        }
    }
}
