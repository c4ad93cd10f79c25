// The notifications of a React app with urql. docs/client-kit.md shows the hook.
import { live } from "@fanline/client";
import { watchPages } from "@fanline/client/urql";
import { useEffect, useState } from "react";
import { useClient, useQuery } from "urql";
import { FEED, LIVE_FEED, NEXT_FEED } from "./documents.mjs";

const variables = { first: 20 };

/** Return the viewer's notifications, which stay up to date, and a function that loads the next page. */
export function useNotifications(onEnd) {
  const client = useClient();
  const [{ data, error }] = useQuery({ query: FEED, variables });
  const feed = data?.notifications;
  const [first, setFirst] = useState();
  if (first === undefined && feed) setFirst({ id: feed.id, liveCursor: feed.liveCursor }); // later cursors do not count

  useEffect(() => {
    if (first === undefined) return undefined;
    return live({
      liveCursor: first.liveCursor,
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
      watchPages: (arrived) => watchPages({ __typename: "NotificationFeed", id: first.id }, arrived),
    });
  }, [client, first, onEnd]);

  function loadNext() {
    const after = feed.entries.pageInfo.endCursor;
    return client.query(NEXT_FEED, { ...variables, after }).toPromise();
  }
  return { feed, error, loadNext };
}
