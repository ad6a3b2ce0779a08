//! The stored form of a task.

use super::layout::Layout;
use super::message::{
    self, StoredArtifact, StoredEvent, StoredMessage, StoredStatus, all, required,
};
use super::runs;
use super::schema::{SCHEMA, corrupt};
use super::step::StoredStep;
use super::turn::{Request, StoredUsed};
use crate::store::StoreError;
use crate::task::{
    Base, ContextId, Generation, HeldKeys, KeyHash, Metadata, NewTask, OutputCounts, Owner, PushId,
    Saved as SavedValues, SavedSlot, Sealed, SkillId, SkillRoute, StepResult, Subject, TaskId,
    TaskRecord, TenantId, Timestamp, Transition, TurnRequest, WriteId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A task with all members, or shortened with fewer members (see `short_form`).
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTask<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ctx: Option<String>,
    #[serde(rename = "gen")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) inc: Option<String>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub(super) md: Cow<'a, Metadata>,
    pub(super) at: i64,
    #[serde(default, skip_serializing_if = "StoredStatus::is_empty")]
    pub(super) st: StoredStatus<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<String>,
    /// Why it has its skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rt: Option<SkillRoute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) v: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) e: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) att: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<i64>,
    #[serde(default, skip_serializing_if = "is_none_yet")]
    dsp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) w: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tw: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) h: Vec<StoredMessage<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) a: Vec<StoredArtifact<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) log: Vec<StoredEvent<'a>>,
    pub(super) seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ev: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tr: Option<Vec<(String, i64)>>,
    /// The transitions in short form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ts: Option<String>,
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub(super) sv: Kept<'a>,
    /// Left out if the turn cannot run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    b: Option<Output>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rp: Vec<StoredArtifact<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sec: Option<String>,
    /// The keyed hash of the last sealed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rq: Option<Request>,
    /// The client of the last send reads text and no data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ta: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dat: Option<i64>,
    /// No worker begins the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nb: Option<i64>,
    #[serde(default, skip_serializing_if = "StoredUsed::is_nothing")]
    us: StoredUsed,
    /// The ids of the push configs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ls: Vec<String>,
    /// Registrations: commits that only registered a push config.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    lr: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) up: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<i64>,
    /// The idempotency keys of its sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ks: Option<Keys>,
    /// Which content is in children.
    #[serde(default, skip_serializing_if = "Layout::is_default")]
    ch: Layout,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    more: Cow<'a, Metadata>,
}

/// Hashed keys, until when they stay, and the version that prolonged them.
#[derive(Serialize, Deserialize)]
struct Keys(Vec<String>, i64, u64);

impl Keys {
    fn of(held: &HeldKeys) -> Option<Self> {
        let addresses = held.addresses.iter().map(ToString::to_string);
        let kept = Self(addresses.collect(), held.until.as_millis(), held.version);
        (!held.addresses.is_empty()).then_some(kept)
    }
}

impl From<Keys> for HeldKeys {
    fn from(Keys(addresses, until, version): Keys) -> Self {
        Self {
            addresses: addresses.into_iter().map(KeyHash::stored).collect(),
            until: Timestamp::from_millis(until),
            version,
        }
    }
}

/// What a turn starts from if it runs again.
#[derive(Serialize, Deserialize)]
struct Output {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    a: BTreeMap<String, usize>,
    h: usize,
    /// The messages when the turn began, if they were fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    t: Option<usize>,
    /// How many outputs each scope has said.
    #[serde(default, skip_serializing_if = "OutputCounts::is_empty")]
    o: OutputCounts,
    /// How many outputs each scope had said when it saved a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    s: BTreeMap<String, OutputCounts>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that `skip_serializing_if` calls"
)]
const fn is_none_yet(number: &u64) -> bool {
    *number == 0
}

impl Output {
    fn into_base(self) -> Base {
        Base {
            artifacts: self.a,
            history: self.h,
            turn_start: self.t.unwrap_or(self.h),
            outputs: self.o,
            saves: self.s,
        }
    }

    fn of(record: &TaskRecord) -> Option<Self> {
        let none = record.state().is_terminal() && record.base == Base::default();
        (!none).then(|| Self {
            a: record.base.artifacts.clone(),
            h: record.base.history,
            t: Some(record.base.turn_start).filter(|start| *start != record.base.history),
            o: record.base.outputs.clone(),
            s: record.base.saves.clone(),
        })
    }
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Kept<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    o: Option<StoredSlot<'a>>,
    #[serde(default, skip_serializing_if = "ValuesByKey::is_empty")]
    d: Cow<'a, ValuesByKey>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    s: BTreeMap<Cow<'a, str>, StoredStep<'a>>,
    /// Members that a later version of this program added.
    #[serde(flatten)]
    more: Cow<'a, Metadata>,
}

type ValuesByKey = BTreeMap<String, Value>;

#[derive(Serialize, Deserialize)]
struct StoredSlot<'a> {
    v: u32,
    x: Cow<'a, Value>,
}

impl Kept<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.o.is_none() && self.d.is_empty() && self.s.is_empty() && self.more.is_empty()
    }
}

impl<'a> From<&'a SavedValues> for Kept<'a> {
    fn from(saved: &'a SavedValues) -> Self {
        Self {
            o: saved.slot.as_ref().map(|slot| StoredSlot {
                v: slot.version,
                x: Cow::Borrowed(&slot.value),
            }),
            d: Cow::Borrowed(&saved.data),
            s: saved.steps.iter().map(step).collect(),
            more: Cow::Borrowed(&saved.unknown),
        }
    }
}

impl Kept<'_> {
    pub(super) fn into_saved(self) -> Result<SavedValues, StoreError> {
        let steps = self.s.into_iter();
        let steps = steps.map(|(path, step)| Ok((path.into_owned(), step.into_result()?)));
        Ok(SavedValues {
            slot: self.o.map(|slot| SavedSlot {
                version: slot.v,
                value: slot.x.into_owned(),
            }),
            data: self.d.into_owned(),
            steps: steps.collect::<Result<_, StoreError>>()?,
            unknown: self.more.into_owned(),
        })
    }
}

fn step<'a>((path, result): (&'a String, &'a StepResult)) -> (Cow<'a, str>, StoredStep<'a>) {
    (Cow::Borrowed(path), StoredStep::from(result))
}

pub(super) const fn generation_name(generation: Generation) -> &'static str {
    generation.as_str()
}

pub(super) fn generation(name: &str) -> Result<Generation, StoreError> {
    [Generation::V01, Generation::V03, Generation::V10]
        .into_iter()
        .find(|generation| generation_name(*generation) == name)
        .ok_or_else(|| corrupt(format_args!("unknown generation `{name}`")))
}

impl<'a> From<&'a TaskRecord> for StoredTask<'a> {
    fn from(record: &'a TaskRecord) -> Self {
        Self {
            md: Cow::Borrowed(&record.metadata),
            h: record.history.iter().map(StoredMessage::from).collect(),
            a: record.artifacts.iter().map(StoredArtifact::from).collect(),
            log: runs::entries(record.log.iter()),
            sv: Kept::from(&record.saved),
            rp: record.replaced.iter().map(StoredArtifact::from).collect(),
            sec: record.secret.as_ref().map(|it| it.as_str().to_owned()),
            ..Self::without_content(record)
        }
    }
}

impl<'a> StoredTask<'a> {
    /// The form without the content that can be in children.
    pub(super) fn without_content(record: &'a TaskRecord) -> Self {
        Self {
            schema: Some(SCHEMA),
            id: Some(record.id.to_string()),
            tenant: Some(record.owner.tenant.to_string()),
            subject: Some(record.owner.subject.to_string()),
            ctx: Some(record.context_id.to_string()),
            generation: Some(generation_name(record.generation).to_owned()),
            inc: Some(record.incarnation.to_string()),
            md: Cow::default(),
            at: record.created_at.as_millis(),
            st: StoredStatus::from(record.status()),
            skill: record.skill.as_ref().map(ToString::to_string),
            rt: record.route.clone(),
            v: Some(record.version),
            e: Some(record.epoch),
            turn: Some(record.turn),
            att: Some(record.attempt),
            lease: record.lease_until.map(Timestamp::as_millis),
            dsp: record.last_dispatch,
            w: Some(record.write_ids.iter().map(ToString::to_string).collect()),
            tw: Some(record.turn_write.to_string()),
            h: Vec::new(),
            a: Vec::new(),
            log: Vec::new(),
            seq: record.last_seq,
            ev: record.last_event.map(|id| id.to_string()),
            tr: Some(record.transitions.iter().map(moved).collect()),
            ts: None,
            sv: Kept::default(),
            b: Output::of(record),
            rp: Vec::new(),
            sec: None,
            fp: record.fingerprint.clone(),
            rq: record.request.as_ref().map(Request::from),
            ta: record.reads_text_alone,
            dat: record.dispatched_at.map(Timestamp::as_millis),
            nb: record.not_before.map(Timestamp::as_millis),
            us: StoredUsed::from(&record.used),
            ls: record.listeners.iter().map(ToString::to_string).collect(),
            lr: record.registrations,
            up: Some(record.updated_at.as_millis()),
            exp: Some(record.expires_at.as_millis()),
            ks: Keys::of(&record.keys),
            ch: Layout::from(&record.layout),
            more: Cow::Borrowed(&record.unknown),
        }
    }
}

impl StoredTask<'_> {
    pub(super) fn into_record(self) -> Result<TaskRecord, StoreError> {
        let mut record = TaskRecord::create(NewTask {
            id: TaskId::parse(required(self.id, "id")?).map_err(corrupt)?,
            owner: owner(
                required(self.tenant, "tenant")?,
                required(self.subject, "subject")?,
            )?,
            context_id: ContextId::parse(required(self.ctx, "ctx")?).map_err(corrupt)?,
            generation: generation(&required(self.generation, "gen")?)?,
            incarnation: WriteId::stored(required(self.inc, "inc")?),
            metadata: self.md.into_owned(),
            created_at: Timestamp::from_millis(self.at),
        });
        record.restore_status(self.st.into_status()?);
        let skill = self.skill.map(SkillId::parse);
        record.skill = skill.transpose().map_err(corrupt)?;
        record.route = self.rt;
        record.version = required(self.v, "v")?;
        record.epoch = required(self.e, "e")?;
        record.turn = required(self.turn, "turn")?;
        record.attempt = required(self.att, "att")?;
        record.lease_until = self.lease.map(Timestamp::from_millis);
        record.last_dispatch = self.dsp;
        record.write_ids = required(self.w, "w")?
            .into_iter()
            .map(WriteId::stored)
            .collect();
        record.turn_write = WriteId::stored(required(self.tw, "tw")?);
        record.history = all(self.h, StoredMessage::into_message)?;
        record.artifacts = all(self.a, StoredArtifact::into_artifact)?;
        record.log = runs::events(self.log)?;
        record.last_seq = self.seq;
        record.last_event = self.ev.as_deref().map(message::event_id).transpose()?;
        record.transitions = all(required(self.tr, "tr")?, transition)?;
        record.saved = self.sv.into_saved()?;
        match self.b {
            Some(output) => record.base = output.into_base(),
            None if record.state().is_terminal() => {}
            None => return Err(corrupt("no `b`")),
        }
        record.replaced = all(self.rp, StoredArtifact::into_artifact)?;
        record.secret = self.sec.map(Sealed::stored);
        record.fingerprint = self.fp;
        record.request = self.rq.map(TurnRequest::from);
        record.reads_text_alone = self.ta;
        record.dispatched_at = self.dat.map(Timestamp::from_millis);
        record.not_before = self.nb.map(Timestamp::from_millis);
        record.used = self.us.into();
        record.listeners = all(self.ls, |id| PushId::parse(id).map_err(corrupt))?;
        record.registrations = self.lr;
        record.updated_at = Timestamp::from_millis(required(self.up, "up")?);
        record.expires_at = Timestamp::from_millis(required(self.exp, "exp")?);
        record.keys = self.ks.map(HeldKeys::from).unwrap_or_default();
        record.layout = self.ch.into_layout()?;
        record.unknown = self.more.into_owned();
        Ok(record)
    }
}

fn moved(step: &Transition) -> (String, i64) {
    (step.state.as_str().to_owned(), step.at.as_millis())
}

fn transition((name, at): (String, i64)) -> Result<Transition, StoreError> {
    Ok(Transition {
        state: message::state(&name)?,
        at: Timestamp::from_millis(at),
    })
}

pub(super) fn owner(tenant: String, subject: String) -> Result<Owner, StoreError> {
    Ok(Owner {
        tenant: TenantId::parse(tenant).map_err(corrupt)?,
        subject: Subject::parse(subject).map_err(corrupt)?,
    })
}
