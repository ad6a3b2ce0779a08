//! The whole agent in one process, with a store in memory and a clock that the
//! tests control. Most files test one method.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod capabilities;
#[cfg(test)]
mod card;
#[cfg(test)]
mod contexts;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod crossings;
#[cfg(test)]
mod deleted;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod extended;
#[cfg(test)]
mod files;
#[cfg(test)]
mod get;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod in_time;
#[cfg(test)]
mod incarnations;
#[cfg(test)]
mod list;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod numbers;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod push;
#[cfg(test)]
mod push_fair;
#[cfg(test)]
mod references;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod send;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod subscribe;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod told;
#[cfg(test)]
mod uploads;
