// The home timeline or the notifications in urql's normalised cache.
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { keys, updates } from "@fanline/client/urql";
import { getIntrospectionQuery } from "graphql";
import { Client, Provider, fetchExchange, subscriptionExchange } from "urql";
import { BADGE, FEED, PAGE } from "./documents.mjs";
import { COUNT } from "./driver.mjs";
import { showing } from "./screen.mjs";
import { useHome } from "./urql-home.mjs";
import { useNotifications } from "./urql-notifications.mjs";

let known;

/** Return the response to the introspection query, which all servers answer alike. */
async function introspect(url, headers) {
  known ??= await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query: getIntrospectionQuery() }),
  });
  return known.clone();
}

export async function open({ url, headers, fetch, socket }, { shows }, onEnd) {
  const introspection = await introspect(url, headers);
  const exchanges = [
    cacheExchange({
      schema: (await introspection.json()).data,
      keys,
      resolvers: { Timeline: { posts: relayPagination() }, NotificationFeed: { entries: relayPagination() } },
      updates,
    }),
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe(request, sink) }),
      }),
    }),
  ];
  const client = new Client({ url, fetchOptions: { headers }, fetch, preferGetMethod: false, exchanges });

  const isFeed = shows === "notifications";
  const screen = await showing(isFeed ? useNotifications : useHome, Provider, { value: client }, onEnd);

  function refresh() {
    client.query(isFeed ? FEED : PAGE, { first: COUNT }, { requestPolicy: "network-only" }).toPromise();
  }

  const badge = () => client.query(BADGE, {}, { requestPolicy: "network-only" }).toPromise();

  return { ...screen, refresh, badge };
}
