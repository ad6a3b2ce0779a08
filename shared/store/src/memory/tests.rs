//! The contract on the table in memory, and behind a layer that loses replies.

use super::*;
use crate::contract::{self, Case, Fault, SampleData, WatchedTable};
use crate::counters::{Counter, Counters};
use crate::documents::{
    DocumentCollection, DocumentExpect, DocumentKey, DocumentOwner, DocumentWrite, Documents,
};
use std::sync::Arc;

macro_rules! run {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let case = Case::new(Arc::new(MemoryTable::default()), 1, stringify!($case));
            contract::$case(&case.unwrap()).await.unwrap();
        }
    )*};
}
crate::table_contract_cases!(run);

fn faulty(fault: Fault) -> Arc<WatchedTable> {
    Arc::new(WatchedTable::with(fault))
}

/// The cases that hold also if each write is sent twice. (Tokens and totals may be taken
/// twice, and a second withdrawal finds no key: their documentation tells so.)
macro_rules! sent_twice {
    ($($case:ident)*) => {
        #[tokio::test]
        async fn writes_that_are_sent_twice_count_once() {
            $(
                let case = Case::new(faulty(Fault::SentTwice), 1, stringify!($case)).unwrap();
                contract::$case(&case).await.unwrap();
            )*
        }
    };
}
sent_twice! {
    the_first_check_of_keys_stays
    counters_of_many_processes_add_up
    a_document_reads_back_until_it_is_removed
    one_of_two_writers_of_a_document_wins
    an_expired_document_is_gone
    pages_of_documents_join_to_the_collection
    collections_of_documents_are_apart
    a_pool_leases_its_cap_and_forgets_ended_leases
    concurrent_streams_never_exceed_the_cap
    a_brake_is_in_force_until_it_is_lifted
}

#[tokio::test]
async fn a_write_without_a_reply_is_unavailable_and_not_refused() {
    let sample = SampleData::new(1, "no reply").unwrap();
    let table = faulty(Fault::NoReply);
    let unavailable = |error| matches!(error, StoreError::Unavailable(_));
    let counted = Counter {
        series: "s".to_owned(),
        amounts: BTreeMap::from([("n".to_owned(), 1)]),
    };
    let counters = Counters::new(table.clone());
    assert!(unavailable(
        counters.add_counters(0, &[counted]).await.unwrap_err()
    ));

    let owner = DocumentOwner::Tenant(sample.owner.tenant.clone());
    let write = DocumentWrite {
        collection: DocumentCollection::new(owner, "notes").unwrap(),
        key: DocumentKey::parse("one").unwrap(),
        text: Some("1".to_owned()),
        author: None,
        expires_at: None,
        expect: DocumentExpect::Absent,
        id: sample.write_id(),
        now: sample.now,
    };
    let documents = Documents::new(table.clone());
    assert!(unavailable(
        documents.write_document(&write).await.unwrap_err()
    ));
}

#[tokio::test]
async fn indexes_show_old_items_while_they_lag() {
    use crate::table::{Query, Statement};
    let table = MemoryTable::default();
    let sample = SampleData::new(1, "lag").unwrap();
    let list = crate::keys::contexts(&sample.owner);
    let put = |at: &str| {
        let key = crate::keys::tiers(&sample.owner.tenant);
        let item = [("GSI1PK", list.key()), ("GSI1SK", at)];
        let item = item.map(|(name, text)| (name.to_owned(), text.into()));
        Statement::put(key, item.into()).into()
    };
    let query = Query::from(list.clone());
    let shown = async || {
        let page = table.query(&query).await.unwrap();
        page.items
            .into_iter()
            .map(|it| it["GSI1SK"].clone())
            .collect::<Vec<_>>()
    };
    table.write(put("1")).await.unwrap();
    table.lag_indexes();
    table.write(put("2")).await.unwrap();
    assert_eq!(shown().await, ["1".into()]);
    table.catch_up_indexes();
    assert_eq!(shown().await, ["2".into()]);
}
