//! The tokens of a day and of a task against what a model has billed: generated programs, whose
//! process dies before and after each write of the table, and in each call of the model.

use crate::brake::swept;
use crate::budgets::used;
use a2a_lambda::llm::{LlmFunction, LlmTool, LlmWorker};
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::RuntimeBuilder;
use a2a_lambda::skill::model::{
    Delta, Model, ModelContent, ModelMessage, ModelReply, ModelRequest, StopReason, Usage,
};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::table::{Table, Write, WriteResult};
use a2a_lambda::testing::{TableHooks, TableLayer, TestClock};
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::watched_store::WatchedStore;
use a2a_lambda_tests::world::World;
use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use futures::{FutureExt as _, join};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const REST: Dialect = Dialect::Rest10;
const PROGRAMS: u64 = 32;
/// Each seventh place: all 1,117 take a minute.
const EVERY: usize = 7;
const ENDLESS: i64 = 1_000_000;
/// What a call without `max_tokens` reserves for its answer.
const ANSWER: u64 = 16_384;
/// What the answer has of a model that says more than that.
const LONG_ANSWER: u64 = 20_000;

/// The life of a process: it ends at one of the places that it passes.
#[derive(Debug)]
struct Life {
    left: AtomicI64,
    is_over: watch::Sender<bool>,
}

impl Life {
    fn of(places: i64) -> Arc<Self> {
        Arc::new(Self {
            left: places.into(),
            is_over: watch::Sender::new(false),
        })
    }

    /// A place where the process may die. Then all of its work ends.
    async fn pass(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            self.is_over.send_replace(true);
            std::future::pending().await
        }
    }

    async fn ends(&self) {
        let mut is_over = self.is_over.subscribe();
        is_over.wait_for(|it| *it).await.unwrap();
    }
}

/// The table of a process.
#[derive(Debug)]
struct OwnTable(Arc<Life>);

#[async_trait]
impl TableHooks for OwnTable {
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        self.0.pass().await;
        let outcome = table.write(write).await;
        self.0.pass().await;
        outcome
    }
}

/// A call of the model: what it may use, and what it has to count as if it has ended.
#[derive(Debug, Clone, Copy)]
struct Call {
    most: u64,
    counts: Option<u64>,
}

/// What the service knows, whatever becomes of the processes that call it.
#[derive(Debug, Default)]
struct Service {
    calls: Mutex<Vec<Call>>,
    refusals: Mutex<BTreeSet<String>>,
}

impl Service {
    /// What has to be counted of all calls.
    fn sum(&self) -> u64 {
        let calls = self.calls.lock().unwrap();
        calls.iter().map(|it| it.counts.unwrap_or(it.most)).sum()
    }

    /// The same of the calls that have ended.
    fn sum_of_ended(&self) -> u64 {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter_map(|it| it.counts).sum()
    }
}

/// The service as a process calls it. The last letter of `<…>` in the request says what it does:
/// it reports its tokens (`r`), too few (`l`) or none (`n`), says more than was reserved (`o`), is
/// busy once (`b`), loses its answer (`x`), or is slow (`s`).
struct Stub {
    service: Arc<Service>,
    life: Arc<Life>,
}

impl Stub {
    async fn answer(&self, request: ModelRequest, streams: bool) -> AgentResult<ModelReply> {
        let bytes = serde_json::to_vec(&request).unwrap().len() as u64;
        let most = bytes.div_ceil(2) + request.max_tokens.map_or(ANSWER, u64::from);
        let index = {
            let mut calls = self.service.calls.lock().unwrap();
            let counts = None;
            calls.push(Call { most, counts });
            calls.len() - 1
        };
        self.life.pass().await;
        let text = serde_json::to_string(&request.messages).unwrap();
        let (mark, _) = text.split_once('<').unwrap().1.split_once('>').unwrap();
        let (input, output) = (bytes.div_ceil(4), 10);
        let (counts, usage) = match mark.chars().last().unwrap() {
            'n' => (most, (0, 0)),
            'l' => (2, (1, 1)),
            'o' => (input + LONG_ANSWER, (input, LONG_ANSWER)),
            'b' if self
                .service
                .refusals
                .lock()
                .unwrap()
                .insert(mark.to_owned()) =>
            {
                (0, (0, 0))
            }
            'x' => (most, (0, 0)),
            's' => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                panic!("nobody waits so long")
            }
            _ => (input + output, (input, output)),
        };
        self.service.calls.lock().unwrap()[index].counts = Some(counts);
        if counts == 0 {
            return Err(AgentError::model_rate_limited("busy"));
        }
        if mark.ends_with('x') && !streams {
            return Err(AgentError::model_provider("the connection broke").after_answer());
        }
        Ok(reply(&request, usage))
    }
}

fn reply(request: &ModelRequest, (input_tokens, output_tokens): (u64, u64)) -> ModelReply {
    let has_results = |it: &ModelMessage| matches!(it, ModelMessage::ToolResults(_));
    let tool = request.tools.first();
    let tool = tool.filter(|_| !request.messages.iter().any(has_results));
    let content = tool.map(|tool| ModelContent::ToolUse {
        id: "1".to_owned(),
        name: tool.name.clone(),
        input: match tool.name.as_str() {
            "route" => json!({"skill": "spend"}),
            _ => json!({"at": "it"}),
        },
    });
    let stop = match content {
        Some(_) => StopReason::ToolUse,
        None => StopReason::EndTurn,
    };
    ModelReply {
        content: vec![content.unwrap_or_else(|| ModelContent::Text("An answer.".to_owned()))],
        stop,
        usage: Usage {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
        },
    }
}

impl Model for Stub {
    fn id(&self) -> &str {
        "stub"
    }

    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        self.answer(request, false).boxed()
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        async move {
            let is_lost = serde_json::to_string(&request.messages)
                .unwrap()
                .contains("x>");
            let ModelReply { stop, usage, .. } = self.answer(request, true).await?;
            let end = match is_lost {
                true => Err(AgentError::model_provider("the connection broke")),
                false => Ok(Delta::Stop { stop, usage }),
            };
            let text = Ok(Delta::Text("An answer.".to_owned()));
            Ok(stream::iter([text, end]).boxed())
        }
        .boxed()
    }
}

/// Where to look.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    #[expect(dead_code, reason = "the tool finds the same everywhere")]
    at: String,
}

/// Runs a program: an operation a word.
#[skill(id = "spend", tags = ["test"])]
async fn spend(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let cx = &*cx;
    let words = text.split(' ').filter(|word| !word.starts_with('<'));
    for (number, word) in words.enumerate() {
        let (kind, mark) = word.split_at(1);
        let prompt = |branch: &str| format!("<{number}{branch}{mark}>");
        // The program continues after an error of the model.
        let answer = || LlmFunction::<String>::new("Answer.");
        match kind {
            "m" => {
                let request = ModelRequest {
                    messages: vec![ModelMessage::from_text(prompt(""))],
                    ..ModelRequest::default()
                };
                let work = async { Ok(cx.model()?.converse(request).await?.usage.output_tokens) };
                cx.step("model", work).await.ok();
            }
            "f" => drop(answer().run(cx, prompt("")).await),
            "t" => drop(answer().stream_to("text").run(cx, prompt("")).await),
            "w" => {
                let look = |_: Look| async { Ok("nothing".to_owned()) };
                let tool = LlmTool::new("look", "Looks.", look);
                let worker = LlmWorker::<String>::new("Look.").tool(tool);
                drop(worker.run(cx, prompt("")).await);
            }
            "p" => {
                let (one, two) = (answer(), answer().max_tokens(100));
                let one = async { Ok(one.run(cx, prompt("a")).await.is_ok()) };
                let two = async { Ok(two.run(cx, prompt("b")).await.is_ok()) };
                let (one, two) = join!(cx.scope("a", one), cx.scope("b", two));
                one.and(two)?;
            }
            _ => {
                let call = answer();
                let call = Box::pin(call.run(cx, format!("<{number}s>")));
                cx.timeout("late", Duration::from_secs(1), call).await?;
            }
        }
    }
    Ok("spent".to_owned())
}

/// Does nothing.
#[skill(id = "idle", tags = ["test"])]
async fn idle(_: String) -> AgentResult<String> {
    Ok("idle".to_owned())
}

/// A generated program.
#[derive(Debug)]
struct Program {
    words: String,
    /// Whether a model chooses its skill.
    is_routed: bool,
}

impl Program {
    fn of(seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut letter = |letters: &str| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let index = usize::try_from((state >> 33) % letters.len() as u64).unwrap();
            letters.get(index..=index).unwrap().to_owned()
        };
        let count = 2 + seed % 3;
        let words: Vec<_> = (0..count)
            .map(|_| letter("mftwpd") + &letter("rrnlobx"))
            .collect();
        Self {
            words: words.join(" "),
            is_routed: letter("yn") == "y",
        }
    }

    /// The most calls that are open at once.
    fn width(&self) -> u64 {
        if self.words.contains('p') { 2 } else { 1 }
    }
}

/// What a program has led to.
struct Record {
    /// How many places its first process has passed.
    places: i64,
    /// The total of the day.
    day: u64,
    /// The total of the task.
    task: u64,
    service: Arc<Service>,
    deaths: u64,
}

/// A process over what earlier ones have stored.
fn open_world(
    store: &Arc<WatchedStore>,
    clock: &Arc<TestClock>,
    service: &Arc<Service>,
    life: &Arc<Life>,
) -> World {
    let agent = |_| {
        let agent = Agent::builder("spends").description("Spends.").version("1");
        agent.skill(spend).skill(idle).build()
    };
    let services = |runtime: RuntimeBuilder| {
        let table = TableLayer::new(store.table.clone(), OwnTable(Arc::clone(life)));
        let (service, life) = (Arc::clone(service), Arc::clone(life));
        runtime.table(table).model(Stub { service, life })
    };
    let (store, clock) = (Arc::clone(store), Arc::clone(clock));
    World::over(store, clock, agent, |_| (), services).unwrap()
}

/// Runs a program in processes that die after so many places, and then in one that does not.
async fn run(program: &Program, lives: &[i64]) -> Record {
    let (store, clock) = (Arc::<WatchedStore>::default(), Arc::<TestClock>::default());
    let service = Arc::<Service>::default();
    let text = match program.is_routed {
        true => format!("{} <rr>", program.words),
        false => program.words.clone(),
    };
    let say = Say {
        skill: (!program.is_routed).then_some("spend"),
        ..Say::to("spend", &text)
    };
    let (mut places, mut deaths) = (None, 0);
    for left in lives.iter().copied().chain([ENDLESS]) {
        let life = Life::of(left);
        let world = open_world(&store, &clock, &service, &life);
        // The client does not know what became of its message.
        let work = async {
            for _ in 0..4 {
                let task = REST.task(&world.call(&REST.send(&say)).await);
                if REST.state(&task) == "completed" {
                    return task;
                }
                world.clock.advance(Duration::from_secs(600));
                swept(&world).await;
            }
            panic!("{program:?} {lives:?} does not end")
        };
        let end = tokio::select! {
            task = work => Some(task),
            () = life.ends() => None,
        };
        places.get_or_insert_with(|| left - life.left.load(Ordering::SeqCst));
        let Some(task) = end else {
            deaths += 1;
            continue;
        };
        let usage = &task["metadata"]["a2a-lambda/usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        return Record {
            places: places.unwrap(),
            day: used(&world, "local", 0).await,
            task: count("in") + count("out"),
            service,
            deaths,
        };
    }
    panic!("the last life has no end")
}

/// Runs a program undisturbed; returns the number of its places.
async fn check_undisturbed(program: &Program) -> i64 {
    let record = run(program, &[]).await;
    let service = &record.service;
    assert_eq!(record.day, service.sum(), "{program:?} {service:?}");
    let routing: u64 = match program.is_routed {
        true => service.calls.lock().unwrap()[0].counts.unwrap(),
        false => 0,
    };
    let sum = service.sum_of_ended() - routing;
    assert_eq!(record.task, sum, "{program:?} {service:?}");
    record.places
}

/// Runs a program whose processes die. Returns by how much the day is above what was billed.
async fn check_with_deaths(program: &Program, lives: &[i64]) -> u64 {
    let record = run(program, lives).await;
    let sum = record.service.sum();
    let at = format!("{program:?} {lives:?}: {:?}", record.service);
    let calls = record.service.calls.lock().unwrap();
    let open = record.deaths * program.width();
    // A killed call counts as reserved, also if its answer was longer than that.
    let excess = |it: &Call| it.counts.unwrap_or_default().saturating_sub(it.most);
    let excess = calls.iter().map(excess).max().unwrap_or_default();
    let least = sum.saturating_sub(open * excess);
    assert!(record.day >= least, "{} below {sum}: {at}", record.day);
    // A process reserves before its call begins, so the service may not know of the last one.
    let longest = calls.iter().map(|it| it.most).max().unwrap_or(2 * ANSWER);
    let most = sum + open * longest.max(ANSWER + 2_000);
    assert!(record.day <= most, "{} above {sum}: {at}", record.day);
    assert!(record.task <= record.day, "{at}");
    record.day.saturating_sub(sum)
}

#[tokio::test(start_paused = true)]
async fn a_day_counts_what_was_billed_wherever_a_process_dies() {
    let (mut runs, mut above) = (0, 0);
    for seed in 1..=PROGRAMS {
        let program = Program::of(seed);
        let places = check_undisturbed(&program).await;
        let first = i64::try_from(seed).unwrap() % 7;
        for (number, place) in (first..places).step_by(EVERY).enumerate() {
            // Each third time the next process dies too.
            let lives = [place, 1 + place / 2];
            let lives = &lives[..if number % 3 == 2 { 2 } else { 1 }];
            above = above.max(check_with_deaths(&program, lives).await);
            runs += 1;
        }
    }
    println!("token record: {PROGRAMS} programs, {runs} places, at most {above} tokens above");
}
