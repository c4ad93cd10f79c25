// The home timeline or the notifications in Apollo Client's cache.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { ApolloProvider } from "@apollo/client/react";
import { relayStylePagination } from "@apollo/client/utilities";
import { possibleTypes, typePolicies } from "@fanline/client/apollo";
import { useHome } from "./apollo-home.mjs";
import { useNotifications } from "./apollo-notifications.mjs";
import { BADGE } from "./documents.mjs";
import { showing } from "./screen.mjs";

export async function open({ url, headers, fetch, socket }, { shows }, onEnd) {
  const cache = new InMemoryCache({ possibleTypes, typePolicies: typePolicies(relayStylePagination()) });

  const client = new ApolloClient({
    cache,
    link: ApolloLink.split(
      ({ operationType }) => operationType === "subscription",
      new GraphQLWsLink(socket),
      new HttpLink({ uri: url, headers, fetch }),
    ),
  });

  const useList = shows === "notifications" ? useNotifications : useHome;
  const screen = await showing(useList, ApolloProvider, { client }, onEnd);

  function reset() {
    client.resetStore();
  }

  function refresh() {
    client.refetchQueries({ include: "active" });
  }

  const badge = () => client.query({ query: gql(BADGE), fetchPolicy: "network-only" });

  /** Remove a field of the first item. */
  function forget() {
    const { posts, entries } = screen.timeline();
    const [{ node }] = (posts ?? entries).edges;
    cache.evict({ id: cache.identify(node), fieldName: posts ? "text" : "kind" });
  }

  return { ...screen, refresh, reset, forget, badge };
}
