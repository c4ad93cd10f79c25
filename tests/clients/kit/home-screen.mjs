// Uses the home screen of docs/client-kit.md: node home-screen.mjs URL TOKEN CACHE FILE
// The first request fails, the first subscription, and a request for a next page. Prints what the screen shows.
import { setTimeout as sleep } from "node:timers/promises";
import { version } from "react";
import { Connection } from "./driver.mjs";
import { rendered } from "./screen.mjs";

const [url, token, cache, file] = process.argv.slice(2);
const connection = new Connection({ url, token });
const { fetch: send, socket } = connection;
let isOnline = false;
let isRefused = true;
connection.fetch = (...request) => (isOnline ? send(...request) : Promise.reject(new TypeError("offline")));
connection.socket = {
  ...socket,
  subscribe(request, sink) {
    if (!isRefused) return socket.subscribe(request, sink);
    queueMicrotask(() => sink.error([{ message: "refused", extensions: { code: "FORBIDDEN" } }]));
    return () => undefined;
  },
};

const { open } = await import(`./${cache}.mjs`);
const { Provider, properties } = await open(connection, {}, console.error);
const { Home } = await import(file);
const main = rendered(Home, Provider, properties);

const items = () => [...main.querySelectorAll("li")].map((each) => each.textContent);
const alert = () => main.querySelector("[role=alert]")?.textContent ?? "";
const click = (text) => [...main.querySelectorAll("button")].find((each) => each.textContent === text).click();

async function until(condition) {
  for (let turn = 0; turn < 500 && !condition(); turn++) await sleep(20);
  if (!condition()) throw new Error(main.textContent);
}

const seen = { version };
seen.loading = main.textContent;
await until(alert);
seen.alert = alert();
isOnline = true;
click("Try again");
await until(() => items().length === 20 && alert() !== seen.alert && alert());
seen.first = items();
seen.refused = alert();
isRefused = false;
click("Try again");
await until(() => !alert());
click("More");
await until(() => items().length === 40);
isOnline = false;
click("More");
await until(alert);
seen.failed = items().length;
isOnline = true;
click("More");
await until(() => items().length === 50 && !alert());
seen.hasMore = main.textContent.includes("More");
const query = `mutation { publishPost(input: { text: "live" }) { userErrors { code } } }`;
await send(url, {
  method: "POST",
  headers: { ...connection.headers, "content-type": "application/json" },
  body: JSON.stringify({ query }),
});
await until(() => items().length === 51);
seen.live = items()[0];
console.log(JSON.stringify(seen));
process.exit();
