//! The command `template`: writes the SAM template of an agent that is one program.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{fs, iter};

/// The templates of this version of the library, with their places below the folder.
const FILES: [(&str, &str); 3] = [
    ("template.yaml", include_str!("../assets/template.yaml")),
    ("infra/alarms.yaml", include_str!("../assets/alarms.yaml")),
    (
        "infra/dashboard.yaml",
        include_str!("../assets/dashboard.yaml"),
    ),
];
/// What precedes the folder of a function in the template of the library.
const FUNCTIONS: &str = "CodeUri: functions/";
/// The comment of the library's template that does not hold for one program.
const FOLDERS: &str =
    "# `sam build` runs cargo-lambda in the folder of each function, so that a function links
# the features of its own manifest and no others. ";

/// Where the templates are, and what they build.
#[derive(Debug, Clone, clap::Args)]
pub struct WriteTemplate {
    /// Compares, and writes nothing: an error if a file differs.
    #[arg(long)]
    pub check: bool,
    /// The folder that `sam build` runs in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// The folder of the package whose program calls `serve::function`, as seen from there.
    #[arg(long, value_name = "DIR", default_value = "agent")]
    pub code: String,
}

/// Why the templates are not written, or differ.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A file cannot be read or written.
    #[error("failed to use `{path}`: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not what this version writes.
    #[error("`{0}` is not the template of this version: run the command without --check")]
    Differs(PathBuf),
    /// Standard output cannot be written.
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Writes the templates, or compares them.
///
/// # Errors
/// [`TemplateError`] when a file cannot be used, or differs under `--check`.
pub fn run(options: &WriteTemplate) -> Result<(), TemplateError> {
    for (name, text) in FILES {
        let path = options.folder.join(name);
        let failed = |source| TemplateError::File {
            path: path.clone(),
            source,
        };
        let text = of_one_program(text, &options.code);
        let same = match fs::read_to_string(&path) {
            Ok(old) => old == text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        if same {
            continue;
        }
        if options.check {
            return Err(TemplateError::Differs(path));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, text).map_err(failed)?;
        writeln!(io::stdout(), "wrote {}", shown(&path))?;
    }
    Ok(())
}

/// The path as the user would write it.
fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    path.display().to_string()
}

/// A template of the library for one program in the folder `code`, which is every function.
fn of_one_program(text: &str, code: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let head = format!(
        "# Written by the command `template` of a2a-local {version}. Run it again after an upgrade\n\
         # of the library; put your own resources into another file.\n"
    );
    let one = "# `sam build` runs cargo-lambda once: `A2A_FUNCTION` tells the program which function it\n# is. ";
    let text = text.replace(FOLDERS, one);
    let lines = text.lines().map(|line| match line.split_once(FUNCTIONS) {
        Some((indent, _)) => format!("{indent}CodeUri: {}/", code.trim_end_matches('/')),
        None => line.to_owned(),
    });
    iter::once(head.trim_end().to_owned())
        .chain(lines)
        .map(|line| line + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(folder: &Path, check: bool) -> WriteTemplate {
        WriteTemplate {
            check,
            folder: folder.to_owned(),
            code: "agent/".to_owned(),
        }
    }

    #[test]
    fn the_template_builds_one_program_for_every_function() {
        let text = of_one_program(FILES[0].1, "agent");
        assert!(
            !text.contains("functions/"),
            "a folder of the library is left"
        );
        let programs = text.matches("\n      CodeUri: agent/\n").count();
        assert_eq!(programs, 11);
        assert_eq!(text.matches("A2A_FUNCTION: ").count(), 11);
        assert!(text.contains("runs cargo-lambda once"), "{text}");
    }

    #[test]
    fn the_folder_for_authors_has_the_template_of_this_version() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template");
        run(&options(&folder, true)).unwrap();
    }

    #[test]
    fn a_template_that_was_changed_or_is_old_is_reported_and_written_again() {
        let name = format!("a2a-template-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let missing = run(&options(&folder, true)).unwrap_err().to_string();
        assert!(missing.contains("template.yaml"), "{missing}");
        run(&options(&folder, false)).unwrap();
        run(&options(&folder, true)).unwrap();
        let alarms = folder.join("infra/alarms.yaml");
        fs::write(&alarms, "other").unwrap();
        let differs = run(&options(&folder, true)).unwrap_err();
        assert!(matches!(differs, TemplateError::Differs(path) if path == alarms));
        run(&options(&folder, false)).unwrap();
        run(&options(&folder, true)).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
