// Lists in Apollo Client's cache.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { ApolloProvider } from "@apollo/client/react";
import { relayStylePagination } from "@apollo/client/utilities";
import { possibleTypes, typePolicies } from "@fanline/client/apollo";
import { useHomeTimeline, useNotifications, useThread, useTimeline } from "@fanline/client/apollo-react";
import { BADGE, FEED, LIVE, LIVE_FEED, PAGE } from "./documents.mjs";
import { showing } from "./screen.mjs";

const home = { query: gql(PAGE), subscription: gql(LIVE) };
const notifications = { query: gql(FEED), subscription: gql(LIVE_FEED) };

export async function open({ url, headers, fetch, socket }, _options, onEnd) {
  const cache = new InMemoryCache({ possibleTypes, typePolicies: typePolicies(relayStylePagination()) });

  const client = new ApolloClient({
    cache,
    link: ApolloLink.split(
      ({ operationType }) => operationType === "subscription",
      new GraphQLWsLink(socket),
      new HttpLink({ uri: url, headers, fetch }),
    ),
  });

  function show({ shows, id, first, kinds }) {
    const lists = {
      home: () => useHomeTimeline({ ...home, first }),
      notifications: () => useNotifications({ ...notifications, first, kinds }),
      timeline: () => useTimeline(id, { first }),
      thread: () => useThread(id, { first }),
    };
    return showing(lists[shows], ApolloProvider, { client }, onEnd);
  }

  function load({ shows, first, kinds, after }) {
    const query = gql(shows === "notifications" ? FEED : PAGE);
    const variables = shows === "notifications" ? { first, kinds, after } : { first, after };
    return client.query({ query, variables, fetchPolicy: "network-only" });
  }

  function refresh() {
    client.refetchQueries({ include: "active" });
  }

  function reset() {
    client.resetStore();
  }

  const badge = () => client.query({ query: gql(BADGE), fetchPolicy: "network-only" });

  /** Remove a field of an item. */
  function forget(item) {
    cache.evict({ id: cache.identify(item), fieldName: "text" in item ? "text" : "at" });
  }

  return { show, load, refresh, reset, badge, forget, Provider: ApolloProvider, properties: { client }, documentOf: gql };
}
