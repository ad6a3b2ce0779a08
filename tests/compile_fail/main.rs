//! Checks that mistakes do not compile.
//!
//! Each file of `programs/` compiles unchanged. Its header names one expression, its
//! replacement, and the error code that the compiler reports for the replacement. The
//! programs are built, not only checked, because one error appears during code generation.
//! Two temporary packages below `target/` contain them, so cargo runs once per package and
//! builds the dependencies once.

#[cfg(test)]
mod package;

use a2a_lambda_rows::each_row;
use package::{build, errors, package, programs};

#[test]
fn each_program_compiles_without_its_mistake() {
    let programs = programs();
    let sources = programs.iter().map(|one| (&*one.name, &*one.good));
    let folder = package("compile-fail-twins", &sources.collect());
    let output = build(&folder, &["--quiet"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

#[test]
fn compiler_reports_each_mistake_with_its_own_error() {
    let programs = programs();
    let sources = programs.iter().map(|one| (&*one.name, &*one.bad));
    let folder = package("compile-fail-mistakes", &sources.collect());
    let output = build(&folder, &["--keep-going", "--message-format=json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut errors = errors(&output.stdout);
    each_row(&programs, |program| {
        let found = errors.remove(&program.name).unwrap_or_default();
        let (found, printed) = (found.codes, found.printed);
        let found: Vec<_> = found.iter().map(String::as_str).collect();
        assert!(
            matches!(found.as_slice(), [only] if only.contains(&program.error)),
            "{}: expected `{}`, found {found:?}\n{stderr}",
            program.name,
            program.error
        );
        if let Some(text) = &program.text {
            assert!(
                printed.contains(text),
                "{}: no `{text}` in\n{printed}",
                program.name
            );
        }
    });
}
