import { gql } from "@apollo/client";
import type { InMemoryCache, OperationVariables, TypedDocumentNode } from "@apollo/client";
import { skipToken, useApolloClient, useQuery } from "@apollo/client/react";
import { applyEvent, watchPages } from "./apollo.js";
import { hooksOf } from "./hooks.js";
import type { ListOptions } from "./hooks.js";
import { LISTS } from "./lists.js";
import type { LiveEvent } from "./live.js";
import { useLiveList, useVariables } from "./react.js";
import type { ListRequest, LiveList } from "./react.js";

export type { HomeTimelineData, Notification, NotificationsData, Post, Repost, ThreadData, TimelineData } from "./data.js";
export type { ListOptions } from "./hooks.js";
export type { LiveList } from "./react.js";

export const { useHomeTimeline, useTimeline, useThread, useNotifications } = hooksOf(useList);

function useList<Data, Entry>(request: ListRequest, options: ListOptions<Data>): LiveList<Data, Entry> {
  const { kind, id } = request;
  const client = useApolloClient();
  const query = (options.query ?? gql(kind.query)) as TypedDocumentNode<unknown, OperationVariables>;
  const subscription = options.subscription ?? gql(kind.subscription);
  const variables = useVariables(request, options.first ?? 20, options.variables);
  const { data, error, loading, observable } = useQuery(query, kind.hasId && id == null ? skipToken : { variables });
  const shared = Object.fromEntries(Object.entries(variables).filter(([name]) => name !== "first" && name !== "kinds"));

  async function fetchFirst(): Promise<unknown> {
    // After a failure, the query may no longer read the cache.
    if (observable.getCurrentResult().error) return (await observable.refetch()).data;
    return (await client.query({ query, variables, fetchPolicy: "network-only" })).data;
  }

  return useLiveList(request, {
    dependencies: [client, query, subscription, variables],
    data,
    isComplete: data !== undefined && !loading && !error,
    isFetching: loading,
    error,
    fetchFirst,
    async fetchNext(endCursorOf) {
      const after = endCursorOf(client.cache.readQuery({ query, variables })); // can be newer than the screen
      // `fetchMore` would drop concurrent changes to the cache, so the next page is a separate query.
      if (after) await client.query({ query, variables: { ...variables, after }, fetchPolicy: "network-only" });
    },
    liveOptions(list, { liveCursor }) {
      const policies = "policies" in client.cache ? (client.cache.policies as InMemoryCache["policies"]) : undefined;
      if (policies && !policies.getMergeFunction(list.__typename, LISTS[kind.typename].field, undefined))
        console.error("InMemoryCache needs typePolicies(relayStylePagination()) of @fanline/client/apollo.");
      return {
        liveCursor,
        subscribe(after, sink) {
          const context = { queryDeduplication: false };
          const events = client.subscribe({ query: subscription, variables: { ...shared, after }, context });
          const listening = events.subscribe({
            next: ({ data, error }) => (error ? sink.error(error) : sink.next(Object.values(data as object)[0] as LiveEvent)),
            error: (problem: unknown) => sink.error(problem),
            complete: () => sink.complete(),
          });
          return () => listening.unsubscribe();
        },
        apply: (event) => applyEvent(client.cache, list.id, event),
        watchPages: (arrived) => watchPages(client.cache, list, arrived),
      };
    },
  });
}
