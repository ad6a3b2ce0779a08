//! What needs a DynamoDB and an S3, on an emulator of them.
//!
//! `harness::emulator` says which. `ministack.sh` in this folder runs the suite
//! against an emulator of other authors, in a process of its own.

#[cfg(test)]
mod contract;
#[cfg(feature = "docker-tests")]
mod docker;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod faults;
