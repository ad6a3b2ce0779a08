use super::*;
use crate::auth::ApiKey;
use crate::auth::credentials::tests::keep;
use crate::store::api_keys::{ApiKeyRecord, ApiKeys};
use crate::store::contract::{Fault, WatchedTable};
use crate::task::{Owner, Subject, TenantId, Timestamp};
use crate::telemetry::lines::Lines;
use a2a_lambda_rows::each_row_async;

const EVENT: &str = include_str!("event.json");
const STAGE: &str = "arn:aws:execute-api:eu-central-1:111122223333:a1b2c3d4e5/dev/*/*";
/// The end of the year 2100.
const END: i64 = 4_133_980_799;

/// Credentials with one key, and the key.
async fn issued() -> (Credentials, ApiKey) {
    let table = Arc::new(WatchedTable::default());
    let (store, key) = (ApiKeys::new(table.clone()), ApiKey::random("").unwrap());
    let record = ApiKeyRecord {
        id: key.id().clone(),
        hash: key.hash(),
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("ann@example.com").unwrap(),
        },
        tier: Some("gold".to_owned()),
        scopes: ["ops", "read"].map(str::to_owned).into(),
        created_at: Timestamp::default(),
        expires_at: Some(Timestamp::from_millis(END * 1000)),
        note: None,
    };
    keep(&store, &record, "").await;
    (Credentials::new(table, Arc::new(SystemClock)), key)
}

fn event(token: &str) -> GatewayRequest {
    serde_json::from_str(&EVENT.replace("TOKEN", token)).unwrap()
}

#[tokio::test]
async fn a_key_gets_a_policy_for_the_whole_stage_and_its_caller() {
    let (credentials, key) = issued().await;
    let decided = authorize(&credentials, &Mutex::default(), &event(key.reveal()))
        .await
        .unwrap();
    let expected = json!({
        "principalId": "acme",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": STAGE}],
        },
        "context": {
            "tenant": "acme", "subject": "ann@example.com", "tier": "gold",
            "scopes": "ops read", "expires_at": END.to_string(),
        },
    });
    assert_eq!(decided, expected);
}

#[tokio::test]
async fn the_policy_of_the_root_path_is_that_of_the_whole_stage() {
    let (credentials, key) = issued().await;
    let mut request = event(key.reveal());
    request.method_arn =
        "arn:aws:execute-api:eu-central-1:111122223333:a1b2c3d4e5/dev/POST/".to_owned();
    let decided = authorize(&credentials, &Mutex::default(), &request)
        .await
        .unwrap();
    let resource = decided.pointer("/policyDocument/Statement/0/Resource");
    assert_eq!(resource, Some(&json!(STAGE)));
}

#[tokio::test]
async fn a_refusal_is_the_word_that_api_gateway_answers_with_401() {
    let (credentials, key) = issued().await;
    let mut twice = event(key.reveal());
    let headers = twice.multi_value_headers.as_mut().unwrap();
    let value = key.reveal().to_owned();
    headers.insert("Authorization".to_owned(), vec![value.clone(), value]);
    let mut none = event("");
    none.multi_value_headers = None;
    let rows = [twice, none, event("a2a_x_y"), event("dev:acme:ann")];
    each_row_async(rows, async |request| {
        let refused = authorize(&credentials, &Mutex::default(), &request)
            .await
            .unwrap_err();
        assert_eq!(Diagnostic::from(refused).error_message, "Unauthorized");
    })
    .await;
}

#[tokio::test]
async fn a_failure_of_the_store_is_no_refusal() {
    let credentials = Credentials::new(
        Arc::new(WatchedTable::with(Fault::Down)),
        Arc::new(SystemClock),
    );
    let key = ApiKey::random("").unwrap();
    let failed = authorize(&credentials, &Mutex::default(), &event(key.reveal())).await;
    let said = Diagnostic::from(failed.unwrap_err()).error_message;
    assert_eq!(said, "the authorizer failed");
}

#[tokio::test]
async fn each_refused_caller_has_a_reason_in_a_line_and_a_flood_has_ten() {
    let (credentials, key) = issued().await;
    let (made_up, lines) = (ApiKey::random("").unwrap(), Lines::default());
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone());
    let _logging = tracing::subscriber::set_default(log.with_ansi(false).finish());
    let refusals = Mutex::default();
    for _ in 0..60 {
        let request = event(made_up.reveal());
        authorize(&credentials, &refusals, &request)
            .await
            .unwrap_err();
    }
    authorize(&credentials, &refusals, &event("one.two.three"))
        .await
        .unwrap_err();
    authorize(&credentials, &refusals, &event(key.reveal()))
        .await
        .unwrap();
    let text = lines.text();
    let unknown = text.lines().filter(|line| line.contains("UNKNOWN_KEY"));
    let id = made_up.id().as_str();
    assert!(unknown.clone().all(|line| line.contains(id)), "{text}");
    // A second may begin while they run.
    assert!((10..=20).contains(&unknown.count()), "{text}");
    assert_eq!(text.matches("NO_ISSUER").count(), 1, "{text}");
    assert!(!text.contains(made_up.reveal()), "{text}");
    assert!(!text.contains(key.id().as_str()), "{text}");
}
