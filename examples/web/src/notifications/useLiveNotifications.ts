import { failure, live } from "@fanline/client";
import type { LiveEvent } from "@fanline/client";
import { applyEvent, watchPages } from "@fanline/client/relay";
import { useEffect, useState } from "react";
import { ConnectionHandler, graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { fetchPages } from "../live/fetchPages";
import { sessionChanged } from "../session/changes";
import type { useLiveNotificationsQuery } from "./__generated__/useLiveNotificationsQuery.graphql";
import type { useLiveNotificationsSubscription } from "./__generated__/useLiveNotificationsSubscription.graphql";

export const PAGE = 30;
const MOST = 200;

/** All pages. */
export const query = graphql`
  query useLiveNotificationsQuery($count: Int!, $after: String) @raw_response_type {
    viewer {
      notifications {
        ...NotificationList_feed @arguments(count: $count, after: $after)
      }
    }
  }
`;

const subscription = graphql`
  subscription useLiveNotificationsSubscription($after: String) {
    notifications(after: $after) {
      __typename
      cursor
      ... on NotificationAdded {
        edge {
          cursor
          node {
            id
            ...NotificationRow_notification
          }
        }
        feed {
          id
          unreadCount
          hasMoreUnread
        }
      }
      ... on NotificationsChanged {
        feed {
          id
          unreadCount
          hasMoreUnread
        }
      }
    }
  }
`;

/**
 * Keep the number of unread notifications and the list of them in the store up to date.
 *
 * The subscription begins at `liveCursor`, whose later values are ignored, and begins again at each first page that
 * arrives: the screen also fetches the page, which overwrites what has arrived since the server read it.
 */
export function useLiveNotifications(feedId: string | undefined, liveCursor: string | null | undefined): void {
  const environment = useRelayEnvironment();
  const [frozen] = useState(liveCursor);

  useEffect(() => {
    if (feedId === undefined) return undefined;
    const connection = ConnectionHandler.getConnectionID(feedId, "NotificationList_entries");
    return live<LiveEvent>({
      liveCursor: frozen,
      refetch: () =>
        fetchPages<useLiveNotificationsQuery>({
          environment,
          query,
          connection,
          page: PAGE,
          most: MOST,
          pageInfo: ({ viewer }) => viewer?.notifications?.entries?.pageInfo,
        }),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<useLiveNotificationsSubscription>(environment, {
          subscription,
          variables: { after },
          updater: (store) => applyEvent(store, connection, store.getRootField("notifications")),
          onNext: (data) => data && sink.next(data.notifications),
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      watchPages: (arrived) => watchPages(connection, arrived),
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, feedId, frozen]);
}
