//! Large tasks: content that moved to children reads as if it were in the item.

use super::{Broken, SampleData, Stores, noise};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{CommitResult, Expect, ProjectedTask, Projection, StoreError, Tail};
use a2a_lambda_model::task::{
    Artifact, ArtifactUpdate, Change, Message, Metadata, OutputCounts, Owner, Part, Task, TaskId,
    TaskRecord, WriteId,
};

/// A chunk of the artifact `id`.
pub(super) fn chunk(id: &str, append: bool, length: usize) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: id.to_owned(),
            name: Some(id.to_owned()),
            description: None,
            parts: vec![Part::text(noise(length as u64, length))],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

fn says(n: usize, length: usize) -> Change {
    let text = vec![Part::text(noise(n as u64, length))];
    Change::Update {
        message: Some(Message::from_agent(format!("m-{n}"), text)),
        metadata: Metadata::new(),
    }
}

fn claim(sample: &SampleData) -> Change {
    Change::Claim {
        lease_until: sample.at(60_000),
    }
}

fn checkpoint() -> Change {
    Change::Save {
        key: "k".to_owned(),
        value: 1.into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    }
}

async fn working(stores: &Stores, sample: &SampleData) -> Result<TaskRecord, Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    sample.committed(stores, &task, [sample.start()]).await
}

/// A task whose output has moved to more than one child.
async fn grown(stores: &Stores, sample: &SampleData) -> Result<TaskRecord, Broken> {
    let mut task = working(stores, sample).await?;
    for n in 0..16 {
        let changes = [says(n, 700), chunk("a", n > 0, 900), chunk("b", n > 0, 300)];
        task = sample.committed(stores, &task, changes).await?;
    }
    let layout = &task.layout;
    let parts = layout
        .children
        .iter()
        .filter_map(|child| child.artifacts.get("a"));
    assert!(parts.map(|it| it.parts).sum::<usize>() > 1);
    assert!(layout.children.len() > 2 && layout.events_moved() > 1);
    assert!(layout.messages_moved() > 1);
    Ok(task)
}

/// A grown task with much output in its middle that a restart has taken back.
async fn taken_back(stores: &Stores, sample: &SampleData) -> Result<TaskRecord, Broken> {
    let mut task = grown(stores, sample).await?;
    task = sample.committed(stores, &task, [checkpoint()]).await?;
    for n in 0..20 {
        task = sample.committed(stores, &task, [says(n, 5_000)]).await?;
    }
    task = sample.committed(stores, &task, [claim(sample)]).await?;
    task = sample.committed(stores, &task, [says(20, 5_000)]).await?;
    sample.committed(stores, &task, [says(21, 5_000)]).await
}

/// Checks that a tail shows the same log from any start.
async fn reported(stores: &Stores, sample: &SampleData, task: &TaskRecord) -> Result<(), Broken> {
    let step = (task.last_seq / 16).max(1);
    let places = (0..=task.last_seq).filter(|seq| seq % step == 0 || seq + 3 > task.last_seq);
    for after in places.chain([u64::MAX]) {
        let (owner, id) = (&task.owner, &task.id);
        let found = stores.records.tail(owner, id, after, sample.now).await?;
        assert_eq!(found, Some(Tail::of(task, after)), "after {after}");
    }
    Ok(())
}

/// A log of hundreds of events is stored, loaded whole, and read from any event on.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_long_log_is_read_whole_and_from_any_event(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut task = working(stores, sample).await?;
    for n in 0..40 {
        let chunks = (0..10).map(|k| chunk("a", n + k > 0, 40));
        task = sample.committed(stores, &task, chunks).await?;
        if n % 8 == 0 {
            reported(stores, sample, &task).await?;
        }
    }
    let ends = [Change::Complete { message: None }];
    task = sample.committed(stores, &task, ends).await?;
    assert_eq!(task.last_seq, 402);
    reported(stores, sample, &task).await
}

/// A tail is `None` where a load is: for an unknown task, the task of another owner,
/// or an expired task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_tail_shows_what_a_load_shows(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = working(stores, sample).await?;
    reported(stores, sample, &task).await?;
    let unknown = TaskId::made_of(sample.number());
    let tasks = &stores.records;
    let nothing = tasks.tail(&sample.owner, &unknown, 0, sample.now).await?;
    assert_eq!(nothing, None);
    for other in [&sample.colleague, &sample.stranger] {
        let nothing = tasks.tail(other, &task.id, 0, sample.now).await?;
        assert_eq!(nothing, None);
    }
    let large = grown(stores, sample).await?;
    let ends = [Change::Complete { message: None }];
    let ended = sample.committed(stores, &large, ends).await?;
    for (now, there) in [(-1, true), (0, false), (1, false)] {
        let now = sample.at(3_600_000 + now);
        let found = tasks.tail(&sample.owner, &ended.id, 0, now).await?;
        assert_eq!(found.is_some(), there);
        let found = tasks.load(&sample.owner, &ended.id, now).await?;
        assert_eq!(found.is_some(), there);
    }
    Ok(())
}

/// A turn that runs again starts from its checkpoint. Later output of the earlier
/// attempt is gone and does not mix with the new output.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn output_taken_back_by_a_restart_is_not_read(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut task = grown(stores, sample).await?;
    let before = (task.history.len(), task.artifacts.len());
    task = sample.committed(stores, &task, [checkpoint()]).await?;
    for _ in 0..3 {
        for n in 0..8 {
            let changes = [says(n, 900), chunk("a", true, 600), chunk("c", n > 0, 900)];
            task = sample.committed(stores, &task, changes).await?;
        }
        task = sample.committed(stores, &task, [claim(sample)]).await?;
        assert_eq!(task.history.len(), before.0 + 1);
        assert_eq!(task.artifacts.len(), before.1);
        reported(stores, sample, &task).await?;
    }
    let changes = [chunk("a", true, 9), Change::Complete { message: None }];
    task = sample.committed(stores, &task, changes).await?;
    reported(stores, sample, &task).await
}

/// A restart restores an artifact that the turn has replaced.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_restart_restores_a_replaced_artifact_with_all_parts(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = grown(stores, sample).await?;
    let kept = sample.committed(stores, &task, [checkpoint()]).await?;
    let mut task = kept.clone();
    for n in 0..8 {
        let changes = [chunk("a", n > 0, 1_500), chunk("b", n != 4, 20)];
        task = sample.committed(stores, &task, changes).await?;
    }
    task = sample.committed(stores, &task, [claim(sample)]).await?;
    assert!(task.artifacts == kept.artifacts, "as it was");
    let changes = [chunk("a", false, 1), checkpoint(), chunk("a", false, 2)];
    task = sample.committed(stores, &task, changes).await?;
    sample.committed(stores, &task, [claim(sample)]).await?;
    Ok(())
}

/// A new task under the id of an expired one shows none of its content.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn children_of_an_earlier_task_of_the_id_are_not_read(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let old = grown(stores, sample).await?;
    let ends = [Change::Complete { message: None }];
    let old = sample.committed(stores, &old, ends).await?;
    let mut now = sample.write(&old, Expect::Absent);
    now.now = sample.at(3_600_000);
    let mut new = sample.new_task(&sample.owner, old.id.clone())?;
    let later = sample.at(3_600_000 * 2);
    new.fields().expires_at = later;
    let create = a2a_lambda_model::store::TaskWrite {
        record: new.clone(),
        ..now
    };
    assert_eq!(stores.records.commit(&create).await?, CommitResult::Done);
    assert_eq!(sample.loaded(stores, &new).await?, Some(new.clone()));
    reported(stores, sample, &new).await?;
    new = sample.committed(stores, &new, [sample.start()]).await?;
    for n in 0..12 {
        // The same child names as before, with other content …
        let changes = [says(n, 720), chunk("a", n > 0, 910), chunk("b", n > 0, 290)];
        new = sample.committed(stores, &new, changes).await?;
    }
    reported(stores, sample, &new).await?;
    for n in 12..16 {
        // … and new names.
        let changes = [says(n, 2_000), chunk("a", true, 100), chunk("b", true, 100)];
        new = sample.committed(stores, &new, changes).await?;
    }
    reported(stores, sample, &new).await
}

/// The loser of a race gets the whole record, because it decides again on it.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_conflict_shows_the_whole_of_a_large_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = grown(stores, sample).await?;
    let mut late = sample.next(&task, [chunk("a", true, 9_000)])?;
    late.fields().version = task.version;
    let version = task.version - 1;
    let write = sample.write(
        &late,
        Expect::Version {
            version,
            incarnation: task.incarnation.clone(),
            kept_until: task.kept_until,
        },
    );
    let answer = stores.records.commit(&write).await?;
    let whole = CommitResult::Conflict(Some(task.clone()));
    assert!(answer == whole, "the whole task");
    reported(stores, sample, &task).await?;
    assert!(
        sample.loaded(stores, &task).await? == Some(task),
        "the same"
    );
    Ok(())
}

/// A large commit that is repeated after a lost response is `Done` and changes
/// nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_large_commit_that_is_repeated_is_done_once(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = grown(stores, sample).await?;
    let changes = [says(99, 300_000), chunk("a", true, 500_000)];
    let next = sample.next(&task, changes)?;
    let write = sample.update(&next, &task);
    for _ in 0..3 {
        assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    }
    assert!(sample.loaded(stores, &task).await? == Some(next.clone()));
    let later = sample.committed(stores, &next, [chunk("b", true, 9_000)]);
    let later = later.await?;
    assert_eq!(stores.records.commit(&write).await?, CommitResult::Done);
    assert!(sample.loaded(stores, &task).await? == Some(later.clone()));
    // Another write of the same version is not recognised as this one.
    let mut other = next;
    other.fields().write_ids = vec![WriteId::made_of(sample.number())];
    let answer = stores.records.commit(&sample.update(&other, &task)).await?;
    assert!(answer == CommitResult::Conflict(Some(later)));
    Ok(())
}

/// A projection of a listed head shows the wanted content of the whole task. Under a
/// small byte limit it shows the newest messages and the first artifacts.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_excerpt_shows_the_wanted_content_of_the_whole_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let large = grown(stores, sample).await?;
    let small = working(stores, sample).await?;
    // The last message of this one has moved to a child.
    let wordy = sample.committed(stores, &small, [says(99, 40_000)]).await?;
    let again = taken_back(stores, sample).await?;
    let page = stores
        .records
        .list(&sample.owner, &sample.everything())
        .await?;
    assert_eq!(page.records.len(), 3);
    for whole in [&large, &wordy, &again] {
        let head = page.records.iter().find(|head| head.id == whole.id);
        let head = there(head)?;
        for history_length in [0, 1, 4, 8, 15, 16, 17, usize::MAX] {
            for artifacts in [false, true] {
                for bytes in [0, 1_000, 9_000, usize::MAX] {
                    let wanted = Projection {
                        history_length,
                        artifacts,
                        bytes,
                    };
                    let found = stores.records.project(head.clone(), wanted, sample.now);
                    shows(whole, &there(found.await?)?, wanted);
                }
            }
        }
    }
    // If not all messages fit, the newest are read, and no more bytes than allowed.
    let head = page.records.iter().find(|head| head.id == large.id);
    let head = there(head)?;
    let mut most = None;
    for bytes in (1..12).map(|step| step * 4_000) {
        let wanted = Projection {
            history_length: usize::MAX,
            artifacts: false,
            bytes,
        };
        let found = stores.records.project(head.clone(), wanted, sample.now);
        let found = there(found.await?)?;
        assert_eq!(found.complete, !head.is_partial, "{bytes}");
        if !found.complete {
            most = most.max(Some(found.record.history.len()));
        }
    }
    assert!(most.is_none_or(|shown| shown > head.history.len()));
    Ok(())
}

fn there<T>(found: Option<T>) -> Result<T, Broken> {
    let gone = || StoreError::Corrupt("no record of a stored task".to_owned());
    Ok(found.ok_or_else(gone)?)
}

fn shows(whole: &TaskRecord, excerpt: &ProjectedTask, wanted: Projection) {
    let view = |record: &TaskRecord| record.view(wanted.history_length, wanted.artifacts);
    let (shown, all) = (view(&excerpt.record), view(whole));
    if excerpt.complete {
        assert!(shown == all, "{wanted:?}");
        return;
    }
    assert!(wanted.bytes < usize::MAX, "incomplete without a byte limit");
    assert_eq!(shown.status.state, all.status.state);
    let messages = |task: &Task| task.history.clone().unwrap_or_default();
    assert!(messages(&all).ends_with(&messages(&shown)), "{wanted:?}");
    let artifacts = |task: &Task| task.artifacts.clone().unwrap_or_default();
    assert!(
        artifacts(&all).starts_with(&artifacts(&shown)),
        "{wanted:?}"
    );
}

/// The projection of an old head shows the task as of that head, or the current one; that of
/// a task that is gone may be `None`.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn an_excerpt_never_mixes_two_commits(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = grown(stores, sample).await?;
    let before = sample.committed(stores, &task, [says(98, 60_000)]).await?;
    let (owner, id) = (&before.owner, &before.id);
    let head = stores.records.head(owner, id, sample.now).await?;
    let old = there(head)?;
    let task = sample
        .committed(stores, &before, [says(99, 80_000)])
        .await?;
    let wanted = Projection {
        history_length: usize::MAX,
        artifacts: true,
        bytes: usize::MAX,
    };
    let is_one = |found: &TaskRecord| {
        let shown = found.view(99, true);
        [&before, &task].iter().any(|it| it.view(99, true) == shown)
    };
    let found = stores
        .records
        .project(old.clone(), wanted, sample.now)
        .await?;
    assert!(is_one(&there(found)?.record), "as of one commit");
    let ends = [Change::Complete { message: None }];
    sample.committed(stores, &task, ends).await?;
    let over = sample.at(3_600_000);
    let found = stores.records.project(old.clone(), wanted, over).await?;
    let found = found.map(|found| found.record);
    assert!(found.is_none_or(|found| is_one(&found)), "as of one commit");
    Ok(())
}

/// Such a commit would lose the content that the partial record lacks.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_commit_on_a_partial_record_is_refused(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = grown(stores, sample).await?;
    let head = stores
        .records
        .head(&task.owner, &task.id, sample.now)
        .await?;
    let head = head.filter(|head| head.is_partial);
    if let Some(head) = head {
        let next = sample.next(&head, [checkpoint()])?;
        let answer = stores.records.commit(&sample.update(&next, &head)).await;
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    }
    assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    Ok(())
}

/// The heads of several tasks: each task once, and only those that a load returns.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn heads_returns_only_tasks_that_load_returns(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let large = grown(stores, sample).await?;
    let small = working(stores, sample).await?;
    let mine = working(stores, sample).await?;
    let over = sample.finished(&sample.task()?)?;
    sample.stored(stores, &over).await?;
    let open = |owner: &Owner, task: &TaskRecord| OpenTask {
        owner: owner.clone(),
        task: task.id.clone(),
    };
    let asked = [
        open(&sample.owner, &large),
        open(&sample.colleague, &large),
        open(&sample.colleague, &mine),
        open(&sample.stranger, &small),
        open(&sample.owner, &over),
        open(&sample.owner, &small),
        open(&sample.owner, &sample.task()?),
    ];
    let mut heads = stores.records.heads(&asked, sample.expiry()).await?;
    heads.sort_by(|a, b| a.id.cmp(&b.id));
    let mut expected = [&large, &small];
    expected.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(heads.len(), 2);
    for (head, whole) in heads.iter().zip(expected) {
        let (owner, id) = (&whole.owner, &whole.id);
        let one = stores.records.head(owner, id, sample.now).await?;
        assert_eq!(one.as_ref(), Some(head));
        assert_eq!(head.version, whole.version);
        assert_eq!(head.lease_until, whole.lease_until);
        assert_eq!(&head.push_ids, &whole.push_ids);
    }
    assert_eq!(stores.records.heads(&[], sample.now).await?, []);
    Ok(())
}
