import { keys, resolvers, updates } from "@fanline/client/urql";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Client, Provider, fetchExchange, subscriptionExchange } from "urql";
import { Home } from "./Home";
import schema from "./schema.json";
import { headers, socket, url } from "./socket";

const client = new Client({
  url,
  fetchOptions: { headers },
  preferGetMethod: false,
  exchanges: [
    cacheExchange({ schema, keys, resolvers: resolvers(relayPagination()), updates }),
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query = "", variables }) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query, variables }, sink) }),
      }),
    }),
  ],
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Provider value={client}>
      <Home />
    </Provider>
  </StrictMode>,
);
