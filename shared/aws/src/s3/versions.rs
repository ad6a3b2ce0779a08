//! Reads and removes versions of objects, in a bucket with versioning.
//!
//! A removal adds a delete marker on top of the versions of an object. Only operators use
//! this module. An erasure removes the versions too. A restore removes the delete markers
//! that were set after its point in time.

use super::outcome::{failed, status};
use super::{KEYS, S3Blobs};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{SubjectKey, TenantId, Timestamp};
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::types::ObjectIdentifier;

/// Prefix of the records of erasures. No function reads or writes below it.
const ERASED: &str = "erased/";

/// Receives the number of versions removed so far.
type OnRemoved<'a> = &'a (dyn Fn(u64) + Sync);

/// What was erased, and the time at which the erasure ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureNote {
    /// What was erased.
    pub erased: Erased,
    /// The end of the erasure.
    pub at: Timestamp,
}

/// What an erasure removes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Erased {
    /// A whole tenant.
    Tenant(TenantId),
    /// One subject of a tenant.
    Subject(SubjectKey),
}

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
    pub async fn purge_tenant(
        &self,
        tenant: &TenantId,
        reported: OnRemoved<'_>,
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        for root in ["v1", "up"] {
            let below = format!("{root}/{}/", tenant.folder());
            removed += self.purge_below(&below, reported).await?;
        }
        Ok(removed)
    }

    /// The same for the objects whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`S3Blobs::purge_tenant`].
    pub(crate) async fn purge_below(
        &self,
        prefix: &str,
        reported: OnRemoved<'_>,
    ) -> Result<u64, StoreError> {
        let every = |page: &ListObjectVersionsOutput| {
            let versions = page.versions().iter();
            let versions = versions.map(|it| (it.key.clone(), it.version_id.clone()));
            let markers = page.delete_markers().iter();
            let markers = markers.map(|it| (it.key.clone(), it.version_id.clone()));
            versions.chain(markers).collect()
        };
        self.remove_versions(prefix, every, reported).await
    }

    /// Removes the delete markers that were set at or after `since` on objects of tasks and
    /// threads, and returns how many. Objects removed since then can be read again.
    ///
    /// # Errors
    /// As [`S3Blobs::purge_tenant`].
    pub async fn restore_removed(
        &self,
        since: Timestamp,
        reported: OnRemoved<'_>,
    ) -> Result<u64, StoreError> {
        // S3 keeps times in whole seconds.
        let since = since.as_millis().div_euclid(1000);
        let later = |page: &ListObjectVersionsOutput| {
            let markers = page.delete_markers().iter();
            let later = markers.filter(|it| it.last_modified.is_none_or(|at| at.secs() >= since));
            later
                .map(|it| (it.key.clone(), it.version_id.clone()))
                .collect()
        };
        self.remove_versions("v1/", later, reported).await
    }

    /// Records an erasure, so that a restore to an earlier time repeats it. The name of the
    /// record holds the hash of a subject, not the subject.
    ///
    /// # Errors
    /// As [`a2a_lambda_model::store::Blobs::put`].
    pub async fn note_erasure(&self, note: &ErasureNote) -> Result<(), StoreError> {
        let erased = match &note.erased {
            Erased::Tenant(tenant) => tenant.to_string(),
            // No tenant contains a `/`.
            Erased::Subject(subject) => format!("{}/{}", subject.tenant(), subject.hash()),
        };
        let key = format!("{ERASED}{:013}-{erased}", note.at.as_millis());
        self.keep(&key, None, bytes::Bytes::new()).await
    }

    /// The erasures that ended at or after `since`, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the bucket does not answer.
    pub async fn erasures_since(&self, since: Timestamp) -> Result<Vec<ErasureNote>, StoreError> {
        use a2a_lambda_model::store::Blobs as _;
        let mut after = Some(format!("{ERASED}{:013}", since.as_millis()));
        let mut found = Vec::new();
        loop {
            let keys = self.keys(ERASED, after.as_deref(), KEYS).await?;
            found.extend(keys.iter().filter_map(|key| note_of(key)));
            if keys.len() < KEYS {
                return Ok(found);
            }
            after = keys.last().cloned();
        }
    }

    /// Removes the versions below `prefix` that `which` selects from each page.
    async fn remove_versions(
        &self,
        prefix: &str,
        which: impl Fn(&ListObjectVersionsOutput) -> Vec<(Option<String>, Option<String>)>,
        reported: OnRemoved<'_>,
    ) -> Result<u64, StoreError> {
        let (mut removed, mut place) = (0, VersionMarker::default());
        while let Some(page) = self.versions(prefix, &place).await? {
            let mut versions = Vec::new();
            for (key, version) in which(&page) {
                let named = ObjectIdentifier::builder()
                    .set_key(key)
                    .set_version_id(version);
                let broken =
                    |error: aws_sdk_s3::error::BuildError| StoreError::Refused(error.to_string());
                versions.push(named.build().map_err(broken)?);
            }
            removed += versions.len() as u64;
            for chunk in versions.chunks(KEYS) {
                self.delete_named(chunk.to_vec()).await?;
            }
            reported(removed);
            if page.is_truncated != Some(true) {
                break;
            }
            place = VersionMarker {
                key: page.next_key_marker,
                version: page.next_version_id_marker,
            };
        }
        Ok(removed)
    }

    /// A page of the versions below `prefix`; `None` if the service has no versions.
    async fn versions(
        &self,
        prefix: &str,
        place: &VersionMarker,
    ) -> Result<Option<ListObjectVersionsOutput>, StoreError> {
        let asked = self
            .client
            .list_object_versions()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_key_marker(place.key.clone())
            .set_version_id_marker(place.version.clone())
            .send()
            .await;
        match asked {
            Ok(page) => Ok(Some(page)),
            // The embedded S3 has no versions.
            Err(error) if error.code() == Some("NotImplemented") => Ok(None),
            Err(error) => Err(failed(status(&error), &error)),
        }
    }
}

fn note_of(key: &str) -> Option<ErasureNote> {
    let (at, erased) = key.strip_prefix(ERASED)?.split_once('-')?;
    let erased = match erased.split_once('/') {
        Some((tenant, subject)) => Erased::Subject(SubjectKey::stored(tenant, subject)?),
        None => Erased::Tenant(TenantId::parse(erased).ok()?),
    };
    Some(ErasureNote {
        erased,
        at: Timestamp::from_millis(at.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_about_an_erasure_names_the_tenant_or_subject_and_its_time() {
        let hash = "0123456789abcdef0123456789abcdef";
        let tenant = Erased::Tenant(TenantId::parse("acme-2.x").unwrap());
        let subject = Erased::Subject(SubjectKey::stored("acme-2.x", hash).unwrap());
        for (name, erased) in [("acme-2.x", tenant), (&format!("acme-2.x/{hash}"), subject)] {
            let note = note_of(&format!("erased/1764000000123-{name}")).unwrap();
            assert_eq!(note.erased, erased);
            assert_eq!(note.at, Timestamp::from_millis(1_764_000_000_123));
        }
        for other in [
            "erased/acme",
            "erased/x-acme",
            "v1/1-acme",
            "erased/1-a#b",
            "erased/1-a/b",
        ] {
            assert_eq!(note_of(other), None, "{other}");
        }
    }
}
