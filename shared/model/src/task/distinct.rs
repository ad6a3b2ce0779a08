//! Values of which no two are equal, for the tests of stored forms: a form that swaps two
//! members does not read back.
//!
//! A new member of a type is one more name in its line below.

use super::{
    Artifact, ArtifactUpdate, Base, Blob, Consents, Delivery, Event, EventId, EventMark,
    Generation, InputWriter, Layout, LoggedEvent, Message, MovedContent, MovedParts, MovedValues,
    Owner, Part, PartContent, PushLease, PushRecord, PushRegistration, Role, SavePlace, Saved,
    SavedSlot, Sealed, SkillRoute, Status, StatusUpdate, StepError, StepOutcome, StepResult,
    StepTries, StoredValue, TaskContent, TaskFields, TaskRecord, TaskState, ThreadOperation,
    Timestamp, TokenUse, Transition, TurnRequest, Used,
};
use crate::store::queue::{PushItem, WorkItem};
use crate::store::{ThreadRecord, ThreadState, ThreadStatus};
use bytes::Bytes;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Makes the values. Two of a type from the same maker differ; of an enumeration those that
/// follow each other do.
#[derive(Debug, Default)]
pub struct Values {
    numbers: u32,
    choices: usize,
}

impl Values {
    /// The next value.
    pub fn make<T: Distinct>(&mut self) -> T {
        T::distinct(self)
    }

    /// A value, and none before it.
    pub fn first<T: Distinct>() -> T {
        Self::default().make()
    }

    /// The next number. It is above those that records have by default.
    const fn number(&mut self) -> u32 {
        self.numbers += 1;
        1000 + self.numbers
    }

    const fn choice(&mut self, of: usize) -> usize {
        self.choices += 1;
        // Mixed, so that no member of a value always makes the same choice.
        let hash = (self.choices ^ (self.choices >> 3)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 31) % of
    }
}

/// What [`Values`] can make.
pub trait Distinct {
    /// A value that differs from all others of `values`.
    fn distinct(values: &mut Values) -> Self;
}

macro_rules! simple {
    ($($name:ty: $values:ident => $value:expr;)*) => {
        $(impl Distinct for $name {
            fn distinct($values: &mut Values) -> Self {
                $value
            }
        })*
    };
}

macro_rules! members {
    ($($name:ident { $($member:ident),* $(,)? })*) => {
        $(impl Distinct for $name {
            fn distinct(values: &mut Values) -> Self {
                Self { $($member: values.make()),* }
            }
        })*
    };
}

simple! {
    u32: values => values.number();
    u64: values => u64::from(values.number());
    usize: values => values.number().try_into().unwrap_or_default();
    bool: values => values.choice(2) == 0;
    String: values => format!("text-{}", values.number());
    Bytes: values => values.make::<String>().into();
    Value: values => Value::String(values.make());
    // Whole seconds, since some are stored as the time of DynamoDB's TTL.
    Timestamp: values => Timestamp::from_millis(4_000_000_000_000 + 1000 * i64::from(values.number()));
    Duration: values => Duration::from_millis(values.make());
    Sealed: values => Self::from_text(values.make::<String>());
    EventMark: values => Self::of(&values.make());
    Generation: values => match values.choice(3) {
        0 => Self::V01,
        1 => Self::V03,
        _ => Self::V10,
    };
    Role: values => match values.choice(2) {
        0 => Self::User,
        _ => Self::Agent,
    };
    TaskState: values => {
        let place = values.choice(Self::ALL.len());
        Self::ALL.into_iter().nth(place).unwrap_or(Self::Working)
    };
    StoredValue: values => {
        let place = values.choice(Self::ALL.len());
        Self::ALL.into_iter().nth(place).unwrap_or(Self::Saved)
    };
    InputWriter: values => match values.choice(2) {
        0 => Self::Model,
        _ => Self::Caller,
    };
    ThreadStatus: values => match values.choice(2) {
        0 => Self::Active,
        _ => Self::Cleared,
    };
    ThreadOperation: values => match values.choice(3) {
        0 => Self::Append(values.make()),
        1 => Self::Set { id: values.make(), key: values.make(), value: values.make() },
        _ => Self::Applied {
                key: values.make(),
                outside: values.make(),
            },
    };
    StepOutcome: values => match values.choice(5) {
        0 => Self::Value(values.make()),
        1 => Self::Error(values.make()),
        2 => Self::Abandoned,
        3 => Self::Waited,
        _ => Self::Saved,
    };
    PartContent: values => match values.choice(5) {
        0 => Self::Text(values.make()),
        1 => Self::Raw(values.make()),
        2 => Self::Url(values.make()),
        3 => Self::Data(values.make()),
        _ => Self::Stored(values.make()),
    };
    Event: values => match values.choice(2) {
        0 => Self::Status(values.make()),
        _ => Self::Artifact(values.make()),
    };
    TaskRecord: values => Self::of(TaskFields {
        // Says how it was read, and is not stored.
        is_partial: false,
        ..values.make()
    });
}

members! {
    Owner { tenant, subject }
    Blob { key, size, sha256, upload }
    Part { content, filename, media_type, metadata }
    Message { id, role, parts, context_id, task_id, reference_task_ids, extensions, metadata }
    Artifact { id, name, description, parts, extensions, metadata, chunks_of }
    Status { state, message, timestamp }
    StatusUpdate { status, metadata }
    ArtifactUpdate { artifact, append, last_chunk, metadata }
    EventId { version, n, mark }
    LoggedEvent { id, seq, event }
    Transition { state, at }
    SavedSlot { version, value }
    Saved { slot, data, steps, unknown }
    Base { artifacts, history, turn_start, outputs, saves, reads, tries, build, began_at }
    SavePlace { scope, counts, steps, outputs, events, operations, reads, at }
    StepTries { count, due }
    StepError { code, text, details }
    StepResult { outcome, ordinal, number, ended_at, input_hash, circumstances_hash, is_beside_branch, operations }
    TurnRequest { tier, scopes, accepted_output_modes, trace_parent, consent }
    SkillRoute { how, input, writer }
    Consents { count, digest }
    TokenUse { calls, input, output, cached }
    Used { hand_overs, progress_at, deaths, models, is_partial }
    MovedParts { parts, replaced }
    MovedContent { version, last_event, messages, artifacts, replaced, bytes }
    MovedValues { version, sha256, values, bytes }
    Layout { children, status, state }
    TaskFields {
        id, owner, context_id, incarnation, version, epoch, turn, lease_until, not_before, push_ids,
        content, is_partial,
    }
    TaskContent {
        generation, created_at, metadata, status, skill, route, consents, attempt, last_dispatch,
        dispatched_at, write_ids, turn_write, history, artifacts, log, last_seq, last_event,
        transitions, saved, base, replaced, secret, fingerprint, request, reads_text_alone, used,
        registrations, updated_at, expires_at, kept_until, keys, layout, unknown,
    }
    ThreadState { events, session, unknown }
    ThreadRecord {
        owner, context_id, version, status, created_at, updated_at, expires_at,
        state_expires_at, kept_until, state_version, state, unknown,
    }
    PushRegistration { id, generation, url, schemes, token, signs, credentials, trace_parent }
    PushLease { holder, until }
    Delivery { cursor, attempts, retry_at, took, lease }
    PushRecord { owner, task, incarnation, registration, created_at, delivery }
    WorkItem { owner, task, incarnation, turn, dispatch }
    PushItem { owner, task, incarnation, config }
}

impl<T: Distinct> Distinct for Option<T> {
    fn distinct(values: &mut Values) -> Self {
        Some(values.make())
    }
}

impl<A: Distinct, B: Distinct> Distinct for (A, B) {
    fn distinct(values: &mut Values) -> Self {
        (values.make(), values.make())
    }
}

impl<T: Distinct> Distinct for Vec<T> {
    fn distinct(values: &mut Values) -> Self {
        vec![values.make(), values.make()]
    }
}

impl<T: Distinct + Ord> Distinct for BTreeSet<T> {
    fn distinct(values: &mut Values) -> Self {
        values.make::<Vec<T>>().into_iter().collect()
    }
}

impl<K: Distinct + Ord, V: Distinct> Distinct for BTreeMap<K, V> {
    fn distinct(values: &mut Values) -> Self {
        [(); 2].map(|()| (values.make(), values.make())).into()
    }
}

impl Distinct for Map<String, Value> {
    fn distinct(values: &mut Values) -> Self {
        values.make::<BTreeMap<_, _>>().into_iter().collect()
    }
}

/// A text of this many hexadecimal digits that nothing repeats, so that compression at most
/// halves it.
#[must_use]
pub fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let digit = |_| {
        // The generator xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from_digit((state >> 60) as u32, 16).unwrap_or('0')
    };
    (0..length).map(digit).collect()
}
