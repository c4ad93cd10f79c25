// Renders hooks with React, without a browser.
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Return the owner of the list of a hook, with its entries, and also the replies of a post as such. */
function ownerOf({ viewer, node, post }) {
  const owner = viewer?.homeTimeline ?? viewer?.notifications ?? node ?? post;
  return { entries: owner?.replies, ...owner };
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
