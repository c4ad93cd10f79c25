import { withLiveCursors } from "@fanline/client/relay";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RelayEnvironmentProvider } from "react-relay";
import { DefaultHandlerProvider, Environment, Network, Observable, RecordSource, Store } from "relay-runtime";
import type { FetchFunction, GraphQLResponse, SubscribeFunction } from "relay-runtime";
import { Home } from "./Home";
import { headers, socket, url } from "./socket";

const fetchText: FetchFunction = async ({ text }, variables) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query: text, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw Object.assign(new Error(errors[0].message), { errors }); // Relay would forget those of fields
  return { data };
};

const subscribe: SubscribeFunction = ({ text }, variables) =>
  Observable.create((sink) =>
    socket.subscribe(
      { query: text ?? "", variables },
      {
        next: (result) => sink.next(result as GraphQLResponse),
        error: (problem) => sink.error(problem as Error),
        complete: () => sink.complete(),
      },
    ),
  );

const environment = new Environment({
  network: Network.create(fetchText, subscribe),
  handlerProvider: withLiveCursors(DefaultHandlerProvider),
  store: new Store(new RecordSource()),
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <RelayEnvironmentProvider environment={environment}>
      <Home />
    </RelayEnvironmentProvider>
  </StrictMode>,
);
