//! No owner sees the tasks of another.

use super::{Broken, Stores, World};
use a2a_lambda_model::store::Committed;
use a2a_lambda_model::task::{Owner, Subject, TaskId, TenantId};

/// Another subject and another tenant find nothing, change nothing and learn nothing.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn only_the_owner_reads_or_writes_a_task(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let task = world.task()?;
    world.stored(stores, &task).await?;
    for other in [&world.colleague, &world.stranger] {
        let found = stores.records.load(other, task.id(), world.now).await?;
        assert_eq!(found, None, "{other:?}");
        let page = stores.records.list(other, &world.everything()).await?;
        assert_eq!((page.records, page.matching), (Vec::new(), 0), "{other:?}");
        let theirs = world.new_task(other, task.id().clone())?;
        let next = world.next(&theirs, [world.start()])?;
        let answer = stores.records.commit(&world.update(&next, &theirs)).await?;
        assert_eq!(answer, Committed::Conflict(None), "{other:?}");
    }
    // Another subject cannot take the same server-made id, and the response does not
    // show the owner.
    let theirs = world.new_task(&world.colleague, task.id().clone())?;
    let answer = stores.records.commit(&world.create(&theirs)).await?;
    assert_eq!(answer, Committed::Conflict(None));
    assert_eq!(world.loaded(stores, &task).await?, Some(task));
    Ok(())
}

/// A client-made id is a name inside one subject.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn two_subjects_use_the_same_client_made_id(
    stores: &Stores,
    world: &World,
) -> Result<(), Broken> {
    let mut tasks = Vec::new();
    for owner in [&world.owner, &world.colleague, &world.stranger] {
        let task = world.new_task(owner, TaskId::parse("order:1")?)?;
        world.stored(stores, &task).await?;
        tasks.push(task);
    }
    for task in tasks {
        assert_eq!(world.loaded(stores, &task).await?, Some(task));
    }
    Ok(())
}

/// Every name that the parser accepts has an address of its own.
///
/// # Errors
/// [`Broken`] when the store fails.
pub async fn hostile_names_stay_apart(stores: &Stores, world: &World) -> Result<(), Broken> {
    let tenant = &world.owner.tenant;
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
            let task = world.new_task(&owner, TaskId::parse(id)?)?;
            world.stored(stores, &task).await?;
            tasks.push(task);
        }
    }
    for name in [".", "..", "-", "_.", "T"] {
        let owner = Owner {
            tenant: TenantId::parse(format!("{tenant}{name}"))?,
            subject: Subject::parse("a")?,
        };
        let task = world.new_task(&owner, TaskId::parse("..")?)?;
        world.stored(stores, &task).await?;
        tasks.push(task);
    }
    for task in tasks {
        assert_eq!(world.loaded(stores, &task).await?, Some(task));
    }
    Ok(())
}
