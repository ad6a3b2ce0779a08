//! Mistakes that must not compile.
//!
//! Each file of `programs/` compiles as it stands, and names in its header the
//! one expression that makes it a mistake, with the compiler's code for it. The
//! programs are built, not only checked: one of the errors is raised when code
//! is generated. Two throw-away packages below `target/` hold them, one cargo
//! call each; their dependencies are built once.

#[cfg(test)]
mod package;

use package::{build, errors, package, programs};

#[test]
fn every_program_compiles_without_its_mistake() {
    let programs = programs();
    let sources = programs.iter().map(|one| (&*one.name, &*one.good));
    let folder = package("compile-fail-twins", &sources.collect());
    let output = build(&folder, &["--quiet"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

#[test]
fn every_mistake_is_refused_by_the_compiler_for_its_own_reason() {
    let programs = programs();
    let sources = programs.iter().map(|one| (&*one.name, &*one.bad));
    let folder = package("compile-fail-mistakes", &sources.collect());
    let output = build(&folder, &["--keep-going", "--message-format=json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut errors = errors(&output.stdout);
    for program in &programs {
        let found = errors.remove(&program.name).unwrap_or_default();
        let found: Vec<_> = found.iter().map(String::as_str).collect();
        assert!(
            matches!(found.as_slice(), [only] if only.contains(&program.error)),
            "{}: expected `{}`, found {found:?}\n{stderr}",
            program.name,
            program.error
        );
    }
}
