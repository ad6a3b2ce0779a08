//! The skills that run a program, and the one that reads what it left.

use super::log::{Log, texts_of};
use super::model::Prompt;
use super::program::{Body, Call, Key, Op, Program};
use a2a_lambda::llm::{LlmTool, LlmWorker};
use a2a_lambda::prelude::*;
use a2a_lambda::skill;
use futures::future::{BoxFuture, join_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
            step: None,
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
            let value: Option<Value> = cx.load_session(&key).await?;
            let mut notes = self.0.log.notes();
            notes.session.insert(key, format!("{value:?}"));
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
            step: end,
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
    /// Where the path of the innermost step ends.
    step: Option<usize>,
}

impl Place {
    fn inner(&self, name: impl std::fmt::Display) -> Self {
        Self {
            path: format!("{}/{name}", self.path),
            branch: self.branch.clone(),
            ..*self
        }
    }

    fn in_step(self) -> Self {
        let end = self.path.len();
        Self {
            outermost: self.outermost.or(Some(end)),
            step: Some(end),
            ..self
        }
    }

    /// The name of an artifact in chunks. A step that is open at an interruption runs again, and
    /// says again what it has said in two series of one name. So it has no two of one name, nor
    /// have the steps in it. A writer inside of another one has a name of its own.
    fn series(&self, name: u8) -> String {
        let in_step = self.outermost.and_then(|step| self.path.get(step..));
        let outside = || format!("a{name}.{}", self.path.matches("/c").count());
        self.key(&in_step.map_or_else(outside, |path| format!("c{path}")))
    }

    /// The name of a value of the task. One that a step saves is saved in this step alone.
    fn data(&self, name: u8) -> String {
        let step = self.step.and_then(|step| self.path.get(..step));
        self.key(&format!("d{name}{}", step.unwrap_or_default()))
    }

    fn branch(&self, number: usize) -> Self {
        let path = format!("{}/b{number}", self.path);
        Self {
            branch: path.clone(),
            path,
            ..*self
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
            let mut sum = sum;
            for (number, op) in body.iter().enumerate() {
                if op.is_step() {
                    self.log().place(true).await;
                }
                sum = self.op(op, place.inner(number), sum).await?;
            }
            Ok(sum)
        })
    }

    async fn op(self, op: &'a Op, place: Place, sum: u32) -> AgentResult<u32> {
        let cx = self.cx;
        match op {
            Op::Step { .. } => return self.step(op, place, sum).await,
            Op::Scope(body) => return cx.scope("s", self.body(body, place, sum)).await,
            Op::Join(branches) => return self.join(branches, &place, sum).await,
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
            Op::Worker { streams, answers } => {
                return Box::pin(self.worker(*streams, answers, place, sum)).await;
            }
            Op::AddEvent => cx.add_event(place.text(sum))?,
            Op::CountEvents => {
                let prefix = format!("{}|", place.branch);
                let texts = texts_of(&cx.thread().await?);
                let own = texts.iter().filter(|text| text.starts_with(&prefix));
                return Ok(mix(sum, &own.count()));
            }
            Op::SaveData(name) => {
                let mark = self.log().mark();
                cx.save_data(&place.data(*name), &sum).await?;
                self.log().seal(mark);
            }
            Op::LoadData(name) => {
                let key = place.data(*name);
                let load = async { cx.load_data::<Value>(&key) };
                return Ok(mix(sum, &cx.step("load", load).await?));
            }
            Op::Resume(many) => return self.resume(*many, &place, sum).await,
            session => return self.session(session, &place, sum).await,
        }
        Ok(sum)
    }

    async fn resume(self, many: u8, place: &Place, sum: u32) -> AgentResult<u32> {
        let (cx, log, key) = (self.cx, self.log(), place.inner("r").path);
        let (begin, mut sum) = cx.load_data(&key)?.unwrap_or((0, sum));
        for number in begin..many {
            let text = place.inner(number).text(sum);
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
            Op::SaveSession(key) | Op::LoadSession(key) => key.name(place),
            Op::UpdateSession(name) => Key::Updated(*name).name(place),
            _ => "count".to_owned(),
        };
        self.log().session_key(&name);
        match op {
            Op::SaveSession(_) => cx.save_session(&name, &sum)?,
            Op::UpdateSession(_) => {
                cx.update_session(&name, move |value: Option<u32>| mix(sum, &value))?;
            }
            Op::LoadSession(Key::Saved(_)) => {
                return Ok(mix(sum, &cx.load_session::<Value>(&name).await?));
            }
            Op::LoadSession(Key::Updated(_)) | Op::LoadCount => {
                let load = cx.load_session::<Value>(&name);
                return Ok(mix(sum, &cx.step("load", load).await?));
            }
            _ => cx.update_session(&name, |count: Option<u32>| count.unwrap_or(0) + 1)?,
        }
        Ok(sum)
    }

    async fn step(self, op: &'a Op, place: Place, sum: u32) -> AgentResult<u32> {
        let Op::Step {
            name,
            asked,
            fails,
            body,
        } = op
        else {
            return Ok(sum);
        };
        let (cx, log, ran) = (self.cx, self.log(), AtomicBool::new(false));
        let mark = AtomicUsize::new(0);
        let (key, branch) = (place.path.clone(), place.branch.clone());
        let work = async {
            log.effect(&branch, &key, &sum.to_string());
            ran.store(true, Ordering::Relaxed);
            let sum = self.body(body, place.in_step(), sum).await?;
            log.in_step(&key, body.is_empty() && !fails).await;
            mark.store(log.mark(), Ordering::Relaxed);
            match fails {
                true => Err(AgentError::domain("STEP", sum.to_string())),
                false => Ok(mix(sum, &"step")),
            }
        };
        let name = format!("n{name}");
        let done = match asked {
            true => cx.step_of(&name, &sum, work).await,
            false => cx.step(&name, work).await,
        };
        match done {
            Ok(value) => {
                if ran.into_inner() {
                    log.stored(&key);
                    log.seal(mark.into_inner());
                }
                Ok(value)
            }
            Err(error) if *fails && error.code().as_str() == "STEP" => Ok(mix(sum, &error.text())),
            Err(error) => Err(error),
        }
    }

    async fn join(self, branches: &'a [Body], place: &Place, sum: u32) -> AgentResult<u32> {
        let scopes = branches.iter().enumerate().map(|(number, body)| {
            let work = self.body(body, place.branch(number), sum);
            let name = format!("b{number}");
            async move { self.cx.scope(&name, work).await }
        });
        let done = join_all(scopes).await;
        done.into_iter()
            .try_fold(sum, |sum, branch| Ok(mix(sum, &branch?)))
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
        streams: bool,
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
        let prompt = Prompt {
            path: place.path,
            branch: place.branch,
            answers: json!(answers),
            sum,
        };
        let mark = self.log().mark();
        let answer = worker.run(self.cx, &prompt).await?;
        self.log().seal(mark);
        Ok(mix(sum, &answer))
    }
}

impl Key {
    fn name(self, place: &Place) -> String {
        match self {
            Self::Saved(number) => place.key(&format!("s{number}")),
            Self::Updated(number) => place.key(&format!("u{number}")),
        }
    }
}
