//! The `#[skill]` attribute of `a2a-lambda`. It generates metadata and compile-time checks.
//! Everything it generates can be written by hand.

mod attributes;
mod expand;
mod sources;

use proc_macro::TokenStream;

/// Makes a struct or an `async fn` a skill.
///
/// The arguments:
///
/// - `id` and `tags` are required.
/// - `description` defaults to the doc comment, which is required without it.
/// - `name` defaults to the id.
/// - `examples` are requests that the card shows. A text that is one of them goes to the skill.
/// - `text` is a pattern of texts that go to the skill, or a list of them:
///   `text = "add {a} and {b}"`, with places for fields of the input. The skill takes text and
///   data, as with `TextOr`.
/// - `refines` is a pattern of texts that refine a result of the skill, or a list of them:
///   `refines = "make it {change}"`. Directly after a task of the skill such a text is a new one,
///   which refers to it.
/// - `input_modes` and `output_modes` default to what the types imply. Their form is
///   checked at compile time.
/// - `background = true` runs each turn in a worker at once, for more than about 20 s of work.
/// - `cancel_words = true`: "cancel" or "never mind" as the answer to a question of the skill
///   cancels the task.
/// - `effect = "read"` says that the skill changes nothing that outlives its task. Without it a
///   model may call the skill only if the user confirms the call.
/// - `accepts_routed = true`: a skill that writes also takes, without a question to the user, an
///   input that the model of the router wrote.
/// - `keeps_input = false` keeps the messages to the skill out of the history and the thread.
/// - `states` are the types of the `State`s that a struct takes: `states = [Prices]`.
///
/// The item is one of:
///
/// - A **struct**: the attribute implements `Skill`; implement `SkillHandler` yourself.
/// - An **`async fn([cx,] [state: State<T>, …] input) -> AgentResult<R>`**: it becomes a function of the
///   same name and visibility that makes a one-shot skill. `R` is an output type (completes the
///   task), `Content` (a reply without a task), or an `OnRequestResult<O>` (used
///   unchanged).
#[proc_macro_attribute]
pub fn skill(attributes: TokenStream, item: TokenStream) -> TokenStream {
    match expand::skill(attributes.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
