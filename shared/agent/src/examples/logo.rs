//! A skill that refines the result of an earlier task in a new task.

use super::png::{Picture, description};
use a2a_lambda::prelude::*;

/// The name of the artifact; the same in every task, so that a later task finds it.
const NAME: &str = "logo.png";
/// The colors by name: red, green, blue.
const COLORS: [(&str, [u8; 3]); 6] = [
    ("black", [0, 0, 0]),
    ("red", [204, 0, 0]),
    ("green", [0, 136, 0]),
    ("blue", [0, 51, 204]),
    ("orange", [255, 136, 0]),
    ("purple", [119, 0, 153]),
];
/// Width and height in pixels.
const SIZE: u32 = 64;

/// Draws a logo, or draws the one of an earlier task again as you wish.
#[skill(
    id = "logo",
    name = "Logo designer",
    tags = ["example", "image", "design", "draw"],
    examples = ["Generate logo", "Draw a red square logo"],
    refines = ["make it {change}"],
    input_modes = ["text/plain"],
    output_modes = ["image/png"],
    effect = "read",
)]
pub(crate) async fn logo(
    cx: &mut TaskContext<'_>,
    wish: String,
) -> AgentResult<OnRequestResult<()>> {
    // The newest referenced logo is refined.
    let mut earlier = cx.references().await?.iter().rev();
    let before = earlier.find_map(|task| Logo::read(task.artifact(NAME)?));
    let logo = before.unwrap_or(Logo::FIRST);
    Ok(OnRequestResult::Completed {
        message: Some("Here it is.".into()),
        output: (),
        artifacts: vec![logo.as_wished(&wish).draw()?],
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

    /// Reads shape and color from the description in an earlier drawing.
    fn read(drawing: &Artifact) -> Option<Self> {
        let file = drawing.file()?;
        let (shape, color) = description(file.bytes()?)?.split_once(' ')?;
        let color = COLORS.iter().find(|(name, _)| *name == color)?;
        Some(Self {
            square: shape == "square",
            color: color.0,
        })
    }

    fn as_wished(mut self, wish: &str) -> Self {
        let wish = wish.to_lowercase();
        let says = |word: &str| wish.split(|c: char| !c.is_alphabetic()).any(|w| w == word);
        if let Some((color, _)) = COLORS.iter().find(|(color, _)| says(color)) {
            self.color = color;
        }
        self.square = (self.square || says("square")) && !says("round");
        self
    }

    fn draw(self) -> AgentResult<Artifact> {
        let entry = COLORS.iter().find(|(name, _)| *name == self.color);
        let color = entry.map_or([0; 3], |(_, color)| *color);
        // Twice the distance from the center, so that it is whole.
        let off = |at: u32| (2 * at + 1).abs_diff(SIZE);
        let inside = |x, y| match self.square {
            true => off(x).max(off(y)) < 56,
            false => off(x).pow(2) + off(y).pow(2) < 56_u32.pow(2),
        };
        let pixels = (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y)));
        let pixel = |(x, y)| if inside(x, y) { color } else { [255; 3] };
        let picture = Picture {
            width: SIZE,
            height: SIZE,
            pixels: pixels.map(pixel).collect(),
        };
        let shape = if self.square { "square" } else { "round" };
        let text = format!("{shape} {}", self.color);
        Ok(Artifact::from_file(NAME, "image/png", picture.file(&text)?))
    }
}
