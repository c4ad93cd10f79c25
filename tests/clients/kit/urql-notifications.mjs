// The notifications of a React app with urql. docs/client-kit.md shows the hook.
import { live } from "@fanline/client";
import { watchPages } from "@fanline/client/urql";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { useClient, useQuery } from "urql";
import { FEED, LIVE_FEED } from "./documents.mjs";

/** Return the viewer's notifications of some kinds, which stay up to date, and a function that loads the next page. */
export function useNotifications(onEnd, kinds = null) {
  const client = useClient();
  const variables = useMemo(() => ({ first: 20, kinds }), [kinds]);
  const [{ data, error }] = useQuery({ query: FEED, variables });
  const feed = data?.viewer?.notifications;
  const [id, setId] = useState(); // stays when another fetch fails
  if (feed?.entries && feed.id !== id) setId(feed.id);
  const currentCursor = useEffectEvent(() => feed?.liveCursor);

  useEffect(() => {
    if (id === undefined) return undefined;
    return live({
      liveCursor: currentCursor(),
      onEnd,
      async refetch() {
        const { data, error } = await client.query(FEED, variables, { requestPolicy: "network-only" });
        if (error) throw error;
        return data.viewer?.notifications?.liveCursor;
      },
      subscribe(after, sink) {
        const events = client.subscription(LIVE_FEED, { ...variables, after });
        const subscription = events.subscribe(({ data, error, hasNext }) => {
          if (error) sink.error(error);
          else if (hasNext) sink.next(data.notifications); // the option `updates` has applied it
          else sink.complete();
        });
        return () => subscription.unsubscribe();
      },
      watchPages: (arrived) => watchPages({ __typename: "NotificationFeed", id, kinds }, arrived),
    });
  }, [client, id, kinds, variables, onEnd]);

  function loadNext() {
    const after = feed.entries.pageInfo.endCursor;
    return client.query(FEED, { ...variables, after }).toPromise();
  }
  return { feed, error, loadNext };
}
