//! The files of a request: which ones a model gets, and their bytes.
//!
//! Messages name a file by its digest. So a stored conversation does not have the bytes, and a
//! turn reads a file once, and only if it asks the model.

use a2a_lambda_model::task::{Part, PartContent};
use a2a_lambda_skill::model::{ModelFile, ModelMessage, ModelPart, ModelRequest};
use a2a_lambda_skill::{AgentError, AgentResult, FilePart, FileSource, TaskContext};
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// The most bytes of the files of a request: 4 MB.
const BYTES: u64 = 4_000_000;
/// The most pictures of a request.
const IMAGES: usize = 20;
/// The most other files of a request.
const DOCUMENTS: usize = 5;

/// How files of these types begin, without parameters of the type.
const BEGINNINGS: &[(&str, &[&[u8]])] = &[
    ("image/png", &[b"\x89PNG"]),
    ("image/jpeg", &[b"\xff\xd8\xff"]),
    ("image/gif", &[b"GIF8"]),
    ("image/webp", &[b"RIFF"]),
    ("application/pdf", &[b"%PDF"]),
];

/// The files that a request has so far.
#[derive(Default)]
pub(super) struct FileSelection {
    pub(super) files: Vec<FilePart>,
    bytes: u64,
    images: usize,
    documents: usize,
}

impl FileSelection {
    /// A part as a model gets it. A file is its label if the request does not get it.
    pub(super) fn select(&mut self, part: &Part, has_files: bool) -> ModelPart {
        match (&part.content, FilePart::of(part)) {
            (PartContent::Text(text), _) => ModelPart::Text(text.clone()),
            (_, Some(file)) if has_files => self.select_file(file),
            (_, Some(file)) => ModelPart::Text(file.label()),
            (PartContent::Data(data), _) => ModelPart::Data(data.clone()),
            _ => ModelPart::Text(String::new()),
        }
    }

    /// Adds the files that the skill names.
    pub(super) fn add(&mut self, files: &[FilePart], parts: &mut Vec<ModelPart>) {
        let parts_of_skill = files.iter().map(|file| self.select_file(file.clone()));
        parts.extend(parts_of_skill);
    }

    fn select_file(&mut self, file: FilePart) -> ModelPart {
        match self.admit(&file) {
            Ok(model_file) => {
                self.files.push(file);
                ModelPart::File(model_file)
            }
            // The trace shows the request, and so what is left out.
            Err(why) => ModelPart::Text(format!("{} is left out: {why}", file.label())),
        }
    }

    /// The file, if the limits of a request allow it; otherwise why they do not.
    fn admit(&mut self, file: &FilePart) -> Result<ModelFile, String> {
        let media_type = file.media_type.split(';').next().unwrap_or_default();
        let media_type = media_type.trim().to_lowercase();
        let model_file = match &file.source {
            FileSource::Bytes(bytes) => ModelFile {
                bytes: Bytes::new(),
                ..ModelFile::new(file.name.clone(), media_type, bytes.clone())
            },
            FileSource::Stored(blob) => ModelFile {
                name: file.name.clone(),
                media_type,
                size: blob.size,
                sha256: blob.sha256.clone(),
                bytes: Bytes::new(),
            },
            FileSource::Url(_) => return Err("it is a link".to_owned()),
        };
        let bytes = self.bytes.saturating_add(model_file.size);
        if bytes > BYTES {
            let (size, most) = (model_file.size, BYTES / 1_000_000);
            return Err(format!(
                "it has {size} bytes, and a request takes {most} MB of files in all"
            ));
        }
        let (count, most, what) = match model_file.is_image() {
            true => (&mut self.images, IMAGES, "pictures"),
            false => (&mut self.documents, DOCUMENTS, "documents"),
        };
        if *count == most {
            return Err(format!("a request takes {most} {what}"));
        }
        *count += 1;
        self.bytes = bytes;
        Ok(model_file)
    }
}

/// The bytes of the files of one run.
#[derive(Default)]
pub(super) struct FileCache {
    /// Where the bytes are.
    sources: Vec<FilePart>,
    /// What was read, by digest.
    bytes: Mutex<BTreeMap<String, Option<Bytes>>>,
}

impl FileCache {
    pub(super) fn new(sources: Vec<FilePart>) -> Self {
        Self {
            sources,
            bytes: Mutex::default(),
        }
    }

    /// Gives the files of a request their bytes. Those of a text become a text.
    ///
    /// # Errors
    /// `MODEL_INPUT` for a file that is not of its type. The errors of the store.
    pub(super) async fn attach(
        &self,
        request: &mut ModelRequest,
        cx: Option<&TaskContext<'_>>,
    ) -> AgentResult<()> {
        for message in &mut request.messages {
            let ModelMessage::User(parts) = message else {
                continue;
            };
            for part in parts {
                if let ModelPart::File(file) = part {
                    *part = match self.read(file, cx).await? {
                        Some(bytes) => with_bytes(file, bytes)?,
                        None => ModelPart::Text(format!("{} is gone", label(file))),
                    };
                }
            }
        }
        Ok(())
    }

    /// The bytes of a file; `None` if nobody has it any more.
    async fn read(
        &self,
        file: &ModelFile,
        cx: Option<&TaskContext<'_>>,
    ) -> AgentResult<Option<Bytes>> {
        let mut cache = self.bytes.lock().await;
        if let Some(bytes) = cache.get(&file.sha256) {
            return Ok(bytes.clone());
        }
        let mut source = self.sources.iter().find(|it| is_source(it, file)).cloned();
        // A worker that has asked its user has only the digests left.
        if let (None, Some(cx)) = (&source, cx) {
            let thread = cx.thread().await?;
            let mut parts = thread.iter().flat_map(|message| &message.parts);
            source = parts.find_map(|part| FilePart::of(part).filter(|it| is_source(it, file)));
        }
        let bytes = match (source, cx) {
            (Some(source), Some(cx)) => Some(cx.read_file(&source).await?),
            (
                Some(FilePart {
                    source: FileSource::Bytes(bytes),
                    ..
                }),
                None,
            ) => Some(bytes),
            _ => None,
        };
        cache.insert(file.sha256.clone(), bytes.clone());
        Ok(bytes)
    }
}

fn is_source(part: &FilePart, file: &ModelFile) -> bool {
    match &part.source {
        FileSource::Bytes(bytes) => {
            bytes.len() as u64 == file.size
                && ModelFile::new(None, "", bytes.clone()).sha256 == file.sha256
        }
        FileSource::Stored(blob) => blob.sha256 == file.sha256,
        FileSource::Url(_) => false,
    }
}

/// The file as its part of a request.
fn with_bytes(file: &ModelFile, bytes: Bytes) -> AgentResult<ModelPart> {
    let media_type = file.media_type.as_str();
    if media_type.starts_with("text/") || media_type == "application/json" {
        let text = str::from_utf8(&bytes).map_err(|_| wrong_type(file, "not UTF-8"))?;
        return Ok(ModelPart::Text(format!("{}\n{text}", label(file))));
    }
    let row = BEGINNINGS.iter().find(|(name, _)| *name == media_type);
    if row.is_some_and(|(_, all)| !all.iter().any(|it| bytes.starts_with(it))) {
        return Err(wrong_type(file, "of another type"));
    }
    Ok(ModelPart::File(ModelFile {
        bytes,
        ..file.clone()
    }))
}

fn wrong_type(file: &ModelFile, why: &str) -> AgentError {
    let label = label(file);
    AgentError::model_input(format!("{label} is {why}: send it with its own media type"))
}

fn label(file: &ModelFile) -> String {
    let part = FilePart {
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        source: FileSource::Bytes(Bytes::new()),
    };
    part.label()
}
