//! No owner sees the tasks of another.

use super::{Broken, SampleData, Stores};
use a2a_lambda_model::store::CommitResult;
use a2a_lambda_model::task::{Owner, Subject, TaskId, TenantId};

/// Another subject and another tenant find nothing, change nothing and learn nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_owner_reads_or_writes_a_task(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let task = sample.task()?;
    sample.stored(stores, &task).await?;
    for other in [&sample.colleague, &sample.stranger] {
        let found = stores.records.load(other, &task.id, sample.now).await?;
        assert_eq!(found, None, "{other:?}");
        let page = stores.records.list(other, &sample.everything()).await?;
        assert_eq!((page.records, page.matching), (Vec::new(), 0), "{other:?}");
        let theirs = sample.new_task(other, task.id.clone())?;
        let next = sample.next(&theirs, [sample.start()])?;
        let answer = stores
            .records
            .commit(&sample.update(&next, &theirs))
            .await?;
        assert_eq!(answer, CommitResult::Conflict(None), "{other:?}");
    }
    // Another subject cannot take the same server-made id, and the response does not
    // show the owner.
    let theirs = sample.new_task(&sample.colleague, task.id.clone())?;
    let answer = stores.records.commit(&sample.create(&theirs)).await?;
    assert_eq!(answer, CommitResult::Conflict(None));
    assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    Ok(())
}

/// A client-made id is a name inside one subject.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn two_subjects_use_the_same_client_made_id(
    stores: &Stores,
    sample: &SampleData,
) -> Result<(), Broken> {
    let mut tasks = Vec::new();
    for owner in [&sample.owner, &sample.colleague, &sample.stranger] {
        let task = sample.new_task(owner, TaskId::parse("order:1")?)?;
        sample.stored(stores, &task).await?;
        tasks.push(task);
    }
    for task in tasks {
        assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    }
    Ok(())
}

/// Every name that the parser accepts has an address of its own.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn hostile_names_stay_apart(stores: &Stores, sample: &SampleData) -> Result<(), Broken> {
    let tenant = &sample.owner.tenant;
    let longest = "s".repeat(256);
    let subjects = [
        "a#b",
        "a",
        "a~b",
        "#",
        "\u{0}",
        "..",
        " ",
        "\u{1F600}",
        "META",
        "T#x#K#y",
        "%2e",
        &longest,
    ];
    let long = "x".repeat(128);
    let ids = [
        ".", "..", ":", "META", "a:b", "a.b", "-", "_", "task-1", &long,
    ];
    let mut tasks = Vec::new();
    for subject in subjects {
        let owner = Owner {
            tenant: tenant.clone(),
            subject: Subject::parse(subject)?,
        };
        for id in ids {
            let task = sample.new_task(&owner, TaskId::parse(id)?)?;
            sample.stored(stores, &task).await?;
            tasks.push(task);
        }
    }
    for name in [".", "..", "-", "_.", "T"] {
        let owner = Owner {
            tenant: TenantId::parse(format!("{tenant}{name}"))?,
            subject: Subject::parse("a")?,
        };
        let task = sample.new_task(&owner, TaskId::parse("..")?)?;
        sample.stored(stores, &task).await?;
        tasks.push(task);
    }
    for task in tasks {
        assert_eq!(sample.loaded(stores, &task).await?, Some(task));
    }
    Ok(())
}
