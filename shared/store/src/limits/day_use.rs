//! Counts the tokens of models, by tenant and day.
//!
//! An item has the total, the calls that are open, and sums by model. A call reserves the most that
//! it may use before it begins, and its end replaces that by what it used. Its id is random, and no
//! other run looks for it: what a dead run had reserved stays in the total for good, so the total
//! is never below what was billed.

use super::slots::{ENDED, times};
use super::{DayRest, DayUse, Limits, ROUNDS, Reservation, SCARCE_TOKENS, SUM, contention_error};
use crate::item::{self, TTL, as_i64};
use crate::keys::{self, PK, SK};
use crate::table::{Comparison, Condition, Item, ItemChange, Path, Statement, Value, query_all};
use a2a_lambda_model::store::StoreError;
use a2a_lambda_model::task::{TenantId, Timestamp, TokenUse};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The attribute with the times at which the open calls began, by id.
const OPEN: &str = "running";
/// The attribute of a day on which four fifths of the tokens were used.
const WARNED: &str = "warned";
/// The most open calls. An id and its time have some 50 bytes, and a write costs its item.
const OPEN_MAX: i64 = 200;
/// When a call counts as dead: its tokens stay in the total.
const DEAD: Duration = Duration::from_secs(20 * 60);
/// How long a day is kept.
const KEPT: Duration = Duration::from_secs(400 * 24 * 3600);
/// What is summed up for each model.
const SUMS: [&str; 4] = ["calls:", "in:", "out:", "cached:"];

fn of(call: &Reservation) -> Path {
    Path::member(OPEN, call.id.as_str())
}

/// What is known of a day before a write.
#[derive(Default)]
struct Known {
    is_new: bool,
    dead: Vec<String>,
}

/// Reserves if the total is at most `most` then.
fn reserve(
    call: &Reservation,
    most: u64,
    now: Timestamp,
    state: &Known,
    day_rest: DayRest,
) -> Statement {
    let began = Value::from(now.as_millis());
    let add = ItemChange::plus(SUM, Some(0), as_i64(call.tokens));
    let mut changes = vec![add, ItemChange::set(TTL, now.plus(KEPT).ttl_seconds())];
    let mut conditions = Vec::new();
    if state.is_new {
        let open = Value::Map([(call.id.as_str().to_owned(), began)].into());
        changes.push(ItemChange::Set(OPEN.into(), open));
        conditions.push(Condition::absent(OPEN));
    } else {
        let before = as_i64(most).saturating_sub(as_i64(call.tokens));
        let size = OPEN_MAX.saturating_add(as_i64(state.dead.len() as u64));
        changes.push(ItemChange::Set(of(call), began));
        conditions.push(Condition::is(SUM, Comparison::AtMost, before));
        conditions.push(Condition::Absent(of(call)));
        conditions.push(Condition::SizeBelow(OPEN.into(), size));
    }
    if day_rest.is_first_above {
        changes.push(ItemChange::set(WARNED, 1));
        conditions.push(Condition::absent(WARNED));
    }
    let dead = state
        .dead
        .iter()
        .map(|id| ItemChange::Remove(Path::member(OPEN, id)));
    changes.extend(dead);
    let key = keys::day_use(&call.tenant, call.day);
    Statement::update(key, changes).when(Condition::All(conditions))
}

fn day_use(item: &Item) -> Result<DayUse, StoreError> {
    let day = item::text(item, PK)?.strip_prefix(keys::DAY_USES);
    let day = day.and_then(|day| day.parse().ok());
    let day = day.ok_or_else(|| item::corrupt("a day without a number"))?;
    let tenant = TenantId::parse(item::text(item, SK)?).map_err(item::corrupt)?;
    let mut day_use = DayUse {
        tenant,
        day,
        tokens: item::number(item, SUM)?,
        models: [].into(),
    };
    for name in item.keys() {
        for (index, prefix) in SUMS.iter().enumerate() {
            if let Some(model) = name.strip_prefix(prefix) {
                let sum = item::number(item, name)?;
                let it: &mut TokenUse = day_use.models.entry(model.to_owned()).or_default();
                let sums = [&mut it.calls, &mut it.input, &mut it.output, &mut it.cached];
                if let Some(count) = sums.into_iter().nth(index) {
                    *count = sum;
                }
            }
        }
    }
    Ok(day_use)
}

impl Limits {
    /// Runs one statement, and again if no reply came: its id shows whether it is done.
    async fn retry_write(&self, statement: Statement) -> Result<Option<Item>, StoreError> {
        match self.try_write(statement.clone()).await {
            Err(StoreError::Unavailable(_)) => self.try_write(statement).await,
            result => result,
        }
    }

    /// Reserves the tokens of a call if the total of its day stays within `most` tokens; `None` if
    /// there is no room. A call that has reserved already keeps its place.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer, or too many calls are open. Then they may be
    /// reserved.
    pub async fn reserve_tokens(
        &self,
        call: &Reservation,
        most: u64,
        now: Timestamp,
    ) -> Result<Option<DayRest>, StoreError> {
        let plenty = most.saturating_sub(SCARCE_TOKENS.max(most / 5));
        let mut day_rest = DayRest::default();
        let mut write = reserve(call, plenty, now, &Known::default(), day_rest);
        for _ in 0..ROUNDS {
            let Some(item) = self.retry_write(write).await? else {
                return Ok(Some(day_rest));
            };
            let open = times(&item, OPEN)?;
            if open
                .as_ref()
                .is_some_and(|it| it.contains_key(call.id.as_str()))
            {
                return Ok(Some(day_rest));
            }
            let total = item::optional_number(&item, SUM)?.unwrap_or_default();
            let after = u64::try_from(total)
                .unwrap_or_default()
                .saturating_add(call.tokens);
            let Some(rest) = most.checked_sub(after) else {
                return Ok(None);
            };
            day_rest.rest = Some(rest).filter(|_| after > plenty);
            day_rest.is_first_above = rest < most / 5 && !item.contains_key(WARNED);
            let is_new = open.is_none();
            let dead = open.unwrap_or_default().into_iter();
            let dead = dead
                .filter(|(_, began)| began.plus(DEAD) <= now)
                .take(ENDED);
            let dead = dead.map(|(id, _)| id).collect();
            write = reserve(call, most, now, &Known { is_new, dead }, day_rest);
        }
        Err(contention_error())
    }

    /// Replaces what a call of `model` has reserved by what it used. A call that counts as dead
    /// keeps what it has reserved.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer. Then what it has reserved may stay.
    pub async fn settle_tokens(
        &self,
        call: &Reservation,
        model: &str,
        usage: TokenUse,
    ) -> Result<(), StoreError> {
        let rest = as_i64(usage.tokens()).saturating_sub(as_i64(call.tokens));
        let rest = ItemChange::plus(SUM, None, rest);
        let sums = SUMS
            .into_iter()
            .zip([usage.calls, usage.input, usage.output, usage.cached]);
        let sums = sums.filter(|(_, count)| *count > 0);
        let sums =
            sums.map(|(name, count)| ItemChange::Add(format!("{name}{model}"), as_i64(count)));
        let changes: Vec<_> = [rest, ItemChange::Remove(of(call))]
            .into_iter()
            .chain(sums)
            .collect();
        let settle = Statement::update(keys::day_use(&call.tenant, call.day), changes);
        let is_open = Condition::Exists(of(call));
        self.retry_write(settle.when(is_open)).await.map(drop)
    }

    /// The tokens on these days, of one tenant or of all, in the order of the days.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub async fn day_uses(
        &self,
        tenant: Option<&TenantId>,
        days: RangeInclusive<i64>,
    ) -> Result<Vec<DayUse>, StoreError> {
        let mut items = Vec::new();
        if let Some(tenant) = tenant {
            let keys: Vec<_> = days.map(|day| keys::day_use(tenant, day)).collect();
            items = self.table.get(&keys).await?;
        } else {
            for day in days {
                items.extend(query_all(&*self.table, keys::day_uses(day).into()).await?);
            }
        }
        let uses: Result<Vec<_>, _> = items.iter().map(day_use).collect();
        let mut uses = uses?;
        uses.sort_by(|one, other| (one.day, &one.tenant).cmp(&(other.day, &other.tenant)));
        Ok(uses)
    }
}
