// This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
// If a copy of the MPL was not distributed with this file, You can obtain one at
// https://mozilla.org/MPL/2.0/.

// The page of the gateway in a browser, as people use it: node page.mjs [--pictures DIRECTORY].

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { check, eventually, openBrowser, Site } from "./set_up.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const at = process.argv.indexOf("--pictures");
const pictures = at > 0 ? process.argv[at + 1] : null;
const QUESTION = JSON.stringify({ method: "elicitation/create", params: { message: "How large shall the poster be?", requestedSchema: {
  type: "object", required: ["cm"], properties: { cm: { type: "number", title: "Width in cm", minimum: 10 }, paper: { type: "string", title: "Paper", enum: ["matt", "glossy"] }, rush: { type: "boolean", title: "In a hurry" } } } } });
const HOSTILE = "<img src=x onerror=\"hacked=1\"><script>hacked=2</script>{{1}}javascript:hacked=3";

const site = new Site();
const { browser, open, complaints } = await openBrowser();
let count = 0;
const passed = (what) => { count++; console.log(`ok  ${what}`); };
const go = async (page, hash, heading) => {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
};
const picture = async (page, name) => { if (pictures) await page.screenshot({ path: join(pictures, `web-${name}.png`) }); };
const isLive = (page) => page.locator(".light.live").waitFor();

async function logIn(page) {
  await page.goto(`${site.url}/`);
  await page.getByLabel("Token").fill("tmq_wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(site.token);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").waitFor();
  check("the token is nowhere in the browser", await page.evaluate((token) => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]).includes(token), site.token), false);
  await isLive(page);
  passed("log in, with a wrong token first");
}

async function tryLink() {
  const link = site.link();
  const first = await open();
  await first.goto(link);
  await first.getByRole("navigation").waitFor();
  check("the ticket is not in the address", first.url().includes("ticket"), false);
  const second = await open();
  await second.goto(link);
  await second.getByText("That link was used").waitFor();
  await first.context().close();
  await second.context().close();
  passed("a link logs in, once");
}

// The ones that are counted on the overview come without a reload.
async function tryLive(page) {
  await go(page, "#/tasks", "Tasks");
  const id = site.submit("sound", "la");
  await page.locator(`tr[data-id="${id}"]`).waitFor();
  await go(page, "#/overview", "Overview");
  await page.getByRole("row", { name: /^sound/ }).waitFor();
  const before = Number(await page.locator(".tile .value").first().textContent());
  site.submit("sound", "lo");
  await eventually("the tile counts it", async () => Number(await page.locator(".tile .value").first().textContent()) === before + 1);
  passed("new tasks appear by themselves");
}

async function tryFilter(page) {
  for (let i = 0; i < 5; i++) site.submit("film", `frame ${i}`, "--label", `film=${i < 3 ? "dawn" : "dusk"}`);
  await go(page, "#/tasks", "Tasks");
  await page.keyboard.press("/");
  await page.keyboard.type("queue:film label:film=dawn");
  await page.keyboard.press("Enter");
  await page.getByText("3 match").waitFor();
  await page.reload();
  await page.getByText("3 match").waitFor();
  check("the filter is in the address", decodeURIComponent(page.url()).endsWith("queue=film&label=film:dawn"), true);
  check("and in the field", await page.locator("#filter").inputValue(), "queue:film label:film=dawn");
  await page.locator("#filter").fill("colour:red");
  await page.keyboard.press("Enter");
  await page.getByText("“colour:red” is none of").waitFor();
  await page.locator("#filter").fill("queue:film label:film=dawn");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Cancel all that match…" }).click();
  await page.getByRole("heading", { name: "Cancel 3 tasks?" }).waitFor();
  await page.keyboard.press("Escape");
  check("nothing happened", site.ctl("count", "--queue", "film", "--status", "cancelled"), "0");
  await page.getByRole("button", { name: "Cancel all that match…" }).click();
  await page.getByRole("button", { name: "Cancel 3" }).click();
  await eventually("those three, and no other", () => site.ctl("count", "--queue", "film", "--status", "cancelled") === "3");
  check("the others", site.ctl("count", "--queue", "film", "--status", "queued"), "2");
  passed("filters are addresses; all that match are cancelled, after their count");
}

// Without a mouse: to the list, down, mark, open, back.
async function tryKeyboard(page) {
  await go(page, "#/overview", "Overview");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.locator("tr[data-id]").nth(2).waitFor();
  for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
  const id = await page.evaluate(() => document.activeElement.dataset.id);
  check("the second row", id, await page.locator("tr[data-id]").nth(1).getAttribute("data-id"));
  await page.keyboard.press("x");
  await page.getByRole("button", { name: /^(Cancel|Retry|Purge) 1$/ }).first().waitFor();
  await page.keyboard.press("x");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: id }).waitFor();
  await page.getByRole("tab", { name: "Overview" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("tab", { name: "Payload", selected: true }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  passed("by keyboard alone");
}

async function tryCancel(page) {
  const id = site.submit("sound", "to be cancelled");
  await go(page, `#/task/${id}`, id);
  await page.getByText("no worker serves queue 'sound'").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByLabel("Why, for its history").fill(HOSTILE);
  await page.getByRole("button", { name: "Cancel it" }).click();
  await page.locator(".head .badge.cancelled").waitFor();
  await page.getByText(HOSTILE).first().waitFor();
  passed("cancel, with a reason that is shown as it is");
}

async function tryRetry(page) {
  const worker = site.work("flaky", "echo no such frame >&2; exit 3");
  const id = site.submit("flaky", '{"film":"dawn","frames":[1,2,3]}', "--content-type", "application/json", "--max-attempts", "2", "--backoff", "300ms");
  await go(page, `#/task/${id}`, id);
  await page.locator(".head .badge.failed").waitFor();
  await page.getByText("no such frame").first().waitFor();
  await page.locator(".bar.attempt_failed").first().waitFor({ state: "attached" });
  await picture(page, "task");
  await page.getByRole("tab", { name: "Attempts" }).click();
  await eventually("both attempts", async () => await page.locator("#panel tbody tr", { hasText: "3: no such frame" }).count() === 2);
  await page.getByRole("button", { name: "Log of attempt 1" }).click();
  await page.getByText("Of attempt 1.").waitFor();
  await page.locator("#panel pre", { hasText: "no such frame" }).waitFor();
  await page.getByRole("tab", { name: "Logs", selected: true }).waitFor();
  await page.getByRole("tab", { name: "Payload" }).click();
  await page.locator("#panel .tree").getByText('"dawn"').waitFor();
  await site.kill(worker);
  await page.getByRole("button", { name: "Retry" }).click();
  await page.locator(".head .badge.queued").waitFor();
  site.work("flaky", "tr a-z A-Z");
  await page.locator(".head .badge.completed").waitFor();
  await page.getByRole("tab", { name: "Result" }).click();
  await page.locator("#panel").getByText("DAWN").waitFor();
  passed("a task that failed is retried, and its result is shown");
  return id;
}

// What a worker attaches appears while somebody looks, and is fetched through the page's session.
async function tryArtifacts(page) {
  const name = "a plot é<img src=x onerror=hacked=4>.csv";
  const none = site.submit("plots", "x");
  await go(page, `#/task/${none}?tab=artifacts`, none);
  await page.locator("#panel", { hasText: "It has no artifacts." }).waitFor();
  site.work("plots", `printf 'a,b\\n1,2\\n' >"$TASKMQ_ARTIFACTS/${name}"; head -c 300000 /dev/zero >"$TASKMQ_ARTIFACTS/zeros.bin"`);
  const row = page.locator("#panel tbody tr", { hasText: name });
  await row.waitFor();
  check("what it is", (await row.locator("td").allTextContents()).slice(1, 4), ["text/csv", "8 B", "1"]);
  check("the large one", (await page.locator("#panel tbody tr", { hasText: "zeros.bin" }).locator("td").nth(2).textContent()), "293 KiB");
  const link = row.getByRole("link", { name: `Download ${name}` });
  await page.getByRole("tab", { name: "Artifacts" }).focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press("Tab"); // the panel, the table
  check("it is reached by the keyboard", await link.evaluate((node) => node === document.activeElement), true);
  const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  check("its bytes", readFileSync(await download.path(), "utf8"), "a,b\n1,2\n");
  const [large] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download zeros.bin" }).click()]);
  check("all of them", [large.suggestedFilename(), readFileSync(await large.path()).length], ["zeros.bin", 300000]);
  check("it is the same page", await page.getByRole("heading", { level: 1 }).textContent(), none);
  await page.route("**/artifacts", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ detail: "the broker is away" }) }));
  await page.getByRole("tab", { name: "Overview" }).click();
  await page.getByRole("tab", { name: "Artifacts" }).click();
  await page.getByRole("alert").filter({ hasText: "the broker is away" }).waitFor();
  await row.waitFor(); // what was there stays
  await page.unroute("**/artifacts");
  await page.getByRole("alert").waitFor({ state: "detached" });
  passed("artifacts: none, as they come, fetched, and an error");
  return none;
}

async function tryAnswer(page) {
  site.work("poster", `echo 'ask size ${QUESTION}' >&$TASKMQ_FD; read -ru "$TASKMQ_FD" a; echo "$a"`);
  const id = site.submit("poster", "make it");
  await go(page, "#/questions", "Questions");
  await page.getByText("How large shall the poster be?").waitFor();
  await page.getByLabel("Width in cm").fill("50");
  await page.getByLabel("Paper").selectOption("glossy");
  site.submit("sound", "while somebody types");
  check("what was typed stays", await page.getByLabel("Width in cm").inputValue(), "50");
  await page.getByRole("button", { name: "Answer" }).click();
  const result = await eventually("the worker has it", () => site.ctl("result", id));
  check("the answer", JSON.parse(result.replace("answer size ", "")), { action: "accept", content: { cm: 50, paper: "glossy", rush: false } });
  await page.getByText("Nobody waits for an answer.").waitFor();
  passed("a question is answered by its form");
}

async function tryPause(page) {
  site.submit("sound", "waits");
  await go(page, "#/queue/sound", "sound");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByLabel("Why, for those who wonder").fill(HOSTILE);
  await page.getByRole("button", { name: "Pause it" }).click();
  await page.getByRole("status").filter({ hasText: HOSTILE }).waitFor();
  check("nothing of it is given away", JSON.parse(site.ctl("queue", "show", "sound", "-o", "json")).closed, ["paused"]);
  await go(page, "#/overview", "Overview");
  await page.getByRole("row", { name: /^sound ?paused/ }).waitFor();
  site.ctl("queue", "resume", "sound");
  await go(page, "#/queue/sound", "sound");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  passed("a queue is paused, with a reason, and goes on");
}

// A worker writes while somebody looks.
async function tryLogs(page) {
  site.work("talk", "echo begun; read -r _ <&$TASKMQ_FD; echo over");
  const id = site.submit("talk", "x");
  await go(page, `#/task/${id}?tab=logs`, id);
  await page.locator("#panel pre", { hasText: "begun" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel it" }).click();
  await page.locator(".head .badge.cancelled").waitFor();
  passed("what a worker writes is shown while it works");
}

async function trySystem(page) {
  await go(page, "#/system", "System");
  await page.locator("dt", { hasText: "Streams" }).waitFor();
  check("a stream is this page's", Number(await page.locator("div", { has: page.locator("dt", { hasText: /^Streams$/ }) }).last().locator("dd").textContent()) >= 1, true);
  passed("the system view tells of the gateway");
}

async function tryTools(page) {
  site.work("shout", 'cat >&2; echo "LOUD"');
  await go(page, "#/tools", "Tools");
  await page.getByText("Try it").click();
  await page.getByLabel("What to say").fill("hé");
  await page.getByRole("button", { name: "Call shout" }).click();
  await eventually("it answers, or goes on as a task", async () => await page.locator(".try pre, .try .why").count() === 1);
  const link = page.locator(".try .why a");
  if (await link.count() === 1) {
    await link.click();
    await page.locator(".head .badge.completed").waitFor();
    await page.getByRole("tab", { name: "Result" }).click();
    await page.locator("#panel pre", { hasText: "LOUD" }).waitFor();
  } else {
    await page.locator(".try pre", { hasText: "LOUD" }).waitFor();
  }
  passed("a tool is tried by its form");
}

// Questions that are no forms, and that would be elements if JSON could become one.
async function tryHostileQuestions(page) {
  const made = { tag: "script", props: { id: "made", src: "/ui/app.js" }, kids: [] };
  const form = (properties, more) => ({ type: "object", properties, ...more });
  const asks = [{ message: made }, { message: [made, { tag: "a", props: { id: "made", href: "//evil.example" }, kids: ["click"] }] },
    { message: "1", requestedSchema: form({ a: null }) }, { message: "2", requestedSchema: form({ a: { type: "string", title: made, description: made } }, { required: 5 }) },
    { message: "3", requestedSchema: form({ a: { type: "array", default: 5, items: { enum: [made, 1] } } }) }, { message: "4", requestedSchema: form([null]) },
    { message: "5", requestedSchema: form({ a: { oneOf: [null] }, b: { oneOf: 5, anyOf: [{ const: made, title: made }] } }) }, { message: "6", requestedSchema: form({ a: { type: "string", default: made } }) },
    { message: "7", requestedSchema: 5 }, null, [null], 5, "a text"];
  const worker = site.work("hostile", `cat >&$TASKMQ_FD; read -ru "$TASKMQ_FD" a; echo "$a"`, "-j", String(asks.length));
  const ids = asks.map((params, i) => site.submit("hostile", `ask k${i} ${JSON.stringify({ method: "elicitation/create", params })}\n`));
  await go(page, "#/questions", "Questions");
  await eventually("all are shown", async () => await page.locator("article.card").count() === asks.length);
  check("nothing was made of them", await page.locator("#made, [src*='app.js']:not(head *)").count(), 0);
  await page.locator("article.card", { hasText: "a text" }).getByLabel("Answer").fill('{"action":"accept"}');
  await page.locator("article.card", { hasText: "a text" }).getByRole("button", { name: "Answer" }).click();
  await eventually("it is answered", () => site.ctl("result", ids.at(-1)).includes("accept"));
  await go(page, "#/overview", "Overview");
  for (const id of ids.slice(0, -1)) site.ctl("cancel", id);
  await site.kill(worker);
  passed(`${asks.length} hostile questions`);
}

async function tryBrokerKill(page) {
  await go(page, "#/tasks", "Tasks");
  await page.evaluate(() => { globalThis.same = true; });
  await site.kill(site.broker);
  await page.getByText(/The broker is away/).first().waitFor();
  await site.startBroker();
  await isLive(page);
  const id = site.submit("sound", "after the kill");
  await page.locator(`tr[data-id="${id}"]`).waitFor();
  await site.kill(site.gateway);
  await page.locator(".light.away").waitFor();
  await site.startGateway();
  await isLive(page);
  const next = site.submit("sound", "after the gateway's");
  await page.locator(`tr[data-id="${next}"]`).waitFor();
  check("it was never loaded anew", await page.evaluate(() => globalThis.same), true);
  passed("it goes on through a kill of the broker, and of the gateway");
}

// A tab that nobody looks at asks for nothing and paints nothing; then it knows what came.
async function trySleep(page) {
  await go(page, "#/tasks", "Tasks");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  const before = await page.evaluate(() => ({ paints: taskmqPage.painted.times, state: taskmqPage.stream.state }));
  check("the stream is closed", before.state, "closed");
  const id = site.submit("sound", "while it slept");
  check("nothing is painted", await page.evaluate(() => taskmqPage.painted.times), before.paints);
  await page.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.locator(`tr[data-id="${id}"]`).waitFor();
  passed("a tab that slept goes on from its cursor");
}

async function tryBurst(page) {
  await go(page, "#/events", "Events");
  const before = await page.evaluate(() => ({ paints: taskmqPage.painted.times, at: performance.now() }));
  const lines = Array.from({ length: 1000 }, (_, i) => `task ${i}`).join("\n");
  const { execFileSync } = await import("node:child_process");
  execFileSync(join(process.env.TASKMQ_BIN, "taskctl"), ["submit", "burst", "--lines", "-"], { cwd: site.home, input: lines, stdio: ["pipe", "ignore", "inherit"] });
  await eventually("all are seen", () => page.evaluate(() => taskmqPage.stream.recent.filter((event) => event.queue === "burst").length >= 900));
  const after = await page.evaluate(() => ({ paints: taskmqPage.painted.times, at: performance.now() }));
  const most = (after.at - before.at) / 100 + 2;
  if (after.paints - before.paints > most) throw new Error(`${after.paints - before.paints} paints, at most ${most}`);
  passed(`1,000 events in a burst, ${after.paints - before.paints} paints`);
}

// Something to look at.
async function tryPictures(page) {
  if (!pictures) return;
  for (let i = 0; i < 24; i++) site.submit("render", `frame ${i}`, "--label", "film=dawn");
  site.work("render", 'for i in 1 2 3 4 5; do echo "progress $i/5 frame" >&$TASKMQ_FD; sleep 0.3; done; tr a-z A-Z', "-j", "3");
  site.submit("poster", "once more");
  await go(page, "#/tasks?queue=render", "Tasks");
  await eventually("some are done", async () => await page.locator("td .badge.completed").count() >= 9);
  await go(page, "#/overview", "Overview");
  await page.locator(".columns .list").first().waitFor();
  await picture(page, "overview");
}

async function tryViews(page, ids, name, narrow) {
  const views = [["#/overview", "Overview"], ["#/tasks", "Tasks"], [`#/task/${ids.done}`, ids.done], [`#/task/${ids.done}?tab=payload`, ids.done], [`#/task/${ids.plots}?tab=artifacts`, ids.plots], [`#/task/${ids.done}?tab=artifacts`, ids.done], [`#/task/${ids.done}?tab=events`, ids.done], [`#/task/${ids.done}?tab=attempts`, ids.done], [`#/task/${ids.done}?tab=logs`, ids.done], [`#/task/${ids.done}?tab=json`, ids.done],
    ["#/queue/flaky", "flaky"], ["#/workers", "Workers"], ["#/questions", "Questions"], ["#/events", "Events"], ["#/system", "System"], ["#/tools", "Tools"], ["#/task/01a2007e-d6c2-7f5e-8f1f-000000000000", "There is no such task."]];
  const found = [];
  for (const [hash, heading] of views) {
    await go(page, hash, heading);
    await eventually(`${hash} has its data`, async () => await page.locator("main .faint", { hasText: /^…$/ }).count() === 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) found.push(`${hash} is ${wide} pixels too wide`);
    // By the developer's door: the page's policy would refuse a script that is not its own.
    const client = await page.context().newCDPSession(page);
    await client.send("Runtime.evaluate", { expression: AXE });
    const { result } = await client.send("Runtime.evaluate", { awaitPromise: true, returnByValue: true, expression: `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((all) => all.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + (node.any[0]?.message ?? "")).join(" | ")))` });
    found.push(...result.value.map((text) => `${hash}: ${text}`));
    if (name === "dark" && hash === "#/overview") await picture(page, name);
    if (narrow && hash === "#/tasks") await picture(page, "narrow");
  }
  if (found.length > 0) throw new Error(`${name}: ${found.join("\n")}`);
  passed(`${views.length} views, ${name}: no violation of WCAG 2.2 AA, nothing too wide`);
}

async function tryRoles() {
  const { execFileSync } = await import("node:child_process");
  const token = execFileSync(join(process.env.TASKMQ_BIN, "taskmq-gateway"), ["token", "add", "eve", "--roles", "observer"], { cwd: site.home, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  process.kill(site.gateway.pid, "SIGHUP");
  await eventually("the token is known", async () => (await fetch(`${site.url}/v1/session`, { headers: { Authorization: `Bearer ${token}` } })).ok);
  const page = await open();
  await page.goto(`${site.url}/ui`);
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await go(page, "#/tasks?status=queued", "Tasks");
  await page.locator("tr[data-id]").first().waitFor();
  check("who only looks has no buttons", await page.getByRole("button", { name: /Cancel|Retry|Purge/ }).count(), 0);
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  await page.reload();
  await page.getByLabel("Token").waitFor();
  await page.context().close();
  passed("an observer only looks; log out");
}

try {
  await site.startBroker();
  site.offer({ name: "shout", description: "Says it loudly", execution: { taskSupport: "optional" }, taskmq: { queue: "shout", inline: "5s" },
    inputSchema: { type: "object", required: ["text"], properties: { text: { type: "string", title: "What to say", "x-mcp-header": "Text" }, often: { type: "integer", default: 1 } } } });
  await site.startGateway();
  const page = await open();
  await logIn(page);
  await tryLink();
  await tryLive(page);
  await tryFilter(page);
  await tryKeyboard(page);
  await tryCancel(page);
  const ids = { done: await tryRetry(page) };
  ids.plots = await tryArtifacts(page);
  await tryAnswer(page);
  await tryPause(page);
  await tryLogs(page);
  await trySystem(page);
  await tryTools(page);
  await tryHostileQuestions(page);
  await tryRoles();
  await tryPictures(page);
  await tryViews(page, ids, "light", false);
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await tryViews(page, ids, "dark", false);
  await page.setViewportSize({ width: 320, height: 640 });
  await tryViews(page, ids, "320 px", true);
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await tryBrokerKill(page);
  await trySleep(page);
  await tryBurst(page);
  check("the policy refused nothing", await page.evaluate(() => globalThis.violations), []);
  check("nothing hostile ran", await page.evaluate(() => typeof globalThis.hacked), "undefined");
  check("complaints", complaints.filter((text) => !/ERR_CONNECTION|ERR_INCOMPLETE|net::/.test(text)), []);
  passed("no error, no report of the policy");
  console.log(`${count} passed, 0 failed, ${(await browser.version())}`);
} catch (error) {
  console.error(`FAILED: ${error.stack}`);
  console.error(complaints.join("\n"));
  for (const page of browser.contexts().flatMap((context) => context.pages())) console.error(page.url(), (await page.locator("main").innerText().catch(() => "")).slice(0, 1500));
  process.exitCode = 1;
} finally {
  await browser.close();
  site.end();
}
