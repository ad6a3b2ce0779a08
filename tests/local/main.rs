//! The program `a2a-local`, run as a separate process and called over HTTP, as
//! a user does it.

#[cfg(test)]
mod accept;
#[cfg(test)]
mod agent;
#[cfg(test)]
mod background;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod check;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod context_client;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod counter;
#[cfg(test)]
mod dev;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod eval;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod files;
#[cfg(test)]
mod local_access;
#[cfg(test)]
mod meter;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod operators;
#[cfg(test)]
mod ops;
#[cfg(test)]
mod options;
#[cfg(test)]
mod page;
#[cfg(test)]
mod push;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod resume_demo;
#[cfg(test)]
mod signed;
#[cfg(test)]
mod slow_stream;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod traces;
