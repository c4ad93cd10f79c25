// Renders a hook with React, without a browser.
import { Window } from "happy-dom";

const window = new Window();
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Render a hook that returns a timeline. Return what `drive` needs, once the first page is shown. */
export async function showing(useHome, Provider, properties) {
  let home;
  let draw;
  const isDrawn = new Promise((resolve) => (draw = resolve));
  function Screen() {
    home = useHome(fail);
    if (home.timeline) draw();
    if (home.error) fail(home.error);
    return null;
  }
  createRoot(document.createElement("main")).render(createElement(Provider, properties, createElement(Screen)));
  await isDrawn;
  return { timeline: () => home.timeline, next: () => home.loadNext() };
}

function fail(problem) {
  console.error(problem);
  process.exit(1);
}
