// The page of the local agent in a real browser.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { a2a, openBrowser, picture, saying, startAgent, startWith } from "./setup.mjs";

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

const skill = (page, id) => page.locator(`[data-skill="${id}"]`);
const tasks = (page) => page.locator("#log article[aria-label^='Task']");
const inState = (page, state) => tasks(page).last().locator(`.state.${state}`);

describe("the reference agent", () => {
  let agent;
  before(async () => { agent = await startAgent(); });
  after(() => agent?.stop());

  test("the form of every skill sends", async () => {
    const page = await visit(agent);
    const ids = await page.locator("[data-skill]").evaluateAll((all) => all.map((it) => it.dataset.skill));
    const known = ["add", "book-flight", "create-report", "echo", "format-report", "generate-report", "logo"];
    assert.deepEqual(known.filter((id) => !ids.includes(id)), []);
    const fill = {
      echo: async (form) => form.getByLabel("Text").fill("hello there"),
      add: async (form) => {
        await form.getByLabel("a *", { exact: true }).fill("19");
        await form.getByLabel("b *", { exact: true }).fill("23");
      },
      "book-flight": async (form) => {
        await form.getByLabel("to", { exact: true }).fill("Rome");
        await form.getByLabel("on", { exact: true }).fill("Monday");
      },
      "generate-report": async (form) => {
        await form.getByLabel("title *").fill("Year");
        await form.getByRole("button", { name: "Add to points" }).click();
        await form.getByLabel("label *").fill("revenue");
        await form.getByLabel("value *").fill("1.5");
      },
      logo: async (form) => form.getByLabel("Text").fill("a red square"),
      "format-report": async (form) => form.getByLabel("Text").fill("my report"),
      "create-report": async (form) => form.getByLabel("Text").fill("my report"),
    };
    for (const id of known) {
      await page.evaluate(() => { location.hash = "#/skills"; });
      await skill(page, id).waitFor();
      await fill[id](skill(page, id));
      await skill(page, id).getByRole("button", { name: "Send", exact: true }).click();
      if (id === "echo") await page.locator("#log").getByText("hello there").last().waitFor();
      else if (["create-report", "format-report"].includes(id)) await inState(page, "input-required").waitFor();
      else await inState(page, "completed").waitFor();
    }
    await page.evaluate(() => { location.hash = "#/skills"; });
    await page.screenshot({ path: picture("skills-light.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("skills-dark.png") });
  });

  test("a wrong field is named and nothing is sent", async () => {
    const page = await visit(agent);
    const form = skill(page, "add");
    await form.getByLabel("a *", { exact: true }).fill("one");
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await form.getByText("This has to be a whole number.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
    assert.match(page.url(), /#\/skills$/);
  });

  test("an example is a button", async () => {
    const page = await visit(agent);
    await page.getByRole("button", { name: "What's 2+2?" }).click();
    await inState(page, "completed").waitFor();
    await tasks(page).last().getByText("4", { exact: true }).first().waitFor();
  });

  test("questions are answered where they are asked", async () => {
    const page = await visit(agent);
    await page.getByRole("button", { name: "Book a flight" }).click();
    await inState(page, "input-required").waitFor();
    await page.getByLabel("Your answer").fill("Rome");
    await page.getByRole("button", { name: "Answer" }).click();
    await page.getByLabel("Your answer").fill("Monday");
    await page.screenshot({ path: picture("question.png") });
    await page.getByRole("button", { name: "Answer" }).click();
    await inState(page, "completed").waitFor();
    assert.equal(await tasks(page).count(), 1);
  });

  test("credentials are typed hidden and never shown", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await page.getByLabel("Message", { exact: true }).fill("/format-report as PDF");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await inState(page, "auth-required").waitFor();
    const control = page.getByLabel("Credentials");
    assert.equal(await control.getAttribute("type"), "password");
    await control.fill("very-secret");
    await page.getByRole("button", { name: "Answer" }).click();
    await inState(page, "completed").waitFor();
    assert.ok(!(await page.locator("body").innerText()).includes("very-secret"));
  });

  test("the keyboard alone is enough", async () => {
    const page = await visit(agent);
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
    const tabTo = async (found) => {
      for (let n = 0; n < 80; n += 1) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(found)) return;
      }
      assert.fail(`the keyboard does not reach it; the focus is on ${await focused()}`);
    };
    // The focus is on the heading, so the way back leads to the first control.
    for (let n = 0; n < 20 && (await focused()) !== "Skip to the content"; n += 1) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    assert.match(page.url(), /#\/skills$/);
    await tabTo(() => document.activeElement.textContent === "Book a flight");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, "none");
    await page.keyboard.press("Enter");
    await inState(page, "input-required").waitFor();
    await page.waitForFunction(() => document.activeElement.closest("form[aria-label=Answer]"));
    await page.keyboard.type("Rome");
    await page.keyboard.press("Enter");
    await page.getByText("When").first().waitFor();
    await page.waitForFunction(() => document.activeElement.closest("form[aria-label=Answer]"));
    await page.keyboard.type("Monday");
    await page.keyboard.press("Enter");
    await inState(page, "completed").waitFor();
  });

  test("every control has a name", async () => {
    const page = await visit(agent);
    for (const path of ["skills", "chat", "tasks", "conversations", "webhooks", "agent", "process"]) {
      await page.evaluate((to) => { location.hash = `#/${to}`; }, path);
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
    const page = await visit(agent, { path: "#/tasks" });
    await page.locator("tbody tr").first().waitFor();
    await page.getByLabel("Call as").fill("acme:ann");
    await page.getByRole("button", { name: "Use", exact: true }).click();
    await page.getByText("0 tasks").waitFor();
    assert.equal(await page.locator("tbody tr").count(), 0);
  });
});

describe("the conformance agent", () => {
  let agent;
  before(async () => { agent = await startAgent("--agent", "conformance"); });
  after(() => agent?.stop());

  const say = async (page, text) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };

  test("a file is a download of its bytes", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await say(page, "file 1000");
    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: /^Download/ }).click();
    const file = await (await started).path();
    assert.equal(statSync(file).size, 1000);
  });

  test("the cause of a failure is in the task", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await say(page, "panic");
    await inState(page, "failed").waitFor();
    await tasks(page).last().getByRole("link").click();
    await page.getByRole("heading", { name: "Why it failed" }).waitFor();
    await page.getByText("State: failed").waitFor();
  });

  test("steps, attempts and generations of a task are shown", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("steps 3 20"));
    const page = await visit(agent, { path: `#/task/${task.id}` });
    await page.getByText("Step step#3 finished").waitFor();
    await page.getByText("Attempt 1 of turn 1").waitFor();
    for (const [version, mark] of [["1.0", "TASK_STATE_COMPLETED"], ["0.3", "TASK_STATE_COMPLETED"], ["0.1", "sessionId"]]) {
      await page.getByRole("button", { name: `A2A ${version}` }).click();
      await page.locator("pre").filter({ hasText: mark }).first().waitFor();
    }
    await page.screenshot({ path: picture("task-light.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: picture("task-dark.png") });
  });

  test("what is copied sends the same message", async () => {
    const text = "echo it's \"two\" $HOME \\ `id` \u00fc";
    const { task } = await a2a(agent.base, "/message:send", saying(text));
    const page = await visit(agent, { path: `#/task/${task.id}`, permissions: ["clipboard-read", "clipboard-write"] });
    const programs = { curl: ["bash", "-c"], Python: ["python3", "-c"], a2acli: ["bash", "-c"] };
    for (const [name, [program, option]] of Object.entries(programs)) {
      await page.getByRole("button", { name: `Copy as ${name}` }).click();
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
    await page.locator("#main .state.canceled").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    assert.equal(await page.getByText(task.id).count(), 0);
    const other = await a2a(agent.base, "/message:send", saying("echo again"));
    await page.evaluate((id) => { location.hash = `#/task/${id}`; }, other.task.id);
    await page.getByRole("button", { name: "Send again" }).click();
    await inState(page, "completed").waitFor();
    await page.getByText("echo: again").first().waitFor();
  });

  test("a webhook is listed with its failed attempts", async () => {
    const { task } = await a2a(agent.base, "/message:send", saying("what?"));
    await a2a(agent.base, `/tasks/${task.id}/pushNotificationConfigs`, { url: "http://localhost:9/hook", token: "secret-token" });
    await a2a(agent.base, "/message:send", { message: { ...saying("echo now").message, taskId: task.id } });
    const page = await visit(agent, { path: "#/webhooks" });
    const row = page.locator("tbody tr").filter({ hasText: task.id });
    await row.waitFor();
    for (let n = 0; n < 50 && (await row.locator("td").nth(3).innerText()) === "0"; n += 1) {
      await page.waitForTimeout(200);
      await page.getByRole("button", { name: "Reload" }).click();
      await row.waitFor();
    }
    assert.notEqual(await row.locator("td").nth(3).innerText(), "0");
    assert.ok(!(await page.locator("body").innerText()).includes("secret-token"));
  });

  test("a killed process goes on, and the page shows the same task finish", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await say(page, "steps 8 700");
    await tasks(page).last().getByText("step 2:").first().waitFor();
    const id = await tasks(page).last().getByRole("link").innerText();
    await page.getByRole("link", { name: "Process" }).click();
    const before = await page.locator("dl.facts").innerText();
    await page.getByRole("button", { name: "Kill the process now" }).click();
    await page.screenshot({ path: picture("kill.png") });
    await page.getByRole("button", { name: "Yes, kill it" }).click();
    await page.locator("#restarted").waitFor({ timeout: 30000 });
    assert.notEqual(await page.locator("dl.facts").innerText(), before);
    await page.getByRole("link", { name: "Chat" }).click();
    await inState(page, "completed").waitFor({ timeout: 30000 });
    assert.equal(await tasks(page).last().getByRole("link").innerText(), id);
    await tasks(page).last().getByText("step 8:").first().waitFor();
    await page.evaluate((to) => { location.hash = `#/task/${to}`; }, id);
    await page.getByText("Attempt 2 of turn 1").waitFor();
    assert.equal(await page.getByText(/^Step step#\d finished$/).count(), 8);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByText("The turn waits for a worker").evaluate((it) => it.scrollIntoView({ block: "center" }));
    await page.screenshot({ path: picture("after-kill-dark.png") });
  });
});

const HOSTILE_NAME = "<img src=x onerror=window.hurt=1>\u202efdp.txt";
const file = (name, bytes, mimeType = "text/plain") => ({ name, mimeType, buffer: Buffer.from(bytes) });

describe("files of a message", () => {
  let agent;
  const most = 6_000_000;
  before(async () => { agent = await startWith({ A2A_UPLOAD_MAX: String(most) }, "--agent", "conformance"); });
  after(() => agent?.stop());

  const send = async (page, text) => {
    await page.getByLabel("Message", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const attached = (page) => page.getByLabel("Attached files").getByRole("listitem");
  const attach = async (page, ...files) => {
    const asked = page.waitForEvent("filechooser");
    await page.locator(".composer").getByRole("button", { name: "Attach files" }).focus();
    await page.keyboard.press("Enter");
    await (await asked).setFiles(files);
  };
  const answer = (page) => tasks(page).last().locator("section[aria-label^=Artifact]");

  test("a small file reaches the skill, and its answer can be saved", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await attach(page, file(HOSTILE_NAME, "tiny text"), file("other.bin", [0, 255], "application/octet-stream"));
    await attached(page).nth(1).waitFor();
    assert.match(await attached(page).first().innerText(), /^<img src=x onerror=window\.hurt=1>\[U\+202E\]fdp\.txt 9 bytes/);
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
    await page.locator("#log .user").getByText("Uploaded large.txt").waitFor();
  });

  test("files can be dropped on the chat and on a question", async () => {
    const page = await visit(agent, { path: "#/chat" });
    const drop = (place, name) => page.locator(place).evaluate((it, name) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["dropped"], name, { type: "text/plain" }));
      it.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }, name);
    await drop("h1", "first.txt");
    await attached(page).filter({ hasText: "first.txt" }).waitFor();
    await send(page, "what?");
    await inState(page, "input-required").waitFor();
    await page.locator("#log .user").getByRole("button", { name: "Download first.txt" }).waitFor();
    await drop("form[aria-label=Answer]", "second.txt");
    await page.locator("form[aria-label=Answer]").getByText("second.txt").first().waitFor();
    assert.equal(await page.locator(".composer li").count(), 0);
    await page.getByLabel("Your answer").fill("back");
    await page.getByRole("button", { name: "Answer", exact: true }).click();
    await inState(page, "completed").waitFor();
    await answer(page).getByRole("button", { name: "Download second.txt" }).waitFor();
  });

  test("a file that is too large is refused with the limit", async () => {
    const page = await visit(agent, { path: "#/chat" });
    await attach(page, file("huge.bin", Buffer.alloc(most + 1)), file("fits.txt", "fits"));
    await page.getByText("huge.bin is too large: it has 6 000 001 bytes, and a message takes at most 6 000 000 bytes.").waitFor();
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

  test("are sent and shown as they were typed", async () => {
    const page = await visit(agent);
    const form = skill(page, "conformance");
    await form.getByLabel("Input as").selectOption("JSON");
    await form.getByLabel("Input as JSON").fill(typed);
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await inState(page, "input-required").waitFor();
    await page.locator("#log .user pre").getByText("9007199254740993").waitFor();
    const id = await tasks(page).last().getByRole("link").innerText();
    const stored = await fetch(`${agent.base}/tasks/${id}?historyLength=9`, { headers: { "A2A-Version": "1.0" } });
    assert.match(await stored.text(), /9007199254740993/);
    await tasks(page).last().getByRole("link").click();
    await page.getByRole("button", { name: "A2A 1.0" }).click();
    await page.locator("#main pre:visible").filter({ hasText: "9007199254740993" }).first().waitFor();
  });

  test("are refused by a browser that cannot keep them", async () => {
    const prepare = (page) => page.addInitScript(() => { delete JSON.rawJSON; });
    const page = await visit(agent, { prepare });
    const form = skill(page, "conformance");
    await form.getByLabel("Input as").selectOption("JSON");
    await form.getByLabel("Input as JSON").fill(typed);
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await form.getByText(/^Not sent: this browser rounds numbers/).waitFor();
    assert.match(page.url(), /#\/skills$/);
    await form.getByLabel("Input as JSON").fill('{"a": 1, "text": "12345678901234567890"}');
    await form.getByRole("button", { name: "Send", exact: true }).click();
    await inState(page, "input-required").waitFor();
  });
});

const HOSTILE = "<img src=x onerror=window.hurt=1>\u202etxt.exe<script>window.hurt=1</script>\"'`javascript:window.hurt=1";

/** The JSON with a hostile text for every text that names nothing. */
function poisoned(value, name = "") {
  const kept = ["id", "contextId", "taskId", "state", "timestamp", "nextPageToken", "role", "messageId", "artifactId", "inputModes", "type", "createdAt", "updatedAt", "expiresAt", "status", "auth", "kind", "next"];
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
    const prepare = (page) => page.route(/\/(a2a-lambda|\.well-known|tasks|a2a-local\/page\/(facts|checks|tasks|webhooks))/, async (route) => {
      const response = await route.fetch();
      if (!/json/.test(response.headers()["content-type"] ?? "")) return route.fulfill({ response });
      return route.fulfill({ response, json: poisoned(await response.json()) });
    });
    const page = await visit(agent, { prepare });
    const paths = ["skills", "chat", "tasks", "conversations", "webhooks", "agent", "process", `task/${failed.task.id}`, `task/${asked.task.id}`];
    for (const path of paths) {
      await page.evaluate((to) => { location.hash = `#/${to}`; }, path);
      await page.waitForTimeout(400);
      const text = await page.locator("body").innerText();
      if (path !== "chat" && path !== "conversations") assert.ok(text.includes("<img src=x"), `${path} does not show the text`);
      assert.ok(!text.includes("\u202e"), `${path} has a mark that turns the text`);
      assert.equal(await page.locator("#main img, #main script, #main iframe, [onerror]").count(), 0, path);
      const links = await page.locator("a").evaluateAll((all) => all.map((it) => it.protocol));
      assert.ok(links.every((it) => ["http:", "https:"].includes(it)), `${path}: ${links}`);
    }
    await page.screenshot({ path: picture("hostile.png") });
    assert.equal(await page.evaluate(() => window.hurt), undefined);
  });

  test("hostile events and links of a stream stay texts", async () => {
    const task = { id: "task-1", contextId: "ctx-1", status: { state: "TASK_STATE_WORKING" } };
    const events = [
      { task },
      { statusUpdate: { taskId: "task-1", contextId: "ctx-1", status: { state: `<b>${HOSTILE}`, message: { parts: [{ text: HOSTILE }] } } } },
      { artifactUpdate: { taskId: "task-1", artifact: { artifactId: "a", name: HOSTILE, description: HOSTILE, parts: [{ url: "javascript:window.hurt=1" }, { url: "https://example.com/x", filename: HOSTILE }, { raw: "aGk=", filename: `../${HOSTILE}`, mediaType: "text/html" }, { data: { [HOSTILE]: HOSTILE } }, { text: HOSTILE, mediaType: "text/html" }] } } },
      { statusUpdate: { taskId: "task-1", status: { state: "TASK_STATE_AUTH_REQUIRED", message: { parts: [{ text: HOSTILE }], metadata: { "a2a-lambda/auth": { authType: HOSTILE, service: HOSTILE } } } } } },
    ];
    const body = events.map((it, n) => `id: ${n + 1}.1\ndata: ${JSON.stringify(it)}\n\n`).join("");
    const prepare = (page) => page.route("**/message:stream", (route) => route.fulfill({ contentType: "text/event-stream", body }));
    const page = await visit(agent, { path: "#/chat", prepare });
    await page.getByLabel("Message", { exact: true }).fill(HOSTILE);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await inState(page, "auth-required").waitFor();
    const links = await page.locator("#log a").evaluateAll((all) => all.map((it) => it.getAttribute("href")));
    assert.deepEqual(links, ["#/task/task-1", "https://example.com/x"]);
    const started = page.waitForEvent("download");
    await page.getByRole("button", { name: /^Download \.\.\// }).click();
    assert.doesNotMatch((await started).suggestedFilename(), /[\\/<>]/);
    assert.equal(await page.evaluate(() => window.hurt), undefined);
    assert.equal(await page.locator("#log img, #log script").count(), 0);
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
      await skill(page, id).getByLabel("Input as JSON").waitFor();
      assert.equal(await skill(page, id).locator("input").count(), 0, id);
      await skill(page, id).getByText(/^No form:/).waitFor();
    }
    assert.equal(await skill(page, "fine").locator("input").count(), 1);
    assert.equal(await skill(page, "forty").locator("input").count(), 40);
  });
});

describe("10 000 tasks", () => {
  let agent;
  const count = Number(process.env.PAGE_TASKS ?? 10000);
  before(async () => {
    agent = await startAgent("--agent", "conformance");
    let left = count;
    const lane = async () => {
      while (left-- > 0) await a2a(agent.base, "/message:send", saying("echo many"));
    };
    await Promise.all(Array.from({ length: 16 }, lane));
  });
  after(() => agent?.stop());

  test("a list shows one page of them at a time", async () => {
    const page = await visit(agent);
    const began = Date.now();
    await page.getByRole("link", { name: "Tasks" }).click();
    await page.locator("tbody tr").first().waitFor();
    const took = Date.now() - began;
    assert.equal(await page.locator("tbody tr").count(), 50);
    const first = await page.locator("tbody tr a").first().innerText();
    for (let n = 2; n <= 4; n += 1) {
      await page.getByRole("button", { name: "Older" }).click();
      await page.getByText(`Page ${n}.`).first().waitFor();
      assert.equal(await page.locator("tbody tr").count(), 50);
      assert.notEqual(await page.locator("tbody tr a").first().innerText(), first);
    }
    for (let n = 3; n >= 1; n -= 1) {
      await page.getByRole("button", { name: "Newer" }).click();
      await page.getByText(`Page ${n}.`).first().waitFor();
    }
    assert.equal(await page.locator("tbody tr a").first().innerText(), first);
    await page.screenshot({ path: picture("tasks.png") });
    await page.locator("tbody tr a").first().click();
    await page.getByText("State: completed").waitFor({ timeout: 30000 });
    assert.ok((await page.locator("*").count()) < 2000);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByText(`Read ${Math.min(count, 1000)} tasks`).waitFor({ timeout: 30000 });
    console.log(`${count} tasks: the first page took ${took} ms`);
  });
});
