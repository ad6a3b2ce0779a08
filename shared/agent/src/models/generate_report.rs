//! A skill with three functions of a model. It shows its progress and its partial results.

use a2a_lambda::llm::LlmFunction;
use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Generates comprehensive analysis reports with charts.
#[skill(
    id = "generate_report",
    name = "Report Generator",
    tags = ["reports", "analysis"],
    examples = ["Generate Q4 financial report"],
    input_modes = ["text/plain"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(super) struct GenerateReport;

/// What the data says.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Analysis {
    data_points: Vec<DataPoint>,
    insights: Vec<String>,
}

/// One figure.
#[derive(Serialize, Deserialize, JsonSchema)]
struct DataPoint {
    label: String,
    value: f64,
}

/// A chart.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Chart {
    title: String,
    /// `bar`, `line` or `pie`.
    kind: String,
    data_points: Vec<DataPoint>,
}

/// The final report.
#[derive(Serialize, Deserialize, JsonSchema)]
struct AnalysisReport {
    summary: String,
    charts: Vec<Chart>,
}

fn analyze_data() -> LlmFunction<Analysis> {
    LlmFunction::new("Find the figures in the text, and what they show.")
}

fn generate_charts() -> LlmFunction<Vec<Chart>> {
    LlmFunction::new("Choose the charts that show the analysis best.").named("Charts")
}

fn compile_report() -> LlmFunction<AnalysisReport> {
    LlmFunction::new("Write the report from the analysis and the charts.")
}

impl SkillHandler for GenerateReport {
    type Input = String;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        wish: String,
    ) -> AgentResult<OnRequestResult<()>> {
        cx.send_intermediate_update("Analyzing data...").await?;
        let analysis = analyze_data().run(cx, &wish).await?;
        let partial = Artifact::from_json("analysis.json", &analysis)?;
        cx.send_partial_artifact(partial).await?;

        cx.send_intermediate_update("Generating charts...").await?;
        let charts = generate_charts().run(cx, &analysis).await?;
        let partial = Artifact::from_json("charts.json", &charts)?;
        cx.send_partial_artifact(partial).await?;

        cx.send_intermediate_update("Compiling final report...")
            .await?;
        let report = compile_report().run(cx, (&analysis, &charts)).await?;
        Ok(OnRequestResult::Completed {
            message: Some("Report generation complete!".into()),
            output: (),
            artifacts: vec![Artifact::from_json("final_report.json", &report)?],
        })
    }
}
