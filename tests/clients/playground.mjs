// Opens the playground in Chromium, runs examples as a user would, and prints the results as one JSON object.
// Usage: node playground.mjs URL FOLDER-FOR-SCREENSHOTS
import { choose, example, launch, open, response, run } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const options = { viewport: { width: 1500, height: 950 } };
const violations = [];
const onError = (error) => violations.push(error);

const browser = await launch();
try {
  const seen = {};
  const page = await open(browser, url, options, onError);
  seen.tabs = await page.locator(".graphiql-tab-button").allTextContents();
  await run(page);
  seen.home = JSON.parse(await response(page, '"homeTimeline"'));
  await page.screenshot({ path: `${folder}/playground-home.png` });

  await choose(page, "FollowersWithRelations");
  await run(page);
  seen.followers = JSON.parse(await response(page, '"followers"'));
  await page.screenshot({ path: `${folder}/playground-followers.png` });

  await example(page, "Follow");
  await run(page);
  seen.follow = JSON.parse(await response(page, '"outcome"'));

  await choose(page, "Live");
  await run(page);
  await response(page, "Checkpoint");
  const other = await open(browser, url, options, onError);
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
