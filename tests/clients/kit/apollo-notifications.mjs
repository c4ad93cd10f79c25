// The notifications of a React app with Apollo Client. docs/client-kit.md shows the hook.
import { gql } from "@apollo/client";
import { useApolloClient, useQuery } from "@apollo/client/react";
import { live } from "@fanline/client";
import { applyEvent, watchPages } from "@fanline/client/apollo";
import { useEffect, useState } from "react";
import { FEED, LIVE_FEED, NEXT_FEED } from "./documents.mjs";

const page = { query: gql(FEED), variables: { first: 20 } };

/** Return the viewer's notifications, which stay up to date, and a function that loads the next page. */
export function useNotifications(onEnd) {
  const client = useApolloClient();
  const { data, error } = useQuery(page.query, { variables: page.variables });
  const feed = data?.notifications;
  const [first, setFirst] = useState();
  if (first === undefined && feed) setFirst({ id: feed.id, liveCursor: feed.liveCursor }); // later cursors do not count

  useEffect(() => {
    if (first === undefined) return undefined;
    return live({
      liveCursor: first.liveCursor,
      onEnd,
      async refetch() {
        const { data } = await client.query({ ...page, fetchPolicy: "network-only" });
        return data.notifications.liveCursor;
      },
      subscribe(after, sink) {
        const events = client.subscribe({ query: gql(LIVE_FEED), variables: { after } });
        const subscription = events.subscribe({
          next: ({ data, error }) => (error ? sink.error(error) : sink.next(data.notifications)),
          error: (problem) => sink.error(problem),
          complete: () => sink.complete(),
        });
        return () => subscription.unsubscribe();
      },
      apply: (event) => applyEvent(client.cache, first.id, event),
      watchPages: (arrived) => watchPages(client.cache, { __typename: "NotificationFeed", id: first.id }, arrived),
    });
  }, [client, first, onEnd]);

  async function loadNext() {
    const cached = client.cache.readQuery(page); // can be newer than the screen; null while a field is missing
    if (!cached) return;
    const variables = { ...page.variables, after: cached.notifications.entries.pageInfo.endCursor };
    await client.query({ query: gql(NEXT_FEED), variables, fetchPolicy: "network-only" });
  }
  return { feed, error, loadNext };
}
