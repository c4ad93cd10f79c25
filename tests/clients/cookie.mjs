// Runs the request of docs/authentication.md in a page: node cookie.mjs URL PROGRAM
import { launch } from "./browser.mjs";

const [url, program] = process.argv.slice(2);
const LOG_IN = 'mutation { logIn(input: {login: "alice", password: "correct horse"}) { credentials { token } } }';
const LOG_OUT = "mutation { logOut(input: {}) { userErrors { code } } }";

const browser = await launch();
try {
  const page = await browser.newPage();
  await page.goto(`${url.replace("127.0.0.1", "localhost")}/health/live`);
  const send = async (query) => {
    const call = `((query, variables) => { return ${program} })(${JSON.stringify(query)}, {})`;
    return page.evaluate(`${call}.then((response) => response.json())`);
  };
  const { token } = (await send(LOG_IN)).data.logIn.credentials;
  const { viewer } = (await send("{ viewer { user { login } } }")).data;
  const readable = await page.evaluate("document.cookie");
  await send(LOG_OUT);
  const afterwards = (await send("{ viewer { user { login } } }")).data.viewer;
  console.log(JSON.stringify({ token, viewer, readable, afterwards }));
} finally {
  await browser.close();
}
