//! Removes versions of objects, in a bucket with versioning.
//!
//! A removal adds a delete marker on top of the versions of an object. An erasure,
//! which an operator starts, removes the versions too.

use super::S3Blobs;
use super::outcome::s3_error;
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::TenantId;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::types::ObjectIdentifier;

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
        let (mut count, mut key, mut version) = (0, None, None);
        loop {
            let list = self.client.list_object_versions().bucket(&self.bucket);
            let list = list.prefix(prefix);
            let list = list.set_key_marker(key).set_version_id_marker(version);
            let page = match list.send().await {
                Ok(page) => page,
                // The embedded S3 has no versions.
                Err(error) if error.code() == Some("NotImplemented") => return Ok(count),
                Err(error) => return Err(s3_error(&error)),
            };
            let old = page.versions().iter().map(|it| (&it.key, &it.version_id));
            let markers = page.delete_markers().iter();
            let markers = markers.map(|it| (&it.key, &it.version_id));
            count += (old.len() + markers.len()) as u64;
            let objects = old.chain(markers).map(|(key, version)| {
                let object = ObjectIdentifier::builder().set_key(key.clone());
                object.set_version_id(version.clone()).build()
            });
            self.delete(objects.collect()).await?;
            if page.is_truncated != Some(true) {
                return Ok(count);
            }
            (key, version) = (page.next_key_marker, page.next_version_id_marker);
        }
    }
}
