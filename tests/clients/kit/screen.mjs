// Renders hooks with React, without a browser.
import { setTimeout as sleep } from "node:timers/promises";
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Draw a component. Return its root. */
export function draw(Provider, properties, Screen, options) {
  const root = createRoot(document.createElement("main"), options);
  root.render(createElement(Provider, properties, createElement(Screen)));
  return root;
}

/** Wait until a condition holds, ten seconds at most. */
export async function until(condition) {
  for (let turn = 0; turn < 500 && !condition(); turn++) await sleep(20);
}

/** Return the function that returns what relay-compiler has made of a document. */
export const artifactsIn = (folder) => async (name) => (await import(`${folder}/${name}.graphql.js`)).default;

/** Return the options of a hook for each library. Those of Relay are documents, whose names begin with `name`. */
export async function optionsOf(artifacts, name) {
  const artifact = artifactsIn(artifacts);
  const relay = { query: await artifact(`${name}PageQuery`), subscription: await artifact(`${name}LiveSubscription`) };
  return { apollo: {}, urql: {}, relay };
}

/** Return the owner of the list of a hook, with its entries, and also the replies of a post as such. */
function ownerOf({ viewer, node, post }) {
  const owner = viewer?.homeTimeline ?? viewer?.notifications ?? node ?? post;
  return { entries: owner?.replies, ...owner };
}

/** Render a hook of the kit. Return what `drive` needs, once the first page is shown. */
export async function showing(useList, Provider, properties, onEnd) {
  let list;
  let show;
  const isShown = new Promise((resolve) => (show = resolve));
  function Screen() {
    list = useList();
    if (list.data) show();
    if (list.error) onEnd(list.error);
    return null;
  }
  const root = draw(Provider, properties, Screen);
  await isShown;
  return {
    timeline: () => ownerOf(list.data),
    shown: () => list.entries,
    next: () => list.loadMore(),
    close: () => root.unmount(),
  };
}
