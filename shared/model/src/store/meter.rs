//! Counting the capacity that the calls of a store use.

/// Takes the capacity units of each store call. The caller of the store decides to which
/// request or turn they belong.
pub trait Meter: std::fmt::Debug + Send + Sync {
    /// Adds the read and write units of one store call (Amazon DynamoDB: read request
    /// units and write request units).
    fn add(&self, read: f64, write: f64);
}
