//! Tests that need DynamoDB, S3 or SQS, run on an emulator of them.
//!
//! `harness::emulator` chooses the emulator. `ministack.sh` in this folder runs the suite
//! against an independent emulator in a separate process.

#[cfg(test)]
mod contract;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod crossed_keys;
#[cfg(feature = "docker-tests")]
mod docker;
#[cfg(test)]
mod embedded;
#[cfg(test)]
mod erased;
#[cfg(test)]
mod estate;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod granted;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keyed;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod long_lists;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod pieces;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod removals;
#[cfg(test)]
mod reused;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod together;
#[cfg(test)]
mod ttl;
#[cfg(test)]
mod versions;
