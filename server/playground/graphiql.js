// Renders GraphiQL with the examples, and opens further examples in tabs.
import { collect } from "./live-events.js";

/** Storage in memory: in the demo every visit starts with the examples. */
function memoryStorage() {
  const items = new Map();
  return {
    get length() {
      return items.size;
    },
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, String(value)),
    removeItem: (key) => void items.delete(key),
    clear: () => items.clear(),
    key: (index) => [...items.keys()][index] ?? null,
  };
}

let explains = false;

/** A switch that makes responses and events show their cost. It does not affect a running subscription. */
function ExplainSwitch() {
  const [on, setOn] = React.useState(explains);
  const toggle = () => setOn((explains = !explains));
  const title = "Explain: show what operations cost";
  const className = "graphiql-un-styled graphiql-toolbar-button explain";
  const properties = { type: "button", className, title, "aria-label": title, "aria-pressed": on, onClick: toggle };
  return React.createElement("button", properties, "ms");
}

/** Fetch without cookies: in the demo, they belong to its web app, and the menu of users decides who sends requests. */
function fetchWithoutCookies(url, options) {
  const headers = new Headers(options.headers);
  if (headers.get("authorization") === "null") headers.delete("authorization");
  return fetch(url, { ...options, headers, credentials: "omit" });
}

/** Send operations with the session's token, unless the headers of the tab specify another. */
function createFetcher(session, isDemo) {
  const url = new URL("graphql", location.href);
  const socketUrl = new URL(url);
  socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  // Subscriptions use graphql-transport-ws; the headers become the payload of connection_init.
  const send = GraphiQL.createFetcher({
    url: url.href,
    subscriptionUrl: socketUrl.href,
    enableIncrementalDelivery: false,
    ...(isDemo ? { fetch: fetchWithoutCookies } : {}),
  });
  // Sockets always send the cookies; a token that is null overrides them.
  const nobody = isDemo ? { authorization: null } : {};
  return async (parameters, options = {}) => {
    const given = Object.keys(options.headers ?? {}).map((name) => name.toLowerCase());
    const inherited = session.token ? { authorization: `Bearer ${session.token}` } : nobody;
    const own = given.includes("authorization") ? {} : inherited;
    const asked = explains ? { ...parameters, extensions: { explain: true } } : parameters;
    const result = await send(asked, { ...options, headers: { ...own, ...options.headers } });
    return result?.[Symbol.asyncIterator] ? collect(result) : result;
  };
}

/** Render GraphiQL. Return a function that shows an example: in its tab, or else in a new one. */
export function renderGraphiQL(root, { examples, opened, session, isDemo }) {
  let editor;
  let execution;
  function Bridge() {
    editor = GraphiQL.React.useEditorContext({ nonNull: true });
    execution = GraphiQL.React.useExecutionContext({ nonNull: true });
    return null;
  }
  const tabOf = ({ name, query }) => ({ query, variables: session.variables[name] ?? "", headers: "" });
  const defaultTabs = opened.map((name) => tabOf(examples.find((example) => example.name === name)));
  const properties = {
    fetcher: createFetcher(session, isDemo),
    defaultTabs,
    defaultEditorToolsVisibility: "variables",
    shouldPersistHeaders: false,
    ...(isDemo ? { storage: memoryStorage() } : {}),
  };
  const toolbar = React.createElement(GraphiQL.Toolbar, null, ({ merge, prettify, copy }) =>
    React.createElement(
      React.Fragment,
      null,
      prettify,
      merge,
      copy,
      React.createElement(ExplainSwitch),
      React.createElement(Bridge),
    ),
  );
  ReactDOM.createRoot(root).render(React.createElement(GraphiQL, properties, toolbar));

  return async (example) => {
    execution.stop();
    const { query, variables } = tabOf(example);
    const index = editor.tabs.findIndex((tab) => tab.operationName === example.operation);
    if (index === -1) editor.addTab();
    else if (index !== editor.activeTabIndex) editor.changeTab(index);
    await new Promise((resolve) => setTimeout(resolve, 0)); // React changes the tab first
    if (index === -1) editor.queryEditor.setValue(query);
    if (index === -1 || variables) editor.variableEditor.setValue(variables);
    if (matchMedia("(pointer: fine)").matches) editor.queryEditor.focus(); // a phone would show its keyboard
  };
}
