//! Tests that need DynamoDB, S3 or SQS, run on an emulator of them.
//!
//! `harness::emulator` chooses the emulator. `ministack.sh` in this folder runs the suite
//! against an independent emulator in a separate process.

#[cfg(test)]
mod concurrent_ends;
#[cfg(test)]
mod contexts;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod crossed_keys;
#[cfg(feature = "docker-tests")]
mod docker;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod foreign_subjects;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod full_tenant;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keyed;
#[cfg(test)]
mod large_artifacts;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod long_lists;
#[cfg(test)]
mod object_sweep;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod races;
#[cfg(test)]
mod reused;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod table;
#[cfg(test)]
mod task_items;
#[cfg(test)]
mod ttl;
#[cfg(test)]
mod upload_grants;
#[cfg(test)]
mod versions;
