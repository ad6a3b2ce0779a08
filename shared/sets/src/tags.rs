//! The tags of memories and of knowledge.

use a2a_lambda::skill::{AgentError, AgentResult};

/// The most tags, and the most bytes of one.
const TAGS_MAX: usize = 16;
const TAG_MAX: usize = 64;

/// Checks the tags that a caller gives.
pub(crate) fn check_tags(tags: &[String]) -> AgentResult<()> {
    if tags.len() > TAGS_MAX {
        let text = format!(
            "`tags` has {} tags, expected at most {TAGS_MAX}",
            tags.len()
        );
        return Err(AgentError::invalid_input(text));
    }
    let wrong = |tag: &&String| tag.is_empty() || tag.len() > TAG_MAX;
    match tags.iter().find(wrong) {
        None => Ok(()),
        Some(tag) => Err(AgentError::invalid_input(format!(
            "`tags` has a tag of {} bytes, expected 1 to {TAG_MAX}",
            tag.len()
        ))),
    }
}
