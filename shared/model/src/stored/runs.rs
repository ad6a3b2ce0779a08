//! Runs of chunks: events that each append one part to the same artifact.
//!
//! A streamed answer has an event for each token. Stored alone, an event repeats the id and
//! the name of its artifact, which are many times longer than a token. So the entries of a
//! log after the first chunk keep the parts alone, and a run of one commit is one entry.
//! While the artifact is in the same text, an entry only points at its parts.

use super::message::{
    StoredArtifact, StoredEvent, StoredEventContent, StoredPart, event_id, required,
};
use super::schema::corrupt;
use crate::store::StoreError;
use crate::task::{Artifact, ArtifactUpdate, Event, EventId, LoggedEvent, Part};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A batch of events in a child, with the parts that moved with them.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredBatch<'a> {
    log: Vec<StoredEvent<'a>>,
    /// The artifacts of these parts. The log refers to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    a: Vec<StoredArtifact<'a>>,
}

impl<'a> StoredBatch<'a> {
    pub(super) fn of(mut log: Vec<StoredEvent<'a>>, artifacts: Vec<StoredArtifact<'a>>) -> Self {
        refer(&mut log, &artifacts);
        Self { log, a: artifacts }
    }

    /// Its events.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(super) fn events(mut self) -> Result<Vec<LoggedEvent>, StoreError> {
        follow(&mut self.log, &self.a)?;
        events(self.log)
    }

    /// Its artifacts, each with the parts that moved.
    pub(super) fn into_artifacts(self) -> Vec<StoredArtifact<'a>> {
        self.a
    }
}

/// The entries of a log for these events, which follow each other.
pub(super) fn entries<'a>(events: impl Iterator<Item = &'a LoggedEvent>) -> Vec<StoredEvent<'a>> {
    let mut entries: Vec<StoredEvent<'a>> = Vec::new();
    // The artifact of the last entry, and the event that would go on with its run.
    let mut grows: Option<&Artifact> = None;
    let mut next: Option<(EventId, u64)> = None;
    for logged in events {
        let part = grows.and_then(|artifact| appended(&logged.event, artifact));
        let last = entries.last_mut().map(|entry| &mut entry.e);
        match (part, last) {
            (Some(part), Some(StoredEventContent::Parts(parts)))
                if next == Some((logged.id, logged.seq)) =>
            {
                parts.push(StoredPart::from(part));
            }
            (Some(part), _) => {
                let parts = StoredEventContent::Parts(vec![StoredPart::from(part)]);
                entries.push(StoredEvent::of_run(logged.id, logged.seq, parts));
            }
            (None, _) => entries.push(StoredEvent::from(logged)),
        }
        grows = match &logged.event {
            Event::Artifact(update) => Some(&update.artifact),
            Event::Status(_) => None,
        };
        next = logged.id.next().map(|id| (id, logged.seq + 1));
    }
    entries
}

/// The one part that the event appends to `artifact`; `None` for other events.
fn appended<'a>(event: &'a Event, artifact: &Artifact) -> Option<&'a Part> {
    let Event::Artifact(update) = event else {
        return None;
    };
    let [part] = update.artifact.parts.as_slice() else {
        return None;
    };
    let plain = update.append && !update.last_chunk && update.metadata.is_empty();
    (plain && update.artifact.is_chunk_of(artifact)).then_some(part)
}

/// The events of the entries of a log, which are in full form.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn events(entries: Vec<StoredEvent<'_>>) -> Result<Vec<LoggedEvent>, StoreError> {
    let mut events = Vec::with_capacity(entries.len());
    let mut grows: Option<Artifact> = None;
    for mut entry in entries {
        if let StoredEventContent::Parts(parts) = &mut entry.e {
            let parts = std::mem::take(parts);
            let artifact = grows.as_ref();
            let artifact = artifact.ok_or_else(|| corrupt("a chunk of no artifact"))?;
            expand(&entry, parts, artifact, &mut events)?;
            continue;
        }
        let logged = entry.into_logged()?;
        grows = match &logged.event {
            Event::Artifact(update) => Some(update.artifact.without_parts()),
            Event::Status(_) => None,
        };
        events.push(logged);
    }
    Ok(events)
}

/// Adds an event for each part.
fn expand(
    entry: &StoredEvent<'_>,
    parts: Vec<StoredPart<'_>>,
    artifact: &Artifact,
    events: &mut Vec<LoggedEvent>,
) -> Result<(), StoreError> {
    let mut id = Some(event_id(&entry.i)?);
    let mut seq = entry.first()?;
    for part in parts {
        let here = id.ok_or_else(|| corrupt("an event id is too large"))?;
        let mut artifact = artifact.without_parts();
        artifact.parts.push(part.into_part()?);
        events.push(LoggedEvent {
            id: here,
            seq,
            event: Event::Artifact(ArtifactUpdate {
                artifact,
                append: true,
                last_chunk: false,
                metadata: crate::task::Metadata::new(),
            }),
        });
        id = here.next();
        seq = seq.saturating_add(1);
    }
    Ok(())
}

/// Replaces artifacts of entries, and parts of runs, by their places in the artifacts of the
/// same text.
///
/// The last entries of an artifact made its last parts. So this goes backward, and ends for
/// an artifact where its content was replaced.
pub(super) fn refer<'a>(log: &mut Vec<StoredEvent<'a>>, artifacts: &[StoredArtifact<'a>]) {
    for entry in &mut *log {
        if let StoredEventContent::Artifact { a, r, .. } = &mut entry.e {
            let whole = a.as_ref();
            *r = whole.and_then(|whole| artifacts.iter().position(|it| it == whole));
            if r.is_some() {
                *a = None;
            }
        }
    }
    let found = |artifact: &StoredArtifact<'_>| artifacts.iter().position(|it| it.is_of(artifact));
    let mut grows = None;
    let of: Vec<Option<usize>> = log
        .iter()
        .map(|entry| {
            grows = match &entry.e {
                StoredEventContent::Artifact { a, r, .. } => r.or_else(|| found(a.as_ref()?)),
                StoredEventContent::Parts(_) | StoredEventContent::Chunks(..) => grows,
                StoredEventContent::Status(_) => None,
            };
            grows
        })
        .collect();
    let mut left: BTreeMap<usize, usize> = BTreeMap::new();
    for (entry, of) in log.iter_mut().zip(of).rev() {
        let Some((place, artifact)) = of.and_then(|place| Some((place, artifacts.get(place)?)))
        else {
            continue;
        };
        let left = left.entry(place).or_insert(artifact.p.len());
        let made = entry.e.parts(artifact);
        let count = made.map_or(usize::MAX, <[StoredPart<'_>]>::len);
        let first = left.checked_sub(count);
        let same = first.is_some_and(|first| artifact.p.get(first..*left) == made);
        *left = first.filter(|_| same).unwrap_or(0);
        if let Some(first) = first.filter(|_| same)
            && entry.is_run_of(artifact)
        {
            entry.e = StoredEventContent::Chunks(place, first, vec![count]);
        }
    }
    join_chunks(log);
}

/// Makes one entry of chunks that follow each other, in one commit or from one to the next.
fn join_chunks(log: &mut Vec<StoredEvent<'_>>) {
    let mut joined: Vec<StoredEvent<'_>> = Vec::with_capacity(log.len());
    // Where the last entry ends: the next id of its commit, the number of the next event, the
    // artifact and its next part.
    let mut end: Option<(EventId, u64, usize, usize)> = None;
    for mut entry in log.drain(..) {
        let StoredEventContent::Chunks(place, first, counts) = &mut entry.e else {
            end = None;
            joined.push(entry);
            continue;
        };
        let count: usize = counts.iter().sum();
        let (id, number) = (event_id(&entry.i).ok(), entry.n);
        let next = id.and_then(|id| (0..count).try_fold(id, |id, _| id.next()));
        let next = next.zip(number.and_then(|it| it.checked_add(count as u64)));
        let next = next.map(|(id, number)| (id, number, *place, *first + count));
        let begins = id.zip(number).map(|(id, n)| (id, n, *place, *first));
        let follows = |end: Option<_>| begins.is_some() && begins == end;
        let of_next_commit =
            end.and_then(|(id, n, place, part)| Some((id.next_commit()?, n, place, part)));
        match joined.last_mut().map(|last| &mut last.e) {
            Some(StoredEventContent::Chunks(_, _, before)) if follows(end) => {
                if let Some(last) = before.last_mut() {
                    *last += count;
                }
            }
            Some(StoredEventContent::Chunks(_, _, before)) if follows(of_next_commit) => {
                before.append(counts);
            }
            _ => joined.push(entry),
        }
        end = next;
    }
    *log = joined;
}

/// Restores the artifacts and parts that entries refer to.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn follow<'a>(
    log: &mut Vec<StoredEvent<'a>>,
    artifacts: &[StoredArtifact<'a>],
) -> Result<(), StoreError> {
    let mut followed = Vec::with_capacity(log.len());
    for mut entry in log.drain(..) {
        if let StoredEventContent::Artifact { a, r, .. } = &mut entry.e
            && let Some(place) = r.take()
        {
            *a = Some(required(artifacts.get(place).cloned(), "r")?);
        }
        let StoredEventContent::Chunks(place, first, counts) = &entry.e else {
            followed.push(entry);
            continue;
        };
        let missing = || corrupt("a run refers to no chunks");
        let artifact = artifacts.get(*place).ok_or_else(missing)?;
        let (mut id, mut seq, mut first) = (event_id(&entry.i)?, entry.first()?, *first);
        for count in counts {
            let upto = first.checked_add(*count).ok_or_else(missing)?;
            let parts = artifact.p.get(first..upto).ok_or_else(missing)?;
            let (one, others) = parts.split_first().ok_or_else(missing)?;
            // The first chunk names the artifact.
            let chunk = StoredEventContent::chunk(artifact.with_parts(vec![one.clone()]));
            followed.push(StoredEvent::of_run(id, seq, chunk));
            if !others.is_empty() {
                let next = id.next().ok_or_else(missing)?;
                let others = StoredEventContent::Parts(others.to_vec());
                followed.push(StoredEvent::of_run(next, seq.saturating_add(1), others));
            }
            seq = seq.saturating_add(parts.len() as u64);
            id = id.next_commit().ok_or_else(missing)?;
            first = upto;
        }
    }
    *log = followed;
    Ok(())
}

#[cfg(test)]
mod tests;
