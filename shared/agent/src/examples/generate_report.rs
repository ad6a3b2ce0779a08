//! A skill that shows its progress: status updates, partial artifacts, and a text in
//! chunks.

use a2a_lambda::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Generates a report with charts from figures.
#[skill(
    id = "generate-report",
    name = "Report generator",
    tags = ["example", "reports", "analysis", "charts"],
    examples = ["Generate Q4 financial report", "Generate a report: revenue 120, cost 80.5"],
    output_modes = ["application/json", "text/plain"],
    effect = "read",
)]
pub(crate) struct GenerateReport;

/// What to report on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    /// The title of the report.
    title: String,
    /// The figures, in the order of the report.
    points: Vec<Point>,
}

/// One figure.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    label: String,
    value: f64,
}

#[derive(Serialize)]
struct Analysis {
    points: Vec<Point>,
    insights: Vec<String>,
}

#[derive(Serialize)]
struct Chart {
    title: String,
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    label: String,
    /// Whole percent of the sum of all sizes.
    percent: u8,
}

#[derive(Serialize)]
struct Report {
    title: String,
    summary: String,
    charts: Vec<Chart>,
}

impl SkillHandler for GenerateReport {
    type Input = TextOr<Figures>;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: TextOr<Figures>,
    ) -> AgentResult<OnRequestResult<()>> {
        let Figures { title, points } = match input {
            TextOr::Data(figures) => figures,
            TextOr::Text(wish) => in_words(wish),
        };
        cx.send_intermediate_update("Analyzing data...").await?;
        let analysis = analyze(points);
        let partial = Artifact::from_json("analysis.json", &analysis)?;
        cx.send_partial_artifact(partial).await?;

        cx.send_intermediate_update("Generating charts...").await?;
        let charts = vec![draw(&title, &analysis.points)];
        let partial = Artifact::from_json("charts.json", &charts)?;
        cx.send_partial_artifact(partial).await?;

        cx.send_intermediate_update("Compiling final report...")
            .await?;
        write(cx, &title, &analysis, &charts).await?;
        let summary = analysis.insights.join("; ");
        let report = Report {
            title,
            summary,
            charts,
        };
        Ok(OnRequestResult::Completed {
            message: Some("Report generation complete!".into()),
            output: (),
            artifacts: vec![Artifact::from_json("final_report.json", &report)?],
        })
    }
}

/// Reads figures from text: each number belongs to the word before it.
fn in_words(wish: String) -> Figures {
    let mut points = Vec::new();
    let mut label = None;
    for word in wish.split_whitespace() {
        let word = word.trim_matches([',', ';', ':', '.']);
        match (word.parse::<f64>(), label.take()) {
            (Ok(value), Some(label)) if value.is_finite() => points.push(Point { label, value }),
            _ => label = Some(word.to_owned()),
        }
    }
    Figures {
        title: wish,
        points,
    }
}

fn analyze(points: Vec<Point>) -> Analysis {
    let by_value = |a: &&Point, b: &&Point| a.value.total_cmp(&b.value);
    let mut insights = vec![format!("{} figures", points.len())];
    if let Some(highest) = points.iter().max_by(by_value) {
        insights.push(format!("highest: {} ({})", highest.label, highest.value));
    }
    if let Some(lowest) = points.iter().min_by(by_value) {
        insights.push(format!("lowest: {} ({})", lowest.label, lowest.value));
    }
    Analysis { points, insights }
}

fn draw(title: &str, points: &[Point]) -> Chart {
    let all: f64 = points.iter().map(|point| point.value.abs()).sum();
    let bar = |point: &Point| Bar {
        label: point.label.clone(),
        percent: percent(point.value.abs(), all),
    };
    Chart {
        title: title.to_owned(),
        bars: points.iter().map(bar).collect(),
    }
}

/// A share in whole percent; 0 if the total is 0.
fn percent(part: f64, all: f64) -> u8 {
    let share = (part / all * 100.0).round();
    // `as` converts NaN to 0 and saturates at both ends.
    if share > 100.0 { 100 } else { share as u8 }
}

/// Writes the report as Markdown, one section per chunk.
async fn write(
    cx: &mut TaskContext<'_>,
    title: &str,
    analysis: &Analysis,
    charts: &[Chart],
) -> AgentResult<()> {
    let mut report = cx.artifact_chunks("report.md");
    report.push(format!("# {title}\n")).await?;
    report
        .push(format!("\n## Analysis\n\n{}", list(&analysis.insights)))
        .await?;
    let bars = charts.iter().flat_map(|chart| &chart.bars);
    let bars: Vec<String> = bars
        .map(|bar| format!("{}: {} %", bar.label, bar.percent))
        .collect();
    report
        .finish_with(format!("\n## Shares\n\n{}", list(&bars)))
        .await
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}
