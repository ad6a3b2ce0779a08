//! Reads records that consist of several items, which a commit may change during the read.

use a2a_lambda_model::store::StoreError;
use std::collections::BTreeSet;

/// How often a record that changes during the read is read.
pub(super) const TRIES: u32 = 4;

/// The reads of a task or thread that found it torn.
#[derive(Default)]
pub(super) struct TornReads {
    /// The versions that they found.
    versions: BTreeSet<u64>,
    /// The last refusal of the bucket.
    denial: Option<StoreError>,
}

impl TornReads {
    /// Notes the version that a read found.
    pub(super) fn note(&mut self, version: u64) {
        self.versions.insert(version);
    }

    /// The result of a read; `None` if it has to be made again. That is also so if the bucket
    /// refuses an object: a role that may not list gets this for an object that is gone.
    pub(super) fn result<T>(
        &mut self,
        read: Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Err(error @ StoreError::Denied(_)) => {
                self.denial = Some(error);
                Ok(None)
            }
            read => read,
        }
    }

    /// The error after the last read. Several versions mean that the record changes; one means
    /// that a part is missing, or that the bucket refuses it.
    pub(super) fn error(self) -> StoreError {
        if self.versions.len() > 1 {
            let why = "the record changed during every attempt to read it";
            return StoreError::Unavailable(why.to_owned());
        }
        let why = "the record refers to an item or object that does not exist";
        self.denial
            .unwrap_or_else(|| StoreError::Corrupt(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changing_record_is_unavailable_and_a_torn_one_corrupt() {
        let error = |versions: &[u64], denied: bool| {
            let mut reads = TornReads::default();
            versions.iter().for_each(|version| reads.note(*version));
            if denied {
                let refused: Result<Option<u8>, _> = Err(StoreError::Denied(String::new()));
                assert!(matches!(reads.result(refused), Ok(None)));
            }
            reads.error()
        };
        let changes = error(&[1, 2], false);
        assert!(matches!(changes, StoreError::Unavailable(_)), "{changes:?}");
        let broken = error(&[1], false);
        assert!(matches!(broken, StoreError::Corrupt(_)), "{broken:?}");
        let denied = error(&[1], true);
        assert!(matches!(denied, StoreError::Denied(_)), "{denied:?}");
    }
}
