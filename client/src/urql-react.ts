import { createRequest, useClient, useQuery } from "urql";
import type { AnyVariables, DocumentInput } from "urql";
import { hooksOf } from "./hooks.js";
import type { ListOptions } from "./hooks.js";
import type { LiveEvent } from "./live.js";
import { useLiveList, useVariables } from "./react.js";
import type { ListRequest, LiveList } from "./react.js";
import { hasResolvers, watchPages } from "./urql.js";

export type { HomeTimelineData, Notification, NotificationsData, Post, Repost, ThreadData, TimelineData } from "./data.js";
export type { ListOptions } from "./hooks.js";
export type { LiveList } from "./react.js";

export const { useHomeTimeline, useTimeline, useThread, useNotifications } = hooksOf(useList);

let subscriptions = 0;

function useList<Data, Entry>(request: ListRequest, options: ListOptions<Data>): LiveList<Data, Entry> {
  const { kind, id } = request;
  const client = useClient();
  const query: DocumentInput<unknown, AnyVariables> = options.query ?? kind.query;
  const subscription: DocumentInput<object, AnyVariables> = options.subscription ?? kind.subscription;
  const variables = useVariables(request, options.first ?? 20, options.variables);
  const [result] = useQuery<unknown>({ query, variables, pause: kind.hasId && id == null });
  // urql keeps the data of other variables while it fetches
  const isOwn = result.operation?.key === createRequest(query, variables).key;
  const data = isOwn ? result.data : undefined;

  return useLiveList(request, {
    dependencies: [client, query, subscription, variables],
    data,
    isComplete: data != null && !result.fetching && !result.stale && !result.error,
    isFetching: result.fetching,
    error: result.error,
    async fetchFirst() {
      const { data, error } = await client.query<unknown>(query, variables, { requestPolicy: "network-only" });
      if (error) throw error;
      return data;
    },
    async fetchNext(endCursorOf) {
      const after = endCursorOf(data);
      if (!after) return;
      const { error } = await client.query<unknown>(query, { ...variables, after });
      if (error) throw error;
    },
    // Graphcache's option `updates` applies the events.
    liveOptions(list, { liveCursor }) {
      if (!hasResolvers()) console.error("cacheExchange needs keys, resolvers and updates of @fanline/client/urql.");
      return {
        liveCursor,
        subscribe(after, sink) {
          // urql would share a subscription with the same variables. Graphcache sends only those that the document
          // declares.
          const own = { ...variables, after, subscription: ++subscriptions };
          const listening = client.subscription(subscription, own).subscribe(({ data, error, hasNext }) => {
            if (error) sink.error(error);
            else if (hasNext) sink.next(Object.values(data ?? {})[0] as LiveEvent);
            else sink.complete();
          });
          return () => listening.unsubscribe();
        },
        watchPages: (arrived) => watchPages(list, arrived),
      };
    },
  });
}
