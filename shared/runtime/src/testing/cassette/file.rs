//! Reads and writes the file of a cassette.

use super::entry::RecordedCall;
use super::error::CassetteError;
use super::redact::Redactor;
use crate::settings::read_file;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The form of the file. A change of the form changes the number.
const FORM: u32 = 1;
/// The most bytes of a file: 64 MiB.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What a file holds: the calls of a run, in the order of the requests.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CassetteFile<C> {
    cassette: u32,
    calls: Vec<C>,
}

/// The calls in a file; `None` if there is no such file.
///
/// # Errors
/// [`CassetteError::Foreign`] when the file cannot be read, or has another form.
pub(super) fn read(path: &Path) -> Result<Option<Vec<RecordedCall>>, CassetteError> {
    let text = read_file(path, MAX_BYTES).map_err(|error| CassetteError::foreign(path, &error))?;
    let Some(text) = text else { return Ok(None) };
    let json = &mut serde_json::Deserializer::from_str(&text);
    let file: CassetteFile<RecordedCall> = serde_path_to_error::deserialize(&mut *json)
        .map_err(|error| CassetteError::foreign(path, &error))?;
    json.end()
        .map_err(|error| CassetteError::foreign(path, &error))?;
    if file.cassette != FORM {
        let why = format!("its form is {}, expected {FORM}", file.cassette);
        return Err(CassetteError::foreign(path, &why));
    }
    Ok(Some(file.calls))
}

/// Replaces the file. A reader sees the old file or the new one, and nothing between.
///
/// # Errors
/// [`CassetteError`] when the text would hold a secret, or cannot be written.
pub(super) fn write<'a>(
    path: &Path,
    calls: impl Iterator<Item = &'a RecordedCall>,
    redactor: &Redactor,
) -> Result<(), CassetteError> {
    let file = CassetteFile {
        cassette: FORM,
        calls: calls.collect(),
    };
    let mut text = serde_json::to_string_pretty(&file)
        .map_err(|error| CassetteError::unwritable(path, &error))?;
    text.push('\n');
    if redactor.finds_in(&text) {
        return Err(CassetteError::Secret(path.display().to_string()));
    }
    replace(path, &text).map_err(|error| CassetteError::unwritable(path, &error))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = beside(path);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error says what is wrong.
        let _gone = fs::remove_file(&beside);
    }
    written
}

/// A file in the same folder, which only this process uses.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}
