// Drives the playground in Chromium, for playground.mjs and screenshot.mjs.
import { chromium } from "playwright-core";

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
  await page.waitForTimeout(300);
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
    { timeout: 15000 },
  );
  return pane.evaluate((element) => element.CodeMirror.getValue());
}
