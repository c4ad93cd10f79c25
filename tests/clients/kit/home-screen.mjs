// Runs an application of docs/client-kit.md: node home-screen.mjs FILE
// The first request fails, the first subscription, and a request for a next page. Prints what the screen shows.
import { setTimeout as sleep } from "node:timers/promises";
import { Window } from "happy-dom";
import { version } from "react";
import WebSocket from "ws";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const main = document.body.appendChild(document.createElement("main"));
main.id = "root";

const send = globalThis.fetch;
let isOnline = false;
let isRefused = true;

globalThis.fetch = async (...request) => {
  if (isOnline) return send(...request);
  await sleep(50); // until the screen is drawn
  throw new TypeError("offline");
};

globalThis.WebSocket = class extends WebSocket {
  send(data) {
    const { id, type } = JSON.parse(data);
    if (type !== "subscribe" || !isRefused) return super.send(data);
    const payload = [{ message: "refused", extensions: { code: "FORBIDDEN" } }];
    queueMicrotask(() => this.emit("message", Buffer.from(JSON.stringify({ id, type: "error", payload })), false));
  }
};

const items = () => [...main.querySelectorAll("li")].map((each) => each.textContent);
const alert = () => main.querySelector("[role=alert]")?.textContent ?? "";

async function until(condition) {
  for (let turn = 0; turn < 2500 && !condition(); turn++) await sleep(20);
  if (!condition()) throw new Error(main.textContent);
}

/** Click a button once it is enabled: while a page is being fetched, even if it is already shown, it is not. */
async function click(text) {
  const found = () => [...main.querySelectorAll("button")].find((each) => each.textContent === text && !each.disabled);
  await until(found);
  found().click();
}

await import(process.argv[2]);
const { headers, url } = await import(new URL("socket.js", `file://${process.argv[2]}`));
const seen = { version };
await until(() => main.textContent);
seen.loading = main.textContent;
await until(alert);
seen.alert = alert();
isOnline = true;
await click("Try again");
await until(() => items().length === 20 && alert() !== seen.alert && alert());
seen.first = items();
seen.refused = alert();
isRefused = false;
await click("Try again");
await until(() => !alert());
await click("More");
await until(() => items().length === 40);
isOnline = false;
await click("More");
await until(alert);
seen.failed = items().length;
isOnline = true;
await click("Try again");
await until(() => items().length === 50 && !alert());
seen.hasMore = main.textContent.includes("More");
const query = `mutation { publishPost(input: { text: "live" }) { userErrors { code } } }`;
await send(url, {
  method: "POST",
  headers: { ...headers, "content-type": "application/json" },
  body: JSON.stringify({ query }),
});
await until(() => items().length === 51);
seen.live = items()[0];
console.log(JSON.stringify(seen));
process.exit();
