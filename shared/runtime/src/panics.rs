//! Refuses to run where a panic would end the process.
//!
//! A panic of a skill is a failed task, and a panic of a stream is said in the stream.
//! Both need the panic to unwind. cargo-lambda compiles a release with `panic = "abort"`
//! unless the profile of the workspace sets `panic`.

/// The program is compiled with `panic = "abort"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "compiled with `panic = \"abort\"`, so a panic of a skill would end the process: write \
     `panic = \"unwind\"` below `[profile.release]` in the Cargo.toml of the workspace, and build again"
)]
pub struct PanicAborts;

/// Checks that a panic unwinds in this program.
///
/// # Errors
/// [`PanicAborts`] when it is compiled with `panic = "abort"`.
pub const fn check() -> Result<(), PanicAborts> {
    refuse_if(cfg!(panic = "abort"))
}

const fn refuse_if(aborts: bool) -> Result<(), PanicAborts> {
    if aborts { Err(PanicAborts) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_aborts_is_refused_with_the_line_to_write() {
        assert_eq!(check(), Ok(()));
        let text = refuse_if(true).unwrap_err().to_string();
        for word in ["`panic = \"unwind\"`", "`[profile.release]`", "Cargo.toml"] {
            assert!(text.contains(word), "{text}");
        }
    }
}
