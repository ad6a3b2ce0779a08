//! The authors of commits. Nothing changes a commit, so it names a pseudonym in place of a subject.
//!
//! Two documents say which subject a pseudonym is. An erasure of the subject removes both; its
//! commits stay, and are nobody's.

use crate::origin::WrittenBy;
use a2a_lambda::engine::{Ids as _, RandomIds};
use a2a_lambda::prelude::*;
use a2a_lambda::task::TenantId;

/// The collection of a subject with its pseudonym, and the key of that.
const OWN: &str = "knowledge/author";
const NAME: &str = "name";
/// The collection of a tenant with the subjects of its pseudonyms.
const SUBJECTS: &str = "knowledge/authors";
/// How a pseudonym begins; 32 hexadecimal digits follow.
const PREFIX: &str = "author-";
const DIGITS: usize = 32;

/// Who commits, as the commit says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitAuthor {
    /// The pseudonym.
    pub(super) name: String,
    pub(super) tenant: TenantId,
    pub(super) via: WrittenBy,
    /// The id of the task.
    pub(super) task: String,
}

impl CommitAuthor {
    /// The author of a commit in a turn. The first one of a subject makes its pseudonym.
    pub(super) async fn in_turn(cx: &TaskContext<'_>) -> AgentResult<Self> {
        Ok(Self {
            name: pseudonym(cx).await?,
            tenant: cx.caller().owner.tenant.clone(),
            via: WrittenBy::in_turn(cx),
            task: cx.task_id().as_str().to_owned(),
        })
    }
}

async fn pseudonym(cx: &TaskContext<'_>) -> AgentResult<String> {
    let documents = cx.own_documents(OWN)?;
    if let Some(name) = documents.get::<String>(NAME).await? {
        return Ok(name.value);
    }
    let name = format!("{PREFIX}{:032x}", RandomIds.next());
    let subject = &cx.caller().owner.subject;
    let subjects = cx.documents(SUBJECTS)?.written_by(subject);
    // First, so that each pseudonym in use has its subject.
    subjects.create(&name, &subject.as_str()).await?;
    if documents.create(NAME, &name).await? {
        return Ok(name);
    }
    let first = documents.get::<String>(NAME).await?;
    let missing = || AgentError::internal("the pseudonym of the caller was erased meanwhile");
    Ok(first.ok_or_else(missing)?.value)
}

/// The subject of the author of a commit; the name in the commit if it has none, because the
/// subject was erased or an earlier version wrote the commit.
pub(super) async fn subject_of(cx: &TaskContext<'_>, name: &str) -> AgentResult<String> {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(name.to_owned());
    }
    let subject = cx.documents(SUBJECTS)?.get::<String>(name).await?;
    Ok(subject.map_or_else(|| name.to_owned(), |subject| subject.value))
}
