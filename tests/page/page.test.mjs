// The page of the local agent in a real browser.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { after, afterEach, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { AXE, a2a, openBrowser, picture, saying, startAgent, startDev, startWith } from "./setup.mjs";

const run = promisify(execFile);

let browser;
before(async () => { browser = await openBrowser(); });
after(() => browser?.close());

/** A page whose errors and refused scripts end the case. */
async function visit(agent, { path = "", prepare, ...options } = {}) {
  const context = await browser.newContext({ acceptDownloads: true, viewport: { width: 1100, height: 800 }, ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (line) => {
    // A refused call and a lost connection are lines of the browser, not of the page.
    if (line.type() === "error" && !/Failed to load resource/.test(line.text())) page.faults.push(line.text());
  });
  await prepare?.(page);
  await page.goto(agent.page);
  await page.waitForSelector("h1");
  if (path) {
    await page.evaluate((to) => { location.hash = to; }, path);
    await page.waitForTimeout(50);
  }
  opened.push(page);
  return page;
}
const opened = [];
afterEach(async () => {
  for (const page of opened.splice(0)) {
    const { faults } = page;
    // A route whose call is still under way must not fail after the test.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.context().close();
    assert.deepEqual(faults, []);
  }
});

const at = async (page, path) => page.evaluate((to) => { location.hash = to; }, `#/${path}`);
const skill = (page, id) => page.locator(`[data-skill="${id}"]`);
/** The open form of a skill. */
async function formOf(page, id) {
  await at(page, `skills/${id}`);
  const form = skill(page, id);
  await form.getByRole("button", { name: "Send", exact: true }).waitFor();
  return form;
}
const tasks = (page) => page.locator("#log article[aria-label^='Task']");
const inState = (page, state) => tasks(page).last().locator(`.run .state.${state}`);
const taskId = (page) => tasks(page).last().locator("a[data-task]").getAttribute("data-task");
const box = (page) => page.getByLabel("Message", { exact: true });
const bubbles = async (page) => page.locator("#log .bubble").allInnerTexts();
const say = async (page, text) => {
  await box(page).fill(text);
  await box(page).press("Enter");
};
const fall = (page, name) => page.getByRole("treegrid").getByRole("row", { name });
const VIEWS = ["chat", "tasks", "skills", "webhooks", "agent", "process", "conversations", "more"];

describe("the reference agent", () => {
  let agent;
  before(async () => { agent = await startAgent(); });
  after(() => agent?.stop());

  test("the form of every skill sends", async () => {
    const page = await visit(agent, { path: "#/skills" });
    await skill(page, "echo").waitFor();
    const ids = await page.locator("[data-skill]").evaluateAll((all) => all.map((it) => it.dataset.skill));
    const known = ["add", "book-flight", "create-report", "echo", "format-report", "generate-report", "logo"];
    assert.deepEqual(known.filter((id) => !ids.includes(id)), []);
    const fill = {
      echo: async (form) => form.getByLabel("Text", { exact: true }).fill("hello there"),
      add: async (form) => {
        await form.getByLabel("a", { exact: true }).fill("19");
        await form.getByLabel("b", { exact: true }).fill("23");
      },
      "book-flight": async (form) => {
        await form.getByLabel("to", { exact: true }).fill("Rome");
        await form.getByLabel("on", { exact: true }).fill("Monday");
      },
      "generate-report": async (form) => {
        await form.getByLabel("title").fill("Year");
        await form.getByRole("button", { name: "Add to points" }).click();
        await form.getByLabel("label").fill("revenue");
        await form.getByLabel("value").fill("1.5");
      },
      logo: async (form) => form.getByLabel("Text", { exact: true }).fill("a red square"),
      "format-report": async (form) => form.getByLabel("Text", { exact: true }).fill("my report"),
      "create-report": async (form) => form.getByLabel("Text", { exact: true }).fill("my report"),
    };
    for (const id of known) {
      const form = await formOf(page, id);
      await fill[id](form);
      await form.getByRole("button", { name: "Send", exact: true }).click();
      if (id === "echo") await page.locator("#log").getByText("hello there").last().waitFor();
      else if (["create-report", "format-report"].includes(id)) await inState(page, "input-required").waitFor();
      else await inState(page, "completed").waitFor();
    }
    assert.doesNotMatch(await (await formOf(page, "book-flight")).innerText(), /\., optional/);
    await page.screenshot({ path: picture("skills-light.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("skills-dark.png") });
  });

  test("a skill that the page stops is refused until the page lets it go on", async () => {
    const page = await visit(agent, { path: "#/process" });
    const braked = page.locator("#braked li");
    await page.getByLabel("What to stop").selectOption("skill echo");
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await braked.getByText("skill echo").waitFor();
    const sends = () => a2a(agent.base, "/message:send", saying("echo hi")).then(() => 200, (error) => Number(/: (\d+) /.exec(error.message)[1]));
    const answers = async (status) => { while (await sends() !== status) await page.waitForTimeout(500); };
    await answers(503);
    await page.screenshot({ path: picture("brake.png") });
    await page.getByRole("button", { name: "Let it go on" }).click();
    await braked.waitFor({ state: "detached" });
    await answers(200);
  });

  test("a question that offers skills has a button for each, which answers it", async () => {
    const page = await visit(agent);
    await say(page, "I would like a picture of a mountain");
    await inState(page, "input-required").waitFor();
    const offer = tasks(page).last().locator(".choices button");
    assert.ok(await offer.count() <= 5, "at most five");
    assert.doesNotMatch(await tasks(page).last().innerText(), /^1\. /m, "no list beside the buttons");
    const logo = offer.filter({ hasText: "Logo" });
    await page.screenshot({ path: picture("choices.png") });
    await logo.focus();
    await page.keyboard.press("Enter");
    await inState(page, "completed").waitFor();
    await tasks(page).last().locator("img").waitFor();
    assert.equal(await page.locator("#log .choices:visible").count(), 0);
    await page.reload();
    await tasks(page).last().locator("img").waitFor();
    assert.equal(await page.locator("#log .choices:visible").count(), 0);
  });

  test("a conversation goes through three topics, a refinement and a question that waits", async () => {
    const page = await visit(agent);
    const ends = async (text, state, shown) => {
      const before = await page.locator("#log article").count();
      await say(page, text);
      await page.waitForFunction((count) => document.querySelectorAll("#log article").length >= count + 1, before);
      await inState(page, state).waitFor();
      if (shown) await page.locator("#log .bubble").getByText(shown).last().waitFor();
    };
    await ends("What's 2+2?", "completed");
    await ends("Generate logo", "completed");
    await tasks(page).last().locator("img").waitFor();
    await ends("Make it blue", "completed");
    await tasks(page).last().locator("img").waitFor();
    await ends("Book a flight", "input-required", "Where to?");
    // Without its task a sum is a sum, and the flight still waits.
    await page.getByRole("button", { name: "Do not answer" }).click();
    await ends("What's 2+2?", "completed");
    await page.getByRole("button", { name: "Answer book-flight" }).click();
    await ends("Helsinki", "input-required", "When?");
    await ends("Next Monday", "completed", "Helsinki");
  });

  test("a skill that takes files has a field for them, and says which", async () => {
    const page = await visit(agent);
    const form = await formOf(page, "fingerprint");
    await form.getByText("pdf, image, to").waitFor();
    const send = form.getByRole("button", { name: "Send", exact: true });
    await send.click();
    await form.getByText("Choose a file.").waitFor();
    await form.locator("input[type=file]").setInputFiles(file("notes.txt", "no picture"));
    await form.getByText("notes.txt is text/plain, and this takes").waitFor();
    await form.locator("input[type=file]").setInputFiles(file("paper.pdf", "%PDF-1.4 paper", "application/pdf"));
    await form.getByText("paper.pdf").first().waitFor();
    await send.click();
    await inState(page, "completed").waitFor();
    await page.locator("#log .you .file").getByText("paper.pdf").waitFor();
  });

  test("a wrong field is named when it is left, and nothing is sent", async () => {
    const page = await visit(agent);
    const form = await formOf(page, "add");
    const a = form.getByLabel("a", { exact: true });
    await a.pressSequentially("one");
    assert.equal(await form.getByText("This has to be a whole number.").count(), 0, "an error while typing");
    const before = await form.getByLabel("b", { exact: true }).boundingBox();
    await a.press("Tab");
    await form.getByText("This has to be a whole number.").waitFor();
    assert.deepEqual(await form.getByLabel("b", { exact: true }).boundingBox(), before, "the error moves the form");
    await form.getByRole("button", { name: "Send", exact: true }).click();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
    assert.match(page.url(), /#\/skills\/add$/);
    // What is left out is named too, on leaving and on sending.
    await form.getByLabel("b", { exact: true }).focus();
    await page.keyboard.press("Tab");
    await form.getByText("This has to be a whole number.").nth(1).waitFor();
    const bare = await formOf(page, "echo");
    const place = await bare.getByRole("button", { name: "Send", exact: true }).boundingBox();
    await bare.getByRole("button", { name: "Send", exact: true }).click();
    await bare.getByText("Type a text.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.labels[0].textContent), "Text");
    assert.deepEqual(await bare.getByRole("button", { name: "Send", exact: true }).boundingBox(), place);
  });

  test("an example is a button, and sends once when it is pressed twice", async () => {
    const page = await visit(agent);
    let sends = 0;
    page.on("request", (it) => { sends += it.url().endsWith("/message:stream") ? 1 : 0; });
    await (await formOf(page, "add")).getByRole("button", { name: "What's 2+2?" }).dblclick();
    await inState(page, "completed").waitFor();
    assert.equal(sends, 1);
    await tasks(page).last().getByText("4", { exact: true }).first().waitFor();
  });

  test("the composer answers the open question, and a chip says so", async () => {
    const page = await visit(agent);
    await page.getByRole("button", { name: "Book a flight" }).click();
    await inState(page, "input-required").waitFor();
    await page.locator(".composer .chip").getByText("Answers Where to?").waitFor();
    await say(page, "Rome");
    await page.locator(".composer .chip").getByText(/^Answers (?!Where)/).waitFor();
    await page.screenshot({ path: picture("question.png") });
    await say(page, "Monday");
    await inState(page, "completed").waitFor();
    assert.equal(await page.locator(".composer .chip").count(), 0);
    const order = await bubbles(page);
    const places = ["Book a flight", "Where to?", "Rome", "Monday"].map((text) => order.findIndex((it) => it.includes(text)));
    assert.deepEqual(places, [...places].sort((a, b) => a - b), String(order));
    assert.ok(!places.includes(-1), String(order));
    assert.equal(await page.locator("#talk-note").getByText("1 task", { exact: true }).count(), 1);
  });

  test("a closed chip makes the next message a new task, and the question can be taken up again", async () => {
    const page = await visit(agent);
    await say(page, "Book a flight");
    await inState(page, "input-required").waitFor();
    await page.getByRole("button", { name: "Do not answer" }).click();
    await say(page, "What's 2+2?");
    await inState(page, "completed").waitFor();
    assert.equal(await tasks(page).count(), 2);
    await page.getByRole("button", { name: "Answer book-flight" }).click();
    await say(page, "Oslo");
    await page.locator(".composer .chip").getByText(/^Answers (?!Where)/).waitFor();
    await box(page).press("Escape");
    assert.equal(await page.locator(".composer .chip").count(), 0, "Escape closes the chip");
    await say(page, "Book a flight");
    await page.locator(".composer .chip").getByText("Answers Where to?").waitFor();
    await tasks(page).last().locator(".run").getByText("book-flight").waitFor();
    await page.getByRole("button", { name: "1 more" }).click();
    await page.getByRole("menuitem", { name: "Answer book-flight" }).click();
    const first = await tasks(page).nth(1).locator("a[data-task]").getAttribute("data-task");
    const answer = page.waitForRequest("**/message:stream");
    await say(page, "Monday");
    assert.equal((await answer).postDataJSON().message.taskId, first);
    await box(page).fill("a line\n".repeat(12));
    const high = await box(page).evaluate((it) => it.clientHeight / parseFloat(getComputedStyle(it).lineHeight));
    assert.ok(high > 10 && high < 11, `${high} lines are seen of twelve`);
  });

  test("a conversation is in the address and comes back after a reload, in its order", async () => {
    const page = await visit(agent);
    await say(page, "Book a flight");
    await inState(page, "input-required").waitFor();
    await say(page, "Rome");
    await page.locator(".composer .chip").getByText(/^Answers (?!Where)/).waitFor();
    await page.getByRole("button", { name: "Do not answer" }).click();
    await say(page, "What's 2+2?");
    await inState(page, "completed").waitFor();
    assert.match(page.url(), /#\/chat\/ctx-/);
    const before = (await bubbles(page)).map((it) => it.replace("Open question", "").trim());
    await box(page).fill("not sent yet");
    await page.reload();
    await inState(page, "completed").waitFor();
    const after = (await bubbles(page)).map((it) => it.replace("Open question", "").trim());
    assert.deepEqual([...after].sort(), [...before].sort());
    assert.deepEqual(after.slice(0, 3), before.slice(0, 3));
    assert.equal(await box(page).inputValue(), "not sent yet", "the draft is lost");
    await at(page, "conversations");
    await page.getByRole("row").filter({ hasText: "Book a flight" }).first().getByRole("button", { name: "Continue" }).click();
    await page.locator("#log").getByText("Where to?").first().waitFor();
    // While another one is read for longer than the old view stays, the composer stays, and takes its draft.
    let read;
    await page.route("**/tasks?contextId*", (route) => { read = () => route.continue(); });
    const asked = page.waitForRequest("**/tasks?contextId*");
    const { task } = await a2a(agent.base, "/message:send", saying("What's 2+2?"));
    await at(page, `chat/${task.contextId}`);
    await asked;
    await page.waitForTimeout(350);
    await box(page).fill("typed meanwhile");
    read();
    await page.locator("#log .bubble").first().waitFor();
    assert.equal(await box(page).inputValue(), "typed meanwhile");
  });

  test("credentials are typed hidden and kept nowhere", async () => {
    const page = await visit(agent);
    await say(page, "/format-report as PDF");
    await inState(page, "auth-required").waitFor();
    const control = page.getByLabel("Credentials", { exact: true });
    assert.equal(await control.getAttribute("type"), "password");
    await page.locator(".composer .chip").getByText("Credentials for format-report").waitFor();
    await page.screenshot({ path: picture("credentials.png") });
    await control.fill("very-secret");
    const eye = page.getByRole("button", { name: "Show what is typed" });
    await eye.click();
    await at(page, "tasks");
    await page.getByRole("grid").waitFor();
    await at(page, "chat");
    await control.waitFor();
    assert.equal(await control.inputValue(), "", "they are there after the view was left");
    assert.deepEqual([await control.getAttribute("type"), await eye.getAttribute("aria-pressed")], ["password", "false"]);
    await page.route("**/message:stream", (route) => route.abort());
    await control.fill("very-secret");
    await control.press("Enter");
    await page.getByRole("alert").getByText("The agent did not answer.").waitFor();
    await page.getByText("Show the call").click();
    assert.equal(await page.getByRole("button", { name: "Send again" }).count(), 0, "they are kept for a second try");
    assert.ok(!(await page.locator("#log").innerHTML()).includes("very-secret"));
    await page.unroute("**/message:stream");
    await control.fill("very-secret");
    await control.press("Enter");
    await inState(page, "completed").waitFor();
    await page.locator("#log").getByText("Credentials given, not kept").waitFor();
    const kept = async () => page.evaluate(() => document.body.innerText + location.href + JSON.stringify({ ...sessionStorage, ...localStorage }) + [...document.querySelectorAll("input, textarea")].map((it) => it.value));
    assert.ok(!(await kept()).includes("very-secret"));
    await page.reload();
    await inState(page, "completed").waitFor();
    await page.locator("#log").getByText("Credentials given, not kept").waitFor();
    assert.ok(!(await kept()).includes("very-secret"));
  });

  test("a conversation with an open question says so, whatever ended in it since", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("Book a flight"));
    await a2a(agent.base, "/message:send", { message: { ...saying("What's 2+2?").message, contextId: task.contextId } });
    const page = await visit(agent);
    await page.locator(`#talks [data-context="${task.contextId}"] .glyph.input-required`).waitFor();
    await at(page, "conversations");
    await page.locator("tbody tr").first().getByText("Input required").waitFor();
  });

  test("the address of a late skill shows the skill", async () => {
    const page = await visit(agent, { path: "#/skills", viewport: { width: 1280, height: 800 } });
    const id = await page.locator("[data-skill]").last().getAttribute("data-skill");
    const form = await formOf(page, id);
    await page.waitForFunction(() => document.querySelector(".scroll").scrollTop > 0);
    const send = await form.getByRole("button", { name: "Send", exact: true }).boundingBox();
    assert.ok(send.y + send.height <= 800, `its button is at ${send.y}`);
  });

  test("the field of a text alone has a name", async () => {
    const only = { id: "word", name: "Word", description: "Takes a word.", tags: [], inputModes: ["application/json"], outputModes: ["text/plain"], inputSchema: { type: "string" } };
    const prepare = (page) => page.route("**/a2a-lambda/skills", (route) => route.fulfill({ json: { skills: [only] } }));
    const page = await visit(agent, { prepare });
    const form = await formOf(page, "word");
    await form.getByLabel("Input", { exact: true }).fill("hello");
  });

  test("long names of extensions leave room for their texts on a phone", async () => {
    const page = await visit(agent, { path: "#/agent", viewport: { width: 390, height: 800 } });
    await page.locator(".facts dd").first().waitFor();
    const widths = await page.locator(".facts dd").evaluateAll((all) => all.map((it) => it.getBoundingClientRect().width));
    assert.ok(widths.every((it) => it > 180), String(widths));
  });

  test("documents and memories of the caller are in the state of a task", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("remember that I like tea for me"));
    await a2a(agent.base, "/message:send", { message: { ...saying("user").message, taskId: task.id, contextId: task.contextId } });
    const page = await visit(agent, { path: `#/task/${task.id}`, viewport: { width: 390, height: 800 } });
    await page.getByRole("tab", { name: "State" }).click();
    await page.locator("#panel-state").getByText('"I like tea for me"').waitFor();
    await page.locator("#panel-state").getByText("in memory/user").waitFor();
    const { task: asked } = await a2a(agent.base, "/message:send", saying("Book a flight"));
    await at(page, `task/${asked.id}`);
    await page.getByRole("tab", { name: "State" }).click();
    await page.locator("#panel-state .json").getByText('"Where"').first().waitFor();
    const stateOf = (id, headers) => fetch(`${agent.base}/a2a-local/page/tasks/${id}/state`, { headers: { "X-A2A-Local-Token": agent.page.slice(-64), ...headers } });
    // Another caller has documents of its own.
    assert.equal((await stateOf(asked.id, { Authorization: "Bearer dev:acme:ann" })).status, 404);
    // Once a task of the conversation has got credentials, documents are shown by name only.
    const shown = (await (await stateOf(task.id)).json()).documents;
    assert.ok(shown.length && shown.every((it) => "value" in it));
    const within = (text, id) => ({ message: { ...saying(text).message, taskId: id, contextId: task.contextId } });
    const { task: report } = await a2a(agent.base, "/message:send", within("/format-report as PDF"));
    await a2a(agent.base, "/message:send", within("very-secret", report.id));
    const names = (await (await stateOf(task.id)).json()).documents;
    assert.deepEqual(names.map((it) => [it.name, it.isHidden, "value" in it]), shown.map((it) => [it.name, true, false]));
  });

  test("a message that nobody took can be sent again as the same, and its question is open until then", async () => {
    const page = await visit(agent);
    await say(page, "Book a flight");
    await inState(page, "input-required").waitFor();
    const ids = [];
    const tries = [
      (route) => route.abort(),
      (route) => route.fulfill({ status: 503, json: { error: { message: "The store is away" } } }),
      // The agent takes it, and the answer is lost.
      async (route) => { await route.fetch(); await route.abort(); },
    ];
    await page.route("**/message:stream", (route) => {
      ids.push(route.request().postDataJSON().message.messageId);
      return (tries.shift() ?? ((it) => it.continue()))(route);
    });
    const own = page.locator("#log .you").filter({ hasText: "Rome" });
    const unsent = own.getByRole("alert");
    const again = unsent.getByRole("button", { name: "Send again" });
    await say(page, "Rome");
    await unsent.getByText("The agent did not answer.").waitFor();
    await page.locator(".composer .chip").getByText("Answers Where to?").waitFor();
    await page.locator("#log .asks").getByText("Where to?").waitFor();
    await inState(page, "input-required").waitFor();
    await again.click();
    await unsent.getByText("The store is away").waitFor();
    await unsent.getByText("HTTP 503").waitFor();
    await unsent.getByText("Show the call").click();
    await unsent.getByText(ids[0]).waitFor();
    await page.screenshot({ path: picture("unsent.png") });
    await again.click();
    await page.locator(".composer .chip").getByText(/^Answers (?!Where)/).waitFor();
    await unsent.waitFor({ state: "detached" });
    await say(page, "Monday");
    await inState(page, "completed").waitFor();
    assert.equal(await own.count(), 1);
    assert.deepEqual(ids.slice(0, 3), [ids[0], ids[0], ids[0]]);
  });

  test("a picture is shown, and refined by a reference", async () => {
    const page = await visit(agent);
    await say(page, "Draw a red square logo");
    await inState(page, "completed").waitFor();
    const image = page.locator("#log .shot img");
    await page.waitForFunction(() => document.querySelector("#log .shot img").naturalWidth === 64);
    assert.match(await image.getAttribute("src"), /^blob:/);
    await page.getByRole("button", { name: "Refine logo.png" }).click();
    await page.locator(".composer .chip").getByText("Refines logo.png").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "say");
    const sent = page.waitForRequest("**/message:stream");
    await say(page, "make it blue");
    const first = await tasks(page).first().locator("a[data-task]").getAttribute("data-task");
    assert.deepEqual((await sent).postDataJSON().message.referenceTaskIds, [first]);
    await page.waitForFunction(() => document.querySelectorAll("#log .shot img").length === 2);
    await page.screenshot({ path: picture("logo.png") });
  });

  test("a conversation follows what another page says in it, and shows its earlier tasks on request", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("Book a flight"));
    const { contextId } = task;
    const [one, other] = [await visit(agent, { path: `#/chat/${contextId}` }), await visit(agent, { path: `#/chat/${contextId}` })];
    await inState(one, "input-required").waitFor();
    await inState(other, "input-required").waitFor();
    await say(one, "Rome");
    await other.locator("#log .you").getByText("Rome").waitFor();
    await other.locator(".composer .chip").getByText(/^Answers (?!Where)/).waitFor();
    for (let n = 0; n < 21; n += 1) await a2a(agent.base, "/message:send", { message: { ...saying(`add ${n} and 1`).message, contextId } });
    await other.reload();
    await tasks(other).nth(19).waitFor();
    assert.equal(await tasks(other).count(), 20);
    await other.getByRole("button", { name: "Show earlier tasks" }).click();
    await other.locator("#log .you").getByText("Book a flight").waitFor();
    assert.equal((await bubbles(other))[0], "Book a flight");
    await other.locator("main .scroll").evaluate((it) => { it.scrollTop = 0; });
    const end = other.getByRole("button", { name: "To the end" });
    await end.waitFor();
    assert.ok((await end.boundingBox()).y > 0, "the button is above the window");
    await end.click();
    await end.waitFor({ state: "hidden" });
  });

  test("an artifact can be refined from the page of its task", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("Draw a red square logo"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await page.getByRole("tab", { name: "Artifacts" }).click();
    await page.getByRole("button", { name: "Refine logo.png" }).click();
    await page.locator(".composer .chip").getByText("Refines logo.png").waitFor();
    assert.ok(page.url().includes(task.contextId));
  });

  test("the keyboard alone is enough", async () => {
    const page = await visit(agent);
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
    await page.keyboard.press("Escape");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await skill(page, "book-flight").waitFor();
    // The list is one Tab stop: the row of the last focus, or the one that the address opened.
    const heads = page.locator("[data-skill] > h2 button");
    const stops = () => heads.evaluateAll((all) => all.flatMap((it, n) => (it.tabIndex === 0 ? [n] : [])));
    assert.deepEqual(await stops(), [0]);
    await heads.first().focus();
    await page.keyboard.press("j");
    assert.deepEqual(await stops(), [1]);
    const ids = await page.locator("[data-skill]").evaluateAll((all) => all.map((it) => it.dataset.skill));
    await formOf(page, "echo");
    assert.deepEqual(await stops(), [ids.indexOf("echo")]);
    await skill(page, "echo").locator("h2 button").click();
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.type), "search");
    await page.keyboard.type("flight");
    await page.keyboard.press("Tab");
    for (let n = 0; n < 9 && !(await focused()).startsWith("Flight booking"); n += 1) await page.keyboard.press("Tab");
    for (const [key, isOpen] of [["Enter", "true"], ["ArrowLeft", "false"], ["ArrowRight", "true"]]) {
      await page.keyboard.press(key);
      assert.equal(await page.evaluate(() => document.activeElement.ariaExpanded), isOpen, key);
    }
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
    for (let n = 0; n < 9 && (await focused()) !== "Book a flight"; n += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await inState(page, "input-required").waitFor();
    await page.waitForFunction(() => document.activeElement.id === "say");
    await page.keyboard.type("Rome");
    await page.keyboard.press("Enter");
    await page.locator("#log .asks").filter({ hasNotText: "Where to?" }).waitFor();
    await page.keyboard.type("Monday");
    await page.keyboard.press("Enter");
    await inState(page, "completed").waitFor();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByRole("grid").waitFor();
    for (let n = 0; n < 30 && !(await page.evaluate(() => document.activeElement.matches("tr"))); n += 1) await page.keyboard.press("Tab");
    const first = await page.evaluate(() => document.activeElement.dataset.key);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("k");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), first);
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Trace" }).waitFor();
    assert.ok(page.url().endsWith(first));
    await at(page, "conversations");
    await page.getByRole("button", { name: "Continue" }).first().waitFor();
    await page.locator("tbody tr").first().focus();
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Continue");
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Single letters act").waitFor();
    await page.goBack();
    await page.getByRole("tab", { name: "Trace" }).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0, "a dialog stays over the next view");
    await at(page, "conversations");
    await page.getByRole("button", { name: "Continue" }).first().waitFor();
    await page.locator("tbody tr").first().focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Delete");
    const talks = await page.locator("tbody tr").count();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Delete this conversation?" }).waitFor();
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("tbody tr").count(), talks, "it is deleted without a question");
    assert.equal(await focused(), "Delete");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
    await page.waitForFunction((most) => document.querySelectorAll("tbody tr").length < most, talks);
    await page.waitForFunction(() => document.activeElement.matches("tbody tr, h1"));
  });

  test("keys lead to views, rows, events and a new conversation, and send", async () => {
    for (const text of ["What's 2+2?", "Book a flight"]) await a2a(agent.base, "/message:send", saying(text));
    const page = await visit(agent);
    await box(page).pressSequentially("not");
    await box(page).press("Shift+Enter");
    await box(page).pressSequentially("sent");
    assert.equal(await box(page).inputValue(), "not\nsent");
    await box(page).fill("What's 2+2?");
    await box(page).press("Control+Enter");
    await inState(page, "completed").waitFor();
    assert.equal(await page.locator("#log .you").count(), 1);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("e");
    await tasks(page).last().locator(".events li").first().waitFor();
    for (const [key, view] of [["t", "tasks"], ["s", "skills"], ["w", "webhooks"], ["a", "agent"], ["p", "process"], ["t", "tasks"]]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.waitForFunction((name) => location.hash === `#/${name}` && document.getElementById("main").className === `view-${name}`, view);
    }
    const rows = page.locator("tr[data-key]");
    await rows.nth(2).waitFor();
    await rows.nth(1).focus();
    for (const [key, place] of [["End", "last"], ["Home", "first"]]) {
      await page.keyboard.press(key);
      assert.ok(await rows[place]().evaluate((it) => it === document.activeElement), key);
    }
    await page.keyboard.press("Enter");
    await page.getByRole("treegrid").waitFor();
    await fall(page, /^Turn 1/).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".detail").waitFor();
    const opened = await page.locator("[data-row][aria-selected=true]").getAttribute("data-row");
    await page.locator(".detail").getByRole("button", { name: "Close" }).click();
    assert.equal(await page.evaluate(() => document.activeElement.dataset.row), opened, "the focus is not on the row");
    await page.keyboard.press("n");
    await page.waitForFunction(() => location.hash === "#/chat" && document.getElementById("welcome"));
    assert.equal(await page.locator("#log > *").count(), 0, "it is no new conversation");
    const form = await formOf(page, "echo");
    await form.getByLabel("Text", { exact: true }).fill("of a form");
    await form.getByLabel("Text", { exact: true }).press("Control+Enter");
    await page.locator("#log .turn:not(.you)").getByText("of a form").waitFor();
    assert.equal(await page.locator("#log .you").count(), 1);
  });

  test("a new conversation begins also from the list of conversations", async () => {
    const page = await visit(agent);
    await say(page, "What's 2+2?");
    await inState(page, "completed").waitFor();
    await at(page, "conversations");
    await page.locator("header.head").getByRole("button", { name: "New" }).click();
    await page.locator("#welcome").getByText("What should the agent do?").waitFor();
    assert.equal(await page.locator("#log > *").count(), 0, "it is the conversation before");
  });

  test("a link in a new tab shows all that the first tab shows, for the same caller", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("What's 2+2?"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await fall(page, /^Turn 1, turn/).waitFor();
    const address = page.url();
    assert.ok(!address.includes("token"));
    const next = await page.context().newPage();
    await next.goto(address);
    await fall(next, /^Turn 1, turn/).waitFor();
    await at(page, "skills");
    await page.getByRole("button", { name: "Calls as local" }).click();
    await page.getByLabel("Call as").fill("acme:ann");
    await page.getByRole("button", { name: "Use", exact: true }).click();
    await next.close();
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name: "Process" }).click({ modifiers: ["ControlOrMeta"] });
    const other = await opened;
    // The driver may miss that the new tab has opened its page, and then waits for it in vain.
    const shown = () => other.evaluate(() => document.body.innerText).catch(() => "");
    for (let n = 0; n < 100 && !/kept over restarts/.test(await shown()); n += 1) await page.waitForTimeout(100);
    assert.match(await shown(), /Calls as acme:ann[^]*kept over restarts/);
  });

  test("the skip link leads to the view", async () => {
    const page = await visit(agent);
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    assert.match(page.url(), /#\/chat/);
  });

  test("every control has a name, and every view one heading", async () => {
    const page = await visit(agent);
    // The last one is a link that was cut.
    for (const path of [...VIEWS, "skills/add", "task/%E0%A4%A"]) {
      await at(page, path);
      await page.waitForTimeout(150);
      const bare = await page.evaluate(() => [...document.querySelectorAll("input, select, textarea, button, a")]
        .filter((it) => !it.labels?.length && !it.textContent.trim() && !it.getAttribute("aria-label"))
        .map((it) => it.outerHTML));
      assert.deepEqual(bare, [], path);
      assert.equal(await page.locator("h1").count(), 1, path);
    }
  });

  test("the card is shown with the verdicts of the checks", async () => {
    const page = await visit(agent, { path: "#/agent" });
    await page.getByText("Each example leads to its own skill").waitFor();
    assert.equal(await page.locator("strong.passed").count(), 4);
  });

  test("a call under another name sees other tasks", async () => {
    await a2a(agent.base, "/message:send", saying("What's 2+2?"));
    const page = await visit(agent, { path: "#/tasks" });
    await page.locator("tbody tr").first().waitFor();
    await page.getByRole("button", { name: "Calls as local" }).click();
    await page.getByLabel("Call as").fill("acme:ann");
    await page.getByRole("button", { name: "Use", exact: true }).click();
    await page.getByText("No task yet").waitFor();
    assert.equal(await page.locator("tbody tr").count(), 0);
  });

  test("another caller begins a conversation of its own", async () => {
    const page = await visit(agent);
    await say(page, "What's 2+2?");
    await inState(page, "completed").waitFor();
    await page.getByRole("button", { name: "Calls as local" }).click();
    await page.getByLabel("Call as").fill("acme:ann");
    await page.getByRole("button", { name: "Use", exact: true }).click();
    await page.getByText("What should the agent do?").waitFor();
    assert.deepEqual(await bubbles(page), []);
    assert.match(page.url(), /#\/chat$/);
    await say(page, "What's 3+3?");
    await inState(page, "completed").waitFor();
  });

  test("without a key that the agent asks for, each view has a field for it", async () => {
    const prepare = async (page) => {
      await page.route("**/a2a-local/page/facts", async (route) => {
        const response = await route.fetch();
        return route.fulfill({ response, json: { ...await response.json(), auth: "keys" } });
      });
      await page.route("**/a2a-lambda/skills", (route) => (route.request().headers().authorization === "Bearer my-key"
        ? route.fulfill({ json: { skills: [] } })
        : route.fulfill({ status: 401, json: { error: { message: "authentication required" } } })));
    };
    const page = await visit(agent, { prepare, path: "#/skills" });
    await page.getByRole("heading", { name: "Who calls?" }).waitFor();
    await page.getByText("authentication required").waitFor();
    await page.getByLabel("API key").fill("my-key");
    await page.getByLabel("API key").press("Enter");
    await page.getByText("This agent lists no skill").waitFor();
  });
});

describe("one design", () => {
  let agent;
  const read = (name) => fetch(`${agent.base}/a2a-local/page/${name}`).then((it) => it.text());
  before(async () => { agent = await startAgent(); });
  after(() => agent?.stop());

  test("a colour is named by its role, outside of one block", async () => {
    const css = await read("page.css");
    const rest = css.slice(css.indexOf("}"));
    assert.deepEqual(rest.match(/#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(|light-dark\(/gi), null);
    assert.doesNotMatch(css, /url\(|@import|@font-face/);
  });

  test("an accessibility checker finds nothing, at each width and in both schemes", async () => {
    for (const text of ["Book a flight", "Draw a red square logo", "/format-report as PDF", "What's 2+2?"]) await a2a(agent.base, "/message:send", saying(text));
    // Two results of one name are two groups, and no two landmarks.
    const twice = (await a2a(agent.base, "/message:send", saying("Draw a red square logo"))).task;
    await a2a(agent.base, "/message:send", { message: { ...saying("Draw a blue square logo").message, contextId: twice.contextId } });
    const failed = await a2a(agent.base, "/message:send", { message: { ...saying("{}").message, metadata: { "a2a-lambda/skillId": "logo" } } });
    const { tasks: listed } = await a2a(agent.base, "/tasks?pageSize=9");
    const asked = listed.find((it) => it.status.state === "TASK_STATE_INPUT_REQUIRED");
    const paths = [...VIEWS, "skills/generate-report", `chat/${asked.contextId}`, `chat/${twice.contextId}`, `task/${failed.task.id}`, `task/${asked.id}`];
    for (const [width, height] of [[360, 800], [1280, 800], [2560, 1400]]) {
      const page = await visit(agent, { viewport: { width, height } });
      await page.evaluate(AXE);
      for (const path of paths) {
        await at(page, path);
        await page.waitForTimeout(250);
        // The checker fails on a page that changes under it.
        if (path.startsWith("task/")) await fall(page, /^Turn 1/).waitFor();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${path} is ${wide} px too wide at ${width}`);
        for (const colorScheme of ["light", "dark"]) {
          await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
          const found = await page.evaluate(async () => {
            const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
            return violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => `${node.html} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
          });
          assert.deepEqual(found, [], `${path} at ${width} px, ${colorScheme}`);
        }
      }
    }
  });
});

describe("sizes and settings of the system", () => {
  let agent;
  let asked;
  let worked;
  before(async () => {
    agent = await startAgent("--agent", "conformance");
    asked = (await a2a(agent.base, "/message:send", saying("what?"))).task;
    worked = (await a2a(agent.base, "/message:send", saying("steps 2 20"))).task;
  });
  after(() => agent?.stop());
  /** What can be pressed, and is beyond the right edge of the window or below another one. */
  const beyond = (page) => page.locator("main :is(a, button, input, select)").evaluateAll((all) => {
    const boxes = all.filter((it) => it.checkVisibility() && !it.closest(".tabs, .tabs-of-view, table"))
      .map((it) => ({ it, of: it.getBoundingClientRect() }));
    const covers = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    return boxes.filter(({ it, of }) => of.right > innerWidth + 1 || boxes.some((other) => other.it !== it && covers(of, other.of)))
      .map(({ it }) => it.outerHTML);
  });

  test("text has the sizes of the design, and at twice its size everything can be reached", async () => {
    const page = await visit(agent, { path: `#/chat/${asked.contextId}`, viewport: { width: 1280, height: 800 } });
    await page.locator("#log .asks").waitFor();
    const sizes = { body: "14px/20px", ".bubble": "14px/21px", ".rail nav a": "14px/20px", "#say": "14px/20px", ".talks li a": "13px/20px", ".run": "12px/16px" };
    for (const [place, size] of Object.entries(sizes)) {
      const style = await page.locator(place).first().evaluate((it) => getComputedStyle(it));
      assert.equal(`${style.fontSize}/${style.lineHeight}`, size, place);
    }
    const session = await page.context().newCDPSession(page);
    await session.send("Page.setFontSizes", { fontSizes: { standard: 32, fixed: 26 } });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      for (const path of [`task/${asked.id}`, "tasks", "skills/conformance"]) {
        await at(page, path);
        await page.locator({ tasks: "tbody tr", [`task/${asked.id}`]: ".fall.is-turn" }[path] ?? ".ink").first().waitFor();
        assert.deepEqual(await beyond(page), [], `${path} at ${width}`);
      }
    }
    assert.equal(await page.locator("body").evaluate((it) => getComputedStyle(it).fontSize), "28px");
  });

  test("at 800 px each Tab stop is seen, and all views and the caller have a way", async () => {
    const page = await visit(agent, { path: "#/more", viewport: { width: 800, height: 800 } });
    await page.getByRole("link", { name: "Conversations" }).waitFor();
    await page.getByLabel("Call as").waitFor();
    for (const path of ["chat", "tasks"]) {
      await at(page, path);
      await page.locator(`.view-${path}`).waitFor();
      const unseen = await page.locator("a, button, input, select, textarea, [tabindex='0']").evaluateAll((all) => all
        .filter((it) => it.checkVisibility() && it.tabIndex >= 0 && !it.matches(".skip"))
        .filter((it) => it.closest(".talks, .unseen") || it.getBoundingClientRect().width < 4)
        .map((it) => it.outerHTML));
      assert.deepEqual(unseen, [], path);
    }
  });

  test("in forced colours bars are seen, and what is chosen", async () => {
    const page = await visit(agent, { path: `#/task/${worked.id}`, forcedColors: "active", viewport: { width: 1280, height: 800 } });
    await fall(page, /^step#2/).click();
    await page.screenshot({ path: picture("forced.png") });
    const ground = await page.locator("body").evaluate((it) => getComputedStyle(it).backgroundColor);
    const bars = await page.locator(".fall .bar").evaluateAll((all) => all.map((it) => getComputedStyle(it).backgroundColor));
    assert.ok(bars.length > 3 && !bars.includes(ground), String(bars));
    const chosen = ".rail [aria-current], [role=tab][aria-selected=true], .fall[aria-selected=true]";
    const lines = await page.locator(chosen).evaluateAll((all) => all.map((it) => getComputedStyle(it).outlineWidth));
    assert.deepEqual(lines, ["2px", "2px", "2px"]);
  });
});

describe("lists", () => {
  let agent;
  const more = (text) => a2a(agent.base, "/message:send", saying(text));
  before(async () => {
    agent = await startAgent("--agent", "conformance");
    for (const text of ["echo one freight contract", "what?", "fail", "echo Größe 東京", "echo 50% a+b&group=failed#d/e", `echo ${"long".repeat(200)}`]) await more(text);
  });
  after(() => agent?.stop());
  const rows = (page) => page.locator("tbody tr");

  test("a row is one line: state, skill, question, answer, time and age, at every width", async () => {
    for (const width of [640, 800, 1280, 2560]) {
      const page = await visit(agent, { path: "#/tasks", viewport: { width, height: 800 } });
      await rows(page).first().waitFor();
      const heights = await rows(page).evaluateAll((all) => all.map((it) => it.getBoundingClientRect().height));
      assert.ok(heights.every((it) => it <= 38), `${width}: ${heights}`);
      const text = await rows(page).filter({ hasText: "freight" }).innerText();
      assert.match(text, /Completed\s+conformance\s+echo one freight contract\s+echo: one freight contract\s+\d+ ms\s+(now|\d+ s)/, text);
    }
    const page = await visit(agent, { path: "#/tasks", viewport: { width: 360, height: 800 }, hasTouch: true });
    await rows(page).first().waitFor();
    const lines = await rows(page).evaluateAll((all) => all.map((it) => Math.round(it.getBoundingClientRect().height)));
    assert.ok(lines.every((it) => it < 120 && it > 60), String(lines));
    const broken = await page.locator("tbody .state, tbody .id, tbody time").evaluateAll((all) => all.filter((it) => it.getClientRects().length > 1).length);
    assert.equal(broken, 0, "a word breaks inside");
    await page.screenshot({ path: picture("tasks-360.png") });
  });

  test("a short id copies the whole one", async () => {
    const page = await visit(agent, { path: "#/tasks", permissions: ["clipboard-read", "clipboard-write"] });
    await rows(page).first().hover();
    const id = await rows(page).first().getAttribute("data-key");
    await rows(page).first().getByRole("button", { name: "Copy the id" }).click();
    await page.locator("#announcer").getByText("The id is copied").waitFor({ state: "attached" });
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), id);
    assert.match(page.url(), /#\/tasks$/);
    await rows(page).first().getByRole("button", { name: "Copy the id" }).click();
    const isCopy = () => !document.querySelector("tbody tr .id [data-copied]");
    assert.equal(await page.evaluate(isCopy), false, "nothing shows that it is copied");
    // Pressed twice, the check goes away all the same.
    await page.waitForFunction(isCopy);
  });

  test("a list says since when it is not live, and that another program answers", async () => {
    const page = await visit(agent, { path: "#/tasks" });
    const [note, bar] = [page.locator(".head .note"), page.locator("#bar")];
    await note.getByText("Live", { exact: true }).waitFor();
    await page.route("**/a2a-local/page/changes", (route) => route.fulfill({ status: 401, json: { error: "the token is missing" } }));
    await bar.getByText("Another program answers here.").waitFor();
    await note.getByText(/^Not live since \d\d:\d\d:\d\d$/).waitFor();
    await at(page, "skills");
    await page.getByRole("heading", { name: "Skills" }).waitFor();
    assert.equal(await bar.count(), 1, "the next view says nothing about it");
    await page.unrouteAll();
    await bar.waitFor({ state: "detached" });
    await at(page, "tasks");
    await note.getByText("Live", { exact: true }).waitFor();
  });

  test("new rows wait behind a count while somebody uses the list", async () => {
    const page = await visit(agent, { path: "#/tasks" });
    await rows(page).first().waitFor();
    await rows(page).first().focus();
    const first = await rows(page).first().getAttribute("data-key");
    const place = await rows(page).first().boundingBox();
    await more("echo a newer one");
    await more("echo the newest one");
    await page.getByRole("button", { name: "2 new" }).waitFor();
    assert.equal(await rows(page).first().getAttribute("data-key"), first);
    assert.deepEqual(await rows(page).first().boundingBox(), place);
    await page.getByRole("button", { name: "2 new" }).click();
    await rows(page).first().getByText("echo: the newest one").waitFor();
    await page.mouse.move(2, 2);
    await page.evaluate(() => document.activeElement.blur());
    await more("echo by itself");
    await rows(page).first().getByText("echo: by itself").waitFor();
  });

  test("a row that changes stays in its place while somebody uses the list", async () => {
    const { task } = await more("what?");
    await more("echo after the question");
    const page = await visit(agent, { path: "#/tasks" });
    await rows(page).nth(1).waitFor();
    await rows(page).nth(1).focus();
    const order = () => rows(page).evaluateAll((all) => all.map((it) => it.dataset.key));
    const before = await order();
    await a2a(agent.base, "/message:send", { message: { ...saying("echo answered").message, taskId: task.id } });
    await page.locator(`[data-key="${task.id}"]`).getByText("Completed").waitFor();
    assert.deepEqual(await order(), before);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.key), before[1]);
  });

  test("a row that changes while it is pressed opens", async () => {
    const { task } = await more("what?");
    const page = await visit(agent, { path: "#/tasks" });
    const row = page.locator(`[data-key="${task.id}"]`);
    await row.locator(".state").hover();
    await page.mouse.down();
    const read = (words) =>
      page.waitForResponse(async (it) => it.url().includes("/page/rows") && (await it.text()).includes(words));
    const seen = read("echo: answered");
    await a2a(agent.base, "/message:send", { message: { ...saying("echo answered").message, taskId: task.id } });
    await seen;
    await page.waitForTimeout(300);
    await page.mouse.up();
    await page.getByRole("tab", { name: "Trace" }).waitFor();
    assert.ok(page.url().endsWith(task.id));
    // A press that opens nothing shows what is new when it ends.
    const { task: other } = await more("what?");
    await at(page, "tasks");
    const next = page.locator(`[data-key="${other.id}"]`);
    await next.locator(".state").hover();
    await page.mouse.down();
    const seenNext = read("echo: it too");
    await a2a(agent.base, "/message:send", { message: { ...saying("echo it too").message, taskId: other.id } });
    await seenNext;
    await page.mouse.move(2, 2);
    await page.mouse.up();
    await next.getByText("Completed").waitFor();
  });

  test("a row that its filter shows no more says its new state, and goes when nobody points at it", async () => {
    const { task } = await more("what?");
    const page = await visit(agent, { path: `#/tasks/group=needs&words=${task.id}` });
    const row = page.locator(`[data-key="${task.id}"]`);
    await row.hover();
    await a2a(agent.base, "/message:send", { message: { ...saying("echo answered").message, taskId: task.id } });
    await row.getByText("Completed").waitFor();
    await page.mouse.move(2, 2);
    await row.waitFor({ state: "detached" });
    await page.getByText(/^Nothing says/).waitFor();
  });

  test("a search says how many tasks it has searched, and stays in the address", async () => {
    const page = await visit(agent, { path: "#/tasks" });
    await rows(page).nth(4).waitFor();
    await page.getByLabel("Search in tasks").fill("CONTRACT freight");
    await page.getByText(/^Searched \d+ tasks in \d/).waitFor();
    assert.equal(await rows(page).count(), 1);
    await page.getByLabel("Search in tasks").fill("größe 東京");
    await rows(page).filter({ hasText: "東京" }).waitFor();
    await page.reload();
    await rows(page).filter({ hasText: "東京" }).waitFor();
    assert.equal(await rows(page).count(), 1);
    const odd = "50% a+b&group=failed#d/e";
    await page.getByLabel("Search in tasks").fill(odd);
    await rows(page).filter({ hasText: odd }).waitFor();
    await page.reload();
    await rows(page).filter({ hasText: odd }).waitFor();
    assert.equal(await page.getByLabel("Search in tasks").inputValue(), odd, "the address has other words");
    assert.equal(await page.getByRole("button", { name: /^All/ }).getAttribute("aria-pressed"), "true");
    // Who leaves while a search waits for the next letter takes nothing of it along.
    await page.getByLabel("Search in tasks").fill("left");
    // The search may end between the new address and its event.
    await page.evaluate(() => new Promise((done) => {
      location.hash = "#/skills";
      const until = performance.now() + 250;
      while (performance.now() < until);
      done();
    }));
    await page.getByLabel("Find a skill").waitFor();
    await page.waitForTimeout(250);
    assert.match(page.url(), /#\/skills$/);
    await at(page, "tasks");
    await page.getByLabel("Search in tasks").fill("freigt");
    await page.getByText("Nothing says “freigt”").waitFor();
    await page.getByLabel("Search in tasks").press("Escape");
    await page.getByRole("button", { name: /^Needs you/ }).click();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
    await rows(page).getByText("Input required").waitFor();
    await page.getByLabel("Skill").selectOption("conformance");
    assert.match(page.url(), /group=needs/);
  });

  test("a row has what was asked and what the agent says, without marks of Markdown, and data in words", async () => {
    await more("echo **Advice** on `tyres`");
    await more("steps 1 1");
    const page = await visit(agent, { path: "#/tasks", viewport: { width: 1280, height: 800 } });
    const row = (text) => rows(page).filter({ hasText: text });
    assert.equal(await row("Advice").locator(".c-asked").innerText(), "echo **Advice** on `tyres`");
    assert.equal(await row("Advice").locator(".c-says").innerText(), "echo: Advice on tyres");
    assert.match(await row("steps 1 1").locator(".c-says").innerText(), /^inConversation 1, saved run-\d+-\d+, steps run-/);
    const heads = await page.locator("thead th").allInnerTexts();
    assert.deepEqual(heads, ["State", "Skill", "Asked", "Says", "Took", "Age", "Id"]);
  });
});

describe("the conformance agent", () => {
  let agent;
  before(async () => { agent = await startAgent("--agent", "conformance"); });
  after(() => agent?.stop());

  test("a file is a download of its bytes", async () => {
    const page = await visit(agent);
    await say(page, "file 1000");
    const started = page.waitForEvent("download");
    await tasks(page).last().getByRole("button", { name: /^Download/ }).first().click();
    const saved = await (await started).path();
    assert.equal(statSync(saved).size, 1000);
  });

  test("a view that is slow has its heading while it is read", async () => {
    let answer;
    const held = new Promise((done) => { answer = done; });
    const prepare = (page) => page.route("**/a2a-local/page/rows*", async (route) => { await held; await route.continue(); });
    const page = await visit(agent, { prepare });
    await at(page, "tasks");
    await page.locator("main").getByText("Loading…").waitFor();
    assert.equal(await page.locator("h1").innerText(), "Tasks");
    answer();
    await page.getByRole("grid").waitFor();
    assert.equal(await page.locator("main").getByText("Loading…").count(), 0);
  });

  test("an answer is read out whole when it ends, and has its tokens", async () => {
    const row = (n, more) => ({ id: `0000000${n}`, kind: "turn", name: "echo", turn: 1, attempt: 1, start: n, end: n + 1, ...more });
    const trace = [row(1), row(1, { id: "00000001.1", parent: "00000001", kind: "model", inputTokens: 31, outputTokens: 1204 })];
    const prepare = (page) => page.route("**/a2a-local/page/tasks/*", (route) => route.fulfill({ json: { facts: {}, webhooks: [], trace } }));
    const page = await visit(agent, { prepare });
    await page.evaluate(() => {
      window.heard = [];
      const keep = () => window.heard.push(document.getElementById("announcer").textContent);
      new MutationObserver(keep).observe(document.getElementById("announcer"), { childList: true });
    });
    await say(page, "chunks 5 10");
    await inState(page, "completed").waitFor();
    await tasks(page).last().locator(".bubble:not(.streams)").waitFor();
    const said = await page.evaluate(() => window.heard.filter((it) => it.startsWith("Completed")));
    const text = (await tasks(page).last().locator(".bubble").innerText()).trim();
    assert.ok(text.length > 5);
    assert.deepEqual(said.map((it) => it.replace(/\s+/g, " ")), [`Completed: ${text.replace(/\s+/g, " ")}`]);
    await tasks(page).last().getByText("1\u202f235 tokens").waitFor();
    await page.reload();
    await tasks(page).last().getByText("1\u202f235 tokens").waitFor();
    assert.equal(await page.getByRole("treegrid").count(), 0, "the waterfall is open");
  });

  test("text streams into one bubble", async () => {
    const page = await visit(agent);
    await say(page, "chunks 30 20");
    await inState(page, "completed").waitFor();
    assert.equal(await tasks(page).last().locator(".bubble").count(), 1, "more than one bubble");
    await tasks(page).last().getByRole("button", { name: /events?$/ }).click();
    assert.ok((await tasks(page).last().locator(".events li").count()) > 20);
    // It follows its end only while the end is in view.
    const scroll = page.locator("main .scroll");
    const place = () => scroll.evaluate((it) => [it.scrollTop, it.scrollHeight - it.scrollTop - it.clientHeight]);
    await page.setViewportSize({ width: 1100, height: 320 });
    await say(page, "chunks 200 10");
    await tasks(page).nth(1).locator(".bubble.streams").waitFor();
    await page.waitForFunction(() => document.querySelector("main .scroll").scrollTop > 100);
    await scroll.hover();
    await page.mouse.wheel(0, -30);
    await page.waitForTimeout(300);
    const [read] = await place();
    await tasks(page).nth(1).locator(".run .state.completed").waitFor();
    assert.equal((await place())[0], read, "it scrolls away from what is read");
    await page.getByRole("button", { name: "To the end" }).click();
    assert.ok((await place())[1] < 40, "the button does not lead to the end");
    await say(page, "chunks 50 10");
    await tasks(page).nth(2).locator(".run .state.completed").waitFor();
    await page.waitForTimeout(100);
    assert.ok((await place())[1] < 40, "it does not follow its end");
    await page.setViewportSize({ width: 360, height: 800 });
    const names = ["Country", "Department", "Responsible", "Amount", "Currency"];
    const line = (cells) => `| ${cells.join(" | ")} |`;
    await say(page, `echo table\n\n${line(names)}\n${line(names.map(() => "---"))}\n${line(names.map(() => "12345678.90"))}`);
    await page.locator("#log td").first().waitFor();
    const cells = await page.locator("#log :is(th, td)").evaluateAll((all) => all.map((it) => it.clientHeight));
    assert.ok(cells.every((it) => it < 36), `cells break inside of words: ${cells}`);
    assert.ok(await page.locator("#log .wide").evaluate((it) => it.scrollWidth > it.clientWidth), "the table does not scroll");
  });

  test("the line below a streaming text takes a click and keeps the focus", async () => {
    const page = await visit(agent);
    await say(page, "chunks 300 20");
    const events = tasks(page).last().getByRole("button", { name: /events?$/ });
    await events.waitFor();
    for (const isOpen of ["true", "false", "true"]) {
      await events.hover();
      await page.mouse.down();
      await page.waitForTimeout(100);
      await page.mouse.up();
      assert.equal(await events.getAttribute("aria-expanded"), isOpen);
      // What unfolds comes a little later, and moves the line once.
      await page.waitForTimeout(300);
    }
    await tasks(page).last().getByRole("button", { name: "Cancel" }).focus();
    await page.waitForTimeout(200);
    await page.keyboard.press("Enter");
    await inState(page, "canceled").waitFor();
  });

  test("a conversation says after a reload what it said before, and no credentials that nobody gave", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("what?"));
    const { contextId } = task;
    const page = await visit(agent, { path: `#/chat/${contextId}` });
    await page.getByRole("button", { name: "Do not answer" }).click();
    await say(page, "steps 3 10");
    await inState(page, "completed").waitFor();
    // A task of another client runs, and it goes on to speak.
    const more = { message: { ...saying("steps 20 300").message, contextId }, configuration: { returnImmediately: true } };
    const busy = await a2a(agent.base, "/message:send", more);
    await page.locator("#log").getByText("steps 20 300").waitFor();
    await a2a(agent.base, "/message:send", { message: { ...saying("echo while busy").message, contextId } });
    await page.locator("#log").getByText("echo: while busy").waitFor();
    const running = page.locator(`#log article[aria-label="Task ${busy.task.id}"]`);
    assert.equal(await running.locator(".state.working").count(), 1);
    await running.getByRole("button", { name: "Cancel" }).click();
    await running.locator(".state.canceled").waitFor();
    const asked = page.locator(`#log article[aria-label="Task ${task.id}"]`);
    await asked.getByRole("button", { name: "Cancel" }).click();
    await asked.locator(".state.canceled").waitFor();
    const before = (await bubbles(page)).sort();
    assert.equal(before.filter((it) => it.startsWith("Open question")).length, 0);
    await page.reload();
    await page.locator("#log").getByText("echo: while busy").waitFor();
    assert.deepEqual((await bubbles(page)).sort(), before);
    assert.equal(await page.getByText("Credentials given").count(), 0);
    const steps = tasks(page).filter({ has: page.locator(".state.completed") }).first();
    await steps.getByRole("button", { name: "Events" }).click();
    await steps.getByRole("row", { name: /^step#3, step/ }).waitFor();
  });

  test("two messages before the first answer are one conversation", async () => {
    const prepare = (page) => page.route("**/message:stream", async (route) => {
      await new Promise((done) => setTimeout(done, 400));
      await route.continue();
    });
    const page = await visit(agent, { prepare });
    await say(page, "echo one");
    await say(page, "echo two");
    await page.locator("#log").getByText("echo: two").waitFor();
    const before = await bubbles(page);
    await page.reload();
    await page.locator("#log").getByText("echo: two").waitFor();
    assert.deepEqual((await bubbles(page)).sort(), before.sort());
  });

  test("what others do in a conversation changes nothing of what one does in it", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("echo hello"));
    const { contextId } = task;
    const more = (text) => a2a(agent.base, "/message:send", { message: { ...saying(text).message, contextId } });
    const asked = await more("what?");
    const page = await visit(agent, { path: `#/chat/${contextId}` });
    await page.getByRole("button", { name: "Do not answer" }).click();
    await tasks(page).first().getByRole("button", { name: /^Refine/ }).click();
    await box(page).pressSequentially("echo mine");
    await page.evaluate(() => { for (const it of document.querySelectorAll("#log > *")) it.isOld = true; });
    const before = await bubbles(page);
    // Reads that take long must not add what is there already.
    await page.route("**/tasks?contextId*", async (route) => {
      await new Promise((done) => setTimeout(done, 1300));
      await route.continue();
    });
    await more("echo theirs");
    await page.waitForTimeout(1100);
    await more("echo also theirs");
    await page.locator("#log").getByText("echo: also theirs").waitFor();
    await page.waitForTimeout(1500);
    assert.deepEqual(await bubbles(page), [...before, "echo theirs", "echo: theirs", "echo also theirs", "echo: also theirs"]);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll("#log > *")].filter((it) => it.isOld).length), before.length);
    assert.equal(await page.locator(".composer .chip").count(), 1, "the reference is gone, or the question is back");
    assert.equal(await page.evaluate(() => document.activeElement.id), "say");
    await page.unroute("**/tasks?contextId*");
    await fetch(`${agent.base}/a2a-lambda/tasks/${asked.task.id}`, { method: "DELETE", headers: { "A2A-Version": "1.0" } });
    await page.locator("#log .asks").waitFor({ state: "detached" });
    assert.equal(await page.locator(".chips button").filter({ hasText: "Answer" }).count(), 0);
    await box(page).press("Enter");
    await page.locator("#log").getByText("echo: mine").waitFor();
    await more("auth");
    const control = page.getByLabel("Credentials", { exact: true });
    await control.fill("half-a-sec");
    await more("echo once more");
    await page.locator("#log").getByText("echo: once more").waitFor();
    assert.equal(await control.inputValue(), "half-a-sec");
    assert.equal(await page.evaluate(() => document.activeElement.id), "secret");
  });

  test("of two answers at once the late one stays, with the reason", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("what?"));
    const page = await visit(agent, { path: `#/chat/${task.contextId}` });
    await inState(page, "input-required").waitFor();
    const answer = { message: { ...saying("echo theirs").message, taskId: task.id, contextId: task.contextId } };
    await page.route("**/message:stream", async (route) => {
      await a2a(agent.base, "/message:send", answer);
      await route.continue();
    });
    await say(page, "echo mine");
    await page.locator("#log").getByText("echo: theirs").waitFor();
    const own = page.locator("#log .you").filter({ hasText: "echo mine" });
    await own.getByRole("alert").getByRole("button", { name: "Send again" }).waitFor();
    await a2a(agent.base, "/message:send", { message: { ...saying("echo more").message, contextId: task.contextId } });
    await page.locator("#log").getByText("echo: more").waitFor();
    assert.equal(await own.count(), 1);
    assert.equal(await page.locator(".composer .chip").count(), 0);
  });

  test("the line of a working task says its newest update, which is read out, and the fold has all", async () => {
    const page = await visit(agent);
    await say(page, "steps 4 900");
    const news = tasks(page).last().locator(".run .news");
    await news.getByText(/^step 1: run-/).waitFor();
    await page.waitForFunction(() => /^Working: step \d: run-/.test(document.getElementById("announcer").textContent));
    await news.getByText(/^step 2: run-/).waitFor();
    await page.screenshot({ path: picture("news.png") });
    assert.equal(await tasks(page).last().locator(".run").count(), 1, "an update is a line of its own");
    await inState(page, "completed").waitFor();
    assert.equal(await news.isVisible(), false, "a task that has ended still says what it does");
    await tasks(page).last().getByRole("button", { name: /events$/ }).click();
    for (const number of [1, 2, 3, 4]) await tasks(page).last().locator(".events").getByText(`step ${number}:`).first().waitFor();
  });

  test("the state of a task is a tab: session values with their turns, and nothing that a trace hides", async () => {
    const send = async (text, more) => (await a2a(agent.base, "/message:send", { message: { ...saying(text).message, ...more } })).task;
    const first = await send("steps 2 10");
    const { contextId } = first;
    await send("note apples", { contextId });
    const page = await visit(agent, { path: `#/task/${first.id}`, viewport: { width: 1280, height: 800 } });
    const panel = page.locator("#panel-state");
    await page.getByRole("tab", { name: "State" }).click();
    await panel.getByText("The skill has saved none.").waitFor();
    const value = (name) => panel.locator("li").filter({ has: page.getByText(name, { exact: true }) });
    assert.match(await value("steps").innerText(), /^steps\s+written by turn 1 of this task, (now|\d+ s)\s+1$/);
    assert.match(await value("noted").innerText(), /^noted\s+written by turn 1 of another task, (now|\d+ s)\s+"apples"$/);
    // What is stored meanwhile is shown.
    await send("note pears", { contextId });
    await value("noted").getByText('"pears"').waitFor();
    // A turn that began with credentials has written it now.
    const asked = await send("auth", { contextId });
    await send("note canary-of-ann", { contextId, taskId: asked.id });
    await value("noted").getByText("Not shown, as in a trace").waitFor();
    await at(page, `task/${asked.id}`);
    await page.getByRole("tab", { name: "State" }).click();
    await value("steps").getByText("another task").waitFor();
    assert.doesNotMatch(await panel.innerText(), /canary/);
    const path = `/a2a-local/page/tasks/${asked.id}/state`;
    assert.equal((await fetch(agent.base + path)).status, 401, "the state is read without the token");
    const running = await a2a(agent.base, "/message:send", { ...saying("steps 3 1500"), configuration: { returnImmediately: true } });
    await at(page, `task/${running.task.id}`);
    await page.getByRole("tab", { name: "State" }).click();
    await value("done").getByText(/"run-\d+-\d+"/).first().waitFor();
  });

  test("the text of a panic is on the page, and not for clients", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("panic"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await page.getByRole("region", { name: "Cause of the failure" }).getByText("panicked as told").waitFor();
    assert.doesNotMatch(JSON.stringify(await a2a(agent.base, `/tasks/${task.id}`)), /as told/);
  });

  test("an unknown task has a way on", async () => {
    const page = await visit(agent, { path: "#/task/none" });
    await page.getByText("task not found").waitFor();
    await page.getByRole("link", { name: "All tasks" }).click();
    await page.locator("tbody tr").first().waitFor();
  });

  test("what is on the wire is there when its tab is opened", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("echo hi"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await page.getByRole("tab", { name: "On the wire" }).click();
    await page.locator("#panel-wire .json").getByText(task.id).first().waitFor();
    await page.getByText("GET /tasks/{id}").waitFor();
  });

  test("a program that nobody calls rests", { skip: process.platform !== "linux" }, async () => {
    const idle = await startAgent();
    const used = () => readFileSync(`/proc/${idle.child.pid}/stat`, "utf8").split(" ").slice(13, 15).reduce((sum, it) => sum + Number(it), 0);
    await new Promise((done) => setTimeout(done, 2000));
    const before = used();
    await new Promise((done) => setTimeout(done, 5000));
    const ticks = used() - before;
    await idle.stop();
    assert.ok(ticks < 10, `${ticks / 5} % of a core`);
  });

  test("the page of a running task changes in place, and says when the task is deleted", async () => {
    const sent = { ...saying("steps 30 300"), configuration: { returnImmediately: true } };
    const { task } = await a2a(agent.base, "/message:send", sent);
    const page = await visit(agent, { path: `#/task/${task.id}` });
    const rows = page.getByRole("treegrid").getByRole("row");
    const next = async () => {
      const count = await rows.count();
      await page.waitForFunction((before) => document.querySelectorAll("[data-row]").length > before, count);
    };
    await rows.nth(1).waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await next();
    await page.getByRole("menuitem", { name: "Delete" }).waitFor();
    await page.keyboard.press("Escape");
    const row = fall(page, /^step#2, step/);
    await row.focus();
    await next();
    assert.ok(await row.evaluate((it) => it === document.activeElement), "the row loses the focus");
    await page.getByRole("tab", { name: "Messages" }).focus();
    await next();
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-messages");
    await page.getByRole("button", { name: "Cancel" }).focus();
    await next();
    await page.keyboard.press("Enter");
    await page.locator(".task-head .state.canceled").getByText("Canceled").waitFor();
    const bare = await visit({ page: `${agent.base}/` }, { path: `#/task/${task.id}` });
    await bare.getByText(/^No trace: the token is missing/).waitFor();
    await fetch(`${agent.base}/a2a-lambda/tasks/${task.id}`, { method: "DELETE", headers: { "A2A-Version": "1.0" } });
    await page.locator(".task-head").getByText(/^The task is deleted\./).waitFor();
    assert.equal(await page.locator(".task-head").getByRole("button", { name: "Cancel" }).count(), 0);
  });

  test("the cause of a failure is in the task", async () => {
    const page = await visit(agent);
    await say(page, "panic");
    await inState(page, "failed").waitFor();
    await tasks(page).last().getByRole("link", { name: "Open task" }).click();
    const why = page.getByRole("region", { name: "Cause of the failure" });
    await why.getByRole("heading", { name: "Failed in turn 1, attempt 1" }).waitFor();
    await page.getByRole("row", { name: /^INTERNAL_ERROR, failure/ }).waitFor();
    await why.getByRole("button", { name: "Show the call" }).click();
    await page.getByRole("region", { name: "Row Turn 1" }).waitFor();
    await page.screenshot({ path: picture("failed.png") });
    await why.getByRole("button", { name: "Send again" }).click();
    await page.waitForURL(/#\/chat/);
    await inState(page, "failed").waitFor();
  });

  test("steps, attempts and generations of a task are shown", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("steps 3 20"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await fall(page, /^step#3, step, \d/).waitFor();
    await fall(page, /^Turn 1, turn/).waitFor();
    await page.screenshot({ path: picture("task-light.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("task-dark.png") });
    await page.getByRole("tab", { name: "On the wire" }).click();
    const old = page.getByRole("button", { name: "A2A 0.3" });
    const { width } = await old.boundingBox();
    let answer;
    await page.route("**/v1/tasks/*", (route) => { answer = () => route.continue(); });
    await old.click();
    await page.locator("[aria-busy=true] .ring").waitFor();
    assert.deepEqual([await old.getAttribute("aria-disabled"), (await old.boundingBox()).width], ["true", width]);
    answer();
    await page.unrouteAll();
    for (const [version, mark] of [["1.0", "TASK_STATE_COMPLETED"], ["0.3", "TASK_STATE_COMPLETED"], ["0.1", "sessionId"]]) {
      await page.getByRole("button", { name: `A2A ${version}` }).click();
      await page.locator("pre").filter({ hasText: mark }).first().waitFor();
    }
  });

  test("what is copied sends the same message", async () => {
    const text = "echo it's \"two\" $HOME \\ `id` \u00fc";
    const { task } = await a2a(agent.base, "/message:send", saying(text));
    const page = await visit(agent, { path: `#/task/${task.id}`, permissions: ["clipboard-read", "clipboard-write"] });
    await page.getByRole("tab", { name: "On the wire" }).click();
    const programs = { curl: ["bash", "-c"], Python: ["python3", "-c"] };
    for (const [name, [program, option]] of Object.entries(programs)) {
      await page.getByRole("button", { name: "Copy as a command" }).click();
      const [view, menu] = [await page.locator("main").boundingBox(), await page.getByRole("menu").boundingBox()];
      assert.ok(menu.x >= view.x, "the menu is cut");
      await page.getByRole("menuitem", { name: `Copy as ${name}` }).click();
      await page.locator(`pre[aria-label="${name}"] + p`).filter({ hasText: "Copied." }).waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      const { stdout } = await run(program, [option, copied]);
      const [id] = /task-[0-9a-f]{32}/.exec(stdout);
      assert.notEqual(id, task.id, name);
      const made = await a2a(agent.base, `/tasks/${id}?historyLength=9`);
      assert.equal(made.status.state, "TASK_STATE_COMPLETED", name);
      assert.equal(made.history[0].parts[0].text, text, name);
    }
  });

  test("a task is canceled, sent again and deleted", async () => {
    const sent = { ...saying("wait 30"), configuration: { returnImmediately: true } };
    const { task } = await a2a(agent.base, "/message:send", sent);
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator(".task-head .state.canceled").waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    assert.equal(await page.locator(`[data-key="${task.id}"]`).count(), 0);
    const other = await a2a(agent.base, "/message:send", saying("echo again"));
    await at(page, `task/${other.task.id}`);
    await page.getByRole("button", { name: "Send again" }).click();
    await inState(page, "completed").waitFor();
    await page.getByText("echo: again").first().waitFor();
    // It refines what the first one refined, and what is not kept cannot be sent again.
    const { id, contextId } = other.task;
    const refines = { ...saying("echo the refined").message, contextId, referenceTaskIds: [id] };
    const refined = await a2a(agent.base, "/message:send", { message: refines });
    await at(page, `task/${refined.task.id}`);
    await page.getByRole("heading", { name: "echo the refined" }).waitFor();
    const again = page.waitForRequest("**/message:stream");
    await page.getByRole("button", { name: "Send again" }).click();
    assert.deepEqual((await again).postDataJSON().message.referenceTaskIds, [id]);
    await inState(page, "completed").waitFor();
    const unkept = await a2a(agent.base, "/message:send", saying("echo The agent does not keep this message."));
    await page.route("**/tasks/*?historyLength=100", async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      json.history[0].parts[0].text = "The agent does not keep this message.";
      await route.fulfill({ response, json });
    });
    await at(page, `task/${unkept.task.id}`);
    await page.getByRole("heading", { name: unkept.task.id }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Send again" }).count(), 0);
  });

  test("a webhook is listed with its failed attempts", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("what?"));
    await a2a(agent.base, `/tasks/${task.id}/pushNotificationConfigs`, { url: "http://localhost:9/hook", token: "secret-token" });
    await a2a(agent.base, "/message:send", { message: { ...saying("echo now").message, taskId: task.id } });
    const page = await visit(agent, { path: "#/webhooks" });
    const row = page.locator(`tr[data-key^="${task.id}"]`);
    // The list follows by itself.
    await row.locator(".failed").waitFor();
    assert.notEqual(await row.locator(".failed").innerText(), "0");
    assert.ok(!(await page.locator("body").innerText()).includes("secret-token"));
  });

  test("a message of a megabyte is cut, and shown whole on request", async () => {
    const page = await visit(agent);
    const { task } = await a2a(agent.base, "/message:send", saying(`echo ${"many words ".repeat(95000)}`));
    const began = Date.now();
    await at(page, `chat/${task.contextId}`);
    await inState(page, "completed").waitFor();
    assert.ok(Date.now() - began < 15000, "it takes too long");
    assert.ok((await page.locator("#log").innerText()).length < 100000);
    await tasks(page).last().getByRole("button", { name: /^Show all/ }).click();
    await page.waitForFunction(() => document.getElementById("log").innerText.length > 1000000);
  });

  test("a killed process goes on, and the page shows the same task finish", async () => {
    const page = await visit(agent);
    await say(page, "steps 8 700");
    await tasks(page).last().getByRole("button", { name: /events?$/ }).click();
    await tasks(page).last().getByText("step 2:").first().waitFor();
    const id = await taskId(page);
    await page.getByRole("link", { name: "Process" }).click();
    const started = () => page.locator("dl.facts time").getAttribute("title");
    const before = await started();
    await page.getByRole("button", { name: "Kill the process now" }).click();
    await page.screenshot({ path: picture("kill.png") });
    await page.getByRole("button", { name: "Yes, kill it" }).click();
    await page.locator("#restarted").waitFor({ timeout: 30000 });
    assert.notEqual(await started(), before);
    await page.getByRole("link", { name: "Chat" }).click();
    await inState(page, "completed").waitFor({ timeout: 30000 });
    assert.equal(await taskId(page), id);
    await tasks(page).last().getByText("step 8:").first().waitFor();
    await at(page, `task/${id}`);
    await fall(page, /^Attempt 1, attempt, lost/).waitFor();
    await fall(page, /^Attempt 2, attempt/).waitFor();
    // The kill may have come between two steps, so that none of them is lost.
    await fall(page, /^step(#\d)?, step, kept/).first().waitFor();
    // Each step ran once. One whose result was stored just before the kill has only a row that keeps it.
    const rows = (name) => page.getByRole("row", { name }).evaluateAll((all) => all.map((it) => it.getAttribute("aria-label").split(",")[0]));
    const finished = await rows(/^step(#\d)?, step, \d/);
    const kept = await rows(/^step(#\d)?, step, kept/);
    assert.equal(new Set(finished).size, finished.length);
    assert.equal(new Set([...finished, ...kept]).size, 8);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("after-kill-dark.png") });
  });
});

const file = (name, bytes, mimeType = "text/plain") => ({ name, mimeType, buffer: Buffer.from(bytes) });
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const HOSTILE_NAME = "<img src=x onerror=window.hurt=1>\u202efdp.txt";
describe("an agent that is edited", () => {
  let agent;
  before(async () => { agent = await startDev(); });
  after(() => agent?.stop());

  test("two open pages go on over an edit, keep their drafts, and say what changed", async () => {
    const [page, other] = [await visit(agent), await visit(agent)];
    const [filter, process] = [await visit(agent, { path: "#/tasks" }), await visit(agent, { path: "#/process" })];
    const skills = () => filter.getByLabel("Skill").locator("option").allInnerTexts();
    const started = () => process.locator("dl.facts time").getAttribute("title");
    await process.locator("dl.facts").waitFor();
    await filter.getByLabel("Skill").waitFor();
    const of = { skills: await skills(), started: await started() };
    assert.ok(of.skills.includes("add"));
    await page.locator("#welcome").getByRole("button", { name: "Book a flight" }).waitFor();
    const foot = page.locator("#foot");
    await foot.getByText("Build 1 serves").waitFor();
    await box(page).fill("not sent yet");
    await box(other).fill("another one");
    const before = page.url();
    agent.edit("models");
    const bar = page.locator("#bar");
    const second = (it) => it.locator("#bar").getByText("Build 2 serves.").waitFor({ timeout: 20000 });
    await Promise.all([page, other, filter, process].map(second));
    assert.match(await bar.innerText(), /New: .*Gone: .*add/s);
    await foot.getByText("Build 2 serves").waitFor();
    assert.equal(page.url(), before);
    assert.equal(await box(page).inputValue(), "not sent yet");
    assert.equal(await page.locator("#welcome").getByRole("button", { name: "Book a flight" }).count(), 0, "an example of a skill that is gone");
    const now = await skills();
    assert.ok(now.length > 1 && !now.includes("add"), `the filter has a skill that is gone: ${now}`);
    assert.notEqual(await started(), of.started, "it shows the process before");
    await at(page, "tasks");
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await at(page, "chat");
    await box(page).waitFor();
    assert.equal(await box(page).inputValue(), "not sent yet");
    assert.equal(await page.getByLabel("Skill").getByText("Adder").count(), 0, "the menu has a skill that is gone");
    assert.equal(await box(other).inputValue(), "another one");
    agent.edit("reference");
    await bar.getByText("Build 3 serves.").waitFor({ timeout: 20000 });
  });

  test("a turn that an edit has cut off names the build, and is not lost", async () => {
    const changes = () => fetch(`${agent.base}/a2a-local/page/changes`, { headers: { "X-A2A-Local-Token": agent.page.slice(-64) } });
    const serves = async () => {
      for (;;) {
        const build = await changes().then((it) => it.json()).then((it) => it.build, () => null);
        if (build?.state === "serves" && build.number > known) return build.number;
        await new Promise((done) => setTimeout(done, 100));
      }
    };
    let known = (await changes().then((it) => it.json())).build.number;
    agent.edit("conformance");
    known = await serves();
    const { task } = await a2a(agent.base, "/message:send", { ...saying("steps 4 900"), configuration: { returnImmediately: true } });
    await new Promise((done) => setTimeout(done, 1500));
    // Another text of the same agent is another build.
    agent.edit("conformance ");
    known = await serves();
    const page = await visit(agent, { path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 } });
    await page.locator(".task-head .completed").waitFor({ timeout: 30000 });
    await fall(page, new RegExp(`^Attempt 1, attempt, edited \\(build ${known}\\)`)).waitFor();
    await fall(page, new RegExp(`^Hand-over, hand-over, edited \\(build ${known}\\)`)).waitFor();
    assert.equal(await page.locator(".fall.bad, .bar.of-lost").count(), 0, "an edit is drawn as a failure");
    await page.screenshot({ path: picture("edited.png") });
    agent.edit("reference");
    await serves();
  });

  test("a form stays as it is while a build changes another skill", async () => {
    let reads = 0;
    const prepare = (page) => page.route("**/a2a-lambda/skills", async (route) => {
      const response = await route.fetch();
      const { skills } = await response.json();
      reads += 1;
      skills.find((it) => it.id === "echo").description = `Echo ${reads}`;
      await route.fulfill({ response, json: { skills } });
    });
    const page = await visit(agent, { prepare, path: "#/skills" });
    await skill(page, "book-flight").getByRole("button").first().click();
    const form = skill(page, "book-flight");
    await form.getByLabel("to", { exact: true }).fill("Rome");
    await form.getByLabel("on", { exact: true }).pressSequentially("Mon");
    agent.edit("reference # again");
    await skill(page, "echo").getByText("Echo 2").waitFor({ timeout: 20000 });
    await page.keyboard.type("day");
    assert.equal(await form.getByLabel("to", { exact: true }).inputValue(), "Rome");
    assert.equal(await form.getByLabel("on", { exact: true }).inputValue(), "Monday");
  });

  test("a build that fails is a bar that moves nothing, and a good one takes it away", async () => {
    const page = await visit(agent);
    await page.locator("#foot").getByText(/^Build \d+ serves$/).waitFor();
    const place = await box(page).boundingBox();
    for (const [text, words, output] of [["bad", "failed", "error: mismatched <b>types</b>"], ["panics", "did not start", "panicked at agent.rs"]]) {
      agent.edit(text);
      const bar = page.locator("#bar").filter({ hasText: words });
      await bar.waitFor({ timeout: 20000 });
      assert.equal(await bar.getAttribute("role"), "alert");
      await bar.getByRole("button", { name: "Show the output" }).click();
      await bar.getByText(output).waitFor();
      assert.deepEqual(await box(page).boundingBox(), place);
      await page.screenshot({ path: picture(`build-${text}.png`) });
      await say(page, "What's 2+2?");
      await inState(page, "completed").waitFor();
      await page.keyboard.press("Escape");
      await bar.waitFor({ state: "detached" });
      await at(page, "tasks");
      await page.getByRole("grid").waitFor();
      assert.equal(await bar.count(), 0, "a closed bar comes back with the next view");
      await page.setViewportSize({ width: 360, height: 800 });
      await page.locator("#foot").getByRole("button", { name: new RegExp(words) }).click();
      await bar.waitFor();
      await page.setViewportSize({ width: 1100, height: 800 });
      await page.keyboard.press("/");
      const isSeen = await page.evaluate(() => {
        const { x, y } = document.activeElement.getBoundingClientRect();
        return document.elementFromPoint(x + 20, y + 4) === document.activeElement;
      });
      assert.ok(isSeen, "the bar hides the search that has the focus");
      await page.context().setOffline(true);
      await page.getByText(/^No connection for \d s/).waitFor();
      assert.equal(await bar.count(), 0, "two bars at once");
      await page.context().setOffline(false);
      await bar.waitFor();
      assert.equal(await bar.getAttribute("role"), null, "it is said a second time");
      await at(page, "chat");
      await box(page).waitFor();
      assert.equal(await bar.count(), 1, "an open bar ends with the view");
    }
    agent.edit("reference");
    await page.locator("#bar").filter({ hasText: "did not start" }).waitFor({ state: "detached", timeout: 20000 });
  });
});

describe("files of a message", () => {
  let agent;
  const most = 6_000_000;
  before(async () => { agent = await startWith({ A2A_UPLOAD_MAX: String(most) }, "--agent", "conformance"); });
  after(() => agent?.stop());

  const send = say;
  const attached = (page) => page.locator(".composer").getByLabel("Attached files").getByRole("listitem");
  const attach = async (page, ...files) => {
    const asked = page.waitForEvent("filechooser");
    await page.locator(".composer").getByRole("button", { name: "Attach files" }).focus();
    await page.keyboard.press("Enter");
    await (await asked).setFiles(files);
  };
  const answer = (page) => tasks(page).last().locator("[aria-label^=Artifact]");

  test("a small file reaches the skill, and its answer can be saved", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await attach(page, file(HOSTILE_NAME, "tiny text"), file("other.bin", [0, 255], "application/octet-stream"));
    await attached(page).nth(1).waitFor();
    assert.match(await attached(page).first().innerText(), /^<img src=x onerror=window\.hurt=1>\[U\+202E\]fdp\.txt\s+9 bytes/);
    await page.screenshot({ path: picture("files.png") });
    await page.getByRole("button", { name: "Remove other.bin" }).press("Enter");
    assert.equal(await attached(page).count(), 1);
    await send(page, "back");
    await inState(page, "completed").waitFor();
    assert.equal(await attached(page).count(), 0);
    const started = page.waitForEvent("download");
    await answer(page).getByRole("button", { name: /^Download/ }).click();
    const saved = await started;
    assert.equal(readFileSync(await saved.path(), "utf8"), "tiny text");
    assert.doesNotMatch(saved.suggestedFilename(), /[\\/<>]/);
    assert.equal(await page.locator("#main img").count(), 0);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    await attach(page, ...Array.from({ length: 30 }, (_, n) => file(`${n}.txt`, "one of many")));
    await attached(page).nth(29).waitFor();
    const { y, height } = await page.getByRole("button", { name: "Send", exact: true }).boundingBox();
    assert.ok(y + height <= 800, "many files push Send off the screen");
    assert.ok(await page.locator("#log").isVisible());
  });

  test("a large file is uploaded, and the link of the answer has its bytes", async () => {
    const page = await visit(agent, { path: "#/chat" });
    // Above half of the largest request body, so that the page uploads it, and above the response budget.
    const bytes = Buffer.alloc(4_900_000, "large ");
    await attach(page, file("large.txt", bytes));
    await attached(page).first().waitFor();
    await send(page, "back");
    await inState(page, "completed").waitFor();
    const link = answer(page).getByRole("link", { name: "Download large.txt" });
    const read = await fetch(await link.getAttribute("href"));
    assert.ok(Buffer.from(await read.arrayBuffer()).equals(bytes));
    assert.match(read.headers.get("content-disposition"), /^attachment/);
    await page.locator("#log .you .file").filter({ hasText: "large.txt" }).getByText("uploaded").waitFor();
    // A picture is shown also when the answer has only its address in the store.
    await attach(page, file("large.png", Buffer.concat([Buffer.from(PIXEL, "base64"), Buffer.alloc(4_900_000)]), "image/png"));
    await attached(page).first().waitFor();
    await send(page, "back");
    await page.waitForFunction(() => document.querySelector("#log .shot img")?.naturalWidth === 1);
    await answer(page).getByText("4.9 MB").waitFor();
    assert.equal((await fetch(`${agent.base}/a2a-local/page/file`)).status, 401, "a file without the token");
  });

  test("files can be dropped anywhere on the chat, and answer a question", async () => {
    const page = await visit(agent);
    const drop = (place, name) => page.locator(place).evaluate((it, name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["dropped"], name, { type: "text/plain" }));
      return it.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }, name);
    assert.equal(await drop("#nav", "beside.txt"), false, "the browser opens a file that is dropped on the rail");
    await drop("h1", "first.txt");
    await attached(page).filter({ hasText: "first.txt" }).waitFor();
    await send(page, "what?");
    await inState(page, "input-required").waitFor();
    await page.locator("#log .you").getByRole("button", { name: "Download first.txt" }).waitFor();
    await drop("#log .asks", "second.txt");
    await attached(page).filter({ hasText: "second.txt" }).waitFor();
    await send(page, "back");
    await inState(page, "completed").waitFor();
    await answer(page).getByRole("button", { name: "Download second.txt" }).first().waitFor();
    assert.equal(await tasks(page).count(), 1);
    await at(page, "tasks");
    await page.getByRole("grid").waitFor();
    assert.equal(await drop("h1", "beside.txt"), false);
  });

  test("many files leave room for the composer, and do not go over to another conversation", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await attach(page, ...Array.from({ length: 30 }, (_, n) => file(`${n}.txt`, "x")));
    await attached(page).nth(29).waitFor();
    const { y, height } = await page.getByRole("button", { name: "Send", exact: true }).boundingBox();
    assert.ok(y + height < 800, `Send is at ${y}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight + 1));
    await page.screenshot({ path: picture("many-files.png") });
    await page.getByRole("button", { name: "New", exact: true }).click();
    assert.equal(await attached(page).count(), 0);
  });

  test("a file that is too large is refused with the limit", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await attach(page, file("huge.bin", Buffer.alloc(most + 1)), file("fits.txt", "fits"));
    const error = page.getByText("huge.bin is too large: it has 6 000 001 bytes, and a message takes at most 6 000 000 bytes.");
    await error.waitFor();
    assert.equal(await error.locator("svg").count(), 1, "the error has no glyph");
    assert.equal(await attached(page).count(), 1);
    await send(page, "back");
    await inState(page, "completed").waitFor();
  });

  test("without the token no file is attached", async () => {
    const page = await visit({ page: `${agent.base}/` }, { path: "#/chat" });
    await attach(page, file("small.txt", "small"));
    await page.getByText(/^No file is attached: the token is missing/).waitFor();
  });
});

describe("numbers that the browser would round", () => {
  let agent;
  before(async () => { agent = await startAgent("--agent", "conformance"); });
  after(() => agent?.stop());
  const typed = '{"a": 9007199254740993, "text": "12345678901234567890 \\" 1"}';
  const type = async (page, text) => {
    const form = await formOf(page, "conformance");
    await form.getByRole("button", { name: "JSON" }).click();
    await form.getByLabel("Input as JSON").fill(text);
    await form.getByRole("button", { name: "Send", exact: true }).click();
    return form;
  };

  test("are sent and shown as they were typed", async () => {
    const page = await visit(agent);
    await type(page, typed);
    await inState(page, "input-required").waitFor();
    await page.locator("#log .you pre").getByText("9007199254740993").waitFor();
    const id = await taskId(page);
    const stored = await fetch(`${agent.base}/tasks/${id}?historyLength=9`, { headers: { "A2A-Version": "1.0" } });
    assert.match(await stored.text(), /9007199254740993/);
    await tasks(page).last().getByRole("link", { name: "Open task" }).click();
    await page.getByRole("tab", { name: "On the wire" }).click();
    await page.getByRole("button", { name: "A2A 1.0" }).click();
    await page.locator("#main pre:visible").filter({ hasText: "9007199254740993" }).first().waitFor();
  });

  test("are refused by a browser that cannot keep them", async () => {
    const prepare = (page) => page.addInitScript(() => { delete JSON.rawJSON; });
    const page = await visit(agent, { prepare });
    const form = await type(page, typed);
    await form.getByText(/^Not sent: this browser rounds numbers/).waitFor();
    assert.match(page.url(), /#\/skills\/conformance$/);
    await form.getByLabel("Input as JSON").fill('{"a": 1, "text": "12345678901234567890"}');
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await inState(page, "input-required").waitFor();
  });
});

describe("a question of consent", () => {
  let agent;
  let models;
  /** The model calls `memory_add` twice, each after a message or a result that is not a refusal, and then it says so. */
  const reply = ({ messages = [], stream }) => {
    const results = messages.filter((it) => it.role === "tool").map((it) => JSON.stringify(it.content));
    const isEnd = results.length === 2 || results.some((it) => /refused/.test(it));
    const input = { content: `Note ${results.length + 1}`, layer: "user" };
    const call = { index: 0, id: `call-${results.length}`, type: "function", function: { name: "memory_add", arguments: JSON.stringify(input) } };
    const message = { role: "assistant", content: isEnd ? `Kept ${results.filter((it) => !/refused/.test(it)).length}.` : null, ...isEnd ? {} : { tool_calls: [call] } };
    const finish_reason = isEnd ? "stop" : "tool_calls";
    const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    const of = (choice) => ({ id: "1", object: "chat.completion", created: 1, model: "stub", choices: [{ index: 0, finish_reason, ...choice }], usage });
    return stream ? `data: ${JSON.stringify(of({ delta: message }))}\n\ndata: [DONE]\n\n` : JSON.stringify(of({ message }));
  };
  before(async () => {
    models = createServer((request, response) => {
      let text = "";
      request.on("data", (piece) => { text += piece; });
      request.on("end", () => {
        const body = JSON.parse(text || "{}");
        response.setHeader("content-type", body.stream ? "text/event-stream" : "application/json");
        response.end(reply(body));
      });
    });
    await new Promise((ready) => { models.listen(0, "127.0.0.1", ready); });
    const url = `http://127.0.0.1:${models.address().port}/v1`;
    agent = await startWith({ A2A_MODEL_PROVIDER: "openai", A2A_MODEL_ID: "stub", A2A_MODEL_ENDPOINT_URL: url });
  });
  after(async () => {
    await agent?.stop();
    models?.close();
  });
  const offer = (page, name) => tasks(page).last().locator(".choices:visible button").filter({ hasText: name });
  const asks = async (page, note) => {
    await page.locator("#log .bubble.asks").getByText(note).last().waitFor();
    await offer(page, "Yes").waitFor();
  };

  test("has a Yes that confirms what was read, with its digest, and the next one has another", async () => {
    const page = await visit(agent);
    await say(page, "/assist keep two notes");
    await asks(page, "Note 1");
    const digests = [];
    page.on("request", (request) => {
      const digest = /"a2a-lambda\/confirm":"([0-9a-f]+)"/.exec(request.postData() ?? "")?.[1];
      if (digest) digests.push(digest);
    });
    await offer(page, "Yes").click();
    await asks(page, "Note 2");
    await offer(page, "Yes").click();
    await page.getByText("Kept 2.", { exact: true }).waitFor();
    assert.equal(new Set(digests).size, 2, `each answer has the digest of its question: ${digests}`);
    assert.equal(await page.locator("#log .choices:visible").count(), 0);
  });

  test("has a No that refuses it", async () => {
    const page = await visit(agent);
    await say(page, "/assist keep two notes");
    await asks(page, "Note 1");
    await offer(page, "No").click();
    await page.getByText("Kept 0.", { exact: true }).waitFor();
  });
});

const HOSTILE = "<img src=x onerror=window.hurt=1>\u202etxt.exe<script>window.hurt=1</script>\"'`javascript:window.hurt=1";

/** The JSON with a hostile text for every text that names nothing. */
function poisoned(value, name = "") {
  const kept = ["id", "contextId", "taskId", "state", "timestamp", "nextPageToken", "role", "messageId", "artifactId", "inputModes", "type", "createdAt", "updatedAt", "expiresAt", "status", "auth", "kind", "next", "task", "context", "groups"];
  if (kept.includes(name) && !(name === "status" && typeof value === "object")) return value;
  if (typeof value === "string") return HOSTILE;
  if (Array.isArray(value)) return value.map((it) => poisoned(it, name));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, poisoned(of, key)]));
  return value;
}

describe("hostile texts", () => {
  let agent;
  before(async () => { agent = await startAgent("--agent", "conformance"); });
  after(() => agent?.stop());

  test("no text of an agent or a client runs as a script", async () => {
    await a2a(agent.base, "/message:send", saying(`echo ${HOSTILE}`));
    const asked = await a2a(agent.base, "/message:send", saying(HOSTILE));
    await a2a(agent.base, `/tasks/${asked.task.id}/pushNotificationConfigs`, { url: "http://localhost:9/hook" });
    const failed = await a2a(agent.base, "/message:send", saying("fail"));
    const prepare = (page) => page.route(/\/(a2a-lambda|\.well-known|tasks|a2a-local\/page\/(facts|checks|tasks|rows|webhooks))/, async (route) => {
      const response = await route.fetch();
      if (!/json/.test(response.headers()["content-type"] ?? "")) return route.fulfill({ response });
      return route.fulfill({ response, json: poisoned(await response.json()) });
    });
    const page = await visit(agent, { prepare });
    const paths = ["skills", `chat/${asked.task.contextId}`, "tasks", "conversations", "webhooks", "agent", "process", "more", `task/${failed.task.id}`, `task/${asked.task.id}`];
    for (const path of paths) {
      await at(page, path);
      await page.waitForTimeout(600);
      const text = await page.locator("body").innerText();
      if (path !== "more") assert.ok(text.includes("<img src=x"), `${path} does not show the text`);
      assert.ok(!text.includes("\u202e"), `${path} has a mark that turns the text`);
      assert.equal(await page.locator("#main img, body script, #main iframe, [onerror]").count(), 0, path);
      const links = await page.locator("a").evaluateAll((all) => all.map((it) => it.protocol));
      assert.ok(links.every((it) => ["http:", "https:"].includes(it)), `${path}: ${links}`);
    }
    await page.screenshot({ path: picture("hostile.png") });
    assert.equal(await page.evaluate(() => window.hurt), undefined);
  });

  test("hostile events and links of a stream stay texts", async () => {
    const task = { id: "task-1", contextId: "ctx-1", status: { state: "TASK_STATE_WORKING" } };
    const markdown = `[a](javascript:window.hurt=1) [b](data:text/html,x) ![c](https://fine.example/) <b><script>window.hurt=1</script></b> \n\n> ${HOSTILE}\n\n|a|\n|-|\n|${HOSTILE}|\n\n\`\`\`${HOSTILE}\n${HOSTILE}\n\`\`\``;
    const events = [
      { task },
      { statusUpdate: { taskId: "task-1", contextId: "ctx-1", status: { state: `<b>${HOSTILE}`, message: { parts: [{ text: HOSTILE }] } } } },
      { artifactUpdate: { taskId: "task-1", artifact: { artifactId: "a", name: HOSTILE, description: HOSTILE, parts: [{ raw: "%%%", filename: "broken.png", mediaType: "image/png" }, { raw: 1 }, null, { text: "a\r\nb", mediaType: "text/csv", filename: "b.csv" }, { url: "javascript:window.hurt=1" }, { url: "https://example.com/x", filename: HOSTILE }, { raw: "aGk=", filename: `../${HOSTILE}`, mediaType: "text/html" }, { data: { [HOSTILE]: HOSTILE } }, { text: HOSTILE, mediaType: "text/html" }, { raw: "PHN2Zy8+", filename: "x.svg", mediaType: "image/svg+xml" }] } } },
      { artifactUpdate: { taskId: "task-1", artifact: { artifactId: "m", name: "m", parts: [{ text: markdown }] } } },
      { statusUpdate: { taskId: "task-1", status: { state: "TASK_STATE_AUTH_REQUIRED", message: { parts: [{ text: HOSTILE }], metadata: { "a2a-lambda/auth": { authType: HOSTILE, service: HOSTILE } } } } } },
    ];
    const body = events.map((it, n) => `id: ${n + 1}.1\ndata: ${JSON.stringify(it)}\n\n`).join("");
    const prepare = (page) => page.route("**/message:stream", (route) => route.fulfill({ contentType: "text/event-stream", body }));
    const page = await visit(agent, { prepare });
    await say(page, HOSTILE);
    await inState(page, "auth-required").waitFor();
    await page.getByText("Its bytes are no base64.").waitFor();
    assert.doesNotMatch(await page.locator("#log").innerText(), /U\+000D/, "the end of a line is a sign");
    const links = await page.locator("#log a").evaluateAll((all) => all.map((it) => it.getAttribute("href")));
    assert.deepEqual([...new Set(links)].sort(), ["#/task/task-1", "https://example.com/x", "https://fine.example/"]);
    assert.equal(await page.locator("#log b b, #log script, #log iframe").count(), 0);
    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: /^Download \.\.\// }).first().click();
    assert.doesNotMatch((await started).suggestedFilename(), /[\\/<>]/);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.equal(await page.locator("#log img, #log script").count(), 0);
  });

  test("the Markdown of a model is shown as it is meant, while it comes and after", async () => {
    const text = "# שלום\n\n- שלום עולם\n\nSee [a (b)](https://fine.example/a_(b)) and more.\n\n|a|b|\n|-|-|\n|`x | y`|p\\|q|\n\n```js\n```js\nlet a;\n```\n\nEnd.";
    const about = { taskId: "task-1", contextId: "ctx-1" };
    const chunk = (part, more) => ({ artifactUpdate: { ...about, artifact: { artifactId: "m", name: "m", parts: [{ text: part }] }, ...more } });
    const frames = (...events) => events.map((it, n) => `id: ${n + 1}.1\ndata: ${JSON.stringify(it)}\n\n`).join("");
    const first = [{ task: { id: "task-1", contextId: "ctx-1", status: { state: "TASK_STATE_WORKING" } } }, chunk(text.slice(0, 60)), chunk(text.slice(60), { append: true })];
    const rest = [...first, chunk("", { append: true, lastChunk: true }), { statusUpdate: { ...about, status: { state: "TASK_STATE_COMPLETED" } } }];
    let goOn;
    const waits = new Promise((done) => { goOn = done; });
    const prepare = async (page) => {
      const sends = (body) => ({ contentType: "text/event-stream", body });
      await page.route("**/message:stream", (route) => route.fulfill(sends(frames(...first))));
      await page.route("**/tasks/task-1:subscribe", async (route) => {
        await waits;
        await route.fulfill(sends(frames(...rest)));
      });
    };
    const page = await visit(agent, { prepare });
    await say(page, "hello");
    const bubble = tasks(page).last().locator(".bubble");
    const check = async () => {
      await bubble.getByText("End.").waitFor();
      assert.deepEqual(await bubble.locator("td").allInnerTexts(), ["x | y", "p|q"]);
      assert.equal(await bubble.locator("pre").innerText(), "```js\nlet a;");
      assert.equal(await bubble.locator("a").getAttribute("href"), "https://fine.example/a_(b)");
      const sides = await bubble.locator("h3, li").evaluateAll((all) => all.map((it) => getComputedStyle(it).direction));
      assert.deepEqual(sides, ["rtl", "rtl"]);
    };
    await page.locator("#log .streams").waitFor();
    await check();
    goOn();
    await inState(page, "completed").waitFor();
    await page.locator("#log .streams").waitFor({ state: "detached" });
    await check();
  });

  test("Markdown is read as models write it, from right to left too", async () => {
    const text = "| a | b |\n|-|-|\n| `x|y` | c\\|d |\n|| e |\n\n[one](https://fine.example/A_(b)) **two\nlines** ***both***\n\n"
      + "```md\n```js\ninside\n```\n\n- שלום עולם\n\n> שלום\n";
    const events = [
      { task: { id: "task-1", contextId: "ctx-1", status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { taskId: "task-1", artifact: { artifactId: "a", name: "a", parts: [{ text }] } } },
      { statusUpdate: { taskId: "task-1", status: { state: "TASK_STATE_COMPLETED" } } },
    ];
    const body = events.map((it, n) => `id: ${n + 1}.1\ndata: ${JSON.stringify(it)}\n\n`).join("");
    const prepare = (page) => page.route("**/message:stream", (route) => route.fulfill({ contentType: "text/event-stream", body }));
    const page = await visit(agent, { prepare });
    await say(page, "hello");
    await page.locator("#log").getByText("inside").waitFor();
    const log = page.locator("#log .result");
    assert.deepEqual(await log.locator("td").allInnerTexts(), ["x|y", "c|d", "", "e"]);
    assert.equal(await log.locator("a").getAttribute("href"), "https://fine.example/A_(b)");
    assert.deepEqual(await log.locator("strong").allInnerTexts(), ["two\nlines", "both"]);
    assert.equal(await log.locator("pre").innerText(), "```js\ninside");
    for (const name of ["li", "blockquote"]) {
      assert.equal(await log.locator(name).evaluate((it) => getComputedStyle(it).direction), "rtl", name);
    }
    await page.screenshot({ path: picture("markdown.png") });
  });

  test("a row of the trace has an address, and opens beside the waterfall or below its row", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("steps 3 20"));
    const page = await visit(agent, { path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 } });
    await fall(page, /^step#2, step/).click();
    const panel = page.getByRole("region", { name: "Row step#2" });
    await panel.getByText("Output").waitFor();
    const right = async (place) => (await place.boundingBox()).x;
    assert.ok(await right(panel) > 700);
    const { y, height } = await panel.boundingBox();
    assert.equal(Math.round(y + height), 800, "the panel ends with its content");
    const address = page.url();
    assert.match(address, /#\/task\/[^/]+\/[0-9a-f]{8}\.\d+$/);
    await page.setViewportSize({ width: 360, height: 800 });
    const row = await fall(page, /^step#2, step/).boundingBox();
    const below = await panel.boundingBox();
    assert.ok(below.y >= row.y + row.height - 1 && below.x < 20, JSON.stringify([row, below]));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    await page.goto("about:blank");
    await page.goto(agent.page);
    await page.goto(address);
    await panel.getByText("Output").waitFor();
  });

  test("the waterfall is read by the keyboard, folded, and copied", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("steps 2 20"));
    const page = await visit(agent, { path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
    await fall(page, /^Turn 1, turn/).focus();
    await page.keyboard.press("ArrowLeft");
    assert.equal(await fall(page, /^step/).count(), 0);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Row step" }).getByText("Output").waitFor();
    await page.keyboard.press("c");
    await page.waitForFunction(() => document.getElementById("announcer").textContent === "The row is copied");
    const row = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(row.kind, "step");
    assert.ok("output" in row.content);
    await page.keyboard.press("?");
    await page.getByLabel("Single letters act").uncheck();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    // Letters that are off act nowhere: in the waterfall, in the panel, on the page of the task.
    const turn = fall(page, /^Turn 1/);
    const places = [turn, page.getByRole("region", { name: "Row step" }).getByRole("heading").first(), page.getByRole("tab", { name: "Trace" })];
    const state = () => page.evaluate(() => [location.hash, document.activeElement.outerHTML, document.getElementById("announcer").textContent, document.querySelectorAll("dialog").length]);
    for (const place of places) {
      await place.focus();
      await page.evaluate(() => { document.getElementById("announcer").textContent = ""; });
      const before = await state();
      for (const key of ["c", "Shift+C", "j", "k", "e", "n", "/", "?", "g", "c"]) {
        await page.keyboard.press(key);
        await page.waitForTimeout(30);
        assert.deepEqual(await state(), before, key);
      }
    }
    // A button shows the keys then, so that letters can be switched on again.
    await page.getByRole("button", { name: "Keys" }).click();
    await page.getByLabel("Single letters act").check();
    await page.keyboard.press("Escape");
    await turn.focus();
    await page.keyboard.press("j");
    assert.ok(await turn.evaluate((it) => it !== document.activeElement));
    await page.keyboard.press("c");
    await page.waitForFunction(() => document.getElementById("announcer").textContent === "The row is copied");
  });

  test("a model call is shown with its prompt, and copied as a cassette; a pause is cut out", async () => {
    const request = { system: HOSTILE, messages: [{ user: HOSTILE }], tools: [{ name: "stock", description: "d", inputSchema: {} }], toolChoice: "auto" };
    const reply = { content: [{ text: HOSTILE }, { text: "long ".repeat(2000) }, { toolUse: { id: "1", name: "stock", input: { sku: HOSTILE } } }], stop: "toolUse", usage: { inputTokens: 31, outputTokens: 4 } };
    const model = { id: "00000001.2", parent: "00000001.1", kind: "model", name: "model", start: 1000, end: 1980, model: "large-2026-10", firstMs: 412, inputTokens: 4860, outputTokens: 4, stop: "toolUse" };
    const trace = [
      { id: "00000001", kind: "turn", name: "chat", turn: 1, attempt: 1, start: 0, end: 3000, ended: "stopped" },
      { id: "00000001.1", parent: "00000001", kind: "model", name: "chat/model#1", start: 1000, end: 2000 },
      model,
      { id: "00000001.3", parent: "00000001", kind: "tool", name: `chat/call/1.1#1>${HOSTILE}#1`, start: 2000, end: 2168 },
      { id: "00000001.4", parent: "00000001", kind: "step", name: "chat/kept", start: 2200, end: 2200, kept: true },
      { id: "00000002", kind: "turn", name: "chat", turn: 2, attempt: 1, start: 44000, end: 45000, ended: "broken" },
      // A run after an outage is no attempt of the store, but another row.
      { id: "00000003", kind: "turn", name: "chat", turn: 2, attempt: 1, start: 45500, end: 46000, ended: "stopped" },
    ];
    const { task } = await a2a(agent.base, "/message:send", saying("echo hi"));
    const answer = (part) => (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(part) });
    const prepare = async (page) => {
      await page.route("**/a2a-local/page/tasks/*", answer({ facts: {}, webhooks: [], trace }));
      await page.route("**/a2a-local/page/tasks/*/trace/*", answer({ ...model, content: { request, reply } }));
    };
    const page = await visit(agent, { prepare, path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
    await fall(page, /^Waits for you, wait, 41.0 s/).waitFor();
    assert.equal(await fall(page, /^Turn 1/).locator(".gap").count(), 1);
    await fall(page, /^Turn 2, turn, 2\.00 s/).waitFor();
    await fall(page, /^Attempt 2, attempt, 500 ms/).waitFor();
    assert.match(await page.locator(".legend").innerText(), /^1 model call 980 ms, pale until the first token\s+1 tool 168 ms$/);
    // A mark that has no room has no word; none is cut, or lies on another.
    const marks = await page.locator(".tick").evaluateAll((all) => all.map((it) => {
      const [own, word] = [it.getBoundingClientRect(), it.firstChild.getBoundingClientRect()];
      return word.top >= own.bottom - 1 || word.right <= own.right + 1;
    }));
    assert.ok(marks.length > 2 && marks.every(Boolean), String(marks));
    await fall(page, /^Waits for you/).click();
    const dot = await page.evaluate(() => document.querySelector(".detail header path").getAttribute("d").length < 45);
    assert.equal(dot, false, "the panel has no icon of its row");
    await fall(page, /^model#1, model call, 980 ms, 4864 tokens/).click();
    const panel = page.getByRole("region", { name: "Row model#1" });
    await panel.getByText("stopped for a tool").waitFor();
    await panel.getByText("412 ms").waitFor();
    await panel.getByText("large-2026-10", { exact: true }).waitFor();
    assert.equal(await page.locator(".waterfall img, .waterfall script").count(), 0);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    await panel.getByRole("button", { name: "Copy" }).click();
    await page.getByRole("menuitem", { name: "As a cassette" }).click();
    await page.waitForFunction(() => document.getElementById("announcer").textContent === "The cassette is copied");
    const cassette = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.deepEqual(cassette, [{ request, reply }]);
    await panel.getByText("4 860").waitFor();
    await panel.getByRole("button", { name: "Show all 10 KB" }).waitFor();
    assert.equal(await panel.locator("summary .start").innerText(), request.system.replace("\u202e", "[U+202E]"));
    await page.screenshot({ path: picture("trace-light.png") });
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document));
    assert.deepEqual(violations.map((it) => [it.id, it.nodes[0].html]), []);
    await page.setViewportSize({ width: 360, height: 800 });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("trace-360-dark.png") });
    await page.setViewportSize({ width: 1280, height: 800 });
    // The call of a tool leads to its row, and back to the model that asked for it.
    await panel.locator(".with-link > .link").click();
    const tool = page.getByRole("region", { name: /^Row .*javascript/ });
    await tool.getByText("asked by").waitFor();
    await page.evaluate(() => { document.getElementById("announcer").textContent = ""; });
    await page.keyboard.press("Shift+C");
    await page.waitForFunction(() => document.getElementById("announcer").textContent === "The cassette is copied");
    await page.screenshot({ path: picture("tool.png") });
    await tool.getByRole("button", { name: "model#1" }).click();
    await panel.getByText("stopped for a tool").waitFor();
    await fall(page, /^Turn 1/).click();
    await page.getByRole("region", { name: "Row Turn 1" }).getByRole("button", { name: "Copy" }).click();
    const off = page.getByRole("menuitem", { name: "As a cassette" });
    assert.equal(await off.getAttribute("aria-disabled"), "true");
    await off.getByText("of model calls and tools").waitFor();
    await page.screenshot({ path: picture("copies.png") });
  });

  test("tries of a model call are counted once, and the waits between them are hatched", async () => {
    const call = { kind: "model", name: "chat/model#1", parent: "00000001.1" };
    const trace = [
      { id: "00000001", kind: "turn", name: "chat", turn: 1, attempt: 1, start: 0, end: 5200, ended: "stopped" },
      { id: "00000001.1", parent: "00000001", kind: "model", name: "chat/model#1", start: 100, end: 5121 },
      { ...call, id: "00000001.2", start: 100, end: 107, error: "MODEL_BUSY" },
      { ...call, id: "00000001.3", start: 2107, end: 2114, error: "MODEL_BUSY" },
      { ...call, id: "00000001.4", start: 5114, end: 5121, inputTokens: 9, outputTokens: 1 },
    ];
    const { task } = await a2a(agent.base, "/message:send", saying("echo hi"));
    const prepare = (page) => page.route("**/a2a-local/page/tasks/*", (route) => route.fulfill({ json: { facts: {}, webhooks: [], trace } }));
    const page = await visit(agent, { prepare, path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 } });
    await fall(page, /^try 1, model call, MODEL_BUSY, 7 ms/).waitFor();
    await fall(page, /^try 2, model call, MODEL_BUSY, 7 ms/).waitFor();
    await fall(page, /^try 3, model call, 7 ms, 10 tokens/).waitFor();
    assert.match(await page.locator(".legend").innerText(), /^1 model call 21 ms/);
    const bars = fall(page, /^model#1/).locator(".bar");
    assert.equal(await bars.count(), 5);
    assert.equal(await fall(page, /^model#1/).locator(".bar.of-wait").count(), 2);
    await page.screenshot({ path: picture("tries.png") });
  });

  test("a run that was lost ends with its last sign, and the pause until the next one is cut out", async () => {
    const trace = [
      { id: "00000001", kind: "turn", name: "book", turn: 1, attempt: 1, start: 0, lost: true },
      { id: "00000001.1", parent: "00000001", kind: "step", name: "rate", start: 100, end: 400 },
      { id: "00000001.2", parent: "00000001", kind: "step", name: "book", start: 500, lost: true },
      { id: "00000001.3", parent: "00000001", kind: "write", name: "heartbeat", start: 900, end: 901 },
      { id: "00000002", kind: "turn", name: "book", turn: 1, attempt: 2, start: 600901, end: 602000, ended: "stopped" },
      { id: "00000002.1", parent: "00000002", kind: "step", name: "book", start: 601000, end: 601900 },
    ];
    const { task } = await a2a(agent.base, "/message:send", saying("echo hi"));
    const prepare = (page) => page.route("**/a2a-local/page/tasks/*", (route) => route.fulfill({ json: { facts: {}, webhooks: [], trace } }));
    const page = await visit(agent, { prepare, path: `#/task/${task.id}`, viewport: { width: 1280, height: 800 } });
    await fall(page, /^Attempt 1, attempt, lost, 901 ms/).waitFor();
    await fall(page, /^Hand-over, hand-over, lease ended, 10 min 0 s/).waitFor();
    await fall(page, /^book, step, lost, 401 ms/).waitFor();
    assert.equal(await fall(page, /^Attempt 2/).locator(".gap").count(), 1);
    const wide = (row) => row.locator(".bar").evaluate((it) => it.clientWidth / it.parentElement.clientWidth);
    assert.ok(await wide(fall(page, /^book, step, 900 ms/)) > 0.3, "ten minutes of nothing leave no room for the work");
  });

  test("a schema that is no form gets the JSON box", async () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`field${n}`, { type: "string" }]));
    const schemas = {
      recursive: { $ref: "#/$defs/Node", $defs: { Node: { type: "object", properties: { next: { $ref: "#/$defs/Node" } } } } },
      many: { type: "object", properties: many },
      deep: { type: "object", properties: { a: { type: "object", properties: { b: { type: "object", properties: { c: { type: "object", properties: { d: { type: "string" } } } } } } } } },
      polluting: JSON.parse('{"type":"object","properties":{"__proto__":{"$ref":"#/constructor"}}}'),
      fine: { type: "object", properties: { a: { type: "object", properties: { b: { type: "object", properties: { c: { type: "string" } } } } } } },
      forty: { type: "object", properties: Object.fromEntries(Object.entries(many).slice(0, 40)) },
    };
    const skills = Object.entries(schemas).map(([id, inputSchema]) => ({ id, name: id, description: "", tags: [], examples: [], inputModes: ["application/json"], outputModes: [], inputSchema }));
    const prepare = (page) => page.route("**/a2a-lambda/skills", (route) => route.fulfill({ json: { skills } }));
    const page = await visit(agent, { prepare });
    for (const id of ["recursive", "many", "deep", "polluting"]) {
      await formOf(page, id);
      await skill(page, id).getByLabel("Input as JSON").waitFor();
      assert.equal(await skill(page, id).locator("input").count(), 0, id);
      await skill(page, id).getByText(/^No form:/).waitFor();
    }
    assert.equal(await (await formOf(page, "fine")).locator("input").count(), 1);
    assert.equal(await (await formOf(page, "forty")).locator("input").count(), 40);
  });
});

// PAGE_TASKS=10000 shows as many as the requirement names; to send them takes minutes.
const count = Number(process.env.PAGE_TASKS ?? 2000);

describe(`${count} tasks`, () => {
  let agent;
  before(async () => {
    agent = await startAgent("--agent", "conformance");
    let left = count;
    const lane = async () => {
      for (let n = left--; n > 0; n = left--) await a2a(agent.base, "/message:send", saying(n === count ? "what?" : `echo number ${n}.`));
    };
    await Promise.all(Array.from({ length: 16 }, lane));
  });
  after(() => agent?.stop());

  test("a list shows a hundred at a time, and a search goes through all", async () => {
    const page = await visit(agent);
    const rows = page.locator("tbody tr");
    const began = Date.now();
    await page.getByRole("link", { name: "Tasks" }).click();
    await rows.first().waitFor();
    const took = Date.now() - began;
    assert.equal(await rows.count(), 100);
    // The counts come after the rows.
    await page.getByRole("button", { name: new RegExp(`^All ${grouped(Math.min(count, 1000))}`) }).waitFor({ timeout: 120000 });
    for (let n = 2; n <= 3; n += 1) {
      await page.getByRole("button", { name: "Older" }).focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction((most) => document.querySelectorAll("tbody tr").length === most, n * 100);
    }
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Older", "the focus is lost");
    await page.screenshot({ path: picture("tasks.png") });
    await rows.nth(250).click();
    await page.getByRole("tab", { name: "Trace" }).waitFor();
    await page.goBack();
    await rows.nth(299).waitFor();
    const place = () => page.evaluate(() => [document.activeElement.rowIndex, document.querySelector("main .scroll").scrollTop > 4000]);
    assert.deepEqual(await place(), [251, true], "Back does not come to the same place");
    const searched = Date.now();
    await page.getByLabel("Search in tasks").fill(`number ${count - 1}.`);
    await page.getByText(new RegExp(`^Searched ${grouped(count)} tasks in`)).waitFor({ timeout: 120000 });
    assert.equal(await rows.count(), 1);
    console.log(`${count} tasks: the first page took ${took} ms, a search ${Date.now() - searched} ms`);
    // The oldest task of all is the only open question, and its answer is seen at once.
    await at(page, "tasks/group=needs");
    await rows.first().getByText("Input required").waitFor({ timeout: 120000 });
    const asked = await rows.first().getAttribute("data-key");
    await a2a(agent.base, "/message:send", { message: { ...saying("echo answered").message, taskId: asked } });
    await page.getByText("No such task", { exact: true }).waitFor({ timeout: 30000 });
    await page.goBack();
    await rows.first().click();
    await page.locator(".task-head .completed").waitFor({ timeout: 30000 });
    assert.ok((await page.locator("*").count()) < 2000);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByText(new RegExp(`Read ${grouped(Math.min(count, 1000))} tasks`)).waitFor({ timeout: 30000 });
  });
});

/** A number in groups of three, as a pattern: Playwright makes each kind of space a plain one. */
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\\s");
