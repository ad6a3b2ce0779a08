//! The messages of a context, as an immutable value.

use crate::task::Message;
use std::fmt;
use std::sync::Arc;

/// The messages of a context, oldest first.
///
/// A thread never changes. [`Thread::add_event`] returns a new thread, which shares
/// the earlier messages with the old one. A clone only increments a counter.
///
/// ```
/// use a2a_lambda_model::task::{Message, Part};
/// use a2a_lambda_model::thread::Thread;
///
/// let before = Thread::new();
/// let after = before.add_event(Message::from_user("m-1", vec![Part::text("hello")]));
/// assert_eq!((before.len(), after.len()), (0, 1));
/// ```
#[derive(Clone, Default)]
pub struct Thread {
    newest: Option<Arc<Node>>,
    cut: bool,
}

/// The newest message, and the thread before it.
struct Node {
    event: Message,
    before: Thread,
    len: usize,
}

impl Thread {
    /// A thread without messages.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            newest: None,
            cut: false,
        }
    }

    /// Whether messages at the beginning may be missing. A thread holds the turn's own
    /// task and the 20 newest other tasks of the context, and at most 100 messages of
    /// them. A skill that needs older messages has to keep a summary of them with
    /// `save_session`, or ask the user.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// The same messages, marked as a thread that [`is_cut`](Thread::is_cut).
    #[must_use]
    pub fn cut(self) -> Self {
        Self { cut: true, ..self }
    }

    /// A new thread with the message `event` at its end. `self` does not change, and
    /// nothing is stored: a dropped result has no effect.
    #[must_use]
    pub fn add_event(&self, event: Message) -> Self {
        let node = Node {
            event,
            before: self.clone(),
            len: self.len() + 1,
        };
        Self {
            newest: Some(Arc::new(node)),
            cut: self.cut,
        }
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.newest.as_ref().map_or(0, |node| node.len)
    }

    /// Whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// All messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.last(usize::MAX)
    }

    /// The `n` newest messages, the oldest of them first.
    pub fn last(&self, n: usize) -> impl DoubleEndedIterator<Item = &Message> {
        let mut newest_first = Vec::with_capacity(n.min(self.len()));
        let mut rest = self;
        while let (Some(node), true) = (&rest.newest, newest_first.len() < n) {
            newest_first.push(&node.event);
            rest = &node.before;
        }
        newest_first.into_iter().rev()
    }
}

impl FromIterator<Message> for Thread {
    fn from_iter<I: IntoIterator<Item = Message>>(events: I) -> Self {
        events
            .into_iter()
            .fold(Self::new(), |thread, event| thread.add_event(event))
    }
}

impl PartialEq for Thread {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Drop for Node {
    // A loop: the derived drop recurses, and a long thread would overflow the stack.
    fn drop(&mut self) {
        let mut rest = self.before.newest.take();
        while let Some(node) = rest {
            rest = Arc::into_inner(node).and_then(|mut node| node.before.newest.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Thread;
    use crate::task::{Message, Part};

    fn said(n: usize) -> Message {
        Message::from_user(format!("m-{n}"), vec![Part::text(n.to_string())])
    }

    fn ids(events: impl Iterator<Item = impl std::borrow::Borrow<Message>>) -> Vec<String> {
        events.map(|event| event.borrow().id.clone()).collect()
    }

    #[test]
    fn adding_an_event_does_not_change_the_thread() {
        let first = Thread::new().add_event(said(1));
        let left = first.add_event(said(2));
        let right = first.add_event(said(3));
        assert_eq!(ids(first.iter()), ["m-1"]);
        assert_eq!(ids(left.iter()), ["m-1", "m-2"]);
        assert_eq!(ids(right.iter()), ["m-1", "m-3"]);
    }

    #[test]
    fn threads_share_their_common_messages() {
        let shared: Thread = (0..3).map(said).collect();
        let longer = shared.add_event(said(3));
        let first = |thread: &Thread| std::ptr::from_ref(thread.iter().next().unwrap());
        assert!(std::ptr::eq(first(&shared), first(&longer)));
    }

    #[test]
    fn last_returns_the_newest_messages_oldest_first() {
        let thread: Thread = (0..5).map(said).collect();
        assert_eq!(ids(thread.last(2)), ["m-3", "m-4"]);
        assert_eq!(thread.last(9).count(), 5);
        assert_eq!(thread.last(0).count(), 0);
    }

    #[test]
    fn a_very_long_thread_can_be_dropped() {
        let thread: Thread = (0..200_000).map(said).collect();
        let shared = thread.clone();
        drop(thread);
        assert_eq!(shared.len(), 200_000);
    }

    #[test]
    fn threads_with_the_same_messages_are_equal() {
        let a: Thread = (0..3).map(said).collect();
        let b: Thread = (0..3).map(said).collect();
        assert_eq!(a, b);
        assert_ne!(a, b.add_event(said(3)));
    }
}
