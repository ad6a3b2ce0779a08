use super::{data, skill_test};
use a2a_lambda::SkillTest;
use a2a_lambda::skill::Content;
use a2a_lambda::task::{Event, TaskState};
use serde_json::json;

/// The events: texts of updates and names of artifacts, with `+` in front for an appended
/// chunk and `.` at the end for the last one.
fn shown(skill_test: &SkillTest) -> Vec<String> {
    let events = skill_test.events().iter();
    events
        .map(|event| match event {
            Event::Status(update) => {
                let said = update.status.message.as_ref();
                let said = said.map(|m| Content::from_parts(m.parts.clone()));
                said.and_then(|c| c.first_text().map(str::to_owned))
                    .unwrap_or_default()
            }
            Event::Artifact(update) => format!(
                "{}{}{}",
                if update.append { "+" } else { "" },
                update.artifact.name.as_deref().unwrap_or_default(),
                if update.last_chunk { "." } else { "" },
            ),
        })
        .collect()
}

#[tokio::test]
async fn events_are_sent_in_order() {
    let mut skill_test = skill_test("generate-report");
    skill_test
        .send("Generate Q4 financial report")
        .await
        .unwrap();
    assert_eq!(
        shown(&skill_test),
        [
            "Analyzing data...",
            "analysis.json",
            "Generating charts...",
            "charts.json",
            "Compiling final report...",
            "report.md",
            "+report.md",
            "+report.md.",
            "final_report.json.",
            "Report generation complete!",
        ]
    );
}

#[tokio::test]
async fn a_report_is_made_of_the_figures_given() {
    let figures = json!({
        "title": "Q4",
        "points": [{ "label": "revenue", "value": 120 }, { "label": "cost", "value": 80 }],
    });
    let reply = skill_test("generate-report")
        .send(data(&figures))
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Completed));
    let analysis = reply.artifact_data("analysis.json").unwrap();
    let insights = json!(["2 figures", "highest: revenue (120)", "lowest: cost (80)"]);
    assert_eq!(analysis["insights"], insights);
    let report = reply.artifact_data("final_report.json").unwrap();
    let bars = json!([
        { "label": "revenue", "percent": 60 },
        { "label": "cost", "percent": 40 },
    ]);
    assert_eq!(report["charts"], json!([{ "title": "Q4", "bars": bars }]));
    assert_eq!(
        report["charts"],
        reply.artifact_data("charts.json").unwrap()
    );
}

#[tokio::test]
async fn appended_chunks_form_one_text() {
    let reply = skill_test("generate-report")
        .send("Sales: north 3, south 1")
        .await
        .unwrap();
    let text = reply.artifact_text("report.md").unwrap();
    assert_eq!(
        text,
        "# Sales: north 3, south 1\n\
         \n## Analysis\n\n- 2 figures\n- highest: north (3)\n- lowest: south (1)\n\
         \n## Shares\n\n- north: 75 %\n- south: 25 %\n"
    );
    let names = reply.task().unwrap().artifacts.as_ref().unwrap().iter();
    let names: Vec<_> = names
        .map(|artifact| artifact.name.as_deref().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "analysis.json",
            "charts.json",
            "report.md",
            "final_report.json"
        ]
    );
}

#[tokio::test]
async fn canceled_report_has_no_final_artifact() {
    let mut skill_test = skill_test("generate-report");
    let reply = skill_test
        .cancel_after(1)
        .send("Generate Q4 financial report")
        .await
        .unwrap();
    assert_eq!(reply.state(), Some(TaskState::Canceled));
    assert!(reply.artifact("final_report.json").is_none());
}
