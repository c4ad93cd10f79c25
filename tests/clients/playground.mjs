// Opens the playground in Chromium, runs examples as a person would, and prints what it saw as one JSON object.
// Usage: node playground.mjs URL FOLDER-FOR-SCREENSHOTS
import { chromium } from "playwright-core";

const [url, folder] = process.argv.slice(2);
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
const violations = [];

async function open(browser) {
  const page = await browser.newPage({ viewport: { width: 1500, height: 950 } });
  page.on("console", (message) => {
    if (message.type() === "error") violations.push(message.text());
  });
  page.on("pageerror", (error) => violations.push(String(error)));
  await page.goto(url);
  await page.waitForSelector(".graphiql-execute-button");
  return page;
}

/** Choose a tab by the name of its operation. */
async function choose(page, name) {
  await page.locator(".graphiql-tab-button", { hasText: new RegExp(`^${name}$`) }).click();
  await page.waitForTimeout(300);
}

async function run(page) {
  await page.locator(".graphiql-execute-button").click();
}

/** Wait until the response pane shows a text; give all it shows. */
async function response(page, text) {
  const pane = page.locator(".graphiql-response .CodeMirror");
  await page.waitForFunction(
    (wanted) => document.querySelector(".graphiql-response .CodeMirror")?.CodeMirror.getValue().includes(wanted),
    text,
    { timeout: 15000 },
  );
  return pane.evaluate((element) => element.CodeMirror.getValue());
}

const browser = await chromium.launch({ executablePath, args });
try {
  const seen = {};
  const page = await open(browser);
  seen.tabs = await page.locator(".graphiql-tab-button").allTextContents();
  await run(page);
  seen.home = JSON.parse(await response(page, '"homeTimeline"'));
  await page.screenshot({ path: `${folder}/playground-home.png` });

  await choose(page, "FollowersWithRelations");
  await run(page);
  seen.followers = JSON.parse(await response(page, '"followers"'));
  await page.screenshot({ path: `${folder}/playground-followers.png` });

  await choose(page, "Follow");
  await run(page);
  seen.follow = JSON.parse(await response(page, '"outcome"'));

  await choose(page, "Live");
  await run(page);
  await response(page, "Checkpoint");
  const other = await open(browser);
  await choose(other, "Publish");
  await run(other);
  seen.published = JSON.parse(await response(other, '"publishPost"'));
  seen.live = JSON.parse(await response(page, "PostAdded"));
  await page.screenshot({ path: `${folder}/playground-live.png` });
  await other.screenshot({ path: `${folder}/playground-publish.png` });
  seen.violations = violations;
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
