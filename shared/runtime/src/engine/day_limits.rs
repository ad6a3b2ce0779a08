//! Counts what a tenant uses on one day (UTC): the bytes that it stores, and the tokens of its
//! models. The tokens of a task are counted beside them.

use super::error::EngineError;
use super::files::Files;
use super::limit_policy::LimitPolicy;
use super::lots::rate_limit_error;
use super::reader::Reader;
use crate::clock::lock;
use crate::store::StoreError;
use crate::store::limits::{Reservation, SCARCE_TOKENS, Total};
use crate::task::metadata_keys::BUDGET;
use crate::task::{Change, Message, TaskRecord, TenantId, Timestamp, TokenUse, WriteId};
use crate::telemetry::events;
use a2a_lambda_skill::model::ModelRequest;
use a2a_lambda_skill::{AgentError, AgentResult, CallTokens, MeterCalls};
use futures::future::BoxFuture;
use std::sync::Mutex;
use std::time::Duration;

/// How long the count of a day is kept after the day. The clocks of two functions differ.
const COUNT_KEPT: Duration = Duration::from_secs(3600);

/// The number of a day, and the beginning of the next one.
const fn day_of(now: Timestamp) -> (i64, Timestamp) {
    let day = now.day();
    (day, Timestamp::of_day(day.saturating_add(1)))
}

impl Files {
    /// Adds to the bytes that a tenant may store in one day. An order of an upload counts even if
    /// the client does not use it: nobody tells this program whether it did.
    ///
    /// # Errors
    /// [`A2aError::RateLimited`](crate::task::A2aError::RateLimited) until the next day.
    pub(super) async fn charge_bytes(
        &self,
        tenant: &TenantId,
        bytes: u64,
    ) -> Result<(), EngineError> {
        let most = self.reader.policy.limits.stored_bytes_per_day;
        let Some((limits, most)) = self.reader.limits.as_ref().zip(most) else {
            return Ok(());
        };
        let now = self.reader.clock.now();
        let (day, next_day) = day_of(now);
        let total = Total::StoredBytes(tenant.clone(), day);
        let addition = limits.add(&total, bytes, most, next_day.plus(COUNT_KEPT));
        match addition.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(rate_limit_error(now, next_day).into()),
            Err(error) => {
                tracing::warn!("stored bytes were not counted: {error}");
                Ok(())
            }
        }
    }
}

/// The most tokens of models that a task may use: those of the policy, or fewer if its client
/// names fewer in the newest message that names any.
pub(super) fn most_of_task<'m>(
    limits: &LimitPolicy,
    messages: impl DoubleEndedIterator<Item = &'m Message>,
) -> Option<u64> {
    let mut budgets = messages
        .rev()
        .filter_map(|it| it.metadata.get(BUDGET)?.as_u64());
    let budget = budgets.next().into_iter();
    budget.chain(limits.tokens_per_task).min()
}

/// The meter of the calls of models in one turn, or of one call of the router.
pub(super) struct CallMeter<'e> {
    reader: &'e Reader,
    tenant: TenantId,
    /// The most tokens of the task.
    most: Option<u64>,
    tokens: Mutex<TaskTokens>,
}

/// The tokens of a task.
#[derive(Default)]
struct TaskTokens {
    /// What the task has used, as it is stored or sent to be stored.
    before: u64,
    /// What no commit has yet.
    fresh: TokenUse,
    is_partial: bool,
    /// What calls have reserved that run, or that were dropped, and what workers keep for their
    /// next calls.
    open: u64,
    /// Whether a call had no tokens left.
    is_full: bool,
}

impl<'e> CallMeter<'e> {
    /// The meter of a call of the router.
    pub(super) fn of_tenant(reader: &'e Reader, tenant: &TenantId) -> Self {
        Self {
            reader,
            tenant: tenant.clone(),
            most: None,
            tokens: Mutex::default(),
        }
    }

    /// The meter of a turn of `record`, whose task may use so many tokens.
    pub(super) fn of_task(reader: &'e Reader, record: &TaskRecord, most: Option<u64>) -> Self {
        let tokens = TaskTokens {
            before: record.used.models.tokens(),
            ..TaskTokens::default()
        };
        Self {
            most,
            tokens: Mutex::new(tokens),
            ..Self::of_tenant(reader, &record.owner.tenant)
        }
    }

    /// What the next commit stores of the calls, if there is anything.
    pub(super) fn take(&self) -> Option<Change> {
        let mut tokens = lock(&self.tokens);
        let fresh = std::mem::take(&mut tokens.fresh);
        let is_partial = std::mem::take(&mut tokens.is_partial);
        tokens.before = tokens.before.saturating_add(fresh.tokens());
        let is_some = is_partial || fresh != TokenUse::default();
        is_some.then_some(Change::Use(fresh, is_partial))
    }

    /// Whether the day had no tokens left for a call.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.tokens).is_full
    }

    /// As [`MeterCalls::reserve`].
    ///
    /// # Errors
    /// [`StoreError`] when the item of the day cannot be written: such a call is never free.
    pub(super) async fn reserve_call(
        &self,
        request: &mut ModelRequest,
    ) -> Result<AgentResult<CallTokens>, StoreError> {
        let rest = self.tokens_left().unwrap_or(u64::MAX);
        let Some(call) = CallTokens::of(request, rest) else {
            return Ok(Err(AgentError::budget_exceeded("the tokens of the task")));
        };
        self.hold(call.tokens());
        let Some(limits) = &self.reader.limits else {
            return Ok(Ok(call));
        };
        let now = self.reader.clock.now();
        let (day, next_day) = day_of(now);
        let reservation = Reservation {
            tenant: self.tenant.clone(),
            day,
            id: WriteId::made_of(self.reader.ids.next()),
            tokens: call.tokens(),
        };
        let most = self.reader.policy.limits.tokens_per_day.unwrap_or(u64::MAX);
        let rest = limits.reserve_tokens(&reservation, most, now).await?;
        let Some(rest) = rest else {
            self.release(call.tokens());
            lock(&self.tokens).is_full = true;
            return Ok(Err(AgentError::day_is_used_up(next_day)));
        };
        if rest.is_first_above {
            events::scarce(self.tenant.as_str());
        }
        if rest.rest.is_some_and(|rest| rest < SCARCE_TOKENS) {
            request.max_tokens = u32::try_from(call.output).ok();
        }
        let reservation = Some(reservation);
        Ok(Ok(CallTokens {
            reservation,
            ..call
        }))
    }
}

impl MeterCalls for CallMeter<'_> {
    fn reserve<'a>(
        &'a self,
        request: &'a mut ModelRequest,
    ) -> BoxFuture<'a, AgentResult<CallTokens>> {
        Box::pin(async move {
            let call = self.reserve_call(request).await;
            call.unwrap_or_else(|error| Err(EngineError::from(error).into()))
        })
    }

    fn settle<'a>(
        &'a self,
        model: &'a str,
        call: CallTokens,
        usage: TokenUse,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.release(call.tokens());
            lock(&self.tokens).fresh.add(usage);
            if let Some((limits, reservation)) = self.reader.limits.as_ref().zip(call.reservation) {
                let model = if model.is_empty() { "unknown" } else { model };
                let settle = limits.settle_tokens(&reservation, model, usage);
                // Without an answer of the table the call stays reserved.
                if let Err(error) = settle.await {
                    tracing::warn!("a call of a model stays as reserved: {error}");
                }
            }
        })
    }

    fn tokens_left(&self) -> Option<u64> {
        let tokens = lock(&self.tokens);
        let sum = tokens.before.saturating_add(tokens.fresh.tokens());
        let sum = sum.saturating_add(tokens.open);
        self.most.map(|most| most.saturating_sub(sum))
    }

    fn hold(&self, tokens: u64) {
        let open = &mut lock(&self.tokens).open;
        *open = open.saturating_add(tokens);
    }

    fn release(&self, tokens: u64) {
        let open = &mut lock(&self.tokens).open;
        *open = open.saturating_sub(tokens);
    }

    fn note_partial(&self) {
        lock(&self.tokens).is_partial = true;
    }
}
