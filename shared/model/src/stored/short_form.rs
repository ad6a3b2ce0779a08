//! The short form of a task leaves out what the rest implies.
//!
//! A finished task of a few sentences shall fit into one DynamoDB write unit (1 KB),
//! with its keys and attributes. Without the short form most of its bytes would be
//! repeated ids and times. The result is still plain JSON; `docs/decisions/0004`
//! describes how to read it.

use super::message::{StoredEvent, StoredEventContent, StoredMessage, StoredStatus, required};
use super::runs;
use super::schema::corrupt;
use super::task::{StoredTask, generation_name};
use crate::store::StoreError;
use crate::task::{Generation, TaskState, WriteId};
use std::borrow::Cow;

/// The attributes of a task's item that are not repeated in its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemAttributes {
    /// The version of the stored form.
    pub schema: Option<u32>,
    /// The id of the task.
    pub id: Option<String>,
    /// The tenant of its owner.
    pub tenant: Option<String>,
    /// The subject of its owner.
    pub subject: Option<String>,
    /// The id of its context.
    pub context: Option<String>,
    /// The id of its creating write.
    pub incarnation: Option<String>,
    /// The name of its state.
    pub state: Option<String>,
    /// Its version.
    pub version: Option<u64>,
    /// Its epoch.
    pub epoch: Option<u64>,
    /// The number of its turn.
    pub turn: Option<u32>,
    /// In milliseconds; only while the task is at rest.
    pub expires_at: Option<i64>,
}

/// The letter of a state in the list of transitions.
const fn letter(state: TaskState) -> char {
    match state {
        TaskState::Submitted => 's',
        TaskState::Working => 'w',
        TaskState::InputRequired => 'i',
        TaskState::AuthRequired => 'u',
        TaskState::Completed => 'c',
        TaskState::Failed => 'f',
        TaskState::Canceled => 'x',
        TaskState::Rejected => 'r',
    }
}

fn letter_of(name: &str) -> Option<char> {
    TaskState::parse(name).map(letter)
}

fn name_of(text: &str) -> Result<String, StoreError> {
    let states = TaskState::ALL.into_iter();
    let mut named = states.filter(|state| text.chars().eq([letter(*state)]));
    let state = named.next();
    let state = state.ok_or_else(|| corrupt(format_args!("unknown state `{text}`")))?;
    Ok(state.as_str().to_owned())
}

/// Removes a member that has its default value.
fn leave_out<T: PartialEq>(member: &mut Option<T>, usual: &T) {
    if member.as_ref() == Some(usual) {
        *member = None;
    }
}

impl<'a> StoredTask<'a> {
    /// Leaves out what the rest of the form implies.
    pub(super) fn compact(&mut self) {
        self.refer();
        let (context, task) = (self.ctx.clone(), self.id.clone());
        for message in self.messages() {
            leave_own(&mut message.c, context.as_deref());
            leave_own(&mut message.t, task.as_deref());
        }
        self.compact_log();
        self.compact_times();
        leave_out(
            &mut self.generation,
            &generation_name(Generation::V10).to_owned(),
        );
        self.compact_writes();
        let first = self.only_commit(self.v);
        self.ev = Some(self.ev.take().unwrap_or_default());
        leave_out(&mut self.ev, &first);
        leave_out(&mut self.v, &1);
        leave_out(&mut self.e, &0);
        leave_out(&mut self.turn, &1);
        leave_out(&mut self.att, &1);
    }

    /// Leaves out what the attributes of the item contain.
    pub(super) fn leave_beside(&mut self, at_rest: bool) {
        self.schema = None;
        self.id = None;
        self.tenant = None;
        self.subject = None;
        self.ctx = None;
        self.inc = None;
        self.v = None;
        self.e = None;
        self.turn = None;
        self.st.s = None;
        self.lease = None;
        if at_rest {
            self.exp = None;
        }
    }

    /// Restores what was left out.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a required member is missing or malformed.
    pub(super) fn expand(&mut self, beside: &ItemAttributes) -> Result<(), StoreError> {
        let or = |member: &mut Option<String>, beside: &Option<String>| {
            *member = member.take().or_else(|| beside.clone());
        };
        or(&mut self.id, &beside.id);
        or(&mut self.tenant, &beside.tenant);
        or(&mut self.subject, &beside.subject);
        or(&mut self.ctx, &beside.context);
        or(&mut self.inc, &beside.incarnation);
        if self.st.s.is_none() {
            self.st.s = beside.state.clone().map(Cow::Owned);
        }
        let incarnation = required(self.inc.clone(), "inc")?;
        self.v = self.v.or(beside.version).or(Some(1));
        self.e = self.e.or(beside.epoch).or(Some(0));
        self.turn = self.turn.or(beside.turn).or(Some(1));
        self.att = self.att.or(Some(1));
        let first = self.only_commit(self.v);
        self.ev = Some(self.ev.take().unwrap_or(first)).filter(|id| !id.is_empty());
        self.expand_writes(incarnation)?;
        self.generation
            .get_or_insert_with(|| generation_name(Generation::V10).to_owned());
        self.expand_times(beside.expires_at)?;
        self.expand_log()?;
        let (context, task) = (
            required(self.ctx.clone(), "ctx")?,
            required(self.id.clone(), "id")?,
        );
        for message in self.messages() {
            take_own(&mut message.c, &context);
            take_own(&mut message.t, &task);
        }
        self.follow()
    }

    /// The id of the last event, if the task was finished in one commit.
    fn only_commit(&self, version: Option<u64>) -> String {
        format!("{}.{}", version.unwrap_or(1), self.seq)
    }

    fn messages(&mut self) -> impl Iterator<Item = &mut StoredMessage<'a>> {
        let logged = self
            .log
            .iter_mut()
            .filter_map(|logged| match &mut logged.e {
                StoredEventContent::Status(status) => status.m.as_mut(),
                _ => None,
            });
        let said = self.h.iter_mut().chain(&mut self.st.m);
        said.chain(logged)
    }

    /// Replaces messages and artifacts in the log that the text already contains by
    /// their index.
    fn refer(&mut self) {
        let said: Vec<&StoredMessage<'_>> = self.h.iter().chain(&self.st.m).collect();
        for logged in &mut self.log {
            if let StoredEventContent::Status(status) = &mut logged.e {
                let same =
                    |message: &StoredMessage<'_>| said.iter().rposition(|it| **it == *message);
                status.r = status.m.as_ref().and_then(same);
                if status.r.is_some() {
                    status.m = None;
                }
            }
        }
        runs::refer(&mut self.log, &self.a);
    }

    /// Restores the messages and artifacts that the log refers to.
    fn follow(&mut self) -> Result<(), StoreError> {
        for logged in &mut self.log {
            if let StoredEventContent::Status(status) = &mut logged.e
                && let Some(place) = status.r.take()
            {
                let now = self.st.m.as_ref().filter(|_| place == self.h.len());
                let message = self.h.get(place).or(now).cloned();
                status.m = Some(required(message, "r")?);
            }
        }
        runs::follow(&mut self.log, &self.a)
    }

    /// Leaves out the creating write, which is the incarnation. The write that opened
    /// the turn is mostly among the last ones; its index replaces it. Writes that a turn
    /// numbers one after the other are the first, and how many follow it.
    fn compact_writes(&mut self) {
        let Some(first) = &self.inc else { return };
        leave_out(&mut self.tw, first);
        let Some(writes) = &mut self.w else { return };
        if let Some(opened) = &mut self.tw
            && let Some(place) = writes.iter().position(|write| write == opened)
        {
            *opened = format!("#{place}");
        }
        for write in writes.iter_mut().filter(|write| *write == first) {
            write.clear();
        }
        join_writes(writes);
        leave_out(&mut self.w, &vec![String::new()]);
    }

    fn expand_writes(&mut self, first: String) -> Result<(), StoreError> {
        let writes = self.w.get_or_insert_with(|| vec![String::new()]);
        for write in writes.iter_mut().filter(|write| write.is_empty()) {
            write.clone_from(&first);
        }
        split_writes(writes)?;
        let opened = self.tw.get_or_insert(first);
        if let Some(place) = opened.strip_prefix('#') {
            let place: usize = place.parse().map_err(corrupt)?;
            *opened = required(writes.get(place).cloned(), "tw")?;
        }
        Ok(())
    }

    fn compact_log(&mut self) {
        let at = self.at;
        let mut number = self.seq.checked_add(1);
        for logged in self.log.iter_mut().rev() {
            number = first_number(number, logged);
            if number == logged.n {
                logged.n = None;
            }
            if let Some(status) = status_of(logged) {
                let short = status.s.as_deref().and_then(letter_of);
                status.s = short
                    .map(|it| String::from(it).into())
                    .or_else(|| status.s.take());
                status.t = status.t.map(|t| t.wrapping_sub(at));
            }
        }
    }

    fn expand_log(&mut self) -> Result<(), StoreError> {
        let at = self.at;
        let mut number = self.seq.checked_add(1);
        for logged in self.log.iter_mut().rev() {
            number = first_number(number, logged);
            logged.n = logged.n.or(number);
            if let Some(status) = status_of(logged) {
                let name = status.s.take().map(|it| name_of(&it)).transpose()?;
                status.s = name.map(Cow::from);
                status.t = status.t.map(|t| t.wrapping_add(at));
            }
        }
        Ok(())
    }

    /// Replaces times by differences. They wrap, so that any two times have a
    /// difference.
    fn compact_times(&mut self) {
        let at = self.at;
        let up = self.up.unwrap_or(at);
        self.exp = self.exp.map(|exp| exp.wrapping_sub(up));
        self.st.t = self.st.t.map(|t| t.wrapping_sub(up)).filter(|t| *t != 0);
        self.up = Some(up.wrapping_sub(at)).filter(|up| *up != 0);
        let mut before = at;
        let mut steps = Vec::new();
        for (state, time) in self.tr.take().unwrap_or_default() {
            let state = letter_of(&state).map_or(state, String::from);
            steps.push(format!("{state}{}", time.wrapping_sub(before)));
            before = time;
        }
        self.ts = Some(steps.join(" "));
    }

    fn expand_times(&mut self, expires_at: Option<i64>) -> Result<(), StoreError> {
        let at = self.at;
        let up = at.wrapping_add(self.up.unwrap_or(0));
        self.up = Some(up);
        self.exp = self.exp.map(|exp| exp.wrapping_add(up)).or(expires_at);
        self.st.t = Some(up.wrapping_add(self.st.t.unwrap_or(0)));
        let mut time = at;
        let mut steps = Vec::new();
        for step in required(self.ts.take(), "ts")?.split_whitespace() {
            let mut rest = step.chars();
            let state = rest.next().map(String::from).unwrap_or_default();
            let after: i64 = rest.as_str().parse().map_err(corrupt)?;
            time = time.wrapping_add(after);
            steps.push((name_of(&state)?, time));
        }
        self.tr = Some(steps);
        Ok(())
    }
}

/// The write id that follows `write` in its turn.
fn next_write(write: &str) -> Option<String> {
    let next = WriteId::stored(write.to_owned()).following();
    next.map(|next| next.to_string())
}

fn join_writes(writes: &mut Vec<String>) {
    let mut joined: Vec<String> = Vec::new();
    let (mut next, mut follow) = (None, 0_u8);
    for write in writes.drain(..) {
        let follows = next.as_ref() == Some(&write) && follow < u8::MAX;
        next = next_write(&write);
        if !follows {
            follow = 0;
            joined.push(write);
            continue;
        }
        if follow > 0 {
            joined.pop();
        }
        follow += 1;
        joined.push(format!("+{follow}"));
    }
    *writes = joined;
}

fn split_writes(writes: &mut Vec<String>) -> Result<(), StoreError> {
    let mut split: Vec<String> = Vec::new();
    for write in writes.drain(..) {
        let Some(follow) = write.strip_prefix('+') else {
            split.push(write);
            continue;
        };
        for _ in 0..follow.parse::<u8>().map_err(corrupt)? {
            let next = split.last().and_then(|write| next_write(write));
            split.push(required(next, "w")?);
        }
    }
    *writes = split;
    Ok(())
}

/// The number of an entry's first event, if the entry after it begins with number `next`.
fn first_number(next: Option<u64>, entry: &StoredEvent<'_>) -> Option<u64> {
    next?.checked_sub(u64::try_from(entry.count()).ok()?)
}

const fn status_of<'e, 'a>(logged: &'e mut StoredEvent<'a>) -> Option<&'e mut StoredStatus<'a>> {
    match &mut logged.e {
        StoredEventContent::Status(status) => Some(status),
        _ => None,
    }
}

/// Leaves out the task's own id or context, which most messages name. An empty text,
/// which is not a valid id, says that the message names none.
fn leave_own(name: &mut Option<Cow<'_, str>>, own: Option<&str>) {
    *name = match name.take() {
        None => Some(Cow::default()),
        Some(name) if Some(&*name) == own => None,
        other => other,
    };
}

fn take_own(name: &mut Option<Cow<'_, str>>, own: &str) {
    *name = match name.take() {
        None => Some(Cow::Owned(own.to_owned())),
        Some(name) if name.is_empty() => None,
        other => other,
    };
}
