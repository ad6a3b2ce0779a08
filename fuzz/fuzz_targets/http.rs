//! Runs `a2a_lambda::fuzz::HttpTarget` over any bytes, and panics when it returns an error.

#![no_main]

use a2a_lambda::fuzz::HttpTarget;
use std::cell::RefCell;

/// After this many requests the stores are replaced, since they only grow.
const RUNS: u32 = 5_000;

thread_local! {
    static TARGET: RefCell<Option<(HttpTarget, u32)>> = const { RefCell::new(None) };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    TARGET.with_borrow_mut(|kept| {
        let (target, runs) = kept.get_or_insert_with(|| {
            let agent = reference_agent::agent().expect("the agent is valid");
            (HttpTarget::new(agent).expect("the agent is served"), 0)
        });
        if let Err(broken) = target.run(bytes) {
            panic!("{broken}");
        }
        *runs += 1;
        if *runs >= RUNS {
            *kept = None;
        }
    });
});
