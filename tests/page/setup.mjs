// Starts the browser and the agent for the cases of the page.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { PAGE_TOOLS: tools, PAGE_PROGRAM: program, PAGE_PICTURES: pictures } = process.env;
if (!tools || !program || !pictures) throw new Error("start these cases with tests/page/run.sh");
mkdirSync(pictures, { recursive: true });

const installed = createRequire(join(tools, "package.json"));

/** The accessibility checker, as a script. */
export const AXE = readFileSync(installed.resolve("axe-core"), "utf8");

/** A headless Chromium. */
export async function openBrowser() {
  const load = async (name) => import(pathToFileURL(installed.resolve(name)).href);
  const { default: chromium } = await load("@sparticuz/chromium");
  const { chromium: driver } = installed("playwright-core");
  // In a single process, the first closed page would close the browser.
  const args = chromium.args.filter((it) => !/^--(single-process|no-zygote|headless)/.test(it));
  return driver.launch({ executablePath: await chromium.executablePath(), args, headless: true });
}

/** The program on a free port with a data folder of its own. */
export async function startAgent(...options) {
  return startWith({}, ...options);
}

/**
 * The program under `dev`, in a workspace of one file. A script takes the place of cargo: the
 * text of the file says what becomes of the build.
 */
export async function startDev() {
  const work = mkdtempSync(join(tmpdir(), "a2a-page-dev-"));
  const edit = (text) => writeFileSync(join(work, "agent.rs"), text);
  edit("reference");
  mkdirSync(join(work, "target"));
  const cargo = join(work, ".cargo-of-test");
  const metadata = { packages: [{ source: null, manifest_path: join(work, "Cargo.toml") }], workspace_root: work, target_directory: join(work, "target") };
  const message = { message: { rendered: "error: mismatched <b>types</b>\n" } };
  writeFileSync(cargo, `#!/bin/sh
cd ${work}
text=$(cat agent.rs)
rm -f target/a2a-local
case "$1 $text" in
  metadata*) echo '${JSON.stringify(metadata)}'; exit ;;
  *bad) printf '%s\\n' '${JSON.stringify(message)}'; exit 101 ;;
  *panics) printf '#!/bin/sh\necho panicked at agent.rs >&2\nexit 1\n' >target/a2a-local ;;
  *) printf '#!/bin/sh\nexec ${program} "$@" --agent %s\n' "$text" >target/a2a-local ;;
esac
chmod +x target/a2a-local
echo '{"executable": "${work}/target/a2a-local"}'
`, { mode: 0o755 });
  const agent = await startWith({ CARGO: cargo }, "dev");
  return { ...agent, edit, stop: () => agent.stop().then(() => rmSync(work, { recursive: true, force: true })) };
}

/** The same with these settings; a command comes first. */
export async function startWith(settings, ...options) {
  const folder = mkdtempSync(join(tmpdir(), "a2a-page-"));
  const command = options[0]?.startsWith("--") ? [] : options.splice(0, 1);
  const child = spawn(program, [...command, "--port", "0", "--data", join(folder, "data"), ...options], { stdio: ["ignore", "pipe", "pipe"], cwd: folder, env: { ...process.env, ...settings } });
  const said = { err: "" };
  child.stderr.on("data", (text) => { said.err += text; });
  const found = {};
  const lines = createInterface({ input: child.stdout });
  await new Promise((ready, failed) => {
    child.once("exit", (code) => failed(new Error(`the agent ended with ${code}: ${said.err}`)));
    lines.on("line", (line) => {
      found.page ??= /^ +page +(\S+)$/.exec(line)?.[1];
      const base = /^listening on (\S+)$/.exec(line)?.[1];
      if (base) {
        found.base = base;
        ready();
      }
    });
  });
  const stop = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGINT");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...found, child, log: () => said.err, stop };
}

/** A call of A2A 1.0. */
export async function a2a(base, path, body) {
  const response = await fetch(base + path, {
    method: body ? "POST" : "GET",
    headers: { "A2A-Version": "1.0", "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

export const saying = (text) => ({ message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] } });

export const picture = (name) => join(pictures, name);
