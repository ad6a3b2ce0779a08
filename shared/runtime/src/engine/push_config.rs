//! Creates, reads and deletes push configs.
//!
//! A push config of an open task is stored in a commit of the task. A running turn then
//! loses its next write, reads the task again and sees the new config. A finished task
//! is not changed.

use crate::auth::Caller;

use crate::engine::commit::contention::Races;
use crate::engine::commit::{Commits, push_record};
use crate::engine::error::EngineError;
use crate::engine::reader::Reader;
use crate::engine::seal::AssociatedData;
use crate::engine::secret_keys::SecretKeySet;
use crate::outbound::OutboundUrl;
use crate::task::{
    A2aError, Change, CreatePush, MAX_PUSH_CONFIGS, PushConfig, PushId, PushListQuery, PushOffer,
    PushPage, PushQuery, PushRecord, PushRegistration, Sealed, Secret, TaskRecord,
};
use crate::telemetry::scope::CallScope;
use std::sync::Arc;

impl Reader {
    /// A push config of a task.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] if the task or the config is absent, expired or
    /// another caller's; [`A2aError::PushNotSupported`] when push is off.
    pub(crate) async fn get_push(
        &self,
        caller: &Caller,
        query: &PushQuery,
    ) -> Result<PushConfig, EngineError> {
        self.has_push()?;
        let record = self.load(caller, &query.task).await?;
        let pushes = self.pushes_of(&record).await?;
        let push = match &query.id {
            Some(id) => pushes.iter().find(|push| push.registration.id == *id),
            None => pushes.iter().min_by_key(|push| push.created_at),
        };
        Ok(push.ok_or(A2aError::TaskNotFound)?.config())
    }

    /// The push configs of a task, ordered by id.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] if the task is absent, expired or another caller's;
    /// [`A2aError::InvalidParams`] for an invalid page token;
    /// [`A2aError::PushNotSupported`] when push is off.
    pub(crate) async fn list_pushes(
        &self,
        caller: &Caller,
        query: &PushListQuery,
    ) -> Result<PushPage, EngineError> {
        self.has_push()?;
        let record = self.load(caller, &query.task).await?;
        let after = query.page_token.as_deref().map(PushId::parse).transpose();
        let after = after.map_err(|_| A2aError::invalid("pageToken", "is not one of this list"))?;
        let mut rest: Vec<PushConfig> = self
            .pushes_of(&record)
            .await?
            .iter()
            .filter(|push| after.as_ref().is_none_or(|id| push.registration.id > *id))
            .map(PushRecord::config)
            .collect();
        let size = query.page_size.unwrap_or(MAX_PUSH_CONFIGS).max(1);
        let more = rest.len() > size;
        rest.truncate(size);
        let last = rest.last().filter(|_| more);
        Ok(PushPage {
            next_page_token: last.map(|config| config.id.to_string()).unwrap_or_default(),
            configs: rest,
        })
    }

    /// The push configs of this incarnation of the task, ordered by id.
    pub(in crate::engine) async fn pushes_of(
        &self,
        record: &TaskRecord,
    ) -> Result<Vec<PushRecord>, EngineError> {
        let mut pushes = self.records.pushes(&record.owner, &record.id).await?;
        pushes.retain(|push| push.incarnation == record.incarnation);
        pushes.sort_by(|a, b| a.registration.id.cmp(&b.registration.id));
        Ok(pushes)
    }

    /// An error when push is off.
    fn has_push(&self) -> Result<(), A2aError> {
        self.push.then_some(()).ok_or(A2aError::PushNotSupported)
    }
}

/// Creates and deletes push configs.
#[derive(Clone)]
pub(crate) struct Pushes {
    pub(in crate::engine) reader: Reader,
    pub(in crate::engine) commits: Arc<Commits>,
}

impl Pushes {
    /// Creates a push config, or replaces the one with the same id.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`]; [`A2aError::InvalidParams`] naming the field: a URL
    /// that must not be called, or one config too many; [`A2aError::PushNotSupported`]
    /// when push is off.
    pub(crate) async fn create_push(
        &self,
        caller: &Caller,
        command: &CreatePush,
    ) -> Result<PushConfig, EngineError> {
        self.reader.has_push()?;
        let mut record = self.reader.load(caller, &command.task).await?;
        let registration = self.registration(&record, &command.offer).await?;
        let mut races = Races::default();
        loop {
            self.check_space(&record, &registration, &command.offer)
                .await?;
            if record.state().is_terminal() {
                let push = push_record(&record, &registration, self.reader.clock.now());
                self.commits
                    .records
                    .put_push(&push, record.kept_until)
                    .await?;
                return Ok(push.config());
            }
            let register = Change::RegisterPush(Box::new(registration.clone()));
            let commit = self.commits.commit_of(record, register);
            match self.commits.commit(commit).await?.of_task()? {
                Ok(record) => {
                    let now = self.reader.clock.now();
                    return Ok(push_record(&record, &registration, now).config());
                }
                Err(current) => record = current.ok_or(A2aError::TaskNotFound)?,
            }
            races.note_loss()?;
        }
    }

    /// Deletes a push config. Deleting an absent one succeeds.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] if the task is absent, expired or another caller's;
    /// [`A2aError::PushNotSupported`] when push is off.
    pub(crate) async fn delete_push(
        &self,
        caller: &Caller,
        query: &PushQuery,
    ) -> Result<(), EngineError> {
        self.reader.has_push()?;
        let record = self.reader.load(caller, &query.task).await?;
        if let Some(id) = &query.id {
            let removal = self
                .commits
                .records
                .delete_push(&record.owner, &record.id, id);
            removal.await?;
        }
        Ok(())
    }

    /// The change by which a send registers its push config, if it has one.
    pub(in crate::engine) async fn register_push(
        &self,
        record: &TaskRecord,
        offer: Option<&PushOffer>,
    ) -> Result<Option<Change>, EngineError> {
        let Some(offer) = offer else {
            return Ok(None);
        };
        let registration = self.registration(record, offer).await?;
        if record.version > 0 {
            self.check_space(record, &registration, offer).await?;
        }
        Ok(Some(Change::RegisterPush(Box::new(registration))))
    }

    /// Checks the URL, sets the id and seals the secrets of a push config.
    async fn registration(
        &self,
        record: &TaskRecord,
        offer: &PushOffer,
    ) -> Result<PushRegistration, EngineError> {
        let policy = &self.reader.policy;
        OutboundUrl::parse(&offer.url, policy.reach)
            .map_err(|fault| A2aError::invalid(offer.field("url"), policy.why_refused(fault)))?;
        let id = offer.id.clone();
        let id = id.unwrap_or_else(|| PushId::made_of(self.reader.ids.next()));
        // A config without secrets needs no key.
        let keys = match (&offer.token, &offer.credentials) {
            (None, None) => None,
            _ => Some(policy.secrets.keys_of(None).await?),
        };
        let seal = |secret: &Option<Secret>, name| {
            let seal_place = AssociatedData::of_webhook(&record.owner, &record.id, &id, name);
            let secret = secret.as_ref().zip(keys.as_ref());
            secret
                .map(|(secret, keys)| keys.seal(secret, &seal_place, self.reader.ids.next()))
                .transpose()
        };
        Ok(PushRegistration {
            token: seal(&offer.token, TOKEN)?,
            signs: offer.signs,
            credentials: seal(&offer.credentials, CREDENTIALS)?,
            generation: offer.generation,
            url: offer.url.clone(),
            schemes: offer.schemes.clone(),
            trace_parent: CallScope::current().trace().map(|trace| trace.to_string()),
            id,
        })
    }

    /// Refuses a push config above the limit of a task.
    async fn check_space(
        &self,
        record: &TaskRecord,
        registration: &PushRegistration,
        offer: &PushOffer,
    ) -> Result<(), EngineError> {
        let pushes = self.reader.pushes_of(record).await?;
        let exists = pushes
            .iter()
            .any(|push| push.registration.id == registration.id);
        // An open task also keeps the ids of deleted configs; this bounds their number.
        let is_full = record.push_ids.len() >= MAX_PUSH_CONFIGS * 10
            && !record.push_ids.contains(&registration.id);
        if !exists && (pushes.len() >= MAX_PUSH_CONFIGS || is_full) {
            let why = format!("a task has at most {MAX_PUSH_CONFIGS} push configurations");
            return Err(A2aError::invalid(offer.field("id"), why).into());
        }
        Ok(())
    }
}

/// Names of the two secrets of a push config.
const TOKEN: &str = "token";
const CREDENTIALS: &str = "credentials";

/// The token and the credentials of a push config; `None` if they were sealed under another
/// key.
pub(in crate::engine) fn open_secrets(
    keys: &SecretKeySet,
    push: &PushRecord,
) -> Option<(Option<Secret>, Option<Secret>)> {
    let registration = &push.registration;
    let open = |ciphertext: &Option<Sealed>, name| {
        let seal_place =
            AssociatedData::of_webhook(&push.owner, &push.task, &registration.id, name);
        match ciphertext {
            Some(ciphertext) => keys.open(ciphertext, &seal_place).map(Some),
            None => Some(None),
        }
    };
    open(&registration.token, TOKEN).zip(open(&registration.credentials, CREDENTIALS))
}
