//! Any bytes keep what `a2a_lambda::fuzz::cursors` promises.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = a2a_lambda::fuzz::cursors(bytes) {
        panic!("{broken}");
    }
});
