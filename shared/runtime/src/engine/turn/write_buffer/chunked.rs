//! Ends the artifacts that a skill wrote in chunks.

use super::WriteBuffer;
use crate::skill::{Artifact as Made, SkillOutcome};
use crate::task::{Artifact, Change, Event, LoggedEvent, Part, metadata_keys};

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
                artifacts.retain(|made| !(made.name == name && is_shown(made, &artifact)));
                is_replaced = artifacts.iter().any(|made| made.name == name);
            }
            if is_ended || is_replaced {
                continue;
            }
            let end = Made::from_parts(name, vec![Part::text("")]);
            let mut end = self.update(end, true, true);
            end.artifact = Artifact {
                parts: end.artifact.parts,
                ..artifact.without_parts()
            };
            self.push(Change::Artifact(end));
        }
    }

    /// The artifacts that the turn has written in chunks, those that are not stored yet among
    /// them.
    fn chunk_series(&self) -> Vec<ChunkSeries> {
        let turn = Some(self.turn());
        let stored = self.record.artifacts().iter();
        let mut all: Vec<ChunkSeries> = stored
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
            let of_update = |known: &ChunkSeries| known.artifact.id == update.artifact.id;
            let known = all.iter_mut().find(|known| of_update(known));
            match known.filter(|_| update.append) {
                Some(known) => {
                    let parts = update.artifact.parts.iter().cloned();
                    known.artifact.parts.extend(parts);
                    known.is_ended = update.last_chunk;
                }
                None => {
                    all.retain(|known| !of_update(known));
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
        let is_restart = |logged: &&LoggedEvent| match &logged.event {
            Event::Status(update) => update.metadata.contains_key(metadata_keys::RESTARTED),
            Event::Artifact(_) => false,
        };
        // What an abandoned run ended is open again.
        let events = self.record.log().iter().rev();
        let events = events.take_while(|logged| !is_restart(logged));
        let mut updates = events.filter_map(|logged| match &logged.event {
            Event::Artifact(update) if update.artifact.id == id => Some(update.last_chunk),
            _ => None,
        });
        updates.next().unwrap_or(true)
    }
}

/// Whether the chunks have shown all of `made`.
fn is_shown(made: &Made, chunks: &Artifact) -> bool {
    let mut text = chunks.clone();
    text.join_chunks();
    let is_plain = made.source().is_none() && made.description.is_none();
    let is_same = |(made, part): (&Part, &Part)| {
        let has_type =
            made.media_type.is_none() || made.effective_media_type() == part.effective_media_type();
        has_type
            && made.content == part.content
            && made.filename == part.filename
            && made.metadata == part.metadata
    };
    is_plain
        && made.parts.len() == text.parts.len()
        && made.parts.iter().zip(&text.parts).all(is_same)
}
