//! Conversations: what each message starts or answers, for clients that keep the task, the context,
//! all earlier tasks or the last one. They send nothing of ours.

use a2a_lambda::engine::Clock as _;
use a2a_lambda::prelude::*;
use a2a_lambda::task::{Owner, Part, Subject, TaskId, TaskRecord, TenantId};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::world::{Reply, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

mod bad_input;
mod models;
mod options;
mod passing_on;
mod rows;

/// How a client continues a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// It answers the task that waits, and sends the context otherwise.
    Task,
    /// It sends the context only.
    Context,
    /// It sends the context and refers to all earlier tasks.
    All,
    /// It sends the context and refers to the last task.
    Last,
}

use Habit::{All, Context, Last, Task};

const EVERY: &[Habit] = &[Task, Context, All, Last];
const NO_TASK: &[Habit] = &[Context, All, Last];

/// What a message does.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// It begins a task of a skill, which gets a name.
    Begins(&'static str, &'static str),
    /// It begins a task of a skill about a named one, and gets a name.
    Refines(&'static str, &'static str, &'static str),
    /// It answers a named task.
    Answers(&'static str),
    /// It gets a question of the router.
    Asks,
    /// It goes to a named task, as the reply to a question of the router.
    Forwards(&'static str),
    /// The task of the router's question is for this skill, and gets a name.
    Chooses(&'static str, &'static str),
    /// It is refused, and nothing of it is stored.
    Refused,
}

use Does::{Answers, Asks, Begins, Chooses, Forwards, Refines, Refused};

/// A message and what it does.
#[derive(Debug, Clone)]
struct Turn {
    part: Value,
    does: Does,
    /// The tasks that it refers to, in place of those of the habit.
    references: Option<&'static [&'static str]>,
    /// The named task that it is for, in place of that of the habit.
    task: Option<&'static str>,
    /// Whether it may name the task that waits.
    is_free: bool,
}

fn says(text: &str, does: Does) -> Turn {
    turn(json!({"text": text}), does)
}

fn gives(data: &Value, does: Does) -> Turn {
    turn(json!({"data": data}), does)
}

const fn turn(part: Value, does: Does) -> Turn {
    Turn {
        part,
        does,
        references: None,
        task: None,
        is_free: false,
    }
}

impl Turn {
    /// The client means no task that waits.
    const fn free(mut self) -> Self {
        self.is_free = true;
        self
    }

    const fn about(mut self, names: &'static [&'static str]) -> Self {
        self.references = Some(names);
        self
    }

    const fn to(mut self, name: &'static str) -> Self {
        self.task = Some(name);
        self
    }
}

/// A named conversation, and who has it.
struct Conversation {
    name: &'static str,
    habits: &'static [Habit],
    turns: Vec<Turn>,
}

fn conversation(
    name: &'static str,
    habits: &'static [Habit],
    turns: impl Into<Vec<Turn>>,
) -> Conversation {
    Conversation {
        name,
        habits,
        turns: turns.into(),
    }
}

/// A client in its conversation.
struct Client<'w> {
    world: &'w World,
    dialect: Dialect,
    habit: Habit,
    context: Option<String>,
    seen: Vec<String>,
    /// The last task, and whether it waits.
    last: Option<(String, bool)>,
    names: BTreeMap<&'static str, String>,
    count: usize,
}

impl<'w> Client<'w> {
    const fn new(world: &'w World, dialect: Dialect, habit: Habit) -> Self {
        Self {
            world,
            dialect,
            habit,
            context: None,
            seen: Vec::new(),
            last: None,
            names: BTreeMap::new(),
            count: 0,
        }
    }

    fn id(&self, name: &str) -> String {
        let id = self.names.get(name);
        id.cloned().unwrap_or_else(|| "task-0".to_owned())
    }

    fn task_of(&self, turn: &Turn) -> Option<String> {
        let waits = self.last.as_ref().filter(|(_, waits)| *waits);
        let waits = waits.filter(|_| self.habit == Task && !turn.is_free);
        let named = turn.task.map(|name| self.id(name));
        named.or_else(|| waits.map(|(id, _)| id.clone()))
    }

    fn references_of(&self, turn: &Turn) -> Vec<String> {
        match (turn.references, self.habit) {
            (Some(names), _) => names.iter().map(|name| self.id(name)).collect(),
            (None, All) => self.seen.clone(),
            (None, Last) => self.last.iter().map(|(id, _)| id.clone()).collect(),
            (None, Task | Context) => Vec::new(),
        }
    }

    async fn send(&mut self, turn: &Turn) -> (Reply, Option<String>) {
        // The next message of a person is later.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.count += 1;
        let (task, id) = (self.task_of(turn), format!("m-{}", self.count));
        let say = Say {
            text: "",
            skill: None,
            task: task.as_deref(),
            new_task: "",
            context: self.context.as_deref(),
            id: &id,
        };
        let mut params = self.dialect.say(&say);
        let mut part = turn.part.clone();
        if !self.dialect.is_v10() {
            let kind = part.as_object().unwrap().keys().next().unwrap().clone();
            part["kind"] = kind.into();
        }
        params["message"]["parts"] = json!([part]);
        params["message"]["referenceTaskIds"] = json!(self.references_of(turn));
        assert!(!params.to_string().contains("a2a-lambda/"), "{params}");
        let request = self.dialect.request(Op::Send, "", &params);
        (self.world.call(&request).await, task)
    }

    async fn plays(&mut self, turn: &Turn) {
        let before = self.stored().await;
        let (reply, pinned) = self.send(turn).await;
        let error = reply.json().get("error").cloned();
        if matches!(turn.does, Refused) {
            assert!(error.is_some(), "{}", reply.text());
            assert_eq!(self.stored().await, before, "something is stored");
            return;
        }
        assert!(error.is_none(), "{}", reply.text());
        let task = self.dialect.task(&reply);
        let id = task["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{task}"))
            .to_owned();
        self.context = Some(self.dialect.context(&task));
        let state = self.dialect.state(&task);
        let waits = ["input-required", "auth-required"].contains(&state.as_str());
        self.check(turn, &task, &id, pinned.as_deref(), &before)
            .await;
        if !self.seen.contains(&id) {
            self.seen.push(id.clone());
        }
        self.last = Some((id, waits));
    }

    async fn check(
        &mut self,
        turn: &Turn,
        task: &Value,
        id: &str,
        pinned: Option<&str>,
        before: &BTreeMap<String, u32>,
    ) {
        let record = self.record(id).await;
        let skill = record.skill.as_ref().map(ToString::to_string);
        let is_new = !before.contains_key(id);
        let says = self.dialect.status_words(task);
        match turn.does {
            Begins(skill_id, name) => {
                assert_eq!((is_new, skill.as_deref()), (true, Some(skill_id)), "{says}");
                self.names.insert(name, id.to_owned());
            }
            Refines(skill_id, of, name) => {
                let message = record.history.iter().rev();
                let mut references = message.flat_map(|message| &message.reference_task_ids);
                let refers = references.any(|reference| *reference == self.id(of));
                assert_eq!((skill.as_deref(), refers), (Some(skill_id), true), "{says}");
                self.names.insert(name, id.to_owned());
            }
            Answers(name) => {
                assert_eq!(id, self.id(name), "{says}");
                assert_eq!(record.turn, before[id] + 1);
            }
            Asks => assert_eq!(
                (skill, self.dialect.state(task)),
                (None, "input-required".to_owned())
            ),
            Chooses(skill_id, name) => {
                assert_eq!(
                    (is_new, skill.as_deref()),
                    (false, Some(skill_id)),
                    "{says}"
                );
                self.names.insert(name, id.to_owned());
            }
            Forwards(name) => {
                let other = self.id(name);
                assert_eq!(self.record(&other).await.turn, before[&other] + 1, "{says}");
                match pinned {
                    Some(question) => {
                        assert_eq!((id, skill), (question, None));
                        assert_eq!(self.dialect.state(task), "completed");
                        assert!(says.contains(&other), "{says}");
                    }
                    None => assert_eq!(id, other, "{says}"),
                }
            }
            Refused => {}
        }
    }

    /// The turns of all stored tasks.
    async fn stored(&self) -> BTreeMap<String, u32> {
        let mut turns = BTreeMap::new();
        for commit in self.world.store.commits() {
            let id = commit.task.to_string();
            if !turns.contains_key(&id) {
                // A task of another caller is not read.
                let turn = self.read(&id).await.map(|record| record.turn);
                turns.extend(turn.map(|turn| (id, turn)));
            }
        }
        turns
    }

    async fn record(&self, id: &str) -> TaskRecord {
        self.read(id).await.unwrap()
    }

    async fn read(&self, id: &str) -> Option<TaskRecord> {
        let owner = Owner {
            tenant: TenantId::parse("local").unwrap(),
            subject: Subject::parse("local").unwrap(),
        };
        let (id, now) = (
            TaskId::parse(id.to_owned()).unwrap(),
            self.world.clock.now(),
        );
        let records = &self.world.store.memory().records;
        records.load(&owner, &id, now).await.unwrap()
    }
}

/// Plays each conversation with each of its habits, in two generations.
async fn play(make: impl Fn() -> World, all: Vec<Conversation>) {
    let rows: Vec<_> = (all.iter())
        .flat_map(|it| it.habits.iter().map(move |habit| (it, *habit)))
        .flat_map(|(it, habit)| {
            [Dialect::Rest10, Dialect::Rpc03].map(|dialect| (it, habit, dialect))
        })
        .collect();
    each_row_async(rows, async |(it, habit, dialect)| {
        let world = make();
        let mut client = Client::new(&world, dialect, habit);
        for (number, turn) in it.turns.iter().enumerate() {
            eprintln!(
                "{} [{habit:?} {dialect:?}] {number}: {}",
                it.name, turn.part
            );
            client.plays(turn).await;
        }
    })
    .await;
}
