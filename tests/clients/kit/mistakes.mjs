// Renders hooks whose queries or environments lack something: node mistakes.mjs URL TOKEN ARTIFACTS
// Prints the errors, by library and by what is missing.
import { register } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { PAGE } from "./documents.mjs";
import { Connection } from "./driver.mjs";

register("./libraries.mjs", import.meta.url);

const [url, token, artifacts] = process.argv.slice(2);
const connection = new Connection({ url, token });
await import("./screen.mjs");
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { Environment, RecordSource, Store } = (await import("relay-runtime")).default;
const artifact = async (name) => (await import(`${artifacts}/${name}.graphql.js`)).default;
const subscription = await artifact("timelineLiveSubscription");

const QUERIES = {
  apollo: { liveCursor: PAGE.replace(/liveCursor\(.*\)/, ""), id: PAGE.replace(/homeTimeline \{\s+id/, "homeTimeline {") },
  urql: { liveCursor: PAGE.replace(/liveCursor\(.*\)/, "") },
  relay: { liveCursor: await artifact("mistakesCursorQuery"), connection: await artifact("mistakesConnectionQuery") },
};

/** Render the hook of a library, and return the error that it throws. */
async function thrown(Provider, properties, useList) {
  let error;
  const root = createRoot(document.createElement("main"), { onUncaughtError: (problem) => (error = problem) });
  const Screen = () => (useList(), null);
  root.render(createElement(Provider, properties, createElement(Screen)));
  for (let turn = 0; turn < 500 && !error; turn++) await sleep(20);
  root.unmount();
  return error?.message;
}

const seen = {};
for (const [library, queries] of Object.entries(QUERIES)) {
  const { useHomeTimeline } = await import(`@fanline/client/${library}-react`);
  const { Provider, properties, documentOf } = await (await import(`./${library}.mjs`)).open(connection, { artifacts }, fail);
  seen[library] = {};
  for (const [missing, query] of Object.entries(queries)) {
    const options = { query: documentOf(query), subscription };
    seen[library][missing] = await thrown(Provider, properties, () => useHomeTimeline(options));
  }
  if (library !== "relay") continue;
  const environment = new Environment({ network: properties.environment.getNetwork(), store: new Store(new RecordSource()) });
  const options = { query: await artifact("timelinePageQuery"), subscription };
  seen[library].handler = await thrown(Provider, { environment }, () => useHomeTimeline(options));
}
console.log(JSON.stringify(seen));
process.exit();

function fail(problem) {
  throw problem;
}
