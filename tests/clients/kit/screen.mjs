// Renders hooks with React, without a browser.
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Render a hook that returns a timeline or a feed. Return what `drive` needs, once the first page is shown. */
export async function showing(useList, Provider, properties, onEnd) {
  let list;
  let shown;
  let draw;
  const isDrawn = new Promise((resolve) => (draw = resolve));
  function Screen() {
    list = useList();
    const owner = list.timeline ?? list.feed;
    if (owner?.entries) shown = owner; // there is no list while the cache lacks a field
    if (shown) draw();
    if (list.error) onEnd(list.error);
    return null;
  }
  const root = createRoot(document.createElement("main"));
  root.render(createElement(Provider, properties, createElement(Screen)));
  await isDrawn;
  return { timeline: () => shown, next: () => list.loadNext(), close: () => root.unmount() };
}
