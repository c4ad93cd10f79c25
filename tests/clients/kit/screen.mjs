// Renders hooks with React, without a browser.
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { StrictMode, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Return the owner of the list of a hook, with its entries, and also the replies of a post as such. */
function ownerOf({ viewer, node, post }) {
  const owner = viewer?.homeTimeline ?? viewer?.notifications ?? node ?? post;
  return { entries: owner?.replies, ...owner };
}

/** Render a component. Return the element that shows it. */
export function rendered(Screen, Provider, properties) {
  const main = document.createElement("main");
  document.body.append(main);
  createRoot(main).render(createElement(StrictMode, {}, createElement(Provider, properties, createElement(Screen))));
  return main;
}

/** Render a hook of the kit. Return what `drive` needs, once the first page is shown. */
export async function showing(useList, Provider, properties, onEnd) {
  let list;
  let draw;
  const isDrawn = new Promise((resolve) => (draw = resolve));
  function Screen() {
    list = useList();
    if (list.data) draw();
    if (list.error) onEnd(list.error);
    return null;
  }
  const root = createRoot(document.createElement("main"));
  root.render(createElement(Provider, properties, createElement(Screen)));
  await isDrawn;
  return {
    timeline: () => ownerOf(list.data),
    shown: () => list.entries,
    next: () => list.loadMore(),
    close: () => root.unmount(),
  };
}
