//! The future of a skill.
//!
//! It is polled only when something in it was woken. Once all of it waits, the turn gives it the
//! next result. So which branch of a skill continues first depends only on the order of the
//! results, and not on what else the event loop does.

use super::skill_host::TurnHandle;
use crate::clock::Clock;
use crate::task::Timestamp;
use a2a_lambda_skill::SkillOutcome;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The running skill of a turn.
pub(in crate::engine) struct SkillFuture<'a> {
    skill: BoxFuture<'a, SkillOutcome>,
    turn: &'a TurnHandle<'a>,
    clock: &'a dyn Clock,
    signal: Arc<SkillWaker>,
    waker: Waker,
    /// When something last woke the skill.
    pub(super) woken_at: Timestamp,
}

#[derive(Debug)]
struct SkillWaker {
    is_woken: AtomicBool,
    event_loop: AtomicWaker,
}

impl Wake for SkillWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.event_loop.wake();
    }
}

impl<'a> SkillFuture<'a> {
    pub(in crate::engine) fn new(
        skill: BoxFuture<'a, SkillOutcome>,
        turn: &'a TurnHandle<'a>,
        clock: &'a dyn Clock,
    ) -> Self {
        let signal = Arc::new(SkillWaker {
            is_woken: AtomicBool::new(true),
            event_loop: AtomicWaker::new(),
        });
        Self {
            skill,
            turn,
            clock,
            waker: Arc::clone(&signal).into(),
            signal,
            woken_at: clock.now(),
        }
    }

    /// Ends the skill, which has returned: the next poll gives its outcome.
    pub(in crate::engine) fn end(&mut self, outcome: SkillOutcome) {
        self.skill = Box::pin(std::future::ready(outcome));
        self.signal.is_woken.store(true, Ordering::Release);
    }
}

impl Future for SkillFuture<'_> {
    type Output = SkillOutcome;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<SkillOutcome> {
        let this = &mut *self;
        this.signal.event_loop.register(task.waker());
        loop {
            if this.signal.is_woken.swap(false, Ordering::Acquire) {
                this.woken_at = this.clock.now();
                let mut task = Context::from_waker(&this.waker);
                if let Poll::Ready(outcome) = this.skill.as_mut().poll(&mut task) {
                    return Poll::Ready(outcome);
                }
                // What woke the skill meanwhile has also woken the event loop: it comes back
                // after its other work.
                if this.signal.is_woken.load(Ordering::Acquire) {
                    return Poll::Pending;
                }
            }
            if !this.turn.scopes.give() {
                return Poll::Pending;
            }
        }
    }
}
