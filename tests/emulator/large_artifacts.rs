//! Artifacts whose file a skill writes from a reader, around the largest size that is allowed.

use a2a_lambda::prelude::*;
use a2a_lambda::settings::Settings;
use a2a_lambda::skill::FileReader;
use a2a_lambda::task::TenantId;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::fixture::{Fixture, Place};
use a2a_local::embedded::BUCKET;
use tokio::io::AsyncReadExt as _;

const DIALECT: Dialect = Dialect::Rest10;
const ANN: &str = "acme:ann";
/// More than one piece of a multipart upload.
const ALLOWED: usize = 9 * 1024 * 1024;

/// Delivers a note, and then a file of as many bytes as its message says.
#[skill(id = "pours", tags = ["test"], output_modes = ["text/plain", "application/x-test"])]
async fn pours(cx: &mut TaskContext<'_>, size: String) -> AgentResult<()> {
    let note = Artifact::from_text("note", "a file comes");
    cx.send_partial_artifact(note).await?;
    let bytes = tokio::io::repeat(7).take(size.parse()?);
    let file = Artifact::from_file("sevens", "application/x-test", FileReader::new(bytes));
    cx.send_partial_artifact(file).await
}

/// The sizes of the objects of this agent: other tests may use the bucket.
async fn objects(fixture: &Fixture) -> Vec<i64> {
    let Some(emulator) = &fixture.emulator else {
        return Vec::new();
    };
    let tenant = TenantId::parse(fixture.tenant("acme")).unwrap();
    let list = emulator.clients.s3.list_objects_v2().bucket(BUCKET);
    let below = format!("v1/{}/", tenant.folder());
    let listed = list.prefix(below).send().await.unwrap();
    let sizes = listed.contents().iter().map(|it| it.size().unwrap());
    sizes.collect()
}

#[tokio::test]
async fn a_reader_above_the_limit_fails_its_task_and_leaves_nothing() {
    each_row_async(Place::ALL, async |place| {
        let small = |settings: &mut Settings| settings.policy.upload_max = ALLOWED;
        let agent = Agent::builder("pours").skill(pours);
        let agent = agent.description("Pours.").version("1").build().unwrap();
        let fixture = Fixture::at(place, agent, small).await.unwrap();
        for (size, state) in [(ALLOWED + 1, "failed"), (ALLOWED, "completed")] {
            let send = DIALECT.send(&Say::to("pours", &size.to_string()));
            let sent = DIALECT.task(&fixture.call(&send, ANN).await);
            let get = DIALECT.of_task(Op::Get, sent["id"].as_str().unwrap());
            let task = DIALECT.task(&fixture.call(&get, ANN).await);
            assert_eq!(DIALECT.state(&task), state, "{place:?} {task}");
            let artifacts = task["artifacts"].as_array().unwrap();
            let names: Vec<_> = artifacts.iter().map(|it| &it["name"]).collect();
            if size == ALLOWED {
                assert_eq!(names, ["note", "sevens"], "{place:?}");
                continue;
            }
            assert_eq!(names, ["note"], "{place:?}");
            let code = at(&task, "/status/message/metadata/a2a-lambda~1errorCode");
            assert_eq!(code, "ARTIFACT_TOO_LARGE", "{place:?} {task}");
            let words = DIALECT.status_words(&task);
            assert!(words.contains("9437184 bytes are allowed"), "{words}");
            assert_eq!(objects(&fixture).await, [0_i64; 0], "{place:?}");
        }
        let kept = match place {
            Place::Memory => vec![],
            Place::Emulator => vec![ALLOWED as i64],
        };
        assert_eq!(objects(&fixture).await, kept, "{place:?}");
    })
    .await;
}
