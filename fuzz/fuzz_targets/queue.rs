//! Runs `a2a_lambda::fuzz::queue` over any bytes, and panics when it returns an error.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = a2a_lambda::fuzz::queue(bytes) {
        panic!("{broken}");
    }
});
