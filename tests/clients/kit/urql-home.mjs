// The home timeline of a React app with urql. docs/client-kit.md shows the hook.
import { live } from "@fanline/client";
import { watchPages } from "@fanline/client/urql";
import { useEffect, useState } from "react";
import { useClient, useQuery } from "urql";
import { LIVE, NEXT, PAGE } from "./documents.mjs";

const variables = { first: 20 };

/** Return the viewer's home timeline, which stays up to date, and a function that loads the next page. */
export function useHome(onEnd) {
  const client = useClient();
  const [{ data, error }] = useQuery({ query: PAGE, variables });
  const timeline = data?.viewer?.homeTimeline;
  const timelineId = useFirst(timeline?.id);
  const liveCursor = useFirst(timeline?.liveCursor);

  useEffect(() => {
    if (liveCursor === undefined) return undefined;
    return live({
      liveCursor,
      onEnd,
      async refetch() {
        const { data, error } = await client.query(PAGE, variables, { requestPolicy: "network-only" });
        if (error) throw error;
        return data.viewer.homeTimeline.liveCursor;
      },
      subscribe(after, sink) {
        const subscription = client.subscription(LIVE, { after }).subscribe(({ data, error, hasNext }) => {
          if (error) sink.error(error);
          else if (hasNext) sink.next(data.homeTimeline); // the option `updates` has applied it
          else sink.complete();
        });
        return () => subscription.unsubscribe();
      },
      watchPages: (arrived) => watchPages({ __typename: "Timeline", id: timelineId }, arrived),
    });
  }, [client, timelineId, liveCursor, onEnd]);

  function loadNext() {
    const after = timeline.posts.pageInfo.endCursor;
    return client.query(NEXT, { ...variables, after }).toPromise();
  }
  return { timeline, error, loadNext };
}

/** Return the first value that is not undefined: the cursors of later pages do not count. */
function useFirst(value) {
  const [first, setFirst] = useState(value);
  if (first === undefined && value !== undefined) setFirst(value);
  return first;
}
