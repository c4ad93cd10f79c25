// Lists in Apollo Client's cache.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { ApolloProvider } from "@apollo/client/react";
import { relayStylePagination } from "@apollo/client/utilities";
import { possibleTypes, typePolicies } from "@fanline/client/apollo";
import { useHome } from "./apollo-home.mjs";
import { useNotifications } from "./apollo-notifications.mjs";
import { BADGE, FEED, PAGE } from "./documents.mjs";
import { showing } from "./screen.mjs";

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

  function show({ shows, first, kinds }) {
    const useList = shows === "notifications" ? () => useNotifications(onEnd, kinds) : () => useHome(onEnd, first);
    return showing(useList, ApolloProvider, { client }, onEnd);
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

  return { show, load, refresh, reset, badge, forget };
}
