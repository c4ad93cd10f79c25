// The home timeline of a React app with Apollo Client. docs/client-kit.md shows the hook.
import { gql } from "@apollo/client";
import { useApolloClient, useQuery } from "@apollo/client/react";
import { live } from "@fanline/client";
import { applyEvent, watchPages } from "@fanline/client/apollo";
import { useEffect, useEffectEvent } from "react";
import { LIVE, PAGE } from "./documents.mjs";

const query = gql(PAGE);

/** Return the viewer's home timeline, which stays up to date, and a function that loads the next page. */
export function useHome(onEnd, first = 20) {
  const client = useApolloClient();
  const { data, previousData, error } = useQuery(query, { variables: { first } });
  const timeline = (data ?? previousData)?.viewer?.homeTimeline; // there is no data while a field of an entry is missing
  const id = timeline?.id;
  const currentCursor = useEffectEvent(() => timeline.liveCursor);

  useEffect(() => {
    if (id === undefined) return undefined;
    return live({
      liveCursor: currentCursor(),
      onEnd,
      async refetch() {
        const { data } = await client.query({ query, variables: { first }, fetchPolicy: "network-only" });
        return data.viewer?.homeTimeline?.liveCursor;
      },
      subscribe(after, sink) {
        const context = { queryDeduplication: false };
        const events = client.subscribe({ query: gql(LIVE), variables: { after }, context });
        const subscription = events.subscribe({
          next: ({ data, error }) => (error ? sink.error(error) : sink.next(data.homeTimeline)),
          error: (problem) => sink.error(problem),
          complete: () => sink.complete(),
        });
        return () => subscription.unsubscribe();
      },
      apply: (event) => applyEvent(client.cache, id, event),
      watchPages: (arrived) => watchPages(client.cache, { __typename: "Timeline", id }, arrived),
    });
  }, [client, id, first, onEnd]);

  // `fetchMore` would drop changes of the cache that it meets, so the next page is a query of its own.
  async function loadNext() {
    const cached = client.cache.readQuery({ query, variables: { first } }); // can be newer than the screen
    const after = cached?.viewer?.homeTimeline?.entries?.pageInfo.endCursor;
    if (after) await client.query({ query, variables: { first, after }, fetchPolicy: "network-only" });
  }
  return { timeline, error, loadNext };
}
