// Opens the playground in Chromium, runs examples as a user would, and prints the results as one JSON object.
// Usage: node playground.mjs URL [FOLDER-FOR-PICTURES]
import { choose, example, launch, open, response, run } from "./browser.mjs";

const [url, folder] = process.argv.slice(2);
const options = { viewport: { width: 1500, height: 950 } };
const violations = [];
const onError = (error) => violations.push(error);
const picture = async (page, name) => folder && page.screenshot({ path: `${folder}/${name}.png` });

const browser = await launch();
try {
  const seen = {};
  const context = await browser.newContext(options); // its pages share what they load
  const page = await open(context, url, undefined, onError);
  seen.tabs = await page.locator(".graphiql-tab-button").allTextContents();
  await run(page);
  seen.home = JSON.parse(await response(page, '"homeTimeline"'));
  await picture(page, "playground-home");

  await choose(page, "FollowersWithRelations");
  await run(page);
  seen.followers = JSON.parse(await response(page, '"followers"'));
  await picture(page, "playground-followers");

  await example(page, "Follow");
  await run(page);
  seen.follow = JSON.parse(await response(page, '"outcome"'));

  await choose(page, "Live");
  await run(page);
  await response(page, "Checkpoint");
  const other = await open(context, url, undefined, onError);
  await choose(other, "Publish");
  await run(other);
  seen.published = JSON.parse(await response(other, '"publishPost"'));
  seen.live = JSON.parse(await response(page, "PostAdded"));
  await picture(page, "playground-live");
  await picture(other, "playground-publish");
  seen.violations = violations;
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
