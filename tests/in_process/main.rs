//! The whole agent in one process, with a store in memory and a clock that the
//! tests control. Most files test one method.

#[cfg(test)]
mod access_matrix;
#[cfg(test)]
mod across_generations;
#[cfg(test)]
mod alarms;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod brake;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod capabilities;
#[cfg(test)]
mod card;
#[cfg(test)]
mod consent;
#[cfg(test)]
mod context_expiry;
#[cfg(test)]
mod context_membership;
#[cfg(test)]
mod contexts;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod cors;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod deleted_contexts;
#[cfg(test)]
mod deployments;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod expired_callers;
#[cfg(test)]
mod extended_card;
#[cfg(test)]
mod files;
#[cfg(test)]
mod function_routes;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod get;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod incarnations;
#[cfg(test)]
mod integers;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod list;
#[cfg(test)]
mod log_content;
#[cfg(test)]
mod log_lines;
#[cfg(test)]
mod log_readers;
#[cfg(test)]
mod model_files;
#[cfg(test)]
mod open_tasks;
#[cfg(test)]
mod ops;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod page_tokens;
#[cfg(test)]
mod placed_tasks;
#[cfg(test)]
mod private_members;
#[cfg(test)]
mod push;
#[cfg(test)]
mod push_fair;
#[cfg(test)]
mod references;
#[cfg(test)]
mod remembering;
#[cfg(test)]
mod repeats;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod response_limits;
#[cfg(test)]
mod routed_inputs;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod send;
#[cfg(test)]
mod spoofing;
#[cfg(test)]
mod stored_forms;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod subscribe;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod text_clients;
#[cfg(test)]
mod thread_history;
#[cfg(test)]
mod timeouts;
#[cfg(test)]
mod token_record;
#[cfg(test)]
mod uploads;
#[cfg(test)]
mod wishes;
