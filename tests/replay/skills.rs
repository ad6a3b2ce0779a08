//! The skills that run a program, and the one that reads what it left.

use super::log::{Log, Mark, texts_of};
use super::model::Prompt;
use super::program::{Body, Call, Fails, Op, Program};
use a2a_lambda::llm::{LlmTool, LlmWorker};
use a2a_lambda::prelude::*;
use a2a_lambda::skill;
use futures::future::{BoxFuture, join_all, select_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A run of a program: the program, and the log of what it does.
#[derive(Debug, Clone)]
pub(super) struct ProgramRun {
    pub(super) program: Arc<Program>,
    pub(super) log: Arc<Log>,
}

/// The agent of a run.
pub(super) fn agent(run: &ProgramRun) -> AgentDefinition {
    let agent = Agent::builder("replay").skill(Run(run.clone()));
    agent.skill(Probe(run.clone())).build().unwrap()
}

/// Mixes a value into what a program has computed.
pub(super) fn mix(before: u32, value: &impl Serialize) -> u32 {
    let text = serde_json::to_string(value).unwrap();
    text.bytes().fold(before ^ 0x811C_9DC5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Runs a program.
#[skill(id = "run", tags = ["test"])]
struct Run(ProgramRun);

/// What a program has computed, and its next turn.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    sum: u32,
    turn: usize,
}

impl SkillSlot for Asked {}

impl Run {
    /// Runs a turn; returns the sum, and whether the program continues.
    async fn turn(&self, cx: &TaskContext<'_>, asked: Asked) -> AgentResult<(u32, bool)> {
        self.0.log.notes().begin();
        let Asked { sum, turn } = asked;
        let runner = Runner { run: &self.0, cx };
        let place = Place {
            path: format!("t{turn}"),
            branch: format!("t{turn}"),
            outermost: None,
            zone: None,
            ended: None,
            is_bare: false,
        };
        let turns = &self.0.program.turns;
        let sum = runner.body(&turns[turn], place, sum).await?;
        self.0.log.place(false).await;
        let goes_on = turn + 1 < turns.len();
        if !goes_on && self.0.program.fails {
            return Err(AgentError::domain("PROGRAM", format!("failed with {sum}")));
        }
        Ok((sum, goes_on))
    }
}

impl SkillHandler<Asked> for Run {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        match self.turn(cx, Asked { sum: 0, turn: 0 }).await? {
            (sum, true) => OnRequestResult::ask(format!("ask {sum}"), Asked { sum, turn: 1 }),
            (sum, false) => OnRequestResult::done(format!("done {sum}")),
        }
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        asked: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        let turn = asked.turn + 1;
        match self.turn(cx, asked).await? {
            (sum, true) => OnInputResult::ask(format!("ask {sum}"), Asked { sum, turn }),
            (sum, false) => OnInputResult::done(format!("done {sum}")),
        }
    }
}

/// Reads what the tasks of the context left for it.
#[skill(id = "probe", tags = ["test"])]
struct Probe(ProgramRun);

impl SkillHandler for Probe {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String>> {
        let keys = self.0.log.notes().session_keys.clone();
        for key in keys {
            // A branch that was dropped may have asked for a value that nobody has set.
            if let Some(value) = cx.load_session::<Value>(&key).await? {
                let mut notes = self.0.log.notes();
                notes.session.insert(key, value.to_string());
            }
        }
        let thread = texts_of(&cx.thread().await?);
        self.0.log.notes().thread = thread;
        OnRequestResult::done("read".to_owned())
    }
}

/// Runs a part of a program as a tool.
#[skill(id = "sub", tags = ["test"])]
struct Sub(ProgramRun);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct SubInput {
    pub(super) path: String,
    pub(super) branch: String,
    pub(super) fails: bool,
    pub(super) body: Value,
}

impl SkillHandler for Sub {
    type Input = SubInput;
    type Output = u32;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: SubInput,
    ) -> AgentResult<OnRequestResult<u32>> {
        let SubInput {
            path,
            branch,
            fails,
            body,
        } = input;
        self.0.log.effect(&branch, &path, "call");
        let body: Body = serde_json::from_value(body).unwrap();
        let runner = Runner { run: &self.0, cx };
        let end = Some(path.len());
        let place = Place {
            path,
            branch,
            outermost: end,
            zone: end,
            ended: None,
            is_bare: false,
        };
        let sum = runner.body(&body, place, 0).await?;
        if fails {
            return Err(AgentError::domain("TOOL", format!("failed with {sum}")));
        }
        OnRequestResult::done(sum)
    }
}

/// Where an operation is in its program.
#[derive(Debug, Clone)]
struct Place {
    /// All around it.
    path: String,
    /// The branches around it: order counts within them.
    branch: String,
    /// Where the path of the outermost step ends.
    outermost: Option<usize>,
    /// Where the path of the innermost step, or repetition, ends.
    zone: Option<usize>,
    /// How many steps have ended in the innermost branches.
    ended: Option<Arc<AtomicU64>>,
    /// Whether it is in a branch of a race that has no scope of its own. Such a branch numbers its
    /// steps with those that follow the race, so it must not wait before them.
    is_bare: bool,
}

impl Place {
    fn inner(&self, name: impl std::fmt::Display) -> Self {
        Self {
            path: format!("{}/{name}", self.path),
            ..self.clone()
        }
    }

    fn in_step(self) -> Self {
        let end = self.path.len();
        Self {
            outermost: self.outermost.or(Some(end)),
            zone: Some(end),
            ended: None,
            ..self
        }
    }

    fn in_zone(self) -> Self {
        Self {
            zone: Some(self.path.len()),
            ended: None,
            ..self
        }
    }

    /// A name of a scope. No other one that can be open beside it has it.
    fn scope(&self, name: &str) -> String {
        format!("{name}{}", self.path.len())
    }

    /// The name of an artifact in chunks. A step that is open at an interruption runs again, and
    /// says again what it has said in two series of one name. So it has no two of one name, nor
    /// have the steps in it. A writer inside of another one has a name of its own.
    fn series(&self, name: u8) -> String {
        let in_step = self.outermost.and_then(|step| self.path.get(step..));
        let outside = || format!("a{name}.{}", self.path.matches("/c").count());
        self.key(&in_step.map_or_else(outside, |path| format!("c{path}")))
    }

    /// The name of a value of the task. One that a step saves, or a repetition, is saved only
    /// there.
    fn data(&self, name: u8) -> String {
        let zone = self.zone.and_then(|zone| self.path.get(..zone));
        self.key(&format!("d{name}{}", zone.unwrap_or_default()))
    }

    fn branch(&self, number: usize) -> Self {
        let path = format!("{}/b{number}", self.path);
        Self {
            branch: path.clone(),
            path,
            ..self.clone()
        }
    }

    /// A text that names this place and what was computed before it.
    fn text(&self, sum: u32) -> String {
        format!("{}|{} {sum}", self.branch, self.path)
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.branch)
    }
}

/// Runs operations in a turn.
#[derive(Clone, Copy)]
struct Runner<'a> {
    run: &'a ProgramRun,
    cx: &'a TaskContext<'a>,
}

impl<'a> Runner<'a> {
    fn log(&self) -> &'a Log {
        &self.run.log
    }

    fn body(self, body: &'a [Op], place: Place, sum: u32) -> BoxFuture<'a, AgentResult<u32>> {
        Box::pin(async move {
            let (mut place, mut sum) = (place, sum);
            for (number, op) in body.iter().enumerate() {
                sum = self.op(op, place.inner(number), sum).await?;
                // Behind a saved value a later run is there before the other branches have got
                // what they had got in the first one.
                place.ended.take_if(|_| op.continues());
            }
            Ok(sum)
        })
    }

    async fn op(self, op: &'a Op, place: Place, sum: u32) -> AgentResult<u32> {
        let cx = self.cx;
        match op {
            Op::Step { .. } => return self.step(op, place, sum).await,
            Op::Say => {
                let text = place.text(sum);
                self.log().says(&text);
                cx.send_intermediate_update(text.clone()).await?;
                self.log().said(text);
            }
            Op::Artifact(name) => {
                let text = place.text(sum);
                self.log().says(&text);
                let artifact = Artifact::from_text(place.key(&format!("a{name}")), text.clone());
                cx.send_partial_artifact(artifact).await?;
                self.log().said(text);
            }
            Op::Chunks { name, pieces } => return self.chunks(*name, pieces, place, sum).await,
            Op::Worker {
                streams,
                busy,
                answers,
            } => {
                self.wait_before_step(&place).await;
                return Box::pin(self.worker((*streams, *busy), answers, place, sum)).await;
            }
            Op::AddEvent => cx.add_event(place.text(sum))?,
            Op::CountEvents => {
                let prefix = format!("{}|", place.branch);
                let texts = texts_of(&cx.thread().await?);
                let own = texts.iter().filter(|text| text.starts_with(&prefix));
                return Ok(mix(sum, &own.count()));
            }
            other => return self.flow(other, place, sum).await,
        }
        Ok(sum)
    }

    /// Branches, time, and values of the task.
    async fn flow(self, op: &'a Op, place: Place, sum: u32) -> AgentResult<u32> {
        let cx = self.cx;
        match op {
            Op::Scope(body) => {
                let name = place.scope("s");
                return cx.scope(&name, self.body(body, place, sum)).await;
            }
            Op::Join {
                races,
                bare,
                branches,
            } => {
                let branches = self.branches((*bare, *races), branches, &place, sum);
                return match races {
                    true => self.race(branches, &place, sum).await,
                    false => join_all(branches)
                        .await
                        .into_iter()
                        .try_fold(sum, |sum, branch| Ok(mix(sum, &branch?))),
                };
            }
            Op::Timeout(time, body) => return self.timeout(*time, body, &place, sum).await,
            Op::Sleep(time) => {
                let (begin, open) = (self.log().mark(), self.log().open(&place.path));
                cx.sleep("w", tenths(*time)).await?;
                open.close();
                self.log().ended(&place.path, begin);
            }
            Op::Now if place.outermost.is_none() => {
                self.log().met_now(&place.path, format!("{:?}", cx.now()));
            }
            Op::Now => {}
            Op::SaveData(name) => {
                let mark = self.log().mark();
                cx.save_data(&place.data(*name), &sum).await?;
                self.log().seal(mark);
            }
            Op::LoadData(name) => {
                return Ok(mix(sum, &cx.load_data::<Value>(&place.data(*name))?));
            }
            Op::Resume(many, body) => return self.resume(*many, body, &place, sum).await,
            session => return self.session(session, &place, sum).await,
        }
        Ok(sum)
    }

    async fn resume(self, many: u8, body: &'a Body, place: &Place, sum: u32) -> AgentResult<u32> {
        let (cx, log, key) = (self.cx, self.log(), place.inner("r").path);
        let (begin, mut sum) = cx.load_data(&key)?.unwrap_or((0, sum));
        for number in begin..many {
            let place = place.inner(number).in_zone();
            sum = self.body(body, place.clone(), sum).await?;
            let text = place.text(sum);
            log.says(&text);
            cx.send_intermediate_update(text.clone()).await?;
            log.said(text);
            sum = mix(sum, &number);
            let mark = log.mark();
            cx.save_data(&key, &(number + 1, sum)).await?;
            log.seal(mark);
        }
        Ok(sum)
    }

    async fn session(self, op: &Op, place: &Place, sum: u32) -> AgentResult<u32> {
        let cx = self.cx;
        let name = match op {
            Op::SaveSession(name) | Op::UpdateSession(name) | Op::LoadSession(name) => {
                place.key(&format!("s{name}"))
            }
            _ => "count".to_owned(),
        };
        self.log().session_key(&name);
        match op {
            Op::SaveSession(_) => cx.save_session(&name, &sum)?,
            Op::UpdateSession(_) => {
                cx.update_session(&name, move |value: Option<u32>| mix(sum, &value))?;
            }
            Op::LoadSession(_) | Op::LoadCount => {
                let value = format!("{:?}", cx.load_session::<Value>(&name).await?);
                // A step that runs again may read another value.
                if place.outermost.is_none() {
                    return Ok(mix(sum, &self.log().met(&place.path, value)));
                }
            }
            _ => cx.update_session(&name, |count: Option<u32>| count.unwrap_or(0) + 1)?,
        }
        Ok(sum)
    }

    async fn wait_before_step(self, place: &Place) {
        if !place.is_bare {
            self.log().place(true).await;
        }
    }

    async fn step(self, op: &'a Op, place: Place, sum: u32) -> AgentResult<u32> {
        let Op::Step {
            name,
            asked,
            time,
            fails,
            body,
        } = op
        else {
            return Ok(sum);
        };
        let (cx, log, key) = (self.cx, self.log(), place.path.clone());
        // Branches see each other's progress.
        let ended = place.ended.as_ref().map(|it| it.load(Ordering::Relaxed));
        let sum = ended.map_or(sum, |ended| {
            mix(sum, &log.met(&format!("{key}/begin"), ended.to_string()))
        });
        // No run repeats this wait, so what depends on the other branches was read before it.
        self.wait_before_step(&place).await;
        let mark: Mutex<Option<Mark>> = Mutex::default();
        let work = async || {
            let runs = log.effect(&place.branch, &key, &sum.to_string());
            let sum = self.body(body, place.clone().in_step(), sum).await?;
            tokio::time::sleep(tenths(*time)).await;
            log.in_step(&key, body.is_empty()).await;
            *mark.lock().unwrap() = Some(log.mark());
            let error = AgentError::domain("STEP", sum.to_string());
            match (fails.is_failure(runs, log.chosen(&key)), fails) {
                (false, _) => Ok(mix(sum, &"step")),
                (true, Fails::Busy { .. }) => Err(error.transient()),
                (true, _) => Err(error),
            }
        };
        let (name, open) = (format!("n{name}"), log.open(&key));
        let done = match (fails, asked) {
            (Fails::Busy { tries, .. }, true) => {
                let retry = cx.retry(&name).tries(u32::from(*tries)).of(&sum)?;
                retry.run(work).await
            }
            (Fails::Busy { tries, .. }, false) => {
                cx.retry(&name).tries(u32::from(*tries)).run(work).await
            }
            (_, true) => cx.step_of(&name, &sum, work()).await,
            (_, false) => cx.step(&name, work()).await,
        };
        open.close();
        if let Some(ended) = &place.ended {
            ended.fetch_add(1, Ordering::Relaxed);
        }
        let (value, is_failed) = match done {
            Ok(value) => (value, false),
            Err(error) if error.code().as_str() == "STEP" => (mix(sum, &error.text()), true),
            Err(error) => return Err(error),
        };
        log.met(&key, is_failed.to_string());
        match mark.into_inner().unwrap() {
            Some(mark) if !is_failed => log.stored(&key, mark),
            mark => log.ended(&key, mark.unwrap_or_default()),
        }
        Ok(value)
    }

    fn branches(
        self,
        (bare, races): (bool, bool),
        branches: &'a [Body],
        place: &Place,
        sum: u32,
    ) -> Vec<BoxFuture<'a, AgentResult<u32>>> {
        // In a step whose work is done again they may see another progress.
        let ended = place.outermost.is_none().then(Arc::default);
        let branches = branches.iter().enumerate().map(|(number, body)| {
            let mut place = place.branch(number);
            place.ended.clone_from(&ended);
            place.is_bare |= bare && races && number == 0;
            let name = place.scope(&format!("b{number}-"));
            let work = self.body(body, place, sum);
            match bare && number == 0 {
                true => work,
                false => Box::pin(async move { self.cx.scope(&name, work).await }),
            }
        });
        branches.collect()
    }

    /// The result of the first branch that ends; the others are dropped.
    async fn race(
        self,
        mut branches: Vec<BoxFuture<'a, AgentResult<u32>>>,
        place: &Place,
        sum: u32,
    ) -> AgentResult<u32> {
        let (log, many) = (self.log(), branches.len());
        let chosen = log.chosen(&place.path).map(|it| it.parse().unwrap());
        let (result, first) = match chosen {
            Some(first) => (branches.swap_remove(first).await, first),
            None => {
                let (result, first, others) = select_all(branches).await;
                drop(others);
                (result, first)
            }
        };
        let others = (0..many).filter(|number| *number != first);
        let others = others.map(|number| place.branch(number).path);
        log.met(&place.path, first.to_string());
        log.dropped(&place.path, others.collect());
        Ok(mix(sum, &(first, result?)))
    }

    async fn timeout(self, time: u8, body: &'a Body, place: &Place, sum: u32) -> AgentResult<u32> {
        let (cx, log, inner) = (self.cx, self.log(), place.branch(0));
        let (name, branch) = (place.scope("t"), inner.path.clone());
        let work = self.body(body, inner, sum);
        let result = match log.chosen(&place.path) {
            Some("over") => None,
            Some(_) => Some(cx.scope(&name, work).await?),
            None => cx.timeout(&name, tenths(time), work).await?,
        };
        let end = if result.is_none() { "over" } else { "in time" };
        log.met(&place.path, end.to_owned());
        let dropped = if result.is_none() {
            vec![branch]
        } else {
            Vec::new()
        };
        log.dropped(&place.path, dropped);
        Ok(mix(sum, &result))
    }

    async fn chunks(
        self,
        name: u8,
        pieces: &'a [Body],
        place: Place,
        sum: u32,
    ) -> AgentResult<u32> {
        let mut sum = sum;
        let mut chunks = self.cx.artifact_chunks(place.series(name));
        for (number, piece) in pieces.iter().enumerate() {
            let place = place.inner(format!("c{number}"));
            let text = place.text(sum);
            self.log().says(&text);
            chunks.push(text.clone()).await?;
            self.log().said(text);
            sum = self.body(piece, place, sum).await?;
        }
        let text = place.text(sum);
        self.log().says(&text);
        chunks.finish_with(text.clone()).await?;
        self.log().said(text);
        Ok(sum)
    }

    async fn worker(
        self,
        (streams, busy): (bool, bool),
        answers: &'a [Vec<Call>],
        place: Place,
        sum: u32,
    ) -> AgentResult<u32> {
        let (log, branch) = (Arc::clone(&self.run.log), place.branch.clone());
        let function = LlmTool::new("function", "Has an effect.", move |input: Value| {
            let key = input["path"].as_str().unwrap_or_default();
            log.effect(&format!("{branch}/{key}"), key, "function");
            let value = mix(0, &key);
            async move { Ok(value) }
        });
        let mut worker = LlmWorker::<String>::new("Do it.")
            .tool(function)
            .skills([skill::Tool::new(Sub(self.run.clone())).trusted()]);
        if streams {
            worker = worker.stream_to(place.key("w"));
        }
        let key = place.path.clone();
        let prompt = Prompt {
            path: place.path,
            busy,
            branch: place.branch,
            answers: json!(answers),
            sum,
        };
        let (mark, open) = (self.log().mark(), self.log().open(&key));
        let answer = worker.run(self.cx, &prompt).await?;
        open.close();
        self.log().stored(&key, mark);
        Ok(mix(sum, &answer))
    }
}

impl Fails {
    /// Whether the step fails when it is done for the time `runs`. `chosen` tells how it has to
    /// end.
    fn is_failure(self, runs: u64, chosen: Option<&str>) -> bool {
        match (self, chosen) {
            (Self::Never, _) => false,
            (Self::Always, _) => true,
            (_, Some(is_failed)) => is_failed == "true",
            (Self::Once, None) => runs == 1,
            (Self::Busy { times, .. }, None) => runs <= u64::from(times),
        }
    }
}

const fn tenths(time: u8) -> Duration {
    Duration::from_millis(100 * time as u64)
}
