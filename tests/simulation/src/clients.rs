//! The processes of a history: clients, and the functions behind them.

use crate::fleet::{Release, Released};
use crate::hub::Hub;
use crate::mutant::Mutant;
use crate::oracle::{Position, Said};
use crate::queue::{SimQueue, SimReceipt};
use crate::skills::{LETTERS, SCRIPT, SLOW};
use crate::store::SimStore;
use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{Engine, Leases, Policy, Services, relay};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::queue::Ack;
use a2a_lambda::task::{
    CancelCommand, ContextId, Frame, Generation, GetQuery, IdempotencyKey, Message, Metadata,
    Owner, Part, Refusal, SendCommand, SendMode, Sent, Subject, SubscribeCommand, Task, TaskId,
    TaskState, TenantId, Timestamp,
};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How often a turn is tried.
pub(crate) const ATTEMPTS: u32 = 3;

fn policy() -> Policy {
    Policy {
        max_attempts: ATTEMPTS,
        inline_max: 64,
        secret: vec![7],
        ..Policy::default()
    }
}

/// What a process stands on.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) hub: Arc<Hub>,
    pub(crate) store: Arc<SimStore>,
    pub(crate) engine: Engine,
    /// The engines of a fleet of two releases; none where all are of one.
    fleet: Vec<(Release, Engine)>,
    caller: Caller,
}

/// A message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) skill: &'static str,
    pub(crate) program: String,
    pub(crate) task: Option<TaskId>,
    pub(crate) client_id: Option<TaskId>,
    pub(crate) context: Option<ContextId>,
    pub(crate) mode: SendMode,
    /// The number of its idempotency key: whoever sends it again says the same.
    pub(crate) key: Option<usize>,
}

impl Letter {
    pub(crate) fn new(skill: &'static str, program: &str) -> Self {
        Self {
            skill,
            program: program.to_owned(),
            task: None,
            client_id: None,
            context: None,
            mode: SendMode::Blocking,
            key: None,
        }
    }
}

impl Site {
    pub(crate) fn new(hub: &Arc<Hub>, agent: &Arc<AgentDefinition>, caller: &Caller) -> Self {
        let store = Arc::new(SimStore::new(Arc::clone(hub)));
        let services = Services {
            tasks: store.clone(),
            threads: store.clone(),
            blobs: store.clone(),
            clock: hub.clone(),
            ids: hub.clone(),
            model: None,
        };
        Self {
            hub: Arc::clone(hub),
            store,
            engine: Engine::new(Arc::clone(agent), services, policy()),
            fleet: Vec::new(),
            caller: caller.clone(),
        }
    }

    /// From now on a process can be of any of these releases.
    pub(crate) fn run_releases(&mut self, releases: &[Release], agent: &Arc<AgentDefinition>) {
        for release in releases {
            let released = Arc::new(Released {
                store: Arc::clone(&self.store),
                hub: Arc::clone(&self.hub),
                release: *release,
            });
            let services = Services {
                tasks: released.clone(),
                threads: released,
                blobs: self.store.clone(),
                clock: self.hub.clone(),
                ids: self.hub.clone(),
                model: None,
            };
            let engine = Engine::new(Arc::clone(agent), services, policy());
            self.fleet.push((*release, engine));
        }
        self.hub.world().oracle.mixed = self.is_mixed();
    }

    /// Whether processes of two releases run.
    pub(crate) const fn is_mixed(&self) -> bool {
        !self.fleet.is_empty()
    }

    /// The site as a process of one of the releases has it.
    pub(crate) fn of_any_release(&self) -> Self {
        let mut site = self.clone();
        if self.is_mixed() {
            let mut world = self.hub.world();
            if let Some((release, engine)) = world.chance.pick(&self.fleet) {
                site.engine = engine.clone();
                world.oracle.note(|| format!("of release {release:?}:"));
            }
        }
        site
    }

    fn command(&self, letter: &Letter) -> (String, SendCommand) {
        let id = {
            let mut world = self.hub.world();
            world.ids += 1;
            let id = match letter.key {
                Some(number) => format!("keyed-{number}"),
                None => format!("said-{}", world.ids),
            };
            world.oracle.says(&id);
            id
        };
        let mut message = Message::from_user(id.clone(), vec![Part::text(&*letter.program)]);
        message.task_id.clone_from(&letter.task);
        message.context_id.clone_from(&letter.context);
        let mut metadata = Metadata::new();
        if letter.task.is_none() {
            metadata.insert("skillId".to_owned(), letter.skill.into());
        }
        let command = SendCommand {
            message,
            client_task_id: letter.client_id.clone(),
            mode: letter.mode,
            history_length: 100,
            accepted_output_modes: Vec::new(),
            push: None,
            metadata,
            generation: Generation::V10,
            idempotency_key: letter
                .key
                .and_then(|number| IdempotencyKey::parse(format!("key {number}")).ok()),
        };
        (id, command)
    }

    /// What a client makes of a refusal of its message. Of one that was sent
    /// twice, the other may have been taken.
    fn turned_down(&self, letter: &Letter, message: &str, refusal: &Refusal) {
        let mut world = self.hub.world();
        world.oracle.refused(refusal);
        if *refusal == Refusal::IdempotencyKeyReused {
            let text = format!("G4: {message} is refused for another content");
            world.oracle.broken(text);
        }
        if letter.key.is_none() && !matches!(refusal, Refusal::Unavailable { .. }) {
            world.oracle.said(message, Said::Refused);
        }
    }

    pub(crate) async fn send(self, letter: Letter, deadline: Option<Timestamp>) {
        let (message, command) = self.command(&letter);
        match self.engine.send(&self.caller, command, deadline).await {
            Ok(Sent::Task(task)) => {
                let mut world = self.hub.world();
                world.oracle.told(&task);
                // A repeat under a client's own id opens no turn.
                let repeat = letter.client_id.is_some() && !holds(&task, &message);
                if !repeat {
                    world.oracle.said(&message, Said::Taken);
                }
                if letter.key.is_some() {
                    world.oracle.same_answer(&message, &task.id.to_string());
                }
            }
            Ok(Sent::Message(reply)) if letter.key.is_some() => {
                let mut world = self.hub.world();
                world.oracle.said(&message, Said::Taken);
                world.oracle.same_answer(&message, &reply.id);
            }
            Ok(Sent::Message(_)) => {}
            Err(error) => self.turned_down(&letter, &message, &error.refusal),
        }
    }

    pub(crate) async fn cancel(self, id: TaskId) {
        let command = CancelCommand {
            id,
            metadata: Metadata::new(),
        };
        match self.engine.cancel(&self.caller, &command).await {
            Ok(task) => {
                let mut world = self.hub.world();
                world.oracle.told(&task);
                let stored = world.oracle.tasks.get(&task.id).map(|it| it.record.state());
                let both = [Some(task.status.state), stored];
                if both != [Some(TaskState::Canceled); 2] {
                    let text = format!("G5: task {} was canceled and is {both:?}", task.id);
                    world.oracle.broken(text);
                }
            }
            Err(error) => self.hub.world().oracle.refused(&error.refusal),
        }
    }

    pub(crate) async fn stream(self, letter: Letter, deadline: Option<Timestamp>, until: u64) {
        let (message, command) = self.command(&letter);
        let (frames, shown) = unbounded_channel();
        let work = self.engine.stream(&self.caller, command, deadline, frames);
        let reader = Watch::new(&self.hub, None, until);
        match Box::pin(reader.over(work, shown)).await {
            Ok(()) => {}
            Err(error) => self.turned_down(&letter, &message, &error.refusal),
        }
    }

    /// Subscribes where the reader `place` stands, or from now on.
    pub(crate) async fn subscribe(self, id: TaskId, place: Option<usize>, until: u64) {
        let position = place.and_then(|n| self.hub.world().oracle.positions.get(n).cloned());
        // The other reader may still be there: this one reads for itself.
        let place = position.clone().filter(|it| it.last.is_some()).map(|it| {
            let mut world = self.hub.world();
            world.oracle.positions.push(it);
            world.oracle.positions.len() - 1
        });
        let command = SubscribeCommand {
            id: position.as_ref().map_or(id, |it| it.task.clone()),
            last_event: position.and_then(|it| it.last),
        };
        let (frames, shown) = unbounded_channel();
        let work = self
            .engine
            .reader()
            .subscribe(&self.caller, &command, None, frames);
        let reader = Watch::new(&self.hub, place, until);
        if let Err(error) = reader.over(work, shown).await {
            self.hub.world().oracle.refused(&error.refusal);
        }
    }

    pub(crate) async fn relay(self) {
        let (from, images) = self.hub.world().messages.images();
        let queue = SimQueue(Arc::clone(&self.hub));
        let failed = relay(&queue, &images).await;
        let mut world = self.hub.world();
        let first = failed.into_iter().min();
        let done = first.filter(|_| !world.is(Mutant::RelayForgets));
        world.messages.relayed(from + done.unwrap_or(images.len()));
    }

    pub(crate) async fn work(self, number: u64, deadline: Option<Timestamp>) {
        let now = self.hub.world().now;
        let received = self.hub.world().messages.receive(number, now);
        let Some((item, receipt)) = received else {
            return;
        };
        if self.hub.world().is(Mutant::EarlyDelete) {
            self.hub.world().messages.delete(number, receipt);
        }
        let handle = SimReceipt {
            hub: Arc::clone(&self.hub),
            number,
            receipt,
        };
        let ack = self.engine.work(&item, &handle, deadline).await;
        self.hub.pause().await;
        let mut world = self.hub.world();
        world
            .oracle
            .note(|| format!("worker: {ack:?} message {number}"));
        match ack {
            Ack::Delete if world.is(Mutant::DeleteByTask) => world.messages.delete_all_of(&item),
            Ack::Delete => world.messages.delete(number, receipt),
            Ack::Keep if world.is(Mutant::KeepDeletes) => world.messages.delete(number, receipt),
            Ack::Keep => {}
        }
    }

    pub(crate) async fn sweep(self) {
        let done = self.engine.sweep(&*self.store, Leases::Respect).await;
        if let Err(error) = done {
            self.hub.world().oracle.refused(&error.refusal);
        }
    }

    /// Reads the task to its bytes.
    pub(crate) async fn get(self, id: TaskId) {
        let query = GetQuery {
            id,
            history_length: 100,
        };
        match self.engine.reader().get(&self.caller, &query).await {
            Ok(task) => self.hub.world().oracle.told(&task),
            Err(error) => self.hub.world().oracle.refused(&error.refusal),
        }
    }

    /// A program of chance.
    pub(crate) fn program(&self) -> String {
        let mut world = self.hub.world();
        let length = world.chance.below(6);
        let letters = (0..length).filter_map(|_| world.chance.pick(LETTERS).copied());
        letters.map(char::from).collect()
    }

    /// The first letter under a key, which is remembered.
    pub(crate) fn keyed(&self, letter: Letter) -> Letter {
        let mut world = self.hub.world();
        let letter = Letter {
            key: Some(world.keyed.len()),
            client_id: None,
            ..letter
        };
        world.keyed.push(letter.clone());
        letter
    }

    /// A letter of chance.
    pub(crate) fn letter(&self) -> Letter {
        let program = self.program();
        let mut world = self.hub.world();
        let skill = match world.chance.below(20) {
            0 => crate::skills::ECHO,
            1..8 => SLOW,
            _ => SCRIPT,
        };
        let mut letter = Letter::new(skill, &program);
        if skill == crate::skills::ECHO {
            return letter;
        }
        if world.chance.below(3) == 0 {
            letter.mode = SendMode::Immediate;
        }
        match world.chance.below(6) {
            0 => {
                let name = format!("client-{}", world.chance.below(2));
                letter.client_id = TaskId::parse(name).ok();
            }
            1 | 2 => {
                letter.context = ContextId::parse(format!("ctx-{}", world.chance.below(2))).ok();
            }
            _ => {}
        }
        letter
    }
}

fn holds(task: &Task, message: &str) -> bool {
    task.history.iter().flatten().any(|said| said.id == message)
}

/// Who calls.
pub(crate) fn caller() -> Option<Caller> {
    Some(Caller {
        owner: Owner {
            tenant: TenantId::parse("acme").ok()?,
            subject: Subject::parse("ann").ok()?,
        },
        tier: "default".to_owned(),
        scopes: std::collections::BTreeSet::new(),
    })
}

pub(crate) fn after(hub: &Hub, seconds: u64) -> Timestamp {
    Timestamp::from_millis(hub.world().now).plus(Duration::from_secs(seconds))
}

/// A reader of one stream.
struct Watch {
    hub: Arc<Hub>,
    place: Option<usize>,
    resumed: bool,
    begun: bool,
    closed: bool,
    /// It goes away after this many frames.
    left: u64,
}

impl Watch {
    fn new(hub: &Arc<Hub>, place: Option<usize>, left: u64) -> Self {
        Self {
            hub: Arc::clone(hub),
            place,
            resumed: place.is_some(),
            begun: false,
            closed: false,
            left,
        }
    }

    /// Reads what `work` shows until it is over.
    async fn over<T>(
        mut self,
        work: impl Future<Output = T>,
        shown: UnboundedReceiver<Frame>,
    ) -> T {
        let mut work = pin!(work);
        let mut shown = Some(shown);
        poll_fn(move |cx| {
            let polled = work.as_mut().poll(cx);
            while let Some(frame) = shown.as_mut().and_then(|it| it.try_recv().ok()) {
                self.frame(&frame);
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    shown = None;
                }
            }
            match polled {
                Poll::Ready(done) => Poll::Ready(done),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn frame(&mut self, frame: &Frame) {
        let hub = Arc::clone(&self.hub);
        let mut world = hub.world();
        let oracle = &mut world.oracle;
        if self.closed {
            oracle.broken("G7: a frame after the last one".to_owned());
        }
        let first = !std::mem::replace(&mut self.begun, true);
        match frame {
            Frame::Task(task) => {
                if !first || self.resumed {
                    oracle.broken(format!("G7: task {} is not the first frame", task.id));
                }
                oracle.told(task);
                let last = task.last_event;
                let seq = last.and_then(|id| oracle.seq_of(&task.id, id)).unwrap_or(0);
                self.place = Some(oracle.positions.len());
                oracle.positions.push(Position {
                    task: task.id.clone(),
                    last,
                    seq,
                    ended: task.status.state.is_terminal(),
                });
            }
            Frame::Resumed(task) => {
                let place = self.place.and_then(|n| oracle.positions.get(n)).cloned();
                let state = place.and_then(|it| oracle.state_at(&it.task, it.seq));
                let shown = task.status.state;
                if !first || !self.resumed || shown != state.unwrap_or(TaskState::Working) {
                    oracle.broken(format!("G7: task {} resumes as {shown}", task.id));
                }
            }
            Frame::Event {
                task_id,
                event,
                last,
                ..
            } => {
                let place = self.place.and_then(|n| oracle.positions.get(n)).cloned();
                let seq = place.map_or(0, |it| it.seq);
                if first || event.seq != seq + 1 || !oracle.is_stored(task_id, event) {
                    let text = format!("G7: event {} of task {task_id} after {seq}", event.seq);
                    oracle.broken(text);
                }
                let state = oracle.state_at(task_id, event.seq);
                let place = self.place.and_then(|n| oracle.positions.get_mut(n));
                if let Some(place) = place {
                    place.seq = event.seq;
                    place.last = Some(event.id);
                    place.ended |= *last && state.is_some_and(TaskState::is_terminal);
                }
                self.closed = *last;
            }
            Frame::Refused(refusal) => {
                oracle.refused(refusal);
                self.closed = true;
            }
            Frame::Message(_) | Frame::KeepAlive | Frame::ComeBack => {}
        }
    }
}
