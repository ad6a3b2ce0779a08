//! Which tables a program uses, and what form it notes in them.

use a2a_lambda::store::aws::AwsClients;
use a2a_lambda::store::dynamodb::{DynamoTable, FormError, create_table};
use a2a_lambda::store::keys::{self, Key};
use a2a_lambda::store::stored::SCHEMA;
use a2a_lambda::store::table::{Item, ReadTable as _, Statement, Table as _, Value};
use a2a_lambda_rows::each_row_async;
use a2a_local::embedded::Embedded;

const NAME: &str = "a2a-lambda-forms";

/// An empty table, whose form nobody has noted.
async fn table() -> (DynamoTable, Embedded) {
    let embedded = Embedded::start(None).await.unwrap();
    let clients = AwsClients::connect(embedded.endpoints()).await;
    create_table(&clients.dynamodb, NAME).await.unwrap();
    (DynamoTable::new(clients.dynamodb, NAME), embedded)
}

async fn put(table: &DynamoTable, key: Key, form: i64) {
    let item = Item::from([("schema".to_owned(), form.into())]);
    let outcome = table.write(Statement::put(key, item).into()).await;
    assert!(outcome.unwrap().is_done().unwrap());
}

async fn noted(table: &DynamoTable) -> Option<Value> {
    let item = table.get(&[keys::form()]).await.unwrap().pop()?;
    item.get("schema").cloned()
}

#[tokio::test]
async fn an_empty_table_gets_the_form_of_the_program_once() {
    let (table, _embedded) = table().await;
    for _ in 0..2 {
        table.claim_form().await.unwrap();
        assert_eq!(noted(&table).await, Some(i64::from(SCHEMA).into()));
    }
    // Its own items do not shut it out.
    put(&table, keys::counter(0, "calls"), 1).await;
    table.claim_form().await.unwrap();
}

#[tokio::test]
async fn a_table_of_another_form_is_refused_and_stays_as_it_is() {
    let (table, _embedded) = table().await;
    each_row_async([SCHEMA - 1, SCHEMA + 1], async |form| {
        put(&table, keys::form(), form.into()).await;
        let error = table.claim_form().await.unwrap_err();
        assert!(matches!(error, FormError::Unknown(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("a release that reads {form}")),
            "{text}"
        );
        assert_eq!(noted(&table).await, Some(i64::from(form).into()));
    })
    .await;
}

#[tokio::test]
async fn a_table_with_items_and_no_form_is_refused() {
    let (table, _embedded) = table().await;
    put(&table, keys::counter(0, "calls"), 1).await;
    let error = table.claim_form().await.unwrap_err();
    assert!(matches!(error, FormError::Unnoted), "{error}");
    assert_eq!(noted(&table).await, None);
}

#[tokio::test]
async fn programs_that_start_together_note_one_form() {
    let (table, _embedded) = table().await;
    let claims = (0..8).map(|_| table.claim_form());
    for claim in futures::future::join_all(claims).await {
        claim.unwrap();
    }
    assert_eq!(noted(&table).await, Some(i64::from(SCHEMA).into()));
}
