// The home timeline of a React app with Apollo Client. docs/client-kit.md shows the hook.
import { gql } from "@apollo/client";
import { useApolloClient, useQuery } from "@apollo/client/react";
import { live } from "@fanline/client";
import { applyEvent, watchPages } from "@fanline/client/apollo";
import { useEffect, useState } from "react";
import { LIVE, NEXT, PAGE } from "./documents.mjs";

const page = { query: gql(PAGE), variables: { first: 20 } };

/** Return the viewer's home timeline, which stays up to date, and a function that loads the next page. */
export function useHome(onEnd) {
  const client = useApolloClient();
  const { data, error } = useQuery(page.query, { variables: page.variables });
  const timeline = data?.viewer?.homeTimeline;
  const timelineId = useFirst(timeline?.id);
  const liveCursor = useFirst(timeline?.liveCursor);

  useEffect(() => {
    if (liveCursor === undefined) return undefined;
    return live({
      liveCursor,
      onEnd,
      async refetch() {
        const { data } = await client.query({ ...page, fetchPolicy: "network-only" });
        return data.viewer.homeTimeline.liveCursor;
      },
      subscribe(after, sink) {
        const events = client.subscribe({ query: gql(LIVE), variables: { after } });
        const subscription = events.subscribe({
          next: ({ data, error }) => (error ? sink.error(error) : sink.next(data.homeTimeline)),
          error: (problem) => sink.error(problem),
          complete: () => sink.complete(),
        });
        return () => subscription.unsubscribe();
      },
      apply: (event) => applyEvent(client.cache, timelineId, event),
      watchPages: (arrived) => watchPages(client.cache, { __typename: "Timeline", id: timelineId }, arrived),
    });
  }, [client, timelineId, liveCursor, onEnd]);

  // `fetchMore` would drop changes of the cache that it meets, so the next page is a query of its own.
  async function loadNext() {
    const cached = client.cache.readQuery(page); // can be newer than the screen; null while a field of a post is missing
    if (!cached) return;
    const variables = { ...page.variables, after: cached.viewer.homeTimeline.posts.pageInfo.endCursor };
    await client.query({ query: gql(NEXT), variables, fetchPolicy: "network-only" });
  }
  return { timeline, error, loadNext };
}

/** Return the first value that is not undefined: the cursors of later pages do not count. */
function useFirst(value) {
  const [first, setFirst] = useState(value);
  if (first === undefined && value !== undefined) setFirst(value);
  return first;
}
