//! A fleet of two releases, as during an upgrade or a rollback.
//!
//! Each process runs one of them. A commit is encoded in the form of its release and
//! stored as that form decodes. The next release is invented: it adds a member to every
//! task and thread that it writes, and the current release does not know the member.

use crate::hub::Hub;
use crate::mutant::Mutant;
use crate::store::edit_body;
use a2a_lambda::store::table::{self, Action, ItemChange, Statement, Write};
use a2a_lambda::store::{StoreError, ThreadRecord, stored};
use a2a_lambda::task::{TaskRecord, WriteId};
use a2a_lambda::testing::{ItemKind, committed_task};
use serde_json::{Value, json};

/// The member that the next release adds.
const LATER: &str = "later";

/// The program that a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The current release.
    Today,
    /// The next release.
    After,
}

impl Release {
    /// The two releases of a history; every fourth history is mixed.
    pub(crate) const fn of_history(seed: u64) -> &'static [Self] {
        match seed % 4 {
            3 => &[Self::Today, Self::After],
            _ => &[],
        }
    }
}

/// The member that the next release has added to a task.
pub(crate) fn added_to_task(record: &TaskRecord) -> Option<Value> {
    stored::encode(record).get(LATER).cloned()
}

/// The member that the next release has added to a thread.
pub(crate) fn added_to_thread(record: &ThreadRecord) -> Option<Value> {
    record.unknown.get(LATER).cloned()
}

/// Whether `now` may follow `before`: it is equal, or this very write added it.
pub(crate) fn follows(
    before: Option<&Value>,
    now: Option<&Value>,
    write: Option<&WriteId>,
) -> bool {
    let by = now.and_then(|now| now.get("by")).and_then(Value::as_str);
    let new = by.is_some() && by == write.map(WriteId::as_str);
    new || before == now
}

impl Release {
    /// Gives the tasks and threads of a write the form in which this release stores them.
    pub(crate) fn rewrite(self, write: &mut Write, hub: &Hub) -> Result<(), StoreError> {
        let drops = self == Self::Today && hub.world().is(Mutant::UnknownDropped);
        let id = committed_task(write).and_then(|task| task.write_ids.last().cloned());
        for statement in &mut write.statements {
            let by = match ItemKind::of(&statement.key) {
                ItemKind::Task => id.clone(),
                ItemKind::Thread => last_write(statement),
                _ => continue,
            };
            let at = version(statement);
            edit_body(statement, |body| match self {
                Self::After => {
                    let by = by.as_ref().map(WriteId::as_str);
                    let added = json!({"at": at, "by": by, "share": 0.1});
                    body.insert(LATER.to_owned(), added);
                }
                Self::Today if drops => {
                    body.remove(LATER);
                }
                Self::Today => {}
            })?;
        }
        Ok(())
    }
}

/// The value that a statement gives an attribute.
fn value<'s>(statement: &'s Statement, name: &str) -> Option<&'s table::Value> {
    match &statement.action {
        Action::Put(item) => item.get(name),
        Action::Update(changes) => changes.iter().find_map(|change| match change {
            ItemChange::Set(path, value) if path.name == name => Some(value),
            _ => None,
        }),
        Action::Delete => None,
    }
}

fn last_write(statement: &Statement) -> Option<WriteId> {
    match value(statement, "w0")? {
        table::Value::Text(id) => Some(WriteId::from_stored(id.as_str())),
        _ => None,
    }
}

fn version(statement: &Statement) -> Option<i64> {
    match value(statement, "version")? {
        table::Value::Number(version) => Some(*version),
        _ => None,
    }
}
