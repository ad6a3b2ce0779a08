//! Large content: messages, values, whole tasks.

use super::{Broken, SampleData, Stores, noise};
use a2a_lambda_model::store::{CommitResult, StoreError, ThreadState};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{
    Change, Message, OutputCounts, Part, Saved, SavedSlot, Sealed, SealedAnswer, TaskId, TaskRecord,
};

/// Sizes around the limits: a value that stays in the item, content that stays in the table,
/// an item, and what a task or a thread may keep. The content has half of its size when it is
/// compressed.
const SIZES: [usize; 9] = [
    30 * 1024,
    34 * 1024,
    62 * 1024,
    66 * 1024,
    790 * 1024,
    810 * 1024,
    1024 * 1024 - 1,
    1024 * 1024,
    1024 * 1024 + 1,
];

fn said(id: &str, length: usize) -> Message {
    Message::from_user(id, vec![Part::text(noise(length as u64, length))])
}

/// A store refuses what exceeds the largest size, and what was stored stays.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_record_above_the_largest_size_is_refused(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let id = TaskId::made_of(sample.number());
    let message = said("m-1", stored::MAX_BYTES + 1);
    let large = sample.task_saying(&sample.owner, id.clone(), message.clone())?;
    let answer = stores.records.commit(&sample.create(&large)).await;
    assert!(matches!(answer, Err(StoreError::TooLarge(_))), "refused");
    assert_eq!(sample.loaded(stores, &large).await?, None);

    let small = sample.new_task(&sample.owner, id)?;
    sample.stored(stores, &small).await?;
    let says = Change::Complete {
        message: Some(message.clone()),
    };
    let grown = sample.next(&small, [sample.start(), says])?;
    let answer = stores.records.commit(&sample.update(&grown, &small)).await;
    assert!(matches!(answer, Err(StoreError::TooLarge(_))), "refused");
    assert_eq!(sample.loaded(stores, &small).await?, Some(small.clone()));

    let mut write = sample.update(&sample.finished(&small)?, &small);
    let mut thread = sample.thread(&sample.owner, &small.context_id, 0);
    thread.record.state.events = vec![message];
    write.thread = Some(thread);
    let answer = stores.records.commit(&write).await;
    assert!(
        matches!(
            answer,
            Ok(CommitResult::Done) | Err(StoreError::TooLarge(_))
        ),
        "stored or refused"
    );
    Ok(())
}

/// A message can exceed what stays in the table, or an item, in the request, its
/// metadata, an answer, a question and the end of the task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn a_large_message_is_stored_in_every_place(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    for size in [62, 66, 790, 810, 1024].map(|kilobytes| kilobytes * 1024) {
        let id = TaskId::made_of(sample.number());
        let mut task = sample.task_saying(&sample.owner, id, said("m-1", size))?;
        let text = serde_json::Value::from(noise(1, size));
        task.fields().metadata.insert("k".to_owned(), text);
        stored::arrange(&mut task);
        sample.stored(stores, &task).await?;
        let found = sample.loaded(stores, &task).await?;
        assert!(found.as_ref() == Some(&task), "{size}");
        let slot = SavedSlot {
            version: 1,
            value: serde_json::Value::Null,
        };
        let asks = Change::AskAuth {
            message: said("m-2", size),
            slot,
        };
        let task = sample
            .committed(stores, &task, [sample.start(), asks])
            .await?;
        let answers = Change::Queue {
            message: said("m-3", size),
            secret: Some(SealedAnswer {
                content: Sealed::from_text(noise(2, size)),
                fingerprint: "f".repeat(52),
            }),
        };
        let task = sample.committed(stores, &task, [answers]).await?;
        let claim = Change::Claim {
            lease_until: sample.at(60_000),
        };
        let task = sample.committed(stores, &task, [claim]).await?;
        let ends = Change::Complete {
            message: Some(said("m-4", size)),
        };
        sample.committed(stores, &task, [ends]).await?;
    }
    Ok(())
}

/// The record after a commit that saves data of `size` bytes.
fn keeping(sample: &SampleData, task: &TaskRecord, size: usize) -> Result<TaskRecord, Broken> {
    let save = |length: usize| Change::Save {
        key: "k".to_owned(),
        value: noise(3, length).into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    };
    let besides = stored::saved_size(&sample.next(task, [save(0)])?.saved);
    sample.next(task, [save(size.saturating_sub(besides))])
}

/// A saved value of any size is stored, replaced by a smaller and by the same, and
/// removed at the end of the task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn saved_data_of_any_size_is_stored(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    let mut task = sample.committed(stores, &task, [sample.start()]).await?;
    for size in SIZES.into_iter().chain([500, 300 * 1024, 40 * 1024]) {
        let next = keeping(sample, &task, size)?;
        assert_eq!(stored::saved_size(&next.saved), size);
        let answer = stores.records.commit(&sample.update(&next, &task)).await?;
        assert_eq!(answer, CommitResult::Done, "{size}");
        let found = sample.loaded(stores, &task).await?;
        assert!(found.as_ref() == Some(&next), "{size}");
        let update = Change::Update {
            message: None,
            metadata: a2a_lambda_model::task::Metadata::new(),
        };
        task = sample.committed(stores, &next, [update]).await?;
    }
    let ends = Change::Complete { message: None };
    let ended = sample.committed(stores, &task, [ends]).await?;
    assert_eq!(ended.saved, Saved::default());
    Ok(())
}

/// The same for the state of a thread, written alone and with a task.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn thread_state_of_any_size_is_stored(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut task = sample.task()?;
    sample.stored(stores, &task).await?;
    task = sample.committed(stores, &task, [sample.start()]).await?;
    for (n, size) in (0..).zip(SIZES) {
        let mut thread = sample.thread(&sample.owner, &task.context_id, 2 * n);
        thread.record.state = ThreadState {
            events: Vec::new(),
            session: [("k".to_owned(), noise(4, size).into())].into(),
            ..ThreadState::default()
        };
        assert!(stores.records.put_thread(&thread).await?, "{size}");
        assert!(stores.records.put_thread(&thread).await?, "{size}, again");
        let id = &task.context_id;
        let found = stores.records.load_thread(&sample.owner, id).await?;
        assert!(found.as_ref() == Some(&thread.record), "{size}");

        let mut beside = thread.clone();
        (beside.record.version, beside.expect) = (2 * n + 2, 2 * n + 1);
        beside.record.state_version = 2 * n + 2;
        beside.write = sample.write_id();
        let next = keeping(sample, &task, size)?;
        let mut write = sample.update(&next, &task);
        write.thread = Some(beside.clone());
        let answer = stores.records.commit(&write).await?;
        assert_eq!(answer, CommitResult::Done, "{size}");
        let found = stores.records.load_thread(&sample.owner, id).await?;
        assert!(found.as_ref() == Some(&beside.record), "{size}");
        task = next;
    }
    Ok(())
}
