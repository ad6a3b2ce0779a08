//! The API Chat Completions.
//!
//! - `request`: the body of a request
//! - `reply`: a whole answer
//! - `stream`: the chunks of a streamed answer
//! - `kept`: what returns to the service unchanged

mod kept;
mod reply;
mod request;
mod stream;

pub(super) use reply::reply;
pub(super) use request::body;
pub(super) use stream::ChatStream;

use a2a_lambda_skill::model::StopReason;

/// The stop reason of `finish_reason`.
///
/// A forced call ends with `stop`, and a refusal too. Whether the model waits for tools
/// depends on its calls alone.
fn stop_reason(finish: &str, calls: bool, is_refused: bool) -> StopReason {
    match finish {
        "content_filter" => StopReason::Filtered,
        _ if is_refused => StopReason::Filtered,
        "length" => StopReason::MaxTokens,
        "stop" | "tool_calls" if calls => StopReason::ToolUse,
        "stop" | "tool_calls" => StopReason::EndTurn,
        _ => StopReason::Other,
    }
}
