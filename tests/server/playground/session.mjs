// Runs examples in Chromium, explained and as nobody, after a log-in with a cookie. Prints one JSON object.
// Usage: node session.mjs URL
import { choose, launch, logIn, open, response, run } from "../../clients/browser.mjs";

const [url] = process.argv.slice(2);
const browser = await launch();
try {
  const seen = {};
  const page = await open(browser, url, {}, () => {});
  seen.token = await page.evaluate(async () => {
    const query = `mutation { signUp(input: { login: "carla", password: "a long password" }) { credentials { token } } }`;
    const headers = { "content-type": "application/json", "fanline-session": "cookie" };
    const answer = await fetch("graphql", { method: "POST", headers, body: JSON.stringify({ query }) });
    return (await answer.json()).data.signUp.credentials.token;
  });
  await page.locator(".explain").click();
  await run(page);
  seen.home = JSON.parse(await response(page, '"explain"'));
  await choose(page, "Live");
  await run(page);
  seen.live = JSON.parse(await response(page, "Checkpoint"));
  await run(page); // stops the subscription
  await logIn(page, "Nobody");
  await run(page);
  seen.liveAsNobody = JSON.parse(await response(page, "UNAUTHENTICATED"));
  await choose(page, "Home");
  await run(page);
  seen.homeAsNobody = JSON.parse(await response(page, '"viewer": null'));
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
