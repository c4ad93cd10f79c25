import { useState } from "react";
import { graphql, usePaginationFragment } from "react-relay";
import { EndlessList } from "../ui/EndlessList";
import { NotificationRow } from "./NotificationRow";
import { PAGE } from "./useLiveNotifications";
import { useMarkRead } from "./useMarkRead";
import type { NotificationListNextQuery } from "./__generated__/NotificationListNextQuery.graphql";
import type { NotificationList_feed$key } from "./__generated__/NotificationList_feed.graphql";

/** The list. Notifications that were unread when it appeared stay marked as new, although they are read now. */
export function NotificationList({ feed }: { feed: NotificationList_feed$key }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<
    NotificationListNextQuery,
    NotificationList_feed$key
  >(
    graphql`
      fragment NotificationList_feed on NotificationFeed
      @refetchable(queryName: "NotificationListNextQuery")
      @argumentDefinitions(count: { type: "Int!" }, after: { type: "String" }) {
        unreadCount
        hasMoreUnread # for the navigation
        liveCursor(first: $count, after: $after) # for liveCursorOf and watchPages
        entries(first: $count, after: $after) @connection(key: "NotificationList_entries") {
          edges {
            cursor
            node {
              id
              isRead
              ...NotificationRow_notification
            }
          }
        }
      }
    `,
    feed,
  );
  if (!data.entries) throw new Error("The server did not return the notifications.");
  const { edges } = data.entries;
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const added = edges.filter(({ node }) => !node.isRead && !fresh.has(node.id));
  if (added.length > 0) setFresh(new Set([...fresh, ...added.map(({ node }) => node.id)]));
  useMarkRead(data.unreadCount, edges[0]?.cursor);

  return (
    <EndlessList
      name="notifications"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(PAGE, { onComplete })}
      empty={<p>Nothing yet. Follows, replies, quotes, mentions, reposts and likes appear here.</p>}
    >
      {edges.map(({ node }) => (
        <NotificationRow key={node.id} notification={node} isNew={fresh.has(node.id)} />
      ))}
    </EndlessList>
  );
}
