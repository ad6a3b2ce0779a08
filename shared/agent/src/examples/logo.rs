//! A skill that refines the result of an earlier task in a new task.

use a2a_lambda::prelude::*;
use a2a_lambda::task::Part;

/// The name of the artifact; the same in every task, so that a later task finds it.
const NAME: &str = "logo.svg";
const COLORS: [&str; 6] = ["black", "red", "green", "blue", "orange", "purple"];

/// Draws a logo, or draws the one of an earlier task again as you wish.
#[skill(
    id = "logo",
    name = "Logo designer",
    tags = ["example", "image", "design", "draw"],
    examples = ["Generate logo", "Draw a red square logo"],
    input_modes = ["text/plain"],
    output_modes = ["image/svg+xml"],
)]
pub(crate) async fn logo(
    cx: &mut TaskContext<'_>,
    wish: String,
) -> AgentResult<OnRequestResult<()>> {
    // The newest referenced logo is refined.
    let mut earlier = cx.references().await?.iter().rev();
    let before = earlier.find_map(|task| task.artifact(NAME)?.text());
    let logo = before.as_deref().map_or(Logo::FIRST, Logo::read);
    Ok(OnRequestResult::Completed {
        message: Some("Here it is.".into()),
        output: (),
        artifacts: vec![logo.as_wished(&wish).draw()],
    })
}

#[derive(Clone, Copy)]
struct Logo {
    square: bool,
    color: &'static str,
}

impl Logo {
    const FIRST: Self = Self {
        square: false,
        color: "black",
    };

    /// Reads shape and color from an earlier drawing.
    fn read(drawing: &str) -> Self {
        let filled = |color: &&&str| drawing.contains(&format!("fill=\"{color}\""));
        Self {
            square: drawing.contains("<rect"),
            color: COLORS.iter().find(filled).unwrap_or(&Self::FIRST.color),
        }
    }

    fn as_wished(mut self, wish: &str) -> Self {
        let wish = wish.to_lowercase();
        let said = |word: &str| wish.split(|c: char| !c.is_alphabetic()).any(|w| w == word);
        if let Some(color) = COLORS.iter().find(|color| said(color)) {
            self.color = color;
        }
        self.square = (self.square || said("square")) && !said("round");
        self
    }

    fn draw(self) -> Artifact {
        let color = self.color;
        let shape = if self.square {
            format!(r#"<rect x="4" y="4" width="56" height="56" fill="{color}"/>"#)
        } else {
            format!(r#"<circle cx="32" cy="32" r="28" fill="{color}"/>"#)
        };
        let drawing = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64">{shape}</svg>"#
        );
        let part = Part {
            filename: Some(NAME.to_owned()),
            media_type: Some("image/svg+xml".to_owned()),
            ..Part::text(drawing)
        };
        Artifact::from_parts(NAME, vec![part])
    }
}
