// Takes the pictures of the README and of the guide, from the reference agent and that of conformance.

import { a2a, openBrowser, picture, saying, startAgent } from "./setup.mjs";

const browser = await openBrowser();
const opened = async (agent, path, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1.5, ...options });
  const page = await context.newPage();
  await page.goto(agent.page);
  await page.waitForSelector("h1");
  await page.evaluate((to) => { location.hash = to; }, path);
  await page.waitForTimeout(1500);
  return page;
};
const send = async (agent, text, more = {}) => (await a2a(agent.base, "/message:send", { message: { ...saying(text).message, ...more } })).task;

const reference = await startAgent();
for (const text of ["echo hello", "Generate Q4 financial report", "/format-report as PDF", "What's 2+2?", "Format my report"]) await send(reference, text);
const logo = await send(reference, "Draw a blue square logo", { metadata: { "a2a-lambda/skillId": "logo" } });
const { contextId } = logo;
const flight = await send(reference, "Book a flight", { contextId });
await send(reference, "Rome", { contextId, taskId: flight.id });
const chat = await opened(reference, `#/chat/${contextId}`);
await chat.getByLabel("Message", { exact: true }).fill("Next Monday, please");
await chat.screenshot({ path: picture("page-chat.png") });
const skills = await opened(reference, "#/skills/add");
await skills.getByLabel("a", { exact: true }).fill("1.5");
await skills.getByLabel("b", { exact: true }).fill("23");
await skills.waitForTimeout(300);
await skills.screenshot({ path: picture("page-skills.png") });
const tasks = await opened(reference, "#/tasks", { colorScheme: "dark" });
await tasks.locator("tbody tr").nth(2).hover();
await tasks.screenshot({ path: picture("page-tasks.png") });
const phone = { viewport: { width: 390, height: 700 } };
const small = await opened(reference, "#/tasks", phone);
await small.screenshot({ path: picture("page-phone-tasks.png") });
await reference.stop();

const agent = await startAgent("--agent", "conformance");
const long = await a2a(agent.base, "/message:send", { ...saying("steps 5 600"), configuration: { returnImmediately: true } });
const task = await opened(agent, "#/process", { colorScheme: "dark" });
await task.getByRole("button", { name: "Kill the process now" }).click();
await task.getByRole("button", { name: "Yes, kill it" }).click();
await task.locator("#restarted").waitFor({ timeout: 60000 });
await task.evaluate((to) => { location.hash = to; }, `#/task/${long.task.id}`);
await task.locator(".task-head .completed").waitFor({ timeout: 60000 });
// The bar that says that the program is back lies over the head for six seconds.
await task.evaluate(() => document.querySelector("#bar .close")?.click());
await task.getByRole("row", { name: /^step#2, step, \d/ }).first().click();
await task.waitForTimeout(1500);
await task.screenshot({ path: picture("page-task.png") });
const { contextId: trip } = await send(agent, "note a window seat");
const message = { ...saying("steps 4 6000").message, contextId: trip };
const works = await a2a(agent.base, "/message:send", { message, configuration: { returnImmediately: true } });
const [state, run] = [await opened(agent, `#/task/${works.task.id}`), await opened(agent, `#/chat/${trip}`, { ...phone, colorScheme: "dark" })];
await run.locator(".run .news").last().waitFor();
await run.screenshot({ path: picture("page-phone-run.png") });
await state.getByRole("tab", { name: "State" }).click();
await state.getByText("done", { exact: true }).waitFor();
await state.screenshot({ path: picture("page-state.png") });
await agent.stop();
await browser.close();
