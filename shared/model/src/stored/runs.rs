//! Runs of chunks: events that each append one part to the same artifact.
//!
//! A streamed answer has an event for each token. Stored alone, an event repeats the id and
//! the name of its artifact, which are many times longer than a token. So the entries of a
//! log after the first chunk keep the parts alone, and a run of one commit is one entry.
//! While the artifact is in the same text, an entry only points at its parts.

use super::message::{StoredArtifact, StoredEvent, StoredEventContent, StoredPart, event_id};
use super::schema::corrupt;
use crate::store::StoreError;
use crate::task::{Artifact, ArtifactUpdate, Event, EventId, LoggedEvent, Part};
use std::collections::BTreeMap;

/// The entries of a log for these events, which follow each other.
pub(super) fn entries<'a>(events: impl Iterator<Item = &'a LoggedEvent>) -> Vec<StoredEvent> {
    let mut entries: Vec<StoredEvent> = Vec::new();
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
pub(super) fn events(entries: Vec<StoredEvent>) -> Result<Vec<LoggedEvent>, StoreError> {
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
    entry: &StoredEvent,
    parts: Vec<StoredPart>,
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

/// Replaces the parts of entries by their places in the artifacts of the same text.
///
/// The last entries of an artifact made its last parts. So this goes backward, and ends for
/// an artifact where its content was replaced.
pub(super) fn refer(log: &mut Vec<StoredEvent>, artifacts: &[StoredArtifact]) {
    let found = |artifact: &StoredArtifact| artifacts.iter().position(|it| it.is_of(artifact));
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
        let count = made.map_or(usize::MAX, <[StoredPart]>::len);
        let first = left.checked_sub(count);
        let same = first.is_some_and(|first| artifact.p.get(first..*left) == made);
        *left = first.filter(|_| same).unwrap_or(0);
        if let Some(first) = first.filter(|_| same)
            && entry.is_run_of(artifact)
        {
            entry.e = StoredEventContent::Chunks(place, first, vec![count]);
        }
    }
    join_commits(log);
}

/// Makes one entry of the chunks of commits that follow each other.
fn join_commits(log: &mut Vec<StoredEvent>) {
    let mut joined: Vec<StoredEvent> = Vec::with_capacity(log.len());
    // What the next chunks must begin with: the id and the number of the event, its artifact
    // and its part.
    let mut next = None;
    for mut entry in log.drain(..) {
        let StoredEventContent::Chunks(place, first, counts) = &mut entry.e else {
            next = None;
            joined.push(entry);
            continue;
        };
        let count: usize = counts.iter().sum();
        let id = event_id(&entry.i).ok();
        let begins = (id, entry.n, *place, *first);
        let after = (
            id.and_then(EventId::next_commit),
            entry.n.map(|n| n.saturating_add(count as u64)),
            *place,
            *first + count,
        );
        match joined.last_mut().map(|last| &mut last.e) {
            Some(StoredEventContent::Chunks(_, _, before)) if next == Some(begins) => {
                before.append(counts);
            }
            _ => joined.push(entry),
        }
        next = Some(after);
    }
    *log = joined;
}

/// Restores the parts that entries refer to.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn follow(
    log: &mut Vec<StoredEvent>,
    artifacts: &[StoredArtifact],
) -> Result<(), StoreError> {
    let mut followed = Vec::with_capacity(log.len());
    for entry in log.drain(..) {
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
            let chunk = StoredEventContent::chunk(artifact.with_part(one.clone()));
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
