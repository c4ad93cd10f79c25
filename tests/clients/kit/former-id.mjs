// Shows a timeline that is slow to load, and then another one: node former-id.mjs URL TOKEN ARTIFACTS SLOW ID
// The first request for ID fails. Prints what the hooks show before and after the slow response arrives, by library.
import { register } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection } from "./driver.mjs";

register("./libraries.mjs", import.meta.url);

const [url, token, artifacts, slow, id] = process.argv.slice(2);
const connection = new Connection({ url, token });
const send = connection.fetch;
let failures;
let answer; // delivers the slow response
connection.fetch = async (address, options) => {
  const { variables } = JSON.parse(options.body);
  if (variables?.id === id && failures-- > 0) throw new TypeError("offline");
  const response = await send(address, options);
  if (variables?.id === slow) await new Promise((resolve) => (answer = resolve));
  return response;
};

const { draw, optionsOf, until } = await import("./screen.mjs");
const { useState } = await import("react");
const OPTIONS = await optionsOf(artifacts, "byId");

/** Show the slow timeline, then the other one, which fails `times`. Return what is shown before and after the answer. */
async function shown(library, times) {
  const { useTimeline } = await import(`@fanline/client/${library}-react`);
  const { Provider, properties } = await (await import(`./${library}.mjs`)).open(connection, { artifacts }, console.error);
  [failures, answer] = [times, undefined];
  let list, show;
  function Screen() {
    const [current, setCurrent] = useState(slow);
    [list, show] = [useTimeline(current, OPTIONS[library]), setCurrent];
    return null;
  }
  const root = draw(Provider, properties, Screen);
  await until(() => answer);
  show(id);
  await until(() => list.error ?? list.entries.length === 20);
  if (times === 0) await list.loadMore();
  const seen = () => [list.entries.length, list.loading, list.error !== undefined];
  await until(() => times > 0 || list.entries.length === 40);
  const before = seen();
  answer();
  await sleep(200);
  const after = seen();
  await list.retry();
  await until(() => list.entries.length === 20 && !list.error);
  root.unmount();
  return [before, after, seen()];
}

const results = {};
for (const library of Object.keys(OPTIONS))
  results[library] = { fails: await shown(library, 1), scrolled: await shown(library, 0) };
console.log(JSON.stringify(results));
process.exit();
