//! Deletions and erasure are complete wherever they are interrupted. Each test kills the job
//! at each of its calls and runs it again. Then nothing of the target is left, and
//! everything else is unchanged to the byte.

use crate::full_tenant::{Estate, Stored};
use crate::object_sweep::engine;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::api_keys::{ApiKeyId, ApiKeyRecord, ApiKeys};
use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb::{self, EraseError, Erasure};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{Blobs, StoreError};
use a2a_lambda::task::{
    ContextId, IdempotencyKey, Message, Owner, Part, SubjectKey, TaskId, TaskKey, ThreadKey,
};
use a2a_lambda::testing::{BlobHooks, BlobLayer};
use a2a_lambda_admin::{Deployment, DeploymentError, EraseTenant, EraseTenantError};
use a2a_lambda_tests::emulator::{Emulator, outside, run};
use a2a_lambda_tests::faulty::Fault;
use a2a_local::embedded::{BUCKET, Embedded, LocalFolders, TABLE};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The context of each owner.
fn context() -> ContextId {
    ContextId::parse("mine:c").unwrap()
}

/// The path for the deletion of a task or context.
fn path(kind: &str, id: &str) -> String {
    format!("/a2a-lambda/{kind}/{id}")
}

/// Sends the deletion. `None` if the line was cut, else the HTTP status.
async fn deletes(estate: &Estate, owner: &Owner, path: &str) -> Option<u16> {
    let call = estate.far.call(owner, "DELETE", path);
    let reply = estate.line.run(call).await?;
    Some(reply.status)
}

/// Runs a sweep after the 20 minutes in which a deleted context may still be written. It
/// must find no task left to remove.
async fn is_swept(estate: &Estate) {
    let later = SystemClock.now().plus(Duration::from_secs(21 * 60));
    let engine = engine(&estate.near, later);
    let swept = engine.sweeper.sweep_threads().await.unwrap();
    assert_eq!(
        swept.tasks_removed, 0,
        "the call has removed all it could see"
    );
}

/// Kills the deletion at each of its calls. Each time a second deletion must leave nothing
/// below `partitions` and `folders`, and change nothing else.
async fn is_deleted_wherever_it_is_cut(
    estate: &Estate,
    owner: &Owner,
    path: &str,
    partitions: &[String],
    folders: &[String],
) {
    let before = estate.stored(&owner.tenant).await;
    let rest = before.without(partitions, folders);
    assert_ne!(before, rest, "there is something to delete");
    let is_gone = async |what: &str| {
        let after = estate.stored(&owner.tenant).await;
        // Only the tombstone of a deleted context may be left.
        let left = |name: &String| !rest.names().contains(name);
        let left: Vec<String> = after.names().into_iter().filter(left).collect();
        let note = |name: &String| name.contains("#C#") && name.ends_with(" META");
        assert!(left.iter().all(note) && left.len() <= 1, "{what}: {left:?}");
        is_swept(estate).await;
        let after = estate.stored(&owner.tenant).await;
        assert_eq!(after.names(), rest.names(), "{what}");
        assert!(after == rest, "{what}: other content has changed");
    };
    // A death before a call equals a death after the call before it.
    for calls in 0.. {
        estate.restore(&before).await;
        estate.line.kill_after(calls, Fault::DieAfter);
        let done = deletes(estate, owner, path).await;
        estate.line.spoil(&[]);
        if let Some(status) = done {
            assert_eq!(status, 200, "not cut at call {calls}");
            is_gone("not cut").await;
            assert!(calls > 4, "{calls}");
            break;
        }
        let again = deletes(estate, owner, path).await.unwrap();
        // The first call may have deleted already what the second one names.
        assert!([200, 400, 404].contains(&again), "{calls}: {again}");
        is_gone(&format!("at call {calls}")).await;
    }
}

/// The partition of the key that [`Estate::conversation`] uses.
fn place_of_key(owner: &Owner) -> String {
    let key = IdempotencyKey::parse("k-1").unwrap().hash(owner);
    format!("T#{}#I#{key}", owner.tenant)
}

fn places_of_task(key: &TaskKey) -> (String, String) {
    let partition = format!("T#{}#K#{}", key.tenant(), key.local());
    (partition, format!("v1/{}/", key.folder()))
}

#[tokio::test]
async fn a_task_deletion_completes_wherever_it_was_interrupted() {
    let estate = Estate::new("delete-task").await;
    for owner in estate.owners() {
        estate.conversation(owner, &context()).await;
    }
    let owner = &estate.sample.owner;
    let others = estate.stored(&estate.sample.stranger.tenant).await;
    let tasks = estate.stored(&owner.tenant).await;
    // Each task of the caller: one with large values, one with a push config, a small one.
    // The ids are read from the items.
    for id in ids_of(&tasks, owner) {
        let key = TaskKey::new(owner, &TaskId::parse(&*id).unwrap());
        let (partition, folder) = places_of_task(&key);
        let path = path("tasks", &id);
        let (mut places, key) = (vec![partition], place_of_key(owner));
        let idem = tasks.items.get(&(key.clone(), "IDEM".to_owned())).unwrap();
        if idem["task"].as_s() == Ok(&id) {
            places.push(key);
        }
        places.push(pointer_to(&tasks, owner, &id));
        is_deleted_wherever_it_is_cut(&estate, owner, &path, &places, &[folder]).await;
    }
    assert!(estate.stored(&estate.sample.stranger.tenant).await == others);
}

/// The pointer to a task in its context.
fn pointer_to(stored: &Stored, owner: &Owner, id: &str) -> String {
    let below = format!("T#{}#C#{}#", owner.tenant, owner.subject.hash());
    let task = format!("#{id}#");
    let mut pointers = stored
        .items
        .keys()
        .filter(|(pk, sk)| pk.starts_with(&below) && sk.starts_with("TASK#") && sk.contains(&task));
    let (pk, sk) = pointers.next().unwrap();
    assert_eq!(pointers.next(), None);
    format!("{pk} {sk}")
}

/// The ids of an owner's tasks.
fn ids_of(stored: &Stored, owner: &Owner) -> Vec<String> {
    let subject = owner.subject.as_str().to_owned();
    let mine = stored.items.iter().filter(|((pk, sk), item)| {
        let whose = item.get("owner_subject").map(|it| it.as_s());
        pk.contains("#K#") && sk == "META" && whose == Some(Ok(&subject))
    });
    let id = |pk: &String| {
        let (_, local) = pk.split_once("#K#").unwrap();
        local.rsplit('~').next().unwrap().to_owned()
    };
    let ids: Vec<String> = mine.map(|((pk, _), _)| id(pk)).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    ids
}

#[tokio::test]
async fn a_context_deletion_completes_wherever_it_was_interrupted() {
    let estate = Estate::new("delete-context").await;
    for owner in estate.owners() {
        estate.conversation(owner, &context()).await;
    }
    let owner = &estate.sample.owner;
    let others = estate.stored(&estate.sample.stranger.tenant).await;
    let ids = ids_of(&estate.stored(&owner.tenant).await, owner);
    let (mut partitions, mut folders): (Vec<String>, Vec<String>) = ids
        .iter()
        .map(|id| TaskKey::new(owner, &TaskId::parse(&**id).unwrap()))
        .map(|key| places_of_task(&key))
        .unzip();
    let thread = ThreadKey::new(owner, &context());
    let (tenant, subject) = (thread.tenant(), thread.subject());
    partitions.push(format!("T#{tenant}#C#{subject}#{}", context()));
    folders.push(format!("v1/{}/", thread.folder()));
    partitions.push(place_of_key(owner));
    let path = path("contexts", "mine:c");
    is_deleted_wherever_it_is_cut(&estate, owner, &path, &partitions, &folders).await;
    assert!(estate.stored(&estate.sample.stranger.tenant).await == others);
}

#[tokio::test]
async fn a_tenant_erasure_completes_wherever_it_was_interrupted() {
    let estate = Estate::new("erase").await;
    for owner in estate.owners() {
        estate.conversation(owner, &context()).await;
        estate.sundries(owner).await;
    }
    let tenant = &estate.sample.owner.tenant;
    let neighbour = &estate.sample.stranger.tenant;
    let others = estate.stored(neighbour).await;
    let before = estate.stored(tenant).await;
    let quiet = |_: &Erasure| ();
    for how in [Fault::Die, Fault::DieAfter] {
        for calls in 0.. {
            estate.restore(&before).await;
            let job = || {
                estate
                    .far
                    .table
                    .erase_tenant(tenant, &estate.far.blobs, &quiet)
            };
            estate.line.kill_after(calls, how);
            let done = estate.line.run(job()).await;
            estate.line.spoil(&[]);
            let cut = done.is_none();
            let erased = match done {
                Some(done) => done.unwrap(),
                None => job().await.unwrap(),
            };
            let left = estate.stored(tenant).await;
            assert_eq!(left, Stored::default(), "{how:?} at call {calls}");
            if !cut {
                assert_eq!(erased.items, before.items.len() as u64);
                assert_eq!(erased.objects, before.objects.len() as u64);
                assert_eq!(erased.rounds, 2, "the last round finds nothing");
                assert!(calls > 8, "{calls}");
                break;
            }
        }
    }
    assert!(estate.stored(neighbour).await == others, "another tenant");
}

/// The API key of an owner.
fn api_key_of(owner: &Owner) -> ApiKeyRecord {
    // An id has at most 32 characters.
    let (tenant, subject) = (owner.tenant.folder(), owner.subject.hash());
    let id: String = (tenant.chars().take(16))
        .chain(subject.chars().take(16))
        .collect();
    ApiKeyRecord {
        id: ApiKeyId::parse(&id).unwrap(),
        hash: [7; 32],
        owner: owner.clone(),
        tier: None,
        scopes: std::collections::BTreeSet::new(),
        created_at: SystemClock.now(),
        expires_at: None,
        note: None,
    }
}

#[tokio::test]
async fn a_subject_erasure_completes_wherever_it_was_interrupted() {
    let estate = Estate::new("erase-subject").await;
    let [owner, colleague, stranger] = estate.owners();
    for owner in [colleague, stranger, owner] {
        estate.conversation(owner, &context()).await;
        estate.sundries(owner).await;
        let keys = ApiKeys::new(estate.near.records.table());
        assert!(keys.create_api_key(&api_key_of(owner)).await.unwrap());
    }
    let far = estate.stored(&stranger.tenant).await;
    let before = estate.stored(&owner.tenant).await;
    let rest = {
        let subject = SubjectKey::of(colleague);
        let table = &estate.near.table;
        let removed = table.erase_subject(&subject, &estate.near.blobs, &|_| ());
        removed.await.unwrap();
        let mine = estate.stored(&owner.tenant).await;
        let theirs = |name: &String| !mine.names().contains(name);
        before
            .names()
            .into_iter()
            .filter(theirs)
            .collect::<Vec<_>>()
    };
    // How many items a turn makes depends on the speed of the machine.
    assert!(rest.len() > 20 && before.names().len() > rest.len() + 20);
    let subject = SubjectKey::of(owner);
    let keys = ApiKeys::new(estate.near.records.table());
    for calls in 0.. {
        estate.restore(&before).await;
        for owner in [owner, colleague] {
            keys.create_api_key(&api_key_of(owner)).await.unwrap();
        }
        let blobs = &estate.far.blobs;
        let job = || estate.far.table.erase_subject(&subject, blobs, &|_| ());
        estate.line.kill_after(calls, Fault::DieAfter);
        let done = estate.line.run(job()).await;
        estate.line.spoil(&[]);
        let cut = done.is_none();
        let erased = match done {
            Some(done) => done.unwrap(),
            None => job().await.unwrap(),
        };
        let left = estate.stored(&owner.tenant).await;
        assert_eq!(left.names(), rest, "at call {calls}");
        let stored = keys.api_keys(None).await.unwrap();
        let stored: Vec<Owner> = stored.into_iter().map(|key| key.owner).collect();
        assert!(!stored.contains(owner) && stored.contains(colleague) && stored.contains(stranger));
        if !cut {
            let mine = before.names().len() - rest.len();
            // The API key is not below the tenant.
            assert_eq!(erased.items + erased.objects, mine as u64 + 1);
            assert_eq!(erased.rounds, 2, "the last round finds nothing");
            assert!(calls > 20, "{calls}");
            break;
        }
    }
    assert!(
        estate.stored(&stranger.tenant).await == far,
        "another tenant"
    );
}

#[tokio::test]
async fn counting_a_tenants_content_changes_nothing() {
    let estate = Estate::new("count").await;
    for owner in estate.owners() {
        estate.sundries(owner).await;
    }
    let tenant = &estate.sample.owner.tenant;
    let before = estate.stored(tenant).await;
    let count = estate
        .near
        .table
        .count_tenant(tenant, &estate.near.blobs, &|_| ());
    let counted = count.await.unwrap();
    assert_eq!(counted.items, before.items.len() as u64);
    assert_eq!(counted.objects, before.objects.len() as u64);
    assert!(counted.read >= counted.items);
    assert!(estate.stored(tenant).await == before);
}

#[tokio::test]
async fn the_command_erases_a_tenant_of_a_data_folder_unless_dry_run() {
    if outside().is_some() {
        println!("SKIPPED: a data folder is one of the embedded services");
        return;
    }
    let folder = std::env::temp_dir().join(format!("a2a-lambda-erased-{:x}", run()));
    let sample = SampleData::new(run(), "command").unwrap();
    let [mine, other] = [&sample.owner, &sample.stranger];
    let command = |tenant: &str, dry_run: bool| EraseTenant {
        subject: None,
        tenant: tenant.to_owned(),
        yes: !dry_run,
        dry_run,
        data: Some(folder.clone()),
        deployment: Deployment::default(),
    };
    let absent = command("acme", false).run(&LocalFolders::default()).await;
    assert!(
        matches!(
            absent,
            Err(EraseTenantError::Deployment(DeploymentError::NoFolder(_)))
        ),
        "{absent:?}"
    );
    let embedded = Embedded::start(Some(&folder)).await.unwrap();
    let (records, blobs) = stores(&embedded).await;
    let tasks = [mine, other].map(|owner| {
        let id = TaskId::made_of(sample.number());
        sample.new_task(owner, id).unwrap()
    });
    for task in &tasks {
        records.commit(&sample.create(task)).await.unwrap();
        let key = format!("v1/{}/file", task.key().folder());
        blobs.put(&key, "content".into()).await.unwrap();
    }
    embedded.stop().await;
    // Each tenant has one object with two files beside it.
    // The search includes the `#`, since one tenant's name is a prefix of the other's.
    let named = |tenant: &str| names(&folder, &format!("{tenant}#"));
    let kept = |tenant: &str| (named(tenant), files(&folder.join("s3")).len());
    assert_eq!(kept(mine.tenant.as_str()), (true, 6));
    for (dry_run, left) in [(true, [true, true]), (false, [false, true])] {
        let options = command(mine.tenant.as_str(), dry_run);
        options.run(&LocalFolders::default()).await.unwrap();
        assert_eq!(
            kept(mine.tenant.as_str()),
            if dry_run { (true, 6) } else { (false, 3) }
        );
        assert!(named(other.tenant.as_str()));
        let embedded = Embedded::start(Some(&folder)).await.unwrap();
        let (records, _) = stores(&embedded).await;
        for (task, left) in tasks.iter().zip(left) {
            let found = records.load(&task.owner, &task.id, sample.now).await;
            assert_eq!(found.unwrap().is_some(), left, "{dry_run}");
        }
        embedded.stop().await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Whether any file below a folder contains the word.
fn names(folder: &Path, word: &str) -> bool {
    files(folder).iter().any(|file| {
        let content = std::fs::read(file).unwrap();
        let mut found = content.windows(word.len());
        found.any(|found| found == word.as_bytes())
    })
}

async fn stores(embedded: &Embedded) -> (Records, S3Blobs) {
    let clients = AwsClients::connect(embedded.endpoints()).await;
    let blobs = S3Blobs::new(clients.s3, BUCKET);
    (dynamodb::records(clients.dynamodb, TABLE), blobs)
}

/// Stores a tenant with more items than one page of a scan, and another tenant.
async fn filled(emulator: &Emulator, sample: &SampleData) {
    let text = Part::text(noise(1, 60 * 1024));
    for owner in [&sample.owner, &sample.stranger] {
        for _ in 0..40 {
            let said = Message::from_user("m-1", vec![text.clone()]);
            let id = TaskId::made_of(sample.number());
            let task = sample.task_saying(owner, id, said).unwrap();
            sample.stored(&emulator.stores(), &task).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_tenant_is_counted_and_erased_on_every_page_of_the_table() {
    let emulator = Emulator::alone().await.unwrap();
    let sample = SampleData::new(run(), "pages").unwrap();
    filled(&emulator, &sample).await;
    let (table, blobs) = (&emulator.table(), &emulator.blobs);
    let [mine, other] = [&sample.owner.tenant, &sample.stranger.tenant];
    let count = async |tenant| {
        let counted = table.count_tenant(tenant, blobs, &|_| ()).await;
        counted.unwrap().items
    };
    let (items, others) = (count(mine).await, count(other).await);
    assert!(items >= 40 && items == others, "{items} {others}");
    let erased = table.erase_tenant(mine, blobs, &|_| ()).await.unwrap();
    assert_eq!((erased.items, erased.rounds), (items, 2));
    assert_eq!((count(mine).await, count(other).await), (0, others));
}

/// A bucket for a tenant that writes a task at every list of its keys.
struct Busy {
    records: Records,
    sample: SampleData,
}

#[async_trait::async_trait]
impl BlobHooks for Busy {
    async fn keys(
        &self,
        blobs: &dyn Blobs,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let task = self.sample.task().unwrap();
        self.records.commit(&self.sample.create(&task)).await?;
        blobs.keys(prefix, after, limit).await
    }
}

#[tokio::test]
async fn erasure_of_a_tenant_that_still_writes_is_an_error() {
    let emulator = Emulator::alone().await.unwrap();
    let sample = SampleData::new(run(), "busy").unwrap();
    let task = sample.task().unwrap();
    sample.stored(&emulator.stores(), &task).await.unwrap();
    let tenant = sample.owner.tenant.clone();
    let records = emulator.records.clone();
    let busy = BlobLayer::new(Arc::new(emulator.blobs.clone()), Busy { records, sample });
    let table = emulator.table();
    let erased = table.erase_tenant(&tenant, &*busy, &|_| ()).await;
    assert!(
        matches!(erased, Err(EraseError::StillWritten)),
        "{erased:?}"
    );
}
