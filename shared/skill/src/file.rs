//! The sources and readers of files.

use super::{AgentError, AgentResult};
use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncRead;

/// The content of a file: bytes in memory, or a reader.
///
/// Everything that converts to bytes converts to a `FileContent`, and so does a
/// [`FileReader`].
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A reader that gives the bytes.
    Reader(FileReader),
}

/// A file that is read while it is stored, a few megabytes at a time. Its length does not
/// count against the memory of the agent.
///
/// ```
/// use a2a_lambda::skill::{Artifact, FileReader};
///
/// let rows = std::io::Cursor::new("a,b\n1,2\n");
/// let artifact = Artifact::from_file("rows.csv", "text/csv", FileReader::new(rows));
/// assert_eq!(artifact.name, "rows.csv");
/// ```
///
/// Clones share one reader, which can be read once.
#[derive(Clone)]
pub struct FileReader(Arc<Mutex<Option<OpenFile>>>);

impl FileReader {
    /// Creates a file from everything `reader` gives until its end.
    pub fn new(reader: impl AsyncRead + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(reader)))))
    }

    /// Takes the reader out, since it can be read once.
    ///
    /// # Errors
    /// When the reader was already taken, by a skill that delivers it in two artifacts.
    pub fn take(&self) -> AgentResult<OpenFile> {
        let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reading.take().ok_or_else(|| {
            let cause =
                "a file reader was delivered twice, expected a new reader for each artifact";
            AgentError::internal(cause)
        })
    }
}

/// A file of the caller that is read in pieces: see
/// [`TaskContext::open_file`](super::TaskContext::open_file). A [`FileReader`] can read it,
/// to deliver it as an artifact:
///
/// ```
/// use a2a_lambda::skill::{AgentResult, Artifact, FilePart, FileReader, TaskContext};
///
/// async fn back(cx: &TaskContext<'_>, file: &FilePart) -> AgentResult<Artifact> {
///     let bytes = FileReader::new(cx.open_file(file).await?);
///     Ok(Artifact::from_file("back.bin", &file.media_type, bytes))
/// }
/// ```
pub type OpenFile = Pin<Box<dyn AsyncRead + Send>>;

impl PartialEq for FileReader {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader").finish_non_exhaustive()
    }
}

impl From<FileReader> for FileContent {
    fn from(reader: FileReader) -> Self {
        Self::Reader(reader)
    }
}

impl<B: Into<Bytes>> From<B> for FileContent {
    fn from(bytes: B) -> Self {
        Self::Bytes(bytes.into())
    }
}
