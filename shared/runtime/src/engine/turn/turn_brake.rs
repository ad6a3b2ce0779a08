//! Stops a running turn that an operator brakes.
//!
//! No step and no call of a model begins any more. A call of a model that runs is dropped. The turn
//! ends when no step works: its results are stored, and another run continues behind them.

use super::scopes::{Scopes, StepProgress};
use crate::engine::reader::Reader;
use crate::task::{A2aError, TenantId};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio::sync::Notify;

/// What a running turn knows of the brake.
pub(in crate::engine) struct TurnBrake<'e> {
    reader: &'e Reader,
    tenant: TenantId,
    skill: Option<&'static str>,
    /// Why the turn has to end.
    refusal: OnceLock<A2aError>,
    /// Ends the calls of models.
    notify: Notify,
    /// Whether a step has begun in this run.
    has_begun: AtomicBool,
}

impl<'e> TurnBrake<'e> {
    pub(in crate::engine) fn new(
        reader: &'e Reader,
        tenant: TenantId,
        skill: Option<&'static str>,
    ) -> Self {
        Self {
            reader,
            tenant,
            skill,
            refusal: OnceLock::new(),
            notify: Notify::new(),
            has_begun: AtomicBool::new(false),
        }
    }

    /// Why work of this skill must not begin.
    pub(in crate::engine) fn refusal_of(&self, skill: Option<&str>) -> Option<A2aError> {
        self.reader.known_brake().refusal(&self.tenant, skill)
    }

    /// Whether a step has begun in this run.
    pub(in crate::engine) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Lets a step begin. If the turn is braked this never returns.
    pub(in crate::engine) async fn pass(&self, scopes: &Scopes, path: &str) {
        if let Some(refusal) = self.refusal_of(self.skill) {
            self.engage(refusal);
        }
        if self.refusal.get().is_some() {
            scopes.set_progress(path, StepProgress::Held);
            pending::<()>().await;
        }
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Waits until the call of a model in the current step has to be dropped.
    pub(in crate::engine) async fn wait_in_call(&self, scopes: &Scopes) {
        let (path, notification) = (scopes.step_path(), self.notify.notified());
        if self.refusal.get().is_none() {
            notification.await;
        }
        if !path.is_empty() {
            scopes.set_progress(&path, StepProgress::Held);
        }
    }

    /// Waits until the turn is braked and no step of it works. The event loop polls this after the
    /// skill, so it sees what the skill has done.
    pub(in crate::engine) async fn wait(&self, scopes: &Scopes) -> A2aError {
        let mut timer = pin!(
            self.reader
                .wait_for_brake(&self.tenant, self.skill, |_| true)
        );
        poll_fn(|task| {
            if self.refusal.get().is_none()
                && let Poll::Ready(refusal) = timer.as_mut().poll(task)
            {
                self.engage(refusal);
            }
            match self.refusal.get() {
                Some(refusal) if scopes.is_idle() => Poll::Ready(refusal.clone()),
                _ => Poll::Pending,
            }
        })
        .await
    }

    fn engage(&self, refusal: A2aError) {
        // The first reason counts.
        let _is_later = self.refusal.set(refusal);
        self.notify.notify_waiters();
    }
}
