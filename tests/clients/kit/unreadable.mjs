// Loads a next page that the server cannot read, and then can: node unreadable.mjs URL TOKEN ARTIFACTS
// Prints the number of entries and the error after each attempt, by library.
import { register } from "node:module";
import { Connection } from "./driver.mjs";

register("./libraries.mjs", import.meta.url);

const [url, token, artifacts] = process.argv.slice(2);
const connection = new Connection({ url, token });
const send = connection.fetch;
let isUnreadable = false;
connection.fetch = async (address, options) => {
  const response = await send(address, options);
  if (!isUnreadable || !JSON.parse(options.body).variables?.after) return response;
  const { data } = await response.json();
  data.viewer.homeTimeline.entries = null;
  const errors = [{ message: "unreadable", path: ["viewer", "homeTimeline", "entries"] }];
  return new Response(JSON.stringify({ data, errors }), { headers: { "content-type": "application/json" } });
};

const { draw, optionsOf, until } = await import("./screen.mjs");

const seen = {};
for (const [library, options] of Object.entries(await optionsOf(artifacts, "timeline"))) {
  const { useHomeTimeline } = await import(`@fanline/client/${library}-react`);
  const { Provider, properties } = await (await import(`./${library}.mjs`)).open(connection, { artifacts }, console.error);
  let list = { entries: [] };
  function Screen() {
    list = useHomeTimeline(options);
    return null;
  }
  const root = draw(Provider, properties, Screen);
  await until(() => list.entries.length === 20);
  isUnreadable = true;
  await list.loadMore();
  await until(() => list.error);
  seen[library] = [list.entries.length, list.hasMore, list.error?.message.includes("unreadable")];
  isUnreadable = false;
  await list.retry();
  await until(() => list.entries.length === 40 && !list.error);
  seen[library].push(list.entries.length, list.error ?? null);
  root.unmount();
}
console.log(JSON.stringify(seen));
process.exit();
