// The home timeline of a React app with urql. docs/client-kit.md shows the hook.
import { live } from "@fanline/client";
import { watchPages } from "@fanline/client/urql";
import { useEffect, useEffectEvent, useState } from "react";
import { useClient, useQuery } from "urql";
import { LIVE, PAGE } from "./documents.mjs";

/** Return the viewer's home timeline, which stays up to date, and a function that loads the next page. */
export function useHome(onEnd, first = 20) {
  const client = useClient();
  const [{ data, error }] = useQuery({ query: PAGE, variables: { first } });
  const timeline = data?.viewer?.homeTimeline;
  const [id, setId] = useState(); // stays when another fetch fails
  if (timeline?.entries && timeline.id !== id) setId(timeline.id);
  const currentCursor = useEffectEvent(() => timeline?.liveCursor);

  useEffect(() => {
    if (id === undefined) return undefined;
    return live({
      liveCursor: currentCursor(),
      onEnd,
      async refetch() {
        const { data, error } = await client.query(PAGE, { first }, { requestPolicy: "network-only" });
        if (error) throw error;
        return data.viewer?.homeTimeline?.liveCursor;
      },
      subscribe(after, sink) {
        const subscription = client.subscription(LIVE, { first, after }).subscribe(({ data, error, hasNext }) => {
          if (error) sink.error(error);
          else if (hasNext) sink.next(data.homeTimeline); // the option `updates` has applied it
          else sink.complete();
        });
        return () => subscription.unsubscribe();
      },
      watchPages: (arrived) => watchPages({ __typename: "Timeline", id }, arrived),
    });
  }, [client, id, first, onEnd]);

  function loadNext() {
    const after = timeline.entries.pageInfo.endCursor;
    return client.query(PAGE, { first, after }).toPromise();
  }
  return { timeline, error, loadNext };
}
