//! Health and metrics of the local agent.

use crate::agent::{Folder, Running};
use crate::calls::Call;

#[tokio::test]
async fn the_local_agent_shows_its_health_and_metrics() {
    let folder = Folder::new();
    let arguments = ["--memory", "--port", "0"];
    let agent = Running::start(&folder, &arguments, &[], "listening on ").await;
    for path in ["/health", "/a2a-lambda/health"] {
        let report = Call::get(&format!("{}{path}", agent.base())).json().await;
        assert_eq!(report["status"], "ok", "{report}");
        for dependency in ["table", "bucket"] {
            assert_eq!(
                report["dependencies"][dependency]["status"], "ok",
                "{report}"
            );
        }
    }
    let url = format!("{}/metrics", agent.base());
    let (status, text) = Call::get(&url).send().await;
    assert_eq!(status, 200);
    assert!(text.contains("\na2a_build_info{version=\""), "{text}");
}
