// Drives the playground in Chromium, for playground.mjs and screenshot.mjs.
import { chromium } from "playwright-core";

const TIMEOUT = 50_000;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath, args });
}

/** Open the playground in a new page and wait until it is ready. `onError` receives each error of the page. */
export async function open(browser, url, options, onError) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(TIMEOUT);
  page.on("console", (message) => {
    if (message.type() === "error") onError(message.text());
  });
  page.on("pageerror", (error) => onError(String(error)));
  await page.goto(url);
  await page.waitForSelector(".graphiql-execute-button");
  return page;
}

/** Select a tab by the name of its operation. */
export async function choose(page, name) {
  await page.locator(".graphiql-tab-button", { hasText: new RegExp(`^${name}$`) }).click();
  await edits(page, name);
}

/** Wait until the editor is about to run an operation: GraphiQL reads the name some time after the text. */
function edits(page, name) {
  return page.waitForFunction(
    (wanted) => {
      const editor = document.querySelector(".graphiql-query-editor .CodeMirror")?.CodeMirror;
      return editor?.operationName === wanted && editor.getValue().includes(` ${wanted}`);
    },
    name,
  );
}

/** Open an example from the menu, whose operation has the same name. */
export async function example(page, title) {
  await page.locator(".examples summary").click();
  await page.locator(".examples button", { has: page.locator("strong", { hasText: new RegExp(`^${title}$`) }) }).click();
  await edits(page, title);
}

/** Log in as a user from the menu, by a part of the entry. */
export async function logIn(page, entry) {
  await page.locator(".users summary").click();
  await page.locator(".users button", { hasText: entry }).click();
  await page.locator('.users button[aria-pressed="true"]', { hasText: entry }).waitFor({ state: "attached" });
}

export async function run(page) {
  await page.locator(".graphiql-execute-button").click();
}

/** Wait until the response pane contains a text. Return the whole response. */
export async function response(page, text) {
  const pane = page.locator(".graphiql-response .CodeMirror");
  await page.waitForFunction(
    (wanted) => document.querySelector(".graphiql-response .CodeMirror")?.CodeMirror.getValue().includes(wanted),
    text,
  );
  return pane.evaluate((element) => element.CodeMirror.getValue());
}
