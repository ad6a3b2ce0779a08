//! The `#[skill]` attribute of `a2a-lambda`: metadata and checks, no behaviour.
//! Everything it writes can be written by hand.

mod attributes;
mod expand;

use proc_macro::TokenStream;

/// Makes a skill of a struct or an `async fn`.
///
/// `#[skill(id, name, description, tags, examples, input_modes, output_modes,
/// background)]`: `id` and `tags` are needed; `description` is else the doc
/// comment, `name` the id, and the modes are what the types imply. The form of
/// the modes is checked at compile time.
///
/// - On a **struct** it writes `impl Skill`; write `impl SkillHandler` yourself.
/// - On an **`async fn([cx,] input) -> AgentResult<R>`** it makes a unit struct
///   of the same name and visibility with a one-shot handler. `R` is an output
///   type (the task completes with it), `Content` (a reply without a task), or
///   an `OnRequestResult<O>` as it is.
#[proc_macro_attribute]
pub fn skill(attributes: TokenStream, item: TokenStream) -> TokenStream {
    match expand::skill(attributes.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
