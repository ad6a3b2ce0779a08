//! Ends the artifacts that a skill wrote in chunks.

use super::WriteBuffer;
use crate::task::{
    Artifact, ArtifactUpdate, Change, Event, LoggedEvent, Metadata, Part, metadata_keys,
};
use a2a_lambda_skill::{Artifact as SkillArtifact, SkillOutcome};

/// An artifact that the turn has written in chunks.
struct ChunkSeries {
    artifact: Artifact,
    is_ended: bool,
}

impl WriteBuffer<'_> {
    /// Ends each artifact whose chunks have no end. A result that the chunks have shown
    /// already is not shown again.
    pub(in crate::engine) fn end_chunks(&mut self, outcome: &mut SkillOutcome) {
        for ChunkSeries { artifact, is_ended } in self.chunk_series() {
            let name = artifact.name.clone().unwrap_or_default();
            let mut is_replaced = false;
            if let SkillOutcome::Completed { artifacts, .. } = outcome {
                artifacts.retain(|output| !(output.name == name && is_shown(output, &artifact)));
                is_replaced = artifacts.iter().any(|output| output.name == name);
            }
            if is_ended || is_replaced {
                continue;
            }
            self.push(Change::Artifact(ArtifactUpdate {
                artifact: Artifact {
                    parts: vec![Part::text("")],
                    ..artifact.without_parts()
                },
                append: true,
                last_chunk: true,
                metadata: Metadata::new(),
            }));
        }
    }

    /// The artifacts that the turn has written in chunks, those that are not stored yet among
    /// them.
    fn chunk_series(&self) -> Vec<ChunkSeries> {
        let turn = Some(self.turn());
        let artifacts = self.record.artifacts.iter();
        let mut all: Vec<ChunkSeries> = artifacts
            .filter(|artifact| artifact.chunks_of == turn)
            .map(|artifact| ChunkSeries {
                artifact: artifact.clone(),
                is_ended: self.has_stored_end(&artifact.id),
            })
            .collect();
        for change in &self.pending {
            let Change::Artifact(update) = change else {
                continue;
            };
            let of_update = |series: &ChunkSeries| series.artifact.id == update.artifact.id;
            let series = all.iter_mut().find(|series| of_update(series));
            match series.filter(|_| update.append) {
                Some(series) => {
                    let parts = update.artifact.parts.iter().cloned();
                    series.artifact.parts.extend(parts);
                    series.is_ended = update.last_chunk;
                }
                None => {
                    all.retain(|series| !of_update(series));
                    if update.artifact.chunks_of == turn {
                        all.push(ChunkSeries {
                            artifact: update.artifact.clone(),
                            is_ended: update.last_chunk,
                        });
                    }
                }
            }
        }
        all
    }

    /// Whether the newest stored chunk of an artifact is its last. An artifact whose chunks are
    /// not in the log counts as ended.
    fn has_stored_end(&self, id: &str) -> bool {
        let is_restart = |entry: &&LoggedEvent| match &entry.event {
            Event::Status(update) => update.metadata.contains_key(metadata_keys::RESTARTED),
            Event::Artifact(_) => false,
        };
        // What an abandoned run ended is open again.
        let events = self.record.log.iter().rev();
        let events = events.take_while(|entry| !is_restart(entry));
        let mut updates = events.filter_map(|entry| match &entry.event {
            Event::Artifact(update) if update.artifact.id == id => Some(update.last_chunk),
            _ => None,
        });
        updates.next().unwrap_or(true)
    }
}

/// Whether the chunks have shown all of `made`.
fn is_shown(output: &SkillArtifact, chunks: &Artifact) -> bool {
    let mut text = chunks.clone();
    text.join_chunks();
    let is_plain = output.source().is_none() && output.description.is_none();
    let is_same = |(new, part): (&Part, &Part)| {
        let has_type =
            new.media_type.is_none() || new.effective_media_type() == part.effective_media_type();
        has_type
            && new.content == part.content
            && new.filename == part.filename
            && new.metadata == part.metadata
    };
    is_plain
        && output.parts.len() == text.parts.len()
        && output.parts.iter().zip(&text.parts).all(is_same)
}
