//! A skill that asks for a format and delivers a file, and that refines the file of an earlier
//! task in a new one.

use super::pdf;
use a2a_lambda::prelude::*;
use serde::{Deserialize, Serialize};

/// The most bytes of a line.
const LINE: usize = 80;

/// Creates a report as a file, and makes the one of an earlier task shorter.
#[skill(
    id = "create-report",
    name = "Report writer",
    tags = ["example", "documents", "pdf", "file"],
    examples = ["Create a report", "Create a report on sales as PDF"],
    refines = ["make it shorter"],
    cancel_words = true,
    input_modes = ["text/plain"],
    output_modes = ["application/pdf", "text/markdown", "text/plain"],
    effect = "read",
)]
pub(crate) struct CreateReport;

/// The report waits for its format.
#[derive(Serialize, Deserialize)]
pub(crate) struct WhichFormat {
    wish: String,
}

impl SkillSlot for WhichFormat {}

#[derive(Debug, Clone, Copy)]
enum FileFormat {
    Pdf,
    Markdown,
    Plain,
}

impl FileFormat {
    const ALL: [Self; 3] = [Self::Pdf, Self::Markdown, Self::Plain];

    /// The name of the artifact: the same for each version of a report.
    const fn name(self) -> &'static str {
        match self {
            Self::Pdf => "report.pdf",
            Self::Markdown => "report.md",
            Self::Plain => "report.txt",
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Markdown => "text/markdown",
            Self::Plain => "text/plain",
        }
    }

    /// The format that a text names.
    fn of(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let mut words = text.split(|letter: char| !letter.is_alphanumeric());
        words.find_map(|word| match word {
            "pdf" => Some(Self::Pdf),
            "markdown" => Some(Self::Markdown),
            "plain" | "text" => Some(Self::Plain),
            _ => None,
        })
    }

    fn file(self, lines: &[String]) -> Artifact {
        let content = match self {
            Self::Pdf => pdf::file(lines),
            Self::Markdown | Self::Plain => lines.join("\n").into_bytes(),
        };
        Artifact::from_file(self.name(), self.media_type(), content)
    }

    /// The lines of an earlier report.
    fn lines(self, content: &[u8]) -> Vec<String> {
        match self {
            Self::Pdf => pdf::lines(content),
            Self::Markdown | Self::Plain => {
                let text = String::from_utf8_lossy(content);
                text.lines().map(str::to_owned).collect()
            }
        }
    }
}

const QUESTION: &str = "What format would you like?";

impl SkillHandler<WhichFormat> for CreateReport {
    type Input = String;
    type Output = ();

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        wish: String,
    ) -> AgentResult<OnRequestResult<(), WhichFormat>> {
        if let Some((format, lines)) = earlier(cx).await? {
            return Ok(OnRequestResult::Completed {
                message: Some("Here's the shorter version".into()),
                output: (),
                artifacts: vec![format.file(&shorter(&lines))],
            });
        }
        match FileFormat::of(&wish) {
            Some(format) => Ok(OnRequestResult::Completed {
                message: Some("Here's your report".into()),
                output: (),
                artifacts: vec![format.file(&report_lines(&wish))],
            }),
            None => OnRequestResult::ask(QUESTION, WhichFormat { wish }),
        }
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        slot: WhichFormat,
        answer: Content,
    ) -> AgentResult<OnInputResult<(), WhichFormat>> {
        match FileFormat::of(answer.text()?) {
            Some(format) => Ok(OnInputResult::Completed {
                message: Some("Here's your report".into()),
                output: (),
                artifacts: vec![format.file(&report_lines(&slot.wish))],
            }),
            None => OnInputResult::ask(QUESTION, slot),
        }
    }
}

/// The newest report that the message refers to.
async fn earlier(cx: &TaskContext<'_>) -> AgentResult<Option<(FileFormat, Vec<String>)>> {
    for task in cx.references().await?.iter().rev() {
        for format in FileFormat::ALL {
            if let Some(file) = task.artifact(format.name()).and_then(Artifact::file) {
                let lines = format.lines(&cx.read_file(&file).await?);
                return Ok(Some((format, lines)));
            }
        }
    }
    Ok(None)
}

/// A report on the wish. A real skill would ask a model here.
fn report_lines(wish: &str) -> Vec<String> {
    let mut lines = vec!["Report".to_owned(), String::new()];
    let mut line = String::new();
    for word in wish.split_whitespace() {
        if !line.is_empty() && line.len() + word.len() >= LINE {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    for (chapter, text) in [
        ("Summary", "It went as planned."),
        ("Figures", "They are complete."),
        ("Outlook", "It stays as it is."),
    ] {
        lines.extend([String::new(), chapter.to_owned(), text.to_owned()]);
    }
    lines
}

/// The first half, with at least the title.
fn shorter(lines: &[String]) -> Vec<String> {
    let count = lines.len().div_ceil(2);
    lines.iter().take(count).cloned().collect()
}
