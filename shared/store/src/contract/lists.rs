//! Lists of tasks: order, filters, pages, counts.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::{CommitResult, ListPosition, RecordPage, RecordQuery};
use a2a_lambda_model::task::{ContextId, Owner, TaskId, TaskRecord, TaskState};

/// A submitted task with a status time `millis` after now.
fn dated(sample: &SampleData, id: TaskId, millis: i64) -> Result<TaskRecord, Broken> {
    let mut task = sample.new_task(&sample.owner, id)?;
    let mut status = task.status.clone();
    status.timestamp = sample.at(millis);
    task.fields().status = status;
    Ok(task)
}

/// Stores a task for each status time and returns them newest first.
async fn shelf(
    stores: &Stores,
    sample: &SampleData,
    times: &[i64],
) -> Result<Vec<TaskRecord>, Broken> {
    let mut tasks = Vec::new();
    for millis in times {
        let task = dated(sample, TaskId::made_of(sample.number()), *millis)?;
        sample.stored(stores, &task).await?;
        tasks.push(task);
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(ListPosition::of(task)));
    Ok(tasks)
}

/// Reads a list until its index has caught up, 200 times at most.
async fn settled(
    stores: &Stores,
    owner: &Owner,
    query: &RecordQuery,
    right: impl Fn(&RecordPage) -> bool,
) -> Result<RecordPage, Broken> {
    let mut page = stores.records.list(owner, query).await?;
    for _ in 0..200 {
        if right(&page) {
            break;
        }
        page = stores.records.list(owner, query).await?;
    }
    Ok(page)
}

/// A list is newest status first; tasks of the same time are ordered by id.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_list_is_ordered_by_status_time_and_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let tasks = shelf(stores, sample, &[5, 0, 5, -1_000_000_000_000, 5, 9]).await?;
    let query = sample.everything();
    let page = settled(stores, &sample.owner, &query, |page| page.matching == 6).await?;
    assert_eq!(page.records, tasks);
    assert_eq!((page.next, page.matching), (None, 6));
    Ok(())
}

/// Context, state and status time each narrow the list and its count.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_list_shows_only_tasks_that_match_its_filters(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let tasks = shelf(stores, sample, &[1, 2, 3, 4]).await?;
    let query = sample.everything();
    settled(stores, &sample.owner, &query, |page| page.matching == 4).await?;
    let [newest, second, third, oldest] = tasks.as_slice() else {
        return Ok(());
    };
    let working = sample.next(third, [sample.start()])?;
    stores
        .records
        .commit(&sample.update(&working, third))
        .await?;
    let check = async |query: RecordQuery, expected: &[&TaskRecord]| {
        let count = expected.len();
        let right = |page: &RecordPage| page.matching == count;
        let page = settled(stores, &sample.owner, &query, right).await?;
        let records: Vec<&TaskRecord> = page.records.iter().collect();
        assert_eq!(records, expected, "{query:?}");
        assert_eq!((page.next, page.matching), (None, count), "{query:?}");
        Ok::<(), Broken>(())
    };
    let mut of_context = query.clone();
    of_context.context_id = Some(second.context_id.clone());
    check(of_context.clone(), &[second]).await?;
    of_context.state = Some(TaskState::Working);
    check(of_context, &[]).await?;
    let mut of_state = query.clone();
    of_state.state = Some(TaskState::Working);
    check(of_state.clone(), &[&working]).await?;
    of_state.state = Some(TaskState::Submitted);
    check(of_state, &[newest, second, oldest]).await?;
    let mut recent = query;
    recent.status_after = Some(second.status.timestamp);
    check(recent.clone(), &[newest, second]).await?;
    recent.status_after = Some(sample.at(5));
    check(recent, &[]).await
}

/// The list of a context does not depend on an index that lags.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_context_with_few_tasks_is_listed_exactly(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let number = sample.number();
    let mine = ContextId::made_of(number);
    let mut tasks = Vec::new();
    for n in 0..6 {
        // The context is named after the first task.
        let id = if n == 0 { number } else { sample.number() };
        let mut task = dated(sample, TaskId::made_of(id), n % 3)?;
        task.fields().context_id = mine.clone();
        sample.stored(stores, &task).await?;
        tasks.push(task);
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(ListPosition::of(task)));
    for limit in 1..=6 {
        let mut query = RecordQuery {
            context_id: Some(mine.clone()),
            limit,
            ..sample.everything()
        };
        let mut joined = Vec::new();
        loop {
            let page = stores.records.list(&sample.owner, &query).await?;
            assert_eq!(page.matching, tasks.len());
            assert!(page.records.len() == limit || page.next.is_none());
            joined.extend(page.records);
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(joined, tasks, "pages of {limit}");
    }
    let counted = RecordQuery {
        context_id: Some(mine),
        count_limit: 2,
        ..sample.everything()
    };
    let page = stores.records.list(&sample.owner, &counted).await?;
    assert_eq!(page.matching, 2);
    let theirs = stores.records.list(&sample.colleague, &counted).await?;
    assert_eq!(theirs.records, []);
    Ok(())
}

/// Pages of every size contain each task once, in the order of the whole list.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn pages_join_to_the_whole_list(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let tasks = shelf(stores, sample, &[1, 1, 1, 2, 3, 3, 4]).await?;
    let whole = sample.everything();
    settled(stores, &sample.owner, &whole, |page| page.matching == 7).await?;
    for limit in 1..=8 {
        let mut query = whole.clone();
        query.limit = limit;
        let mut joined = Vec::new();
        let mut pages = 0;
        loop {
            let page = stores.records.list(&sample.owner, &query).await?;
            assert!(page.records.len() <= limit);
            assert_eq!(page.matching, 7, "the count is of the whole list");
            joined.extend(page.records);
            pages += 1;
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(joined, tasks, "pages of {limit}");
        assert_eq!(pages, 7_usize.div_ceil(limit), "pages of {limit}");
    }
    Ok(())
}

/// The count is exact up to its limit and stops there.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_count_stops_at_its_limit(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    shelf(stores, sample, &[1, 2, 3, 4, 5]).await?;
    let query = sample.everything();
    settled(stores, &sample.owner, &query, |page| page.matching == 5).await?;
    for (count_limit, limit, expected) in [(3, 1, 3), (3, 100, 3), (5, 2, 5), (6, 2, 5)] {
        let mut query = query.clone();
        query.count_limit = count_limit;
        query.limit = limit;
        let page = stores.records.list(&sample.owner, &query).await?;
        assert_eq!(page.matching, expected, "up to {count_limit}");
    }
    Ok(())
}

/// A record of a page is the stored one, with its current content.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_list_shows_tasks_as_they_are_now(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let done = sample.finished(&task)?;
    let answer = stores.records.commit(&sample.update(&done, &task)).await?;
    assert_eq!(answer, CommitResult::Done);
    let query = sample.everything();
    let right = |page: &RecordPage| !page.records.is_empty();
    let page = settled(stores, &sample.owner, &query, right).await?;
    assert_eq!(page.records, [done]);
    Ok(())
}
