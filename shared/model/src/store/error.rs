//! Says why a store call failed.

/// By how much something is too large.
#[derive(Debug, thiserror::Error)]
pub enum SizeError {
    /// It has more bytes than it may have.
    #[error("{current} bytes; {limit} are allowed")]
    Bytes {
        /// Its bytes.
        current: u64,
        /// The most bytes that it may have.
        limit: u64,
    },
    /// Another limit, or one of a service.
    #[error("{0}")]
    Other(String),
}

impl SizeError {
    /// Checks a size in bytes.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] with both figures.
    pub fn check(current: usize, limit: usize) -> Result<(), StoreError> {
        if current <= limit {
            return Ok(());
        }
        Err(StoreError::TooLarge(Self::Bytes {
            current: current as u64,
            limit: limit as u64,
        }))
    }
}

/// Why a store call failed. Clients never see it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer or throttled the call. Whether the write is stored is
    /// unknown; the caller may repeat it under the same write id.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The bucket refused to read an object that a record names. For a role that may not
    /// list the bucket it can also be missing.
    #[error("object denied: {0}")]
    Denied(String),
    /// Concurrent writes to the same items won every attempt. Nothing of this call is
    /// stored.
    #[error("concurrent writes won every attempt: {0}")]
    Contended(String),
    /// The item exceeds a size limit; a repeat cannot succeed.
    #[error("item too large: {0}")]
    TooLarge(SizeError),
    /// The stored item has a form that this program does not read. The release that wrote it
    /// does.
    #[error("the stored form is {0}, which this program does not read")]
    Form(u32),
    /// The stored item cannot be decoded.
    #[error("stored item is corrupt: {0}")]
    Corrupt(String),
    /// The store rejected the call as invalid: a defect of this program.
    #[error("store refused the call: {0}")]
    Refused(String),
    /// Reading the content to store failed at its source.
    #[error("failed to read the content to store: {0}")]
    Source(#[source] std::io::Error),
}

impl StoreError {
    /// Whether the same call may succeed later, so that the failure says nothing about
    /// what is stored.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Denied(_) | Self::Contended(_) | Self::Form(_)
        )
    }
}
