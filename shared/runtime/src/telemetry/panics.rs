//! Logs where a panic happened, and not its text: the text may have content of a message.

use std::panic::PanicHookInfo;

/// Replaces the hook of the process that prints panics. The new one logs the place.
pub(super) fn hide_texts() {
    std::panic::set_hook(Box::new(log));
}

fn log(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    tracing::error!(
        code.file.path = panic.location().map(std::panic::Location::file),
        code.line.number = panic.location().map(std::panic::Location::line),
        "a panic at {}",
        location.as_deref().unwrap_or("an unknown place")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::lines::Lines;

    #[test]
    fn a_panic_is_logged_with_its_place_and_without_its_text() {
        let lines = Lines::default();
        let _guard = lines.capture();
        let before = std::panic::take_hook();
        hide_texts();
        let died = std::panic::catch_unwind(|| panic!("canary-panic"));
        std::panic::set_hook(before);
        assert!(died.is_err());
        let text = lines.text();
        assert!(text.contains("telemetry/panics.rs:"), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}
