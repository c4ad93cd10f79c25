// Starts GraphiQL with the example operations as tabs and, in the demo, with an access token.
"use strict";

/** Storage in memory: in the demo every visit starts with the examples and a valid token. */
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

async function start() {
  const { examples, token } = await (await fetch("playground/start.json")).json();
  const url = new URL("graphql", location.href);
  const socketUrl = new URL(url);
  socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const headers = token ? JSON.stringify({ authorization: `Bearer ${token}` }, null, 2) : "";
  const properties = {
    // Subscriptions use graphql-transport-ws; the headers of a tab become the payload of connection_init.
    fetcher: GraphiQL.createFetcher({
      url: url.href,
      subscriptionUrl: socketUrl.href,
      enableIncrementalDelivery: false,
    }),
    defaultTabs: examples.map(({ query, variables }) => ({ query, variables, headers })),
    defaultHeaders: headers,
    defaultEditorToolsVisibility: "variables",
    shouldPersistHeaders: false,
  };
  if (token) properties.storage = memoryStorage();
  ReactDOM.createRoot(document.getElementById("playground")).render(
    React.createElement(GraphiQL, properties),
  );
}

start();
