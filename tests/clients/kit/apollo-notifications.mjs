// The notifications of a React app with Apollo Client. docs/client-kit.md shows the hook.
import { gql } from "@apollo/client";
import { useApolloClient, useQuery } from "@apollo/client/react";
import { live } from "@fanline/client";
import { applyEvent, watchPages } from "@fanline/client/apollo";
import { useEffect, useEffectEvent, useMemo } from "react";
import { FEED, LIVE_FEED } from "./documents.mjs";

const query = gql(FEED);

/** Return the viewer's notifications of some kinds, which stay up to date, and a function that loads the next page. */
export function useNotifications(onEnd, kinds = null) {
  const client = useApolloClient();
  const variables = useMemo(() => ({ first: 20, kinds }), [kinds]);
  const { data, previousData, error } = useQuery(query, { variables });
  const feed = (data ?? previousData)?.viewer?.notifications;
  const id = feed?.id;
  const currentCursor = useEffectEvent(() => feed.liveCursor);

  useEffect(() => {
    if (id === undefined) return undefined;
    return live({
      liveCursor: currentCursor(),
      onEnd,
      async refetch() {
        const { data } = await client.query({ query, variables, fetchPolicy: "network-only" });
        return data.viewer?.notifications?.liveCursor;
      },
      subscribe(after, sink) {
        const context = { queryDeduplication: false };
        const events = client.subscribe({ query: gql(LIVE_FEED), variables: { after }, context });
        const subscription = events.subscribe({
          next: ({ data, error }) => (error ? sink.error(error) : sink.next(data.notifications)),
          error: (problem) => sink.error(problem),
          complete: () => sink.complete(),
        });
        return () => subscription.unsubscribe();
      },
      apply: (event) => applyEvent(client.cache, id, event),
      watchPages: (arrived) => watchPages(client.cache, { __typename: "NotificationFeed", id, kinds }, arrived),
    });
  }, [client, id, kinds, variables, onEnd]);

  async function loadNext() {
    const cached = client.cache.readQuery({ query, variables }); // can be newer than the screen
    const after = cached?.viewer?.notifications?.entries?.pageInfo.endCursor;
    if (after) await client.query({ query, variables: { ...variables, after }, fetchPolicy: "network-only" });
  }
  return { feed, error, loadNext };
}
