// Uses the menus of the playground in Chromium and lets its files be unavailable. Prints what it saw as one JSON object.
// Usage: node playground-menus.mjs URL [FOLDER-FOR-PICTURES]
import { choose, example, launch, logIn, open, response, run } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const options = { viewport: { width: 1400, height: 900 } };
const violations = [];
const onError = (error) => violations.push(error);
const picture = async (page, name) => folder && page.screenshot({ path: `${folder}/${name}.png` });

/** Run the operation of the selected tab and return the viewer's login. */
async function viewer(page) {
  await run(page);
  return JSON.parse(await response(page, '"viewer"')).data.viewer?.user.login ?? null;
}

/** Wait until the response has this many results, and return it. */
async function received(page, count) {
  return JSON.parse(await response(page, `"received": ${count}`));
}

const browser = await launch();
try {
  const seen = { viewers: [] };
  const context = await browser.newContext(options); // its pages share what they load
  const page = await open(context, url, undefined, onError);
  await page.locator(".examples summary").click();
  seen.examples = await page.locator(".examples button").count();
  await picture(page, "playground-examples");
  await page.keyboard.press("Escape");
  for (const entry of ["@wei", "Nobody"]) {
    await logIn(page, entry);
    await example(page, "Viewer");
    seen.viewers.push(await viewer(page));
  }

  // Posts of wei, one after the other: the first stays when the second comes, and both stay when the stream ends.
  await logIn(page, "@wei");
  await choose(page, "Live");
  await run(page);
  await received(page, 1);
  const other = await open(context, url, undefined, onError);
  await logIn(other, "@wei");
  await choose(other, "Publish");
  for (const count of [2, 3]) {
    await run(other);
    await received(page, count);
  }
  await run(page); // stops the subscription
  await page.waitForTimeout(100); // for what must not happen
  seen.stopped = await received(page, 3);

  const phone = await open(browser, url, { viewport: { width: 390, height: 844 } }, onError);
  await picture(phone, "playground-phone");

  const offline = await browser.newPage({ ...options, colorScheme: "dark" });
  await offline.route("**/graphiql.min.js", (route) => route.abort());
  await offline.goto(url);
  seen.failure = await offline.getByRole("alert").textContent();
  await picture(offline, "playground-failure");
  await offline.unroute("**/graphiql.min.js");
  await offline.getByRole("button", { name: "Try again" }).click();
  await offline.waitForSelector(".graphiql-execute-button");
  seen.retried = true;
  seen.violations = violations;
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
