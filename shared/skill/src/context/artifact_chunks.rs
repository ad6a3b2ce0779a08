//! Writes an artifact in chunks while the turn runs.

use crate::turn_host::{ChunkWriter, Emission, TurnHost};
use crate::{AgentResult, Artifact};
use a2a_lambda_model::task::Part;
use futures::{Stream, StreamExt as _};
use std::fmt;

/// Writes one artifact in chunks. Each chunk is sent to the client without waiting for the
/// next.
#[must_use = "an artifact is complete only after `finish`"]
pub struct ArtifactChunks<'a> {
    host: &'a dyn TurnHost,
    name: String,
    media_type: Option<String>,
    has_begun: bool,
    writer: ChunkWriter,
}

impl<'a> ArtifactChunks<'a> {
    pub(super) fn new(host: &'a dyn TurnHost, name: String) -> Self {
        Self {
            host,
            name,
            media_type: None,
            has_begun: false,
            writer: ChunkWriter::default(),
        }
    }

    /// Sets the media type of the texts, such as `text/csv`. Default: `text/plain`.
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// The writer of a model's text, which another answer of the model may replace.
    pub const fn of_model(mut self) -> Self {
        self.writer.is_of_model = true;
        self
    }

    fn text(&self, text: impl Into<String>) -> Part {
        Part {
            media_type: self.media_type.clone(),
            ..Part::text(text)
        }
    }

    /// Adds a chunk of text. The first chunk replaces an earlier artifact of the same name.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn push(&mut self, text: impl Into<String>) -> AgentResult<()> {
        self.emit(self.text(text), false).await
    }

    /// Adds a chunk of any kind. The first chunk replaces an earlier artifact of the same
    /// name.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn push_part(&mut self, part: Part) -> AgentResult<()> {
        self.emit(part, false).await
    }

    /// Adds each text of a stream as a chunk, such as the tokens of a model, and ends the
    /// artifact. Returns the whole text.
    ///
    /// ```
    /// use a2a_lambda::prelude::*;
    /// use futures::stream;
    ///
    /// /// Counts.
    /// #[skill(id = "count", tags = ["example"])]
    /// async fn count(cx: &mut TaskContext<'_>, _: String) -> AgentResult<()> {
    ///     let words = stream::iter(["one ", "two ", "three"]).map(AgentResult::Ok);
    ///     cx.artifact_chunks("numbers").push_all(words).await?;
    ///     Ok(())
    /// }
    /// # use futures::StreamExt as _;
    /// ```
    ///
    /// # Errors
    /// The first error of the stream: the artifact then keeps the chunks before it. When an
    /// earlier emission could not be stored, or the task was canceled.
    pub async fn push_all<T: Into<String>>(
        mut self,
        texts: impl Stream<Item = AgentResult<T>>,
    ) -> AgentResult<String> {
        let mut texts = std::pin::pin!(texts);
        let mut full_text = String::new();
        while let Some(text) = texts.next().await {
            let text = text?.into();
            full_text.push_str(&text);
            self.push(text).await?;
        }
        self.finish().await?;
        Ok(full_text)
    }

    /// Ends the artifact with an empty text part, since a chunk must have a part.
    /// [`ArtifactChunks::finish_with`] avoids the empty part.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn finish(mut self) -> AgentResult<()> {
        self.emit(self.text(""), true).await
    }

    /// Ends the artifact with a last chunk of text.
    ///
    /// # Errors
    /// When an earlier emission could not be stored, or the task was canceled.
    pub async fn finish_with(mut self, text: impl Into<String>) -> AgentResult<()> {
        self.emit(self.text(text), true).await
    }

    async fn emit(&mut self, part: Part, last_chunk: bool) -> AgentResult<()> {
        let emission = Emission::Artifact {
            artifact: Artifact::from_parts(self.name.clone(), vec![part]),
            // The first chunk replaces an earlier artifact; later chunks append.
            append: std::mem::replace(&mut self.has_begun, true),
            last_chunk,
            writer: Some(self.writer.clone()),
        };
        self.host.emit(emission).await
    }
}

impl fmt::Debug for ArtifactChunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArtifactChunks")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
