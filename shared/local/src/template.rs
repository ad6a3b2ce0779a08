//! The command `template`: writes the SAM template of an agent that is one program, and once the
//! names of its stacks. An author's own changes are in a file beside it.

mod changes;
mod names;

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
/// What an author changes in the template.
const CHANGES: &str = "infra/changes.yaml";
/// What precedes the folder of a function in the template of the library.
const FUNCTIONS: &str = "CodeUri: functions/";
/// The comment of the library's template that does not hold for one program.
const FOLDERS: &str =
    "# `sam build` runs cargo-lambda in the folder of each function, so that a function links
# the features of its own manifest and no others. ";

/// The log group that every function of the library's template depends on. Its logical id ends
/// with the id of the agent, so that a deployment over the stack of another agent fails.
const LOGS: &str = "LogsOfReference";
/// Where SAM finds the names and the parameters of stacks.
const SAMCONFIG: &str = "samconfig.toml";
/// The names of functions and queues are made of the name of a stack, which is no longer.
const STACK_NAME_MAX: usize = 46;

/// Where the templates are, and what they build.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WriteTemplate {
    /// Compares, and writes nothing: an error if a file differs.
    #[arg(long)]
    pub(crate) check: bool,
    /// The folder that `sam build` runs in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The folder of the package whose program calls `serve::function`, as seen from there.
    #[arg(long, value_name = "DIR", default_value = "agent")]
    pub(crate) code: String,
}

/// Why the templates are not written, or differ.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("failed to use `{path}`: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("`{0}` is not the template of this version: run the command without --check")]
    Differs(PathBuf),
    /// Files of the author name what the template does not have: a line for each name.
    #[error("{}", .0.join("\n"))]
    Unknown(Vec<String>),
    /// The id of the agent makes no name of a stack.
    #[error(
        "the agent `{0}` has no name for a stack, which has letters, digits and hyphens, and at \
         most {STACK_NAME_MAX} with its stage: write `stack_name` into `{SAMCONFIG}`"
    )]
    StackName(String),
    #[error("failed to print: {0}")]
    Print(#[from] io::Error),
}

/// Writes the templates of the agent `id`, or compares them.
///
/// # Errors
/// [`TemplateError`] when a file cannot be used, differs under `--check`, or names what the
/// template does not have.
pub(crate) fn run(options: &WriteTemplate, id: &str) -> Result<(), TemplateError> {
    write_templates(options, id)?;
    let path = options.folder.join(SAMCONFIG);
    let old = read(&path)?.unwrap_or_default();
    if !options.check {
        let text = with_stack_names(&old, id)?;
        if text != old {
            write(&path, &text)?;
        }
    }
    refuse_unknown(options, &old)
}

/// Refuses names that SAM would drop, or that would change nothing, in files of the author.
fn refuse_unknown(options: &WriteTemplate, samconfig: &str) -> Result<(), TemplateError> {
    let edits = read(&options.folder.join(CHANGES))?.unwrap_or_default();
    let [(_, library), ..] = FILES;
    let template = changes::apply(library, &edits);
    let parameters = changes::keys(&template, "Parameters");
    let strays = names::parameters(samconfig).into_iter().filter_map(|name| {
        let (letters, near) = names::nearest(&name, &parameters)?;
        (letters > 0).then(|| unknown(SAMCONFIG, &name, near))
    });
    let misspelt = changes::misspelt(library, &edits);
    let misspelt = misspelt
        .iter()
        .map(|(name, near)| unknown(CHANGES, name, near));
    let lines: Vec<String> = strays.chain(misspelt).collect();
    if lines.is_empty() {
        Ok(())
    } else {
        Err(TemplateError::Unknown(lines))
    }
}

fn unknown(file: &str, name: &str, near: &str) -> String {
    format!(
        "`{file}` names `{name}`, which the template does not have; the nearest name is `{near}`"
    )
}

fn write_templates(options: &WriteTemplate, id: &str) -> Result<(), TemplateError> {
    let own_text = read(&options.folder.join(CHANGES))?.unwrap_or_default();
    for (name, text) in FILES {
        let path = options.folder.join(name);
        let mut text = of_one_program(text, &options.code).replace(LOGS, &logs_of(id));
        if name == "template.yaml" {
            text = changes::apply(&text, &own_text);
        }
        if read(&path)?.is_some_and(|old| old == text) {
            continue;
        }
        if options.check {
            return Err(TemplateError::Differs(path));
        }
        write(&path, &text)?;
    }
    Ok(())
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> TemplateError {
    let path = path.to_owned();
    |source| TemplateError::File { path, source }
}

/// The text of a file, if it exists.
fn read(path: &Path) -> Result<Option<String>, TemplateError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path)(error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), TemplateError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(file_error(path))?;
    }
    fs::write(path, text).map_err(file_error(path))?;
    Ok(writeln!(io::stdout(), "wrote {}", display_path(path))?)
}

/// The words of an id.
fn words(id: &str) -> impl Iterator<Item = &str> {
    id.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// The logical id of the log group of an agent.
fn logs_of(id: &str) -> String {
    let mut name = "LogsOf".to_owned();
    for word in words(id) {
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}

/// `samconfig` with a name for each stack that has none: the id of the agent, and the stage.
fn with_stack_names(samconfig: &str, id: &str) -> Result<String, TemplateError> {
    let mut text = String::new();
    let mut lines = samconfig.lines().peekable();
    let name = words(id).collect::<Vec<_>>().join("-");
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let header = line.strip_prefix('[');
        let stage = header.and_then(|line| line.strip_suffix(".deploy.parameters]"));
        let Some(stage) = stage else { continue };
        if lines
            .peek()
            .is_some_and(|next| next.starts_with("stack_name"))
        {
            continue;
        }
        let stage = Some(stage).filter(|stage| *stage != "default");
        let name = iter::once(&*name)
            .chain(stage)
            .collect::<Vec<_>>()
            .join("-");
        if name.len() > STACK_NAME_MAX || !name.starts_with(|it: char| it.is_ascii_alphabetic()) {
            return Err(TemplateError::StackName(id.to_owned()));
        }
        text.extend(["stack_name = \"", &name, "\"\n"]);
    }
    Ok(text)
}

/// The path as the user would write it.
fn display_path(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    path.display().to_string()
}

/// A template of the library for one program in the folder `code`, which is every function.
fn of_one_program(text: &str, code: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let head = format!(
        "# Written by the command `template` of a2a-local {version}. Run it again after an upgrade\n\
         # of the library, or of `{CHANGES}`, where your changes of template.yaml are.\n"
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
        run(&options(&folder, true), "restaurant").unwrap();
    }

    #[test]
    #[ignore = "writes the files; RELEASING.md says when"]
    fn the_folder_for_authors_is_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../template");
        write_templates(&options(&folder, false), "restaurant").unwrap();
    }

    #[test]
    fn a_template_that_was_changed_or_is_old_is_reported_and_written_again() {
        let name = format!("a2a-template-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let missing = run(&options(&folder, true), "restaurant")
            .unwrap_err()
            .to_string();
        assert!(missing.contains("template.yaml"), "{missing}");
        run(&options(&folder, false), "restaurant").unwrap();
        run(&options(&folder, true), "restaurant").unwrap();
        let alarms = folder.join("infra/alarms.yaml");
        fs::write(&alarms, "other").unwrap();
        let differs = run(&options(&folder, true), "restaurant").unwrap_err();
        assert!(matches!(differs, TemplateError::Differs(path) if path == alarms));
        run(&options(&folder, false), "restaurant").unwrap();
        run(&options(&folder, true), "restaurant").unwrap();
        let timeout = "Resources:\n  WorkerFunction:\n    Properties:\n      Timeout: 60\n";
        fs::write(folder.join(CHANGES), timeout).unwrap();
        run(&options(&folder, true), "restaurant").unwrap_err();
        run(&options(&folder, false), "restaurant").unwrap();
        run(&options(&folder, true), "restaurant").unwrap();
        let text = fs::read_to_string(folder.join("template.yaml")).unwrap();
        assert!(text.contains("      Timeout: 60\n      Environment:\n        Variables:\n          A2A_FUNCTION: worker\n"));
        let given = "[prod.deploy.parameters.parameter_overrides]\nAlarmEmial = \"a@b.c\"\n";
        fs::write(folder.join(SAMCONFIG), given).unwrap();
        let dropped = run(&options(&folder, true), "restaurant").unwrap_err();
        let said = "`samconfig.toml` names `AlarmEmial`, which the template does not have; \
                    the nearest name is `AlarmEmail`";
        assert_eq!(dropped.to_string(), said);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_agent_names_its_stacks_once_and_its_log_group_always() {
        let config = "version = 0.1\n\n[default.deploy.parameters]\nresolve_s3 = true\n\n\
                      [prod.deploy.parameters]\nstack_name = \"shop\"\n";
        let named = with_stack_names(config, "my restaurant").unwrap();
        let line = "[default.deploy.parameters]\nstack_name = \"my-restaurant\"\n";
        assert!(named.contains(line), "{named}");
        assert!(named.contains("[prod.deploy.parameters]\nstack_name = \"shop\"\n"));
        assert_eq!(with_stack_names(&named, "other").unwrap(), named);
        for id in ["7", "日本", &"long".repeat(12)] {
            assert!(with_stack_names(config, id).is_err(), "{id}");
        }
        assert_eq!(logs_of("my restaurant-2"), "LogsOfMyRestaurant2");
        assert!(FILES[0].1.contains(&format!("LogGroup: !Ref {LOGS}\n")));
    }
}
