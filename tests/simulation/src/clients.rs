//! The processes of a history: clients, and the functions behind them.
//!
//! Each process runs on a machine. A machine has one release and its own clock.

use crate::fleet::Release;
use crate::hub::{Hub, LocalClock};
use crate::mutant::Mutant;
use crate::oracle::{Life, Said};
use crate::queue::{SimQueue, SimReceipt};
use crate::skills::{LETTERS, SCRIPT, SLOW};
use crate::store::{SimStore, SimTable};
use crate::watch::Watch;
use a2a_lambda::auth::Caller;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{
    Clock, Engine, Policy, SecretKeys, Services, SweepPlaces, relay, relay_pushes,
};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::store::queue::Ack;
use a2a_lambda::store::records::{Deliveries, Records};
use a2a_lambda::task::{
    A2aError, CancelCommand, ContextId, Generation, GetQuery, IdempotencyKey, ListQuery, Message,
    Metadata, Owner, Part, Role, SendCommand, SendMode, SendResponse, Subject, SubscribeCommand,
    Task, TaskId, TaskState, TenantId, Timestamp,
};
use a2a_lambda::testing::TableLayer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// The number of attempts of a turn.
pub(crate) const ATTEMPTS: u32 = 3;

/// The policy of a release. Where two of them run, the current one keeps tasks for three days.
pub(crate) fn policy(release: Option<Release>) -> Policy {
    let defaults = Policy::default();
    let task_ttl = match release {
        Some(Release::Today) => Duration::from_secs(3 * 24 * 3600),
        Some(Release::After) | None => defaults.task_ttl,
    };
    Policy {
        task_ttl,
        max_attempts: ATTEMPTS,
        inline_max: 64,
        // A reader polls a task at rest once a second, up to this age of its stream.
        stream_max_age: Duration::from_secs(30),
        secrets: SecretKeys::from_keys([vec![7]]),
        ..defaults
    }
}

/// The machine that a process runs on.
#[derive(Clone)]
struct Machine {
    release: Option<Release>,
    /// How many milliseconds its clock is ahead.
    ahead: i64,
    clock: Arc<dyn Clock>,
    engine: Engine,
    deliveries: Deliveries,
}

impl Machine {
    /// `release` is `None` if every machine runs the current release.
    fn new(
        hub: &Arc<Hub>,
        store: &Arc<SimStore>,
        agent: &Arc<AgentDefinition>,
        (release, ahead): (Option<Release>, i64),
    ) -> Self {
        let clock = Arc::new(LocalClock {
            hub: Arc::clone(hub),
            ahead,
        });
        let table = SimTable {
            store: Arc::clone(store),
            clock: Arc::clone(&clock),
            release,
        };
        let table = TableLayer::new(store.memory.table.clone(), table);
        let records = Records::new(table).with_blobs(store.clone());
        let deliveries = records.deliveries();
        let services = Services {
            clock: clock.clone(),
            ids: hub.clone(),
            push: true,
            ..Services::new(records, store.clone())
        };
        Self {
            release,
            ahead,
            clock,
            deliveries,
            engine: Engine::new(Arc::clone(agent), services, policy(release))
                .with_push_queue(Arc::new(SimQueue(Arc::clone(hub)))),
        }
    }
}

/// The environment of a process.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) hub: Arc<Hub>,
    pub(crate) store: Arc<SimStore>,
    /// The machine of this process.
    machine: Arc<Machine>,
    machines: Vec<Arc<Machine>>,
    caller: Caller,
}

/// A message that a client sends.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) skill: &'static str,
    pub(crate) program: String,
    pub(crate) task: Option<TaskId>,
    pub(crate) client_id: Option<TaskId>,
    pub(crate) context: Option<ContextId>,
    pub(crate) mode: SendMode,
    /// The number of its idempotency key. Every repeat has the same content.
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

/// How far the clocks of the three machines are ahead, in ms, where they differ.
const AHEAD: [i64; 3] = [0, 5000, -5000];

impl Endpoint {
    pub(crate) fn new(hub: &Arc<Hub>, agent: &Arc<AgentDefinition>, caller: &Caller) -> Self {
        let store = Arc::new(SimStore::new(Arc::clone(hub)));
        let machine = Machine::new(hub, &store, agent, (None, 0));
        Self {
            hub: Arc::clone(hub),
            store,
            machine: Arc::new(machine),
            machines: Vec::new(),
            caller: caller.clone(),
        }
    }

    /// From now on a process may run any of these releases, and its clock may differ if the
    /// history has skewed clocks.
    pub(crate) fn run_releases(&mut self, releases: &[Release], agent: &Arc<AgentDefinition>) {
        let skewed = self.hub.world().features.skewed;
        let clocks = if skewed { &AHEAD[..] } else { &[0] };
        let releases = releases.iter().copied().map(Some);
        let releases: Vec<_> = if releases.len() > 0 {
            releases.collect()
        } else {
            vec![None]
        };
        for release in releases {
            for ahead in clocks {
                let machine = Machine::new(&self.hub, &self.store, agent, (release, *ahead));
                self.machines.push(Arc::new(machine));
            }
        }
        self.hub.world().oracle.mixed = self.is_mixed();
    }

    /// Whether processes of two releases run.
    pub(crate) fn is_mixed(&self) -> bool {
        self.machines.iter().any(|it| it.release.is_some())
    }

    /// The site of a process on a random machine.
    pub(crate) fn on_any_machine(&self) -> Self {
        let mut site = self.clone();
        if self.machines.len() > 1 {
            let mut world = self.hub.world();
            if let Some(machine) = world.chance.pick(&self.machines) {
                site.machine = Arc::clone(machine);
                let (release, ahead) = (machine.release, machine.ahead);
                world
                    .oracle
                    .note(|| format!("of release {release:?}, {ahead} ms ahead:"));
            }
        }
        site
    }

    pub(crate) fn deliveries(&self) -> Deliveries {
        self.machine.deliveries.clone()
    }

    fn engine(&self) -> &Engine {
        &self.machine.engine
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.machine.clock)
    }

    /// A time on the clock of this machine.
    pub(crate) fn local(&self, at: Option<Timestamp>) -> Option<Timestamp> {
        at.map(|at| Timestamp::from_millis(at.as_millis() + self.machine.ahead))
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
            push: self.hook(letter),
            metadata,
            generation: Generation::V10,
            idempotency_key: letter
                .key
                .and_then(|number| IdempotencyKey::parse(format!("key {number}")).ok()),
        };
        (id, command)
    }

    /// Records that a client's message was refused. The copy of a message that was sent twice
    /// may have been accepted, so a keyed message proves nothing.
    fn turned_down(&self, letter: &Letter, message: &str, refusal: &A2aError) {
        let mut world = self.hub.world();
        world.oracle.refused(refusal);
        if *refusal == A2aError::IdempotencyKeyReused {
            let text = format!("G4: {message} is refused for another content");
            world.oracle.broken(text);
        }
        if letter.key.is_none() && !matches!(refusal, A2aError::Unavailable { .. }) {
            world.oracle.said(message, Said::Refused);
        }
    }

    pub(crate) async fn send(self, letter: Letter, deadline: Option<Timestamp>) {
        let deadline = self.local(deadline);
        let (message, command) = self.command(&letter);
        match self
            .engine()
            .send(&self.caller, command, CallBudget::until(deadline))
            .await
        {
            Ok(SendResponse::Task(task)) => {
                let mut world = self.hub.world();
                let oracle = &mut world.oracle;
                let life = oracle.reported(&task);
                // A repeat under a client's own id opens no turn.
                if holds(&task, &message) {
                    oracle.said(&message, Said::Taken);
                } else if letter.client_id.is_none() || !repeats(&task, &letter) {
                    oracle.broken(format!("G4: {message} is answered with {}", task.id));
                }
                if let Some(life) = life.filter(|_| letter.key.is_some()) {
                    oracle.same_answer(&message, life);
                }
            }
            Ok(SendResponse::Message(_)) if letter.key.is_some() => {
                let text = format!("G4: {message} has a key and got no task");
                self.hub.world().oracle.broken(text);
            }
            Ok(SendResponse::Message(_)) => {}
            Err(error) => self.turned_down(&letter, &message, &error.a2a_error),
        }
    }

    pub(crate) async fn cancel(self, id: TaskId) {
        let command = CancelCommand {
            id,
            metadata: Metadata::new(),
        };
        match self.engine().tasks.cancel(&self.caller, &command).await {
            Ok(task) => {
                let mut world = self.hub.world();
                let Some(life) = world.oracle.reported(&task) else {
                    return;
                };
                let stored = world.oracle.tasks.get(&life).map(|it| it.record.state());
                let both = [Some(task.status.state), stored];
                if both != [Some(TaskState::Canceled); 2] {
                    let text = format!("G5: task {} was canceled and is {both:?}", task.id);
                    world.oracle.broken(text);
                }
            }
            Err(error) => self.hub.world().oracle.refused(&error.a2a_error),
        }
    }

    pub(crate) async fn stream(self, letter: Letter, deadline: Option<Timestamp>, until: u64) {
        let deadline = self.local(deadline);
        let (message, command) = self.command(&letter);
        let (frames, shown) = unbounded_channel();
        let work = self
            .engine()
            .stream(&self.caller, command, CallBudget::until(deadline), frames);
        let reader = Watch::new(&self.hub, None, until);
        match Box::pin(reader.over(work, shown)).await {
            Ok(()) => {}
            Err(error) => self.turned_down(&letter, &message, &error.a2a_error),
        }
    }

    /// Subscribes from the position of the reader `place`, or from now on.
    pub(crate) async fn subscribe(self, id: TaskId, place: Option<usize>, until: u64) {
        let position = place.and_then(|n| self.hub.world().oracle.positions.get(n).cloned());
        // The other reader may still be connected: this one gets its own position.
        let place = position.clone().filter(|it| it.last.is_some()).map(|it| {
            let mut world = self.hub.world();
            world.oracle.positions.push(it);
            world.oracle.positions.len() - 1
        });
        let command = SubscribeCommand {
            id: position.as_ref().map_or(id, |it| it.life.task.clone()),
            last_event: position.and_then(|it| it.last),
            generation: Generation::V10,
        };
        let (frames, shown) = unbounded_channel();
        let work =
            self.engine()
                .reader()
                .subscribe(&self.caller, &command, CallBudget::default(), frames);
        let reader = Watch::new(&self.hub, place, until);
        if let Err(error) = reader.over(work, shown).await {
            self.hub.world().oracle.refused(&error.a2a_error);
        }
    }

    pub(crate) async fn relay(self) {
        let (from, images) = self.hub.world().messages.images();
        let queue = SimQueue(Arc::clone(&self.hub));
        let now = Timestamp::from_millis(self.hub.world().now);
        let failed = relay(&queue, &images, now).await;
        relay_pushes(&queue, &images).await;
        let mut world = self.hub.world();
        let first = failed.into_iter().min();
        let done = first.filter(|_| !world.is(Mutant::RelayForgets));
        world.messages.relayed(from + done.unwrap_or(images.len()));
    }

    pub(crate) async fn work(self, number: u64, deadline: Option<Timestamp>) {
        let deadline = self.local(deadline);
        let now = self.hub.world().now;
        let received = self.hub.world().messages.work.receive(number, now);
        let Some((item, receipt, receives)) = received else {
            return;
        };
        if self.hub.world().is(Mutant::EarlyDelete) {
            self.hub.world().messages.work.delete(number, receipt);
        }
        let handle = SimReceipt {
            hub: Arc::clone(&self.hub),
            number,
            receipt,
            receives,
        };
        let ack = self.engine().turns.work(&item, &handle, deadline).await;
        self.hub.pause().await;
        let mut world = self.hub.world();
        world
            .oracle
            .note(|| format!("worker: {ack:?} message {number}"));
        match ack {
            Ack::Delete if world.is(Mutant::DeleteByTask) => world.messages.delete_all_of(&item),
            Ack::Delete => world.messages.work.delete(number, receipt),
            Ack::Keep if world.is(Mutant::KeepDeletes) => {
                world.messages.work.delete(number, receipt)
            }
            Ack::Keep => {}
        }
    }

    /// One round of the sweep.
    pub(crate) async fn sweep(self) {
        let mut places = SweepPlaces::default();
        let queue = SimQueue(Arc::clone(&self.hub));
        let round = self.engine().sweeper.sweep_round(&queue, &mut places, None);
        if let Some(error) = round.await.error {
            self.hub.world().oracle.refused(&error.a2a_error);
        }
    }

    /// Reads the task with the bytes of its artifacts.
    pub(crate) async fn get(self, id: TaskId) {
        if let Err(refusal) = self.read(id).await {
            self.hub.world().oracle.refused(&refusal);
        }
    }

    /// Reads a task that must exist.
    pub(crate) async fn find(self, life: Life) {
        let found = self.read(life.task.clone()).await;
        if found.as_ref() != Ok(&Some(life.clone())) {
            let text = format!("G1: task {life} is not found: {found:?}");
            self.hub.world().oracle.broken(text);
        }
    }

    async fn read(&self, id: TaskId) -> Result<Option<Life>, A2aError> {
        let query = GetQuery {
            id,
            history_length: 100,
        };
        let found = self.engine().reader().get(&self.caller, &query).await;
        let task = found.map_err(|error| error.a2a_error)?;
        Ok(self.hub.world().oracle.reported(&task))
    }

    /// Lists tasks, of one context or of all.
    pub(crate) async fn list(self, context_id: Option<ContextId>) {
        let query = ListQuery {
            context_id,
            status: None,
            status_after: None,
            page_size: 20,
            page_token: None,
            history_length: 100,
            include_artifacts: true,
        };
        match self.engine().reader().list(&self.caller, &query).await {
            Ok(page) => {
                let mut world = self.hub.world();
                for task in &page.tasks {
                    world.oracle.listed(task);
                }
            }
            Err(error) => self.hub.world().oracle.refused(&error.a2a_error),
        }
    }

    /// Deletes a task.
    pub(crate) async fn delete(self, id: TaskId) {
        let lives = {
            let mut world = self.hub.world();
            world.oracle.unwanted(id.as_str());
            world.oracle.lives_of(&id)
        };
        match self.engine().tasks.delete_task(&self.caller, &id).await {
            Ok(()) => self.hub.world().oracle.deleted(&id, &lives),
            Err(error) => self.hub.world().oracle.refused(&error.a2a_error),
        }
    }

    /// Deletes a context.
    pub(crate) async fn clear(self, id: ContextId) {
        let name = id.to_string();
        self.hub.world().oracle.unwanted(&name);
        match self.engine().tasks.delete_context(&self.caller, &id).await {
            Ok(()) => self.hub.world().oracle.cleared(&name),
            Err(error) => self.hub.world().oracle.refused(&error.a2a_error),
        }
    }

    /// A random program for the skill.
    pub(crate) fn program(&self) -> String {
        let mut world = self.hub.world();
        let steps = if world.features.long { 13 } else { 6 };
        let length = world.chance.below(steps);
        let letters = (0..length).filter_map(|_| world.chance.pick(LETTERS).copied());
        letters.map(char::from).collect()
    }

    /// Gives the letter a new key and remembers it, so that it can be repeated.
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

    /// A random letter.
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
        // Where clients reuse ids, all letters share one.
        let (own, ids) = if world.features.deletes {
            (3, 1)
        } else {
            (1, 2)
        };
        match world.chance.below(5 + own) {
            n if n < own => {
                let name = format!("client-{}", world.chance.below(ids));
                letter.client_id = TaskId::parse(name).ok();
            }
            n if n < own + 2 => {
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

/// Whether the client's last message in the task has the letter's content.
fn repeats(task: &Task, letter: &Letter) -> bool {
    let mut said = task.history.iter().flatten().rev();
    let last = said.find(|message| message.role == Role::User);
    last.is_some_and(|last| last.parts == [Part::text(&*letter.program)])
}

/// The caller of all requests.
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
