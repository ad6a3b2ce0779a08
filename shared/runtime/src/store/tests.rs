//! A wrapper without overrides passes the store contract of the wrapped store.

use super::memory::MemoryStore;
use super::wrap::{WrapBlobs, WrapObjects, WrapPushes, WrapSweepTasks, WrapSweepThreads};
use super::wrap::{WrapTasks, WrapThreads};
use crate::store::contract::{self, Stores};
use crate::store::push::Pushes;
use crate::store::queue::{SweepObjects, SweepTasks};
use crate::store::{Blobs, SweepThreads, WriteTasks, WriteThreads};

#[derive(Default)]
struct Plain(MemoryStore);

impl WrapTasks for Plain {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.0
    }
}

impl WrapThreads for Plain {
    fn threads(&self) -> &dyn WriteThreads {
        &self.0
    }
}

impl WrapPushes for Plain {
    fn webhooks(&self) -> &dyn Pushes {
        &self.0
    }
}

impl WrapBlobs for Plain {
    fn blobs(&self) -> &dyn Blobs {
        &self.0
    }
}

impl WrapSweepTasks for Plain {
    fn open_index(&self) -> &dyn SweepTasks {
        &self.0
    }
}

impl WrapSweepThreads for Plain {
    fn expiry_index(&self) -> &dyn SweepThreads {
        &self.0
    }
}

impl WrapObjects for Plain {
    fn objects(&self) -> &dyn SweepObjects {
        &self.0
    }
}

#[tokio::test]
async fn a_wrapper_without_overrides_passes_the_store_contract() {
    let store = Plain::default();
    let stores = Stores {
        tasks: &store,
        sweep: &store,
        threads: &store,
        blobs: &store,
        pushes: Some(&store),
    };
    contract::all(&stores, 1).await.unwrap();
}
