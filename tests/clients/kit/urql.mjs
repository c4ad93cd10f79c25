// Lists in urql's normalised cache.
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { keys, resolvers, updates } from "@fanline/client/urql";
import { useHomeTimeline, useNotifications, useThread, useTimeline } from "@fanline/client/urql-react";
import { getIntrospectionQuery } from "graphql";
import { Client, Provider, fetchExchange, gql, subscriptionExchange } from "urql";
import { BADGE, FEED, LIVE, LIVE_FEED, PAGE } from "./documents.mjs";
import { showing } from "./screen.mjs";

const home = { query: gql(PAGE), subscription: gql(LIVE) };
const notifications = { query: gql(FEED), subscription: gql(LIVE_FEED) };

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

export async function open({ url, headers, fetch, socket }, _options, onEnd) {
  const introspection = await introspect(url, headers);
  const exchanges = [
    cacheExchange({
      schema: (await introspection.json()).data,
      keys,
      resolvers: resolvers(relayPagination()),
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

  function show({ shows, id, first, kinds }) {
    const lists = {
      home: () => useHomeTimeline({ ...home, first }),
      notifications: () => useNotifications({ ...notifications, first, kinds }),
      timeline: () => useTimeline(id, { first }),
      thread: () => useThread(id, { first }),
    };
    return showing(lists[shows], Provider, { value: client }, onEnd);
  }

  const fetchNow = (query, variables) => client.query(query, variables, { requestPolicy: "network-only" }).toPromise();

  function load({ shows, first, kinds, after }) {
    if (shows === "notifications") return fetchNow(FEED, { first, kinds, after });
    return fetchNow(PAGE, { first, after });
  }

  const badge = () => fetchNow(BADGE, {});

  return { show, load, badge, Provider, properties: { value: client }, documentOf: gql };
}
