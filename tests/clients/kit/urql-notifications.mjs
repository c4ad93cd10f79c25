// The notifications of a React app with urql. docs/client-kit.md shows the hook.
import { live } from "@fanline/client";
import { useEffect, useState } from "react";
import { useClient, useQuery } from "urql";
import { FEED, LIVE_FEED, NEXT_FEED } from "./documents.mjs";

const variables = { first: 20 };

/** Return the viewer's notifications, which stay up to date, and a function that loads the next page. */
export function useNotifications(onEnd) {
  const client = useClient();
  const [{ data, error }] = useQuery({ query: FEED, variables });
  const feed = data?.notifications;
  const [liveCursor, setLiveCursor] = useState();
  if (liveCursor === undefined && feed) setLiveCursor(feed.liveCursor); // those of later pages do not count

  useEffect(() => {
    if (liveCursor === undefined) return undefined;
    return live({
      liveCursor,
      onEnd,
      async refetch() {
        const { data, error } = await client.query(FEED, variables, { requestPolicy: "network-only" });
        if (error) throw error;
        return data.notifications.liveCursor;
      },
      subscribe(after, sink) {
        const subscription = client.subscription(LIVE_FEED, { after }).subscribe(({ data, error, hasNext }) => {
          if (error) sink.error(error);
          else if (hasNext) sink.next(data.notifications); // the option `updates` has applied it
          else sink.complete();
        });
        return () => subscription.unsubscribe();
      },
    });
  }, [client, liveCursor, onEnd]);

  function loadNext() {
    const after = feed.entries.pageInfo.endCursor;
    return client.query(NEXT_FEED, { ...variables, after }).toPromise();
  }
  return { feed, error, loadNext };
}
