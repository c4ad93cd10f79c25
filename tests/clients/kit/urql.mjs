// The home timeline or the notifications in urql's normalised cache.
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { keys, updates } from "@fanline/client/urql";
import { getIntrospectionQuery } from "graphql";
import { Client, Provider, fetchExchange, subscriptionExchange } from "urql";
import { BADGE, FEED, PAGE } from "./documents.mjs";
import { COUNT, delayedFetch, drive, headers, showsFeed, socket, url } from "./driver.mjs";
import { showing } from "./screen.mjs";
import { useHome } from "./urql-home.mjs";
import { useNotifications } from "./urql-notifications.mjs";

const introspection = await fetch(url, {
  method: "POST",
  headers: { ...headers, "content-type": "application/json" },
  body: JSON.stringify({ query: getIntrospectionQuery() }),
});

const client = new Client({
  url,
  fetchOptions: { headers },
  fetch: delayedFetch,
  preferGetMethod: false,
  exchanges: [
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
  ],
});

const screen = await showing(showsFeed ? useNotifications : useHome, Provider, { value: client });

function refresh() {
  client.query(showsFeed ? FEED : PAGE, { first: COUNT }, { requestPolicy: "network-only" }).toPromise();
}

const badge = () => client.query(BADGE, {}, { requestPolicy: "network-only" }).toPromise();

await drive({ ...screen, refresh, badge });
