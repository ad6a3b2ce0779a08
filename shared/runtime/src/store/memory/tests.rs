use super::MemoryStore;
use crate::store::contract::{self, Stores, World};
use crate::store::{ReadTasks as _, WriteTasks as _};
use crate::task::Change;

macro_rules! run {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let store = MemoryStore::new();
            let stores = Stores { tasks: &store, sweep: &store, threads: &store, blobs: &store, pushes: Some(&store) };
            let world = World::new(1, stringify!($case)).unwrap();
            contract::$case(&stores, &world).await.unwrap();
        }
    )*};
}
crate::store_contract_cases!(run);

#[tokio::test]
async fn the_whole_suite_passes_in_one_store_twice() {
    let store = MemoryStore::new();
    let stores = Stores {
        tasks: &store,
        sweep: &store,
        threads: &store,
        blobs: &store,
        pushes: Some(&store),
    };
    for run in [1, 2] {
        contract::all(&stores, run).await.unwrap();
    }
}

#[tokio::test]
async fn a_lagging_index_shows_only_what_still_matches() {
    let store = MemoryStore::new();
    let world = World::new(1, "lag").unwrap();
    let task = world.task().unwrap();
    store.commit(&world.create(&task)).await.unwrap();
    store.lag_index();
    let hidden = world.task().unwrap();
    store.commit(&world.create(&hidden)).await.unwrap();
    let canceled = world.next(&task, [Change::Cancel]).unwrap();
    store.commit(&world.update(&canceled, &task)).await.unwrap();

    let mut query = world.everything();
    let page = store.list(&world.owner, &query).await.unwrap();
    assert_eq!(page.records, [canceled]);
    query.state = Some(task.state());
    let page = store.list(&world.owner, &query).await.unwrap();
    assert!(page.records.is_empty());

    store.catch_up_index();
    let page = store.list(&world.owner, &query).await.unwrap();
    assert_eq!(page.records, [hidden]);
}
