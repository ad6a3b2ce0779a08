//! The tool calls of a streamed answer.
//!
//! A piece of arguments belongs to the newest call of the deltas. Servers may interleave the
//! pieces of parallel calls. So one call streams at a time; the pieces of later calls wait.

use crate::provider::ModelCallError;
use a2a_lambda_skill::model::Delta;
use std::collections::VecDeque;

/// The tool calls of one answer, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct ToolCallStream {
    calls: Vec<StreamedCall>,
    /// The call that streams; the calls before it are complete.
    live: usize,
}

#[derive(Debug, Default)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    /// Pieces that wait.
    waiting: String,
    /// Whether its start was emitted.
    has_begun: bool,
    /// Whether there were arguments.
    has_arguments: bool,
    /// Whether it is complete.
    is_closed: bool,
}

impl ToolCallStream {
    /// Whether the answer has a tool call.
    pub(super) const fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Takes a piece of a call: its id and name, which usually come once, and more arguments.
    ///
    /// The index tells the calls apart. Some servers send none, or one index for all calls;
    /// then the id does: a piece with a name and another id begins a call. Id and name of a
    /// call that has begun for the reader do not change.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
        out: &mut VecDeque<Delta>,
    ) {
        let position = match (index, id) {
            (Some(_), _) => self.calls.iter().rposition(|call| call.index == index),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let is_other = |call: &StreamedCall| {
            name.is_some() && !call.id.is_empty() && id.is_some_and(|id| id != call.id)
        };
        let position = position.filter(|at| !self.calls.get(*at).is_some_and(is_other));
        let at = position.unwrap_or_else(|| {
            self.calls.push(StreamedCall {
                index,
                ..StreamedCall::default()
            });
            self.calls.len().saturating_sub(1)
        });
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if !call.has_begun {
            call.id = id.map_or_else(|| std::mem::take(&mut call.id), str::to_owned);
            call.name = name.map_or_else(|| std::mem::take(&mut call.name), str::to_owned);
        }
        call.has_arguments |= !arguments.is_empty();
        call.waiting.push_str(arguments);
        self.release(out);
    }

    /// Ends the call. `arguments` are all of them; they count if no piece came before.
    pub(super) fn close(&mut self, index: Option<u64>, arguments: &str, out: &mut VecDeque<Delta>) {
        let call = self.calls.iter_mut().rfind(|call| call.index == index);
        if let Some(call) = call {
            if !call.has_arguments {
                call.has_arguments = !arguments.is_empty();
                arguments.clone_into(&mut call.waiting);
            }
            call.is_closed = true;
        }
        self.release(out);
    }

    /// Ends all calls and emits what waits.
    ///
    /// # Errors
    /// [`ModelCallError::Form`] when a call has no name.
    pub(super) fn close_all(&mut self, out: &mut VecDeque<Delta>) -> Result<(), ModelCallError> {
        for call in &mut self.calls {
            call.is_closed = true;
        }
        self.release(out);
        if self.live == self.calls.len() {
            Ok(())
        } else {
            Err(ModelCallError::Form("a tool call without a name"))
        }
    }

    /// Emits what the live call has, and the calls after it once it is complete.
    fn release(&mut self, out: &mut VecDeque<Delta>) {
        while let Some(call) = self.calls.get_mut(self.live) {
            if call.name.is_empty() {
                return;
            }
            if !std::mem::replace(&mut call.has_begun, true) {
                // Some servers send an empty id.
                if call.id.is_empty() {
                    call.id = format!("call_{}", self.live);
                }
                out.push_back(Delta::ToolUse {
                    id: call.id.clone(),
                    name: call.name.clone(),
                });
            }
            if !call.waiting.is_empty() {
                out.push_back(Delta::ToolInput(std::mem::take(&mut call.waiting)));
            }
            if !call.is_closed {
                return;
            }
            if !call.has_arguments {
                out.push_back(Delta::ToolInput("{}".to_owned()));
            }
            self.live = self.live.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(id: &str, name: &str) -> Delta {
        Delta::ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
        }
    }

    fn input(text: &str) -> Delta {
        Delta::ToolInput(text.to_owned())
    }

    #[test]
    fn interleaved_pieces_stay_with_their_call() {
        let (mut calls, mut out) = (ToolCallStream::default(), VecDeque::new());
        calls.add(Some(0), Some("a"), Some("stock"), "", &mut out);
        calls.add(Some(1), Some("b"), Some("price"), "{\"x\"", &mut out);
        calls.add(Some(0), None, None, "{}", &mut out);
        assert_eq!(out, [start("a", "stock"), input("{}")]);
        calls.add(Some(1), None, None, ":1}", &mut out);
        calls.close_all(&mut out).unwrap();
        assert_eq!(out.split_off(2), [start("b", "price"), input("{\"x\":1}")]);
    }

    #[test]
    fn calls_without_an_index_or_with_one_index_differ_by_id() {
        for index in [None, Some(0)] {
            let (mut calls, mut out) = (ToolCallStream::default(), VecDeque::new());
            calls.add(index, Some("a"), Some("stock"), "{\"n\":", &mut out);
            calls.add(index, None, None, "1}", &mut out);
            calls.add(index, Some("b"), Some("stock"), "{}", &mut out);
            calls.close_all(&mut out).unwrap();
            let one = [start("a", "stock"), input("{\"n\":"), input("1}")];
            let other = [start("b", "stock"), input("{}")];
            assert_eq!(out, [&one[..], &other].concat(), "{index:?}");
        }
    }

    #[test]
    fn calls_without_id_or_arguments_get_both() {
        let (mut calls, mut out) = (ToolCallStream::default(), VecDeque::new());
        calls.add(Some(0), None, Some("stock"), "", &mut out);
        calls.close(Some(0), "", &mut out);
        calls.add(Some(1), None, Some("price"), "", &mut out);
        calls.close(Some(1), "{\"all\":1}", &mut out);
        calls.close_all(&mut out).unwrap();
        let one = [start("call_0", "stock"), input("{}")];
        let other = [start("call_1", "price"), input("{\"all\":1}")];
        assert_eq!(out, [one, other].concat());
    }

    #[test]
    fn call_without_a_name_is_an_error() {
        let (mut calls, mut out) = (ToolCallStream::default(), VecDeque::new());
        calls.add(Some(0), Some("a"), None, "{}", &mut out);
        assert!(calls.close_all(&mut out).is_err());
        assert!(out.is_empty());
    }
}
