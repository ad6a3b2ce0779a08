//! `add_event` returns a new thread and does not change the old one.
//! replace: `return thread.add_event(event)`
//! with: `thread.add_event(event); return thread`
//! error: `unused_must_use`
#![deny(unused_must_use)]

use a2a_lambda::prelude::*;
use a2a_lambda::task::Message;

pub fn say(thread: Thread, event: Message) -> Thread {
    return thread.add_event(event);
}
