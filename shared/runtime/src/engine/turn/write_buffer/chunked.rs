//! Ends the artifacts that a skill wrote in chunks.

use super::WriteBuffer;
use crate::skill::{Artifact as Made, SkillOutcome};
use crate::task::{Artifact, Change, Event, Part};

/// An artifact that the turn has written in chunks.
struct Chunked {
    artifact: Artifact,
    is_ended: bool,
}

impl WriteBuffer<'_> {
    /// Ends each artifact whose chunks have no end. A result that the chunks have shown
    /// already is not shown again.
    pub(in crate::engine) fn end_chunks(&mut self, outcome: &mut SkillOutcome) {
        for Chunked { artifact, is_ended } in self.chunked() {
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
    fn chunked(&self) -> Vec<Chunked> {
        let turn = Some(self.turn());
        let stored = self.record.artifacts().iter();
        let mut all: Vec<Chunked> = stored
            .filter(|artifact| artifact.chunks_of == turn)
            .map(|artifact| Chunked {
                artifact: artifact.clone(),
                is_ended: self.has_stored_end(&artifact.id),
            })
            .collect();
        for change in &self.pending {
            let Change::Artifact(update) = change else {
                continue;
            };
            let of_update = |known: &Chunked| known.artifact.id == update.artifact.id;
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
                        all.push(Chunked {
                            artifact: update.artifact.clone(),
                            is_ended: update.last_chunk,
                        });
                    }
                }
            }
        }
        all
    }

    /// Whether the newest stored chunk of an artifact is its last. Of a chunk that left the log
    /// the end has left it too.
    fn has_stored_end(&self, id: &str) -> bool {
        let events = self.record.log().iter().rev();
        let mut updates = events.filter_map(|logged| match &logged.event {
            Event::Artifact(update) if update.artifact.id == id => Some(update.last_chunk),
            _ => None,
        });
        updates.next().unwrap_or(true)
    }
}

/// Whether the chunks have shown the whole content of `made`.
fn is_shown(made: &Made, chunks: &Artifact) -> bool {
    let mut whole = chunks.clone();
    whole.join_chunks();
    let contents = |parts: &[Part]| {
        parts
            .iter()
            .map(|it| it.content.clone())
            .collect::<Vec<_>>()
    };
    made.source().is_none() && contents(&made.parts) == contents(&whole.parts)
}
